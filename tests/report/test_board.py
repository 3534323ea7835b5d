import json
import os

import pytest

from auxrnn.errors import RunError, UsageError

board = pytest.importorskip("auxrnn.report.board", reason="TensorBoard is not installed")


def line(step, value, *, event="evaluation", name="test_accuracy"):
    values = {"event": event, "phase": "joint", "step": step, "total_step": step, name: value, "seconds": float(step)}
    return json.dumps(values) + "\n"


def read_back(logdir):
    """What TensorBoard itself finds: of each tag its steps and values."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(logdir))
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "metrics.jsonl").write_text("".join(line(step, 10.0 * step) for step in range(4)))
    return folder


TAG = "evaluation/test_accuracy"


def test_tensorboard_reads_what_was_logged(run, tmp_path):
    with (run / "metrics.jsonl").open("a") as file:
        file.write(line(3, 0.5, event="train", name="lr") + line(3, 35.0, event="result"))
    assert board.log_run(run, tmp_path / "log") == 6
    points = [(step, 10.0 * step) for step in range(4)]
    assert read_back(tmp_path / "log") == {TAG: points, "train/lr": [(3, 0.5)], "result/test_accuracy": [(3, 35.0)]}


def test_only_new_lines_are_logged_and_half_a_line_waits(run, tmp_path):
    log, path = tmp_path / "log", run / "metrics.jsonl"
    assert [board.log_run(run, log), board.log_run(run, log)] == [4, 0]
    begun = line(4, 40.0)
    with path.open("a") as file:
        file.write(begun[:20])
    assert board.log_run(run, log) == 0
    with path.open("a") as file:
        file.write(begun[20:])
    assert board.log_run(run, log) == 1
    assert read_back(log) == {TAG: [(step, 10.0 * step) for step in range(5)]}


def test_lines_that_a_resumed_training_took_back_are_forgotten(run, tmp_path):
    log, path = tmp_path / "log", run / "metrics.jsonl"
    # An event at the step of the first that goes stays, and must not be lost with it.
    path.write_text(path.read_text() + line(4, 1.5, event="train", name="lr") + line(4, 40.0) + line(5, 50.0))
    board.log_run(run, log)
    kept = "".join(path.read_text().splitlines(keepends=True)[:5])
    path.write_text(kept)
    board.log_run(run, log)
    assert read_back(log) == {TAG: [(step, 10.0 * step) for step in range(4)], "train/lr": [(4, 1.5)]}
    path.write_text(kept + line(4, 41.0) + line(5, 51.0) + line(6, 61.0))
    board.log_run(run, log)
    points = [(0, 0.0), (1, 10.0), (2, 20.0), (3, 30.0), (4, 41.0), (5, 51.0), (6, 61.0)]
    assert read_back(log) == {TAG: points, "train/lr": [(4, 1.5)]}


@pytest.mark.parametrize("part", [0.02, 0.5, 0.99])
@pytest.mark.parametrize("is_taken_back", [False, True])
def test_what_a_killed_process_wrote_in_part_is_neither_lost_nor_there_twice(run, tmp_path, part, is_taken_back):
    log = tmp_path / "log"
    board.log_run(run, log)
    (file,) = log.iterdir()
    os.truncate(file, int(part * file.stat().st_size))
    if is_taken_back:
        (run / "metrics.jsonl").write_text(line(0, 9.0))
    assert board.log_run(run, log) > 0
    assert read_back(log) == {TAG: [(0, 9.0)] if is_taken_back else [(step, 10.0 * step) for step in range(4)]}


def test_an_event_file_that_is_damaged_is_replaced(run, tmp_path):
    log = tmp_path / "log"
    board.log_run(run, log)
    (file,) = log.iterdir()
    file.write_bytes(b"x" + file.read_bytes()[1:])
    assert [board.log_run(run, log), board.log_run(run, log)] == [4, 0]
    assert read_back(log) == {TAG: [(step, 10.0 * step) for step in range(4)]}


@pytest.mark.parametrize("damage", ["{", "[1]", '{"event": "train"}', '{"event": 1, "total_step": "x", "seconds": 1}'])
def test_a_damaged_line_is_named(run, tmp_path, damage):
    (run / "metrics.jsonl").write_text(line(1, 1.0) + damage + "\n" + line(2, 2.0))
    with pytest.raises(RunError, match="line 2 is damaged"):
        board.log_run(run, tmp_path / "log")


def test_runs_keep_their_names_when_others_come(run, tmp_path):
    runs = run.parent
    (runs / "more" / "second").mkdir(parents=True)
    for name in ("config.json", "metrics.jsonl"):
        (runs / "more" / "second" / name).write_text("")
    assert set(board.name_runs([runs])) == {"first", "more/second"}
    assert set(board.name_runs([run])) == {"first"}
    assert set(board.name_runs([run, runs / "more" / "second"])) == {"first", "more/second"}
    assert board.name_runs([tmp_path / "runs" / "more"]) == {"second": runs / "more" / "second"}
    with pytest.raises(UsageError, match="not a folder"):
        board.name_runs([tmp_path / "nowhere"])
