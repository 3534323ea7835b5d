"""Downloads that resume after an interruption, and end with a verified file or with none."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from auxrnn.data.fetching.local_files import find_checksum
from auxrnn.data.spec import PublishedFile
from auxrnn.errors import RunError
from auxrnn.files import flush, locked

BLOCK_BYTES = 2**16
PASSING_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)

# Malformed redirections raise plain ValueErrors. Other OSErrors come from the disk.
NETWORK_ERRORS = (
    urllib.error.URLError,
    ConnectionError,
    TimeoutError,
    ssl.SSLError,
    http.client.HTTPException,
    ValueError,
)


class Patience(NamedTuple):
    """How long to wait for servers, in seconds."""

    timeout: float = 30.0
    """How long a server may be silent."""
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """Waits before further attempts; they start over whenever more of the file has arrived."""


PATIENCE = Patience()


class TransferError(Exception):
    """Why a file could not be transferred: temporarily, for good, or because nobody answers."""

    def __init__(self, reason: str, kind: Literal["passing", "final", "unreachable"] = "passing") -> None:
        super().__init__(reason)
        self.kind = kind


def download(file: PublishedFile, folder: Path, *, patience: Patience = PATIENCE) -> Path:
    """Download a file into a folder, verify it, and return its path there; a bar on stderr shows the progress.

    `NAME.part` holds what has arrived so far, and the next call resumes from it. While another process downloads
    into the same folder, this one waits.
    """
    target, part = folder / file.name, folder / f"{file.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock", waiting_for=f"downloading to {folder}"):
            if not target.exists():
                with _progress_bar(file) as show:
                    _complete(part, file, show, patience)
                flush(part)
                part.replace(target)
    except (TransferError, OSError) as error:
        reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else error
        num_kept = _size(part)
        cure = (
            f"run again to resume after the first {num_kept:,} bytes"
            if num_kept
            else "check the network and the folder"
        )
        raise RunError(
            f"{file.name} could not be downloaded from {' or '.join(file.urls)} to {folder} ({reason});"
            f" {cure}, or let --data-dir name a folder that already holds it"
        ) from error
    return target


def _complete(part: Path, file: PublishedFile, show: Callable[[int], None], patience: Patience) -> None:
    """Transfer what is missing, from each mirror in turn, until the file is verified or the patience ends."""
    pauses, start, farthest = iter(patience.pauses), _size(part), _size(part)
    while True:
        errors = []
        for url in file.urls:
            try:
                is_resumed = _receive(part, url, file, show, timeout=patience.timeout)
                return _verify(part, file, is_resumed=is_resumed)
            except TransferError as error:
                errors.append(error)
        if _size(part) > farthest:
            pauses, farthest = iter(patience.pauses), _size(part)
        # If nobody has answered so far, there is most likely no network.
        hopeless = ("final", "unreachable") if farthest == start else ("final",)
        pause = None if all(error.kind in hopeless for error in errors) else next(pauses, None)
        if pause is None:
            reasons = ", ".join(dict.fromkeys(str(error) for error in errors))
            raise TransferError(reasons) from errors[0]
        time.sleep(pause)


def _receive(part: Path, url: str, file: PublishedFile, show: Callable[[int], None], *, timeout: float) -> bool:
    """Append what is missing of a file, or start it over; return whether it now comes from several answers."""
    start = _size(part)
    if start == file.num_bytes:
        return True
    # A server that labels a packed file as packed for transport must not have it unpacked on the way.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - addresses are those of dataset files
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310 - the same
            is_resumed = _check_answer(part, response, start, file)
            with part.open("ab" if is_resumed else "wb") as copy:
                while block := response.read1(BLOCK_BYTES):
                    copy.write(block)
                    show(copy.tell())
                    if copy.tell() > file.num_bytes:
                        break
    except NETWORK_ERRORS as error:
        raise _explain(error, part) from error
    finally:
        if part.exists() and not _size(part):
            part.unlink()
    if _size(part) < file.num_bytes:
        raise TransferError("the connection broke off")
    return is_resumed


def _check_answer(part: Path, response: http.client.HTTPResponse, start: int, file: PublishedFile) -> bool:
    """Return whether the answer continues the part, rather than being the whole file; refuse any other answer."""
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        if response.headers.get("Content-Range") == f"bytes {start}-{file.num_bytes - 1}/{file.num_bytes}":
            return True
        part.unlink(missing_ok=True)
        raise TransferError("the server now has another file there")
    if response.status != HTTPStatus.OK:
        raise TransferError(f"the server answers {response.status}", "final")
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and announced != str(file.num_bytes):
        raise TransferError(f"the server has {announced[:20]} bytes there, not {file.num_bytes}", "final")
    return False


def _verify(part: Path, file: PublishedFile, *, is_resumed: bool) -> None:
    """Delete the part and raise `TransferError` if it is not the file."""
    if find_checksum(part, file.checksum) != file.checksum:
        part.unlink()
        # Pieces of different files may have met in it: starting over may then give the right one.
        raise TransferError("its checksum is wrong", "passing" if is_resumed else "final")


def _explain(error: Exception, part: Path) -> TransferError:
    if isinstance(error, urllib.error.HTTPError):
        # Waiting for its connection to be collected would be reported as a leak.
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
            return TransferError("the server now has another file there")
        is_passing = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in PASSING_STATUSES
        return TransferError(f"the server answers {error.code}", "passing" if is_passing else "final")
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLError):
        return TransferError("no secure connection to the server is possible", "final")
    if isinstance(error, urllib.error.URLError) and not isinstance(cause, ConnectionResetError | BrokenPipeError):
        return TransferError("the server cannot be reached", "unreachable")
    return TransferError("the server went silent" if isinstance(cause, TimeoutError) else "the connection broke off")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


@contextmanager
def _progress_bar(file: PublishedFile) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how many bytes have arrived; nothing is shown before the first."""
    columns = (*Progress.get_default_columns()[:-1], DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True))
    task = progress.add_task(file.name, total=file.num_bytes, start=False)

    def show(num_bytes: int) -> None:
        if not progress.live.is_started:
            # What has arrived before does not count for the rate.
            progress.update(task, completed=num_bytes)
            progress.start_task(task)
            progress.start()
        progress.update(task, completed=num_bytes)

    try:
        yield show
    finally:
        if progress.live.is_started:
            progress.stop()
