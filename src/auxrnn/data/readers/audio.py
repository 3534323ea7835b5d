"""Recordings as sequences: a folder of audio files, a single one, or a table that names them.

Labels are the sub-folders, a part of the file names (`{label}_*`), or a column of the table. All headers are read
first; then one file at a time is decoded, handed on and forgotten. All recordings come at one rate: the one that is
asked for, that of the training data, or that of the first file, from which none may then differ.
Dimension letters: `T` samples in time, `C` channels.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from auxrnn.config import DataConfig
from auxrnn.data.examples import PART_NAMES, ExampleError, Problems, Source, Understood, to_label
from auxrnn.data.folders import AUDIO_SUFFIXES, UNLABELED, Album, Placed, Tree, by_part, find_files, sort_by_folder
from auxrnn.data.formats import Format, SeriesFormat, check_channels, count_channels
from auxrnn.data.readers.recordings import RecordingHeader, decode, read_header
from auxrnn.data.readers.rows import Files, Head, describe_parts, read_head, suffix_of, to_parts
from auxrnn.data.readers.table import TABLE_SUFFIXES, TableOptions, is_called, open_tables, read_texts
from auxrnn.data.spec import check_options
from auxrnn.errors import UsageError
from auxrnn.files import printable

FILE_NAMES = re.compile(
    "(audio_?|wav_?|sound_?)?(files?|file_?names?|file_?paths?|paths?)|recordings?|audio|wavs?|clips?|sounds?"
)
WILDCARDS = {"*": ".*", "?": ".", "{label}": "(?P<label>.+?)"}
LAYOUT = (
    "give it one sub-folder of recordings for each class, or --label-pattern '{label}_*' if file names begin with the"
    " class, or a table with the columns file and label"
)


def audio_source(name: str, path: Path, config: DataConfig, *, has_labels: bool) -> Source:
    """Return all recordings below a folder, or a single file."""
    pattern = config.label_pattern if has_labels else None
    if path.is_file() and has_labels and pattern is None:
        raise UsageError(f"{name} is a single recording; give the folder it is in, or a table with file and label")
    check_options(config, ("sample_rate", "label_pattern"), what="audio")
    tree = find_files(path, AUDIO_SUFFIXES)

    def sort(problems: Problems) -> Album:
        if pattern is not None:
            return _sort_by_name(tree, pattern, problems)
        return _sort_by_folder(tree, problems, has_labels=has_labels)

    options = {"reader": "audio", "below": tree.below, "label_pattern": config.label_pattern, "has_labels": has_labels}
    return _source(name, "folder of audio", sort, config.sample_rate, options, tree.paths())


def _sort_by_folder(tree: Tree, problems: Problems, *, has_labels: bool) -> Album:
    """Return each recording with the class of its folder; without two, a table that names them may have the labels."""
    table = next(_find_tables(tree.folder), None) if has_labels else None
    cure = LAYOUT if table is None else printable(f"give {table} instead, the table that names them")
    album = sort_by_folder(tree, problems, has_labels=has_labels, kind="audio", cure=cure)
    if table is not None and len(labels := {file.label for file in album.files} - {None}) == 1:
        problems.refuse(printable(tree.folder), f"has the single class folder {labels.pop()!r}", cure)
    return album


def _find_tables(folder: Path) -> Iterator[Path]:
    """Yield the tables in a folder that name recordings."""
    for file in sorted(folder.iterdir()):
        with Problems(is_patient=True).noting_errors():
            if suffix_of(file) in TABLE_SUFFIXES and find_audio_column(read_head(file)) is not None:
                yield file


def audio_table_source(name: str, files: Files, options: TableOptions, sample_rate: int | None) -> Source:
    """Return the recordings that the text column of a table names, or of one table for each part."""
    noted, found = Problems(is_patient=True), list[Placed]()
    with noted.noting_errors():
        found = _read_tables(files, options, noted)
    plain = options._asdict() | {"reader": "audio_table", "parts": describe_parts(files)}
    return _source(
        name,
        "table of audio files",
        lambda problems: Album(_read_tables(files, options, problems), []),
        sample_rate,
        plain,
        [*to_parts(files).values(), *(recording.path for recording in found)],
    )


def find_audio_column(head: Head) -> str | None:
    """Return the column of a table that names audio files, by its own name and its values; None if there is none."""
    return next(
        (
            name
            for name, cells in zip(head.names, head.cells, strict=True)
            if is_called(name, FILE_NAMES) and any(str(cell).lower().endswith(AUDIO_SUFFIXES) for cell in cells)
        ),
        None,
    )


def _read_tables(files: Files, options: TableOptions, problems: Problems) -> list[Placed]:
    recordings = []
    for table, place, name, label in read_texts(open_tables(files, options, problems), problems):
        path = table.path.parent / name.strip()
        if os.path.isfile(path):  # noqa: PTH113 - a name may be too long for Path
            recordings.append(Placed(path, (), label, table.part, ""))
        else:
            what = printable(f"names {name[:200]!r}, which is no file beside the table")
            problems.refuse(place, what, "give paths relative to the table's folder")
    return recordings


def _sort_by_name(tree: Tree, pattern: str, problems: Problems) -> Album:
    """Return each recording with the class in its name; folders called train, test and so on are parts."""
    tree.report(problems, "audio")
    pieces = re.split(r"(\{\w+\}|[*?])", pattern)
    # Every other piece is a wildcard.
    known = "".join(WILDCARDS.get(p, ".+") if number % 2 else re.escape(p) for number, p in enumerate(pieces))
    files = []
    for names in tree.files:
        match = re.fullmatch(known, Path(names[-1]).stem, re.DOTALL)
        label = None if match is None else to_label(printable(match["label"]))
        part = PART_NAMES.get(names[0].lower()) if len(names) > 1 else None
        if label is None and part != UNLABELED:
            cure = "rename it, leave it out or give another pattern"
            what = f"does not match --label-pattern {pattern!r} (which leaves out the suffix)"
            problems.refuse(tree.place(names), what, cure)
            continue
        files.append(tree.put(names, None if part == UNLABELED else label, part, ""))
    return Album(by_part(files), [])


def _source(
    name: str,
    kind: str,
    sort: Callable[[Problems], Album],
    sample_rate: int | None,
    options: Mapping[str, object],
    files: Sequence[Path],
) -> Source:
    """Return recordings as a source, given how they are sorted into classes and parts."""

    def read(problems: Problems, like: Format | None) -> Understood:
        if like is not None and (not isinstance(like, SeriesFormat) or like.sample_rate is None):
            raise UsageError(f"{name} holds audio, and the training data is of another kind; give the same kind")
        album, form, needed = sort(problems), like, None
        can_skip, headers, found = len(album.files) > 1, dict[Path, RecordingHeader](), list[Placed]()
        for file in album.files:
            header = None
            with problems.at(file.place, can_skip=can_skip):
                header = read_header(file.path)
            if header is None:
                continue
            if form is None:
                form = SeriesFormat(header.num_channels, sample_rate=sample_rate or header.rate)
                needed = None if sample_rate else (file.place, header.rate)
            with problems.at(file.place):
                _check_rate(header, needed)
                check_channels(header.num_channels, form.num_channels, "give all recordings the same channels")
                headers[file.path] = header
                found.append(file)
        # If none can be read, the format does not matter: there will be no examples.
        fitted = form or SeriesFormat(1, sample_rate=sample_rate or 1)
        album, rate = Album(found, album.groups if can_skip else []), fitted.sample_rate or 1
        num_steps = sum(header.num_steps * rate // header.rate + 1 for header in headers.values())

        def load(file: Placed) -> Float32[np.ndarray, "T C"]:
            return decode(file.path, headers[file.path], rate=rate)

        examples = album.read_each(load, "recordings", problems, can_skip=can_skip)
        num_bytes = 4 * fitted.num_channels * num_steps
        return Understood(_describe(kind, album, fitted), fitted, examples, len(found), num_bytes)

    return Source(name, files, {**options, "sample_rate": sample_rate}, read)


def _check_rate(header: RecordingHeader, needed: tuple[str, int] | None) -> None:
    """Refuse another rate than that of the first recording, which is given with its place."""
    if needed is not None and header.rate != needed[1]:
        what = f"has {header.rate:,} samples a second where {needed[0]} has {needed[1]:,}"
        raise ExampleError(what, f"give --sample-rate {needed[1]} to resample all")


def _describe(kind: str, album: Album, form: SeriesFormat) -> str:
    if not album.files:
        return f"{kind}, no recordings that can be read"
    rate = f"{form.sample_rate:,} samples a second, {count_channels(form.num_channels)}"
    return f"{kind}, {album.describe('recordings')}, {rate}"
