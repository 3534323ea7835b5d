"""Files are found where they are, downloaded where they are not, and never used unchecked. The server is local."""

import gzip
from pathlib import Path

import pytest
from made_archives import archive_of, files_under, md5, write_parts
from serving import Served, block_network, serving

from auxrnn.data.fetching import published, sources
from auxrnn.data.fetching.holdings import is_at_hand
from auxrnn.data.fetching.local_files import DatasetFile, find_or_download, find_or_unpack
from auxrnn.data.fetching.remote_files import Content, RemoteFile
from auxrnn.data.fetching.sources import search_folders
from auxrnn.errors import RunError

CONTENT = b"sixteen examples"
PACKED = gzip.compress(CONTENT, mtime=0)
PARTS = {"one.bin": b"first part", "two.bin": b"second part"}
ARCHIVE = archive_of({f"parts/{name}": content for name, content in reversed(PARTS.items())})
MEMBERS = [Content(name, len(part), md5(part)) for name, part in PARTS.items()]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def no_network(monkeypatch):
    block_network(monkeypatch)


def data_file(url="http://example.invalid"):
    return DatasetFile(RemoteFile(f"{url}/file.gz", md5(PACKED)), (Content("file", len(CONTENT), md5(CONTENT)),))


def remote_archive(url="http://example.invalid", content=ARCHIVE):
    return RemoteFile(f"{url}/parts.tar.gz", md5(content))


def test_a_missing_file_is_downloaded_once(server, tmp_path, capfd):
    server.files["/file.gz"] = Served(PACKED)
    folders = search_folders("set", tmp_path / "data")
    path = find_or_download(data_file(server.url), folders)
    assert path == tmp_path / "data" / "set" / "file.gz"
    assert path.read_bytes() == PACKED
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err
    server.files.clear()
    assert find_or_download(data_file(server.url), folders) == path


@pytest.mark.parametrize("served_as", [b"other content", None], ids=["wrong checksum", "not found"])
def test_a_failed_download_says_so_in_one_sentence_and_leaves_no_file(server, tmp_path, assert_one_sentence, served_as):
    if served_as is not None:
        server.files["/file.gz"] = Served(served_as)
    with pytest.raises(RunError) as error:
        find_or_download(data_file(server.url), search_folders("set", tmp_path / "data"))
    assert_one_sentence(error, "file.gz", server.url, "--data-dir", "404" if served_as is None else "checksum")
    assert files_under(tmp_path / "data") == []


@pytest.mark.parametrize(
    ("find", "first"),
    [
        (sources.mnist_files, published.MNIST[0].remote),
        (sources.fashion_mnist_files, published.FASHION_MNIST[0].remote),
        (sources.cifar10_files, published.CIFAR10),
        (sources.dbpedia_files, published.DBPEDIA),
        (sources.dogs_folder, published.DOGS.images),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_without_network_the_first_missing_file_is_named(tmp_path, assert_one_sentence, find, first):
    with pytest.raises(RunError) as error:
        find(tmp_path)
    assert_one_sentence(error, first.name, first.url, "--data-dir")
    assert files_under(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path, assert_one_sentence):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(RunError) as error:
        find_or_download(data_file(), search_folders("set", tmp_path / "data"))
    assert_one_sentence(error, tmp_path / "data" / "set", "file.gz", "--data-dir")


@pytest.mark.parametrize("name", ["set/file.gz", "set/file", "file.gz", "file"])
@pytest.mark.usefixtures("no_network")
def test_a_file_already_there_is_used_packed_or_not(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(PACKED if name.endswith(".gz") else CONTENT)
    assert find_or_download(data_file(), search_folders("set", tmp_path)) == path
    assert files_under(tmp_path) == [name]


@pytest.mark.parametrize("name", ["file.gz", "file"])
def test_a_damaged_file_already_there_is_refused_and_kept(server, tmp_path, assert_one_sentence, name):
    server.files["/file.gz"] = Served(PACKED)
    path = tmp_path / name
    path.write_bytes(b"damaged")
    with pytest.raises(RunError) as error:
        find_or_download(data_file(server.url), search_folders("set", tmp_path))
    assert_one_sentence(error, path, "MD5", md5(b"damaged").removeprefix("md5:"))
    assert path.read_bytes() == b"damaged"


def test_an_archive_is_downloaded_and_unpacked_once(server, tmp_path):
    server.files["/parts.tar.gz"] = Served(ARCHIVE)
    folders = search_folders("set", tmp_path / "data")
    paths = find_or_unpack(remote_archive(server.url), MEMBERS, "parts", folders)
    assert {path.name: path.read_bytes() for path in paths} == PARTS
    assert list(PARTS) == [path.name for path in paths]
    assert files_under(tmp_path / "data") == ["set/parts.tar.gz", "set/parts/one.bin", "set/parts/two.bin"]
    (tmp_path / "data" / "set" / "parts.tar.gz").unlink()
    server.files.clear()
    assert find_or_unpack(remote_archive(server.url), MEMBERS, "parts", folders) == paths


@pytest.mark.parametrize("place", ["", "parts", "set", "set/parts"])
@pytest.mark.usefixtures("no_network")
def test_unpacked_files_already_there_are_used(tmp_path, place):
    write_parts(tmp_path / place, PARTS)
    paths = find_or_unpack(remote_archive(), MEMBERS, "parts", search_folders("set", tmp_path))
    assert paths == tuple(tmp_path / place / name for name in PARTS)


@pytest.mark.usefixtures("no_network")
def test_an_archive_already_there_is_unpacked_beside_itself(tmp_path):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    paths = find_or_unpack(remote_archive(), MEMBERS, "parts", search_folders("set", tmp_path))
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
        find_or_unpack(remote_archive(), MEMBERS, "parts", search_folders("set", tmp_path))
    assert_one_sentence(error, tmp_path / "parts", wrong)


@pytest.mark.usefixtures("no_network")
def test_a_damaged_archive_leaves_nothing_behind(tmp_path, assert_one_sentence):
    cut = ARCHIVE[: len(ARCHIVE) // 2]
    (tmp_path / "parts.tar.gz").write_bytes(cut)
    with pytest.raises(RunError) as error:
        find_or_unpack(remote_archive(content=cut), MEMBERS, "parts", search_folders("set", tmp_path))
    assert_one_sentence(error, tmp_path / "parts.tar.gz", "damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["parts.tar.gz"]


@pytest.mark.usefixtures("no_network")
def test_a_folder_in_the_way_is_named_and_kept(tmp_path, assert_one_sentence):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    write_parts(tmp_path / "parts", {"notes.txt": b"mine"})
    with pytest.raises(RunError) as error:
        find_or_unpack(remote_archive(), MEMBERS, "parts", search_folders("set", tmp_path))
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


# Two datasets with files of the same names and sizes, of which one has no known checksum when it is unpacked.
OTHER = b"fifteen examples"
OTHER_PACKED = gzip.compress(OTHER, mtime=0)
KNOWN = DatasetFile(
    RemoteFile("http://example.invalid/file.gz", md5(PACKED)),
    (Content("file", len(CONTENT), md5(CONTENT)),),
    frozenset([md5(OTHER_PACKED)]),
)
UNKNOWN = DatasetFile(
    RemoteFile("http://example.invalid/file.gz", md5(OTHER_PACKED)),
    (Content("file", len(OTHER)),),
    frozenset([md5(PACKED), md5(CONTENT)]),
)


@pytest.mark.parametrize(
    ("name", "content", "file", "is_found"),
    [
        ("file.gz", PACKED, UNKNOWN, False),
        ("file", CONTENT, UNKNOWN, False),
        ("file.gz", OTHER_PACKED, KNOWN, False),
        ("file", OTHER, KNOWN, False),
        ("file", OTHER, UNKNOWN, False),
        ("file.gz", OTHER_PACKED, UNKNOWN, True),
        ("unknown/file.gz", OTHER_PACKED, UNKNOWN, True),
        ("unknown/file", OTHER, UNKNOWN, True),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_a_file_of_another_dataset_is_passed_over_where_both_may_be(
    tmp_path, assert_one_sentence, name, content, file, is_found
):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    folders = search_folders("unknown" if file is UNKNOWN else "known", tmp_path)
    if is_found:
        assert find_or_download(file, folders) == path
        return
    with pytest.raises(RunError) as error:
        find_or_download(file, folders)
    assert_one_sentence(error, "could not be downloaded", folders[0])
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("file.gz", PACKED, md5(PACKED)),
        ("file", CONTENT, "another dataset's"),
        ("file", OTHER[1:], "it has 15 bytes, not 16"),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_a_file_of_another_dataset_is_refused_in_the_folder_of_this_one(
    tmp_path, assert_one_sentence, name, content, reason
):
    path = tmp_path / "unknown" / name
    path.parent.mkdir()
    path.write_bytes(content)
    for data_dir in (tmp_path, tmp_path / "unknown"):
        with pytest.raises(RunError) as error:
            find_or_download(UNKNOWN, search_folders("unknown", data_dir))
        assert_one_sentence(error, path, reason.removeprefix("md5:"))


@pytest.mark.usefixtures("no_network")
def test_the_real_mnist_is_not_taken_for_fashion_mnist_nor_called_damaged(shared_mnist, assert_one_sentence, tmp_path):
    for path in (shared_mnist / "mnist").iterdir():
        (tmp_path / path.name).symlink_to(path)
    with pytest.raises(RunError) as error:
        sources.fashion_mnist_files(tmp_path)
    assert_one_sentence(error, "could not be downloaded", tmp_path / "fashion_mnist")
    assert is_at_hand("mnist", tmp_path)
    assert not is_at_hand("fashion_mnist", tmp_path)
