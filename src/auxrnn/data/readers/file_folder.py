"""Folders of one file per sequence, sorted into classes by sub-folders: .npy, tables (.csv, .tsv), texts (.txt).

A table is one series here: its rows are the steps, its columns the channels.
Dimension letters: `T` steps, `D` channels.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float32, Shaped

from auxrnn.config import DataConfig
from auxrnn.data.examples import ExampleError, Problems, Source, Understood
from auxrnn.data.folders import Album, Placed, find_files, sort_by_folder
from auxrnn.data.formats import Format, SeriesFormat, TextFormat, check_channels, count_channels, count_values, kind_of
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES, load_series
from auxrnn.data.readers.numbers import read_series
from auxrnn.data.readers.rows import read_lines, suffix_of
from auxrnn.data.readers.table import check_text
from auxrnn.errors import UsageError
from auxrnn.files import printable

TEXT_SUFFIX = ".txt"
FILE_SUFFIXES = (".npy", ".csv", ".tsv", TEXT_SUFFIX)
LAYOUT = "give it one sub-folder of files for each class, or train/, val/ and test/ with such folders in them"


def file_folder_source(name: str, path: Path, config: DataConfig, *, has_labels: bool = True) -> Source:
    """Return the sequences of a folder, or of a single file, to predict."""
    tree = find_files(path, FILE_SUFFIXES)

    def read(problems: Problems, like: Format | None) -> Understood:
        album = sort_by_folder(tree, problems, has_labels=has_labels, kind="a sequence", cure=LAYOUT)
        are_texts = {file.path.suffix.lower() == TEXT_SUFFIX for file in album.files}
        if len(are_texts) > 1:
            raise UsageError(f"{name} holds .txt files beside others; texts and series need folders of their own")
        form = _fit(name, album, config, problems) if like is None else like
        if not isinstance(form, TextFormat if are_texts == {True} else SeriesFormat):
            what = "texts" if are_texts == {True} else "series of numbers"
            raise UsageError(f"{name} holds {what} where the other data is of {kind_of(form)}; give it the same kind")
        what = f"series of {count_channels(form.num_channels)}" if isinstance(form, SeriesFormat) else "texts"
        num_bytes = 4 * sum(file.path.stat().st_size for file in album.files)

        def load(file: Placed) -> Shaped[np.ndarray, "T *D"]:
            if isinstance(form, TextFormat):
                text = "".join(read_lines(file.path)).replace("\r\n", "\n")
                check_text(text)
                return form.to_values(text)
            value_TD = _load(file.path, problems)
            check_channels(value_TD.shape[1], count_values(form), "give all files the same channels")
            return value_TD

        examples = album.read_each(load, "files", problems, can_skip=False)
        return Understood(f"folder of files, {album.describe(what)}", form, examples, len(album.files), num_bytes)

    options = {"reader": "file_folder", "below": tree.below, "tokens": config.tokens, "has_labels": has_labels}
    return Source(name, tree.paths(), options, read)


def _fit(name: str, album: Album, config: DataConfig, problems: Problems) -> Format:
    """Return the format of the first file that can be read."""
    for path, *_ in album.files:
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


def _load(path: Path, problems: Problems) -> Float32[np.ndarray, "T D"]:
    return load_series(path) if suffix_of(path) in ARRAY_SUFFIXES else read_series(path, problems)
