"""A server on this machine that answers each request as the test says: whole, cut, stalled, with an error."""

import http.server
import re
import threading
from contextlib import contextmanager


class Served:
    """A file on a server, how the next requests for it are answered, and which ranges were asked for."""

    def __init__(self, content, answers=(), *, has_ranges=True, etag='"1"'):
        self.content = content
        self.answers = list(answers)
        self.has_ranges = has_ranges
        self.etag = etag
        self.asked = []

    def next_answer(self):
        return self.answers.pop(0) if self.answers else "whole"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers are `whole`, `hold`, `chunked`, a status, `cut:N`, `stall:N`, `bare:N`, `refuse`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.close_connection = True
        served = self.server.files.get(self.path)
        if served is None:
            self.send_error(404)
            return
        served.asked.append(self.headers.get("Range"))
        kind, _, number = str(served.next_answer()).partition(":")
        if kind.isdecimal():
            self.send_error(int(kind))
        elif kind != "refuse":
            self.send(served, kind, int(number or len(served.content)))

    def send(self, served, kind, num_bytes):
        start = self.first_byte(served)
        if start >= len(served.content) > 0:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(served.content) - 1}/{len(served.content)}")
        if served.etag is not None:
            self.send_header("ETag", served.etag)
        if kind == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        elif kind != "bare":
            self.send_header("Content-Length", str(len(served.content) - start))
        self.end_headers()
        self.send_body(served.content[start : start + num_bytes], kind)

    def send_body(self, body, kind):
        if kind == "chunked":
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            return
        middle = len(body) // 2
        self.wfile.write(body[:middle])
        if kind == "hold":
            self.server.may_go_on.wait(60)
        self.wfile.write(body[middle:])
        if kind == "stall":
            self.server.is_over.wait(10)

    def first_byte(self, served):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        return int(found[1]) if found and served.has_ranges else 0


class Server(http.server.ThreadingHTTPServer):
    """Threads end with the server; a client that hangs up is no error."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.is_over = threading.Event()
        self.may_go_on = threading.Event()

    def handle_error(self, *_):
        pass

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving():
    """Run a server without files, to which the test adds some: `server.files["/name"] = Served(...)`."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.is_over.set()
        server.shutdown()
        thread.join()


def block_network(monkeypatch):
    """Send every request to a port of this machine where nothing listens."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
