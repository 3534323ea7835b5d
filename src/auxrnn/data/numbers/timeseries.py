"""Time series in the .ts format of the UCR and UEA archives: a header of `@` lines, then a case a line.

A case is its channels, separated by ":", of values separated by ",", and the class last. Lengths may differ from
case to case; what a header says of them is wrong in some files of the archives, and not needed.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

from auxrnn.data.examples import Example, Part, Plain, Problems, Source, Understood
from auxrnn.data.formats import Format
from auxrnn.data.series import count_channels, fit_channels
from auxrnn.errors import RunError, UsageError

LONGEST_LINE = 2**26
MISSING = ("", "?", "nan")
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0*")
HOW_TO_WRITE = "write lines such as @problemName NAME and @classLabel true A B, a line @data, and then a case a line"


class Line(NamedTuple):
    """A line that is neither blank nor a comment."""

    place: str
    text: str


class Header(NamedTuple):
    """What a file says of its cases."""

    num_channels: int | None
    has_classes: bool
    has_targets: bool
    """Whether a case ends with a number to predict instead of a class; it is not used."""
    classes: frozenset[str]
    """The classes that may come; empty where any may."""

    @property
    def num_last(self) -> int:
        """How many fields of a case come after its channels."""
        return int(self.has_classes or self.has_targets)


class SeriesFile(NamedTuple):
    """A file whose header was read."""

    path: Path
    part: Part | None
    header: Header
    num_channels: int
    num_values: int
    """About how many values it holds: as if all cases were like the first."""


def timeseries_source(name: str, files: Mapping[Part, Path] | Path, *, has_labels: bool = True) -> Source:
    """Return the series of one .ts file, or of one for each part.

    Labels that are there are read in any case; `has_labels` says whether they must be.
    """
    paths: list[tuple[Part | None, Path]] = [(None, files)] if isinstance(files, Path) else [*files.items()]
    if not paths:
        raise UsageError("no .ts files are given; name at least one")

    def read(problems: Problems, like: Format | None) -> Understood:
        opened = [_open(path, part, has_labels=has_labels) for part, path in paths]
        num_channels = opened[0].num_channels
        for file in opened[1:]:
            if file.num_channels != num_channels:
                found = f"{count_channels(file.num_channels)} and {opened[0].path} {count_channels(num_channels)}"
                raise RunError(f"{file.path} has {found}; give all files the same channels")
        series_format = fit_channels(num_channels, like, place=str(opened[0].path))
        num_bytes = 4 * sum(file.num_values for file in opened)
        description = f"time series (.ts), {count_channels(num_channels)}"
        return Understood(description, series_format, _read_examples(opened, problems), None, num_bytes)

    parts = None if isinstance(files, Path) else ", ".join(files)
    plain: dict[str, Plain] = {"reader": "timeseries", "has_labels": has_labels, "parts": parts}
    return Source(name, [path for _part, path in paths], plain, read)


def _open(path: Path, part: Part | None, *, has_labels: bool) -> SeriesFile:
    with _open_bytes(path) as file:
        lines = _read_lines(file, path)
        header = _read_header(lines, path)
        if has_labels and part != "unlabeled" and not header.has_classes:
            found = "numbers to predict and no classes" if header.has_targets else "no labels"
            cure = "write a line @classLabel true A B, and the class at the end of each case after a colon"
            raise UsageError(f"{path} has {found}; {cure}")
        first = next(lines, None)
        num_bytes = path.stat().st_size
    if first is None:
        raise RunError(f"{path} has no cases after its line @data; write a case a line")
    num_fields = first.text.count(":") + 1 - header.num_last
    if num_fields == 0:
        raise RunError(f"{first.place} has only one field; write the values, a colon, and the class")
    num_values = (first.text.count(",") + num_fields) * num_bytes // len(first.text)
    return SeriesFile(path, part, header, header.num_channels or num_fields, num_values)


def _read_examples(files: Sequence[SeriesFile], problems: Problems) -> Iterator[Example]:
    for file in files:
        with _open_bytes(file.path) as opened:
            lines = _read_lines(opened, file.path)
            _read_header(lines, file.path)
            for line in lines:
                example = _read_case(line, file, problems)
                if example is not None:
                    yield example


@contextmanager
def _open_bytes(path: Path) -> Iterator[io.BufferedIOBase]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check that the file is there") from error


def _read_lines(file: io.BufferedIOBase, path: Path) -> Iterator[Line]:
    number = 0
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        place = f"{path}, line {number}"
        if len(raw) > LONGEST_LINE:
            raise RunError(f"{place} is longer than {LONGEST_LINE:,} bytes; write one case a line, or shorter ones")
        text = _decode(raw).removeprefix("\ufeff").strip()
        if text and not text.startswith("#"):
            yield Line(place, text)


def _decode(raw: bytes) -> str:
    """Give a line as text; comments of the archives are not always UTF-8, and any byte is a character of latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _read_header(lines: Iterator[Line], path: Path) -> Header:
    """Read up to the line @data."""
    tags: dict[str, Line] = {}
    for line in lines:
        name, _, rest = line.text.replace("\t", " ").partition(" ")
        if name.lower() == "@data":
            return _understand(tags)
        if not name.startswith("@"):
            raise RunError(f"{line.place} is no line of a header, and no line @data comes before; {HOW_TO_WRITE}")
        tags[name.lower()] = Line(line.place, rest.strip())
    raise RunError(f"{path} has no line @data; {HOW_TO_WRITE}")


def _understand(tags: Mapping[str, Line]) -> Header:
    if _says(tags, "@timestamps"):
        place = tags["@timestamps"].place
        raise RunError(f"{place} says that there are time stamps, which are not read; write the values alone")
    has_classes = _says(tags, "@classlabel")
    classes = tags["@classlabel"].text.split()[1:] if has_classes else []
    dimensions = tags.get("@dimensions", tags.get("@dimension"))
    if dimensions is not None and not re.fullmatch("0*[1-9][0-9]{0,8}", dimensions.text, re.ASCII):
        raise RunError(
            f"{dimensions.place} says {dimensions.text[:40]!r} dimensions; write how many channels there are"
        )
    num_channels = None if dimensions is None else int(dimensions.text)
    has_targets = not has_classes and _says(tags, "@targetlabel")
    return Header(num_channels, has_classes, has_targets, frozenset(map(_to_class, classes)))


def _says(tags: Mapping[str, Line], name: str) -> bool:
    """Say whether a tag is true; one that is not there is false."""
    if name not in tags:
        return False
    word = tags[name].text.partition(" ")[0].lower()
    if word not in ("true", "false"):
        raise RunError(f"{tags[name].place} says {name} {word[:40]!r}; write true or false")
    return word == "true"


def _to_class(word: str) -> str:
    """Give whole numbers without a fraction: one file of a pair may call a class 1.0, the other 1."""
    match = WHOLE_NUMBER.fullmatch(word)
    return word if match is None else match[1]


def _read_case(line: Line, file: SeriesFile, problems: Problems) -> Example | None:
    fields = line.text.split(":")
    channels, last = (fields[:-1], fields[-1].strip()) if file.header.num_last else (fields, "")
    if len(channels) != file.num_channels:
        what = f"has {count_channels(len(channels))} where {count_channels(file.num_channels)} must be"
        cure = "put a colon after each channel, and say in @dimensions how many there are"
        problems.refuse(line.place, what, cure)
        return None
    value_TD = _read_values(channels, line.place, problems)
    if value_TD is None:
        return None
    label = _to_class(last) if file.header.has_classes and last not in ("", "?") else None
    if label is not None and file.header.classes and label not in file.header.classes:
        what = f"has the class {last[:40]!r}, which the header does not list"
        problems.refuse(line.place, what, "correct it, or add it to the line @classLabel")
        return None
    return Example(value_TD, label, line.place, file.part)


def _read_values(channels: Sequence[str], place: str, problems: Problems) -> Float32[np.ndarray, "T D"] | None:
    if not any(channel.strip() for channel in channels):
        problems.skip(place, "is empty")
        return None
    try:
        parsed = [_parse(channel) for channel in channels]
    except ValueError:
        problems.refuse(place, *_find_wrong_value(channels))
        return None
    lengths = [len(value_T) for value_T in parsed]
    if min(lengths) != max(lengths):
        other = next(number for number, length in enumerate(lengths) if length != lengths[0])
        what = f"has {lengths[0]} values in channel 1 and {lengths[other]} in channel {other + 1}"
        problems.refuse(place, what, "give all channels of a case the same length")
        return None
    return np.stack(parsed, axis=1)


def _parse(channel: str) -> Float32[np.ndarray, " T"]:
    """Read the values of a channel; raise ValueError unless all are finite 32-bit floats."""
    # Python alone reads 1_000 and the digits of all scripts as numbers.
    if "_" in channel or not channel.isascii():
        raise ValueError
    double_T: Float64[np.ndarray, " T"] = np.fromiter(map(float, channel.split(",")), dtype=np.float64)
    with np.errstate(over="ignore"):
        value_T = double_T.astype(np.float32)
    if not np.isfinite(value_T).all():
        raise ValueError
    return value_T


def _find_wrong_value(channels: Sequence[str]) -> tuple[str, str]:
    """Say what is wrong with the first value that `_parse` does not read, and the cure."""
    for channel_number, channel in enumerate(channels, start=1):
        for number, text in enumerate(channel.split(","), start=1):
            where = f"value {number} of channel {channel_number}"
            try:
                _parse(text)
            except ValueError:
                if text.strip().lower() in MISSING:
                    return f"has no number as {where}", "fill in what is missing, or leave the case out"
                return f"has {text.strip()[:40]!r} as {where}", "write finite 32-bit floats, separated by commas"
    raise AssertionError("one of the values was wrong a moment ago")
