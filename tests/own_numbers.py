"""Small files of numbers that a user may bring: tables, folders of one file per series, symbols, other layouts."""

import csv
import gzip
import io
import json

import numpy as np

from own_data import series_of

HEADER = ["id", "timestamp", "x", "y", "label"]


def to_csv(rows, delimiter=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def wide_rows(num_rows=60):
    """A row for each series; they end early, as their cells do, and some have a gap."""
    longest = max(len(x_TD) for x_TD, _ in series_of(num_rows, 1))
    header = [f"t{step}" for step in range(longest)]
    rows = [[*x_TD[:, 0].tolist(), *[""] * (longest - len(x_TD)), label] for x_TD, label in series_of(num_rows, 1)]
    for row in rows[::3]:
        row[2] = ""
    return [[*header, "label"], *rows]


def long_rows(num_rows=60):
    """A row for each step, in any order."""
    rows = [
        [f"s{number}", f"2024-01-01T00:00:{step:02d}", *map(float, x_D), label]
        for number, (x_TD, label) in enumerate(series_of(num_rows, 2))
        for step, x_D in enumerate(x_TD)
    ]
    np.random.default_rng(0).shuffle(rows)
    return [HEADER, *rows]


def make_wide(folder):
    (folder / "wide.csv").write_text(to_csv(wide_rows()))
    new = [[cell for cell in row if cell not in ("cat", "dog", "label")] for row in wide_rows(8)]
    (folder / "new.csv").write_text(to_csv(new))
    return [folder / "wide.csv"], [folder / "wide.csv", folder / "new.csv"]


def make_ucr(folder):
    rng = np.random.default_rng(0)
    for part, size in (("TRAIN", 40), ("TEST", 20)):
        table = np.column_stack([1 + np.arange(size) % 2, rng.standard_normal((size, 9))])
        np.savetxt(folder / f"Gun_{part}.tsv", table, delimiter="\t")
    np.savetxt(folder / "new.tsv", rng.standard_normal((5, 9)), delimiter="\t")
    return [folder / "Gun_TRAIN.tsv"], [folder / "Gun_TEST.tsv", folder / "new.tsv"]


def make_long(folder):
    (folder / "long.csv").write_text(to_csv(long_rows()))
    return [folder / "long.csv"], [folder / "long.csv"]


def make_packed(folder):
    header, *rows = long_rows()
    lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
    (folder / "long.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return [folder / "long.jsonl.gz", "--value-columns", "y"], [folder / "long.jsonl.gz"]


def make_folder(folder, suffix):
    for number, (x_TD, label) in enumerate(series_of(24, 2)):
        path = folder / "files" / label / f"{number}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".npy":
            np.save(path, x_TD)
        elif suffix == ".csv":
            path.write_text(to_csv([["time", "a", "b"], *([t, *map(float, x_D)] for t, x_D in enumerate(x_TD))]))
        else:
            path.write_text("miaow\n" * len(x_TD) if label == "cat" else "woof\n" * len(x_TD))
    return [folder / "files"], [folder / "files" / "cat" / f"0{suffix}", folder / "files"]


def make_channels_first(folder):
    np.savez(folder / "x.npz", x=np.random.default_rng(0).standard_normal((30, 2, 8)), y=np.arange(30) % 3)
    return [folder / "x.npz", "--channels-first"], [folder / "x.npz"]


def make_symbols(folder):
    rng = np.random.default_rng(0)
    x_NT, length_N = rng.integers(-3, 4, (30, 8)) * 100, rng.integers(1, 9, 30)
    np.savez(folder / "x.npz", x=x_NT, y=np.arange(30) % 3, lengths=length_N)
    np.save(folder / "new.npy", x_NT + 1)
    return [folder / "x.npz", "--tokens", "integers"], [folder / "new.npy", folder / "x.npz"]


MAKERS = {
    "wide table": make_wide,
    "long table": make_long,
    "symbols": make_symbols,
    "folder of csv": lambda folder: make_folder(folder, ".csv"),
    "ucr table": make_ucr,
    "packed table": make_packed,
    "folder of npy": lambda folder: make_folder(folder, ".npy"),
    "folder of txt": lambda folder: make_folder(folder, ".txt"),
    "channels first": make_channels_first,
}
