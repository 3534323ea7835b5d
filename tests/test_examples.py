"""The examples run and print what they promise; those for other frameworks only where these are installed."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def load(name):
    return runpy.run_path(str(EXAMPLES / name))["main"]


def test_the_plain_loop_trains_and_classifies(capsys):
    load("own_training_loop.py")(num_updates=50)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["update", "accuracy"]


@pytest.mark.filterwarnings("ignore")  # of the framework, about data loaders and its own imports
def test_lightning_trains_a_model(capsys):
    pytest.importorskip("lightning")
    load("with_lightning.py")(num_updates=4)
    assert capsys.readouterr().out.startswith("accuracy ")


@pytest.mark.filterwarnings("ignore")  # of the framework, about its own imports
def test_accelerate_trains_a_model(capsys):
    pytest.importorskip("accelerate")
    load("with_accelerate.py")(num_epochs=2)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["epoch", "epoch", "accuracy"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "package"),
    [("own_training_loop.py", "torch"), ("with_lightning.py", "lightning"), ("with_accelerate.py", "accelerate")],
)
def test_an_example_learns_its_task(name, package, capsys):
    pytest.importorskip(package)
    load(name)()
    assert float(capsys.readouterr().out.split()[-2]) > 80


@pytest.mark.slow
def test_the_estimator_beats_chance_by_far(capsys):
    runpy.run_path(str(EXAMPLES / "estimator.py"))
    assert float(capsys.readouterr().out.split()[1]) > 40
