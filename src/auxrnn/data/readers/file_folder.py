"""Folders of one file per sequence, sorted into classes by sub-folders: .npy, tables (.csv, .tsv), texts (.txt).

A table is one series here: its rows are the steps, its columns the channels.
Dimension letters: `T` steps, `D` channels.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, ExampleError, Problems, Source, Understood
from auxrnn.data.folders import Placed, Tree, find_files, sort_by_folder
from auxrnn.data.formats import Format, SeriesFormat, TextFormat, count_channels, kind_of
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES, load_series
from auxrnn.data.readers.numbers import read_series
from auxrnn.data.readers.rows import read_lines, suffix_of
from auxrnn.data.readers.table import check_text
from auxrnn.errors import UsageError
from auxrnn.files import printable

TEXT_SUFFIX = ".txt"
FILE_SUFFIXES = (".npy", ".csv", ".tsv", TEXT_SUFFIX)
LAYOUT = "give it one sub-folder of files for each class, or train/, val/ and test/ with such folders in them"

Sorted = Sequence[tuple[Path, Placed]]
"""Each file with what its place says of it, training first."""


def file_folder_source(name: str, path: Path, config: DataConfig, *, has_labels: bool = True) -> Source:
    """Return the sequences of a folder, or of a single file, to predict."""
    tree = find_files(path, FILE_SUFFIXES) if path.is_dir() else Tree(path.parent, ((path.name,),), (), (), ())
    below = os.path.commonpath(["/".join(names[:-1]) for names in tree.files]) if tree.files else ""

    def read(problems: Problems, like: Format | None) -> Understood:
        tree.report(problems, "a sequence")
        placed, groups = sort_by_folder(tree, problems, has_labels=has_labels, cure=LAYOUT)
        files = [(tree.folder.joinpath(*one.names), one) for one in placed]
        are_texts = {path.suffix.lower() == TEXT_SUFFIX for path, _ in files}
        if len(are_texts) > 1:
            raise UsageError(f"{name} holds .txt files beside others; texts and series need folders of their own")
        form = _fit(name, files, config, problems) if like is None else like
        if not isinstance(form, TextFormat if are_texts == {True} else SeriesFormat):
            what = "texts" if are_texts == {True} else "series of numbers"
            raise UsageError(f"{name} holds {what} where the other data is of {kind_of(form)}; give it the same kind")
        num_bytes = 4 * sum(path.stat().st_size for path, _ in files)
        examples = _read_examples(files, groups, form, problems)
        return Understood(_describe(files, form), form, examples, len(files), num_bytes)

    options = {"reader": "file_folder", "below": below, "tokens": config.tokens, "has_labels": has_labels}
    return Source(name, tree.paths(), options, read)


def _fit(name: str, files: Sorted, config: DataConfig, problems: Problems) -> Format:
    """Return the format of the first file that can be read."""
    for path, _ in files:
        if path.suffix.lower() == TEXT_SUFFIX:
            if config.tokens == "integers":
                raise UsageError("tokens is 'integers', which is for arrays; texts are read by characters or bytes")
            return TextFormat(config.tokens, is_file=True)
        with Problems(is_patient=True).noting_errors():
            try:
                return SeriesFormat(_load(path, Problems()).shape[1], is_file=True)
            except ExampleError:
                continue
    if not problems.num_refused:
        problems.refuse(printable(name), "has no file that can be read", "save its files again")
    return SeriesFormat(1, is_file=True)


def _describe(files: Sorted, form: Format) -> str:
    labels = {placed.label for _, placed in files} - {None}
    what = f"series of {count_channels(form.num_channels)}" if isinstance(form, SeriesFormat) else "texts"
    return f"folder of files, {len(files):,} {what}{f', {len(labels)} classes' if labels else ''}"


def _read_examples(files: Sorted, groups: Sequence[str], form: Format, problems: Problems) -> Iterator[Example]:
    empty = dict.fromkeys(groups)
    for path, placed in files:
        place = printable(path)
        with problems.noting_errors(), problems.at(place):
            if isinstance(form, TextFormat):
                text = "".join(read_lines(path)).replace("\r\n", "\n")
                check_text(text)
                yield Example(form.to_values(text), placed.label, place, placed.part)
            else:
                value_TD = _load(path, problems)
                assert isinstance(form, SeriesFormat)
                if value_TD.shape[1] != form.num_channels:
                    what = f"has {count_channels(value_TD.shape[1])} instead of {count_channels(form.num_channels)}"
                    raise ExampleError(what, "give all files the same channels")
                yield Example(value_TD, placed.label, place, placed.part)
            empty.pop(placed.group, None)
    for group in empty:
        problems.refuse(group, "has no files that can be read", "add some or remove the folder")


def _load(path: Path, problems: Problems) -> Float32[np.ndarray, "T D"]:
    return load_series(path) if suffix_of(path) in ARRAY_SUFFIXES else read_series(path, problems)
