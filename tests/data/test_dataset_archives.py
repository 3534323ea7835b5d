"""DBpedia and Stanford Dogs: a user's part of them is taken as it is, and what is downloaded is checked and counted."""

import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from made_archives import archive_of, files_under, md5, write_parts
from serving import Served, block_network, serving

from auxrnn.data.fetching import sources
from auxrnn.data.fetching.dogs_archives import find_or_unpack_dogs
from auxrnn.data.fetching.holdings import fetch, is_at_hand
from auxrnn.data.fetching.published import DogsArchives
from auxrnn.data.fetching.remote_files import Content, RemoteFile
from auxrnn.data.fetching.sources import find_or_unpack_tables, search_folders
from auxrnn.errors import RunError


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def no_network(monkeypatch):
    block_network(monkeypatch)


TABLES = {"train.csv": b'1,"a","b"\n', "test.csv": b'2,"c","d"\n'}
TABLE_ARCHIVE = archive_of({f"dbpedia_csv/{name}": part for name, part in {**TABLES, "classes.txt": b"A\nB\n"}.items()})
TABLE_MEMBERS = [*(Content(name, len(part), md5(part)) for name, part in TABLES.items()), Content("classes.txt")]


def table_archive(url="http://example.invalid", content=TABLE_ARCHIVE):
    return RemoteFile(f"{url}/dbpedia_csv.tgz", md5(content))


@pytest.mark.parametrize("place", ["", "dbpedia", "dbpedia_csv", "dbpedia/dbpedia_csv"])
@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.usefixtures("no_network")
def test_tables_already_there_are_taken_as_they_are(tmp_path, place, has_names):
    folder = tmp_path / place
    names = ["train.csv", "test.csv", *(["classes.txt"] if has_names else [])]
    write_parts(folder, dict.fromkeys(names, b"a part of it"))
    files = sources.dbpedia_files(tmp_path)
    assert files == (folder / "train.csv", folder / "test.csv", folder / "classes.txt" if has_names else None)
    assert is_at_hand("dbpedia", tmp_path)
    assert fetch("dbpedia", tmp_path) == folder


@pytest.mark.parametrize("alone", ["train.csv", "test.csv"])
@pytest.mark.usefixtures("no_network")
def test_a_table_without_the_other_is_refused(tmp_path, assert_one_sentence, alone):
    write_parts(tmp_path, {alone: b"x"})
    with pytest.raises(RunError) as error:
        sources.dbpedia_files(tmp_path)
    assert_one_sentence(error, tmp_path, f"holds {alone} but no", "put it there")


def test_tables_are_downloaded_and_unpacked_once(server, tmp_path):
    served = server.files["/dbpedia_csv.tgz"] = Served(TABLE_ARCHIVE)
    folders = search_folders("dbpedia", tmp_path)
    files = find_or_unpack_tables(table_archive(server.url), TABLE_MEMBERS, folders)
    folder = tmp_path / "dbpedia" / "dbpedia_csv"
    assert files == (folder / "train.csv", folder / "test.csv", folder / "classes.txt")
    assert {path.name: path.read_bytes() for path in files} == {**TABLES, "classes.txt": b"A\nB\n"}
    assert find_or_unpack_tables(table_archive(server.url), TABLE_MEMBERS, folders) == files
    assert len(served.asked) == 1
    assert sorted(path.name for path in (tmp_path / "dbpedia").iterdir()) == ["dbpedia_csv", "dbpedia_csv.tgz"]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [({"train.csv": b"x"}, "another train.csv"), ({"train.csv": TABLES["train.csv"]}, "no test.csv")],
    ids=["another train.csv", "no test.csv"],
)
def test_an_archive_of_other_tables_is_refused_and_leaves_none(server, tmp_path, assert_one_sentence, parts, reason):
    content = archive_of({f"dbpedia_csv/{name}": part for name, part in parts.items()})
    server.files["/dbpedia_csv.tgz"] = Served(content)
    with pytest.raises(RunError) as error:
        find_or_unpack_tables(
            table_archive(server.url, content), TABLE_MEMBERS, search_folders("dbpedia", tmp_path / "data")
        )
    assert_one_sentence(error, tmp_path / "data" / "dbpedia" / "dbpedia_csv.tgz", reason)
    assert files_under(tmp_path / "data") == ["dbpedia/dbpedia_csv.tgz"]


def mat_of(num_entries):
    buffer = io.BytesIO()
    entries = np.array([[f"n01-a/{index}.jpg"] for index in range(num_entries)], dtype=object)
    scipy.io.savemat(buffer, {"file_list": entries, "labels": np.ones((num_entries, 1))})
    return buffer.getvalue()


IMAGES = {f"Images/n0{breed}-dog/{index}.jpg": b"image" for breed in range(3) for index in range(4)}
COMPANIONS = {"Images/._n00-dog": b"", "Images/n00-dog/._0.jpg": b""}
LISTS = {"file_list.mat": mat_of(12), "train_list.mat": mat_of(8), "test_list.mat": mat_of(4)}


def dogs_archives(url="http://example.invalid", images=None, lists=None, **counts):
    contents = {
        "/images.tar": archive_of({**COMPANIONS, **(images or IMAGES)}),
        "/lists.tar": archive_of(lists or LISTS),
    }
    remotes = [RemoteFile(url + name, md5(content)) for name, content in contents.items()]
    counts = {"num_breeds": 3, "num_images": 12, "num_train": 8, "num_test": 4, **counts}
    return DogsArchives(*remotes, **counts), {name: Served(content) for name, content in contents.items()}


@pytest.mark.parametrize("place", ["", "stanford_dogs"])
@pytest.mark.usefixtures("no_network")
def test_some_breeds_with_their_lists_are_taken_as_they_are(tmp_path, place):
    folder = tmp_path / place
    write_parts(folder / "lists", {"train_list.mat": b"mine", "test_list.mat": b"mine"})
    (folder / "Images").mkdir()
    assert sources.dogs_folder(tmp_path) == folder
    assert is_at_hand("stanford_dogs", tmp_path)
    assert fetch("stanford_dogs", tmp_path) == folder


def test_dogs_are_downloaded_and_unpacked_once(server, tmp_path):
    dogs, served = dogs_archives(server.url)
    server.files.update(served)
    told = []
    folders = search_folders("stanford_dogs", tmp_path)
    folder = find_or_unpack_dogs(dogs, folders, observe=lambda name, _done, _total: told.append(name))
    assert folder == tmp_path / "stanford_dogs"
    unpacked = [*IMAGES, *(f"lists/{name}" for name in LISTS)]
    assert set(files_under(folder)) >= {*unpacked, "images.tar", "lists.tar"}
    assert dict.fromkeys(told) == {"images.tar": None, "lists.tar": None}
    server.files.clear()
    assert find_or_unpack_dogs(dogs, folders) == folder


@pytest.mark.parametrize("place", ["", "stanford_dogs"])
def test_all_images_without_lists_get_the_lists_alone(server, tmp_path, place):
    dogs, served = dogs_archives(server.url)
    server.files["/lists.tar"] = served["/lists.tar"]
    for name, content in IMAGES.items():
        write_parts((tmp_path / place / name).parent, {Path(name).name: content})
    assert find_or_unpack_dogs(dogs, search_folders("stanford_dogs", tmp_path)) == tmp_path / place


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"num_images": 13}, ("images.tar", "12 images of 3 breeds, not 13 of 3")),
        ({"num_breeds": 4}, ("images.tar", "12 images of 3 breeds, not 12 of 4")),
        ({"num_train": 9}, ("train_list.mat", "lists.tar", "8 readable entries, not 9")),
        ({"num_test": 3}, ("test_list.mat", "lists.tar", "4 readable entries, not 3")),
        ({"lists": {**LISTS, "test_list.mat": b"damaged"}}, ("test_list.mat", "lists.tar", "0 readable entries")),
        ({"lists": {"train_list.mat": mat_of(8)}}, ("test_list.mat", "lists.tar", "0 readable entries")),
        ({"images": {"a/b.jpg": b""}}, ("images.tar", "0 images")),
    ],
)
def test_archives_with_other_dogs_are_refused_and_not_unpacked(server, tmp_path, assert_one_sentence, wrong, what):
    dogs, served = dogs_archives(server.url, **wrong)
    server.files.update(served)
    with pytest.raises(RunError) as error:
        find_or_unpack_dogs(dogs, search_folders("stanford_dogs", tmp_path))
    assert_one_sentence(error, *what)
    refused = "Images" if "images.tar" in what[0] else "lists"
    assert not (tmp_path / "stanford_dogs" / refused).exists()
    assert [path.name for path in (tmp_path / "stanford_dogs").glob(".*")] == []


@pytest.mark.usefixtures("no_network")
def test_some_images_without_lists_are_refused_and_kept(tmp_path, assert_one_sentence):
    dogs, _ = dogs_archives()
    write_parts(tmp_path / "stanford_dogs" / "Images" / "n01-dog", {"mine.jpg": b""})
    with pytest.raises(RunError) as error:
        find_or_unpack_dogs(dogs, search_folders("stanford_dogs", tmp_path))
    assert_one_sentence(error, tmp_path / "stanford_dogs" / "Images", "1 images of 1 breeds", "put the lists beside it")
    assert files_under(tmp_path) == ["stanford_dogs/Images/n01-dog/mine.jpg"]
