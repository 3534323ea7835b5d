"""Loading data: decoded once into flat arrays, which are mapped into memory from then on.

An entry of the cache is a folder named by the checksum of its sources and settings. It is written under another name,
with a lock, and renamed when it is complete, so that every entry is whole. Entries never change.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auxrnn.config import DataConfig
from auxrnn.data.collect import Facts, Observe, Table, collect, open_sources
from auxrnn.data.examples import Problems, Source
from auxrnn.data.formats import Format, from_plain, make_encoding, to_plain
from auxrnn.data.sequences import NO_LABEL, Flat, Split, Splits
from auxrnn.data.sources import find_sources
from auxrnn.data.splits import Division, Rows
from auxrnn.errors import RunError
from auxrnn.files import (
    CACHE_DIR_VARIABLE,
    cache_dir,
    checksum_files,
    describe_appearance,
    describe_bytes,
    flush,
    locked,
)

CACHE_FORMAT = 1
"""Incremented when the output of readers or the layout of entries changes; run folders know their data by the key."""
BUFFER_BYTES = 2**22
BLOCK_VALUES = 2**20
SPARE_BYTES = 2**27
CODE_POINT = np.dtype(np.uint32)

logger = logging.getLogger(__name__)


class Dataset(NamedTuple):
    """All examples of some sources, and what is known of them."""

    name: str
    flat: Flat
    table: Table
    facts: Facts
    checksum: str
    """Of the files and of how they were read: the same data has the same."""


def make_splits(dataset: Dataset, division: Division, form: Format) -> Splits:
    """Return the splits as a network with this format reads them; only examples with a label can be tested on."""
    encoding = make_encoding(form)

    def make(rows: Rows, labeled: Rows) -> Split:
        label_N = np.where(np.isin(rows, labeled), dataset.table.label_N[rows], NO_LABEL)
        return Split(dataset.flat, rows, label_N, encoding)

    held_out = (make(rows, rows).labeled() for rows in (division.validation, division.test))
    return Splits(
        make(division.train, division.labeled), *(split if split.num_examples else None for split in held_out)
    )


def load(config: DataConfig, *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Load a dataset by name, downloading what is missing, or the user's own files by path."""
    return load_sources(find_sources(config), observe=observe)


def load_sources(sources: Sequence[Source], *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Return the examples of some sources, mapped from the cache; the first time they are read and put there."""
    files = [file for source in sources for file in source.files]
    root, name, appearance = cache_dir(), sources[0].name, describe_appearance(files)
    checksum = find_key(sources, checksum_files(files, appearance=appearance) if files else "")
    folder = root / checksum
    try:
        if not folder.is_dir():
            root.mkdir(parents=True, exist_ok=True)
            with locked(root / f"{checksum}.lock", waiting_for=f"reading {name}"):
                if not folder.is_dir():
                    _build(sources, folder, appearance, observe)
    except OSError as error:
        raise _cannot_cache(root, error) from error
    return _open(name, folder)


def find_key(sources: Sequence[Source], checksum: str) -> str:
    """Return the checksum of the contents of the files and of how they are read."""
    options = [dict(source.options) | {"part": source.part} for source in sources]
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
        with (aside / "values.bin").open("wb", buffering=BUFFER_BYTES) as file:
            table, facts = collect(sources, opened, file, problems=problems, observe=observe)
        _write(aside, table, _narrow(aside / "values.bin", facts))
        if describe_appearance([file for source in sources for file in source.files]) != appearance:
            raise RunError(f"{sources[0].name} changed while it was read; run again")
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _check_space(name: str, num_bytes: int, root: Path) -> None:
    """Log how much space the values will take, and refuse if there is less."""
    free = shutil.disk_usage(root).free
    logger.info("reading %s; the decoded data takes up to %s in %s", name, describe_bytes(num_bytes), root)
    if num_bytes + SPARE_BYTES > free:
        raise RunError(
            f"{name} needs {describe_bytes(num_bytes)} in {root}, where {describe_bytes(free)} are free;"
            f" free some space or let {CACHE_DIR_VARIABLE} name a folder on another disk"
        )


def _narrow(path: Path, facts: Facts) -> Facts:
    """Rewrite code points in the smallest type that holds them all."""
    if np.dtype(facts.dtype) != CODE_POINT:
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
    for path in (*folder.iterdir(), folder):
        flush(path)


def _open(name: str, folder: Path) -> Dataset:
    try:
        values = json.loads((folder / "facts.json").read_text())
        form, names, skipped = from_plain(values["format"]), tuple(values["class_names"]), tuple(values["skipped"])
        facts = Facts(**values | {"format": form, "class_names": names, "skipped": skipped})
        table = Table(*(np.load(folder / f"{field}.npy", allow_pickle=False) for field in Table._fields))
        # A plain view: slices of numpy's own class for mapped files cost many times as much.
        value_K = np.asarray(np.memmap(folder / "values.bin", dtype=facts.dtype, mode="r"))
        if facts.num_features is not None:
            value_K = value_K.reshape(-1, facts.num_features)
        if len(value_K) != table.begin_N1[-1]:
            raise ValueError("values.bin is not whole")
    except (OSError, ValueError, LookupError, TypeError, EOFError) as error:
        raise RunError(f"{folder} is damaged; delete that folder to have the data read again") from error
    return Dataset(name, Flat(value_K, table.begin_N1), table, facts, folder.name)


def _cannot_cache(root: Path, error: OSError) -> RunError:
    if error.filename is not None and not str(error.filename).startswith(str(root)):
        return RunError(f"{error.filename} cannot be read ({error.strerror}); check that it is there")
    cure = f"free some space there or let {CACHE_DIR_VARIABLE} name another folder"
    return RunError(f"cannot write {root} ({error.strerror}); {cure}")
