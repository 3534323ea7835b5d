"""What is known of each dataset that has a name, without opening it."""

from typing import NamedTuple

from auxrnn.data.fetching.published import CIFAR10, DBPEDIA, DOGS, FASHION_MNIST, MNIST
from auxrnn.data.fetching.remote_files import RemoteFile
from auxrnn.data.tasks import NUM_EXAMPLES, TASKS


class DatasetFacts(NamedTuple):
    """What a user wants to know of a dataset before getting it."""

    name: str
    title: str
    lengths: str
    """How many steps its sequences have, in words."""
    num_classes: int
    train_examples: int
    test_examples: int
    download_bytes: int
    """0 for what comes with the program, or is made by it."""
    license: str
    """As usually quoted; "research" means for research alone, citing the authors, "made up" that there is none."""
    needs: str
    """What a step is: "pixels" or "characters"."""
    citation: str


def _size_of(*remotes: RemoteFile) -> int:
    return sum(remote.num_bytes or 0 for remote in remotes)


def _task(name: str, title: str, citation: str) -> DatasetFacts:
    return DatasetFacts(
        name=name,
        title=title,
        lengths="200 or any",
        num_classes=len(TASKS[name].class_names),
        train_examples=NUM_EXAMPLES["train"],
        test_examples=NUM_EXAMPLES["test"],
        download_bytes=0,
        license="made up",
        needs="characters",
        citation=citation,
    )


_FACTS = (
    DatasetFacts(
        name="digits",
        title="handwritten digits of 8x8 pixels, bundled with scikit-learn",
        lengths="196",
        num_classes=10,
        train_examples=1_437,
        test_examples=360,
        download_bytes=0,
        license="CC BY 4.0",
        needs="pixels",
        citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Repository, 1998",
    ),
    DatasetFacts(
        name="mnist",
        title="MNIST, handwritten digits of 28x28 pixels",
        lengths="784",
        num_classes=10,
        train_examples=60_000,
        test_examples=10_000,
        download_bytes=_size_of(*(file.remote for file in MNIST)),
        license="CC BY-SA 3.0",
        needs="pixels",
        citation="LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document Recognition, 1998",
    ),
    DatasetFacts(
        name="pmnist",
        title="MNIST with its pixels in one fixed, shuffled order",
        lengths="784",
        num_classes=10,
        train_examples=60_000,
        test_examples=10_000,
        download_bytes=_size_of(*(file.remote for file in MNIST)),
        license="CC BY-SA 3.0",
        needs="pixels",
        citation="Le, Jaitly and Hinton, A Simple Way to Initialize Recurrent Networks of Rectified Linear Units, 2015",
    ),
    DatasetFacts(
        name="fashion_mnist",
        title="Fashion-MNIST, articles of clothing of 28x28 pixels",
        lengths="784",
        num_classes=10,
        train_examples=60_000,
        test_examples=10_000,
        download_bytes=_size_of(*(file.remote for file in FASHION_MNIST)),
        license="MIT",
        needs="pixels",
        citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
    ),
    DatasetFacts(
        name="cifar10",
        title="CIFAR-10, color photographs of 32x32 pixels",
        lengths="1,024",
        num_classes=10,
        train_examples=50_000,
        test_examples=10_000,
        download_bytes=_size_of(CIFAR10),
        license="research",
        needs="pixels",
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    ),
    DatasetFacts(
        name="stanford_dogs",
        title="Stanford Dogs, color photographs of dogs by breed, at any size",
        lengths="1,600 to 16,384",
        num_classes=DOGS.num_breeds,
        train_examples=DOGS.num_train,
        test_examples=DOGS.num_test,
        download_bytes=_size_of(DOGS.images, DOGS.lists),
        license="research",
        needs="pixels",
        citation="Khosla, Jayadevaprakash, Yao and Fei-Fei, Novel Dataset for Fine-Grained Image Categorization, 2011",
    ),
    DatasetFacts(
        name="dbpedia",
        title="DBpedia, titles and first lines of articles by what they describe",
        lengths="up to 1,014",
        num_classes=14,
        train_examples=560_000,
        test_examples=70_000,
        download_bytes=_size_of(DBPEDIA),
        license="CC BY-SA, GFDL",
        needs="characters",
        citation="Zhang, Zhao and LeCun, Character-Level Convolutional Networks for Text Classification, 2015",
    ),
    _task(
        "adding",
        "the sum of two marked digits, one in each half of the sequence",
        "after Hochreiter and Schmidhuber, Long Short-Term Memory, 1997 (experiment 4, with digits)",
    ),
    _task(
        "recall",
        "the letter after the only question mark, which stands in the first half",
        "after Graves, Wayne and Danihelka, Neural Turing Machines, arXiv:1410.5401, 2014 (associative recall)",
    ),
    _task(
        "needle",
        "the only capital among letters, which stands in the first tenth",
        "after Hochreiter and Schmidhuber, Long Short-Term Memory, 1997 (experiment 2, with a place that varies)",
    ),
)
DATASET_FACTS: dict[str, DatasetFacts] = {facts.name: facts for facts in _FACTS}
"""All datasets by name, in the order in which they are listed."""
