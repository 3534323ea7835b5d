"""Stanford Dogs as it is published: `Images/<wnid>-<breed>/*.jpg`, and lists that say which are for training.

The lists are MATLAB files (level 5). Scipy reads these too, but some damaged files crash the whole process there.
"""

import math
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from auxrnn.data.examples import Part, Problems, Source, refusing_damage
from auxrnn.data.folders import PICTURE_SUFFIXES, Album, Names, Placed, Tree, find_files
from auxrnn.data.readers.image_folder import ImageOptions, album_source
from auxrnn.files import printable

IMAGES = "Images"
LISTS: dict[Part, str] = {"train": "lists/train_list.mat", "test": "lists/test_list.mat"}
GET_AGAIN = "get the lists of the dataset again"

HEADER_BYTES = 128
MOST_BYTES = 2**28
"""How much a packed variable of a list may unpack to."""
MATRIX, COMPRESSED = 14, 15
CELLS, LETTERS = 1, 4
NUMBER_CLASSES = range(6, 16)
"""What an array is: cells, letters, or numbers of some kind."""
NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
ENCODINGS = {4: "utf-16-le", 16: "utf-8", 17: "utf-16-le", 18: "utf-32-le"}
"""How numbers and letters are stored, whatever they mean."""

Variable = list[str] | Shaped[np.ndarray, " N"] | str | None
"""A column of strings, of numbers, one string, or something that is not read."""


def is_dogs_folder(folder: Path) -> bool:
    """Return whether a folder has the layout of Stanford Dogs, whole or a part of it."""
    return (folder / IMAGES).is_dir() and all((folder / name).is_file() for name in LISTS.values())


def dogs_source(name: str, folder: Path, options: ImageOptions) -> Source:
    """Return Stanford Dogs as a source; the lists decide which images are read and what they are for.

    The enlarged training set is an approximation: how the paper's 150,000 images were made is not known.
    """
    tree = find_files(folder / IMAGES, PICTURE_SUFFIXES)
    kind = "Stanford Dogs" + (", the paper's enlargement approximated" if options.enlarge_to is not None else "")
    files = [*(folder / listed for listed in LISTS.values()), *tree.paths()]
    return album_source(name, kind, lambda problems: _sort(folder, tree, problems), options, {"reader": "dogs"}, files)


def _sort(folder: Path, tree: Tree, problems: Problems) -> Album:
    """Return the listed pictures, training first; the others are skipped and counted."""
    tree.report(problems, "an image")
    numbers: dict[str, int] = {}
    pictures: list[Placed] = []
    unlisted = set(tree.files)
    for part, path in ((part, folder / name) for part, name in LISTS.items()):
        for names, number in sorted(read_list(path, problems).items()):
            numbers[names[0]] = number
            if names in unlisted:
                unlisted.remove(names)
                pictures.append(tree.put(names, printable(names[0]), part, tree.place(names[:1])))
            else:
                what = f"names {'/'.join(names)!r}, which is missing or listed twice"
                problems.refuse(printable(path), what, "get the images again, or take it out of the list")
    for names in sorted(unlisted):
        problems.skip(tree.place(names), "is in neither list")
    ordered = sorted(numbers, key=lambda name: numbers[name])
    breeds = {printable(name): printable(name.partition("-")[2] or name) for name in ordered}
    return Album(pictures, list(dict.fromkeys(picture.group for picture in pictures)), breeds)


def read_list(path: Path, problems: Problems) -> dict[Names, int]:
    """Return the files on a list, by their names below `Images`, with the number of each one's breed."""
    with problems.noting_errors(), refusing_damage(printable(path), GET_AGAIN, kind="a list of images"):
        variables = read_matlab(path.read_bytes())
        files, labels = variables.get("file_list"), variables.get("labels")
        if not isinstance(files, list) or not isinstance(labels, np.ndarray):
            raise ValueError("there are no names and labels")
        listed = {tuple(file.split("/")): int(label) for file, label in zip(files, labels.tolist(), strict=True)}
        for names in listed:
            if len(names) < 2 or {"", ".", ".."} & set(names) or any("\0" in name for name in names):
                raise ValueError(f"{names} is no file below {IMAGES}")
        return listed
    return {}


def read_matlab(content: bytes) -> dict[str, Variable]:
    """Return cells of strings and arrays of numbers by name, None for other variables; raise ValueError on damage."""
    if content[HEADER_BYTES - 2 : HEADER_BYTES] != b"IM":
        raise ValueError("there is no header, or one of another machine")
    try:
        return dict(_read_array(kind, data) for kind, data in _split(content[HEADER_BYTES:]))
    except (LookupError, zlib.error) as error:
        raise ValueError("the content is damaged") from error


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield pieces, each a number for its kind and its bytes; they begin at multiples of eight bytes."""
    start = 0
    while start < len(data):
        kind, size = np.frombuffer(data[start : start + 8], "<u4").tolist()
        begin = start + 8
        # A piece of up to four bytes stands in the place of its size, which then is kept beside the kind.
        if kind >> 16:
            kind, size, begin = kind & 0xFFFF, kind >> 16, start + 4
        end = begin + size
        if end > len(data) or (begin == start + 4 and size > 4):
            raise ValueError("a piece is cut off")
        yield kind, data[begin:end]
        start = end if kind == COMPRESSED else -(-end // 8) * 8


def _read_array(kind: int, data: bytes, *, is_cell: bool = False) -> tuple[str, Variable]:
    """Return the name of an array, and what it holds; cells inside cells are not read."""
    if kind == COMPRESSED:
        decoder = zlib.decompressobj()
        kind, data = next(_split(decoder.decompress(data, MOST_BYTES)), (0, b""))
        if not decoder.eof:
            raise ValueError("a packed variable is cut off, or too large")
    if kind != MATRIX:
        raise ValueError("a variable is no array")
    (_, flags), (_, shape), (_, name), *pieces = _split(data)
    value: Variable = None
    if flags[0] == CELLS and not is_cell:
        cells = [_read_array(*piece, is_cell=True)[1] for piece in pieces]
        strings = [cell for cell in cells if isinstance(cell, str)]
        value = strings if len(strings) == len(cells) else None
    elif flags[0] == LETTERS and pieces:
        value = pieces[0][1].decode(ENCODINGS.get(pieces[0][0], "latin-1"))
    elif flags[0] in NUMBER_CLASSES and pieces:
        value = np.frombuffer(pieces[0][1], NUMBERS[pieces[0][0]])
    if isinstance(value, list | np.ndarray) and len(value) != math.prod(np.frombuffer(shape, "<i4").tolist()):
        raise ValueError("an array has fewer or more values than it says")
    return name.decode("latin-1"), value
