"""What README.md and the examples say works as written."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from auxrnn.cli import COMMANDS, parse_train
from auxrnn.cli.data import DATA_COMMANDS
from auxrnn.data.catalog import DATASETS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def commands():
    return [line.split("#")[0].split() for line in README.splitlines() if line.startswith("    auxrnn ")]


def test_every_command_in_the_readme_exists_and_its_training_settings_are_legal():
    assert {words[1] for words in commands()} == {
        "train",
        "resume",
        "evaluate",
        "predict",
        "models",
        "cost",
        "data",
        "reproduce",
        "report",
        "bench",
    }
    for words in commands():
        assert words[1] in COMMANDS
        if words[1] == "train":
            assert parse_train(words[2:]).run.data.data == words[2]
        if words[1] == "data":
            assert words[2] in DATA_COMMANDS


def test_the_readme_shows_a_line_for_each_dataset_and_each_form_of_own_data():
    trained = [words[2] for words in commands() if words[1] == "train"]
    assert set(DATASETS) <= set(trained)
    for ending in ("/", ".csv", ".jsonl", ".npz", ".ts"):
        assert any(name.endswith(ending) for name in trained), ending


def test_the_two_make_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^    make (\w+)", README, flags=re.MULTILINE)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_every_file_the_readme_points_at_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`(examples/[^`]+)`", README)
    assert len(links) >= 5
    for link in links:
        assert (ROOT / link).exists(), link


def test_the_python_of_the_readme_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    # The same lines with less training: what is shown must run, not be good.
    code = code.replace("AuxRNNClassifier(", "AuxRNNClassifier(pretrain_steps=2, train_steps=2, ")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_example_of_a_training_loop_learns(capsys):
    runpy.run_path(str(ROOT / "examples" / "own_training_loop.py"))["main"](100)
    losses = [float(text) for text in re.findall(r"class ([\d.]+)", capsys.readouterr().out)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.slow
def test_the_example_of_the_estimator_beats_chance_by_far():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "estimator.py"], capture_output=True, text=True, check=True
    )
    assert float(re.findall(r"accuracy ([\d.]+)", done.stdout)[0]) > 40
