"""The demo: four comparable runs, one JSON object, a page; and in full, what it is meant to show."""

import json
import re

import numpy as np
import pytest
import torch
from rich.console import Console

from auxrnn import runs, saved
from auxrnn.config import flatten, to_flags
from auxrnn.data.sequences import in_order
from auxrnn.experiments import demo
from auxrnn.experiments.demo import FIRST_ANCHOR, LAST_ANCHOR, configs
from auxrnn.experiments.remembering import find_mean_image, measure_split
from command import call

NAMES = ["lstm_full", "lstm_truncated", "reconstruct", "predict"]


def run_demo(folder, *flags):
    return call("demo", "--out", folder, "--json", "--smoke", *flags)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "demo"
    return folder, run_demo(folder)


def test_the_four_runs_have_the_same_number_of_updates_and_differ_in_nothing_else():
    planned = configs(seed=3, is_smoke=False)
    schedules = {name: config.schedule for name, config in planned.items()}
    assert {(s.pretrain_steps or 0) + (s.train_steps or 0) for s in schedules.values()} == {4000}
    may_differ = {"objective", "supervised_window", "pretrain_steps", "train_steps"}
    shared = [{k: v for k, v in flatten(config).items() if k not in may_differ} for config in planned.values()]
    assert all(values == shared[0] for values in shared)
    windows = {name: config.loss.supervised_window for name, config in planned.items()}
    assert windows == {"lstm_full": "full", "lstm_truncated": 28, "reconstruct": 28, "predict": 28}
    assert planned["reconstruct"].loss.auxiliary_window == planned["predict"].loss.auxiliary_window == 28


def test_json_is_one_object_with_the_four_accuracies_and_the_seconds(smoke):
    _, done = smoke
    result = json.loads(done.out)
    assert list(result) == [*NAMES, "seconds"]
    assert all(0 <= result[name] <= 100 for name in NAMES)


def test_the_page_opens_offline_and_shows_the_accuracies_of_the_runs(smoke):
    folder, done = smoke
    page = (folder / "index.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", page)
    for name in NAMES:
        events = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
        accuracy = [event for event in events if event["event"] == "evaluation"][-1]["test_accuracy"]
        assert json.loads(done.out)[name] == accuracy
        assert f"{accuracy:.1f} %" in page


def test_errors_over_the_test_split_count_every_digit_from_every_anchor(smoke):
    run_folder = smoke[0] / "reconstruct"
    test, train = (runs.load_split(run_folder, name) for name in ("test", "train"))
    mean_image_T = find_mean_image(train)
    errors = measure_split(run_folder, test, torch.tensor([FIRST_ANCHOR, LAST_ANCHOR]), mean_image_T=mean_image_T)
    (batch,) = in_order(test, test.num_examples)
    image_NT = batch.x_BT[:, :, 0].numpy()
    length = saved.read_config(run_folder).segments.segment_length
    spans = [slice(anchor - length, anchor) for anchor in (FIRST_ANCHOR, LAST_ANCHOR)]
    blank = np.mean([(image_NT[:, span] ** 2).mean() for span in spans])
    mean_image = np.mean([((image_NT - mean_image_T)[:, span] ** 2).mean() for span in spans])
    assert errors[1:] == pytest.approx((blank, mean_image), rel=1e-5)
    assert errors.rebuilt not in errors[1:]


def test_a_finished_demo_is_shown_again_without_training(smoke):
    folder, done = smoke
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")}
    assert json.loads(run_demo(folder).out) == json.loads(done.out)
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")} == before


def test_a_folder_with_another_demo_is_refused(smoke):
    folder, _ = smoke
    refused = run_demo(folder, "--seed", "1")
    assert refused.code == 2
    assert "holds a demo with other settings" in refused.err


def test_the_commands_on_the_page_ask_for_the_runs_of_the_demo():
    planned = configs(seed=0, is_smoke=False)
    assert to_flags(planned["lstm_full"])[:5] == ["digits", "--recipe", "paper", "--hidden-size", "64"]
    assert "--objective" not in to_flags(planned["reconstruct"])


@pytest.mark.slow
def test_the_r_lstm_knows_the_digits_and_rebuilds_them_where_the_truncated_lstm_does_not(tmp_path):
    rows, facts, page = demo.run(tmp_path / "demo", seed=0, is_smoke=False, console=Console(stderr=True))
    accuracy = {row.name: row.accuracy for row in rows}
    assert accuracy["reconstruct"] >= 90
    assert accuracy["lstm_truncated"] <= 35
    for errors in (facts.shown_errors, facts.test_errors):
        assert errors.rebuilt < min(errors.blank, errors.mean_image)
    assert page.exists()
