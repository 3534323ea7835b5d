"""Event files for TensorBoard, written from the `metrics.jsonl` of runs, also while they grow.

Beside an event file `logged.json` holds its size and the lines that are in it. Lines that a resumed training took back
are taken back here too: TensorBoard forgets all from a step on where a session starts at that step.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_read, cannot_write, write_aside

EVENTS, LOGGED = "events.out.tfevents.auxrnn", "logged.json"
NOT_DRAWN = ("step", "total_step", "seconds", "cpu_seconds")


class Logged(NamedTuple):
    """What an event file holds: its size in bytes, and the lines of metrics.jsonl that were written to it."""

    size: int = 0
    lines: Sequence[str] = ()


def find_runs(given: Iterable[Path]) -> dict[str, Path]:
    """Return the runs among some folders and below them, by names that tell them apart."""
    folders: dict[Path, None] = {}
    tops = []
    for folder in map(Path.absolute, given):
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; give run folders, or a folder of runs")
        is_run = (folder / "config.json").is_file()
        found = [folder] if is_run else sorted(path.parent for path in folder.rglob("metrics.jsonl"))
        folders |= dict.fromkeys(found)
        tops.append(folder.parent if is_run else folder)
    # Not what the runs that are there now share: names stay when others come.
    root = os.path.commonpath(tops)
    return {os.path.relpath(folder, root): folder for folder in folders}


def log_run(run: Path, logdir: Path) -> int:
    """Bring the event file of a run up to its metrics; return how many events were written."""
    lines, logged = _read_lines(run / "metrics.jsonl"), _read_logged(logdir)
    pairs = zip(lines, logged.lines, strict=False)
    num_same = next((n for n, (line, old) in enumerate(pairs) if line != old), min(len(lines), len(logged.lines)))
    events = [_parse(run, number, line) for number, line in enumerate(lines, start=1)]
    restart = None
    if num_same < len(logged.lines):
        restart = int(_parse(run, num_same + 1, logged.lines[num_same])["total_step"])
        # TensorBoard forgets all events of that step, also those that stay.
        num_same = next((n for n, event in enumerate(events[:num_same]) if event["total_step"] >= restart), num_same)
    elif num_same == len(lines):
        return 0
    began = (run / "config.json").stat().st_mtime if (run / "config.json").exists() else 0.0
    records = [] if logged.size else [Event(wall_time=began, file_version="brain.Event:2")]
    if restart is not None:
        records.append(Event(wall_time=began, step=restart, session_log=SessionLog(status=SessionLog.START)))
    records += [_to_record(event, began) for event in events[num_same:]]
    size = _append(logdir / EVENTS, records, size=logged.size)
    write_aside(logdir / LOGGED, json.dumps({"size": size, "lines": lines}))
    return len(events) - num_same


def _read_lines(path: Path) -> list[str]:
    """Return the whole lines of a file; a last one that is being written is left for the next time."""
    try:
        return path.read_text(errors="replace").rpartition("\n")[0].splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(path, error) from error


def _read_logged(logdir: Path) -> Logged:
    """Return what was logged; nothing if that cannot be told, and then the event file begins anew."""
    try:
        logged = Logged(**json.loads((logdir / LOGGED).read_text()))
        is_whole = (logdir / EVENTS).stat().st_size >= logged.size and all(isinstance(x, str) for x in logged.lines)
        return logged if is_whole else Logged()
    except (OSError, ValueError, TypeError, RecursionError):
        return Logged()


def _parse(run: Path, number: int, line: str) -> dict[str, Any]:
    try:
        event: dict[str, Any] = json.loads(line)
        _ = event["event"], int(event["total_step"]), float(event["seconds"])
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise RunError(f"{run / 'metrics.jsonl'}, line {number} is damaged; name the other runs one by one") from error
    return event


def _to_record(event: dict[str, Any], began: float) -> Event:
    """Return an event as TensorBoard keeps it, its numbers under train/, evaluation/ or result/."""
    numbers = {name: value for name, value in event.items() if isinstance(value, int | float)}
    values = [
        Summary.Value(tag=f"{event['event']}/{name}", simple_value=value)
        for name, value in numbers.items()
        if name not in NOT_DRAWN
    ]
    return Event(wall_time=began + event["seconds"], step=int(event["total_step"]), summary=Summary(value=values))


def _append(path: Path, records: Iterable[Event], *, size: int) -> int:
    """Append records after the first `size` bytes of a file, and return its new size.

    What a killed process wrote beyond what it noted goes first, so that nothing is there twice.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if size else "wb") as file:
            file.truncate(size)
            file.seek(size)
            writer = RecordWriter(file)
            for record in records:
                writer.write(record.SerializeToString())
            return file.tell()
    except OSError as error:
        raise cannot_write(path, error) from error
