"""MATLAB files (level 5, as MATLAB saves since version 5): cells of strings and arrays of numbers, and no more.

Scipy reads more, but some damaged files crash the whole process there; here they raise `MatlabError`, and nothing else.
"""

import math
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

HEADER_BYTES = 128
MOST_BYTES = 2**28
"""How much a packed variable may unpack to."""
MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""How numbers are stored, whatever they mean."""
ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
"""How letters are stored."""
CELLS, LETTERS = 1, 4
NUMBER_CLASSES = range(6, 16)
"""What an array is: cells, letters, or numbers of some kind."""

Variable = list[str] | Shaped[np.ndarray, " N"] | str | None
"""A column of strings, of numbers, one string, or something that is not read."""


class MatlabError(ValueError):
    """A file is damaged, or of another kind."""


class Element(NamedTuple):
    """A piece of a file: a number for its kind, and its bytes."""

    kind: int
    data: bytes


def read_matlab(content: bytes) -> dict[str, Variable]:
    """Return the variables of a file by name; those of kinds that are not read here are None."""
    order = {b"IM": "<", b"MI": ">"}.get(content[HEADER_BYTES - 2 : HEADER_BYTES])
    if order is None:
        raise MatlabError("there is no header")
    try:
        return dict(_read_matrix(element, order) for element in _split(content[HEADER_BYTES:], order))
    except (zlib.error, UnicodeError) as error:
        raise MatlabError("the content is damaged") from error


def _split(data: bytes, order: str) -> Iterator[Element]:
    """Yield the pieces one after the other: each says its kind and size, and begins at a multiple of eight bytes."""
    start = 0
    while start < len(data):
        tag = _numbers(data[start : start + 8], f"{order}u4").tolist()
        if len(tag) < 2:
            raise MatlabError("a piece is cut off")
        (kind, size), begin = tag, start + 8
        # A piece of up to four bytes stands in the place of its size, which then is kept beside the kind.
        if kind >> 16:
            kind, size, begin = kind & 0xFFFF, kind >> 16, start + 4
        end = begin + size
        if end > len(data) or (begin == start + 4 and size > 4):
            raise MatlabError("a piece is cut off")
        yield Element(kind, data[begin:end])
        start = end if kind == COMPRESSED else -(-end // 8) * 8


def _read_matrix(element: Element, order: str, *, is_cell: bool = False) -> tuple[str, Variable]:
    """Return the name of an array, and what it holds; cells inside cells are not read."""
    if element.kind == COMPRESSED:
        element = next(_split(_unpack(element.data), order), element)
    pieces = list(_split(element.data, order)) if element.kind == MATRIX else []
    if len(pieces) < 3 or len(pieces[0].data) < 4:
        raise MatlabError("an array is not whole")
    # The low byte of the first number: what the array is.
    what = int(_numbers(pieces[0].data[:4], f"{order}u4")[0]) & 0xFF
    num_values = math.prod(_numbers(pieces[1].data, f"{order}i4").tolist())
    name = pieces[2].data.decode("latin-1")
    return name, None if is_cell and what == CELLS else _read_content(what, pieces[3:], num_values, order)


def _read_content(what: int, pieces: list[Element], num_values: int, order: str) -> Variable:
    value: Variable = None
    if what == CELLS:
        cells = [_read_matrix(piece, order, is_cell=True)[1] for piece in pieces]
        strings = [cell for cell in cells if isinstance(cell, str)]
        value = strings if len(strings) == len(cells) else None
    elif what == LETTERS and pieces:
        encoding = ENCODINGS.get(pieces[0].kind, "ascii")
        suffix = {"<": "-le", ">": "-be"}[order] if encoding in ("utf-16", "utf-32") else ""
        return pieces[0].data.decode(encoding + suffix)
    elif what in NUMBER_CLASSES and pieces:
        value = _numbers(pieces[0].data, order + NUMBERS.get(pieces[0].kind, "u1"))
    if value is not None and len(value) != num_values:
        raise MatlabError("an array has fewer or more values than it says")
    return value


def _numbers(data: bytes, kind: str) -> Shaped[np.ndarray, " N"]:
    dtype = np.dtype(kind)
    return np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)


def _unpack(data: bytes) -> bytes:
    decoder = zlib.decompressobj()
    unpacked = decoder.decompress(data, MOST_BYTES)
    if not decoder.eof:
        raise MatlabError("a packed variable is cut off, or too large")
    return unpacked
