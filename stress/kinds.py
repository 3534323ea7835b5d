"""Every kind of run on tiny data: models, objectives, phases, splits, texts, series and images."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog")
EVERY = [
    "--threads", "1", "--batch-size", "8", "--train-steps", "4", "--evaluate-every", "2", "--checkpoint-every", "2",
    "--log-every", "3",
]  # fmt: skip
SIZES = ["--hidden-size", "4", "--head-size", "5"]
RECURRENT = [*SIZES, "--supervised-window", "6"]
AUXILIARY = ["--segment-length", "8", "--auxiliary-window", "5", "--pretrain-steps", "4"]
ATTENTION = [*SIZES[2:], "--hidden-size", "8", "--num-heads", "2", "--warmup-steps", "2"]
RECONSTRUCT = ["--model", "lstm", *RECURRENT, *AUXILIARY, "--objective", "reconstruct"]
PREDICT = ["--model", "lstm", *RECURRENT, *AUXILIARY, "--objective", "predict"]
VALIDATION = ["--validation-fraction", "0.2"]

KINDS: dict[str, list[str]] = {
    **{
        model: ["texts.csv", "--model", model, "--objective", "none", *RECURRENT]
        for model in ("lstm", "gru", "ur_lstm", "lru", "legendre", "irnn")
    },
    "urnn": ["series.npz", "--model", "urnn", *RECURRENT],
    "transformer": ["texts.csv", "--model", "transformer", *ATTENTION, "--filter-size", "6"],
    "dmca": ["series.npz", "--model", "dmca", *ATTENTION, "--block-length", "16", "--block-reach", "4", *VALIDATION],
    "lm_lstm": ["texts.csv", "--model", "lm_lstm", *SIZES, "--pretrain-steps", "3"],
    "sa_lstm": ["texts.csv", "--model", "sa_lstm", *SIZES, "--pretrain-steps", "3", *VALIDATION],
    "char_cnn": ["texts.csv", "--model", "char_cnn", "--pad-to", "130"],
    "conv_rnn": ["texts.csv", "--model", "conv_rnn", "--hidden-size", "4", "--pad-to", "20", *VALIDATION],
    "vdcnn": ["texts.csv", "--model", "vdcnn", "--depth", "9", "--pad-to", "60"],
    **{
        f"{model} {objective}": ["texts.csv", "--model", model, *RECURRENT, *AUXILIARY, "--objective", objective]
        for model in ("gru", "ur_lstm", "lru", "legendre", "irnn", "urnn")
        for objective in ("reconstruct", "predict")
    },
    "texts, best weights": ["texts.csv", *RECONSTRUCT, *VALIDATION],
    "texts, paper's recipe": ["texts.csv", *PREDICT, "--recipe", "paper", "--embedding-size", "4"],
    "texts without labels": ["texts.csv", *RECONSTRUCT, "--unlabeled", "more.txt", "--label-fraction", "0.5"],
    "texts, not joint": ["texts.csv", *PREDICT, "--no-joint", *VALIDATION],
    "patience": ["series.npz", *RECONSTRUCT, *VALIDATION, "--patience", "1", "--evaluate-every", "1"],
    "series": ["series.npz", *PREDICT],
    "series with a test file": ["series.npz", *RECONSTRUCT, "--test-data", "test.npz"],
    "images": ["images", *RECONSTRUCT, "--image-size", "5", *VALIDATION],
    "images, unpacked": ["images.zip", "--model", "lstm", "--objective", "none", *RECURRENT],
    "pretraining alone": ["images", *PREDICT, "--train-steps", "0"],
    "a sample of the digits": ["digits", *RECONSTRUCT, "--train-examples", "30"],
}


def write_data(folder: Path) -> None:
    """Write the files that the kinds are trained on."""
    folder.mkdir(parents=True)
    rows = [f'"{text}",{CLASSES[row % 2]}' for row, text in enumerate(_texts(40))]
    (folder / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (folder / "more.txt").write_text("\n".join(_texts(12, seed=1)) + "\n")
    for name, seed in (("series", 0), ("test", 1)):
        rng = np.random.default_rng(seed)
        label_N = np.arange(40) % 2
        np.savez(folder / f"{name}.npz", x=rng.normal(size=(40, 14, 2)) + label_N[:, None, None], y=label_N)
    for row in range(24):
        path = folder / "images" / CLASSES[row % 2] / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 90, (5, 5), dtype=np.uint8) + np.uint8(120 * (row % 2))
        Image.fromarray(pixels).save(path)
    shutil.make_archive(str(folder / "images"), "zip", folder / "images")


def train_words(kind: str, data: Path) -> list[str]:
    """Return the words of `auxrnn train` for a kind, all but the folder."""
    name, *flags = [str(data / word) if (data / word).exists() else word for word in KINDS[kind]]
    # The kind's own flags come last, and win.
    return ["train", name, *EVERY, *flags]


def _texts(num_rows: int, *, seed: int = 0) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    for row in range(num_rows):
        yield "".join(rng.choice(list("abc " if row % 2 else "xyz "), rng.integers(3, 20))) + "."
