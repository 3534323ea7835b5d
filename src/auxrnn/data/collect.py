"""Collecting single examples into flat arrays, class numbers and facts about the whole.

Dimension letters: `N` examples, `K` steps of all sequences together.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple, get_args

import numpy as np
from jaxtyping import Int8, Int64

from auxrnn.data.examples import Example, Part, Problems, Source, Understood
from auxrnn.data.formats import Format
from auxrnn.data.sequences import NO_LABEL
from auxrnn.errors import UsageError

PARTS: tuple[Part, ...] = get_args(Part)
NO_PART = -1

Observe = Callable[[int, int | None], None]
"""Called with the number of examples read so far, and of all (None: unknown)."""


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


class Collector:
    """Takes examples one by one: their values go to a file, the rest stays in memory."""

    def __init__(self, file: BinaryIO, problems: Problems) -> None:
        self.file, self.problems = file, problems
        self.begins, self.labels, self.parts, self.origins = array("q", [0]), array("q"), array("b"), array("q")
        self.number_of: dict[str, int] = {}
        self.first_place: dict[str, str] = {}
        self.first_value: np.ndarray | None = None
        self.full_place = ""

    def add(self, example: Example) -> None:
        """Add one example, or report what is wrong with it."""
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
        self.file.write(np.ascontiguousarray(value_T, dtype=first.dtype).data)
        self._note(example)

    def _note(self, example: Example) -> None:
        is_crop = example.origin is not None and example.origin == self.full_place
        self.full_place = self.full_place if is_crop else example.place
        self.origins.append(self.origins[-1] if is_crop else len(self.labels))
        self.begins.append(self.begins[-1] + len(example.value_T))
        self.parts.append(NO_PART if example.part is None else PARTS.index(example.part))
        if example.label is None:
            self.labels.append(NO_LABEL)
        else:
            self.labels.append(self.number_of.setdefault(example.label, len(self.number_of)))
            self.first_place.setdefault(example.label, example.place)

    def table(self, order: Sequence[str]) -> Table:
        """Return what was kept, with classes numbered in the given order of their labels."""
        new_number = np.full(len(self.number_of) + 1, NO_LABEL, dtype=np.int64)
        for number, label in enumerate(order):
            new_number[self.number_of[label]] = number
        label_N = new_number[np.array(self.labels, dtype=np.int64)]
        parts, origins = np.array(self.parts, dtype=np.int8), np.array(self.origins, dtype=np.int64)
        return Table(np.array(self.begins, dtype=np.int64), label_N, parts, origins)


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
    collector = Collector(file, problems)
    for source, understood in zip(sources, opened, strict=True):
        if source.part == "test" and PARTS.index("test") in collector.parts:
            raise UsageError(f"{sources[0].name} has a test split of its own; remove --test-data")
        done = len(collector.labels)
        total = None if understood.num_examples is None else done + understood.num_examples
        for number, example in enumerate(understood.examples, start=1):
            collector.add(_place(example, source.part))
            if number % 64 == 0:
                observe(done + number, total)
    order = _order_classes(collector, opened[0])
    table = collector.table(order)
    _check(sources[0].name, collector, table, order)
    return table, _make_facts(collector, opened[0], order)


def _place(example: Example, part: Part | None) -> Example:
    """Put an example into the part that all of its source belong to."""
    if part is None:
        return example
    return example._replace(part=part, label=None if part == "unlabeled" else example.label)


def _order_classes(collector: Collector, understood: Understood) -> list[str]:
    """Order labels as the files do, otherwise by value if all are whole numbers, otherwise alphabetically."""
    labels = list(collector.number_of)
    if understood.class_names is not None:
        order = list(understood.class_names)
        for label in labels:
            if label not in understood.class_names:
                what = f"has the label {label!r}, which has no class name"
                collector.problems.refuse(collector.first_place[label], what, f"known are {', '.join(order[:20])}")
        return [label for label in order if label in collector.number_of]
    try:
        return sorted(labels, key=int)
    except ValueError:
        return sorted(labels)


def _check(name: str, collector: Collector, table: Table, order: Sequence[str]) -> None:
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
            cure = "add training examples of that class or take it out of the other splits"
            problems.refuse(collector.first_place[label], what, cure)
    if len(trained) < 2:
        found = "no labels" if not trained else f"the single class {order[min(trained)]!r}"
        problems.refuse(name, f"has {found} in its training examples", "classification needs at least two classes")


def _make_facts(collector: Collector, understood: Understood, order: Sequence[str]) -> Facts:
    names = understood.class_names or {}
    first = np.zeros(0, dtype=np.uint8) if collector.first_value is None else collector.first_value
    return Facts(
        description=understood.description,
        format=understood.format,
        class_names=tuple(names.get(label, label) for label in order),
        dtype=first.dtype.str,
        num_features=first.shape[1] if first.ndim == 2 else None,
        num_skipped=collector.problems.num_skipped,
        skipped=tuple(collector.problems.skipped),
    )
