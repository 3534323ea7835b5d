"""Event files for TensorBoard, written from the `metrics.jsonl` of runs, also while they grow.

An event file is a function of the metrics, so what is written of it is a beginning of the whole, and the rest is
appended. Where it is not (a resumed training took lines back), the next file starts a session that replaces all before.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from os.path import commonpath, relpath
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from auxrnn.errors import RunError
from auxrnn.files import cannot_write
from auxrnn.report.listing import CONFIG, find_runs
from auxrnn.report.records import read_events

EVENTS = "events.out.tfevents.auxrnn"
NOT_DRAWN = ("step", "total_step", "seconds", "cpu_seconds")


def name_runs(given: Iterable[Path]) -> dict[str, Path]:
    """Return the runs among some folders and below them, by names that tell them apart."""
    found = {top: list(find_runs(top)) for top in map(Path.absolute, given)}
    # Not what the runs that are there now share: names stay when others come.
    root = commonpath([top.parent if top in folders else top for top, folders in found.items()])
    return {relpath(folder, root): folder for folders in found.values() for folder in folders}


def follow(given: Sequence[Path], logdir: Path) -> Iterator[int]:
    """Log the runs that have changed since the last look, at each step; yield how many events were written."""
    sizes = dict[Path, int]()
    while True:
        num_written = 0
        for name, run in name_runs(given).items():
            metrics = run / "metrics.jsonl"
            size = metrics.stat().st_size if metrics.exists() else 0
            if sizes.get(run) != size:
                num_written += log_run(run, logdir / name)
                sizes[run] = size
        yield num_written


def log_run(run: Path, logdir: Path) -> int:
    """Bring the event files of a run up to its metrics; return how many events were written."""
    records = _make_records(run)
    content, ends = b"".join(records), list(accumulate(map(len, records)))
    try:
        logdir.mkdir(parents=True, exist_ok=True)
        files = sorted(logdir.glob(f"{EVENTS}.*"))
        number, size = len(files), 0
        if files and content.startswith(written := files[-1].read_bytes()):
            number, size = number - 1, len(written)
        with (logdir / f"{EVENTS}.{number:06}").open("ab") as file:
            file.write(content[size:])
    except OSError as error:
        raise cannot_write(logdir, error) from error
    return sum(end > size for end in ends[1:])


def _make_records(run: Path) -> list[bytes]:
    """Return what begins an event file, and then each event of a run as TensorBoard keeps it."""
    began = (run / CONFIG).stat().st_mtime
    start = SessionLog(status=SessionLog.START)
    records = [_frame(Event(wall_time=began, file_version="brain.Event:2"), Event(wall_time=began, session_log=start))]
    for number, event in enumerate(read_events(run), start=1):
        try:
            values = [
                Summary.Value(tag=f"{event['event']}/{name}", simple_value=value)
                for name, value in event.items()
                if name not in NOT_DRAWN and isinstance(value, int | float)
            ]
            place = {"wall_time": began + event["seconds"], "step": event["total_step"]}
            records.append(_frame(Event(**place, summary=Summary(value=values))))
        except (LookupError, TypeError, ValueError) as error:
            what = f"{run / 'metrics.jsonl'}, line {number} is damaged"
            raise RunError(f"{what}; name the other runs one by one") from error
    return records


def _frame(*events: Event) -> bytes:
    buffer = io.BytesIO()
    writer = RecordWriter(buffer)
    for event in events:
        writer.write(event.SerializeToString())
    return buffer.getvalue()
