"""`auxrnn show`, `compare` and `board` on small runs, and the numbers behind their pages."""

import functools
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
import torch
from browser import CHROMIUM, visit
from markup import parse

from auxrnn import runs, saved
from auxrnn.auxiliary import Geometry, Reconstruct, TokenLoss
from auxrnn.data.sequences import by_length, in_order
from auxrnn.findings import find_steps, look_at, read_along, rebuild
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.decoder import Decoder, feed_vector
from auxrnn.models.encoder import Encoder, Head, VectorEmbedding
from auxrnn.models.network import Network
from auxrnn.report.run_pages import Course, draw_segments
from auxrnn.structs import SequenceBatch
from auxrnn.training.evaluate import predict_logits
from cells import MODELS, make_cell
from command import TWO_AND_TWO, call, files_below, rewrite, train
from own_data import write_csv, write_ts

RECONSTRUCT = ["--objective", "reconstruct", *TWO_AND_TWO]
PLAIN = ["--train-steps", "2"]
KINDS = {
    "digits": RECONSTRUCT,
    "pixels": [*RECONSTRUCT, "--validation-fraction", "0.5"],
    "gru": ["--model", "gru", *PLAIN],
    "predict": ["--objective", "predict", *TWO_AND_TWO],
    "cnn": ["--model", "conv_rnn", *PLAIN, "--pad-to", "60", "--batch-size", "8", "--threads", "1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tiny runs of every kind."""
    folder = tmp_path_factory.mktemp("runs")
    texts, series = write_csv(folder / "texts.csv"), write_ts(folder)
    for name in ("digits", "gru", "predict"):
        train(folder / name, *KINDS[name])
    train(folder / "texts", *KINDS["pixels"], data=texts)
    train(folder / "series", *RECONSTRUCT, "--train-examples", "20", data=series)
    result = call("train", texts, *KINDS["cnn"], "--out", folder / "cnn")
    assert result.code == 0, result.err
    return folder


@pytest.fixture(scope="module")
def pages(folder):
    """The page of every run, drawn when it is first asked for."""

    @functools.cache
    def find(name):
        path = folder / f"{name}.html"
        result = call("show", folder / name, "--out", path)
        assert result.code == 0, result.err
        return path

    return find


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("model", MODELS)
def test_reading_along_gives_what_reading_each_part_alone_gives(model, readout):
    torch.manual_seed(0)
    encoder = Encoder(VectorEmbedding(2, embedding_size=3), cell=make_cell(model, 3, hidden_size=5, num_layers=2))
    num_inputs = encoder.cell.output_size * (2 if readout == "mean" else 1)
    head = Head(num_inputs, head_size=4, output_size=3, drop_connect=0.0)
    network = Network(encoder, classifier=head, objective=None, readout=readout).double()
    # Longer than what is read at a time, and of different lengths.
    length_B, num_columns = torch.tensor([600, 3, 257]), 600
    x_BTD = torch.randn(3, num_columns, 2, dtype=torch.float64)
    batch = SequenceBatch(x_BTD, torch.zeros(3, dtype=torch.long), num_columns - length_B)
    share_P = torch.linspace(0.2, 1, 5, dtype=torch.float64)
    logits_BPC = read_along(network, batch, share_P)
    steps_BP = find_steps(length_B, share_P)
    for row, length in enumerate(length_B.tolist()):
        x_TD = x_BTD[row, num_columns - length :]
        for place, steps in enumerate(steps_BP[row].tolist()):
            alone = network.logits(SequenceBatch(x_TD[None, :steps], batch.label_B[:1]))
            torch.testing.assert_close(logits_BPC[row, place], alone[0], rtol=1e-9, atol=1e-9)


def test_a_share_of_the_steps_is_rounded_up_and_at_least_one():
    share_P = torch.linspace(0.1, 1, 10, dtype=torch.float64)
    assert find_steps(torch.tensor([10, 3]), share_P).tolist() == [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        [1, 1, 1, 2, 2, 2, 3, 3, 3, 3],
    ]


@pytest.mark.parametrize("order", ["reversed", "forward"])
def test_the_true_part_of_a_rebuilt_segment_is_what_was_read_before_the_anchor(order):
    torch.manual_seed(0)
    embedding = VectorEmbedding(1, embedding_size=3)
    output = Head(4, head_size=0, output_size=1, drop_connect=0.0)
    decoder = Decoder(LSTM(3, hidden_size=4, num_layers=1), head=output, feedback=feed_vector)
    objective = Reconstruct(
        decoder,
        token_loss=TokenLoss(is_token=False),
        geometry=Geometry(1, 4),
        placement="immediate",
        order=order,
        window=2,
    )
    head = Head(4, head_size=0, output_size=2, drop_connect=0.0)
    network = Network(
        Encoder(embedding, cell=LSTM(3, hidden_size=4, num_layers=1)), classifier=head, objective=objective
    )
    x_BTD = torch.arange(20.0).reshape(2, 10, 1)
    batch = SequenceBatch(x_BTD, torch.zeros(2, dtype=torch.long), torch.tensor([0, 7]))
    found = rebuild(network, batch, torch.tensor([6, 2]))
    given = {"reversed": ([2, 3, 4, 5], [17, 18]), "forward": ([3, 4, 5, 6], [18, 19])}[order]
    assert [true[:, 0].tolist() for true in found.true] == [list(map(float, values)) for values in given]
    assert [len(rebuilt) for rebuilt in found.rebuilt] == [4, 2]


def test_the_page_s_answers_are_those_of_evaluate(folder):
    found = look_at(folder / "series").answers
    evaluated = json.loads(call("evaluate", folder / "series", "--json").out)
    assert found.confusion == evaluated["confusion"]
    assert found.num_examples == evaluated["examples"]


def test_at_the_end_of_the_sequence_the_accuracy_is_that_of_evaluate(folder):
    accuracy = json.loads(call("evaluate", folder / "gru", "--json").out)["accuracy"]
    course = look_at(folder / "gru").course
    assert list(course.accuracy) == sorted(course.accuracy)
    assert list(course.accuracy)[-1] == course.num_steps == 196
    assert list(course.accuracy.values())[-1] == pytest.approx(accuracy)


def test_a_network_that_reads_whole_sequences_has_no_course(folder):
    trained, test = saved.load_run(folder / "cnn"), runs.load_split(folder / "cnn", "test")
    found = look_at(folder / "cnn")
    assert found.course is found.remembered is None
    logits_NC = predict_logits(trained.network, in_order(test.select(by_length(test)), 64))
    assert (
        np.array(found.answers.confusion).sum(axis=0).tolist()
        == torch.bincount(logits_NC.argmax(dim=1), minlength=2).tolist()
    )


def test_the_turn_is_where_nine_tenths_of_the_gain_are_reached():
    course = Course({10: 20.0, 20: 30.0, 30: 91.0, 40: 100.0}, 40)
    assert course.find_turn(50) == 40
    assert course._replace(accuracy={10: 20.0, 20: 30.0, 30: 92.0, 40: 100.0}).find_turn(50) == 30
    for accuracy in ({10: 20.0, 40: 20.0}, {10: 20.0, 40: 10.0}, {10: 20.0, 40: 28.0}):
        assert course._replace(accuracy=accuracy).find_turn(50) is None
    # On more sequences the same gain is more than chance.
    assert course._replace(accuracy={10: 20.0, 40: 28.0}).find_turn(500) == 40
    assert course.describe(30) == "step 30 of 40"
    assert course._replace(num_steps=None).describe(30.0) == "30 % of the sequence"


@pytest.mark.parametrize("name", ["digits", "texts", "series", "gru", "predict", "cnn"])
def test_a_page_shows_what_its_kind_of_run_has(pages, name):
    text = pages(name).read_text()
    elements = parse(text)
    assert {"script", "link", "img"}.isdisjoint(elements.tags)
    assert ("What it remembers" in text) == (name in ("digits", "texts", "series"))
    assert ("When it makes up its mind" in text) == (name != "cnn")
    assert ("percent of the sequence" in text) == (name in ("texts", "series"))
    assert (". The sequences are of different lengths." in text) == (name in ("texts", "series"))
    assert ('class="letters"' in text) == (name == "texts")
    assert "expected\ncalibration error" in text
    ids = [value for attribute, value in elements.attributes if attribute == "id"]
    assert len(ids) == len(set(ids))
    train_words = KINDS.get(name, RECONSTRUCT)
    steps = train_words[train_words.index("--train-steps") + 1]
    assert f'<th scope="row">train_steps</th><td class="ours" data-label="this run">{steps}</td>' in text


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")
@pytest.mark.parametrize("name", ["digits", "texts", "series"])
def test_a_browser_shows_the_page_without_complaint_network_or_overflow(pages, tmp_path, name):
    for width in (390, 1200):
        found = visit(pages(name), width=width, folder=tmp_path)
        assert (found.messages, found.resources, found.wide) == ([], [], [])
        assert found.scroll <= width


def test_the_page_of_a_run_that_saw_no_labels_says_what_its_answers_are(pages, folder, tmp_path):
    train(tmp_path / "run", *RECONSTRUCT, "--train-steps", "0")
    assert call("show", tmp_path / "run", "--out", tmp_path / "page.html").code == 0
    note = "This run was pretrained without labels only."
    assert note in (tmp_path / "page.html").read_text()
    assert note not in pages("digits").read_text()
    assert "At no place is it clearly better than at the first one." in (tmp_path / "page.html").read_text()


def test_a_large_split_is_read_in_part_and_the_page_says_so(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.findings.MOST_SEQUENCES", 60)
    result = call("show", folder / "predict", "--out", tmp_path / "page.html")
    assert result.code == 0, result.err
    assert "made from 60 of the\n360 sequences of the test split" in (tmp_path / "page.html").read_text()


def test_both_calibration_errors_are_those_of_evaluate_where_a_run_has_a_temperature(folder, pages):
    found = look_at(folder / "texts").answers
    evaluated = json.loads(call("evaluate", folder / "texts", "--json").out)
    assert found.temperature == evaluated["temperature"] != 1
    errors = [evaluated[name] for name in ("calibration_error_before", "calibration_error")]
    assert found.calibration_errors == pytest.approx(errors, abs=1e-4)
    assert len(found.bins) == 2
    assert "that was fitted on the validation split" in pages("texts").read_text()


@pytest.fixture(scope="module")
def source_NTD():
    """Series of two channels, of which some values will be missing."""
    return np.random.default_rng(0).normal(size=(48, 20, 2)).astype(np.float32)


@pytest.mark.parametrize("order", ["reversed", "forward"])
@pytest.mark.parametrize(("share_missing", "joined"), [(0.0, 3), (0.3, 1), (0.3, 3)])
def test_rebuilt_series_lie_at_their_steps_with_their_gaps_left_open(
    source_NTD, tmp_path, order, share_missing, joined
):
    x_NTD = np.where(np.random.default_rng(1).random(source_NTD.shape) < share_missing, np.nan, source_NTD)
    np.savez(tmp_path / "data.npz", x=x_NTD, y=np.arange(48) % 2)
    words = [*RECONSTRUCT, "--steps-per-input", str(joined), "--order", order, "--segment-length", "3"]
    train(tmp_path / "run", *words, "--test-fraction", "0.16", data=tmp_path / "data.npz")
    found, form = look_at(tmp_path / "run"), saved.read_card(tmp_path / "run").format
    assert list(found.course.accuracy)[-1] == found.course.num_steps == 20
    scaled_NTD, remembered = (x_NTD - form.mean) / form.deviation, found.remembered
    # What fills the last input is missing too.
    scaled_NTD = np.pad(scaled_NTD, ((0, 0), (0, -20 % joined), (0, 0)), constant_values=np.nan)
    assert remembered.num_examples == len(remembered.shown) == 8
    for segment in remembered.shown:
        assert np.shape(segment.true) == np.shape(segment.rebuilt) == (3 * joined, 2)
        begin, end = segment.first - 1, segment.first - 1 + 3 * joined
        assert any(np.allclose(segment.true, x_TD[begin:end], equal_nan=True, atol=1e-5) for x_TD in scaled_NTD)
        assert segment.anchor == end + (joined if order == "reversed" else 0)
    errors = np.concatenate([np.square(segment.true - segment.rebuilt) for segment in remembered.shown])
    assert remembered.scores[0] == pytest.approx(np.nanmean(errors), rel=1e-5)
    figure = draw_segments(remembered.shown, width=370.0)
    assert len(figure.axes) == 4
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["true 1", "rebuilt 1", "true 2", "rebuilt 2", "anchor"]


def test_rebuilt_integers_are_spelled_at_their_steps(tmp_path):
    x_NT = np.random.default_rng(0).choice([-4, 7, 130], size=(48, 20))
    np.savez(tmp_path / "data.npz", x=x_NT[:, :, None], y=np.arange(48) % 2)
    words = [*RECONSTRUCT, "--tokens", "integers", "--segment-length", "3", "--test-fraction", "0.16"]
    train(tmp_path / "run", *words, data=tmp_path / "data.npz")
    remembered = look_at(tmp_path / "run").remembered
    assert remembered.tokens == "integers"
    for segment in remembered.shown:
        assert any(
            [int(word) for word in segment.true] == x_T[segment.first - 1 : segment.first + 2].tolist() for x_T in x_NT
        )
        assert {len(word) for word in segment.true + segment.rebuilt} == {3}
        assert {int(word) for word in segment.rebuilt} <= {-4, 7, 130}
    (line,) = remembered.shown[0].split_lines()
    assert line == list(zip(remembered.shown[0].true, remembered.shown[0].rebuilt, strict=True))
    assert call("show", tmp_path / "run", "--out", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    assert "% of the integers are right" in text
    assert f"<h3>Class {remembered.shown[0].title}, rebuilt at step" in text
    assert f"<pre>{' '.join(remembered.shown[0].true)} " in text


def test_data_that_has_moved_is_found_where_it_is_said_to_be(folder, tmp_path):
    shutil.copytree(folder / "texts", tmp_path / "one")
    moved = tmp_path / "moved" / "texts.csv"
    moved.parent.mkdir()
    shutil.copy(folder / "texts.csv", moved)
    # As after a move: the same path leads nowhere.
    config = json.loads((folder / "texts" / "config.json").read_text())
    rewrite(tmp_path / "one" / "config.json", json.dumps(config | {"data": str(tmp_path / "gone.csv")}))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for words in (("show", tmp_path / "one"), ("compare", tmp_path / "one", tmp_path / "two")):
        lost = call(*words, "--out", tmp_path / "page.html")
        assert (lost.code, "--data" in lost.err) == (1, True)
        found = call(*words, "--out", tmp_path / "page.html", "--data", moved)
        assert found.code == 0, found.err


def test_the_page_in_a_run_disturbs_no_other_command(folder):
    before = files_below(folder / "gru")
    assert call("show", folder / "gru").out == f"{folder / 'gru' / 'index.html'}\n"
    assert set(files_below(folder / "gru")) - set(before) == {"index.html"}
    for command in ("evaluate", "resume"):
        assert call(command, folder / "gru").code == 0


def test_show_and_compare_refuse_in_one_sentence(folder, tmp_path):
    for words, sentence in [
        (("show", tmp_path), "is not a run"),
        (("show", folder / "digits", "--split", "validation"), "this run has no validation split"),
        (("show", folder / "cnn", "--out", "/proc/nowhere/page.html"), "cannot write"),
        (("compare", folder / "digits"), "name two or more different runs"),
        (("compare", folder / "digits", folder / "digits"), "name two or more different runs"),
        (("board",), "name run folders or a folder of runs"),
        (("board", tmp_path, "--once"), "there are no runs in"),
        (("board", folder / "nowhere", "--once"), "is not a folder"),
    ]:
        result = call(*words)
        assert (result.code in (1, 2), result.out) == (True, "")
        assert sentence in result.err
        assert len(result.err.strip().splitlines()) == 1


def test_compare_pairs_runs_on_the_same_test_sequences(folder, tmp_path):
    out = tmp_path / "compare.html"
    words = [folder / name for name in ("digits", "gru", "series")]
    result = call("compare", *words, "--out", out, "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"]) == ("digits", "gru")
    accuracies = {run["run"]: run["accuracy"] for run in found["runs"]}
    evaluated = json.loads(call("evaluate", folder / "gru", "--json").out)["accuracy"]
    assert accuracies["gru"] == pytest.approx(evaluated)
    difference = 3.6 * (accuracies["digits"] - accuracies["gru"])
    assert pair["only_first"] - pair["only_second"] == pytest.approx(difference)
    assert found["differences"]["model"] == ["lstm", "gru", "lstm"]
    text = out.read_text()
    assert "other sequences than digits: series" in text
    if CHROMIUM.exists():
        for width in (390, 1200):
            seen = visit(out, width=width, folder=tmp_path)
            assert (seen.messages, seen.resources, seen.wide) == ([], [], [])


def test_board_writes_once_and_nothing_twice(folder, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    words = ("board", folder, "--once", "--logdir", tmp_path / "log")
    first, second = call(*words), call(*words)
    assert (first.code, second.code) == (0, 0)
    assert first.out == f"{tmp_path / 'log'}\n"
    assert re.match(r"[1-9]\d* events written", first.err)
    assert second.err.startswith("0 events written")
    assert {path.parent.name for path in (tmp_path / "log").rglob("events.*")} == {
        "digits", "gru", "predict", "texts", "series", "cnn"
    }  # fmt: skip


def test_board_names_its_extra_where_tensorboard_is_missing(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "auxrnn.report.board", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    result = call("board", folder, "--once")
    assert (result.code, result.err) == (2, "auxrnn: auxrnn board needs TensorBoard; pip install 'auxrnn[board]'\n")


def test_board_serves_runs_that_grow_until_it_is_stopped(folder, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    run = tmp_path / "runs" / "growing"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    event = {"event": "train", "phase": "joint", "total_step": 1, "lr": 0.5, "seconds": 1.0}
    (run / "metrics.jsonl").write_text(json.dumps(event) + "\n")
    log = tmp_path / "log"
    command = [sys.executable, "-m", "auxrnn", "board", str(tmp_path / "runs"), "--logdir", str(log), "--port"]
    refused = subprocess.run([*command, "99999"], capture_output=True, text=True, check=False)
    assert (refused.returncode, "auxrnn: TensorBoard does not start: " in refused.stderr) == (1, True)
    # Tests that a script started in the background ignore Ctrl-C, and what they start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            with urllib.request.urlopen(process.stdout.readline().strip(), timeout=30) as page:  # noqa: S310 - our own
                assert page.status == 200
            (events,) = (log / "growing").iterdir()
            size, deadline = events.stat().st_size, time.monotonic() + 30
            with (run / "metrics.jsonl").open("a") as file:
                file.write(json.dumps(event | {"total_step": 2}) + "\n")
            while events.stat().st_size == size:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
