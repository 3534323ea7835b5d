"""Sequences in numpy arrays: `x` of shape `[N, T]` or `[N, T, D]`, labels `y`, and `lengths` where x is padded.

They are in one .npz, in an .npy with the others beside it, or in a folder of .npy files; `x_train`, `y_train`,
`x_test`, ... are parts.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

from auxrnn.data.examples import (
    LARGEST_EXACT,
    SPLIT_NAMES,
    Example,
    ExampleError,
    Part,
    Plain,
    Problems,
    Source,
    Understood,
)
from auxrnn.data.formats import Format
from auxrnn.data.readers.npy import LARGEST_LOADED, StoredArray, list_keys, load_array, open_array, read_blocks
from auxrnn.data.series import count_channels, fit_channels
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_read

Role = Literal["x", "y", "lengths"]
Key = tuple[Role, Part | None]
Location = tuple[Path, str | None]
"""A file, and the name of the array in it; None for an .npy."""
Column = Shaped[np.ndarray, " N"]

ARRAY_SUFFIXES = (".npy", ".npz")
ALIASES: dict[Role, tuple[str, ...]] = {
    "x": ("x", "data", "sequences"),
    "y": ("y", "label", "labels", "target", "targets"),
    "lengths": ("lengths", "length", "len"),
}
ENDINGS: dict[str, Part | None] = {"": None, **{f"_{name}": part for name, part in SPLIT_NAMES.items()}}
ENDINGS["_unlabeled"] = "unlabeled"
MEANINGS: dict[str, Key] = {
    f"{alias}{ending}": (role, part)
    for role, aliases in ALIASES.items()
    for alias in aliases
    for ending, part in ENDINGS.items()
}
PLAIN_NAMES = {f"{role}{ending}" for role in ALIASES for ending in ENDINGS}
SAVE_NUMBERS = 'save numbers of one shape, padded if need be: np.savez("data.npz", x=x, y=y, lengths=lengths)'
SAVE_LABELS = "save a whole number or a word for each sequence: y=np.array(labels), or np.argmax(y, axis=1) if one-hot"
SAVE_LENGTHS = "save a whole number for each sequence: lengths=np.array(lengths)"
NO_LABEL = -1


class ArraySplit(NamedTuple):
    """Arrays that belong together, and the part of the data that they are."""

    part: Part | None
    x: StoredArray
    label_N: Column | None
    length_N: Column | None

    @property
    def num_channels(self) -> int:
        """How many values a step has."""
        return self.x.shape[2] if len(self.x.shape) == 3 else 1

    @property
    def num_steps(self) -> int:
        """How many steps all sequences have together, without padding."""
        if self.length_N is None:
            return self.x.shape[0] * self.x.shape[1]
        return int(np.clip(self.length_N.astype(np.int64), 0, self.x.shape[1]).sum())


def array_source(name: str, path: Path, *, has_labels: bool = True) -> Source:
    """Return the sequences of an .npz, of an .npy and the files beside it, or of a folder of .npy files.

    Labels that are there are read in any case; `has_labels` says whether they must be.
    """
    files = _find_files(path)

    def read(problems: Problems, like: Format | None) -> Understood:
        locations: dict[str, Location] = {name: (file, None) for name, file in files.items()}
        if path.suffix.lower() == ".npz":
            locations = {key: (path, key) for key in list_keys(path)}
        return _understand(_open_splits(path, locations, has_labels=has_labels), problems, like)

    # The same files have parts when they are read as a folder, and none when one of them is named.
    plain: dict[str, Plain] = {"reader": "arrays", "has_labels": has_labels, "is_folder": path.is_dir()}
    return Source(name, list(files.values()), plain, read)


def is_array_folder(folder: Path) -> bool:
    """Return whether a folder holds x.npy or x_train.npy."""
    try:
        names = {file.name.lower() for file in folder.iterdir()}
    except OSError:
        return False
    return not names.isdisjoint(("x.npy", "x_train.npy"))


def _find_files(path: Path) -> dict[str, Path]:
    """Return the files to read, by the names of their arrays; an .npz has its names inside."""
    try:
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".npy")
            return {file.stem: file for file in files if file.stem.lower() in MEANINGS}
        if path.suffix.lower() == ".npz":
            return {"": path}
        roles: tuple[Role, ...] = ("y", "lengths")
        beside = {role: next(filter(Path.is_file, _names_beside(path, role)), None) for role in roles}
    except OSError as error:
        raise cannot_read(path, error) from error
    return {"x": path} | {role: file for role, file in beside.items() if file is not None}


def _names_beside(path: Path, role: Role) -> list[Path]:
    """Return where labels or lengths may be: y_train.npy beside x_train.npy, NAME_y.npy beside NAME.npy."""
    is_plain = path.stem[:1].lower() == "x" and path.stem[1:].lower() in ENDINGS
    names = (*ALIASES[role], role.upper())
    stems = [f"{name}{path.stem[1:]}" if is_plain else f"{path.stem}_{name}" for name in names]
    return [path.with_name(f"{stem}{path.suffix}") for stem in stems]


def _open_splits(path: Path, locations: Mapping[str, Location], *, has_labels: bool) -> list[ArraySplit]:
    known = _find_meanings(str(path), locations)
    parts = [part for part in dict.fromkeys(ENDINGS.values()) if ("x", part) in known]
    if None in parts and len(parts) > 1:
        raise RunError(f"{path} holds both {known['x', None]} and {known['x', parts[1]]}; call the first x_train")
    splits = [_open_split(part, known, locations, needs_labels=has_labels and part != "unlabeled") for part in parts]
    for split in splits[1:]:
        if split.num_channels != splits[0].num_channels:
            found, first = count_channels(split.num_channels), count_channels(splits[0].num_channels)
            raise RunError(f"{split.x.place} has {found} and {splits[0].x.place} {first}; give all the same channels")
    return splits


def _find_meanings(place: str, names: Iterable[str]) -> dict[Key, str]:
    """Return which array is what, by their names; if no name is that of sequences, the only unknown one is."""
    known: dict[Key, str] = {}
    unknown: list[str] = []
    # Plain names come first: beside `y`, an array called `labels` may be anything.
    for name in sorted(set(names), key=lambda name: (name not in PLAIN_NAMES, name)):
        meaning = MEANINGS.get(name.lower())
        if meaning is None:
            unknown.append(name)
            continue
        other = known.setdefault(meaning, name)
        if other != name and (other in PLAIN_NAMES) == (name in PLAIN_NAMES):
            raise RunError(f"{place} holds both {other} and {name}; keep one of them")
    if not any(role == "x" for role, _part in known):
        if len(unknown) != 1:
            shown = ", ".join(name if name.isprintable() else repr(name) for name in unknown[:5])
            found = f"holds {len(unknown)} arrays ({shown}) and none called x" if unknown else "holds no array called x"
            raise RunError(f'{place} {found}; save the sequences as np.savez("data.npz", x=x, y=y)')
        known["x", None] = unknown[0]
    return known


def _open_split(
    part: Part | None, known: Mapping[Key, str], locations: Mapping[str, Location], *, needs_labels: bool
) -> ArraySplit:
    x = open_array(*locations[known["x", part]], kinds="biuf", cure=SAVE_NUMBERS)
    if len(x.shape) not in (2, 3):
        cure = "give it the shape [N, T] or [N, T, D]: sequences, steps, channels"
        raise RunError(f"{x.place} has the shape {list(x.shape)}; {cure}")
    num_bytes = math.prod(x.shape[1:]) * max(4, x.dtype.itemsize)
    if num_bytes > LARGEST_LOADED:
        raise RunError(f"{x.place} has sequences of {num_bytes:,} bytes; cut them to {LARGEST_LOADED:,} or less")
    y, lengths = known.get(("y", part)), known.get(("lengths", part))
    if needs_labels and y is None:
        raise UsageError(f"{x.place} has no labels; {_how_to_save_labels(x, part)}")
    label_N = None if y is None else _load_column(locations[y], x, kinds="biufUS", cure=SAVE_LABELS)
    length_N = None if lengths is None else _load_column(locations[lengths], x, kinds="iu", cure=SAVE_LENGTHS)
    return ArraySplit(part, x, label_N, length_N)


def _how_to_save_labels(x: StoredArray, part: Part | None) -> str:
    if x.key is None:
        return f'save them beside it: np.save("{_names_beside(x.path, "y")[0].name}", y)'
    names = "x=x, y=y" if part is None else f"{x.key}=..., y_{part}=..."
    return f'save them with the sequences: np.savez("{x.path.name}", {names})'


def _load_column(location: Location, x: StoredArray, *, kinds: str, cure: str) -> Column:
    """Load what is known of each sequence beside its values: its label or its length."""
    stored = open_array(*location, kinds=kinds, cure=cure)
    if stored.shape[1:] not in ((), (1,)) or not stored.shape:
        raise RunError(f"{stored.place} has the shape {list(stored.shape)} where [{x.shape[0]}] is needed; {cure}")
    if stored.shape[0] != x.shape[0]:
        found = f"{stored.shape[0]:,} entries where there are {x.shape[0]:,} sequences"
        raise RunError(f"{stored.place} has {found}; save one entry for each sequence")
    return load_array(stored).reshape(-1)


def _understand(splits: Sequence[ArraySplit], problems: Problems, like: Format | None) -> Understood:
    series_format = fit_channels(splits[0].num_channels, like, place=splits[0].x.place)
    num_examples = sum(split.x.shape[0] for split in splits)
    longest = max(split.x.shape[1] for split in splits)
    is_equal = all(split.length_N is None and split.x.shape[1] == longest for split in splits)
    parts = ", ".join(f"{split.x.shape[0]:,} {split.part}" for split in splits if split.part is not None)
    steps = f"{'' if is_equal else 'up to '}{longest:,} steps of {count_channels(series_format.num_channels)}"
    description = f"arrays, {num_examples:,} sequences of {steps}{parts and f' ({parts})'}"
    num_values = sum(split.num_steps * split.num_channels for split in splits)
    return Understood(description, series_format, _read_examples(splits, problems), num_examples, 4 * num_values)


def _read_examples(splits: Sequence[ArraySplit], problems: Problems) -> Iterator[Example]:
    for split in splits:
        with problems.noting_errors():
            rows = (row for block in read_blocks(split.x) for row in block)
            for index, row in enumerate(rows):
                place = f"{split.x.place}, example {index}"
                try:
                    length = _find_length(split, index)
                    if length:
                        value_TD = _to_numbers(row[:length].reshape(length, -1))
                        label = None if split.label_N is None else _to_label(split.label_N, index)
                        yield Example(value_TD, label, place, split.part)
                    else:
                        problems.skip(place, "is empty")
                except ExampleError as error:
                    problems.refuse(place, error.what, error.cure)


def _find_length(split: ArraySplit, index: int) -> int:
    longest = split.x.shape[1]
    length = longest if split.length_N is None else int(split.length_N[index])
    if not 0 <= length <= longest:
        raise ExampleError(
            f"has the length {length}", f"give it a length from 1 to {longest}, the steps that are there"
        )
    return length


def _to_numbers(raw_TD: Shaped[np.ndarray, "T D"]) -> Float32[np.ndarray, "T D"]:
    with np.errstate(over="ignore"):
        value_TD = np.array(raw_TD, dtype=np.float32, order="C")
    is_wrong_TD = ~np.isfinite(value_TD)
    if not is_wrong_TD.any():
        return value_TD
    step, channel = np.argwhere(is_wrong_TD)[0].tolist()
    raw = raw_TD[step, channel]
    where = f"at step {step}{f', channel {channel}' if raw_TD.shape[1] > 1 else ''}"
    if np.isfinite(raw):
        what = f"has {raw:.3g}, too large for 32-bit floats, {where}"
        raise ExampleError(what, "divide the channel by a large number")
    cure = "fill it in, or omit the sequence, or end it before with lengths"
    raise ExampleError(f"has {'NaN' if np.isnan(raw) else 'an infinite value'} {where}", cure)


def _to_label(value_N: Column, index: int) -> str | None:
    """Return the class by name, None where it is marked as missing: by -1, NaN or an empty word."""
    kind, value = value_N.dtype.kind, value_N[index : index + 1]
    if kind in "US":
        return _to_word(value) or None
    if kind == "b":
        return "true" if value[0] else "false"
    if kind != "f":
        return None if value[0] == NO_LABEL else str(value[0])
    number = float(value[0])
    if math.isnan(number):
        return None
    if abs(number) > LARGEST_EXACT or not number.is_integer():
        raise ExampleError(f"has the label {number:.6g}", "save whole numbers or words as labels")
    return str(int(number))


def _to_word(value_1: Shaped[np.ndarray, " 1"]) -> str:
    # Numpy itself fails with more than a ValueError where code points are none of Unicode's.
    encodings = {"|": "utf-8", "<": "utf-32-le", ">": "utf-32-be"}
    try:
        return value_1.tobytes().decode(encodings[value_1.dtype.str[0]]).rstrip("\0")
    except UnicodeDecodeError:
        raise ExampleError("has a label that is not valid text", "save whole numbers or words as labels") from None
