"""A user's mistake, or a failure on the way, gives one sentence that helps and leaves nothing half-written."""

import contextlib
import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save

from auxrnn import runs
from auxrnn.config import unflatten
from auxrnn.environment import compare_environment
from auxrnn.files import digest, read_sums, write_sums
from command import TINY, TWO_AND_TWO, call, files_below, rewrite, train
from own_data import write_csv

DIGITS = ["train", "digits", *TINY, *TWO_AND_TWO]
BOX = set("│╭╮╰╯─|")
CLOSED_PORT = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "finished"
    train(folder, *TWO_AND_TWO)
    return folder


@pytest.fixture
def damaged(finished, tmp_path):
    """A copy of a finished run, to damage."""
    return shutil.copytree(finished, tmp_path / "damaged")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def assert_one_sentence(result, code, *parts):
    """The last line is the sentence; before it stands at most what `train` announces when all is well so far."""
    *before, sentence = result.err.splitlines()
    assert sentence.startswith("auxrnn: ")
    for part in parts:
        assert str(part) in sentence
    assert result.code == code
    assert result.out == ""
    assert not BOX & set(sentence)
    assert "Traceback" not in result.err
    assert "---" not in sentence
    return before


def assert_refused(words, code, *parts, folder):
    """The command says one sentence, nothing else, and changes nothing below a folder."""
    before = files_below(folder)
    assert assert_one_sentence(call(*words), code, *parts) == []
    assert files_below(folder) == before


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["digit"], ["'digit' is neither a dataset nor a path", "did you mean 'digits'?"]),
        (["imagenet-21k"], ["'imagenet-21k' is neither a dataset nor a path", "cifar10, dbpedia, digits"]),
        ([], ["DATA is missing", "digits or mnist"]),
        (["digits", "more"], ["unexpected word 'more'"]),
        (["digits", "--hiden-size", "4"], ["unknown option: --hiden-size", "Did you mean --hidden-size?"]),
        (["--hiden-size", "4", "digits"], ["unknown option: --hiden-size", "Did you mean --hidden-size?"]),
        (["digits", "--no-jiont"], ["unknown option: --no-jiont", "Did you mean --no-joint?"]),
        (["digits", "--frobnicate=3"], ["unknown option: --frobnicate", "auxrnn train --help"]),
        (["digits", "-q"], ["unknown option: -q"]),
        (["digits", "--objective", "rebuild"], ["--objective is 'rebuild'", "'none'", "'reconstruct'", "'predict'"]),
        (["digits", "--batch-size", "x"], ["--batch-size is 'x'", "a whole number or 'auto'"]),
        (["digits", "--validation-fraction", "x"], ["--validation-fraction is 'x'", "a number or 'auto'"]),
        (["digits", "--objective"], ["--objective needs a value"]),
        (["digits", "--hidden-size", "many"], ["--hidden-size is 'many'", "a whole number"]),
        (["digits", "--seed", "1.5"], ["--seed is '1.5'", "a whole number"]),
        (["digits", "--threads", "all"], ["--threads is 'all'", "a whole number"]),
        (["digits", "--lr", "fast"], ["--lr is 'fast'", "a number"]),
        (["digits", "--train-epochs", "some"], ["--train-epochs is 'some'", "a number"]),
        (["digits", "--supervised-window", "half"], ["--supervised-window is 'half'", "a whole number", "full"]),
        (["digits", "--supervised-window", "-1"], ["--supervised-window is -1", "must be 0, a number of steps"]),
        (["digits", "--auxiliary-window=-7"], ["--auxiliary-window is -7", "must be 0, a number of steps"]),
        (["digits", "--segment-length", "0"], ["--segment-length is 0", "at least 1"]),
        (["digits", "--steps-per-input", "0"], ["--steps-per-input is 0", "at least 1"]),
        (["digits", "--sample-rate", "8k"], ["--sample-rate is '8k'", "a whole number"]),
        (["digits", "--sample-rate", "8000"], ["--sample-rate has no effect on digits"]),
        (["digits", "--label-pattern", "*"], ["--label-pattern is '*'", "it must have {label} in it once"]),
        (["digits", "--missing", "drop"], ["--missing is 'drop'", "'mask' or 'refuse'"]),
        (["digits", "--class-weight", "equal"], ["--class-weight is 'equal'", "'none' or 'balanced'"]),
        (["digits", "--labels-per-class", "0"], ["--labels-per-class is 0", "at least 1"]),
        (
            ["digits", "--labels-per-class", "1", "--label-fraction", "0.5"],
            ["--label-fraction and --labels-per-class", "one of them"],
        ),
        (["digits", "--lr", "0"], ["--lr is 0.0", "above 0"]),
        (["digits", "--lr", "1e39"], ["--lr is 1e+39", "at most 1e+38"]),
        (["digits", "--lr", "nan"], ["--lr is nan", "above 0"]),
        (["digits", "--train-epochs", "inf"], ["--train-epochs is inf", "at most 1000000000"]),
        (["digits", "--train-examples", "99999"], ["--train-examples is 99999", "1437"]),
        (["digits", "--image-size", "15"], ["--image-size is 15", "from 1 to 14"]),
        (["digits", "--device", "abacus"], ["--device is 'abacus'", "cpu"]),
        (["digits", "--objective", "none", "--pretrain-steps", "2"], ["--objective is none", "reconstruct or predict"]),
        (["digits", "--pretrain-steps", "2", "--pretrain-epochs", "1"], ["--pretrain-steps and --pretrain-epochs"]),
        (["digits", "--train-steps", "2", "--train-epochs", "1"], ["--train-steps and --train-epochs", "one of them"]),
        (["digits", "--pretrain-steps", "0", "--train-steps", "0"], ["zero updates", "--train-steps"]),
        (["digits", "--objective", "none", "--train-epochs", "0"], ["zero updates", "--train-steps"]),
    ],
)
def test_a_wrong_word_after_train_is_named_with_what_is_allowed(words, parts, tmp_path):
    assert_refused(["train", *words, "--out", "run"], 2, *parts, folder=tmp_path)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["trian"], ['unknown command "trian"', 'Did you mean "train"?']),
        (["frobnicate"], ['unknown command "frobnicate"', "see auxrnn --help"]),
        (["evaluate"], ["RUN is missing", "auxrnn evaluate --help"]),
        (["resume", "run", "--jsno"], ["unknown option: --jsno", "Did you mean --json?"]),
        (["evaluate", "run", "--split", "all"], ["--split is 'all'", "'test', 'train' or 'validation'"]),
        (["predict", "run"], ["no files", "auxrnn predict RUN digit.png"]),
    ],
)
def test_a_wrong_word_elsewhere_is_named_with_what_is_allowed(words, parts, tmp_path):
    assert_refused(words, 2, *parts, folder=tmp_path)


def test_the_command_alone_shows_the_summary_and_counts_as_wrong_usage():
    result = call()
    assert result.code == 2
    assert "Train and use" in result.out


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"hiden-size = 4", ["unknown key 'hiden-size'", "did you mean 'hidden-size'?"]),
        (b"supervised window: 28", ["is not a TOML file", "line 1", "supervised-window = 28"]),
        (b"\xff\xfe\x00", ["is not a TOML file", "not text"]),
        (b"[model]\nhidden-size = 4", ["[model] is a table", "without tables"]),
        (b"hidden-size = '4'", ["'hidden-size' is '4'", "a whole number"]),
        (b"hidden-size = true", ["'hidden-size' is True", "a whole number"]),
        (b"joint = 1", ["'joint' is 1", "true or false"]),
        (b"objective = 'rebuild'", ["'objective' is 'rebuild'", "'reconstruct'"]),
        (b"lr = 0", ["'lr' is 0.0", "above 0"]),
        (b"pretrain_steps = 1\npretrain-epochs = 1", ["'pretrain-steps' and 'pretrain-epochs' are both given"]),
    ],
)
def test_a_mistake_in_a_config_file_is_named_with_the_file(content, parts, tmp_path):
    (tmp_path / "my.toml").write_bytes(content)
    assert_refused(["train", "digits", "--config", "my.toml"], 2, "my.toml", *parts, folder=tmp_path)


def test_a_dataset_named_neither_in_the_command_nor_in_the_config_file_is_missed(tmp_path):
    (tmp_path / "my.toml").write_text("hidden-size = 4")
    assert_refused(["train", "--config", "my.toml"], 2, "DATA is missing", "such as digits", folder=tmp_path)


@pytest.mark.parametrize(("path", "parts"), [("nope.toml", ["mnist14, paper"]), (".", ["Is a directory"])])
def test_a_config_file_that_is_not_there_is_named(path, parts, tmp_path):
    assert_refused(["train", "digits", "--config", path], 2, f" {path}", *parts, folder=tmp_path)


@pytest.mark.parametrize(
    "content",
    [gzip.compress(bytes(1000))[:-20], b"\0\0\10\3 and so on", gzip.compress(b"\0\0\10\1\0\0\0\2\0\1")],
    ids=["truncated", "corrupted", "another-version"],
)
def test_a_data_file_with_a_wrong_checksum_is_named(content, tmp_path):
    path = tmp_path / "data" / "mnist" / "train-images-idx3-ubyte.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    words = ["train", "mnist", *TINY, "--data-dir", "data", "--out", "run"]
    assert_refused(words, 1, "train-images-idx3-ubyte.gz is damaged", "md5", "move it away", folder=tmp_path)


def test_a_data_file_that_is_missing_and_cannot_be_downloaded_is_named(tmp_path, monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, CLOSED_PORT)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    result = call("train", "mnist", *TINY, "--data-dir", "data", "--out", "run")
    assert assert_one_sentence(result, 1, "train-images-idx3-ubyte.gz could not be downloaded", "--data-dir") == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not (tmp_path / "run").exists()


def test_a_segment_longer_than_the_data_is_clipped_and_said_so_in_one_line(tmp_path):
    result = train(tmp_path / "run", *TWO_AND_TWO, "--image-size", "4", "--segment-length", "600")
    (line,) = [line for line in result.err.splitlines() if "longer than the data" in line]
    assert line == "--segment-length is 600, longer than the data: 15 steps are taken"


def test_a_folder_that_holds_a_run_is_not_trained_into_again(finished):
    words = [*DIGITS, "--out", finished]
    assert_refused(words, 2, f"{finished} already holds a run", "auxrnn resume", "--out", folder=finished)


def test_what_a_process_left_that_was_killed_while_it_made_a_run_is_trained_into(finished, tmp_path):
    (tmp_path / "run").mkdir()
    for name in ("sums.json", "environment.json"):
        shutil.copy(finished / name, tmp_path / "run")
    (tmp_path / "run" / ".model.json.01234567.aside").touch()
    assert call(*DIGITS, "--out", "run").code == 0
    assert not list((tmp_path / "run").glob(".*"))


def test_a_run_that_lost_its_config_is_not_trained_into(damaged):
    (damaged / "config.json").unlink()
    (damaged / "model.safetensors").unlink()
    assert_refused([*DIGITS, "--out", damaged], 2, "not an empty folder", "--out", folder=damaged)


def test_a_column_may_be_called_auto(tmp_path):
    write_csv(tmp_path / "texts.csv")
    content = (tmp_path / "texts.csv").read_text()
    (tmp_path / "texts.csv").write_text(content.replace("text", "auto", 1))
    train(tmp_path / "run", *TWO_AND_TWO, "--text-column", "auto", data=tmp_path / "texts.csv")
    assert call("evaluate", tmp_path / "run").code == 0


def test_a_folder_that_holds_other_things_is_not_trained_into(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    assert_refused([*DIGITS, "--out", tmp_path], 2, "not an empty folder", "--out", folder=tmp_path)


@pytest.mark.parametrize("command", ["resume", "evaluate", "predict"])
def test_a_folder_that_is_not_a_run_is_named(command, tmp_path):
    words = [command, tmp_path, *(["digit.png"] if command == "predict" else [])]
    assert_refused(words, 2, f"{tmp_path} is not a run", "auxrnn train", folder=tmp_path)


@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_a_run_of_another_format_is_refused_with_both_versions(command, damaged):
    values = json.loads((damaged / "config.json").read_text())
    (damaged / "config.json").write_text(json.dumps(values | {"format": 99}))
    (damaged / "sums.json").unlink()
    assert_refused([command, damaged], 1, "another version", "run format 99, here 3", folder=damaged)


@pytest.mark.parametrize("command", ["resume", "evaluate"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"{}", b'{"format": 1}', b'{"format": 1, "data": 3}', b'{"format": 1, "dat": "x"}']
)
def test_a_damaged_config_of_a_run_is_named(command, content, damaged):
    (damaged / "config.json").write_bytes(content)
    assert_refused([command, damaged], 1, damaged / "config.json", "damaged", "train again", folder=damaged)


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b'{"class_names": ["0"], "image_format": {"side": 8}}'])
def test_a_damaged_model_card_is_named(content, damaged):
    (damaged / "model.json").write_bytes(content)
    assert_refused(["evaluate", damaged], 1, damaged / "model.json", "damaged", "train again", folder=damaged)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", {"threads": None}),
        ("config.json", {"supervised_window": "auto"}),
        ("config.json", {"lr": 10**400}),
        ("config.json", {"format": "new" * 1000}),
        ("model.json", {"constant_loss": 10**400}),
        ("model.json", {"num_steps": -1}),
        ("model.json", {"class_names": [["0"]]}),
        ("model.json", {"format": {"kind": "images", "height": 1, "width": True, "channels": 1}}),
        ("model.json", {"format": {"kind": "series", "num_channels": 1, "mean": ["0"], "deviation": [1]}}),
        ("model.json", {"format": {"kind": "texts", "alphabet": None}}),
        ("splits.json", {"train": [10**30]}),
        ("splits.json", {"train": [[0]], "test": "rows"}),
    ],
)
def test_files_whose_checksums_are_right_and_whose_values_are_not_are_named(name, change, damaged):
    values = json.loads((damaged / name).read_text())
    rewrite(damaged / name, json.dumps(values | change))
    assert_refused(["evaluate", damaged], 1, damaged / name, "damaged", folder=damaged)


@pytest.mark.parametrize("num_bytes", [0, 50, 2000])
def test_damaged_weights_are_named_and_resume_writes_them_again(num_bytes, damaged):
    path = damaged / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:num_bytes])
    assert_refused(["evaluate", damaged], 1, path, "damaged", f"delete {path}", "auxrnn resume", folder=damaged)
    path.unlink()
    assert call("resume", damaged).code == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize("change", [{"seed": 5}, {"optimizer": "adam"}, {"train_steps": 3}, {"hidden_size": 9}])
@pytest.mark.parametrize("command", ["resume", "evaluate"])
def test_a_config_that_was_edited_is_refused(command, change, damaged):
    values = json.loads((damaged / "config.json").read_text())
    (damaged / "config.json").write_text(json.dumps(values | change, indent=2) + "\n")
    if command == "resume":
        (damaged / "model.safetensors").unlink()
    assert_refused([command, damaged], 1, damaged / "config.json", "edited", "put it back", folder=damaged)


FILES = [
    "config.json",
    "model.json",
    "splits.json",
    "sums.json",
    "metrics.jsonl",
    "model.safetensors",
    "environment.json",
]


@pytest.mark.parametrize("name", FILES)
def test_one_flipped_bit_in_a_finished_run_is_noticed_and_named(name, damaged):
    flip_a_bit(damaged / name)
    assert_refused(["resume", damaged], 1, damaged / name, "damaged", folder=damaged)
    if name not in ("metrics.jsonl", "environment.json"):
        assert_refused(["evaluate", damaged], 1, damaged / name, "damaged", folder=damaged)


@pytest.mark.parametrize("name", ["config.json", "model.json", "splits.json", "sums.json", "environment.json"])
def test_one_flipped_bit_in_an_unfinished_run_is_noticed_and_named(name, damaged):
    (damaged / "model.safetensors").unlink()
    flip_a_bit(damaged / name)
    assert_refused(["resume", damaged], 1, damaged / name, "damaged", folder=damaged)


def test_one_flipped_bit_in_the_record_of_an_unfinished_run_is_said_and_changes_no_weight(damaged, caplog):
    weights = (damaged / "model.safetensors").read_bytes()
    (damaged / "model.safetensors").unlink()
    flip_a_bit(damaged / "metrics.jsonl")
    assert call("resume", damaged).code == 0
    assert f"{damaged}/metrics.jsonl is damaged or edited" in caplog.text
    assert (damaged / "model.safetensors").read_bytes() == weights


def flip_a_bit(path):
    """Flip the lowest bit of the last digit: what changes is still a number, where it is one."""
    content = bytearray(path.read_bytes())
    place = max(place for place, byte in enumerate(content) if 48 <= byte < 58)
    content[place] ^= 1
    path.write_bytes(content)


def test_without_its_checksums_a_run_is_not_trusted(damaged):
    (damaged / "sums.json").unlink()
    assert_refused(["evaluate", damaged], 1, damaged / "sums.json", "missing", folder=damaged)


def test_weights_that_are_not_finite_are_refused(damaged):
    path = damaged / "model.safetensors"
    weights = load_file(path)
    next(iter(weights.values())).view(-1)[0] = float("nan")
    path.write_bytes(save(weights))
    write_sums(damaged, read_sums(damaged) | {path.name: digest(path.read_bytes())})
    assert_refused(["evaluate", damaged], 1, path, "not finite", folder=damaged)


@pytest.mark.parametrize("content", ["", "{}\n{}\n", '{"event": "train"}\n', "[" * 100_000])
def test_a_record_without_a_result_is_named(content, damaged):
    rewrite(damaged / "metrics.jsonl", content)
    assert_one_sentence(call("resume", damaged), 1, damaged / "metrics.jsonl", "damaged")


def test_going_on_with_another_build_or_another_torch_is_said(damaged):
    (damaged / "model.safetensors").unlink()
    values = json.loads((damaged / "environment.json").read_text())
    assert "byte for byte" not in call("resume", damaged).err
    (damaged / "model.safetensors").unlink()
    values |= {"lstm": "fused kernel (other)", "versions": values["versions"] | {"torch": "2.0.0"}}
    rewrite(damaged / "environment.json", json.dumps(values))
    said = call("resume", damaged).err
    assert "torch was 2.0.0 and is" in said
    assert "the LSTM was fused kernel (other) and is" in said
    gru, irnn = (compare_environment(unflatten({"data": "", "model": model}), damaged) for model in ("gru", "irnn"))
    assert ("the GRU was fused kernel (other) and is" in gru, "kernel" in irnn) == (True, False)
    assert "will not be, byte for byte" in said


def test_an_unfinished_run_is_not_evaluated(damaged):
    (damaged / "model.safetensors").unlink()
    assert_refused(["evaluate", damaged], 1, "has not finished", f"auxrnn resume {damaged}", folder=damaged)


@pytest.mark.parametrize(
    ("words", "part"), [(["--weights", "best"], "no best weights"), (["--split", "validation"], "no validation split")]
)
def test_what_needs_a_validation_split_is_refused_without_one(words, part, finished):
    assert_refused(["evaluate", finished, *words], 2, part, folder=finished)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("large.png", ["pixels of shape [20, 30, 1]", "images of 8x8 or 14x14"]),
        ("large.npy", ["shape [3, 5]", "images of 8x8 or 14x14 or sequences of 196 steps"]),
        ("notes.txt", ["cannot be read as an image", "PNG"]),
        ("notes.npy", ["cannot be read", "numpy"]),
        ("nope.png", ["cannot be read as an image", "No such file"]),
        ("nope.npy", ["cannot be read", "No such file"]),
    ],
)
def test_a_file_that_cannot_be_predicted_is_named(name, parts, finished, tmp_path):
    Image.new("L", (30, 20)).save(tmp_path / "large.png")
    np.save(tmp_path / "large.npy", np.zeros((3, 5), np.uint8))
    for notes in ("notes.txt", "notes.npy"):
        (tmp_path / notes).write_text("buy milk")
    assert_refused(["predict", finished, name], 1, name, *parts, folder=tmp_path)


@pytest.mark.parametrize("out", ["file/run", "file/deep/run", "/proc/run"])
def test_a_folder_that_cannot_be_written_is_named(out, tmp_path):
    (tmp_path / "file").write_text("")
    assert_refused([*DIGITS, "--out", out], 1, f"cannot write {out}", "another folder", folder=tmp_path)


@contextlib.contextmanager
def full_after(num_bytes):
    """Let no file grow beyond so many bytes; Python ignores the signal, so that the write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["sums.json", "splits.json"])
def test_a_disk_full_at_the_start_leaves_no_run_folder(name, finished, tmp_path):
    with full_after(400 if name == "sums.json" else (finished / name).stat().st_size - 10):
        assert_refused([*DIGITS, "--out", "run"], 1, "cannot write", name, "free some space", folder=tmp_path)


def test_a_disk_full_at_a_checkpoint_leaves_no_half_of_it_and_the_run_resumes(finished, tmp_path):
    run, checkpoint = tmp_path / "run", next((finished / "checkpoints").glob("*.safetensors"))
    with full_after(checkpoint.stat().st_size - 10):
        assert_one_sentence(call(*DIGITS, "--out", run), 1, "cannot write", checkpoint.parent.name, "free some space")
    assert files_below(run / "checkpoints") == []
    assert call("resume", run).code == 0
    assert (run / "model.safetensors").read_bytes() == (finished / "model.safetensors").read_bytes()


def test_a_disk_full_in_the_records_leaves_whole_lines_and_the_run_resumes(finished, tmp_path):
    words = ["--objective", "none", "--train-steps", "60", "--log-every", "1", "--evaluate-every", "60"]
    with full_after(9000):
        result = call("train", "digits", *TINY, *words, "--out", "run")
    assert_one_sentence(result, 1, "cannot write run/metrics.jsonl", "free some space")
    content = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert content.endswith("\n")
    steps = [json.loads(line)["step"] for line in content.splitlines()]
    assert steps == list(range(len(steps)))
    assert len(steps) > 20
    assert call("resume", "run").code == 0


BEYOND_REASON = {
    "--hidden-size": 100_000, "--embedding-size": 10**11, "--head-size": 10**6, "--num-layers": 10**4,
    "--decoder-layers": 10**9, "--num-segments": 10**8, "--segment-length": 2**63, "--threads": 5 * 10**9,
    "--train-steps": 10**18, "--train-epochs": "1e308", "--pretrain-epochs": "inf", "--max-length": 2**63,
    "--image-size": 10**9, "--batch-size": 10**12, "--supervised-window": 2**70, "--patience": 10**20,
    "--sampling-steps": 10**30, "--length": 2**63, "--alphabet-size": 10**6, "--warmup-steps": 10**25,
}  # fmt: skip


@pytest.mark.parametrize("flag", BEYOND_REASON)
def test_a_number_beyond_reason_is_refused_by_the_name_of_its_flag(flag, tmp_path):
    words = [flag, BEYOND_REASON[flag], "--out", "run"]
    assert_refused(["train", "digits", *words], 2, f"{flag} is", "it must be", folder=tmp_path)


@pytest.mark.parametrize("sizes", [["--hidden-size", "60000"], ["--num-layers", "100", "--hidden-size", "9000"]])
def test_weights_that_no_memory_holds_are_refused_before_they_are_made(sizes, tmp_path):
    words = ["train", "digits", *sizes, "--out", "run", "--train-steps", "1"]
    assert_refused(words, 1, "the weights of this network need", "GB", "--hidden-size", folder=tmp_path)


@pytest.mark.parametrize(
    ("flag", "number"), [("--train-steps", "1_000"), ("--seed", "\uff11\uff10"), ("--lr", "1_0e-3")]
)
def test_numbers_that_only_python_reads_are_refused(flag, number, tmp_path):
    assert_refused([*DIGITS, flag, number, "--out", "run"], 2, f"{flag} is {number!r}", "a", folder=tmp_path)


def test_a_training_of_more_than_a_year_needs_to_be_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.training.cost.estimate_time", lambda _session: SimpleNamespace(seconds=4e7))
    assert_refused([*DIGITS, "--out", "run"], 2, "463 days", "--endless", folder=tmp_path)
    assert call(*DIGITS, "--endless", "--out", "run").code == 0


@pytest.mark.parametrize("name", ["--out", "--data-dir", "--pretrained"])
def test_a_name_with_a_nul_character_is_refused(name, tmp_path):
    assert_refused([*DIGITS, name, "a\0b"], 2, "NUL", folder=tmp_path)


def test_a_home_folder_that_is_not_known_is_refused(tmp_path):
    assert_refused([*DIGITS, "--out", "~nobodyknows/run"], 2, "~nobodyknows/run", "whole path", folder=tmp_path)


@pytest.mark.parametrize("name", ["data.csv", "data.npz", "data.zip", "data.ts"])
def test_a_pipe_is_not_waited_for(name, tmp_path):
    os.mkfifo(name)
    assert_refused(["train", name, "--out", "run"], 2, name, "neither a file nor a folder", folder=tmp_path)


def test_device_meta_is_refused(tmp_path):
    assert_refused([*DIGITS, "--device", "meta", "--out", "run"], 2, "'meta', which is not available", folder=tmp_path)


def test_an_array_of_images_that_fills_the_memory_is_refused(finished, tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.data.readers.pictures.LARGEST_BLOCK", 1000)
    np.savez_compressed("many.npz", x=np.zeros((10, 8, 8), np.float32))
    assert_refused(["predict", finished, "many.npz"], 1, "many.npz unpacks to 2,560 bytes", ".npy", folder=tmp_path)


def test_standard_input_is_called_so(finished, tmp_path, monkeypatch):
    np.save("large.npy", np.zeros((3, 5), np.uint8))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "large.npy").read_bytes())))
    assert_refused(["predict", finished, "-"], 1, "standard input has pixels of shape [3, 5]", folder=tmp_path)


def call_shell(line):
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


def test_processes_without_standard_streams_do_their_work(finished, tmp_path):
    command = f"{sys.executable} -m auxrnn"
    results = {
        "no stdin": f"{command} predict {finished} - <&-",
        "no stderr": f"{command} evaluate {finished} --json 2>&-",
        "no stdout": f"{command} evaluate {finished} --json >&-",
    }
    done = {name: call_shell(one) for name, one in results.items()}
    assert done["no stdin"].stderr.startswith("auxrnn: standard input is no image or array")
    assert "accuracy" in json.loads(done["no stderr"].stdout)
    assert (done["no stdout"].returncode, done["no stdout"].stderr) == (0, "")


def test_names_and_locales_that_are_not_utf_8_do_no_harm(tmp_path):
    folder = os.fsdecode(b"caf\xe9")
    (tmp_path / folder).mkdir()
    write_csv(tmp_path / folder / "texts.csv")
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    training = ["train", f"{folder}/texts.csv", *TINY, *TWO_AND_TWO, "--out", f"{folder}/run"]
    for one in (training, ["evaluate", f"{folder}/run"]):
        command = [sys.executable, "-m", "auxrnn", *one]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_a_run_that_is_no_run_to_start_from_is_named(tmp_path):
    assert_refused([*DIGITS, "--out", "run", "--init-from", "nope"], 2, "nope is not a run", folder=tmp_path)


def test_a_run_of_other_sizes_to_start_from_is_named(finished, tmp_path):
    words = [*DIGITS, "--out", "run", "--init-from", finished, "--hidden-size", "5"]
    assert_refused(
        words, 2, f"networks of {finished} are of another kind, or of other sizes", "--hidden-size", folder=tmp_path
    )


def test_an_evaluation_that_is_not_finite_stops_the_run_and_is_not_recorded(tmp_path):
    result = call(*DIGITS, "--lr", "1e30", "--clip-norm", "0", "--evaluate-every", 1, "--out", tmp_path / "run")
    assert_one_sentence(result, 1, "the loss of an evaluation is not a finite number at update 1 of phase pretrain")
    assert "NaN" not in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_a_loss_that_is_not_finite_stops_the_run_and_names_a_checkpoint_that_is(tmp_path):
    result = call(*DIGITS, "--lr", "1e30", "--clip-norm", "0", "--evaluate-every", 2, "--out", tmp_path / "run")
    (path,) = (tmp_path / "run" / "checkpoints").glob("*.safetensors")
    assert_one_sentence(result, 1, "not a finite number at update 2 of phase pretrain", path, "smaller --lr")
    assert all(tensor.isfinite().all() for tensor in load_file(path).values())
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_splits_that_were_drawn_and_are_gone_are_missed_rather_than_drawn_again(tmp_path):
    label_N = np.arange(80) % 2
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).random((80, 20)), y=label_N)
    result = call("train", tmp_path / "data.npz", *TINY, *TWO_AND_TWO, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    (tmp_path / "run" / "splits.json").unlink()
    result = call("evaluate", tmp_path / "run")
    assert result.code == 1
    assert "splits.json is missing, damaged or edited" in result.err


@pytest.mark.parametrize("error", [RuntimeError("[enforce fail] can't allocate memory: you tried"), MemoryError()])
def test_memory_that_is_used_up_is_said_in_one_sentence(error, monkeypatch, tmp_path):
    def fail(*_args):
        raise error

    monkeypatch.setattr(runs, "train_or_resume", fail)
    result = call("train", "digits", *TINY, *TWO_AND_TWO, "--out", tmp_path / "run")
    assert result.code == 1
    assert (
        result.err.splitlines()[-1]
        == "auxrnn: out of memory; use a smaller batch, shorter windows and segments, or a smaller network"
    )


def test_help_of_a_command_can_be_asked_for_by_its_name():
    assert call("help", "evaluate").out == call("evaluate", "--help").out
