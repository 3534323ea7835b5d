"""`auxrnn data check` says what training would take, and only where training would start."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from auxrnn import cli, planning
from auxrnn.planning import Outlook, foresee
from command import call
from own_data import write_arrays, write_csv


@pytest.mark.parametrize("write", [write_csv, write_arrays])
def test_a_check_tells_passes_and_minutes(tmp_path, write):
    path = write(tmp_path / ("own.csv" if write is write_csv else "own.npz"))
    checked = call("data", "check", path)
    assert checked.code == 0
    assert "training would start\n`auxrnn train` takes up to 10 minutes by default" in checked.out
    found = json.loads(call("data", "check", path, "--json").out)
    assert found["training"]["passes"] > 1
    assert 0 < found["training"]["seconds_per_pass"] < 60


def test_data_that_would_not_train_is_not_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "foresee", lambda *_: pytest.fail("timed"))
    np.savez(tmp_path / "own.npz", x=np.full((4, 5, 1), np.inf), y=np.arange(4))
    found = json.loads(call("data", "check", tmp_path / "own.npz", "--json").out)
    assert (found["would_train"], found["training"]) == (False, None)


def test_what_is_too_long_for_the_default_is_said(capsys):
    cli.data._print_outlook(Outlook(sequences=5000, seconds_per_pass=7200.0, passes=0.05))
    told = capsys.readouterr().out
    assert "takes about 2.0 hours here, more than the 10 minutes" in told
    assert "--minutes" in told


def test_a_budget_of_twice_the_minutes_is_twice_the_passes(monkeypatch):
    batches = SimpleNamespace(steps_per_epoch=10, split=SimpleNamespace(num_examples=160))
    session = SimpleNamespace(phases=(None,), batches=batches)
    monkeypatch.setattr(planning, "time_step", lambda *_args, **_words: 1.0)
    short, long = (foresee(session, minutes) for minutes in (5.0, 10.0))
    assert long.passes == 2 * short.passes == pytest.approx(0.7 * 600 / 11.5)
    assert foresee(session, 1e6).passes == 300
