"""Records: one line of JSON per event, cut back to a mark, and never half a line."""

import json
import re
import subprocess
import sys

import pytest

from auxrnn.errors import RunError
from auxrnn.training.record import FileRecorder, ListRecorder, Recorder

EVENTS = [{"event": "train", "step": step, "loss": 0.1 * step} for step in range(5)]

FILL_DISK = """
# Lets no file grow beyond 100 bytes, as a full disk would, and writes a longer line.
import pathlib, resource, sys
from auxrnn.errors import RunError
from auxrnn.training.record import FileRecorder
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    FileRecorder(pathlib.Path(sys.argv[1])).write({"event": "x" * 200})
except RunError as error:
    print(error)
"""


@pytest.fixture
def recorder(tmp_path):
    return FileRecorder(tmp_path / "metrics.jsonl")


def lines_of(recorder):
    return [json.loads(line) for line in recorder.path.read_text().splitlines()]


def test_each_event_is_one_line_of_json(recorder):
    for event in EVENTS:
        recorder.write(event)
    assert lines_of(recorder) == EVENTS
    assert recorder.path.read_bytes().endswith(b"\n")


def test_rewinding_forgets_exactly_the_events_after_the_mark(recorder):
    recorder.write(EVENTS[0])
    mark = recorder.flush()
    for event in EVENTS[1:]:
        recorder.write(event)
    FileRecorder(recorder.path).rewind(mark)
    assert lines_of(recorder) == EVENTS[:1]
    recorder.write(EVENTS[2])
    assert lines_of(recorder) == [EVENTS[0], EVENTS[2]]


def test_half_a_line_left_by_a_crash_is_cut_away(recorder):
    recorder.write(EVENTS[0])
    mark = recorder.flush()
    with recorder.path.open("a") as file:
        file.write('{"event": "tr')
    recorder.rewind(mark)
    assert lines_of(recorder) == EVENTS[:1]


def test_a_file_that_lost_lines_cannot_be_rewound(recorder):
    recorder.write(EVENTS[0])
    mark = recorder.flush()
    recorder.path.write_text("")
    with pytest.raises(RunError, match=r"metrics\.jsonl is shorter than its checkpoint"):
        recorder.rewind(mark)


def test_rewinding_to_the_start_makes_an_empty_file(recorder):
    recorder.rewind(0)
    assert recorder.path.read_bytes() == b""


def test_a_line_that_does_not_fit_the_disk_is_named_and_leaves_no_half(recorder):
    recorder.write(EVENTS[0])
    # In a process of its own, since the limit holds for all files of a process, pytest's output among them.
    done = subprocess.run([sys.executable, "-c", FILL_DISK, recorder.path], capture_output=True, text=True, check=True)
    assert re.match(r"cannot write .*metrics\.jsonl", done.stdout)
    assert lines_of(recorder) == EVENTS[:1]


def test_a_folder_that_is_gone_is_named(tmp_path):
    recorder = FileRecorder(tmp_path / "gone" / "metrics.jsonl")
    with pytest.raises(RunError, match=r"cannot write .*metrics\.jsonl"):
        recorder.write(EVENTS[0])


def test_a_list_keeps_events_and_forgets_those_after_the_mark():
    recorder = ListRecorder()
    for event in EVENTS[:2]:
        recorder.write(event)
    mark = recorder.flush()
    recorder.write(EVENTS[2])
    recorder.rewind(mark)
    assert recorder.events == EVENTS[:2]


def test_both_recorders_are_recorders(recorder):
    assert isinstance(recorder, Recorder)
    assert isinstance(ListRecorder(), Recorder)
