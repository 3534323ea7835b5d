"""The cache of decoded data: flat arrays that are mapped into memory.

An entry is a folder named by the checksum of its sources and settings. It is written under another name, with a lock,
and renamed when it is complete, so that every entry is whole. Entries never change.
"""

import hashlib
import io
import json
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auxrnn.data.collect import Facts, Observe, Table, collect
from auxrnn.data.examples import Part, Problems, Source
from auxrnn.data.formats import from_plain, to_plain
from auxrnn.data.sequences import Flat
from auxrnn.errors import RunError
from auxrnn.files import CACHE_DIR_VARIABLE, cache_dir, describe_bytes, flush, locked, write_aside

CACHE_FORMAT = 1
"""Incremented when the output of readers or the layout of entries changes; run folders know their data by the key."""
BLOCK_VALUES = 2**20
SPARE_BYTES = 2**27
CODE_POINT = np.dtype(np.uint32)

logger = logging.getLogger(__name__)


class Loaded(NamedTuple):
    """All examples of some sources."""

    flat: Flat
    table: Table
    facts: Facts
    checksum: str


def load(sources: Sequence[tuple[Source, Part | None]], *, observe: Observe = lambda _done, _total: None) -> Loaded:
    """Return the examples of some sources, mapped from the cache; the first time they are read and put there."""
    files = [file for source, _ in sources for file in source.files]
    if not files and not any(source.is_made for source, _ in sources):
        return load_in_memory(sources)
    root, appearance = cache_dir(), describe_appearance(files)
    contents = find_checksum(files, memory=root / "checksums", appearance=appearance) if files else ""
    checksum = find_key(sources, contents)
    folder = root / checksum
    if not folder.is_dir():
        try:
            root.mkdir(parents=True, exist_ok=True)
            with locked(root / f"{checksum}.lock", waiting_for=f"reading {sources[0][0].name}"):
                if not folder.is_dir():
                    _build(sources, folder, appearance, observe)
        except OSError as error:
            raise _cannot_cache(root, error) from error
    return _open(folder, checksum)


def load_in_memory(sources: Sequence[tuple[Source, Part | None]]) -> Loaded:
    """Return the examples of some small sources without caching them."""
    file = io.BytesIO()
    table, facts = collect(sources, file, problems=Problems())
    value_K = np.frombuffer(file.getvalue(), dtype=facts.dtype)
    return Loaded(Flat(_shape(value_K, facts), table.begin_N1), table, facts, find_key(sources, ""))


def find_key(sources: Sequence[tuple[Source, Part | None]], checksum: str) -> str:
    """Return the checksum of the contents of the files and of how they are read."""
    options = [dict(source.options) | {"part": part} for source, part in sources]
    text = json.dumps([CACHE_FORMAT, checksum, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _build(sources: Sequence[tuple[Source, Part | None]], folder: Path, appearance: str, observe: Observe) -> None:
    """Make an entry from files that had this appearance when their checksum was computed."""
    name, aside = sources[0][0].name, folder.with_name(f".{folder.name}")
    # Left by a process that was killed: we hold the lock.
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        with (aside / "values.bin").open("wb") as file:
            table, facts = collect(
                sources,
                file,
                problems=Problems(),
                observe=observe,
                announce=lambda num_bytes: _say_space(name, num_bytes, folder.parent),
            )
        _write(aside, table, _narrow(aside / "values.bin", facts))
        if describe_appearance([file for source, _ in sources for file in source.files]) != appearance:
            raise RunError(f"{name} changed while it was read; run again")
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _say_space(name: str, num_bytes: int, root: Path) -> None:
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
    largest = max(int(wide_K[start : start + BLOCK_VALUES].max()) for start in blocks)
    dtype = np.min_scalar_type(largest)
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


def _open(folder: Path, checksum: str) -> Loaded:
    try:
        values = json.loads((folder / "facts.json").read_text())
        form, names, skipped = from_plain(values["format"]), tuple(values["class_names"]), tuple(values["skipped"])
        facts = Facts(**values | {"format": form, "class_names": names, "skipped": skipped})
        table = Table(*(np.load(folder / f"{name}.npy", allow_pickle=False) for name in Table._fields))
        # A plain view: slices of numpy's own class for mapped files cost many times as much.
        value_K = np.asarray(np.memmap(folder / "values.bin", dtype=facts.dtype, mode="r"))
        flat = Flat(_shape(value_K, facts), table.begin_N1)
        if len(flat.value_K) != table.begin_N1[-1]:
            raise ValueError("values.bin is not whole")
    except (OSError, ValueError, LookupError, TypeError, EOFError) as error:
        raise RunError(f"{folder} is damaged; delete that folder to have the data read again") from error
    return Loaded(flat, table, facts, checksum)


def _shape(value_K: np.ndarray, facts: Facts) -> np.ndarray:
    return value_K if facts.num_features is None else value_K.reshape(-1, facts.num_features)


def _cannot_cache(root: Path, error: OSError) -> RunError:
    if error.filename is not None and not str(error.filename).startswith(str(root)):
        return RunError(f"{error.filename} cannot be read ({error.strerror}); check that it is there")
    cure = f"free some space there or let {CACHE_DIR_VARIABLE} name another folder"
    return RunError(f"cannot write {root} ({error.strerror}); {cure}")


def find_checksum(files: Sequence[Path], *, memory: Path, appearance: str | None = None) -> str:
    """Return the checksum of some files: of their contents, and of their names below the folder they share.

    Contents are read once. The checksum is remembered in the folder `memory` for as long as paths, sizes and times of
    modification stay the same (`appearance`, where the caller knows them already).
    """
    known = memory / (appearance or describe_appearance(files))
    if known.is_file():
        return known.read_text().strip()
    names = [os.path.abspath(file) for file in files]  # noqa: PTH100 - many thousands, and Path.absolute is slower
    root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120 - the same
    digest = hashlib.sha256()
    for name in names:
        try:
            with Path(name).open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            raise _cannot_read(name, error) from error
        digest.update(f"{os.path.relpath(name, root)}\0{found}\0".encode(errors="surrogateescape"))
    write_aside(known, digest.hexdigest() + "\n")
    return digest.hexdigest()


def describe_appearance(files: Sequence[Path]) -> str:
    """Return a digest of the paths of files, their sizes and when they were last modified."""
    here = Path.cwd()
    seen = []
    for file in files:
        try:
            status = os.stat(file)  # noqa: PTH116 - many thousands, and Path.stat is slower
        except OSError as error:
            raise _cannot_read(str(file), error) from error
        seen.append(f"{os.path.join(here, file)}\0{status.st_size}\0{status.st_mtime_ns}\0")  # noqa: PTH118 - the same
    return hashlib.sha256("".join(seen).encode(errors="surrogateescape")).hexdigest()


def _cannot_read(name: str, error: OSError) -> RunError:
    return RunError(f"{name} cannot be read ({error.strerror}); check that it is there and its permissions")
