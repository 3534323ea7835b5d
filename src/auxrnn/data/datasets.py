"""Loading data by name or path: all examples of a dataset, and what is known about them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data import cache
from auxrnn.data.catalog import DATASETS
from auxrnn.data.collect import Observe, Table
from auxrnn.data.examples import Part, Source
from auxrnn.data.formats import Format, make_encoding
from auxrnn.data.paths import find_source
from auxrnn.data.sequences import NO_LABEL, Flat, Split, Splits
from auxrnn.data.splits import Division
from auxrnn.errors import UsageError, nearest


class Dataset(NamedTuple):
    """All examples of a dataset, and what is known of them."""

    name: str
    flat: Flat
    table: Table
    class_names: tuple[str, ...]
    format: Format
    description: str
    skipped: Sequence[str]
    num_skipped: int
    checksum: str
    """Of the files and of how they were read: the same data has the same."""

    def make_split(self, rows: Int64[np.ndarray, " M"], form: Format, *, labeled: Int64[np.ndarray, " L"]) -> Split:
        """Return some rows as a network with this format reads them; those not in `labeled` lose their label."""
        label_N = np.where(np.isin(rows, labeled), self.table.label_N[rows], NO_LABEL)
        return Split(self.flat, rows, label_N, make_encoding(form))


def make_splits(dataset: Dataset, division: Division, form: Format) -> Splits:
    """Return the splits as a network with this format reads them; only examples with a label can be tested on."""

    def held_out(rows: Int64[np.ndarray, " M"]) -> Split | None:
        split = dataset.make_split(rows, form, labeled=rows).labeled()
        return split if split.num_examples else None

    train = dataset.make_split(division.train, form, labeled=division.labeled)
    return Splits(train, held_out(division.validation), held_out(division.test))


def load(config: DataConfig, *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Load a dataset by name, downloading what is missing, or the user's own files by path."""
    flat, table, facts, checksum = cache.load(find_sources(config), observe=observe)
    return Dataset(
        name=config.data,
        flat=flat,
        table=table,
        class_names=facts.class_names,
        format=facts.format,
        description=facts.description,
        skipped=facts.skipped,
        num_skipped=facts.num_skipped,
        checksum=checksum,
    )


def find_sources(config: DataConfig) -> list[tuple[Source, Part | None]]:
    """Return all sources that a config names, each with the part that all its examples belong to."""
    found: list[tuple[Source, Part | None]] = [(_find_data(config), None)]
    # The length is that of a synthetic task, and files beside it have their own.
    beside = replace(config, length=None)
    if config.test_data is not None:
        found.append((find_source(config.test_data, beside), "test"))
    if config.unlabeled is not None:
        found.append((find_source(config.unlabeled, beside, has_labels=False), "unlabeled"))
    return found


def _find_data(config: DataConfig) -> Source:
    """Return the source for a dataset's name or a path; a name wins over a file of that name."""
    name = config.data
    if name in DATASETS:
        return DATASETS[name].open(config)
    path = Path(name).expanduser()
    if not path.exists():
        raise UsageError(f"{name!r} is neither a dataset nor a path{nearest(name, DATASETS)}")
    return find_source(path, config)
