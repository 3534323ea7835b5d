"""Sequences in numpy arrays: `x` of shape `[N, T]` or `[N, T, D]`, labels `y`, and `lengths` where x is padded.

They are in one .npz, in an .npy with the others beside it, or in a folder of .npy files; `x_train`, `y_train`,
`x_test`, ... are parts. An .npy is mapped into memory, an .npz read block by block. Nothing is unpickled, and no memory
is taken before the file is known to hold what its header says.
"""

import io
import math
import os
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped
from numpy.lib import format as npy

from auxrnn.data.examples import (
    PART_NAMES,
    Example,
    ExampleError,
    Part,
    Problems,
    Source,
    Understood,
    refusing_damage,
    to_label,
)
from auxrnn.data.formats import Format, SeriesFormat, SymbolFormat, count_channels, find_bad, fit_channels
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable

Role = Literal["x", "y", "lengths"]
Location = tuple[Path, str | None]
"""A file, and the name of the array in it; None for an .npy."""
Column = Shaped[np.ndarray, " N"]
ArrayFormat = SeriesFormat | SymbolFormat
NUMBERS = SeriesFormat(1)
"""What arrays are read as by default; their channels are counted later."""

ARRAY_SUFFIXES = (".npy", ".npz")
ALIASES: dict[Role, tuple[str, ...]] = {
    "x": ("x", "data", "sequences"),
    "y": ("y", "label", "labels", "target", "targets"),
    "lengths": ("lengths", "length", "len"),
}
"""Names in lower case; where an array of several of them is there, the first counts."""
ENDINGS: dict[str, Part | None] = {"": None, **{f"_{name}": part for name, part in PART_NAMES.items()}}
KNOWN = {f"{alias}{ending}" for aliases in ALIASES.values() for alias in aliases for ending in ENDINGS}
SAVE_NUMBERS = 'save numbers of one shape, padded if need be: np.savez("data.npz", x=x, y=y, lengths=lengths)'
SAVE_SYMBOLS = "save whole numbers of the shape [N, T], or leave out --tokens integers"
SAVE_SERIES = "save one series of numbers in each file, of the shape [T] or [T, D]"
SAVE_LABELS = "save a whole number or a word for each sequence: y=np.array(labels), or np.argmax(y, axis=1) if one-hot"
SAVE_LENGTHS = "save a whole number for each sequence: lengths=np.array(lengths)"
ADD_LABELS = 'add them: np.savez("data.npz", x=x, y=y), or y.npy beside x.npy, or NAME_y.npy beside NAME.npy'
HEADER_BYTES = 2**14
"""More than numpy accepts as a header, which it refuses from 10,000 characters on."""
BLOCK_BYTES = 2**22
LARGEST_BLOCK = 2**30
"""How many bytes of an .npz are loaded at once, where it cannot be read in smaller blocks."""
LARGEST_UNPACKED, SUSPICIOUS_UNPACKED, SUSPICIOUS_RATIO = 2**36, 2**30, 1000
SAVE_AGAIN = "save it with numpy again"
HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class StoredArray(NamedTuple):
    """An array that a file was found to hold; its values are not read yet."""

    place: str
    """The file, and the name inside it, for error messages: "data.npz, x" or "x.npy"."""
    path: Path
    key: str | None
    """Its name inside an .npz; None for an .npy."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    offset: int
    """How many bytes of the file come before the values."""

    @property
    def num_bytes(self) -> int:
        """How many bytes the values take."""
        return math.prod(self.shape) * self.dtype.itemsize


class ArraySplit(NamedTuple):
    """Arrays that belong together, and the part of the data that they are."""

    part: Part | None
    x: StoredArray
    label_N: Column | None
    length_N: Column | None
    step_shape: tuple[int, ...]
    """How many steps a sequence has, and how many channels if x says so."""


def array_source(name: str, path: Path, *, has_labels: bool = True, asked: ArrayFormat = NUMBERS) -> Source:
    """Return the sequences of an .npz, of an .npy and the files beside it, or of a folder of .npy files.

    Labels that are there are read in any case; `has_labels` says whether they must be.
    """
    files = _find_files(path)

    def read(problems: Problems, like: Format | None) -> Understood:
        form = asked if like is None else like if isinstance(like, ArrayFormat) else NUMBERS
        splits = _open_splits(path, _locate(path, files), form, has_labels=has_labels)
        return _understand(splits, form, problems, like)

    # The same files have parts when they are read as a folder, and none when one of them is named.
    options = {"reader": "arrays", "has_labels": has_labels, "is_folder": path.is_dir()}
    # Only what differs from plain numbers: runs know their data by these options.
    if isinstance(asked, SymbolFormat):
        options["has_symbols"] = True
    elif asked.is_channels_first:
        options["is_channels_first"] = True
    return Source(name, list(files.values()), options, read)


def read_labels(path: Path, problems: Problems) -> list[str | None]:
    """Return the labels in an .npz, or in the file beside an .npy, whatever the shape of x; some may be None."""
    locations = _locate(path, _find_files(path))
    x, y = (_find(locations, role) for role in ("x", "y"))
    if x is None or y is None:
        raise UsageError(f"{path} has no labels; {ADD_LABELS}")
    stored = open_array(*locations[x], kinds="biuf", cure=SAVE_NUMBERS)
    label_N = _load_column(locations[y], stored, kinds="biufUS", cure=SAVE_LABELS)
    labels: list[str | None] = [None] * len(label_N)
    for index in range(len(labels)):
        with problems.at(f"{stored.place}, example {index}"):
            labels[index] = _to_label(label_N, index)
    return labels


def _locate(path: Path, files: Mapping[str, Path]) -> dict[str, Location]:
    """Return where arrays are, by name; an .npz has them inside."""
    if path.suffix.lower() == ".npz":
        return {key: (path, key) for key in list_keys(path)}
    return {name: (file, None) for name, file in files.items()}


def is_array_folder(folder: Path) -> bool:
    """Return whether a folder holds x.npy or x_train.npy."""
    return not {"x", "x_train"}.isdisjoint(_list_arrays(folder))


def _list_arrays(folder: Path) -> dict[str, Path]:
    return {file.stem.lower(): file for file in sorted(folder.iterdir()) if file.suffix.lower() == ".npy"}


def _find_files(path: Path) -> dict[str, Path]:
    """Return the files to read, by the names of their arrays; an .npz has its names inside."""
    if path.suffix.lower() == ".npz":
        return {"": path}
    if path.is_dir():
        return {name: file for name, file in _list_arrays(path).items() if name in KNOWN}
    others = _list_arrays(path.parent)
    # y_train.npy beside x_train.npy, NAME_y.npy beside NAME.npy.
    stem = path.stem.lower()
    before, after = ("", stem[1:]) if stem[:1] == "x" and stem[1:] in ENDINGS else (f"{stem}_", "")
    beside = {role: _find(others, role, before=before, after=after) for role in ALIASES if role != "x"}
    return {"x": path} | {role: others[name] for role, name in beside.items() if name is not None}


def _find(names: Collection[str], role: Role, *, before: str = "", after: str = "") -> str | None:
    """Return the name of the array that has a role, in any case."""
    lower = {name.lower(): name for name in names}
    return next((lower[full] for alias in ALIASES[role] if (full := f"{before}{alias}{after}") in lower), None)


def _open_splits(
    path: Path, locations: Mapping[str, Location], form: ArrayFormat, *, has_labels: bool
) -> list[ArraySplit]:
    found = {ending: x for ending in ENDINGS if (x := _find(locations, "x", after=ending)) is not None}
    if not found:
        # The only array of another name is x, such as numpy's own arr_0.
        unknown = [name for name in locations if name.lower() not in KNOWN]
        if len(unknown) != 1:
            what = f"holds the arrays {sorted(unknown)[:5]} and none called x"
            raise RunError(f'{path} {what}; save the sequences as np.savez("data.npz", x=x, y=y)')
        found = {"": unknown[0]}
    if "" in found and len(found) > 1:
        raise RunError(f"{path} holds {found['']} beside {found.popitem()[1]}; call the first x_train")
    return [_open_split(locations, ending, x, form, has_labels=has_labels) for ending, x in found.items()]


def _open_split(
    locations: Mapping[str, Location], ending: str, x_name: str, form: ArrayFormat, *, has_labels: bool
) -> ArraySplit:
    has_symbols = isinstance(form, SymbolFormat)
    kinds, cure = ("biu", SAVE_SYMBOLS) if has_symbols else ("biuf", SAVE_NUMBERS)
    part, x = ENDINGS[ending], open_array(*locations[x_name], kinds=kinds, cure=cure)
    if has_symbols and x.shape[2:] not in ((), (1,)):
        raise RunError(f"{x.place} has the shape {list(x.shape)}; {SAVE_SYMBOLS}")
    if len(x.shape) not in (2, 3):
        cure = "give it the shape [N, T] or [N, T, D]: sequences, steps, channels"
        raise RunError(f"{x.place} has the shape {list(x.shape)}; {cure}")
    is_swapped = not isinstance(form, SymbolFormat) and form.is_channels_first
    y, lengths = _find(locations, "y", after=ending), _find(locations, "lengths", after=ending)
    if has_labels and part != "unlabeled" and y is None:
        raise UsageError(f"{x.place} has no labels; {ADD_LABELS}")
    label_N = None if y is None else _load_column(locations[y], x, kinds="biufUS", cure=SAVE_LABELS)
    length_N = None if lengths is None else _load_column(locations[lengths], x, kinds="iu", cure=SAVE_LENGTHS)
    return ArraySplit(part, x, label_N, length_N, x.shape[:0:-1] if is_swapped else x.shape[1:])


def _load_column(location: Location, x: StoredArray, *, kinds: str, cure: str) -> Column:
    """Load what is known of each sequence beside its values: its label or its length."""
    stored = open_array(*location, kinds=kinds, cure=cure)
    if stored.shape not in ((x.shape[0],), (x.shape[0], 1)):
        raise RunError(f"{stored.place} has the shape {list(stored.shape)} where [{x.shape[0]}] is needed; {cure}")
    return load_array(stored).reshape(-1)


def _understand(
    splits: Sequence[ArraySplit], asked: ArrayFormat, problems: Problems, like: Format | None
) -> Understood:
    form = asked if isinstance(asked, SymbolFormat) else _fit(splits, asked, like)
    num_examples, longest = sum(split.x.shape[0] for split in splits), max(split.step_shape[0] for split in splits)
    what = "integers as symbols" if isinstance(form, SymbolFormat) else count_channels(form.num_channels)
    steps = f"up to {longest:,} step{'s' * (longest > 1)} of {what}"
    parts = ", ".join(f"{split.x.shape[0]:,} {split.part}" for split in splits if split.part is not None)
    description = f"arrays, {num_examples:,} sequences of {steps}{parts and f' ({parts})'}"
    # No warning, but part of the description, which every training says: later ones read the cache.
    hint = "" if like is not None or isinstance(form, SymbolFormat) else _hint(form, longest)
    num_bytes = (8 if isinstance(form, SymbolFormat) else 4) * sum(math.prod(split.x.shape) for split in splits)
    examples = _read_examples(splits, form, problems, hint)
    return Understood(description + hint, form, examples, num_examples, num_bytes)


def _fit(splits: Sequence[ArraySplit], asked: SeriesFormat, like: Format | None) -> SeriesFormat:
    place, (_, *channels) = splits[0].x.place, splits[0].step_shape
    if like is None and asked.is_channels_first and not channels:
        raise UsageError(f"{place} has the shape {list(splits[0].x.shape)}, without channels; remove --channels-first")
    form = fit_channels([(split.x.place, math.prod(split.step_shape[1:])) for split in splits], like)
    return form if like is not None else form._replace(is_channels_first=asked.is_channels_first)


def _hint(form: SeriesFormat, longest: int) -> str:
    """Return what to do about axes that look swapped; empty if they do not."""
    cure = "leave out" if form.is_channels_first else "give"
    return f"; if it is the other way round, {cure} --channels-first" if longest < form.num_channels else ""


def _read_examples(splits: Sequence[ArraySplit], form: ArrayFormat, problems: Problems, hint: str) -> Iterator[Example]:
    for split in splits:
        with problems.noting_errors():
            rows = (row for block in read_blocks(split.x) for row in block)
            for index, row in enumerate(rows):
                place = f"{split.x.place}, example {index}"
                with problems.at(place):
                    length = None if split.length_N is None else int(split.length_N[index])
                    if isinstance(form, SymbolFormat):
                        value: Shaped[np.ndarray, "T *D"] = _cut(row, length, hint).reshape(-1).astype(np.int64)
                    else:
                        value = _to_numbers(_cut(row.T if form.is_channels_first else row, length, hint))
                    label = None if split.label_N is None else _to_label(split.label_N, index)
                    yield Example(value, label, place, split.part)


def _cut(row: Shaped[np.ndarray, "..."], length: int | None, hint: str) -> Shaped[np.ndarray, "..."]:
    """Return the steps before the padding."""
    if length is not None and not 0 <= length <= len(row):
        cure = f"give it a length from 1 to {len(row)}, the steps that are there{hint}"
        raise ExampleError(f"has the length {length}", cure)
    if length == 0:
        raise ExampleError("is empty")
    return row[:length]


def _to_numbers(row: Shaped[np.ndarray, "..."]) -> Float32[np.ndarray, "T D"]:
    """Return steps as numbers, NaN for gaps; raise `ExampleError` for what is beyond 32-bit floats."""
    raw_TD = row.reshape(-1, math.prod(row.shape[1:]))
    with np.errstate(over="ignore"):
        value_TD = np.array(raw_TD, dtype=np.float32, order="C")
    if not len(found := find_bad(value_TD, may_miss=True)):
        return value_TD
    step, channel = found.tolist()
    what = f"has {raw_TD[step, channel]:.3g} at step {step}, channel {channel}"
    raise ExampleError(what, "fill it in, scale it to 32-bit floats, or end the sequence before it with lengths")


def _to_label(value_N: Column, index: int) -> str | None:
    """Return the class by name, None where it is marked as missing: by -1, NaN or an empty word."""
    try:
        value = value_N[index].item()
        value = value.decode() if isinstance(value, bytes) else value
        str(value).encode()
    except Exception:  # numpy fails with more than a ValueError where code points are none of Unicode's
        raise ExampleError("has a label that is not valid text", "save whole numbers or words as labels") from None
    if value_N.dtype.kind == "f":
        value = float(value)
        if not (math.isnan(value) or value.is_integer()):
            raise ExampleError(f"has the label {value:.6g}", "save whole numbers or words as labels")
    return None if value_N.dtype.kind == "i" and value == -1 else to_label(value)


def load_series(path: Path) -> Float32[np.ndarray, "T D"]:
    """Return the one series that is an .npy file, `[T]` or `[T, D]`."""
    stored = open_array(path, None, kinds="biuf", cure=SAVE_SERIES)
    if len(stored.shape) > 2:
        raise RunError(f"{path} has the shape {list(stored.shape)}; {SAVE_SERIES}")
    return _to_numbers(load_array(stored))


def list_keys(path: Path) -> list[str]:
    """Return the names of the arrays in an .npz; raise `RunError` for a zip bomb."""
    with refusing_damage(path, SAVE_AGAIN), zipfile.ZipFile(path) as archive:
        packed, unpacked = path.stat().st_size, sum(member.file_size for member in archive.infolist())
        is_bomb = unpacked > SUSPICIOUS_UNPACKED and unpacked > SUSPICIOUS_RATIO * packed
        if is_bomb or unpacked > LARGEST_UNPACKED:
            found = f"would unpack from {packed:,} to {unpacked:,} bytes, which is refused"
            raise RunError(f"{path} {found}; save large arrays as .npy files instead")
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def open_array(path: Path, key: str | None, *, kinds: str, cure: str) -> StoredArray:
    """Read the header of an array; raise `RunError` unless it is of these kinds of type, whole and not empty."""
    place = str(path) if key is None else printable(f"{path}, {key}")
    with refusing_damage(place, SAVE_AGAIN), _open_bytes(path, key) as (file, size):
        # Numpy would trust the length of the header and read as much; these first bytes hold any honest one.
        beginning = io.BytesIO(file.read(HEADER_BYTES))
        # It also warns about headers written by Python 2, which are fine.
        with warnings.catch_warnings(action="ignore"):
            shape, is_fortran, dtype = HEADER_READERS[npy.read_magic(beginning)](beginning)
        found = StoredArray(place, path, key, shape, dtype, "F" if is_fortran else "C", beginning.tell())
    if dtype.kind not in kinds:
        what = "Python objects, which are never loaded" if dtype.hasobject else f"values of type {dtype.name}"
        raise RunError(f"{place} holds {what}; {cure}")
    if size != found.offset + found.num_bytes or min(shape, default=0) < 0:
        what = f"its header says {found.offset + found.num_bytes:,} bytes and it has {size:,}"
        raise RunError(f"{place} is damaged ({what}); {SAVE_AGAIN}")
    if not found.num_bytes or not shape:
        raise RunError(f"{place} has no entries, with the shape {list(shape)}; {cure}")
    return found


def load_array(stored: StoredArray) -> Shaped[np.ndarray, "..."]:
    """Return all of an array: mapped from an .npy, loaded from an .npz."""
    blocks = list(read_blocks(stored))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def read_blocks(stored: StoredArray) -> Iterator[Shaped[np.ndarray, "..."]]:
    """Yield some entries of the first axis at a time; an .npy is mapped as one block, which takes no memory."""
    place, path, key, shape, dtype, order, offset = stored
    with refusing_damage(place, SAVE_AGAIN):
        if key is None:
            # A memmap is several times slower to index than the plain array that it is.
            yield np.memmap(path, dtype, "r", offset, shape, order).view(np.ndarray)
            return
        row_bytes = stored.num_bytes // shape[0]
        step = max(1, BLOCK_BYTES // row_bytes) if order == "C" else shape[0]
        if step * row_bytes > LARGEST_BLOCK:
            what = f"takes {step * row_bytes:,} bytes that can only be loaded at once"
            raise RunError(f"{place} {what}; save it as an .npy file, or in the order of np.ascontiguousarray")
        with _open_bytes(path, key) as (file, _size):
            file.read(offset)
            for start in range(0, shape[0], step):
                num_read = min(step, shape[0] - start)
                block = np.frombuffer(file.read(num_read * row_bytes), dtype)
                yield block.reshape((num_read, *shape[1:]), order=order)


@contextmanager
def _open_bytes(path: Path, key: str | None) -> Iterator[tuple[IO[bytes], int]]:
    """Open the bytes of an array in the .npy format, with their number."""
    with path.open("rb") as file:
        if key is None:
            yield file, os.fstat(file.fileno()).st_size
            return
        with zipfile.ZipFile(file) as archive, archive.open(f"{key}.npy") as member:
            yield member, archive.getinfo(f"{key}.npy").file_size
