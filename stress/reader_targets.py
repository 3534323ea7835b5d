"""Files of every kind that the readers take: tables, arrays, series, pictures, recordings, archives, lists; damaged."""

import gzip
import io
import itertools
import json
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import soundfile
from PIL import Image

from auxrnn import runs
from auxrnn.config import DataConfig, RunConfig
from auxrnn.data.datasets import collect, load, open_sources
from auxrnn.data.examples import Problems
from auxrnn.data.formats import Format, SeriesFormat, SymbolFormat, TextFormat
from auxrnn.data.images import ImageFormat, read_cifar10, read_idx
from auxrnn.data.inputs import read_inputs
from auxrnn.data.readers.dogs import read_list
from auxrnn.data.sources import find_source
from stress.mutations import NUMBERS, WORDS, encode_all, mutate, mutate_json
from stress.targets import MistakeError, Target, Targets, check_sentence

TEXTS = [(f'{word} words, "quoted"\nand more {row}', "ab"[row % 2]) for row, word in enumerate(["some", "\u00e4"] * 3)]
COLUMNS = (*[None] * 20, "text", "label", "1", "2", "1+2", "text+label", "+", "", "-1", "\uff11")
TABLE_TOKENS = encode_all([*NUMBERS, *WORDS, ",", ";", "\t", "\r", "\r\n", '""', "text", "label", '"text"', "[" * 3000])
SERIES = b"""# comment
@problemName A
@timeStamps false
@dimensions 2
@classLabel true 1 2 run
@data
1,2.5,-3e4:4,5,6:1.0
7:8:2
9,10:11,12:run
1,2:3,4:2
"""
SERIES_TOKENS = encode_all(
    [*NUMBERS, *WORDS, ",", ":", "?", "#", "@data\n", "@classLabel true ", "@targetLabel true ", "true"]
)
HEADER_TOKENS = encode_all([
    *NUMBERS, "'descr'", "'<f4'", "'|O'", "'<U2'", "'>i8'", "'|V3'", "'<M8[s]'", "[('a','<f4')]", "'<f16'", "'<c8'",
    "(", ")", "{", "}", ",", ":", "'shape'", "'fortran_order'", "True", "False", "(" * 200, "lambda", "\n",
])  # fmt: skip
PICTURES: dict[str, tuple[str, ...]] = {
    "png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "jpeg": ("L", "RGB", "CMYK"),
    "gif": ("L", "P"),
    "tiff": ("1", "L", "I;16", "F", "RGB", "CMYK", "LAB"),
    "bmp": ("1", "L", "P", "RGB", "RGBA"),
    "webp": ("RGB", "RGBA"),
    "ppm": ("1", "L", "RGB"),
}
AUDIO_TABLES = [
    b"file,label\na.wav,x\na.wav,y\nb.wav,y\n",
    b"name\tpath\tclass\n1\t./a.wav\tx\n2\t" + b"../" * 9 + b"a.wav\ty\n",
]
TEXT_FORM = TextFormat("characters", "abcdefghijklmnopqrstuvwxyz \n", columns=("text",))
SERIES_FORM = SeriesFormat(2, (0.5, 1e4), (2.0, 1e-3))
AUDIO_FORM = SeriesFormat(1, (0.0,), (0.1,), sample_rate=8000)
WAV_TOKENS = [b"RIFF", b"RF64", b"WAVE", b"fmt ", b"data", b"LIST", *(struct.pack("<H", value) for value in (
    0, 1, 2, 3, 6, 8, 12, 16, 24, 32, 64, 0x55, 0xFFFE, 0xFFFF)), *(struct.pack("<I", value) for value in (
    0, 1, 16, 18, 40, 8000, 44100, 999_983, 10**6, 2**31 - 1, 2**31, 2**32 - 1))]  # fmt: skip
COMPRESSED = {"flac": ("FLAC", "PCM_16"), "ogg": ("OGG", "VORBIS"), "mp3": ("MP3", "MPEG_LAYER_III")}
LONG_FORM = SERIES_FORM._replace(columns=("x", "b"), series_column="id", time_column="time")
WIDE_FORM = SeriesFormat(1, (0.5,), (2.0,), columns=("t0", "t1", "t2"))
SYMBOL_FORM = SymbolFormat((-1, 3, 4))
LONG = "id,time,x,b,label\na,1,2,3,u\na,2024-01-01T00:00:01,2.5,-3e4,u\nb,2,1,1,v\na,3,4,5,u\nb,1,1,2,\n"
WIDE = "id,t0,t1,t2,label\n1,1,2,3,u\n2,2.5,-3e4,,v\n3,1,,,u\n"
NUMBER_SEEDS = [
    LONG,
    WIDE,
    "2.0e+00\t1\t2\n1.0e+00\t3\t4\n",
    WIDE.replace("1,1,2,3", "1,?,NaN,3"),
    LONG.replace("2024-01-01T00:00:01", "1.5"),
    WIDE.replace(",", ";"),
]
NUMBER_COLUMNS = (*[None] * 40, "id", "time", "label", "x+b", "t0+t1", "1", "2", "2+3", "+", "", "-1")
IMAGE_FORM = ImageFormat(3, 2, 3, is_resized=True)
TABLES = (".csv", ".tsv", ".jsonl", ".txt", ".parquet")
LARGEST = 2**31
"""Bytes of values that an input of a few hundred bytes may stand for."""


def reader_targets(folder: Path) -> Targets:
    """Return a target for each kind of file; they are written below a folder."""

    def tables(suffix: str, seeds: Sequence[bytes], make: Callable[[Random], bytes] | None = None) -> Any:
        return make or partial(mutate, seeds=seeds, tokens=TABLE_TOKENS), partial(_read, folder / f"fuzzed{suffix}")

    (folder / "arrays").mkdir()
    for name in ("y", "symbols_y"):
        (folder / "arrays" / f"{name}.npy").write_bytes(_to_npy(np.array([0, 1, 1])))
    csv, rows = _make_tables()
    arrays, series = (
        _make_arrays(),
        [SERIES, SERIES.replace(b":4,5,6", b"").replace(b":8", b""), SERIES.replace(b"@classLabel true 1 2 run", b"")],
    )
    pictures = _make_pictures()
    archives = _make_archives(csv, pictures)
    symbols = [_to_npy(np.arange(60).reshape(3, 20).astype(kind)) for kind in ("<i8", ">i2", "|u1", "|b1")]
    return {
        "csv": Target(100_000, *tables(".csv", csv)),
        "tsv": Target(60_000, *tables(".tsv", [table.replace(b",", b"\t") for table in csv])),
        "jsonl": Target(78_000, *tables(".jsonl", rows, partial(mutate_json, seeds=rows))),
        "txt": Target(30_000, *tables(".txt", csv)),
        "numbers": Target(100_000, *tables(".numbers.csv", [seed.encode() for seed in NUMBER_SEEDS])),
        "number_rows": Target(40_000, *tables(".numbers.jsonl", _to_rows(), partial(mutate_json, seeds=_to_rows()))),
        "packed": Target(20_000, partial(_make_packed, seeds=[*csv, *series]), partial(_read_packed, folder)),
        "symbols": Target(
            20_000, partial(mutate, seeds=symbols, tokens=HEADER_TOKENS), partial(_read, folder / "arrays/symbols.npy")
        ),
        "folders": Target(
            40_000,
            partial(_make_file, seeds=(csv, [seed.encode() for seed in NUMBER_SEEDS], arrays)),
            partial(_read_folder, folder / "files"),
        ),
        "parquet": Target(40_000, *tables(".parquet", [_make_parquet()])),
        "number_columns": Target(10_000, *tables(".numbers.parquet", _make_number_columns())),
        "npy": Target(
            70_000, partial(mutate, seeds=arrays, tokens=HEADER_TOKENS), partial(_read, folder / "arrays/x.npy")
        ),
        "npz": Target(60_000, partial(_make_npz, arrays=arrays), partial(_read, folder / "fuzzed.npz")),
        "ts": Target(
            100_000, partial(mutate, seeds=series, tokens=SERIES_TOKENS), partial(_read, folder / "fuzzed.ts")
        ),
        "pictures": Target(80_000, partial(mutate, seeds=pictures), partial(_read_picture, folder)),
        "wav": Target(
            60_000, partial(mutate, seeds=_make_wavs(), tokens=WAV_TOKENS), partial(_read_audio, folder, ".wav")
        ),
        **{
            kind: Target(15_000, partial(mutate, seeds=[_compress(kind)]), partial(_read_audio, folder, f".{kind}"))
            for kind in COMPRESSED
        },
        "audio tables": Target(
            20_000, partial(mutate, seeds=AUDIO_TABLES, tokens=TABLE_TOKENS), partial(_read_audio_table, folder)
        ),
        "lists": Target(80_000, _make_list, partial(_read_list, folder / "list.mat")),
        "idx": Target(40_000, _make_idx, partial(_read_binary, folder / "idx", read_idx)),
        "cifar": Target(
            20_000, _make_cifar, partial(_read_binary, folder / "cifar.bin", lambda path: read_cifar10([path])[0])
        ),
        "archives": Target(30_000, partial(_make_archive, seeds=archives), partial(_read_archive, folder)),
        "prepared": Target(15_000, partial(_make_any, seeds=(csv, rows, series)), partial(_prepare, folder)),
    }


def _read(path: Path, content: bytes) -> None:
    """Read a file as training or as prediction does."""
    path.write_bytes(content)
    rng = Random(content)  # noqa: S311 - must be repeatable
    form: Format = TEXT_FORM if path.suffix in TABLES else SERIES_FORM
    if ".numbers" in path.name:
        form = rng.choice((LONG_FORM, WIDE_FORM, WIDE_FORM._replace(columns=("2", "3"))))
    form = SYMBOL_FORM if path.stem == "symbols" else form
    if rng.random() < 0.3:
        _read_to_predict(path, form if rng.random() < 0.9 else rng.choice((TEXT_FORM, SERIES_FORM, IMAGE_FORM)))
    else:
        _read_to_train(path, _draw_options(rng, path), rng)


def _draw_options(rng: Random, path: Path) -> DataConfig:
    if path.suffix not in TABLES:
        tokens = "integers" if path.stem == "symbols" else "characters"
        return DataConfig(data=str(path), tokens=tokens, channels_first=path.suffix == ".npy" and rng.random() < 0.2)  # type: ignore[arg-type]
    if ".numbers" in path.name:
        names = ("label_column", "series_column", "time_column", "value_columns")
        return DataConfig(data=str(path), **{name: rng.choice(NUMBER_COLUMNS) for name in names})  # type: ignore[arg-type]
    tokens = "bytes" if rng.random() < 0.3 else "characters"
    return DataConfig(data=str(path), text_column=rng.choice(COLUMNS), label_column=rng.choice(COLUMNS), tokens=tokens)  # type: ignore[arg-type]


def _read_audio(folder: Path, suffix: str, content: bytes) -> None:
    """Read a recording beside a whole one of another class, or alone."""
    rng = Random(content)  # noqa: S311 - must be repeatable
    fuzzed, whole = folder / f"sounds/b/1_x{suffix}", folder / "sounds/a/0_x.wav"
    for path in (fuzzed, whole):
        path.parent.mkdir(parents=True, exist_ok=True)
    fuzzed.write_bytes(content)
    whole.write_bytes(_make_wavs()[1])
    if rng.random() < 0.3:
        _read_to_predict(rng.choice((fuzzed, folder / "sounds")), rng.choice((AUDIO_FORM, AUDIO_FORM, SERIES_FORM)))
    else:
        rate, pattern = rng.choice((None, None, 8000, 4001)), rng.choice((None, "{label}_*"))
        options = DataConfig(data=str(folder / "sounds"), sample_rate=rate, label_pattern=pattern)
        _read_to_train(folder / "sounds", options, rng)


def _read_audio_table(folder: Path, content: bytes) -> None:
    path = folder / "names.csv"
    path.write_bytes(content)
    (folder / "a.wav").write_bytes(_make_wavs()[1])
    rng = Random(content)  # noqa: S311 - must be repeatable
    if rng.random() < 0.3:
        _read_to_predict(path, AUDIO_FORM)
    else:
        _read_to_train(path, DataConfig(data=str(path)), rng)


def _read_to_train(path: Path, options: DataConfig, rng: Random) -> None:
    source = find_source(path, options, has_labels=rng.random() < 0.7)
    problems = Problems(is_patient=rng.random() < 0.5)
    opened = open_sources([source], problems)
    values = io.BytesIO()
    if opened[0].num_bytes > LARGEST:
        raise MistakeError(f"an announced size beyond reason: {opened[0].num_bytes}")
    table, facts = collect([source], opened, values, problems=problems)
    for sentence in (*problems.refused, *problems.skipped):
        check_sentence(sentence)
    json.dumps(facts.description).encode()
    dtype = np.dtype(facts.dtype)
    if len(values.getvalue()) != dtype.itemsize * int(table.begin_N1[-1]) * (facts.num_features or 1):
        raise MistakeError("values that are not as many as the table says")
    if dtype.kind == "f" and np.isinf(np.frombuffer(values.getvalue(), dtype)).any():
        raise MistakeError("a value that is infinite")


def _read_to_predict(path: Path, form: Format) -> None:
    problems = Problems()
    for inputs in read_inputs(path, form, problems=problems):
        for value in itertools.islice(inputs.split.values(), 4):
            encoded = inputs.split.encoding.encode(value)
            if encoded.dtype.kind == "f" and not np.isfinite(encoded).all():
                raise MistakeError("an encoded value that is not finite")
    for sentence in (*problems.refused, *problems.skipped):
        check_sentence(sentence)


def _read_picture(folder: Path, content: bytes) -> None:
    """Read a picture alone or in a folder of them."""
    rng, images = Random(content), folder / "images"  # noqa: S311 - must be repeatable
    path = images / "a" / f"fuzzed{rng.choice(('.png', '.jpg', '.gif'))}"
    shutil.rmtree(images, ignore_errors=True)
    (images / "b").mkdir(parents=True)
    path.parent.mkdir()
    path.write_bytes(content)
    if rng.random() < 0.6:
        _read_to_predict(path, IMAGE_FORM._replace(is_resized=rng.random() < 0.8, channels=rng.choice((1, 3))))
    else:
        (images / "b" / "whole.png").write_bytes(WHOLE_PICTURE)
        options = DataConfig(data=str(images), image_size=rng.choice((None, 3)), enlarge_to=rng.choice((None, None, 5)))
        _read_to_train(images, options, rng)


def _read_packed(folder: Path, content: bytes) -> None:
    """Read a gzipped table or series."""
    rng = Random(content)  # noqa: S311 - must be repeatable
    path = folder / f"packed{rng.choice(('.csv', '.tsv', '.jsonl', '.ts'))}.gz"
    path.write_bytes(content)
    _read_to_train(path, DataConfig(data=str(path)), rng)


def _read_folder(folder: Path, content: bytes) -> None:
    """Read a file beside a whole one, in a folder of files by class, or alone to predict."""
    rng = Random(content)  # noqa: S311 - must be repeatable
    suffix = ".npy" if content.startswith(b"\x93") else rng.choice((".csv", ".tsv", ".txt"))
    path, whole = folder / "a" / f"fuzzed{suffix}", folder / "b" / f"whole{suffix}"
    shutil.rmtree(folder, ignore_errors=True)
    for file in (path, whole):
        file.parent.mkdir(parents=True)
    path.write_bytes(content)
    whole.write_bytes(_to_npy(np.ones((3, 2))) if suffix == ".npy" else b"1,2\n3,4\n")
    if rng.random() < 0.3:
        _read_to_predict(path, (TEXT_FORM if suffix == ".txt" else SERIES_FORM)._replace(is_file=True))
    else:
        _read_to_train(folder, DataConfig(data=str(folder)), rng)


def _read_list(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    read_list(path, Problems())


def _read_binary(path: Path, read: Callable[[Path], Any], content: bytes) -> None:
    path.write_bytes(content)
    read(path)


def _read_archive(folder: Path, content: bytes) -> None:
    rng = Random(content)  # noqa: S311 - must be repeatable
    path = folder / f"fuzzed{rng.choice(('.zip', '.tar', '.tar.gz'))}"
    path.write_bytes(content)
    try:
        _read_to_train(path, DataConfig(data=str(path), image_size=rng.choice((None, 3))), rng)
    finally:
        shutil.rmtree(folder / "cache", ignore_errors=True)


def _prepare(folder: Path, content: bytes) -> None:
    """Load data through the cache and settle how it is read."""
    rng = Random(content)  # noqa: S311 - must be repeatable
    suffix = next(
        suffix for start, suffix in ((b"{", ".jsonl"), (b"#", ".ts"), (b"", ".csv")) if content.startswith(start)
    )
    path = folder / f"prepared{suffix}"
    path.write_bytes(content)
    try:
        data = _draw_options(rng, path)
        data = replace(data, validation_fraction=rng.choice((0.0, 0.3)), label_fraction=rng.choice((1.0, 0.5)))
        config = RunConfig(data=replace(data, max_length=rng.choice((None, 2)), train_examples=rng.choice((None, 3))))
        card = runs.prepare(config, load(config.data)).card
        if not np.isfinite(card.constant_loss):
            raise MistakeError(f"a constant loss that is not finite: {card.constant_loss}")
        if (
            isinstance(card.format, SeriesFormat)
            and not np.isfinite([*(card.format.mean or ()), *(card.format.deviation or ())]).all()
        ):
            raise MistakeError("a scale that is not finite")
    finally:
        shutil.rmtree(folder / "cache", ignore_errors=True)


def _make_any(rng: Random, seeds: Sequence[Sequence[bytes]]) -> bytes:
    return mutate(rng, rng.choice(seeds), rng.choice((TABLE_TOKENS, SERIES_TOKENS)))


def _to_rows() -> list[bytes]:
    """Return tables of numbers as JSON Lines."""
    tables = [[line.split(",") for line in table.splitlines()] for table in (LONG, WIDE)]
    cells = {"1": 1, "2": 2, "3": 3, "2.5": 2.5, "": None}
    return [
        "\n".join(json.dumps({n: cells.get(c, c) for n, c in zip(head, row, strict=True)}) for row in rows).encode()
        for head, *rows in tables
    ]


def _make_packed(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """Change what is packed, or its packing."""
    if rng.random() < 0.5:
        return gzip.compress(mutate(rng, seeds, TABLE_TOKENS), mtime=0)
    return mutate(rng, [gzip.compress(seed, mtime=0) for seed in seeds])


def _make_file(rng: Random, seeds: Sequence[Sequence[bytes]]) -> bytes:
    kind = rng.randrange(len(seeds))
    return mutate(rng, seeds[kind], HEADER_TOKENS if kind == 2 else TABLE_TOKENS)


def _make_tables() -> tuple[list[bytes], list[bytes]]:
    quoted = "".join(f'"{text.replace(chr(34), chr(34) * 2)}",{label}\r\n' for text, label in TEXTS)
    plain = "".join(f"{label};text of row {row};{row}.0\n" for row, (_, label) in enumerate(TEXTS))
    csv = [("text,label\r\n" + quoted).encode(), ("text,label\r\n" + quoted).encode("utf-8-sig"), quoted.encode()]
    csv += [("label;review;id\n" + plain).encode(), plain.encode(), ("text,label\r\n" + quoted).encode("utf-16")]
    rows = [json.dumps({"text": text, "label": label, "id": [row, None]}) for row, (text, label) in enumerate(TEXTS)]
    numbers = [json.dumps({"review": text, "stars": row % 3}) for row, (text, _) in enumerate(TEXTS)]
    return csv, ["\n".join(rows).encode(), "\n".join(numbers).encode()]


def _make_parquet() -> bytes:
    texts, labels = zip(*TEXTS, strict=True)
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "label": labels, "numbers": [[1.5]] * len(texts)}), file)
    return file.getvalue()


def _make_number_columns() -> list[bytes]:
    files = []
    for text in (LONG.replace("2024-01-01T00:00:01", "1.5"), WIDE):
        file = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(io.BytesIO(text.encode())), file)
        files.append(file.getvalue())
    return files


def _to_npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _make_arrays() -> list[bytes]:
    x_NTD = np.arange(120, dtype=np.float32).reshape(3, 20, 2)
    kinds = ("<f4", "<f8", ">f8", "<f2", "<i8", ">i2", "|u1", "|b1", "<f16")
    arrays = [_to_npy(x_NTD.astype(kind)) for kind in kinds]
    columns = [
        np.array(["a", "b", ""]),
        np.array([0, -1, 2]),
        np.array([2, 1, 2]),
        np.array([b"a", b"b", b"c"]),
        np.array([0.0, 1.0, np.nan]),
    ]
    return [*arrays, _to_npy(np.asfortranarray(x_NTD)), _to_npy(x_NTD[..., 0]), *map(_to_npy, columns)]


def _make_npz(rng: Random, arrays: Sequence[bytes]) -> bytes:
    """Pack arrays, of which one is changed, under usual and other names; half of the files are then changed again."""
    file, kind = io.BytesIO(), rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    names = rng.choice(
        (("x", "y", "lengths"), ("x_train", "y_train", "x_test", "y_test"), ("arr_0",), ("data", "label"), ("X", "Y"))
    )
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name in names:
            content = mutate(rng, arrays, HEADER_TOKENS) if rng.random() < 0.3 else rng.choice(arrays)
            archive.writestr(f"{name}{rng.choice(('.npy', '.npy', '.npy', '.npy', ''))}", content)
    return file.getvalue() if rng.random() < 0.5 else mutate(rng, [file.getvalue()])


def _make_pictures() -> list[bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    wide: dict[str, np.ndarray] = {
        "I;16": pixels[..., 0].astype(np.uint16) * 257,
        "F": pixels[..., 0] / np.float32(255),
    }
    seeds = []
    for kind, modes in PICTURES.items():
        for mode in modes:
            image, file, exif = Image.fromarray(wide.get(mode, pixels)), io.BytesIO(), Image.Exif()
            exif[0x0112] = 6
            image = image if mode in wide else image.convert(mode)
            image.save(file, kind, **({"exif": exif} if kind in ("png", "jpeg", "webp", "tiff") else {}))
            seeds.append(file.getvalue())
    return seeds


@cache
def _make_wavs() -> list[bytes]:
    """Return a short recording in every way that a .wav can store it, and compressed."""
    x_TC = np.sin(np.arange(80) / 3).reshape(40, 2)
    kinds = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "IMA_ADPCM")
    plain = [_encode(x_TC[:, 0], "WAV", kind) for kind in kinds]
    return [*plain, _encode(x_TC, "WAV", "PCM_16"), _encode(x_TC, "WAVEX", "PCM_24"), _encode(x_TC, "RF64", "FLOAT")]


def _encode(x_TC: np.ndarray, form: str, kind: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, x_TC, 8000, kind, format=form)
    return file.getvalue()


def _compress(kind: str) -> bytes:
    return _encode(np.sin(np.arange(2000) / 3), *COMPRESSED[kind])


WHOLE_PICTURE = _make_pictures()[1]


def _element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def _matrix(what: int, shape: Sequence[int], name: bytes, *pieces: bytes) -> bytes:
    parts = [
        _element(6, struct.pack("<II", what, 0)),
        _element(5, struct.pack(f"<{len(shape)}i", *shape)),
        _element(1, name),
        *pieces,
    ]
    return _element(14, b"".join(parts))


def _make_list(rng: Random) -> bytes:
    """Make a list of Stanford Dogs, packed or plain, of which something is changed."""
    names = [b"n1-dog/a.jpg", b"n1-dog/b.jpg", b"n2-cat/c.jpg"]
    cells = [_matrix(4, (1, len(name)), b"", _element(rng.choice((2, 4, 16, 17)), name)) for name in names]
    variables = [_matrix(1, (3, 1), b"file_list", *cells), _matrix(6, (3, 1), b"labels", _element(2, bytes([1, 1, 2])))]
    if rng.random() < 0.6:
        variables = [mutate(rng, [variable]) for variable in variables]
    if rng.random() < 0.5:
        variables = [struct.pack("<II", 15, len(packed := zlib.compress(variable))) + packed for variable in variables]
    content = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM" + b"".join(variables)
    return content if rng.random() < 0.5 else mutate(rng, [content])


def _make_idx(rng: Random) -> bytes:
    content = mutate(
        rng, [b"\0\0\x08\x03" + struct.pack(">3I", 2, 3, 2) + bytes(12), b"\0\0\x08\x01\0\0\0\x03" + bytes(3)]
    )
    packed = gzip.compress(content, mtime=0)
    return rng.choice((content, packed, mutate(rng, [packed])))


def _make_cifar(rng: Random) -> bytes:
    return mutate(rng, [bytes([3]) + bytes(3072) + bytes([9]) + bytes(range(256)) * 12, b""])


def _make_archives(tables: Sequence[bytes], pictures: Sequence[bytes]) -> list[dict[str, bytes]]:
    """Return what archives hold, by name."""
    images = {
        f"top/{part}/{label}/{row}.png": pictures[1] for part in ("train", "test") for label in "ab" for row in range(2)
    }
    return [
        {"data/train.csv": tables[0], "data/test.csv": tables[0]},
        images,
        {"A_TRAIN.ts": SERIES, "A_TEST.ts": SERIES},
    ]


def _make_archive(rng: Random, seeds: Sequence[dict[str, bytes]]) -> bytes:
    """Pack files, some under other names or with other bytes; half of the archives are then changed again."""
    members = []
    for name, content in rng.choice(seeds).items():
        chance = rng.random()
        changed = (
            mutate(rng, [name.encode()], encode_all([*WORDS, "/", "../", "//"])) if chance < 0.15 else name.encode()
        )
        members.append((changed, mutate(rng, [content]) if chance > 0.9 else content))
    packed = _pack_zip(members, rng) if rng.random() < 0.5 else _pack_tar(members, rng)
    return packed if rng.random() < 0.5 else mutate(rng, [packed])


def _pack_zip(members: Sequence[tuple[bytes, bytes]], rng: Random) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(
        file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    ) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name.decode("latin-1" if rng.random() < 0.3 else "utf-8", "replace")[:60_000] or "x")
            info.external_attr = rng.choice((0, 0, 0, 0o100644 << 16, 0o120777 << 16, 0o010644 << 16))
            archive.writestr(info, content)
    return file.getvalue()


def _pack_tar(members: Sequence[tuple[bytes, bytes]], rng: Random) -> bytes:
    file = io.BytesIO()
    mode: Any = rng.choice(("w", "w", "w:gz", "w:bz2", "w:xz"))
    form = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=file, mode=mode, format=form) as archive:
        for name, content in members:
            # The oldest kind of tar holds no more bytes than that.
            info = tarfile.TarInfo(name.replace(b"\0", b"")[:90].decode("utf-8", "surrogateescape"))
            info.size, info.type = (
                len(content),
                rng.choice((tarfile.REGTYPE,) * 20 + (tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)),
            )
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()
