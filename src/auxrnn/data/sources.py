"""From a dataset's name or the path of the user's own files to sources: which reader they are for."""

from dataclasses import replace
from pathlib import Path

from auxrnn.config import DataConfig
from auxrnn.data.archives import ARCHIVE_SUFFIXES, unpack
from auxrnn.data.catalog import DATASETS
from auxrnn.data.examples import PART_NAMES, Part, Problems, Source
from auxrnn.data.folders import AUDIO_SUFFIXES, PICTURE_SUFFIXES, has_files
from auxrnn.data.formats import Format, SeriesFormat, SymbolFormat
from auxrnn.data.readers.arrays import ARRAY_SUFFIXES, array_source, is_array_folder
from auxrnn.data.readers.audio import audio_source, audio_table_source, find_audio_column
from auxrnn.data.readers.dogs import dogs_source, is_dogs_folder
from auxrnn.data.readers.file_folder import FILE_SUFFIXES, file_folder_source
from auxrnn.data.readers.image_folder import ImageOptions, image_folder_source
from auxrnn.data.readers.numbers import NumberOptions, is_number_table, number_source
from auxrnn.data.readers.rows import Files, is_gzipped, read_head, suffix_of, to_parts
from auxrnn.data.readers.table import TABLE_SUFFIXES, TableOptions, table_source
from auxrnn.data.readers.timeseries import timeseries_source
from auxrnn.data.spec import check_options
from auxrnn.errors import UsageError, nearest
from auxrnn.files import cache_dir, checksum_files, expand

SERIES_SUFFIX = ".ts"
NUMBER_OPTIONS = ("series_column", "time_column", "value_columns")
FORMS = (
    "a folder with one sub-folder of images or recordings (or .npy, .csv, .tsv, .txt files) per class, a table of texts"
    " or numbers (.csv, .tsv, .jsonl, .parquet), arrays (.npz, .npy), time series (.ts), or a .zip or .tar of these"
)


def find_sources(config: DataConfig) -> list[Source]:
    """Return all sources that a config names; what is tested on or has no labels says so.

    A dataset's name wins over a file of that name.
    """
    name, path = config.data, expand(config.data)
    if name not in DATASETS and not path.exists():
        cure = "give a dataset's name or an existing file or folder"
        raise UsageError(f"{name!r} is neither a dataset nor a path; {cure}{nearest(name, DATASETS)}")
    found = [DATASETS[name].open(DATASETS[name], config) if name in DATASETS else find_source(path, config)]
    # The length is that of a synthetic task, and files beside it have their own.
    beside = replace(config, length=None)
    if config.test_data is not None:
        found.append(find_source(config.test_data, beside)._replace(part="test"))
    if config.unlabeled is not None:
        found.append(find_source(config.unlabeled, beside, has_labels=False)._replace(part="unlabeled"))
    if config.missing == "refuse":
        found = [source._replace(options={**source.options, "missing": "refuse"}) for source in found]
    return found


def find_source(
    path: Path, config: DataConfig, *, has_labels: bool = True, is_alone: bool = False, like: Format | None = None
) -> Source:
    """Return the source for a path, by its name and what is in it, or as the training data was (`like`).

    Nothing is opened yet, but for a look into tables. `is_alone`: a file is read without the Name_TEST.ts that may lie
    beside it.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist; give {FORMS}")
    if not path.is_file() and not path.is_dir():
        # A pipe would be waited for, perhaps for ever.
        raise UsageError(f"{path} is neither a file nor a folder; write what it gives to a file first")
    folder = path
    if path.is_file() and path.name.lower().endswith(ARCHIVE_SUFFIXES):
        folder = cache_dir() / f"archive-{checksum_files([path])[:32]}"
        unpack(path, folder)
    if folder.is_dir():
        return _find_in_folder(str(path), folder, config, has_labels, like)
    if getattr(like, "is_file", False) and path.suffix.lower() in FILE_SUFFIXES:
        return file_folder_source(str(path), path, config, has_labels=has_labels)
    return _open_files(str(path), path if is_alone else _with_partner(path), config, has_labels, like)


def is_table(path: Path) -> bool:
    """Return whether a path is a table, or a folder with one for each part."""
    files = _find_parts(path) if path.is_dir() else path
    return any(suffix_of(file) in TABLE_SUFFIXES for file in to_parts(files).values())


def _find_in_folder(name: str, folder: Path, config: DataConfig, has_labels: bool, like: Format | None) -> Source:
    if files := folder if is_array_folder(folder) else _find_parts(folder):
        return _open_files(name, files, config, has_labels, like)
    if has_files(folder, PICTURE_SUFFIXES, in_folders=has_labels):
        check_options(config, ("image_size", "enlarge_to"), what="a folder of images")
        open_folder = dogs_source if is_dogs_folder(folder) and has_labels else image_folder_source
        return open_folder(name, folder, ImageOptions(config.image_size, config.enlarge_to, has_labels))
    if has_files(folder, AUDIO_SUFFIXES):
        return audio_source(name, folder, config, has_labels=has_labels)
    if has_files(folder, FILE_SUFFIXES, in_folders=has_labels):
        check_options(config, ("tokens",), what="a folder of files")
        return file_folder_source(name, folder, config, has_labels=has_labels)
    raise UsageError(f"{name} holds no data that can be read; give {FORMS}")


def _open_files(name: str, files: Files, config: DataConfig, has_labels: bool, like: Format | None) -> Source:
    """Return the source for files of one kind; a new kind is a reader that returns a `Source`, and a branch here."""
    first = next(iter(to_parts(files).values()))
    suffix = suffix_of(first)
    if first.is_dir() or suffix in ARRAY_SUFFIXES:
        has_symbols = config.tokens == "integers"
        check_options(config, ("channels_first", *(["tokens"] if has_symbols else [])), what="arrays")
        asked = SymbolFormat() if has_symbols else SeriesFormat(1, is_channels_first=config.channels_first)
        return array_source(name, first, has_labels=has_labels, asked=asked)
    if suffix in AUDIO_SUFFIXES:
        return audio_source(name, first, config, has_labels=has_labels)
    if suffix in TABLE_SUFFIXES:
        return _open_tables(name, files, first, config, has_labels, like)
    if suffix == SERIES_SUFFIX:
        check_options(config, (), what="time series")
        return timeseries_source(name, files, has_labels=has_labels)
    if suffix in PICTURE_SUFFIXES:
        raise UsageError(f"{name} is a single image; give a folder with one sub-folder of images per class")
    raise UsageError(f"{name} is of an unknown kind ({suffix or 'no suffix'}); give {FORMS}")


def _open_tables(
    name: str, files: Files, first: Path, config: DataConfig, has_labels: bool, like: Format | None
) -> Source:
    """Return the source for tables: of audio files or of numbers if the first one looks like it, otherwise of texts."""
    may_be_numbers = suffix_of(first) != ".txt" and config.text_column is None and config.tokens == "characters"
    has_asked = any(getattr(config, name) is not None for name in NUMBER_OPTIONS)
    audio_column, has_numbers = None, has_asked or isinstance(like, SeriesFormat)
    # What is wrong with a table is said when it is read.
    with Problems(is_patient=True).noting_errors():
        head = read_head(first)
        audio_column = find_audio_column(head)
        has_numbers = has_numbers or (like is None and is_number_table(head, label_column=config.label_column))
    if audio_column is not None:
        check_options(config, ("label_column", "sample_rate"), what="a table of audio files")
        return audio_table_source(
            name, files, TableOptions((audio_column,), config.label_column, has_labels=has_labels), config.sample_rate
        )
    if may_be_numbers and has_numbers:
        check_options(config, ("label_column", *NUMBER_OPTIONS), what="a table of numbers")
        columns = (config.label_column, config.series_column, config.time_column, config.value_columns)
        return number_source(name, files, NumberOptions(*columns, has_labels=has_labels))
    check_options(config, ("text_column", "label_column", "tokens"), what="a table of texts")
    return table_source(
        name, files, TableOptions(config.text_column, config.label_column, config.tokens, has_labels=has_labels)
    )


def _find_parts(folder: Path) -> dict[Part, Path]:
    """Find files named by their part: train.csv and test.csv, or the archive's Name_TRAIN.ts and Name_TEST.ts."""
    found: dict[Part, Path] = {}
    for file in sorted(folder.iterdir()):
        suffix, stem = suffix_of(file), file.name.partition(".")[0]
        last = stem.rpartition("_")[2]
        # In capitals, tables of the archive are called like its series.
        stem = last if suffix == SERIES_SUFFIX or last in ("TRAIN", "TEST") else stem
        part = PART_NAMES.get(stem.lower())
        if part is None or suffix not in (*TABLE_SUFFIXES, SERIES_SUFFIX) or not file.is_file():
            continue
        other = found.setdefault(part, file)
        if other != file:
            raise UsageError(f"{other} and {file} are both for the {part} split; give the path of one of them")
    kinds = sorted({suffix_of(file) for file in found.values()})
    if len(kinds) > 1:
        raise UsageError(f"{folder} holds splits of different kinds ({', '.join(kinds)}); give the path of a file")
    # Training comes first: it says what the others are.
    return {part: found[part] for part in PART_NAMES.values() if part in found} if "train" in found else {}


def _with_partner(path: Path) -> Files:
    """Return Name_TRAIN.ts (.tsv) together with the Name_TEST.ts beside it, which the archive keeps in two files."""
    suffix, ending = suffix_of(path), "".join(path.suffixes[-2:] if is_gzipped(path) else path.suffixes[-1:])
    stem, _, part = path.name.removesuffix(ending).rpartition("_")
    partner = path.with_name(f"{stem}_{'TEST' if part.isupper() else 'test'}{ending}")
    is_train = (part == "TRAIN" and suffix in TABLE_SUFFIXES) or (suffix == SERIES_SUFFIX and part.lower() == "train")
    return {"train": path, "test": partner} if is_train and partner.is_file() else path
