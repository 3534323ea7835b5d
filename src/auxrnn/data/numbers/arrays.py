"""Sequences in numpy arrays: `x` of shape `[N, T]` or `[N, T, D]`, labels `y`, and `lengths` where x is padded.

They stand in one .npz, in an .npy with the others beside it, or in a folder of .npy files.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

from auxrnn.data.examples import Example, Part, Plain, Problems, Source, Understood
from auxrnn.data.formats import Format
from auxrnn.data.numbers.array_files import LARGEST_LOADED, StoredArray, list_keys, load_column, open_array, read_blocks
from auxrnn.data.numbers.array_names import Group, find_files, group_names, names_beside
from auxrnn.data.series import count_channels, fit_channels
from auxrnn.errors import RunError, UsageError

ARRAY_SUFFIXES = (".npy", ".npz")
SAVE_NUMBERS = 'save numbers of one shape, padded if need be: np.savez("data.npz", x=x, y=y, lengths=lengths)'
SAVE_LABELS = "save a whole number or a word for each sequence: y=np.array(labels), or np.argmax(y, axis=1) if one-hot"
SAVE_LENGTHS = "save a whole number for each sequence: lengths=np.array(lengths)"
NO_LABEL = -1

Location = tuple[Path, str | None]
"""A file, and the name of the array in it; None for an .npy."""
Column = Shaped[np.ndarray, " N"]


class Beside(NamedTuple):
    """What is known of each sequence beside its values: its label, or its length."""

    place: str
    value_N: Column


class Split(NamedTuple):
    """Arrays that belong together, and the part of the data that they are."""

    part: Part | None
    x: StoredArray
    labels: Beside | None
    lengths: Beside | None

    @property
    def num_channels(self) -> int:
        """How many values a step has."""
        return self.x.shape[2] if len(self.x.shape) == 3 else 1

    @property
    def num_steps(self) -> int:
        """How many steps all sequences have together, without padding."""
        if self.lengths is None:
            return self.x.shape[0] * self.x.shape[1]
        return int(np.clip(self.lengths.value_N.astype(np.int64), 0, self.x.shape[1]).sum())


def array_source(name: str, path: Path, *, has_labels: bool = True) -> Source:
    """Return the sequences of an .npz, of an .npy and the files beside it, or of a folder of .npy files.

    Labels that are there are read in any case; `has_labels` says whether they must be.
    """
    files = find_files(path)

    def read(problems: Problems, like: Format | None) -> Understood:
        locations: dict[str, Location]
        if files is None:
            locations = {key: (path, key) for key in list_keys(path)}
        else:
            locations = {key: (file, None) for key, file in files.items()}
        return _understand(_open_splits(path, locations, has_labels=has_labels), problems=problems, like=like)

    used = [path] if files is None else list(files.values())
    # The same files have parts when they are read as a folder, and none when one of them is named.
    plain: dict[str, Plain] = {"reader": "arrays", "has_labels": has_labels, "is_folder": path.is_dir()}
    return Source(name, used, plain, read)


def is_array_folder(folder: Path) -> bool:
    """Say whether a folder holds x.npy or x_train.npy."""
    try:
        names = {file.name.lower() for file in folder.iterdir()}
    except OSError:
        return False
    return not names.isdisjoint(("x.npy", "x_train.npy"))


def _open_splits(path: Path, locations: Mapping[str, Location], *, has_labels: bool) -> list[Split]:
    splits = [
        _open_split(group, locations, needs_labels=has_labels and group.part != "unlabeled")
        for group in group_names(str(path), locations)
    ]
    for split in splits[1:]:
        if split.num_channels != splits[0].num_channels:
            found, first = count_channels(split.num_channels), count_channels(splits[0].num_channels)
            raise RunError(f"{split.x.place} has {found} and {splits[0].x.place} {first}; give all the same channels")
    return splits


def _open_split(group: Group, locations: Mapping[str, Location], *, needs_labels: bool) -> Split:
    x = open_array(*locations[group.x], kinds="biuf", cure=SAVE_NUMBERS)
    if len(x.shape) not in (2, 3):
        cure = "give it the shape [N, T] or [N, T, D]: sequences, steps, channels"
        raise RunError(f"{x.place} has the shape {list(x.shape)}; {cure}")
    num_bytes = math.prod(x.shape[1:]) * max(4, x.dtype.itemsize)
    if num_bytes > LARGEST_LOADED:
        raise RunError(f"{x.place} has sequences of {num_bytes:,} bytes; cut them to {LARGEST_LOADED:,} or less")
    if needs_labels and group.y is None:
        raise UsageError(f"{x.place} has no labels; {_how_to_save_labels(x, group)}")
    labels = None if group.y is None else _open_beside(locations[group.y], x, kinds="biufUS", cure=SAVE_LABELS)
    lengths = (
        None if group.lengths is None else _open_beside(locations[group.lengths], x, kinds="iu", cure=SAVE_LENGTHS)
    )
    return Split(group.part, x, labels, lengths)


def _how_to_save_labels(x: StoredArray, group: Group) -> str:
    if x.key is None:
        return f'save them beside it: np.save("{names_beside(x.path, "y")[0].name}", y)'
    names = "x=x, y=y" if group.part is None else f"{group.x}=..., y_{group.part}=..."
    return f'save them with the sequences: np.savez("{x.path.name}", {names})'


def _open_beside(location: Location, x: StoredArray, *, kinds: str, cure: str) -> Beside:
    stored = open_array(*location, kinds=kinds, cure=cure)
    if len(stored.shape) not in (1, 2) or stored.shape[1:] not in ((), (1,)):
        raise RunError(f"{stored.place} has the shape {list(stored.shape)} where [{x.shape[0]}] is needed; {cure}")
    if stored.shape[0] != x.shape[0]:
        found = f"{stored.shape[0]:,} entries where there are {x.shape[0]:,} sequences"
        raise RunError(f"{stored.place} has {found}; save one entry for each sequence")
    return Beside(stored.place, load_column(stored))


def _understand(splits: Sequence[Split], *, problems: Problems, like: Format | None) -> Understood:
    series_format = fit_channels(splits[0].num_channels, like, place=splits[0].x.place)
    num_examples = sum(split.x.shape[0] for split in splits)
    longest = max(split.x.shape[1] for split in splits)
    is_equal = all(split.lengths is None and split.x.shape[1] == longest for split in splits)
    parts = ", ".join(f"{split.x.shape[0]:,} {split.part}" for split in splits if split.part is not None)
    steps = f"{'' if is_equal else 'up to '}{longest:,} steps of {count_channels(series_format.num_channels)}"
    description = f"arrays, {num_examples:,} sequences of {steps}{parts and f' ({parts})'}"
    num_values = sum(split.num_steps * split.num_channels for split in splits)
    return Understood(description, series_format, _read_examples(splits, problems), num_examples, 4 * num_values)


def _read_examples(splits: Sequence[Split], problems: Problems) -> Iterator[Example]:
    for split in splits:
        index = 0
        for block in read_blocks(split.x, problems):
            for row in block:
                example = _make_example(split, index, row, problems)
                if example is not None:
                    yield example
                index += 1


def _make_example(split: Split, index: int, row: Shaped[np.ndarray, "..."], problems: Problems) -> Example | None:
    place = f"{split.x.place}, example {index}"
    length = len(row)
    if split.lengths is not None:
        length = int(split.lengths.value_N[index])
        if not 0 <= length <= len(row):
            cure = f"give a length from 1 to {len(row)}, the steps that are there"
            problems.refuse(f"{split.lengths.place}, example {index}", f"is {length}", cure)
            return None
    if length == 0:
        problems.skip(place, "is empty")
        return None
    value_TD = _to_numbers(row[:length].reshape(length, -1), place, problems)
    if value_TD is None:
        return None
    label = None if split.labels is None else _read_label(split.labels, index, problems)
    return Example(value_TD, label, place, split.part)


def _to_numbers(raw_TD: Shaped[np.ndarray, "T D"], place: str, problems: Problems) -> Float32[np.ndarray, "T D"] | None:
    with np.errstate(over="ignore"):
        value_TD = np.array(raw_TD, dtype=np.float32, order="C")
    is_wrong_TD = ~np.isfinite(value_TD)
    if not is_wrong_TD.any():
        return value_TD
    step, channel = np.argwhere(is_wrong_TD)[0].tolist()
    raw = raw_TD[step, channel]
    where = f"{place}, step {step}{f', channel {channel}' if raw_TD.shape[1] > 1 else ''}"
    if np.isfinite(raw):
        problems.refuse(where, f"is {raw:.3g}, too large for 32-bit floats", "divide the channel by a large number")
    else:
        found = "NaN" if np.isnan(raw) else "infinite"
        problems.refuse(where, f"is {found}", "fill it in, or leave the sequence out, or end it before with lengths")
    return None


def _read_label(labels: Beside, index: int, problems: Problems) -> str | None:
    try:
        return _to_label(labels.value_N, index)
    except ValueError as error:
        problems.refuse(f"{labels.place}, example {index}", str(error), "save whole numbers or words as labels")
        return None


def _to_label(value_N: Column, index: int) -> str | None:
    """Give the class by name, None where it is marked as missing; raise ValueError where it is no class."""
    kind = value_N.dtype.kind
    if kind in "US":
        return _to_word(value_N, index) or None
    value = value_N[index]
    if kind == "b":
        return "true" if value else "false"
    if kind == "f" and np.isnan(value):
        return None
    if kind == "f" and not (np.isfinite(value) and value == np.rint(value)):
        raise ValueError(f"is {value:.6g}, which is no class")
    return None if kind in "iu" and value == NO_LABEL else str(int(value))


def _to_word(value_N: Column, index: int) -> str:
    # Numpy itself fails with more than a ValueError where code points are none of Unicode's.
    encodings = {"|": "utf-8", "<": "utf-32-le", ">": "utf-32-be"}
    raw = value_N[index : index + 1].tobytes()
    try:
        return raw.decode(encodings[value_N.dtype.str[0]]).rstrip("\0")
    except UnicodeDecodeError:
        raise ValueError("is no valid text") from None
