"""One request to a server: what is missing of a file is asked for and appended to what is there."""

import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal

import requests
import urllib3

from auxrnn.data.fetching.part_files import PartFile, Version

BLOCK_BYTES = 2**16
CONNECT_SECONDS = 10.0
PASSING_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)


class TransferError(Exception):
    """Why a file could not be brought: for a moment, for good, or because nobody answers at all."""

    def __init__(self, reason: str, kind: Literal["passing", "final", "unreachable"] = "passing") -> None:
        super().__init__(reason)
        self.kind = kind


def receive(
    part: PartFile, url: str, *, num_bytes: int | None, observe: Callable[[int, int | None], None], timeout: float
) -> None:
    """Append what is missing of a file, or all of it where the server gives no less or has another one by now.

    A server that goes silent for `timeout` seconds, or has a file of another size, raises `TransferError`.
    """
    # It would report malformed headers with a traceback, in the midst of what a user reads.
    logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
    # A server that labels the packed file itself as packed for transport would have it unpacked on the way.
    headers = {"Accept-Encoding": "identity"}
    if part.size:
        headers["Range"] = f"bytes={part.size}-"
    try:
        timeouts = (min(CONNECT_SECONDS, timeout), timeout)
        with requests.get(url, headers=headers, stream=True, timeout=timeouts) as response:
            version = _describe(response, url)
            _check_answer(part, response, version, num_bytes=num_bytes)
            if response.status_code == HTTPStatus.OK:
                part.begin(version)
            observe(part.size, version.num_bytes)
            for block in response.raw.stream(BLOCK_BYTES, decode_content=False):
                part.append(block)
                observe(part.size, version.num_bytes)
    # A malformed redirection comes as a plain ValueError.
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        raise _explain(error) from error


def _describe(response: requests.Response, url: str) -> Version:
    found = re.fullmatch(r"bytes \d+-\d+/(\d{1,18})", response.headers.get("Content-Range", ""))
    found = found or re.fullmatch(r"(\d{1,18})", response.headers.get("Content-Length", ""))
    num_bytes = int(found[1]) if found else None
    return Version(url, response.headers.get("ETag"), response.headers.get("Last-Modified"), num_bytes)


def _check_answer(part: PartFile, response: requests.Response, version: Version, *, num_bytes: int | None) -> None:
    """Raise `TransferError` unless the answer is the whole file, or what is missing of the same file."""
    status = response.status_code
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or (
        status == HTTPStatus.PARTIAL_CONTENT and not _goes_on(part, response, version)
    ):
        part.clear()
        raise TransferError("the server now has another file there")
    if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        is_passing = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in PASSING_STATUSES
        reason = f"the server answers {status} {response.reason or ''}"
        raise TransferError(reason.rstrip(), "passing" if is_passing else "final")
    if None not in (num_bytes, version.num_bytes) and num_bytes != version.num_bytes:
        raise TransferError(f"the server has {version.num_bytes:,} bytes there, not {num_bytes:,}", "final")


def _goes_on(part: PartFile, response: requests.Response, version: Version) -> bool:
    known = part.version
    if known is None or not response.headers.get("Content-Range", "").startswith(f"bytes {part.size}-"):
        return False
    # Some servers tell the size of a file only when asked for a piece of it.
    return version == known._replace(num_bytes=known.num_bytes or version.num_bytes)


def _explain(error: Exception) -> TransferError:
    if isinstance(error, requests.exceptions.ProxyError):
        return TransferError("the proxy cannot be reached", "unreachable")
    if isinstance(error, requests.exceptions.SSLError):
        return TransferError("no secure connection to the server is possible", "final")
    if isinstance(error, requests.ConnectTimeout) or _is_refused(error):
        return TransferError("the server cannot be reached", "unreachable")
    is_silent = isinstance(error, requests.Timeout | urllib3.exceptions.TimeoutError)
    return TransferError("the server went silent" if is_silent else "the connection broke off")


def _is_refused(error: Exception) -> bool:
    """Say whether no connection came about, rather than one that broke off."""
    is_connection_error = isinstance(error, requests.ConnectionError) and bool(error.args)
    return is_connection_error and isinstance(error.args[0], urllib3.exceptions.MaxRetryError)
