"""The user's own files: which reader a path is for."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from auxrnn.config import DataConfig
from auxrnn.data.archives import ARCHIVE_SUFFIXES, unpack
from auxrnn.data.cache import find_checksum
from auxrnn.data.examples import SPLIT_NAMES, Part, Source
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES, array_source, is_array_folder
from auxrnn.data.readers.dogs import dogs_source, is_dogs_folder
from auxrnn.data.readers.image_folder import PICTURE_SUFFIXES, ImageOptions, find_image_folder, image_folder_source
from auxrnn.data.readers.table import TABLE_SUFFIXES, TableOptions, table_source
from auxrnn.data.readers.timeseries import timeseries_source
from auxrnn.data.spec import check_options
from auxrnn.errors import UsageError
from auxrnn.files import cache_dir

PART_NAMES: dict[str, Part] = {**SPLIT_NAMES, "unlabeled": "unlabeled"}
Files = Mapping[Part, Path] | Path
"""One file, or one for each part."""
FORMS = (
    "a folder with one sub-folder of images per class, a table of texts (.csv, .tsv, .jsonl, .parquet), arrays (.npz,"
    " .npy), time series (.ts), or a .zip or .tar of these"
)


class FileKind(NamedTuple):
    """One kind of file, and how it is read."""

    title: str
    suffixes: tuple[str, ...]
    options: tuple[str, ...]
    """The options of `DataConfig` that have an effect on it."""
    open: Callable[[str, Files, DataConfig, bool], Source]
    """From the name, the files, the options and whether there must be labels."""
    takes_parts: bool = True
    """Whether train.X and test.X in one folder belong together."""


def _open_table(name: str, files: Files, config: DataConfig, has_labels: bool) -> Source:
    options = TableOptions(config.text_column, config.label_column, config.tokens, has_labels=has_labels)
    return table_source(name, files, options)


def _open_series(name: str, files: Files, _config: DataConfig, has_labels: bool) -> Source:
    return timeseries_source(name, files, has_labels=has_labels)


def _open_arrays(name: str, files: Files, _config: DataConfig, has_labels: bool) -> Source:
    assert isinstance(files, Path), "the parts of arrays are in their names"
    return array_source(name, files, has_labels=has_labels)


TABLES = FileKind("a table of texts", TABLE_SUFFIXES, ("text_column", "label_column", "tokens"), _open_table)
SERIES = FileKind("time series", (".ts",), (), _open_series)
ARRAYS = FileKind("arrays", ARRAY_SUFFIXES, (), _open_arrays, takes_parts=False)
KINDS = {suffix: kind for kind in (TABLES, SERIES, ARRAYS) for suffix in kind.suffixes}
"""Every kind of file by suffix; a new one is a reader that returns a `Source`, and its line above."""


def find_source(path: Path, config: DataConfig, *, has_labels: bool = True) -> Source:
    """Return the source for a path, by its name and by what is in it; nothing is opened yet."""
    if not path.exists():
        raise UsageError(f"{path} does not exist; give {FORMS}")
    if is_archive(path):
        return _find_in_folder(str(path), _unpack(path), config, has_labels=has_labels)
    if path.is_dir():
        return _find_in_folder(str(path), path, config, has_labels=has_labels)
    return _open_files(str(path), _with_partners(path), config, has_labels=has_labels)


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive, by its name."""
    return path.is_file() and path.name.lower().endswith(ARCHIVE_SUFFIXES)


def _find_in_folder(name: str, folder: Path, config: DataConfig, *, has_labels: bool) -> Source:
    if is_dogs_folder(folder) and has_labels:
        check_options(config, ("image_size", "enlarge_to"), what="a folder of images")
        return dogs_source(name, folder, ImageOptions(config.image_size, config.enlarge_to))
    if is_array_folder(folder):
        check_options(config, ARRAYS.options, what=ARRAYS.title)
        return array_source(name, folder, has_labels=has_labels)
    if files := _find_parts(folder):
        return _open_files(name, files, config, has_labels=has_labels)
    if find_image_folder(folder, has_labels=has_labels):
        check_options(config, ("image_size", "enlarge_to"), what="a folder of images")
        return image_folder_source(name, folder, ImageOptions(config.image_size, config.enlarge_to, has_labels))
    raise UsageError(f"{name} holds no data that can be read; give {FORMS}")


def _open_files(name: str, files: Files, config: DataConfig, *, has_labels: bool) -> Source:
    first = files if isinstance(files, Path) else next(iter(files.values()))
    suffix = first.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        raise UsageError(f"{name} is a single image; give a folder with one sub-folder of images per class")
    if suffix not in KINDS:
        raise UsageError(f"{name} is of an unknown kind ({suffix or 'no suffix'}); give {FORMS}")
    kind = KINDS[suffix]
    check_options(config, kind.options, what=kind.title)
    return kind.open(name, files, config, has_labels)


def _find_parts(folder: Path) -> dict[Part, Path]:
    """Find files named by their part: train.csv and test.csv, or the archive's Name_TRAIN.ts and Name_TEST.ts."""
    found: dict[Part, Path] = {}
    for file in sorted(folder.iterdir()):
        kind = KINDS.get(file.suffix.lower())
        stem = file.stem.rpartition("_")[2] if kind is SERIES else file.stem
        part = PART_NAMES.get(stem.lower())
        if kind is not None and kind.takes_parts and part is not None and file.is_file():
            if part in found:
                raise UsageError(
                    f"{found[part]} and {file} are both for the {part} split; give the path of one of them"
                )
            found[part] = file
    kinds = {file.suffix.lower() for file in found.values()}
    if len(kinds) > 1:
        raise UsageError(
            f"{folder} holds splits of different kinds ({', '.join(sorted(kinds))}); give the path of a file"
        )
    # Training comes first: it says what the others are.
    return {part: found[part] for part in PART_NAMES.values() if part in found} if "train" in found else {}


def _with_partners(path: Path) -> Files:
    """Return Name_TRAIN.ts together with the Name_TEST.ts beside it, which the archive keeps in two files."""
    stem, _, part = path.stem.rpartition("_")
    partner = path.with_name(f"{stem}_{'TEST' if part.isupper() else 'test'}{path.suffix}")
    if path.suffix.lower() not in SERIES.suffixes or part.lower() != "train" or not partner.is_file():
        return path
    return {"train": path, "test": partner}


def _unpack(archive: Path) -> Path:
    """Unpack an archive once into the cache, and return the folder."""
    checksum = find_checksum([archive], memory=cache_dir() / "checksums")
    folder = cache_dir() / f"archive-{hashlib.sha256(checksum.encode()).hexdigest()[:32]}"
    unpack(archive, folder)
    return folder
