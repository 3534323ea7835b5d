"""The data a user can name: the paper's datasets, each a few lines on a reader, made-up tasks, and any path.

Dimension letters: `N` examples, `H` and `W` rows and columns of an image, `C` its channels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.config import DataConfig
from auxrnn.data import cache, tasks
from auxrnn.data.cifar import read_cifar10
from auxrnn.data.collect import Observe, Table
from auxrnn.data.examples import Example, Part, Plain, Problems, Source, Understood
from auxrnn.data.fetching import sources
from auxrnn.data.formats import Format
from auxrnn.data.idx import read_idx
from auxrnn.data.images import ImageFormat, to_sequences
from auxrnn.data.paths import find_source
from auxrnn.data.pictures.dogs import dogs_source
from auxrnn.data.pictures.image_folder import ImageOptions
from auxrnn.data.requests import check_options
from auxrnn.data.sequences import NO_LABEL, Flat, Split, Splits, make_encoding
from auxrnn.data.splits import Division
from auxrnn.data.strata import draw_stratified
from auxrnn.data.tables.table import TableOptions, table_source
from auxrnn.data.texts import ZHANG_ALPHABET, TextFormat
from auxrnn.errors import UsageError, nearest
from auxrnn.structs import Draws

TEN_DIGITS = tuple("0123456789")
CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NUM_TEST_DIGITS = 360
DBPEDIA_LENGTH = 1014
BLOCK_EXAMPLES = 1024
TASK_LENGTH = 200
SHORTEST_TASK, LONGEST_TASK = 10, 1_000_000
TASK_DESCRIPTIONS = {
    "adding": "random digits, one in each half written as a letter (a for 0); the class is their sum",
    "recall": "random letters and one question mark in the first half; the class is the letter after it",
    "needle": "random letters and one capital in the first tenth; the class is the capital",
}

Images = UInt8[np.ndarray, "N H W C"]
Labels = Int64[np.ndarray, " N"]


class Dataset(NamedTuple):
    """All examples of a dataset, and what is known of them."""

    name: str
    flat: Flat
    table: Table
    class_names: tuple[str, ...]
    format: Format
    description: str
    skipped: tuple[str, ...]
    num_skipped: int
    checksum: str
    """Of the files and of how they were read: the same data has the same."""

    def make_split(self, rows: Int64[np.ndarray, " M"], form: Format, *, labeled: Int64[np.ndarray, " L"]) -> Split:
        """Give some rows as a network with this format reads them; those not in `labeled` lose their label."""
        label_N = np.where(np.isin(rows, labeled), self.table.label_N[rows], NO_LABEL)
        return Split(self.flat, rows, label_N, make_encoding(form))


def make_splits(dataset: Dataset, division: Division, form: Format) -> Splits:
    """Give the splits as a network with this format reads them; only examples with a label can be tested on."""

    def held_out(rows: Int64[np.ndarray, " M"]) -> Split | None:
        split = dataset.make_split(rows, form, labeled=rows).labeled()
        return split if split.num_examples else None

    train = dataset.make_split(division.train, form, labeled=division.labeled)
    return Splits(train, held_out(division.validation), held_out(division.test))


def load(config: DataConfig, *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Load a dataset by name, downloading what is missing, or the user's own files by path."""
    loaded = cache.load(find_sources(config), observe=observe)
    facts = loaded.facts
    return Dataset(
        name=config.data,
        flat=loaded.flat,
        table=loaded.table,
        class_names=facts.class_names,
        format=facts.format,
        description=facts.description,
        skipped=facts.skipped,
        num_skipped=facts.num_skipped,
        checksum=loaded.checksum,
    )


def find_sources(config: DataConfig) -> list[tuple[Source, Part | None]]:
    """Give all that a config names, each with the part that all its examples belong to."""
    found: list[tuple[Source, Part | None]] = [(find_data(config), None)]
    # The length is that of a made-up task, and files beside it have their own.
    beside = replace(config, length=None)
    if config.test_data is not None:
        found.append((find_source(config.test_data, beside), "test"))
    if config.unlabeled is not None:
        found.append((find_source(config.unlabeled, beside, has_labels=False), "unlabeled"))
    return found


def find_data(config: DataConfig) -> Source:
    """Give the source for a dataset's name or a path; a name wins over a file of that name."""
    name = config.data
    if name in DATASETS:
        return DATASETS[name](config)
    if not Path(name).expanduser().exists():
        raise UsageError(f"{name!r} is neither a dataset nor a path{nearest(name, DATASETS)}")
    return find_source(Path(name).expanduser(), config)


def _find_digits(config: DataConfig) -> Source:
    """Scikit-learn's 1797 digits of 8x8, centered on 14x14 so that a long blank follows what must be remembered."""
    form = _resize(ImageFormat(8, 8, 1, canvas=14), config)

    def read() -> Iterator[Example]:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - it takes a second to import, and only digits need it

        digits = load_digits()
        images_NHWC = np.rint(digits.images[..., None] * (255 / 16)).astype(np.uint8)
        label_N = digits.target.astype(np.int64)
        # The split is part of the dataset: the same whatever the seed of a run.
        rng = Draws(seed=0, phase="digits", step=0).rng("split")
        test_rows = draw_stratified(label_N, num_examples=NUM_TEST_DIGITS, rng=rng)
        train_rows = np.setdiff1d(np.arange(len(label_N)), test_rows)
        yield from _read_images(images_NHWC[train_rows], label_N[train_rows], form, "train")
        yield from _read_images(images_NHWC[test_rows], label_N[test_rows], form, "test")

    return _image_source("digits", (), form, read, num_examples=1797, class_names=TEN_DIGITS)


def _find_mnist(config: DataConfig) -> Source:
    return _idx_source("mnist", ImageFormat(28, 28, 1), config, sources.mnist_files, TEN_DIGITS)


def _find_pmnist(config: DataConfig) -> Source:
    form = ImageFormat(28, 28, 1, permutation=config.permutation)
    return _idx_source("pmnist", form, config, sources.mnist_files, TEN_DIGITS)


def _find_fashion_mnist(config: DataConfig) -> Source:
    return _idx_source(
        "fashion_mnist", ImageFormat(28, 28, 1), config, sources.fashion_mnist_files, sources.FASHION_MNIST_CLASSES
    )


def _idx_source(
    name: str,
    form: ImageFormat,
    config: DataConfig,
    find: Callable[[Path | None], "sources.MnistFiles"],
    class_names: tuple[str, ...],
) -> Source:
    form = _resize(form, config)
    files = find(config.data_dir)

    def read() -> Iterator[Example]:
        pairs: list[tuple[Path, Path, Part]] = [
            (files.train_images, files.train_labels, "train"),
            (files.test_images, files.test_labels, "test"),
        ]
        for images, labels, part in pairs:
            yield from _read_images(read_idx(images)[..., None], read_idx(labels).astype(np.int64), form, part)

    return _image_source(name, files, form, read, num_examples=70_000, class_names=class_names)


def _find_cifar10(config: DataConfig) -> Source:
    form = _resize(ImageFormat(32, 32, 3), config)
    files = sources.cifar10_files(config.data_dir)

    def read() -> Iterator[Example]:
        yield from _read_images(*read_cifar10(files.train), form, "train")
        yield from _read_images(*read_cifar10(files.test), form, "test")

    paths = (*files.train, *files.test)
    return _image_source("cifar10", paths, form, read, num_examples=60_000, class_names=CIFAR10_CLASSES)


def _image_source(
    name: str,
    files: Sequence[Path],
    form: ImageFormat,
    read: Callable[[], Iterator[Example]],
    *,
    num_examples: int,
    class_names: tuple[str, ...],
) -> Source:
    height, width = form.size
    plain: dict[str, Plain] = {"reader": name, **form._asdict()}
    num_bytes = num_examples * form.num_steps * form.channels * (1 if form.image_size is None else 4)
    colors = "gray" if form.channels == 1 else "color"

    def understand(_problems: Problems, _like: Format | None) -> Understood:
        description = f"{colors} images of {width}x{height}, pixel by pixel"
        names = {str(number): class_name for number, class_name in enumerate(class_names)}
        return Understood(description, form, read(), num_examples, num_bytes, names)

    return Source(name, files, plain, understand)


def _read_images(images_NHWC: Images, label_N: Labels, form: ImageFormat, part: Part) -> Iterator[Example]:
    for start in range(0, len(label_N), BLOCK_EXAMPLES):
        x_NTD = to_sequences(images_NHWC[start : start + BLOCK_EXAMPLES], form)
        for offset, x_TD in enumerate(x_NTD):
            row = start + offset
            yield Example(x_TD, str(label_N[row]), f"{part} image {row}", part)


def _resize(form: ImageFormat, config: DataConfig) -> ImageFormat:
    """Add the size a user asks for, which is checked before anything is downloaded."""
    check_options(config, ("image_size", "permutation") if form.permutation else ("image_size",), what=config.data)
    largest = min(form.size)
    if config.image_size is not None and not 1 <= config.image_size <= largest:
        raise UsageError(f"image_size is {config.image_size}; for {config.data} it must be from 1 to {largest}")
    return form._replace(image_size=config.image_size)


def _find_dogs(config: DataConfig) -> Source:
    check_options(config, ("image_size", "enlarge_to"), what="stanford_dogs")
    if config.image_size is None:
        raise UsageError("stanford_dogs has images of many sizes; give --image-size, 40 to 128 in the paper")
    options = ImageOptions(config.image_size, config.enlarge_to)
    return dogs_source("stanford_dogs", sources.dogs_folder(config.data_dir), options)


def _find_dbpedia(config: DataConfig) -> Source:
    """Zhang et al.'s 14 classes: title and text of an article in lower case, at most 1014 characters (section 4.3)."""
    check_options(config, ("tokens",), what="dbpedia")
    files = sources.dbpedia_files(config.data_dir)
    options = TableOptions("2+3", "1", config.tokens, is_lowercase=True, class_names=files.class_names)
    source = table_source("dbpedia", {"train": files.train, "test": files.test}, options)

    def understand(problems: Problems, like: Format | None) -> Understood:
        understood = source.read(problems, like)
        assert isinstance(understood.format, TextFormat)
        alphabet = ZHANG_ALPHABET if config.tokens == "characters" else None
        return understood._replace(format=understood.format._replace(alphabet=alphabet, max_length=DBPEDIA_LENGTH))

    return source._replace(options={**source.options, "preset": "dbpedia"}, read=understand)


def _find_task(config: DataConfig) -> Source:
    """Give a long-memory task, made as it is read."""
    name = config.data
    check_options(config, ("length",), what=name)
    length = TASK_LENGTH if config.length is None else config.length
    if not SHORTEST_TASK <= length <= LONGEST_TASK:
        raise UsageError(f"length is {length}; for {name} it must be from {SHORTEST_TASK} to {LONGEST_TASK:,}")
    # All characters of a task fit a byte, but those of a user's texts beside them may not.
    dtype = np.uint8 if config.unlabeled is None else np.uint32
    num_examples = sum(tasks.NUM_EXAMPLES.values())
    form = TextFormat(alphabet=tasks.TASKS[name].alphabet)

    def understand(_problems: Problems, _like: Format | None) -> Understood:
        examples = tasks.make_examples(name, length, dtype)
        num_bytes = num_examples * length * np.dtype(dtype).itemsize
        class_names = {label: label for label in tasks.TASKS[name].class_names}
        return Understood(TASK_DESCRIPTIONS[name], form, examples, num_examples, num_bytes, class_names)

    options: dict[str, Plain] = {"reader": "task", "version": tasks.VERSION, "task": name, "length": length}
    return Source(name, [], options, understand, is_made=True)


DATASETS: dict[str, Callable[[DataConfig], Source]] = {
    "digits": _find_digits,
    "mnist": _find_mnist,
    "pmnist": _find_pmnist,
    "fashion_mnist": _find_fashion_mnist,
    "cifar10": _find_cifar10,
    "stanford_dogs": _find_dogs,
    "dbpedia": _find_dbpedia,
    "adding": _find_task,
    "recall": _find_task,
    "needle": _find_task,
}
"""Every dataset by name; a new one is one line here."""
