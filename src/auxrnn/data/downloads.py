"""Downloads that resume after an interruption, and end with a verified file or with none."""

import http.client
import ssl
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from auxrnn.data.spec import PublishedFile
from auxrnn.errors import RunError
from auxrnn.files import find_checksum, flush, locked

BLOCK_BYTES = 2**16
TIMEOUT = 30.0
"""Seconds that a server may be silent."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before further attempts; they start over whenever more of the file has arrived."""
PASSING_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class TransferError(Exception):
    """Why a file could not be transferred; another attempt may succeed unless it is final."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


def download(file: PublishedFile, folder: Path) -> Path:
    """Download a file into a folder, verify it, and return its path there; a bar on stderr shows the progress.

    `NAME.part` holds what has arrived so far, and the next call resumes from it. While another process downloads
    into the same folder, this one waits.
    """
    target, part = folder / file.name, folder / f"{file.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock", waiting_for=f"downloading to {folder}"):
            if not target.exists():
                _complete(part, file)
                flush(part)
                part.replace(target)
    except (TransferError, OSError) as error:
        reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else error
        kept = _size(part)
        cure = f"run again to resume after the first {kept:,} bytes" if kept else "check the network and the folder"
        what = f"{file.name} could not be downloaded from {' or '.join(file.urls)} to {folder} ({reason})"
        raise RunError(f"{what}; {cure}, or let --data-dir or AUXRNN_DATA_DIR name a folder that holds it") from error
    return target


def _complete(part: Path, file: PublishedFile) -> None:
    """Transfer what is missing, from each mirror in turn, until the file is verified or no pause is left."""
    pauses, farthest = iter(PAUSES), _size(part)
    while True:
        errors = []
        for url in file.urls:
            try:
                return _verify(part, file, is_resumed=_receive(part, url, file))
            except TransferError as error:
                errors.append(error)
        if _size(part) > farthest:
            pauses, farthest = iter(PAUSES), _size(part)
        pause = None if all(error.is_final for error in errors) else next(pauses, None)
        if pause is None:
            raise TransferError(", ".join(dict.fromkeys(map(str, errors)))) from errors[0]
        time.sleep(pause)


def _receive(part: Path, url: str, file: PublishedFile) -> bool:
    """Append what is missing of a file, or start it over; return whether it now comes from several answers."""
    start = _size(part)
    if start > file.num_bytes:
        part.unlink()
        start = 0
    if start == file.num_bytes:
        return True
    columns = (*Progress.get_default_columns()[:-1], DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _request(url, start) as response:
        is_resumed = _check_answer(part, response, start, file)
        with part.open("ab" if is_resumed else "wb") as copy, Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(file.name, total=file.num_bytes, completed=copy.tell())
            while copy.tell() <= file.num_bytes and (block := _read(response)):
                copy.write(block)
                bar.update(task, completed=copy.tell())
    if _size(part) < file.num_bytes:
        raise TransferError("the connection broke off")
    return is_resumed


def _request(url: str, start: int) -> http.client.HTTPResponse:
    # A server that labels a packed file as packed for transport must not have it unpacked on the way.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - addresses are those of dataset files
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310 - the same
        return response
    except urllib.error.HTTPError as error:
        # Waiting for its connection to be collected would be reported as a leak.
        error.close()
        is_passing = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in PASSING_STATUSES
        raise TransferError(f"the server answers {error.code}", is_final=not is_passing) from error
    except urllib.error.URLError as error:
        is_ssl = isinstance(error.reason, ssl.SSLError)
        reason = "no secure connection to the server is possible" if is_ssl else "the server cannot be reached"
        raise TransferError(reason, is_final=True) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        # Malformed redirections raise plain ValueErrors.
        raise TransferError("the connection broke off") from error


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(BLOCK_BYTES)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise TransferError("the connection broke off") from error


def _check_answer(part: Path, response: http.client.HTTPResponse, start: int, file: PublishedFile) -> bool:
    """Return whether the answer continues the part, rather than being the whole file; refuse any other answer."""
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        if response.headers.get("Content-Range") == f"bytes {start}-{file.num_bytes - 1}/{file.num_bytes}":
            return True
        part.unlink(missing_ok=True)
        raise TransferError("the server now has another file there")
    if response.status != HTTPStatus.OK:
        raise TransferError(f"the server answers {response.status}", is_final=True)
    announced = response.headers.get("Content-Length", "")
    if announced.isdecimal() and announced != str(file.num_bytes):
        raise TransferError(f"the server has {announced[:20]} bytes there, not {file.num_bytes}", is_final=True)
    return False


def _verify(part: Path, file: PublishedFile, *, is_resumed: bool) -> None:
    """Delete the part and raise `TransferError` if it is not the file."""
    kind, _, published = file.checksum.partition(":")
    if find_checksum(part, kind) != published:
        part.unlink()
        # Pieces of different files may have met in it: starting over may then give the right one.
        raise TransferError("its checksum is wrong", is_final=not is_resumed)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
