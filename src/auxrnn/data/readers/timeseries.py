"""Time series in the .ts format of the UCR and UEA archives: a header of `@` lines, then one case per line.

A case is its channels, separated by ":", of values separated by ",", and the class last. Lengths may differ from
case to case; what a header says of lengths and channels is wrong in some files of the archives, and not needed.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from auxrnn.data.examples import Example, ExampleError, Part, Problems, Source, Understood, to_label
from auxrnn.data.formats import Format, check_channels, count_channels, find_bad, fit_channels
from auxrnn.data.readers.rows import Files, read_lines, text_size, to_parts
from auxrnn.errors import RunError, UsageError

HOW_TO_WRITE = (
    "write lines such as @problemName NAME and @classLabel true A B, a line @data, and then one case per line"
)

Lines = Iterator[tuple[str, str]]
"""Lines that are neither blank nor comments, each with its place."""


class SeriesFile(NamedTuple):
    """A file whose header was read."""

    path: Path
    part: Part | None
    classes: frozenset[str] | None
    """Those that the header lists; empty if it lists none, None for cases without a class."""
    has_last: bool
    """Whether a case has a field after its channels: a class, or a number to predict, which is not used."""
    num_channels: int
    """Of the first case; all others must have as many."""
    num_values: int
    """About how many values it holds: as if all cases were like the first."""


def timeseries_source(name: str, files: Files, *, has_labels: bool = True) -> Source:
    """Return the series of one .ts file, or of one for each part.

    Labels that are there are read in any case; `has_labels` says whether they must be.
    """
    parts = to_parts(files)

    def read(problems: Problems, like: Format | None) -> Understood:
        opened = [_open(path, part, needs_labels=has_labels and part != "unlabeled") for part, path in parts.items()]
        form = fit_channels([(str(file.path), file.num_channels) for file in opened], like)
        num_bytes = 4 * sum(file.num_values for file in opened)
        description = f"time series (.ts), {count_channels(form.num_channels)}"
        return Understood(description, form, _read_examples(opened, problems), None, num_bytes)

    named = None if isinstance(files, Path) else ", ".join(files)
    return Source(name, [*parts.values()], {"reader": "timeseries", "has_labels": has_labels, "parts": named}, read)


def _open(path: Path, part: Part | None, *, needs_labels: bool) -> SeriesFile:
    lines = _read_lines(path)
    tags = _read_header(lines, path)
    if "@timestamps" in tags:
        raise RunError(f"{path} has time stamps, which are not read; write the values alone")
    has_last = not tags.keys().isdisjoint(("@classlabel", "@targetlabel"))
    listed = tags.get("@classlabel")
    classes = None if listed is None else frozenset(label for word in listed if (label := to_label(word)))
    if needs_labels and classes is None:
        cure = "write a line @classLabel true A B, and the class at the end of each case after a colon"
        raise UsageError(f"{path} has no labels; {cure}")
    place, first = next(lines, ("", ""))
    num_channels = first.count(":") + 1 - has_last
    if not first or not num_channels:
        found = f"{path} has no cases after its line @data" if not first else f"{place} has only one field"
        raise RunError(f"{found}; write one case per line: the values, a colon, and the class")
    num_values = (first.count(",") + num_channels) * text_size(path) // len(first)
    return SeriesFile(path, part, classes, has_last, num_channels, num_values)


def _read_examples(files: Sequence[SeriesFile], problems: Problems) -> Iterator[Example]:
    for file in files:
        lines = _read_lines(file.path)
        _read_header(lines, file.path)
        for place, text in lines:
            *channels, last = text.split(":") + [""] * (not file.has_last)
            with problems.at(place):
                value_TD = _read_values(channels, file.num_channels)
                label = to_label(last) if file.classes is not None and last.strip() != "?" else None
                if file.classes and label is not None and label not in file.classes:
                    what = f"has the class {last.strip()[:40]!r}, which the header does not list"
                    raise ExampleError(what, "correct it, or add it to the line @classLabel")
                yield Example(value_TD, label, place, file.part)


def _read_lines(path: Path) -> Lines:
    # Comments of the archives are not always UTF-8.
    for number, line in enumerate(read_lines(path, errors="backslashreplace"), start=1):
        if line.strip() and not line.lstrip().startswith(("#", "%")):
            yield f"{path}, line {number}", line.strip()


def _read_header(lines: Lines, path: Path) -> dict[str, list[str]]:
    """Read up to the line @data; return the lines that say "true": their names in lower case, and what comes after."""
    tags: dict[str, list[str]] = {}
    for place, text in lines:
        name, *words = text.split()
        name = name.lower()
        if name == "@data":
            return tags
        if not name.startswith("@"):
            raise RunError(f"{place} is not a header line, and no line @data comes before it; {HOW_TO_WRITE}")
        if words and words[0].lower() == "true":
            tags[name] = words[1:]
    raise RunError(f"{path} has no line @data; {HOW_TO_WRITE}")


def _read_values(channels: Sequence[str], num_channels: int) -> Float32[np.ndarray, "T D"]:
    check_channels(len(channels), num_channels, "put a colon after each channel")
    if not any(channel.strip() for channel in channels):
        raise ExampleError("is empty")
    words = [channel.split(",") for channel in channels]
    if len(set(map(len, words))) > 1:
        what = f"has channels of different lengths ({len(min(words, key=len))} and {len(max(words, key=len))})"
        raise ExampleError(what, "give all channels of a case the same length")
    with np.errstate(over="ignore"):
        value_TD = np.array(
            [[_to_float(word, is_alone=len(channel) == 1) for word in channel] for channel in words]
        ).T.astype(np.float32, order="C")
    if len(found := find_bad(value_TD, may_miss=True)):
        step, channel = found.tolist()
        what = f"has {words[channel][step].strip()[:40]!r} as value {step + 1} of channel {channel + 1}"
        raise ExampleError(what, "write finite 32-bit floats, separated by commas, or omit the case")
    return value_TD


def _to_float(word: str, *, is_alone: bool) -> float:
    """Return a number, NaN where it is missing (a channel of nothing is a mistake), infinity for anything else."""
    try:
        return float(word)
    except ValueError:
        is_missing = word.strip() == "?" or not (word.strip() or is_alone)
        return math.nan if is_missing else math.inf
