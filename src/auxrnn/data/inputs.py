"""New sequences for a trained network: read as its training data was, a few at a time.

Dimension letters: `N` sequences of a chunk.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Problems
from auxrnn.data.folders import PICTURE_SUFFIXES
from auxrnn.data.formats import Format, TextFormat, make_encoding
from auxrnn.data.images import ImageFormat
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES
from auxrnn.data.readers.pictures import read_image_file
from auxrnn.data.sequences import NO_LABEL, Flat, Split, from_array
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError

STANDARD_INPUT = Path("-")
CHUNK_VALUES = 2**24
"""Values that are read before they are classified."""
MAGIC = {b"\x93NUMPY": ".npy", b"PK": ".npz", b"\x89PNG": ".png", b"\xff\xd8": ".jpg"}


class Inputs(NamedTuple):
    """Some sequences, and what each is called."""

    split: Split
    names: tuple[str, ...]


def read_inputs(
    path: Path, form: Format, *, text_column: str | None = None, problems: Problems | None = None
) -> Iterator[Inputs]:
    """Yield the sequences of a file, a folder or standard input in chunks, so that memory does not grow with them.

    Standard input is one text a line for a network that reads texts, else an array, an image or time series.
    """
    with _as_file(path, form) as file:
        if isinstance(form, ImageFormat) and not file.is_dir():
            x_NTD = read_image_file(file, form)
            names = [str(path)] if len(x_NTD) == 1 else [f"{path}[{index}]" for index in range(len(x_NTD))]
            yield Inputs(from_array(x_NTD, np.full(len(names), NO_LABEL, dtype=np.int64)), tuple(names))
            return
        tokens = form.tokens if isinstance(form, TextFormat) else "characters"
        config = DataConfig(data=str(file), text_column=text_column, tokens=tokens)
        source = find_source(file, config, has_labels=False, like=form)._replace(name=str(path))
        for chunk in _in_chunks(source.read(problems or Problems(), form).examples):
            begins = np.cumsum([0, *(len(example.value_T) for example in chunk)], dtype=np.int64)
            flat, rows = Flat(np.concatenate([example.value_T for example in chunk]), begins), np.arange(len(chunk))
            names = [example.place.replace(str(file), str(path), 1) for example in chunk]
            yield Inputs(Split(flat, rows, np.full_like(rows, NO_LABEL), make_encoding(form)), tuple(names))


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
