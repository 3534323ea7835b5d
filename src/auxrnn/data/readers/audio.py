"""Recordings as sequences: a folder of audio files, a single one, or a table that names them.

Labels are the sub-folders, a part of the file names (`{label}_*`), or a column of the table. All headers are read
first; then one file at a time is decoded, handed on and forgotten. All recordings come at one rate: the one that is
asked for, that of the training data, or that of the first file, from which none may then differ.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.examples import PART_NAMES, Example, Part, Problems, Source, Understood, to_label
from auxrnn.data.folders import AUDIO_SUFFIXES, ORDER, UNLABELED, Placed, Tree, find_files, sort_by_folder
from auxrnn.data.formats import Format, SeriesFormat, count_channels
from auxrnn.data.readers.recordings import RecordingHeader, decode, read_header
from auxrnn.data.readers.rows import KINDS, NUM_SAMPLED, read_names, suffix_of
from auxrnn.data.readers.table import TableOptions, is_called, open_tables, read_texts
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable

FILE_NAMES = re.compile(
    "(audio_?|wav_?|sound_?)?(files?|file_?names?|file_?paths?|paths?)|recordings?|audio|wavs?|clips?|sounds?"
)
WILDCARDS = {"*": ".*", "?": ".", "{label}": "(?P<label>.+?)"}
LAYOUT = (
    "give it one sub-folder of recordings for each class, or --label-pattern '{label}_*' if file names begin with the"
    " class, or a table with the columns file and label"
)


class AudioOptions(NamedTuple):
    """What a user may ask of recordings."""

    sample_rate: int | None = None
    """Resample all to so many samples a second; None: all must have the same, which is kept."""
    label_pattern: str | None = None
    """Where the label stands in the names of files; None: folders are classes."""
    has_labels: bool = True
    """Whether there must be labels."""


class Recording(NamedTuple):
    """An audio file, and what becomes known of it."""

    path: Path
    label: str | None
    part: Part | None
    group: str
    """The folder of its class, or the table, which may not come out empty."""
    header: RecordingHeader = RecordingHeader(0, 0, 0)

    @property
    def place(self) -> str:
        """Return its name, for error messages."""
        return printable(self.path)


class Collection(NamedTuple):
    """All recordings of a source, training first."""

    kind: str
    recordings: Sequence[Recording]
    groups: Sequence[str]


def audio_source(name: str, path: Path, options: AudioOptions) -> Source:
    """Return all recordings below a folder, or a single file."""
    if path.is_file() and options.has_labels and options.label_pattern is None:
        raise UsageError(f"{name} is a single recording; give a folder, {LAYOUT.partition(' ')[2]}")
    single = Tree(path.parent, ((path.name,),), (), (), ())
    tree = find_files(path, AUDIO_SUFFIXES) if path.is_dir() else single
    # Labels and parts depend on all folders below this one; a checksum of the files knows only where they differ.
    below = os.path.commonpath(["/".join(names[:-1]) for names in tree.files]) if tree.files else ""
    plain = {"reader": "audio", "below": below, **options._asdict()}
    return _source(name, lambda problems: _sort(tree, options, problems), options.sample_rate, plain, tree.paths())


def audio_table_source(
    name: str, files: Mapping[Part, Path] | Path, options: TableOptions, sample_rate: int | None
) -> Source:
    """Return the recordings that the text column of a table names, or of one table for each part."""
    parts: dict[Part | None, Path] = {None: files} if isinstance(files, Path) else dict(files.items())
    noted, found = Problems(is_patient=True), list[Recording]()
    with noted.noting_errors():
        found = _read_tables(parts, options, noted)
    named = " ".join(f"{part}{path.suffix.lower()}" for part, path in parts.items())
    plain = options._asdict() | {"reader": "audio_table", "parts": named, "sample_rate": sample_rate}

    def sort(problems: Problems) -> Collection:
        return Collection("table of audio files", _read_tables(parts, options, problems), [])

    return _source(name, sort, sample_rate, plain, [*parts.values(), *(recording.path for recording in found)])


def find_audio_column(path: Path) -> str | None:
    """Return the column of a table that names audio files, by its own name and its values; None if there is none."""
    try:
        names, _ = read_names(path)
        rows = KINDS[suffix_of(path)].read(path, Problems(is_patient=True), None)
        records = [record for _, record in islice(rows, NUM_SAMPLED)]
    except (RunError, UsageError):
        # Whoever reads the table for its texts says what is wrong.
        return None
    for index, name in enumerate(names):
        values = [record.get(name) if isinstance(record, dict) else "".join(record[index:][:1]) for record in records]
        if is_called(name, FILE_NAMES) and any(str(value).lower().endswith(AUDIO_SUFFIXES) for value in values):
            return name
    return None


def _read_tables(parts: Mapping[Part | None, Path], options: TableOptions, problems: Problems) -> list[Recording]:
    recordings = []
    for table, place, name, label in read_texts(open_tables(parts, options, problems), problems):
        path = table.path.parent / name.strip()
        if os.path.isfile(path):  # noqa: PTH113 - a name may be too long for Path
            recordings.append(Recording(path, label, table.part, str(table.path)))
        else:
            what = printable(f"names {name[:200]!r}, which is no file beside the table")
            problems.refuse(place, what, "give paths relative to the table's folder")
    return recordings


def _sort(tree: Tree, options: AudioOptions, problems: Problems) -> Collection:
    """Return each recording with the class and the part of its folder, or the class in its name."""
    tree.report(problems, "audio")
    groups: Sequence[str] = []
    if options.has_labels and options.label_pattern is not None:
        placed = _sort_by_name(tree, options.label_pattern, problems)
    else:
        placed, groups = sort_by_folder(tree, problems, has_labels=options.has_labels, cure=LAYOUT)
    recordings = [Recording(tree.folder.joinpath(*one.names), *one[1:]) for one in placed]
    return Collection("folder of audio", recordings, groups if len(recordings) > 1 else [])


def _sort_by_name(tree: Tree, pattern: str, problems: Problems) -> list[Placed]:
    """Return each recording with the class in its name; folders called train, test and so on are parts."""
    pieces = re.split(r"(\{\w+\}|[*?])", pattern)
    # Every other piece is a wildcard.
    known = "".join(WILDCARDS.get(p, ".+") if number % 2 else re.escape(p) for number, p in enumerate(pieces))
    placed = []
    for names in tree.files:
        match = re.fullmatch(known, Path(names[-1]).stem, re.DOTALL)
        label = None if match is None else to_label(printable(match["label"]))
        part = PART_NAMES.get(names[0].lower()) if len(names) > 1 else None
        if label is None and part != UNLABELED:
            cure = "rename it, leave it out or give another pattern"
            problems.refuse(tree.place(names), f"does not match --label-pattern {pattern!r}", cure)
            continue
        placed.append(Placed(names, None if part == UNLABELED else label, part, ""))
    return sorted(placed, key=lambda one: ORDER.index(one.part))


def _source(
    name: str,
    sort: Callable[[Problems], Collection],
    sample_rate: int | None,
    plain: Mapping[str, object],
    files: Sequence[Path],
) -> Source:
    """Return recordings as a source, given how they are sorted into classes and parts."""

    def read(problems: Problems, like: Format | None) -> Understood:
        if like is not None and (not isinstance(like, SeriesFormat) or like.sample_rate is None):
            raise UsageError(f"{name} holds audio, and the training data is of another kind; give the same kind")
        kind, recordings, groups = sort(problems)
        can_skip, found = len(recordings) > 1, list[Recording]()
        for recording in recordings:
            with problems.at(recording.place, can_skip=can_skip):
                found.append(recording._replace(header=read_header(recording.path)))
        # If none can be read, the format does not matter: there will be no examples.
        first = found[0] if found else Recording(Path(name), None, None, "", RecordingHeader(1, 1, 0))
        form = like or SeriesFormat(first.header.num_channels, sample_rate=sample_rate or first.header.rate)
        if like is None and sample_rate is None:
            found = [recording for recording in found if _has_rate(recording, first, problems)]
        found = [recording for recording in found if _has_channels(recording, form, problems)]
        examples = _read_examples(found, form, groups, problems, can_skip=can_skip)
        return Understood(_describe(kind, found, form), form, examples, len(found), _count_bytes(found, form))

    return Source(name, files, plain, read)


def _has_rate(recording: Recording, first: Recording, problems: Problems) -> bool:
    rate, needed = recording.header.rate, first.header.rate
    if rate != needed:
        what = f"has {rate:,} samples a second where {first.place} has {needed:,}"
        problems.refuse(recording.place, what, f"give --sample-rate {needed} to resample all")
    return rate == needed


def _has_channels(recording: Recording, form: SeriesFormat, problems: Problems) -> bool:
    found, needed = recording.header.num_channels, form.num_channels
    if found != needed:
        what = f"has {count_channels(found)} instead of {count_channels(needed)}"
        problems.refuse(recording.place, what, "give all recordings the same channels")
    return found == needed


def _describe(kind: str, recordings: Sequence[Recording], form: SeriesFormat) -> str:
    if not recordings:
        return f"{kind}, no recordings that can be read"
    labels = {recording.label for recording in recordings} - {None}
    classes = f"{len(labels)} class{'es' * (len(labels) != 1)}, " if labels else ""
    rate = f"{form.sample_rate:,} samples a second, {count_channels(form.num_channels)}"
    return f"{kind}, {len(recordings):,} recordings, {classes}{rate}"


def _count_bytes(recordings: Sequence[Recording], form: SeriesFormat) -> int:
    assert form.sample_rate is not None, "audio has a rate"
    headers = [recording.header for recording in recordings]
    return sum(4 * form.num_channels * (header.num_steps * form.sample_rate // header.rate + 1) for header in headers)


def _read_examples(
    recordings: Sequence[Recording], form: SeriesFormat, groups: Sequence[str], problems: Problems, *, can_skip: bool
) -> Iterator[Example]:
    """Yield each recording; refuse groups of which none could be read."""
    assert form.sample_rate is not None, "audio has a rate"
    empty = dict.fromkeys(groups)
    for path, label, part, group, header in recordings:
        with problems.at(printable(path), can_skip=can_skip):
            value_TC = decode(path, header, rate=form.sample_rate)
            empty.pop(group, None)
            yield Example(value_TC, label, printable(path), part)
    for group in empty:
        problems.refuse(group, "has no recordings that can be read", "add some or remove the folder")
