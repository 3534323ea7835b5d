"""A dataset's files are found where they are, downloaded where they are not, and never used unverified."""

import gzip
import itertools
import os
from pathlib import Path

import pytest
from made_archives import archive_of, files_under, md5, write_parts
from serving import Served, block_network, serving

from auxrnn.data.catalog import DATASETS, fetch
from auxrnn.data.spec import Content, PublishedFile, find_data_folder, get_files, is_at_hand, search_folders
from auxrnn.errors import RunError, UsageError

CONTENT = b"sixteen examples"
PACKED = gzip.compress(CONTENT, mtime=0)
PARTS = {"one.bin": b"first part", "two.bin": b"second part"}
ARCHIVE = archive_of({f"parts/{name}": content for name, content in {"readme.html": b"", **PARTS}.items()})
MEMBERS = tuple(Content(name, len(part), md5(part)) for name, part in PARTS.items())
NOWHERE = "http://example.invalid"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def no_network(monkeypatch):
    block_network(monkeypatch)


def spec_of(*files):
    return DATASETS["mnist"]._replace(name="set", files=files)


def file_spec(url=NOWHERE):
    unpacked = (Content("file", len(CONTENT), md5(CONTENT)),)
    return spec_of(PublishedFile("file.gz", len(PACKED), md5(PACKED), (url,), unpacked))


def archive_spec(url=NOWHERE, content=ARCHIVE, members=MEMBERS):
    return spec_of(PublishedFile("parts.tar.gz", len(content), md5(content), (url,), members, "parts"))


def test_a_missing_file_is_downloaded_once(server, tmp_path, capfd):
    server.files["/file.gz"] = Served(PACKED)
    (path,) = get_files(file_spec(server.url), tmp_path / "data")
    assert path == tmp_path / "data" / "set" / "file.gz"
    assert path.read_bytes() == PACKED
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err
    server.files.clear()
    assert get_files(file_spec(server.url), tmp_path / "data") == [path]


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if spec.files])
@pytest.mark.usefixtures("no_network")
def test_without_network_the_first_missing_file_is_named(tmp_path, assert_one_sentence, name):
    first = DATASETS[name].files[0]
    with pytest.raises(RunError) as error:
        fetch(name, tmp_path)
    assert_one_sentence(error, first.name, *first.urls, "--data-dir")
    assert files_under(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path, assert_one_sentence):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(RunError) as error:
        get_files(file_spec(), tmp_path / "data")
    assert_one_sentence(error, tmp_path / "data" / "set", "file.gz", "--data-dir")


@pytest.mark.parametrize("name", ["set/file.gz", "set/file", "file.gz", "file"])
@pytest.mark.usefixtures("no_network")
def test_a_file_already_there_is_used_packed_or_not(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(PACKED if name.endswith(".gz") else CONTENT)
    assert get_files(file_spec(), tmp_path) == [path]
    assert files_under(tmp_path) == [name]


@pytest.mark.usefixtures("no_network")
def test_of_a_packed_and_an_unpacked_file_the_packed_one_is_read(tmp_path):
    write_parts(tmp_path, {"file": CONTENT, "file.gz": PACKED})
    assert get_files(file_spec(), tmp_path) == [tmp_path / "file.gz"]


@pytest.mark.parametrize("name", ["file.gz", "file"])
def test_another_file_of_that_name_is_refused_in_the_own_folder_and_passed_over_elsewhere(
    server, tmp_path, assert_one_sentence, name
):
    server.files["/file.gz"] = Served(PACKED)
    write_parts(tmp_path / "set", {name: b"damaged"})
    for data_dir in (tmp_path, tmp_path / "set"):
        with pytest.raises(RunError) as error:
            get_files(file_spec(server.url), data_dir)
        assert_one_sentence(error, tmp_path / "set" / name, md5(b"damaged").removeprefix("md5:"))
    (tmp_path / "set" / name).rename(tmp_path / name)
    assert get_files(file_spec(server.url), tmp_path) == [tmp_path / "set" / "file.gz"]
    assert (tmp_path / name).read_bytes() == b"damaged"


def test_an_archive_is_downloaded_and_unpacked_once(server, tmp_path):
    server.files["/parts.tar.gz"] = Served(ARCHIVE)
    paths = get_files(archive_spec(server.url), tmp_path)
    assert [(path.name, path.read_bytes()) for path in paths] == list(PARTS.items())
    assert {path.parent for path in paths} == {tmp_path / "set" / "parts"}
    (tmp_path / "set" / "parts.tar.gz").unlink()
    server.files.clear()
    assert get_files(archive_spec(server.url), tmp_path) == paths


@pytest.mark.parametrize("place", ["", "parts", "set", "set/parts"])
@pytest.mark.usefixtures("no_network")
def test_unpacked_files_already_there_are_used(tmp_path, place):
    write_parts(tmp_path / place, PARTS)
    assert get_files(archive_spec(), tmp_path) == [tmp_path / place / name for name in PARTS]


@pytest.mark.usefixtures("no_network")
def test_an_archive_already_there_is_unpacked_beside_itself(tmp_path):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    assert {path.name: path.read_bytes() for path in get_files(archive_spec(), tmp_path)} == PARTS
    assert files_under(tmp_path) == ["parts.tar.gz", "parts/one.bin", "parts/readme.html", "parts/two.bin"]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [({"one.bin": PARTS["one.bin"]}, "two.bin"), ({**PARTS, "two.bin": b"x"}, "two.bin")],
    ids=["incomplete", "damaged"],
)
@pytest.mark.usefixtures("no_network")
def test_an_incomplete_or_damaged_folder_is_refused(tmp_path, assert_one_sentence, parts, wrong):
    write_parts(tmp_path / "parts", parts)
    with pytest.raises(RunError) as error:
        get_files(archive_spec(), tmp_path)
    assert_one_sentence(error, tmp_path / "parts", wrong)


@pytest.mark.usefixtures("no_network")
def test_a_damaged_archive_leaves_nothing_behind(tmp_path, assert_one_sentence):
    cut = ARCHIVE[: len(ARCHIVE) // 2]
    (tmp_path / "parts.tar.gz").write_bytes(cut)
    with pytest.raises(RunError) as error:
        get_files(archive_spec(content=cut), tmp_path)
    assert_one_sentence(error, tmp_path / "parts.tar.gz", "damaged")
    assert [path.name for path in tmp_path.iterdir()] == ["parts.tar.gz"]


@pytest.mark.usefixtures("no_network")
def test_a_folder_in_the_way_is_named_and_kept(tmp_path, assert_one_sentence):
    (tmp_path / "parts.tar.gz").write_bytes(ARCHIVE)
    write_parts(tmp_path / "parts", {"notes.txt": b"mine"})
    with pytest.raises(RunError) as error:
        get_files(archive_spec(), tmp_path)
    assert_one_sentence(error, tmp_path / "parts", "in the way")
    assert files_under(tmp_path) == ["parts.tar.gz", "parts/notes.txt"]


@pytest.mark.parametrize("place", ["", "stanford_dogs"])
def test_images_without_lists_get_the_lists_beside_them(server, tmp_path, place):
    lists = archive_of(dict.fromkeys(("train_list.mat", "test_list.mat"), b"list"))
    server.files["/lists.tar"] = Served(lists)
    images, published = DATASETS["stanford_dogs"].files
    published = published._replace(num_bytes=len(lists), checksum=md5(lists), mirrors=(server.url,))
    (tmp_path / place / "Images").mkdir(parents=True)
    paths = get_files(DATASETS["stanford_dogs"]._replace(files=(images, published)), tmp_path)
    names = ("Images", "lists/train_list.mat", "lists/test_list.mat")
    assert paths == [tmp_path / place / name for name in names]


@pytest.mark.usefixtures("no_network")
def test_a_users_own_tables_of_dbpedia_are_taken_as_they_are(tmp_path, assert_one_sentence):
    write_parts(tmp_path / "dbpedia_csv", {"train.csv": b"mine"})
    with pytest.raises(RunError) as error:
        fetch("dbpedia", tmp_path)
    assert_one_sentence(error, tmp_path / "dbpedia_csv", "no test.csv")
    write_parts(tmp_path / "dbpedia_csv", {"test.csv": b"mine"})
    assert is_at_hand(DATASETS["dbpedia"], tmp_path)
    assert fetch("dbpedia", tmp_path) == tmp_path / "dbpedia_csv"


def make_file(path, num_bytes):
    """Make a file of this size that takes no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(num_bytes or 0)


@pytest.mark.parametrize(
    ("name", "is_packed"),
    [("fashion_mnist", True), *itertools.product(["mnist", "pmnist", "cifar10", "dbpedia"], [True, False])],
)
@pytest.mark.usefixtures("no_network")
def test_a_dataset_is_at_hand_when_all_its_files_look_right(tmp_path, name, is_packed):
    spec = DATASETS[name]
    folder = search_folders(spec, tmp_path)[1][0]
    forms = spec.files if is_packed else [content for file in spec.files for content in file.unpacked]
    for form in forms:
        assert not is_at_hand(spec, tmp_path)
        make_file(folder / form.name, form.num_bytes)
    assert is_at_hand(spec, tmp_path)
    assert is_at_hand(spec, folder)
    os.truncate(folder / forms[0].name, 1)
    is_taken_at_any_size = name == "dbpedia" and not is_packed
    assert is_at_hand(spec, tmp_path) == is_taken_at_any_size


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if not spec.files])
@pytest.mark.usefixtures("no_network")
def test_what_needs_no_files_is_always_at_hand(tmp_path, name):
    assert is_at_hand(DATASETS[name], tmp_path)
    assert fetch(name, tmp_path) is None


def test_an_unknown_dataset_is_wrong_usage(assert_one_sentence):
    with pytest.raises(UsageError) as error:
        fetch("mnits")
    assert_one_sentence(error, "'mnits'", "did you mean 'mnist'")


def test_the_data_folder_is_the_argument_then_the_variable_then_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AUXRNN_DATA_DIR", str(tmp_path / "named"))
    assert find_data_folder(tmp_path) == tmp_path
    assert find_data_folder() == tmp_path / "named"
    monkeypatch.setenv("AUXRNN_DATA_DIR", "")
    assert find_data_folder() == tmp_path / "cache" / "auxrnn"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert find_data_folder() == Path("~/.cache/auxrnn").expanduser()


@pytest.mark.usefixtures("no_network")
def test_the_real_mnist_has_the_published_checksums(shared_mnist, tmp_path):
    files = get_files(DATASETS["mnist"], shared_mnist)
    assert fetch("mnist", shared_mnist) == fetch("pmnist", shared_mnist / "mnist") == shared_mnist / "mnist"
    for path in files:
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    assert [path.parent for path in get_files(DATASETS["mnist"], tmp_path)] == [tmp_path] * 4
    assert not is_at_hand(DATASETS["fashion_mnist"], tmp_path)
    with pytest.raises(RunError, match="could not be downloaded"):
        fetch("fashion_mnist", tmp_path)


@pytest.mark.parametrize("folder", ["", "mnist"])
@pytest.mark.usefixtures("no_network")
def test_mnist_packed_by_somebody_else_is_taken_by_its_content(shared_mnist, tmp_path, folder):
    files = get_files(DATASETS["mnist"], shared_mnist)
    parts = {path.name: gzip.compress(gzip.decompress(path.read_bytes()), 1, mtime=7) for path in files}
    write_parts(tmp_path / folder, parts)
    assert get_files(DATASETS["mnist"], tmp_path) == [tmp_path / folder / name for name in parts]
    assert is_at_hand(DATASETS["mnist"], tmp_path)


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.usefixtures("no_network")
def test_fashion_mnist_is_taken_by_its_sizes_and_said_to_be_unverified(tmp_path, caplog, is_packed):
    contents = [content for file in DATASETS["fashion_mnist"].files for content in file.unpacked]
    pack = {True: gzip.compress, False: bytes}[is_packed]
    suffix = ".gz" if is_packed else ""
    parts = {f"{content.name}{suffix}": pack(b"\3" * content.num_bytes) for content in contents}
    write_parts(tmp_path, parts)
    assert [path.name for path in get_files(DATASETS["fashion_mnist"], tmp_path)] == list(parts)
    assert caplog.text.count("not verified") == 4


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.usefixtures("no_network")
def test_the_digits_of_mnist_are_never_taken_for_clothes(shared_mnist, tmp_path, is_packed):
    for path in get_files(DATASETS["mnist"], shared_mnist):
        content = gzip.decompress(path.read_bytes())
        name, content = (path.name, gzip.compress(content, 1)) if is_packed else (path.stem, content)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(RunError, match="could not be downloaded"):
        get_files(DATASETS["fashion_mnist"], tmp_path)


@pytest.mark.usefixtures("no_network")
def test_nobody_is_told_to_delete_a_file(tmp_path):
    write_parts(tmp_path / "set", {"file.gz": PACKED[:-9]})
    with pytest.raises(RunError, match="move it away") as error:
        get_files(file_spec(), tmp_path)
    assert "delete it" not in str(error.value)


def test_there_are_facts_of_every_dataset():
    for name, spec in DATASETS.items():
        plain = spec.describe()
        assert plain["name"] == name
        assert all(value for key, value in plain.items() if key != "download_bytes")
    sizes = {name: spec.download_bytes for name, spec in DATASETS.items()}
    assert sizes["digits"] == 0
    assert sizes["mnist"] == sizes["pmnist"] == 11_594_722
    assert sizes["stanford_dogs"] == 793_579_520 + 481_280
