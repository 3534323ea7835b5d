"""Time series in the .ts format of the UCR and UEA archives: a header of `@` lines, then one case per line.

A case is its channels, separated by ":", of values separated by ",", and the class last. Lengths may differ from
case to case; what a header says of them is wrong in some files of the archives, and not needed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64

from auxrnn.data.examples import Example, ExampleError, Part, Plain, Problems, Source, Understood, to_label
from auxrnn.data.formats import Format
from auxrnn.data.series import count_channels, fit_channels
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_read

LONGEST_LINE = 2**26
MISSING = ("", "?", "nan")
HOW_TO_WRITE = (
    "write lines such as @problemName NAME and @classLabel true A B, a line @data, and then one case per line"
)


class TaggedLine(NamedTuple):
    """A line that is neither blank nor a comment."""

    place: str
    text: str


class SeriesHeader(NamedTuple):
    """What a file says of its cases."""

    num_channels: int | None
    has_classes: bool
    has_targets: bool
    """Whether a case ends with a number to predict instead of a class; it is not used."""
    classes: frozenset[str]
    """The classes that may come; empty where any may."""

    @property
    def has_last(self) -> bool:
        """Whether a case has a field after its channels."""
        return self.has_classes or self.has_targets


class SeriesFile(NamedTuple):
    """A file whose header was read."""

    path: Path
    part: Part | None
    header: SeriesHeader
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
        opened = [_open(path, part, needs_labels=has_labels and part != "unlabeled") for part, path in paths]
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


def _open(path: Path, part: Part | None, *, needs_labels: bool) -> SeriesFile:
    lines = _read_lines(path)
    header = _read_header(lines, path)
    if needs_labels and not header.has_classes:
        found = "numbers to predict and no classes" if header.has_targets else "no labels"
        cure = "write a line @classLabel true A B, and the class at the end of each case after a colon"
        raise UsageError(f"{path} has {found}; {cure}")
    first = next(lines, None)
    if first is None:
        raise RunError(f"{path} has no cases after its line @data; write one case per line")
    num_fields = first.text.count(":") + 1 - int(header.has_last)
    if num_fields == 0:
        raise RunError(f"{first.place} has only one field; write the values, a colon, and the class")
    num_values = (first.text.count(",") + num_fields) * path.stat().st_size // len(first.text)
    return SeriesFile(path, part, header, header.num_channels or num_fields, num_values)


def _read_examples(files: Sequence[SeriesFile], problems: Problems) -> Iterator[Example]:
    for file in files:
        lines = _read_lines(file.path)
        _read_header(lines, file.path)
        for place, text in lines:
            *channels, last = text.split(":") + [""] * (not file.header.has_last)
            try:
                value_TD = _read_values(channels, file.num_channels)
                label = _read_class(last.strip(), file.header)
            except ExampleError as error:
                problems.refuse(place, error.what, error.cure)
                continue
            if len(value_TD):
                yield Example(value_TD, label, place, file.part)
            else:
                problems.skip(place, "is empty")


def _read_lines(path: Path) -> Iterator[TaggedLine]:
    number = 0
    try:
        with path.open("rb") as file:
            while raw := file.readline(LONGEST_LINE + 1):
                number += 1
                place = f"{path}, line {number}"
                if len(raw) > LONGEST_LINE:
                    cure = "write one case per line, or shorter ones"
                    raise RunError(f"{place} is longer than {LONGEST_LINE:,} bytes; {cure}")
                text = _decode(raw).removeprefix("\ufeff").strip()
                if text and not text.startswith("#"):
                    yield TaggedLine(place, text)
    except OSError as error:
        raise cannot_read(path, error) from error


def _decode(raw: bytes) -> str:
    """Return a line as text; comments of the archives are not always UTF-8, and any byte is a character of latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _read_header(lines: Iterator[TaggedLine], path: Path) -> SeriesHeader:
    """Read up to the line @data."""
    tags: dict[str, TaggedLine] = {}
    for place, text in lines:
        name, _, rest = text.replace("\t", " ").partition(" ")
        if name.lower() == "@data":
            return _understand(tags)
        if not name.startswith("@"):
            raise RunError(f"{place} is not a header line, and no line @data comes before it; {HOW_TO_WRITE}")
        tags[name.lower()] = TaggedLine(place, rest.strip())
    raise RunError(f"{path} has no line @data; {HOW_TO_WRITE}")


def _understand(tags: Mapping[str, TaggedLine]) -> SeriesHeader:
    if _is_true(tags, "@timestamps"):
        raise RunError(f"{tags['@timestamps'].place} announces time stamps, which are not read; write the values alone")
    dimensions = tags.get("@dimensions", tags.get("@dimension"))
    if dimensions is not None and not re.fullmatch("0*[1-9][0-9]{0,8}", dimensions.text, re.ASCII):
        found = f"{dimensions.place} says {dimensions.text[:40]!r} dimensions"
        raise RunError(f"{found}; write how many channels there are")
    has_classes = _is_true(tags, "@classlabel")
    has_targets = not has_classes and _is_true(tags, "@targetlabel")
    classes = tags["@classlabel"].text.split()[1:] if has_classes else []
    num_channels = None if dimensions is None else int(dimensions.text)
    return SeriesHeader(num_channels, has_classes, has_targets, frozenset(to_label(word) or "" for word in classes))


def _is_true(tags: Mapping[str, TaggedLine], name: str) -> bool:
    if name not in tags:
        return False
    word = tags[name].text.partition(" ")[0].lower()
    if word not in ("true", "false"):
        raise RunError(f"{tags[name].place} says {name} {word[:40]!r}; write true or false")
    return word == "true"


def _read_class(word: str, header: SeriesHeader) -> str | None:
    if not header.has_classes or word in ("", "?"):
        return None
    label = to_label(word)
    if header.classes and label not in header.classes:
        what = f"has the class {word[:40]!r}, which the header does not list"
        raise ExampleError(what, "correct it, or add it to the line @classLabel")
    return label


def _read_values(channels: Sequence[str], num_channels: int) -> Float32[np.ndarray, "T D"]:
    if len(channels) != num_channels:
        what = f"has {count_channels(len(channels))} instead of {count_channels(num_channels)}"
        raise ExampleError(what, "put a colon after each channel, and say in @dimensions how many there are")
    if not any(channel.strip() for channel in channels):
        return np.zeros((0, num_channels), dtype=np.float32)
    try:
        parsed = [_parse(channel) for channel in channels]
    except ValueError:
        raise _find_wrong_value(channels) from None
    for number, value_T in enumerate(parsed, start=1):
        if len(value_T) != len(parsed[0]):
            what = f"has {len(parsed[0])} values in channel 1 and {len(value_T)} in channel {number}"
            raise ExampleError(what, "give all channels of a case the same length")
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


def _find_wrong_value(channels: Sequence[str]) -> ExampleError:
    """Return what is wrong with the first value that `_parse` does not read."""
    for channel_number, channel in enumerate(channels, start=1):
        for number, text in enumerate(channel.split(","), start=1):
            where = f"value {number} of channel {channel_number}"
            try:
                _parse(text)
            except ValueError:
                if text.strip().lower() in MISSING:
                    return ExampleError(f"has no number as {where}", "fill in what is missing, or omit the case")
                what = f"has {text.strip()[:40]!r} as {where}"
                return ExampleError(what, "write finite 32-bit floats, separated by commas")
    raise AssertionError("one of the values was wrong a moment ago")
