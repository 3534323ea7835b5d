"""New sequences for a trained network: read as its training data was, a few at a time.

Dimension letters: `N` sequences of a chunk.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Part, Problems
from auxrnn.data.folders import PICTURE_SUFFIXES
from auxrnn.data.formats import (
    Format,
    SymbolFormat,
    TextFormat,
    check_numbers,
    count_channels,
    count_values,
    has_mask,
    make_encoding,
    to_numbers,
    to_symbols,
)
from auxrnn.data.images import ImageFormat, to_pixels, to_sequences
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES, read_labels
from auxrnn.data.readers.pictures import check_pixels, read_image_file, to_image_sequences
from auxrnn.data.sequences import NO_LABEL, Array, Flat, Split
from auxrnn.data.sources import find_source, is_table
from auxrnn.errors import RunError, UsageError

STANDARD_INPUT = Path("-")
FILL_IN = "fill it in: the training data had no gaps (trained with some, a network reads them)"
CHUNK_VALUES = 2**24
"""Values that are read before they are classified."""
MAGIC = {b"\x93NUMPY": ".npy", b"PK": ".npz", b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"RIFF": ".wav", b"RF64": ".wav",
         b"fLaC": ".flac", b"OggS": ".ogg", b"ID3": ".mp3"}  # fmt: skip
MOST_LISTED = 12


class Inputs(NamedTuple):
    """Some sequences, and what each is called."""

    split: Split
    names: tuple[str, ...]


class Labels(NamedTuple):
    """What the labels of new sequences are compared with, and where they are."""

    class_names: Sequence[str]
    split: Part
    """Of files that have splits, the one that is read."""
    column: str | None = None
    """Column of a table that holds the label."""
    pattern: str | None = None
    """Where the label stands in the names of audio files."""
    trained: DataConfig | None = None
    """What the training was told; its column and its pattern count where no others are given."""

    def ask(self, config: DataConfig, file: Path) -> DataConfig:
        """Return how a file or folder is read, with where its labels are."""
        column = pattern = None
        if self.trained is not None and is_table(file):
            column = self.trained.label_column
        elif self.trained is not None and file.is_dir():
            pattern = self.trained.label_pattern
        return replace(config, label_column=self.column or column, label_pattern=self.pattern or pattern)


def read_inputs(
    path: Path,
    form: Format,
    *,
    text_column: str | None = None,
    problems: Problems | None = None,
    labels: Labels | None = None,
) -> Iterator[Inputs]:
    """Yield the sequences of a file, a folder or standard input in chunks, so that memory does not grow with them.

    Standard input is one text a line for a network that reads texts, else an array, an image, audio or time series.
    With `labels`, only sequences that have one are read, and it must be one of the class names.
    """
    problems = Problems() if problems is None else problems
    with _as_file(path, form) as file:
        is_array = file.suffix.lower() in ARRAY_SUFFIXES
        names: Mapping[str, str] = {}
        if isinstance(form, ImageFormat) and (is_array if labels is not None else not file.is_dir()):
            read = _read_images(file, form, problems, has_labels=labels is not None)
        else:
            tokens = form.tokens if isinstance(form, TextFormat) else "characters"
            config = DataConfig(data=str(file), text_column=text_column, tokens=tokens)
            config = config if labels is None else labels.ask(config, file)
            source = find_source(file, config, has_labels=labels is not None, is_alone=True, like=form)
            understood = source._replace(name=str(path)).read(problems, form)
            names, read = understood.class_names or {}, _arrange(understood.examples, form)
        examples = (one._replace(place=one.place.replace(str(file), str(path), 1)) for one in read)
        kept = examples if labels is None else _keep_labeled(examples, names, labels, problems)
        for chunk in _in_chunks(_check(kept, form, problems)):
            yield _to_inputs(chunk, form, labels)


def _read_images(file: Path, form: ImageFormat, problems: Problems, *, has_labels: bool) -> Iterator[Example]:
    """Yield the image, or the images of an array, that a file is."""
    x_NTD = read_image_file(file, form)
    found = read_labels(file, problems) if has_labels else [None] * len(x_NTD)
    for index, (x_TD, label) in enumerate(zip(x_NTD, found, strict=True)):
        yield Example(x_TD, label, str(file) if len(x_NTD) == 1 else f"{file}[{index}]")


def _keep_labeled(
    examples: Iterable[Example], names: Mapping[str, str], labels: Labels, problems: Problems
) -> Iterator[Example]:
    """Yield the examples of the wanted split that have a label, each with the name of its class."""
    for example in examples:
        if example.part not in (None, labels.split):
            continue
        if example.label is None:
            problems.skip(example.place, "has no label")
            continue
        name = names.get(example.label, example.label)
        if name not in labels.class_names:
            known = ", ".join(labels.class_names[:MOST_LISTED]) + ", ..." * (len(labels.class_names) > MOST_LISTED)
            what = f"has the label {name[:80]!r}, which is no class of this run"
            problems.refuse(example.place, what, f"correct it or take it out; the classes are {known}")
        yield example._replace(label=name)


def _arrange(examples: Iterable[Example], form: Format) -> Iterator[Example]:
    """Bring pictures to the size and the order in which the run reads its pixels."""
    for example in examples:
        value_T = example.value_T
        if isinstance(form, ImageFormat):
            value_T = to_sequences(value_T.reshape(1, form.height, form.width, form.channels), form)[0]
        yield example._replace(value_T=value_T)


def _to_inputs(examples: Sequence[Example], form: Format, labels: Labels | None) -> Inputs:
    number_of = {} if labels is None else {name: number for number, name in enumerate(labels.class_names)}
    label_N = np.array([number_of.get(example.label or "", NO_LABEL) for example in examples], dtype=np.int64)
    split = make_split([example.value_T for example in examples], form)._replace(label_N=label_N)
    return Inputs(split, tuple(example.place for example in examples))


def to_split(x: Any, form: Format, *, lengths: ArrayLike | None = None) -> Split:
    """Return sequences of raw values in memory: texts, images, an array `[N, T]` or `[N, T, D]`, or a list of arrays.

    Raises `UsageError` for what does not fit the format.
    """
    if isinstance(x, str) or not isinstance(x, Sequence | np.ndarray) or not len(x):
        raise UsageError("these are no sequences; give a list of texts, or an array with one sequence a row")
    try:
        if isinstance(form, ImageFormat):
            pixels = check_pixels(to_pixels(x), "this array")
            return make_split(to_image_sequences(pixels, form, "this array"), form)
        ends = [None] * len(x) if lengths is None else np.asarray(lengths).tolist()
        if len(ends) != len(x) or not all(isinstance(end, int | None) for end in ends):
            raise UsageError(f"lengths are not {len(x):,} whole numbers; give one for each sequence")
        rows = (_to_values(row, end, form) for row, end in zip(x, ends, strict=True))
        examples = (Example(value_T, None, f"sequence {number}") for number, value_T in enumerate(rows))
        return make_split([example.value_T for example in _check(examples, form, Problems())], form)
    except RunError as error:
        raise UsageError(str(error)) from error


def _to_values(row: Any, length: int | None, form: Format) -> Array:
    if isinstance(form, TextFormat):
        if not isinstance(row, str):
            raise UsageError(f"a sequence is a {type(row).__name__}; this network reads texts, so give a list of str")
        value_T: Array = form.to_values(row)
    else:
        value_T = to_symbols(row) if isinstance(form, SymbolFormat) else to_numbers(row)
        size = count_values(form)
        value_T = value_T[:, None] if value_T.ndim == 1 and size == 1 else value_T
        if value_T.ndim != 2 or value_T.shape[1] != size:
            found = f"a sequence has the shape {list(value_T.shape)}, and this network reads {count_channels(size)}"
            raise UsageError(f"{found}; give [steps, {size}] for each")
    if length is not None and not 0 < length <= len(value_T):
        raise UsageError(f"a sequence of {len(value_T)} steps has the length {length}; give one from 1 on")
    if not len(value_T):
        raise UsageError("a sequence is empty; leave it out")
    return value_T[:length, 0] if isinstance(form, SymbolFormat) else value_T[:length]


def _check(examples: Iterable[Example], form: Format, problems: Problems) -> Iterator[Example]:
    """Yield the examples that the network can read."""
    for example in examples:
        with problems.at(example.place):
            check_numbers(example, may_miss=has_mask(form), cure=FILL_IN)
            yield example


def make_split(values: Sequence[Array] | Array, form: Format) -> Split:
    """Return sequences of values as they are kept, without labels."""
    begins = np.cumsum([0, *map(len, values)], dtype=np.int64)
    rows = np.arange(len(values))
    return Split(Flat(np.concatenate(values), begins), rows, np.full_like(rows, NO_LABEL), make_encoding(form))


def _in_chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    chunk: list[Example] = []
    num_values = 0
    for example in examples:
        if chunk and num_values + example.value_T.size > CHUNK_VALUES:
            yield chunk
            chunk, num_values = [], 0
        if len(example.value_T):
            chunk.append(example)
            num_values += example.value_T.size
    if chunk:
        yield chunk


@contextmanager
def _as_file(path: Path, form: Format) -> Iterator[Path]:
    """Yield the path itself, or for standard input a file with its content and the right suffix."""
    if path != STANDARD_INPUT:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        file = file.rename(file.with_suffix(_find_suffix(file, form)))
        try:
            yield file
        except (RunError, UsageError) as error:
            raise type(error)(str(error).replace(str(file), "standard input")) from error


def _find_suffix(file: Path, form: Format) -> str:
    if isinstance(form, TextFormat):
        return ".txt"
    with file.open("rb") as content:
        head = content.read(8)
    suffix = next((suffix for magic, suffix in MAGIC.items() if head.startswith(magic)), ".ts")
    if isinstance(form, ImageFormat) and suffix == ".ts":
        kinds = ", ".join(dict.fromkeys((*ARRAY_SUFFIXES, *PICTURE_SUFFIXES)))
        raise UsageError(f"standard input is no image or array; give one of {kinds}, or --stream for single steps")
    return suffix
