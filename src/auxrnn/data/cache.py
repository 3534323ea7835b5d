"""Decoded data, kept once as flat arrays that are mapped into memory.

An entry is a folder named by the checksum of its sources and settings. It is made aside, under a lock, and renamed
when it is complete: whoever finds it finds all of it. Nothing is ever changed in it.
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
from auxrnn.data.folders import Paths, name_files
from auxrnn.data.formats import from_plain, to_plain
from auxrnn.data.sequences import Flat
from auxrnn.errors import RunError
from auxrnn.files import CACHE_DIR_VARIABLE, cache_dir, describe_bytes, flush, locked, write_aside

CACHE_FORMAT = 1
"""Raised by one when what readers give, or how it is kept, changes."""
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
    """Give the examples of some sources: mapped from the cache if they were read before, else read and kept there."""
    files = _list_files(sources)
    if not files and not any(source.is_made for source, _ in sources):
        return load_in_memory(sources, Problems())
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


def load_in_memory(
    sources: Sequence[tuple[Source, Part | None]], problems: Problems, *, needs_labels: bool = True
) -> Loaded:
    """Give the examples of some sources without keeping anything, for what is small or read only once."""
    file = io.BytesIO()
    table, facts = collect(sources, file, problems=problems, needs_labels=needs_labels)
    value_K = np.frombuffer(file.getvalue(), dtype=facts.dtype)
    return Loaded(Flat(_shape(value_K, facts), table.begin_N1), table, facts, find_key(sources, ""))


def find_key(sources: Sequence[tuple[Source, Part | None]], checksum: str) -> str:
    """Give the checksum of what the files hold and of how they are read."""
    options = [dict(source.options) | {"part": part} for source, part in sources]
    text = json.dumps([CACHE_FORMAT, checksum, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _list_files(sources: Sequence[tuple[Source, Part | None]]) -> Paths:
    return Paths([name for source, _ in sources for name in name_files(source.files)])


def _build(sources: Sequence[tuple[Source, Part | None]], folder: Path, appearance: str, observe: Observe) -> None:
    """Make an entry of files that looked so when their checksum was found."""
    name, aside = sources[0][0].name, folder.with_name(f".{folder.name}")
    # What is there was left by a process that was killed: we hold the lock.
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
        if describe_appearance(_list_files(sources)) != appearance:
            raise RunError(f"{name} changed while it was read; start again")
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _say_space(name: str, num_bytes: int, root: Path) -> None:
    """Say how much space the values will take, and refuse if there is less."""
    free = shutil.disk_usage(root).free
    logger.info("reading %s once; decoded it takes up to %s in %s", name, describe_bytes(num_bytes), root)
    if num_bytes + SPARE_BYTES > free:
        raise RunError(
            f"{name} needs {describe_bytes(num_bytes)} in {root}, where {describe_bytes(free)} are free;"
            f" free some space or let {CACHE_DIR_VARIABLE} name a folder on another disk"
        )


def _narrow(path: Path, facts: Facts) -> Facts:
    """Rewrite code points with as few bytes as the largest of them needs."""
    if np.dtype(facts.dtype) != CODE_POINT:
        return facts
    wide_K = np.memmap(path, dtype=facts.dtype, mode="r")
    blocks = range(0, len(wide_K), BLOCK_VALUES)
    largest = max(int(wide_K[start : start + BLOCK_VALUES].max()) for start in blocks)
    dtype = np.min_scalar_type(largest)
    # In place, so that no more space is needed than was said: what is written lies before what is still to be read.
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
        raise RunError(f"{folder} is damaged; delete that folder, and the data is read again") from error
    return Loaded(flat, table, facts, checksum)


def _shape(value_K: np.ndarray, facts: Facts) -> np.ndarray:
    return value_K if facts.num_features is None else value_K.reshape(-1, facts.num_features)


def _cannot_cache(root: Path, error: OSError) -> RunError:
    if error.filename is not None and not str(error.filename).startswith(str(root)):
        return RunError(f"{error.filename} cannot be read ({error.strerror}); check that it is there")
    cure = f"free some space there or let {CACHE_DIR_VARIABLE} name another folder"
    return RunError(f"cannot write {root} ({error.strerror}); {cure}")


def find_checksum(files: Sequence[Path], *, memory: Path, appearance: str | None = None) -> str:
    """Give the checksum of some files: of their contents, and of their names below the folder they share.

    Contents are read once. Then the checksum is kept in the folder `memory` under the files' paths, sizes and times of
    change, so that looking at these is enough; whoever has looked already gives what `describe_appearance` gave.
    """
    known = memory / (appearance or describe_appearance(files))
    if known.is_file():
        return known.read_text().strip()
    checksum = _read_checksum(files)
    write_aside(known, checksum + "\n")
    return checksum


def describe_appearance(files: Sequence[Path]) -> str:
    """Give a digest of the paths of files, their sizes and when they were last changed."""
    here = Path.cwd()
    seen = []
    for name in name_files(files):
        try:
            status = os.stat(name)  # noqa: PTH116 - a hundred thousand times, and Path.stat is slower
        except OSError as error:
            raise _cannot_read(name, error) from error
        seen.append(f"{os.path.join(here, name)}\0{status.st_size}\0{status.st_mtime_ns}\0")  # noqa: PTH118 - the same
    return hashlib.sha256("".join(seen).encode(errors="surrogateescape")).hexdigest()


def _read_checksum(files: Sequence[Path]) -> str:
    names = [os.path.abspath(name) for name in name_files(files)]  # noqa: PTH100 - a hundred thousand times
    root = os.path.commonpath([os.path.dirname(name) for name in names])  # noqa: PTH120 - the same
    digest = hashlib.sha256()
    for name in names:
        try:
            with Path(name).open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            raise _cannot_read(name, error) from error
        digest.update(f"{os.path.relpath(name, root)}\0{found}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _cannot_read(name: str, error: OSError) -> RunError:
    return RunError(f"{name} cannot be read ({error.strerror}); check that it is there and its permissions")
