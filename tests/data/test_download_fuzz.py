"""Whatever a server answers, a download ends with the right file or with one sentence."""

import contextlib
import gc
import socketserver
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_archives import md5

from auxrnn.data import downloads
from auxrnn.data.downloads import download
from auxrnn.data.spec import PublishedFile
from auxrnn.errors import RunError

CONTENT = b"the right file"

statuses = st.sampled_from(
    [b"200 OK", b"206 Partial Content", b"302 Found", b"416 No", b"500", b"99 \xff", b"", b"abc"]
)
NUMBERS = [b"14", b"7", b"-1", b"9" * 5000, b"bytes 7-13/14", b"bytes 7-/", b"bytes */14"]
WORDS = [b"chunked", b"gzip", b'"e"', b"/file.bin", b"http://[", b"ftp://a/b", b"http://127.0.0.1:1/x", b"\x80"]
values = st.one_of(st.binary(max_size=30), st.sampled_from(NUMBERS + WORDS))
names = st.sampled_from(
    [
        b"Content-Length",
        b"Content-Range",
        b"Transfer-Encoding",
        b"Content-Encoding",
        b"Location",
        b"ETag",
        b"Set-Cookie",
    ]
)
headers = st.lists(st.tuples(names, values), max_size=4)
bodies = st.sampled_from([CONTENT, CONTENT[7:], CONTENT[:7], b"", b"e\r\nthe right file\r\n0\r\n\r\n", b"zz\r\n"])


def answer_of(status, headers, body):
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n" + body


answers = st.one_of(st.binary(max_size=60), st.builds(answer_of, statuses, headers, bodies))


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):
            self.request.recv(2**16)
            self.request.sendall(self.server.answer)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    answer = b""


@pytest.fixture(scope="module")
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True, scope="module")
def _no_proxy_and_no_patience():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(downloads, "PAUSES", ())
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield


def download_or_explain(file, folder):
    try:
        return None, download(file, folder)
    except RunError as error:
        return str(error), folder / file.name


@pytest.fixture
def _collected():
    yield
    gc.collect()


# The library leaves the connection of a malformed redirection open, and it is closed when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_collected")
@settings(max_examples=60)
@given(answers, answers)
@example(answer_of(b"200 OK", [(b"Content-Length", b"14")], CONTENT[:7]), b"")
@example(
    answer_of(b"200 OK", [(b"Content-Length", b"14")], CONTENT[:7]),
    answer_of(b"206 Partial Content", [(b"Content-Range", b"bytes 7-13/14"), (b"Content-Length", b"7")], CONTENT[7:]),
)
@example(
    answer_of(b"200 OK", [(b"Content-Length", b"14")], CONTENT[:7]), answer_of(b"206 Partial Content", [], CONTENT[7:])
)
@example(
    answer_of(b"301 Moved", [(b"Location", b"a://[")], b""), answer_of(b"301 Moved", [(b"Location", b"\x80")], b"")
)
def test_a_download_ends_with_the_right_file_or_one_sentence(server, first, second):
    mirror = f"http://127.0.0.1:{server.server_address[1]}"
    file = PublishedFile("file.bin", len(CONTENT), md5(CONTENT), (mirror,))
    with tempfile.TemporaryDirectory() as folder:
        for answer in (first, second):
            server.answer = answer
            sentence, path = download_or_explain(file, Path(folder))
            assert (sentence is None) == path.exists()
            assert path.exists() or ("\n" not in sentence and "; " in sentence)
            if path.exists():
                assert path.read_bytes() == CONTENT
                assert {entry.name for entry in Path(folder).iterdir()} == {"file.bin"}
