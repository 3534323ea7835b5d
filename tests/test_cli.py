"""The commands do what their help says: run folders, results on stdout, config files, stopping and starting."""

import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from sklearn.metrics import f1_score

from auxrnn import cli, runs
from auxrnn.config import FIELDS, DataConfig, RunConfig, flatten, read_file, unflatten
from command import TINY, TWO_AND_TWO, Result, call, files_below, parse_train, rewrite, train
from own_data import write_csv

GOLDEN = Path(__file__).parent / "golden" / "flags.json"
FILES_OF_A_RUN = {"config.json", "environment.json", "model.json", "sums.json"}
FILES_OF_A_RUN |= {"metrics.jsonl", "checkpoints", "model.safetensors"}
NUM_PICTURES = 12
COMMANDS = [name for name in cli.app if not name.startswith("-")]

# Two sets of values, each other than the default and other than the other set's.
FROM_FILE = {
    "data": "mnist", "data_dir": "a", "image_size": 9, "permutation": "a", "train_examples": 9, "length": 9,
    "test_data": "a", "unlabeled": "a", "enlarge_to": 9, "text_column": "a", "label_column": "a", "tokens": "bytes",
    "series_column": "a", "time_column": "a", "value_columns": "a", "channels_first": True,
    "sample_rate": 9, "label_pattern": "{label}-9",
    "alphabet_size": 9, "max_length": 9, "steps_per_input": 9, "missing": "refuse",
    "read_backward": True, "label_fraction": 0.1, "test_fraction": 0.1,
    "validation_fraction": 0.1, "model": "sa_lstm", "hidden_size": 9, "num_layers": 9, "embedding_size": 9,
    "decoder_layers": 9, "tie_decoder": True, "optimizer": "sgd", "warmup_steps": 9, "label_smoothing": 0.1,
    "head_size": 9, "drop_connect": 0.1, "gate_init": "chrono", "num_segments": 9, "segment_length": 9,
    "placement": "past", "order": "forward", "anchor_scope": "batch", "objective": "reconstruct",
    "supervised_window": "full", "auxiliary_window": 9, "auxiliary_weight": 0.1, "sampling_steps": 9,
    "feedback": "argmax", "pretrain_epochs": 9.0, "train_epochs": 9.0, "joint": False, "batch_size": 9, "lr": 0.1,
    "lr_halving_epochs": 9.0, "clip_norm": 9.0, "init_from": "a", "seed": 9, "threads": 9, "device": "meta",
    "evaluate_every": 9, "checkpoint_every": 9, "log_every": 9, "readout": "mean", "normalize_auxiliary": True,
    "lr_schedule": "cosine", "evaluate_all": False, "evaluate_test": False, "patience": 9, "class_weight": "balanced",
}  # fmt: skip
FROM_FLAGS = {
    "data": "digits", "data_dir": "b", "image_size": 8, "permutation": "b", "train_examples": 8, "length": 8,
    "test_data": "b", "unlabeled": "b", "enlarge_to": 8, "text_column": "b", "label_column": "b",
    "series_column": "b", "time_column": "b", "value_columns": "b", "channels_first": False,
    "tokens": "characters", "sample_rate": 8, "label_pattern": "{label}-8",
    "alphabet_size": 8, "max_length": 8, "steps_per_input": 8, "missing": "mask",
    "read_backward": False, "labels_per_class": 8,
    "test_fraction": 0.3, "validation_fraction": 0.2, "model": "gru", "hidden_size": 8, "num_layers": 8,
    "embedding_size": 8, "decoder_layers": 8, "tie_decoder": False, "optimizer": "adam", "warmup_steps": 8,
    "label_smoothing": 0.2,
    "head_size": 8, "drop_connect": 0.2, "gate_init": "forget-one", "num_segments": 8, "segment_length": 8,
    "placement": "immediate", "order": "reversed", "anchor_scope": "example", "objective": "predict",
    "supervised_window": 8, "auxiliary_window": "full", "auxiliary_weight": 0.2, "sampling_steps": 8,
    "feedback": "sample", "pretrain_steps": 8, "train_steps": 8, "joint": True, "batch_size": 8, "lr": 0.2,
    "lr_halving_epochs": 8.0, "clip_norm": 8.0, "init_from": "b", "seed": 8, "threads": 8, "device": "cpu",
    "evaluate_every": 8, "checkpoint_every": 8, "log_every": 8, "readout": "last", "normalize_auxiliary": False,
    "lr_schedule": "inverse-sqrt", "evaluate_all": True, "evaluate_test": True, "patience": 8, "class_weight": "none",
}  # fmt: skip
# What only some models take: the model, a value for the file, a value for the flag.
OF_BASELINES = {
    "num_heads": ("transformer", 2, 8), "filter_size": ("transformer", 9, 8), "dropout": ("dmca", 0.3, 0.2),
    "block_length": ("dmca", 9, 8), "block_reach": ("dmca", 9, 8), "compression": ("dmca", 2, 4),
    "num_memories": ("legendre", 2, 3), "memory_order": ("legendre", 9, 8), "memory_length": ("legendre", 9, 8),
    "size": ("char_cnn", "large", "small"), "depth": ("vdcnn", 9, 17), "pad_to": ("conv_rnn", 9, 8),
    "r_min": ("lru", 0.5, 0.6), "r_max": ("lru", 0.99, 0.98),
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run with a validation split, and what training it printed."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    result = train(folder, *TWO_AND_TWO, "--validation-fraction", "0.5", "--json")
    return folder, result


@pytest.fixture
def unfinished(finished, tmp_path):
    """The same run as it was before its last phase."""
    folder = shutil.copytree(finished[0], tmp_path / "unfinished")
    (folder / "model.safetensors").unlink()
    for path in (folder / "checkpoints").glob("step-00000004.*"):
        path.unlink()
    return folder


@pytest.fixture(scope="module")
def test_digits(finished):
    """The kept pixels of the test digits, and their labels."""
    split = runs.load_split(finished[0], "test")
    return split.flat.value_K.reshape(-1, 196, 1)[split.row_N], split.label_N


def events(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def phases_of(folder):
    return list(dict.fromkeys(event["phase"] for event in events(folder)))


def write_toml(path, values):
    lines = [f"{name.replace('_', '-')} = {json.dumps(value)}" for name, value in values.items()]
    path.write_text("\n".join(lines))
    return path


def as_flags(values):
    words = [values["data"]]
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words += [f"--{flag}" if value else f"--no-{flag}"]
        elif name != "data":
            words += [f"--{flag}", str(value)]
    return words


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_the_summary_names_every_command_and_gives_examples(word):
    result = call(word)
    assert result.code == 0
    assert set(re.findall(r"^\W ([a-z]+)  ", result.out, re.MULTILINE)) == set(COMMANDS)
    assert "Examples:\n  auxrnn demo" in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_carries_an_example_and_defaults(command):
    result = call(command, "--help")
    usage, text = result.out.split("\n", 1)
    assert result.code == 0
    assert result.err == ""
    assert re.search(rf"^Examples:\n(.*\n)*? .*auxrnn {command}\b", text, re.MULTILINE)
    assert "ARGS" not in usage
    assert "--json  " in text or command in ("data", "board")


def test_commands_and_options_stand_where_a_newcomer_looks_for_them():
    used = re.findall(r"^│ ([a-z]+)  ", call("--help").out.partition("Before training")[0], re.MULTILINE)
    assert used == ["train", "tune", "resume", "runs", "evaluate", "predict", "show", "compare", "board", "export"]
    panels = re.split(r"^╭─ (.*?) ─+╮$", call("train", "--help").out, flags=re.MULTILINE)[1:]
    options = {
        title: re.findall(r"^│[ *]+(--[a-z-]+)", text, re.MULTILINE)
        for title, text in zip(panels[::2], panels[1::2], strict=True)
    }
    assert options["Start here"][:4] == ["--out", "--minutes", "--model", "--objective"]
    assert {"--sample-rate", "--steps-per-input", "--missing"} <= set(options["Data"])
    assert options["Tables"][:2] == ["--text-column", "--label-column"]
    assert {"--unlabeled", "--labels-per-class"} <= set(options["Few labels, and splits"])


def test_the_usage_line_names_the_words_that_a_command_takes():
    assert call("predict", "--help").out.startswith("Usage: auxrnn predict [OPTIONS] RUN FILES...\n\nShow classes")
    assert call("reproduce", "--help").out.startswith("Usage: auxrnn reproduce [OPTIONS] [NAMES...]\n\n")


def test_the_help_of_a_named_model_shows_its_defaults_and_no_option_without_effect():
    text = call("train", "--help", "--model", "transformer").out
    assert re.search(r"--num-layers INT .*\n?.*\[default: 2\]", text)
    options = set(re.findall(r"^│ +(--[a-z-]+)", text, re.MULTILINE))
    assert {"--num-heads", "--hidden-size"} <= options
    assert not {"--supervised-window", "--segment-length", "--pad-to"} & options
    assert "Segments of the auxiliary loss" not in text


def test_the_flags_of_train_and_their_defaults_are_as_recorded():
    own = {
        name.strip("_"): parameter.default
        for name, parameter in inspect.signature(cli.training.train).parameters.items()
        if name != "run"
    }
    defaults = own | flatten(RunConfig(data=DataConfig(data="digits")))
    del defaults["data"]
    found = {f"--{name.replace('_', '-')}": value for name, value in sorted(defaults.items())}
    named_in_help = re.findall(r"^│ +(--(?!no-)[a-z][a-z-]*)", call("train", "--help").out, re.MULTILINE)
    # A line of a description may begin with a flag that it names.
    assert sorted(set(named_in_help)) == sorted(found)
    if os.environ.get("AUXRNN_REWRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(GOLDEN.read_text())


def test_every_field_can_be_set_in_a_config_file(tmp_path):
    steps = {"pretrain_steps": 9, "train_steps": 9, "labels_per_class": 9, "label_fraction": 1.0}
    assert FROM_FILE.keys() | steps.keys() | OF_BASELINES.keys() == FIELDS.keys(), "a field is not tried here"
    in_steps = {name: value for name, value in FROM_FILE.items() if not name.endswith("epochs")} | steps
    for values in (FROM_FILE, in_steps):
        path = write_toml(tmp_path / "all.toml", values)
        assert parse_train(["--config", str(path)])["run"] == unflatten(values)


def test_every_flag_overrides_the_config_file(tmp_path):
    path = write_toml(tmp_path / "all.toml", FROM_FILE)
    parsed = parse_train(["--config", str(path), *as_flags(FROM_FLAGS)])
    assert flatten(parsed["run"]) == flatten(unflatten(FROM_FLAGS))


def test_what_no_flag_names_is_taken_from_the_config_file(tmp_path):
    path = write_toml(tmp_path / "all.toml", FROM_FILE)
    for name, value in FROM_FLAGS.items():
        # A model brings its own settings, and this one its objective.
        if name in ("model", "objective"):
            continue
        words = as_flags({"data": "mnist", name: value})
        given = {name.replace("_steps", "_epochs"): None, name: value} if name.endswith("n_steps") else {name: value}
        given |= {"label_fraction": 1.0} if name == "labels_per_class" else {}
        parsed = parse_train([f"--config={path}", *words])
        assert flatten(parsed["run"]) == flatten(unflatten(FROM_FILE)) | given


@pytest.mark.parametrize("name", OF_BASELINES)
def test_what_only_some_models_take_can_be_set_in_a_file_and_by_a_flag(tmp_path, name):
    model, in_file, by_flag = OF_BASELINES[name]
    path = write_toml(tmp_path / "some.toml", {"data": "digits", "model": model, name: in_file})
    assert flatten(parse_train(["--config", str(path)])["run"])[name] == in_file
    words = ["--config", str(path), f"--{name.replace('_', '-')}", str(by_flag)]
    assert flatten(parse_train(words)["run"])[name] == by_flag


def test_a_model_brings_its_settings_above_those_of_a_file_and_below_flags():
    words = ["mnist", "--config", "mnist14", "--model", "transformer"]
    config = parse_train(words)["run"]
    assert (config.model.hidden_size, config.data.image_size, config.schedule.train_epochs) == (128, 14, 10)
    assert (config.loss.objective, config.schedule.optimizer, config.model.num_layers) == ("none", "adam", 2)
    assert config.schedule.pretrain_epochs is None
    assert parse_train([*words, "--num-layers", "3"])["run"].model.num_layers == 3


def test_another_model_named_alone_has_no_auxiliary_loss_and_one_asked_for_keeps_the_pretraining():
    assert parse_train(["mnist", "--config", "mnist14"])["run"].loss.objective == "reconstruct"
    assert parse_train(["mnist", "--config", "mnist14", "--model", "gru"])["run"].loss.objective == "none"
    assert parse_train(["mnist", "--config", "mnist14", "--model", "lstm"])["run"].loss.objective == "reconstruct"
    words = ["mnist", "--config", "mnist14", "--model", "gru", "--objective", "reconstruct"]
    assert parse_train(words)["run"].schedule.pretrain_epochs == 4


@pytest.mark.parametrize("name", ["paper", "mnist14"])
def test_the_shipped_configs_parse_and_say_what_they_set(name):
    config = parse_train(["mnist", "--config", name])["run"]
    values = read_file(Path(name))
    assert values.pop("recipe") == "paper"
    assert len(values) > 10
    assert flatten(config) == flatten(unflatten({"data": "mnist"} | values))


def test_a_run_folder_holds_all_it_promises(finished):
    folder, _result = finished
    assert {path.name for path in folder.iterdir()} == FILES_OF_A_RUN | {"model-best.safetensors", "splits.json"}
    assert phases_of(folder) == ["pretrain", "joint"]
    assert len(list((folder / "checkpoints").glob("*.safetensors"))) == 2


def test_without_a_validation_split_there_are_no_best_weights(tmp_path):
    train(tmp_path / "run", "--objective", "none", "--train-steps", "1")
    # Training on 40 of the digits is a draw, and recorded.
    assert {path.name for path in (tmp_path / "run").iterdir()} == FILES_OF_A_RUN | {"splits.json"}


def test_without_out_each_run_gets_the_next_free_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        call("train", "digits", *TINY, "--objective", "none", "--train-steps", "1")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["digits-lstm-1", "digits-lstm-2"]


def assert_one_object(result):
    assert result.code == 0, result.err
    assert result.out.count("\n") == 1
    return json.loads(result.out, parse_constant=pytest.fail)


def test_train_and_resume_print_the_same_single_object(finished, unfinished):
    folder, result = finished
    scores = assert_one_object(result)
    assert scores.pop("run") == str(folder)
    measures = {f"{split}_{kind}" for split in ("validation", "test") for kind in ("loss", "accuracy")}
    assert scores.keys() == measures | {"test_balanced_accuracy", "test_macro_f1"}
    resumed = assert_one_object(call("resume", unfinished, "--json"))
    again = assert_one_object(call("resume", unfinished, "--json"))
    assert resumed == again == {"run": str(unfinished)} | scores


def test_info_prints_a_single_object_with_versions_and_the_folder_of_the_data(monkeypatch):
    monkeypatch.setenv("AUXRNN_DATA_DIR", "/some/where")
    facts = assert_one_object(call("info", "--json"))
    assert facts["versions"].keys() >= {"auxrnn", "torch"}
    assert facts["data"] == "/some/where"
    assert facts["threads"] == 1


@pytest.mark.parametrize(
    ("words", "num_examples"),
    [([], 360), (["--weights", "best"], 360), (["--split", "train"], 20), (["--split", "validation"], 20)],
)
def test_evaluate_prints_a_single_object_whose_numbers_agree(finished, words, num_examples):
    found = assert_one_object(call("evaluate", finished[0], "--json", *words))
    measures = {"accuracy", "balanced_accuracy", "macro_f1", "loss"}
    others = {"weights", "examples", "confusion", "recall", "accuracy_interval", "worst"}
    calibration = {"calibration_error", "calibration_error_before", "temperature"}
    assert found.keys() == measures | others | calibration
    confusion_CC = np.array(found["confusion"])
    assert confusion_CC.sum() == found["examples"] == num_examples
    assert found["accuracy"] == pytest.approx(100 * confusion_CC.trace() / num_examples)
    recall_C = 100 * confusion_CC.diagonal() / confusion_CC.sum(axis=1)
    assert found["recall"] == pytest.approx(dict(zip("0123456789", recall_C, strict=True)))
    assert found["balanced_accuracy"] == pytest.approx(recall_C.mean())
    label_N, answer_N = (np.repeat(axis.ravel(), confusion_CC.ravel()) for axis in np.indices(confusion_CC.shape))
    assert found["macro_f1"] == pytest.approx(100 * f1_score(label_N, answer_N, average="macro"))


def test_evaluate_gives_what_training_measured_last(finished):
    folder, result = finished
    found = json.loads(call("evaluate", folder, "--json").out)
    scores = json.loads(result.out)
    # The loss was measured before the weights were calibrated: tests/test_calibrated_runs.py compares it.
    names = ("accuracy", "balanced_accuracy", "macro_f1")
    assert [found[name] for name in names] == [scores[f"test_{name}"] for name in names]


def test_evaluate_prints_a_row_for_each_class_for_people(finished):
    text = call("evaluate", finished[0]).out
    scores = r"accuracy [\d.]+ % \(95 % interval [\d.]+ to [\d.]+\)   360 examples\n"
    others = r"balanced [\d.]+ %   macro F1 [\d.]+ %   loss [\d.]+   calibration error [\d.]+ %"
    without = r" \([\d.]+ % without the temperature of [\d.]+\)\n"
    assert re.match(scores + others + without, text)
    assert re.findall(r"^ (\d)  ", text, re.MULTILINE) == list("0123456789")


def test_predict_answers_as_evaluate_counts(finished, test_digits, tmp_path):
    x_NTD, label_N = test_digits
    np.save(tmp_path / "all.npy", x_NTD)
    rows = assert_one_object(call("predict", finished[0], tmp_path / "all.npy", "--json"))["predictions"]
    confusion_CC = np.zeros((10, 10), int)
    for label, row in zip(label_N, rows, strict=True):
        confusion_CC[label, int(row["class"])] += 1
    evaluated = json.loads(call("evaluate", finished[0], "--json").out)
    assert confusion_CC.tolist() == evaluated["confusion"]


def test_predict_gives_the_same_for_pictures_and_arrays(finished, test_digits, tmp_path):
    images_NHW = test_digits[0][:NUM_PICTURES, :, 0].reshape(-1, 14, 14)
    np.save(tmp_path / "all.npy", images_NHW)
    paths = [tmp_path / f"{index}.png" for index in range(NUM_PICTURES)]
    for image_HW, path in zip(images_NHW, paths, strict=True):
        Image.fromarray(image_HW).save(path)
    rows = assert_one_object(call("predict", finished[0], *paths, tmp_path / "all.npy", "--json"))["predictions"]
    pictures, arrays = rows[:NUM_PICTURES], rows[NUM_PICTURES:]
    assert [row["file"] for row in pictures] == [str(path) for path in paths]
    for picture, array in zip(pictures, arrays, strict=True):
        assert picture["class"] == array["class"] == max(picture["probabilities"], key=picture["probabilities"].get)
        assert picture["probabilities"] == pytest.approx(array["probabilities"])
        assert sum(picture["probabilities"].values()) == pytest.approx(1)


def test_predict_prints_a_line_for_each_file_for_people(finished, test_digits, tmp_path):
    np.save(tmp_path / "one.npy", test_digits[0][:1])
    result = call("predict", finished[0], tmp_path / "one.npy")
    assert re.fullmatch(rf"{tmp_path}/one.npy\t\d\t[01]\.\d{{4}}\n", result.out)


def test_no_joint_trains_without_the_auxiliary_loss_after_pretraining(tmp_path):
    train(tmp_path / "run", *TWO_AND_TWO, "--no-joint")
    assert phases_of(tmp_path / "run") == ["pretrain", "supervised"]
    trained = [event for event in events(tmp_path / "run") if event["event"] == "train"]
    assert ["auxiliary_loss" in event for event in trained] == [True, False]


def test_no_train_steps_pretrain_only(tmp_path):
    result = train(tmp_path / "run", "--pretrain-steps", "1", "--train-steps", "0", "--json")
    assert phases_of(tmp_path / "run") == ["pretrain"]
    assert assert_one_object(result).keys() == {"run", "train_auxiliary_loss", "test_auxiliary_loss"}


def test_a_run_starts_from_exactly_the_weights_of_another(finished, tmp_path):
    words = ["--pretrain-steps", "0", "--train-steps", "1", "--seed", "1", "--init-from", finished[0]]
    train(tmp_path / "run", *words)
    start = load_file(tmp_path / "run" / "checkpoints" / "step-00000000.safetensors")
    source = load_file(finished[0] / "model.safetensors")
    assert {name.split(".")[0] for name in source} == {"encoder", "classifier", "objective"}
    for name, tensor in source.items():
        assert torch.equal(start[f"network.{name}"], tensor), name


def test_a_run_with_another_head_takes_the_encoder_alone(finished, tmp_path):
    words = ["--objective", "none", "--train-steps", "1", "--head-size", "9", "--init-from", finished[0]]
    train(tmp_path / "run", *words)
    start = load_file(tmp_path / "run" / "checkpoints" / "step-00000000.safetensors")
    for name, tensor in load_file(finished[0] / "model.safetensors").items():
        if name.startswith("encoder."):
            assert torch.equal(start[f"network.{name}"], tensor), name


def test_resume_uses_the_number_of_threads_of_the_run(finished, tmp_path):
    folder = shutil.copytree(finished[0], tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    rewrite(folder / "config.json", json.dumps(config | {"threads": 2}))
    # Only the last file is missing: two threads on busy cores take long to train.
    (folder / "model.safetensors").unlink()
    assert torch.get_num_threads() == 1
    assert call("resume", folder).code == 0
    assert torch.get_num_threads() == 2


def test_resume_ends_with_the_weights_of_the_run_that_was_not_stopped(finished, unfinished):
    assert call("resume", unfinished).code == 0
    assert files_below(unfinished) == files_below(finished[0])
    for name in ("model.safetensors", "model-best.safetensors"):
        assert (unfinished / name).read_bytes() == (finished[0] / name).read_bytes()


class Interrupted(NamedTuple):
    """What became of a process that was stopped by Ctrl-C, and of others in its folder before."""

    folder: Path
    resumed_meanwhile: Result
    trained_meanwhile: Result
    code: int
    err: str


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "interrupted"
    words = ["train", "digits", *TINY, "--objective", "none", "--train-steps", "2000", "--log-every", "1"]
    words += ["--evaluate-every", "2000", "--out", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "auxrnn", *words], stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not (folder / "metrics.jsonl").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        meanwhile = call("resume", folder), call(*words)
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return Interrupted(folder, *meanwhile, process.returncode, err)


def test_control_c_stops_after_the_update_and_says_how_to_resume(interrupted):
    folder = interrupted.folder
    assert interrupted.code == 130
    assert "Traceback" not in interrupted.err
    last = interrupted.err.splitlines()[-1]
    assert last.startswith(f"stopped; `auxrnn resume {folder}` continues from this checkpoint")
    assert f"`auxrnn evaluate {folder} --checkpoint latest`" in last
    newest = max((folder / "checkpoints").glob("*.json"))
    assert json.loads(newest.read_text())["values"]["position"]["step"] == events(folder)[-1]["step"] > 0
    assert not (folder / "model.safetensors").exists()


def test_a_second_process_in_a_run_folder_is_refused(interrupted):
    folder = interrupted.folder
    sentence = f"auxrnn: another process is training in {folder}; wait for it or stop it first\n"
    assert interrupted.resumed_meanwhile == Result(1, "", sentence)
    assert interrupted.trained_meanwhile.code == 2
    assert "already holds a run" in interrupted.trained_meanwhile.err


def test_the_help_of_train_starts_with_what_most_people_need():
    panels = [panel.partition("╰")[0] for panel in call("train", "--help").out.split("╭─ ")[1:]]
    assert panels[0].startswith("Start here ")
    assert "DATA" in panels[0]
    for name in ("out", "minutes", "model", "objective", "hidden-size", "supervised-window", "test-data", "seed"):
        assert [f"--{name} " in panel for panel in panels] == [True, *[False] * (len(panels) - 1)], name
    assert "Start here" not in call("data", "check", "--help").out
    assert "│    --objective " not in call("train", "--help", "--model", "vdcnn").out


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_needs_the_code_or_the_paper(command):
    text = " ".join(call(command, "--help").out.replace("│", " ").split())
    for riddle in ("(section", "(sections", "the paper's", "ModelConfig", "the paper takes"):
        assert command in ("reproduce", "report", "demo") or riddle not in text


@pytest.fixture(scope="module")
def configured(tmp_path_factory):
    """Give a finished run of a GRU with settings of its own and files beside its data."""
    folder = tmp_path_factory.mktemp("configured")
    write_csv(folder / "own.csv")
    write_csv(folder / "test.csv", 20)
    words = ["--model", "gru", *TINY[:6], "--lr", "0.0123", "--test-data", folder / "test.csv", "--threads", "1"]
    assert call("train", folder / "own.csv", *words, "--train-steps", 2, "--out", folder / "run").code == 0
    return folder


@pytest.mark.parametrize("name", ["config.json", ""])
def test_the_config_of_a_run_trains_another_one_like_it(configured, tmp_path, name):
    assert call("train", "--config", configured / "run" / name, "--threads", 1, "--out", tmp_path / "again").code == 0
    again, first = (json.loads((run / "config.json").read_text()) for run in (tmp_path / "again", configured / "run"))
    assert again == first
    finals = [(run / "model.safetensors").read_bytes() for run in (tmp_path / "again", configured / "run")]
    assert finals[0] == finals[1]


def test_other_data_and_flags_take_the_place_of_those_of_a_run(configured):
    config = str(configured / "run" / "config.json")
    run = parse_train(["digits", "--config", config, "--hidden-size", "5"])["run"]
    assert (run.data.data, run.data.test_data, run.threads) == ("digits", None, None)
    assert (run.model.model, run.model.hidden_size, run.schedule.lr) == ("gru", 5, 0.0123)
    assert run.schedule.train_steps == 2
    planned = parse_train(["--config", config, "--minutes", "3"])
    assert (planned["minutes"], planned["run"].schedule.train_steps) == (3, None)
    assert "0.0123" in call("train", "--help", "--config", config).out


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "not a JSON file"), ("[]", "not the config.json of a run"), ('{"model": "lstm", "speed": 3}', "'speed'")],
)
def test_what_is_no_config_of_a_run_is_refused(tmp_path, content, said):
    (tmp_path / "config.json").write_text(content)
    result = call("train", "digits", "--config", tmp_path / "config.json")
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("window", "told"),
    [("5", "through the last 5 of up to 196 steps of"), ("196", "through all steps of"), ("300", "all")],
)
def test_the_announcement_says_how_far_the_labels_reach_in_this_data(tmp_path, window, told):
    words = ["--recipe", "paper", "--train-steps", "1", "--pretrain-steps", "1", "--segment-length", "5"]
    err = train(tmp_path / "run", *words, "--supervised-window", window).err
    assert told in err
    assert "updates: 1 without labels (pretraining) + 1 with labels and auxiliary loss; about " in err
