"""Downloads that go on where they broke off, and end with a file that is checked and whole, or with none."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from auxrnn.data.fetching.part_files import PartFile, open_part, part_path
from auxrnn.data.fetching.remote_files import Observe, RemoteFile, find_checksum
from auxrnn.data.fetching.transfers import TransferError, receive
from auxrnn.errors import RunError


class Patience(NamedTuple):
    """How long to wait for a server, in seconds."""

    timeout: float = 30.0
    """How long it may be silent."""
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """What to wait before each further attempt; they begin anew whenever more of the file has come."""


PATIENCE = Patience()


def download(
    remote: RemoteFile, folder: Path, *, observe: Observe | None = None, patience: Patience = PATIENCE
) -> Path:
    """Download a file into a folder, check it, and give its path there.

    What was kept of an earlier attempt is used. Without `observe`, a bar on stderr shows the rate and the time left.
    Where another process is downloading the same file, its end is waited for.
    """
    target = folder / remote.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open_part(target) as part, _watching(remote.name, observe) as watch:
            if not target.exists():
                _fill(part, remote, watch, patience)
                part.finish()
    except (TransferError, OSError) as error:
        reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else error
        raise RunError(
            f"{remote.name} could not be downloaded from {remote.url} to {folder} ({reason}); "
            f"{_cure(target)}, or let --data-dir name a folder that already holds it"
        ) from error
    return target


def _fill(part: PartFile, remote: RemoteFile, watch: Callable[[int, int | None], None], patience: Patience) -> None:
    """Bring all of a file, in as many attempts as that takes and the patience lasts."""
    pauses, begun_at, farthest = iter(patience.pauses), part.size, part.size
    while True:
        try:
            if not part.is_complete:
                receive(part, remote.url, num_bytes=remote.num_bytes, observe=watch, timeout=patience.timeout)
            return _check(part, remote)
        except TransferError as error:
            if part.size > farthest:
                pauses, farthest = iter(patience.pauses), part.size
            # Where nobody has answered yet, nobody will: most likely there is no network.
            is_final = error.kind == "final" or (error.kind == "unreachable" and farthest == begun_at)
            pause = None if is_final else next(pauses, None)
            if pause is None:
                raise
            time.sleep(pause)


def _check(part: PartFile, remote: RemoteFile) -> None:
    """Raise `TransferError` where not all of the file has come, and where it is another one; that is thrown away."""
    expected = remote.num_bytes or (part.version.num_bytes if part.version else None)
    if expected is not None and part.size < expected:
        raise TransferError("the connection broke off")
    part.flush()
    if find_checksum(part.path, remote.checksum) != remote.checksum:
        # Pieces of different files may have met in it: a new beginning may then give the right one.
        is_patched = part.is_patched
        part.clear()
        raise TransferError("its checksum is wrong", "passing" if is_patched else "final")


def _cure(target: Path) -> str:
    try:
        num_kept = part_path(target).stat().st_size
    except OSError:
        return "check the connection and the folder"
    return f"ask again to go on after the first {num_kept:,} bytes"


@contextmanager
def _watching(name: str, observe: Observe | None) -> Iterator[Callable[[int, int | None], None]]:
    """Give what is to be told of progress: the caller's own way to show it, or a bar."""
    if observe is not None:
        yield lambda done, total: observe(name, done, total)
        return
    columns = (*Progress.get_default_columns()[:-1], DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(name, start=False)

    def show(done: int, total: int | None) -> None:
        # There is no bar before a server answers, and what is there from an earlier time does not count for the rate.
        if not progress.live.is_started:
            progress.update(task, completed=done)
            progress.start_task(task)
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()
