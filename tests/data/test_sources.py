"""Files are found where they are, downloaded where they are not, and never used unchecked. The server is local."""

import functools
import gzip
import hashlib
import http.server
import io
import logging
import tarfile
import threading
from pathlib import Path

import pooch
import pytest

from auxrnn.data import sources
from auxrnn.data.sources import RemoteFile, find_or_download, find_or_unpack, search_folders
from auxrnn.errors import RunError

CONTENT = b"sixteen examples"
PACKED = gzip.compress(CONTENT, mtime=0)
PARTS = {"one.bin": b"first part", "two.bin": b"second part"}


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def archive_of(parts):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in {"parts/readme.html": b"hello", **parts}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


ARCHIVE = archive_of({f"parts/{name}": content for name, content in reversed(PARTS.items())})


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without writing a line for each."""

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The address of a server on this machine, and the folder it serves."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


@pytest.fixture
def no_network(monkeypatch):
    """Send every request to a port of this machine where nothing listens."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def remote_file(url="http://example.invalid"):
    return RemoteFile(f"{url}/file.gz", md5(PACKED), {"file": md5(CONTENT)})


def remote_archive(url="http://example.invalid", content=ARCHIVE):
    return RemoteFile(f"{url}/parts.tar.gz", md5(content), {name: md5(part) for name, part in PARTS.items()})


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_missing_file_is_downloaded_once(server, tmp_path, capfd):
    url, served = server
    (served / "file.gz").write_bytes(PACKED)
    folders = search_folders("set", tmp_path / "data")
    path = find_or_download(remote_file(url), folders)
    assert path == tmp_path / "data" / "set" / "file.gz"
    assert path.read_bytes() == PACKED
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err
    assert not pooch.get_logger().isEnabledFor(logging.INFO)
    (served / "file.gz").unlink()
    assert find_or_download(remote_file(url), folders) == path


@pytest.mark.parametrize("served_as", ["other content", None], ids=["wrong checksum", "not found"])
def test_a_failed_download_says_so_in_one_sentence_and_leaves_no_file(server, tmp_path, assert_one_sentence, served_as):
    url, served = server
    if served_as is not None:
        (served / "file.gz").write_text(served_as)
    with pytest.raises(RunError) as error:
        find_or_download(remote_file(url), search_folders("set", tmp_path / "data"))
    assert_one_sentence(error, "file.gz", url, "--data-dir", "HTTPError" if served_as is None else "checksum")
    if served_as is None:
        # Pooch leaves the connection of a refused request open, which would be warned of in some later test.
        error.value.__cause__.response.close()
    assert files_under(tmp_path / "data") == []


@pytest.mark.parametrize("find", [sources.mnist_files, sources.cifar10_files])
@pytest.mark.usefixtures("no_network")
def test_without_network_the_first_missing_file_is_named(tmp_path, assert_one_sentence, find):
    with pytest.raises(RunError) as error:
        find(tmp_path)
    first = {sources.mnist_files: sources.MNIST[0], sources.cifar10_files: sources.CIFAR10}[find]
    assert_one_sentence(error, first.name, first.url, "--data-dir")
    assert files_under(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path, assert_one_sentence):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(RunError) as error:
        find_or_download(remote_file(), search_folders("set", tmp_path / "data"))
    assert_one_sentence(error, tmp_path / "data" / "set", "file.gz", "--data-dir")


@pytest.mark.parametrize("name", ["set/file.gz", "set/file", "file.gz", "file"])
@pytest.mark.usefixtures("no_network")
def test_a_file_already_there_is_used_packed_or_not(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(PACKED if name.endswith(".gz") else CONTENT)
    assert find_or_download(remote_file(), search_folders("set", tmp_path)) == path
    assert files_under(tmp_path) == [name]


@pytest.mark.parametrize("name", ["file.gz", "file"])
def test_a_damaged_file_already_there_is_refused_and_kept(server, tmp_path, assert_one_sentence, name):
    url, served = server
    (served / "file.gz").write_bytes(PACKED)
    path = tmp_path / name
    path.write_bytes(b"damaged")
    with pytest.raises(RunError) as error:
        find_or_download(remote_file(url), search_folders("set", tmp_path))
    assert_one_sentence(error, path, "MD5", md5(b"damaged"))
    assert path.read_bytes() == b"damaged"


def write_parts(folder, parts=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (PARTS if parts is None else parts).items():
        (folder / name).write_bytes(content)


def test_an_archive_is_downloaded_and_unpacked_once(server, tmp_path):
    url, served = server
    (served / "parts.tar.gz").write_bytes(ARCHIVE)
    folders = search_folders("set", tmp_path / "data")
    paths = find_or_unpack(remote_archive(url), "parts", folders)
    assert {path.name: path.read_bytes() for path in paths} == PARTS
    assert list(PARTS) == [path.name for path in paths]
    assert files_under(tmp_path / "data") == ["set/parts.tar.gz", "set/parts/one.bin", "set/parts/two.bin"]
    (tmp_path / "data" / "set" / "parts.tar.gz").unlink()
    (served / "parts.tar.gz").unlink()
    assert find_or_unpack(remote_archive(url), "parts", folders) == paths


@pytest.mark.parametrize("place", ["", "parts", "set", "set/parts"])
@pytest.mark.usefixtures("no_network")
def test_unpacked_files_already_there_are_used(tmp_path, place):
    write_parts(tmp_path / place)
    paths = find_or_unpack(remote_archive(), "parts", search_folders("set", tmp_path))
    assert paths == tuple(tmp_path / place / name for name in PARTS)


@pytest.mark.usefixtures("no_network")
def test_an_archive_already_there_is_unpacked_beside_itself(tmp_path):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    paths = find_or_unpack(remote_archive(), "parts", search_folders("set", tmp_path))
    assert {path.name: path.read_bytes() for path in paths} == PARTS
    assert files_under(tmp_path) == ["parts.tar.gz", "parts/one.bin", "parts/two.bin"]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [({"one.bin": PARTS["one.bin"]}, "two.bin"), ({**PARTS, "two.bin": b"x"}, "two.bin")],
    ids=["incomplete", "damaged"],
)
@pytest.mark.usefixtures("no_network")
def test_an_incomplete_or_damaged_folder_is_refused(tmp_path, assert_one_sentence, parts, wrong):
    write_parts(tmp_path / "parts", parts)
    with pytest.raises(RunError) as error:
        find_or_unpack(remote_archive(), "parts", search_folders("set", tmp_path))
    assert_one_sentence(error, tmp_path / "parts", wrong)


@pytest.mark.usefixtures("no_network")
def test_a_damaged_archive_leaves_nothing_behind(tmp_path, assert_one_sentence):
    cut = ARCHIVE[: len(ARCHIVE) // 2]
    (tmp_path / "parts.tar.gz").write_bytes(cut)
    with pytest.raises(RunError) as error:
        find_or_unpack(remote_archive(content=cut), "parts", search_folders("set", tmp_path))
    assert_one_sentence(error, tmp_path / "parts.tar.gz", "damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["parts.tar.gz"]


@pytest.mark.usefixtures("no_network")
def test_a_folder_in_the_way_is_named_and_kept(tmp_path, assert_one_sentence):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    write_parts(tmp_path / "parts", {"notes.txt": b"mine"})
    with pytest.raises(RunError) as error:
        find_or_unpack(remote_archive(), "parts", search_folders("set", tmp_path))
    assert_one_sentence(error, tmp_path / "parts", "in the way")
    assert files_under(tmp_path) == ["parts.tar.gz", "parts/notes.txt"]


def test_the_data_folder_is_the_argument_then_the_variable_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AUXRNN_DATA_DIR", str(tmp_path / "named"))
    assert search_folders("set", tmp_path) == (tmp_path / "set", tmp_path)
    assert search_folders("set")[1] == tmp_path / "named"
    monkeypatch.setenv("AUXRNN_DATA_DIR", "")
    in_cache = search_folders("set")[1]
    assert in_cache.name == "auxrnn"
    assert in_cache != Path("auxrnn")


@pytest.mark.usefixtures("no_network")
def test_the_real_mnist_has_the_published_checksums(shared_mnist, tmp_path):
    files = sources.mnist_files(shared_mnist)
    assert files == sources.mnist_files(shared_mnist / "mnist")
    for path in files:
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    assert [path.parent for path in sources.mnist_files(tmp_path)] == [tmp_path] * 4
