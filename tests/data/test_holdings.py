"""What is said of datasets before they are opened, and whether they are at hand."""

import os

import pytest
from serving import block_network

from auxrnn.data.fetching import published
from auxrnn.data.fetching.facts import DATASET_FACTS
from auxrnn.data.fetching.holdings import HOLDINGS, fetch, is_at_hand
from auxrnn.data.tasks import TASKS
from auxrnn.errors import UsageError


@pytest.fixture
def no_network(monkeypatch):
    block_network(monkeypatch)


def make_file(path, num_bytes):
    """Make a file of this size that takes no space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(num_bytes)


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("mnist", [file.remote.content for file in published.MNIST]),
        ("pmnist", [file.unpacked[0] for file in published.MNIST]),
        ("fashion_mnist", [file.remote.content for file in published.FASHION_MNIST]),
        ("fashion_mnist", [file.unpacked[0] for file in published.FASHION_MNIST]),
        ("cifar10", [published.CIFAR10.content]),
        ("cifar10", published.CIFAR10_MEMBERS),
        ("stanford_dogs", [published.DOGS.images.content, published.DOGS.lists.content]),
        ("dbpedia", [published.DBPEDIA.content]),
        ("dbpedia", published.DBPEDIA_MEMBERS[:2]),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_a_dataset_is_at_hand_when_all_its_files_look_right(tmp_path, name, forms):
    folder = tmp_path / HOLDINGS[name].folder
    for form in forms:
        assert not is_at_hand(name, tmp_path)
        make_file(folder / form.name, form.num_bytes)
    assert is_at_hand(name, tmp_path)
    assert is_at_hand(name, folder)
    os.truncate(folder / forms[0].name, 1)
    is_taken_at_any_size = name == "dbpedia" and len(forms) == 2
    assert is_at_hand(name, tmp_path) == is_taken_at_any_size


def test_unpacked_fashion_mnist_counts_in_its_own_folder_alone(tmp_path):
    for file in published.FASHION_MNIST:
        make_file(tmp_path / file.unpacked[0].name, file.unpacked[0].num_bytes)
    assert not is_at_hand("fashion_mnist", tmp_path)


@pytest.mark.usefixtures("no_network")
def test_digits_are_always_at_hand(tmp_path):
    assert is_at_hand("digits", tmp_path)
    assert (fetch("digits", tmp_path) / "digits.csv.gz").is_file()


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", TASKS)
def test_made_up_tasks_are_always_at_hand(tmp_path, name):
    assert is_at_hand(name, tmp_path)
    assert (fetch(name, tmp_path) / "tasks.py").is_file()


@pytest.mark.parametrize("call", [is_at_hand, fetch])
def test_an_unknown_dataset_is_wrong_usage(call, assert_one_sentence):
    with pytest.raises(UsageError) as error:
        call("mnits")
    assert_one_sentence(error, "'mnits'", "did you mean 'mnist'")


@pytest.mark.usefixtures("no_network")
def test_fetching_what_is_there_gives_its_folder(shared_mnist):
    assert fetch("mnist", shared_mnist) == fetch("pmnist", shared_mnist) == shared_mnist / "mnist"


def test_there_are_facts_of_every_dataset():
    assert list(DATASET_FACTS) == list(HOLDINGS)
    assert {name: facts.name for name, facts in DATASET_FACTS.items()} == {name: name for name in HOLDINGS}
    assert all(text for facts in DATASET_FACTS.values() for text in facts if isinstance(text, str))
    sizes = {name: facts.download_bytes for name, facts in DATASET_FACTS.items()}
    assert sizes["digits"] == 0
    assert sizes["mnist"] == sizes["pmnist"] == 11_594_722
    assert sizes["stanford_dogs"] == 793_579_520 + 481_280
