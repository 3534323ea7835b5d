"""What README.md, and the documentation site say works as written."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from auxrnn.build import CELLS
from auxrnn.cli import app
from auxrnn.data.catalog import DATASETS
from auxrnn.experiments.catalog import EXPERIMENTS
from command import call, parse_train
from models import test_cells

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "notebook.md"}
SMALLER = ["--train-steps", "2", "--pretrain-steps", "0", "--hidden-size", "4", "--threads", "1"]
"""What makes a training take seconds: what the documents show must run, not be good."""


def shown(text):
    """Return the commands that stand in blocks of their own, as words."""
    return [line.split("#")[0].split() for line in text.splitlines() if line.startswith("    auxrnn ")]


def mentioned(text):
    """Return the commands that stand inside sentences, as words."""
    return [command.split() for command in re.findall(r"`(auxrnn [a-z][^`]*)`", text)]


def python_blocks(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def slugs(text):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give a folder to work in that holds the files which the README names."""
    Image.new("L", (14, 14)).save(tmp_path / "digit.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_readme_run_in_their_order(folder):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    *commands, experiment = shown(README)
    assert [words[1] for words in commands] == ["train", "resume", "evaluate", "predict", "show", "export"]
    for _auxrnn, name, *words in commands:
        result = call(name, *words, *(SMALLER if name == "train" else []))
        assert result.code == 0, result.err
    # tests/experiments/test_reproduce.py runs every experiment at the smoke scale.
    assert (experiment[1], experiment[2] in EXPERIMENTS) == ("reproduce", True)


def test_the_commands_of_the_page_on_looking_run_in_their_order(folder, monkeypatch):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    for run in ("runs/first", "runs/second"):
        call("train", "digits", "--out", run, *SMALLER)
    for _auxrnn, name, *words in shown(PAGES["looking.md"]):
        # Without --once it would serve until it is stopped.
        more = {"train": SMALLER, "board": ["--once"]}.get(name, [])
        result = call(name, *words, *(word for word in more if word not in words))
        assert result.code == 0, result.err


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_site_exists_and_its_training_settings_are_legal(page, tmp_path, monkeypatch):
    # One of them names the config of a run, one the settings that a study found.
    shutil.copytree(ROOT / "tests" / "fixtures" / "old_runs" / "digits_run", tmp_path / "runs" / "digits")
    (tmp_path / "runs" / "tune-digits").mkdir()
    (tmp_path / "runs" / "tune-digits" / "best.toml").write_text("lr = 2e-3\n")
    monkeypatch.chdir(tmp_path)
    for words in shown(PAGES[page]) + mentioned(PAGES[page]):
        assert words[1] in app, words
        if words[1] == "data":
            assert words[2] in app["data"], words
    for words in shown(PAGES[page]):
        if words[1] == "train":
            assert parse_train(words[2:])["run"].data.data == words[2]


def test_every_command_is_shown_somewhere():
    everywhere = [words for text in (README, *PAGES.values()) for words in shown(text) + mentioned(text)]
    assert {words[1] for words in everywhere} == {name for name in app if not name.startswith("-")}


def test_the_page_of_data_has_a_line_for_each_dataset_and_each_kind_of_file():
    trained = [words[2] for words in shown(PAGES["own-data.md"]) if words[1] == "train"]
    assert set(DATASETS) <= set(trained)
    for ending in ("/", ".csv", ".jsonl", ".npz", ".ts"):
        assert any(name.endswith(ending) for name in trained), ending


def test_the_tables_of_the_page_of_data_can_be_read(tmp_path):
    wide, long = re.findall(r"```csv\n(.*?)```", PAGES["own-data.md"], flags=re.DOTALL)
    (tmp_path / "wide.csv").write_text(wide)
    (tmp_path / "long.csv").write_text(long)
    checked = [call("data", "check", tmp_path / f"{name}.csv", "--test-fraction", "0") for name in ("wide", "long")]
    assert all(result.code == 0 for result in checked), [result.out for result in checked]
    assert "2 sequences, 2 classes, 3 to 4 steps" in checked[0].out
    assert "2 channels ('x', 'y'), a step in each row by column time" in checked[1].out


def test_the_folder_of_files_of_the_page_of_data_can_be_read_and_predicted(folder):
    (listed,) = re.findall(r"```\n(recordings/.*?)```", PAGES["own-data.md"], flags=re.DOTALL)
    for name in listed.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x,y\n1,2\n3,4\n")
    words = ["--out", "runs/recordings", "--test-fraction", "0", *SMALLER]
    assert call("train", "recordings", *words).code == 0
    (predict,) = [words for words in shown(PAGES["own-data.md"]) if words[2:3] == ["runs/recordings"]]
    result = call(*predict[1:])
    assert result.code == 0, result.err
    assert result.out.startswith("recordings/walk/1.csv\t")


def test_the_two_make_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"^    make (\w+)", README, flags=re.MULTILINE) == ["demo", "test"]
    for text in (README, *PAGES.values()):
        for target in re.findall(r"(?:^    |`)make (\w+)", text, flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_file_and_heading_the_readme_points_at_exists():
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", README)
    assert len(links) >= 10
    for name, heading in links:
        assert (ROOT / name).exists(), name
        assert not heading or heading in slugs((ROOT / name).read_text()), heading


@pytest.mark.parametrize("page", ["README.md", "quickstart.md"])
def test_the_python_of_the_documents_runs(page, folder):
    blocks = python_blocks(README if page == "README.md" else PAGES[page])
    assert blocks
    for code in blocks:
        if "load_run(" in code:
            call("train", "digits", "--out", "runs/digits", *SMALLER)
        shorter = code.replace("AuxRNNClassifier(", "AuxRNNClassifier(pretrain_steps=2, train_steps=2, ")
        done = subprocess.run([sys.executable, "-c", shorter], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Put the cell that the documents show in the place of the iRNN, which has no cells either."""
    cell, _ = python_blocks(PAGES["adding-a-cell.md"])
    assert len(cell.splitlines()) < 35
    (tmp_path / "minimal.py").write_text(cell)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(CELLS, "irnn", importlib.import_module("minimal").MinimalGated)
    yield "irnn"
    del sys.modules["minimal"]


def test_the_cell_of_the_documents_keeps_the_laws_of_every_recurrence(toy):
    torch.manual_seed(0)
    test_cells.test_reading_in_chunks_equals_reading_at_once(toy, 2)
    test_cells.test_a_visit_equals_running_each_row_alone_to_its_place(toy, is_late=True)
    test_cells.test_late_and_early_rows_equal_runs_of_their_own_steps(toy, 2, "early", torch.float64)
    test_cells.test_any_window_gives_the_values_of_a_plain_run_and_reaches_exactly_the_last_inputs(toy, 4)
    test_cells.test_gradients_are_those_of_finite_differences(toy, 2)
    done = subprocess.run([sys.executable, "-c", "\n".join(python_blocks(PAGES["adding-a-cell.md"]))], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_the_cell_of_the_documents_trains_resumes_and_predicts_and_its_export_is_refused(toy, folder, objective):
    words = ["--model", toy, "--objective", objective, *SMALLER[:2], "--pretrain-steps", "1", *SMALLER[4:]]
    for command in (["train", "digits", *words, "--out", "run"], ["evaluate", "run"], ["predict", "run", "digit.png"]):
        result = call(*command)
        assert result.code == 0, result.err
    Path("run/model.safetensors").unlink()
    assert call("resume", "run").code == 0
    result = call("export", "run", "toy.onnx")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "MinimalGated has no ONNX form yet" in result.err


def test_the_version_has_its_place_in_the_changelog():
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)[1]
    released = re.findall(r"^## (\d\S*) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert released[0] == version


def test_what_the_page_on_processes_gives_to_torchrun_is_legal(tmp_path, monkeypatch):
    from torch.distributed.run import get_args_parser

    monkeypatch.chdir(tmp_path)
    Path("recordings").mkdir()
    lines = re.findall(r"^    .*?(torchrun .*)", PAGES["many-processes.md"], flags=re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        flags = get_args_parser().parse_args(line.replace("$(hostname)", "node1").split()[1:])
        assert (flags.module, flags.training_script) == (True, "auxrnn")
        name, *words = flags.training_script_args
        assert parse_train(words) if name == "train" else words == ["runs/mnist"]
