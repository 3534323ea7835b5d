"""Loading data: examples are read once into flat arrays in the cache, which are mapped into memory from then on.

An entry of the cache is a folder named by the checksum of its sources and settings. It is written under another name,
with a lock, and renamed when it is complete, so that every entry is whole. Entries never change; they hold checksums of
their files, and one that is damaged all the same is made anew.
Dimension letters: `N` examples, `K` steps of all sequences together.
"""

import hashlib
import json
import logging
import re
import shutil
import sys
from array import array
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple, get_args

import numpy as np
from jaxtyping import Float32, Int8, Int64

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Part, Problems, Source, Understood
from auxrnn.data.formats import Format, check_numbers, from_plain, to_plain
from auxrnn.data.sequences import NO_LABEL, Flat
from auxrnn.data.sources import find_sources
from auxrnn.errors import RunError, UsageError
from auxrnn.files import (
    CACHE_DIR_VARIABLE,
    cache_dir,
    checksum_files,
    checksum_together,
    describe_bytes,
    find_appearance,
    find_checksum,
    find_cure,
    flush,
    locked,
    read_checked,
    read_sums,
    write_sums,
)

CACHE_FORMAT = 1
"""Incremented when the output of readers or the layout of entries changes; run folders know their data by the key."""
VALUES = "values.bin"
BUFFER_BYTES = 2**22
BLOCK_VALUES = 2**20
SPARE_BYTES = 2**27
PARTS: tuple[Part, ...] = get_args(Part)
NO_PART = -1
MOST_NAMED = 3
MOST_SINGLE = 10
"""So many examples, each with a label of its own, are no set of classes."""
FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+(e[+-]?[0-9]+)?", re.IGNORECASE)
FILL_IN = "fill it in, or give --missing mask"

Observe = Callable[[int, int | None], None]
"""Called with the number of examples read so far, and of all (None: unknown)."""

logger = logging.getLogger(__name__)


class Table(NamedTuple):
    """What is known of each example beside its steps."""

    begin_N1: Int64[np.ndarray, " N1"]
    label_N: Int64[np.ndarray, " N"]
    part_N: Int8[np.ndarray, " N"]
    """Index in `PARTS` of the split that the files put it in, or `NO_PART`."""
    origin_N: Int64[np.ndarray, " N"]
    """Row of the picture that it is a crop of; its own row otherwise."""


class Facts(NamedTuple):
    """What is known about the whole: plain values that are kept beside the arrays."""

    description: str
    format: Format
    class_names: tuple[str, ...]
    dtype: str
    num_features: int | None
    """Features of a step; None if a step is one token."""
    num_skipped: int
    skipped: tuple[str, ...]
    num_missing: int = 0
    """Values that are NaN, and how many sequences have some."""
    num_gappy: int = 0

    def describe_missing(self) -> str:
        """Return how many values are missing, and what is done about it; empty if none is."""
        found = f"missing values: {self.num_missing:,}, in {self.num_gappy:,} sequences"
        done = "each takes the mean of its channel, and one more channel for each says what is there"
        return f"{found}; {done}" if self.num_missing else ""

    def describe_skipped(self) -> str:
        """Return how many examples were skipped, with the first of them; empty if none was."""
        named, more = list(self.skipped[:MOST_NAMED]), self.num_skipped - MOST_NAMED
        named += [f"and {more:,} more"] if more > 0 else []
        return f"{self.num_skipped:,} skipped: {', '.join(named)}" if named else ""


class Dataset(NamedTuple):
    """All examples of some sources, and what is known of them."""

    name: str
    flat: Flat
    table: Table
    facts: Facts
    checksum: str
    """Of the files and of how they were read: the same data has the same."""
    weight_N: Float32[np.ndarray, " N"] | None = None
    """How much each example counts in the supervised loss of training; None: all alike."""


def load(config: DataConfig, *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Load a dataset by name, downloading what is missing, or the user's own files by path."""
    return load_sources(find_sources(config), observe=observe)


def load_sources(sources: Sequence[Source], *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Return the examples of some sources, mapped from the cache; the first time they are read and put there."""
    files = [file for source in sources for file in source.files]
    root, name, appearance = cache_dir(), sources[0].name, find_appearance(files)
    checksum = find_key(sources, checksum_files(files, appearance=appearance) if files else "")
    folder, lock = root / checksum, root / f"{checksum}.lock"
    try:
        # A lock that a killed process left goes when it is taken and released.
        if not lock.exists() and (dataset := _open(name, folder)) is not None:
            return dataset
        root.mkdir(parents=True, exist_ok=True)
        with locked(lock, waiting_for=f"reading {name}"):
            if (dataset := _open(name, folder)) is None:
                if folder.is_dir():
                    logger.warning("%s is damaged, or of an earlier version; reading the data again", folder)
                _build(sources, folder, appearance, observe)
                dataset = _open(name, folder)
    except OSError as error:
        if error.filename is not None and not str(error.filename).startswith(str(root)):
            raise RunError(f"{error.filename} cannot be read ({error.strerror}); check that it is there") from error
        cure = f"{find_cure(error)} or let {CACHE_DIR_VARIABLE} name another folder"
        raise RunError(f"cannot write {root} ({error.strerror}); {cure}") from error
    if dataset is None:
        raise RunError(f"{folder} is damaged as soon as it is written; let {CACHE_DIR_VARIABLE} name another disk")
    return dataset


def find_key(sources: Sequence[Source], checksum: str) -> str:
    """Return the checksum of the contents of the files and of how they are read."""
    options = [{**source.options, "part": source.part} for source in sources]
    text = json.dumps([CACHE_FORMAT, checksum, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _build(sources: Sequence[Source], folder: Path, appearance: str, observe: Observe) -> None:
    """Make an entry from files that had this appearance when their checksum was computed."""
    aside, problems = folder.with_name(f".{folder.name}"), Problems()
    # Left by a process that was killed: we hold the lock.
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        opened = open_sources(sources, problems)
        _check_space(sources[0].name, sum(understood.num_bytes for understood in opened), folder.parent)
        with (aside / VALUES).open("wb", buffering=BUFFER_BYTES) as file:
            table, facts = collect(sources, opened, file, problems=problems, observe=observe)
        _write(aside, table, _narrow(aside / VALUES, facts))
        if find_appearance([file for source in sources for file in source.files]) != appearance:
            raise RunError(f"{sources[0].name} changed while it was read; run again")
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_space(name: str, num_bytes: int, root: Path) -> None:
    """Log how much space the values will take, and refuse if there is less."""
    free = shutil.disk_usage(root).free
    logger.info("reading %s; the decoded data takes up to %s in %s", name, describe_bytes(num_bytes), root)
    if num_bytes + SPARE_BYTES > free:
        needed = f"{describe_bytes(num_bytes)} and a reserve of {describe_bytes(SPARE_BYTES)}"
        found = f"needs {needed} in {root}, where {describe_bytes(free)} are free"
        cure = f"free some space or let {CACHE_DIR_VARIABLE} name a folder on another disk"
        raise RunError(f"{name} {found}; {cure}")


def _narrow(path: Path, facts: Facts) -> Facts:
    """Rewrite code points in the smallest type that holds them all."""
    if np.dtype(facts.dtype) != np.uint32:
        return facts
    wide_K = np.memmap(path, dtype=facts.dtype, mode="r")
    blocks = range(0, len(wide_K), BLOCK_VALUES)
    dtype = np.min_scalar_type(max(int(wide_K[start : start + BLOCK_VALUES].max()) for start in blocks))
    # In place, so that no more space is needed than announced: writing stays behind reading.
    with path.open("r+b") as file:
        for start in blocks:
            file.write(wide_K[start : start + BLOCK_VALUES].astype(dtype).tobytes())
        file.truncate()
    return facts._replace(dtype=dtype.str)


def _write(folder: Path, table: Table, facts: Facts) -> None:
    for name, values in table._asdict().items():
        np.save(folder / f"{name}.npy", values)
    plain = facts._asdict() | {"format": to_plain(facts.format)}
    (folder / "facts.json").write_text(json.dumps(plain, indent=1) + "\n")
    sums = {path.name: find_checksum(path) for path in sorted(folder.iterdir()) if path.name != VALUES}
    write_sums(folder, sums | {VALUES: checksum_together([folder / VALUES])})
    for path in (*folder.iterdir(), folder):
        flush(path)


def _open(name: str, folder: Path) -> Dataset | None:
    """Map an entry into memory; None if there is none, or if it is not whole."""
    if not folder.is_dir():
        return None
    try:
        # The values may be large: their checksum is remembered for as long as their file looks the same.
        sums = read_sums(folder)
        if VALUES not in sums or sums[VALUES] != checksum_files([folder / VALUES]):
            return None
        values = json.loads(read_checked(folder / "facts.json"))
        form, names, skipped = from_plain(values["format"]), tuple(values["class_names"]), tuple(values["skipped"])
        facts = Facts(**values | {"format": form, "class_names": names, "skipped": skipped})
        table = Table(*(np.load(BytesIO(read_checked(folder / f"{field}.npy"))) for field in Table._fields))
        # A plain view: slices of numpy's own class for mapped files cost many times as much.
        value_K = np.asarray(np.memmap(folder / VALUES, dtype=facts.dtype, mode="r"))
    except (RunError, OSError, ValueError, LookupError, TypeError):
        return None
    if facts.num_features is not None:
        value_K = value_K.reshape(-1, facts.num_features)
    return Dataset(name, Flat(value_K, table.begin_N1), table, facts, folder.name)


def open_sources(sources: Sequence[Source], problems: Problems) -> list[Understood]:
    """Open all sources; the first determines the format of all."""
    first = sources[0].read(problems, None)
    return [first, *(source.read(problems, first.format) for source in sources[1:])]


def collect(
    sources: Sequence[Source],
    opened: Sequence[Understood],
    file: BinaryIO,
    *,
    problems: Problems,
    observe: Observe = lambda _done, _total: None,
) -> tuple[Table, Facts]:
    """Read all examples of some sources that were opened; their values go to the file."""
    may_miss = all(source.options.get("missing") != "refuse" for source in sources)
    collector = Collector(file, problems, may_miss=may_miss)
    for source, understood in zip(sources, opened, strict=True):
        if source.part == "test" and PARTS.index("test") in collector.parts:
            raise UsageError(f"{sources[0].name} has a test split of its own; remove --test-data")
        done = len(collector.labels)
        total = None if understood.num_examples is None else done + understood.num_examples
        for number, example in enumerate(understood.examples, start=1):
            label = None if source.part == "unlabeled" else example.label
            collector.add(example._replace(part=source.part or example.part, label=label))
            if number % 64 == 0:
                observe(done + number, total)
    order = _order_classes(collector, opened[0])
    table = collector.table(order)
    _check(sources[0].name, collector, table, order, opened[0].label_cure)
    names = opened[0].class_names or {}
    first = np.zeros(0, dtype=np.uint8) if collector.first_value is None else collector.first_value
    return table, Facts(
        description=opened[0].description,
        format=opened[0].format,
        class_names=tuple(names.get(label, label) for label in order),
        dtype=first.dtype.str,
        num_features=first.shape[1] if first.ndim == 2 else None,
        num_skipped=problems.num_skipped,
        skipped=tuple(problems.skipped),
        num_missing=collector.num_missing,
        num_gappy=collector.num_gappy,
    )


class Collector:
    """Takes examples one by one: their values go to a file, the rest stays in memory."""

    def __init__(self, file: BinaryIO, problems: Problems, *, may_miss: bool = True) -> None:
        self.file, self.problems, self.may_miss = file, problems, may_miss
        self.num_missing = self.num_gappy = 0
        self.begins, self.parts, self.origins = array("q", [0]), array("b"), array("q")
        self.labels: list[str | None] = []
        self.first_place: dict[str, str] = {}
        """Where each label was first found."""
        self.first_value: np.ndarray | None = None
        self.full_place = ""

    def add(self, example: Example) -> None:
        """Add one example, or report what is wrong with it."""
        with self.problems.at(example.place):
            check_numbers(example, may_miss=self.may_miss, cure=FILL_IN)
            self._add(example)

    def _add(self, example: Example) -> None:
        value_T = example.value_T
        first = value_T if self.first_value is None else self.first_value
        if not len(value_T):
            self.problems.skip(example.place, "is empty")
            return
        if value_T.shape[1:] != first.shape[1:]:
            what = f"has {value_T.shape[-1]} channels where the first example has {first.shape[-1]}"
            self.problems.refuse(example.place, what, "give all examples the same channels")
            return
        self.first_value = first
        num_missing = int(np.isnan(value_T).sum()) if value_T.dtype.kind == "f" else 0
        self.num_missing, self.num_gappy = self.num_missing + num_missing, self.num_gappy + (num_missing > 0)
        self.file.write(np.ascontiguousarray(value_T, dtype=first.dtype).data)
        is_crop = example.origin is not None and example.origin == self.full_place
        self.full_place = self.full_place if is_crop else example.place
        self.origins.append(self.origins[-1] if is_crop else len(self.labels))
        self.begins.append(self.begins[-1] + len(value_T))
        self.parts.append(NO_PART if example.part is None else PARTS.index(example.part))
        # One string per class instead of one per example.
        self.labels.append(None if example.label is None else sys.intern(example.label))
        if example.label is not None:
            self.first_place.setdefault(example.label, example.place)

    def table(self, order: Sequence[str]) -> Table:
        """Return what was kept, with classes numbered in the given order of their labels."""
        number_of: dict[str | None, int] = {label: number for number, label in enumerate(order)}
        label_N = np.array([number_of.get(label, NO_LABEL) for label in self.labels], dtype=np.int64)
        parts, origins = np.array(self.parts, dtype=np.int8), np.array(self.origins, dtype=np.int64)
        return Table(np.array(self.begins, dtype=np.int64), label_N, parts, origins)


def _order_classes(collector: Collector, understood: Understood) -> list[str]:
    """Order labels as the files do, otherwise by value if all are whole numbers, otherwise alphabetically."""
    places, names = collector.first_place, understood.class_names
    if names is not None:
        for label in [label for label in places if label not in names]:
            what, cure = f"has the label {label!r}, which has no class name", f"known are {', '.join([*names][:20])}"
            collector.problems.refuse(places[label], what, cure)
        return [label for label in names if label in places]
    try:
        return sorted(places, key=int)
    except ValueError:
        return sorted(places)


def _check(name: str, collector: Collector, table: Table, order: Sequence[str], cure: str) -> None:
    """Refuse data that cannot be trained on."""
    problems = collector.problems
    if not len(table.label_N):
        problems.refuse(name, "holds no examples", "give at least a few for each class")
        return
    is_train = np.isin(table.part_N, [NO_PART, PARTS.index("train")])
    trained = set(table.label_N[is_train & (table.label_N != NO_LABEL)].tolist())
    for number, label in enumerate(order):
        if number not in trained:
            what = f"has the label {label!r}, which no training example has"
            add = "add training examples of that class or take it out of the other splits"
            problems.refuse(collector.first_place[label], what, add)
    num_labeled = int((is_train & (table.label_N != NO_LABEL)).sum())
    if len(trained) < 2:
        found = "no labels" if not trained else f"the single class {order[min(trained)]!r}"
        what = f"has {found} in its training examples"
        problems.refuse(name, what, "; ".join(filter(None, ["classification needs at least two classes", cure])))
    elif num_labeled >= MOST_SINGLE and _are_no_classes(
        order, num_labeled, has_test=PARTS.index("test") in table.part_N
    ):
        what = f"has {len(trained):,} different labels in {num_labeled:,} training examples"
        problems.refuse(name, what, cure or "give several examples of each class")


def _are_no_classes(order: Sequence[str], num_labeled: int, *, has_test: bool) -> bool:
    """Return whether labels are names of examples, of which none is left to test on, or measurements."""
    num_fractions = sum(FRACTION.fullmatch(label) is not None for label in order)
    is_measured = 2 * num_fractions > len(order) > num_labeled / 2
    return is_measured or (len(order) == num_labeled and not has_test)
