"""How many labels does one need? Ours with few labels beside what people would use instead, on the same labels.

Spoken digits as raw waveforms, with the official test recordings and with two speakers held out, beside MiniRocket and
MFCC features with a linear classifier (`pip install '.[study]'`). For texts only the rival is run here: ours are the
experiment `few_labels` on the part of DBpedia, and TF-IDF is given the same labels. Results that are there are not made
again. Dimension letters: `N` sequences, `F` features.
"""

import csv
import importlib.util
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from auxrnn.config import DataConfig
from auxrnn.data import datasets
from auxrnn.data.splits import divide
from auxrnn.errors import RunError
from auxrnn.experiments import few_labels
from auxrnn.experiments.few_labels import COUNTS
from auxrnn.experiments.scales import DBPEDIA, find_scale
from auxrnn.files import write_aside
from auxrnn.report.charts import WIDE, chart_figure, to_png
from auxrnn.report.records import read_record, record_training
from auxrnn.report.results import Line, LineChart, make_point

SEEDS = (0, 1, 2)
UPDATES: dict[int | None, int] = {5: 300, 10: 300, 25: 400, 50: 600, None: 1500}
"""Updates with labels by the number of labels per class; None is all of them."""
PRETRAIN_UPDATES = 1500
HELD_OUT_SPEAKERS = ("theo", "yweweler")
NUM_OFFICIAL_TESTS = 5
SAMPLE_RATE, NUM_DBPEDIA_CLASSES = 8000, 14
IS_TEST: dict[str, Callable[[str, int], bool]] = {
    "official": lambda _speaker, index: index < NUM_OFFICIAL_TESTS,
    "speakers": lambda speaker, _index: speaker in HELD_OUT_SPEAKERS,
}
SYSTEMS = {"LSTM": "none", "r-LSTM": "reconstruct", "p-LSTM": "predict"}
ROCKET, MFCC, TF_IDF = "MiniRocket", "MFCC + linear", "TF-IDF + linear"
PACKAGES = ("aeon", "python_speech_features")
ORDER = (*SYSTEMS, ROCKET, MFCC, TF_IDF)
"""Of the rows of tables and the colors of pictures; an LSTM has the same color in all."""
SHARED = (
    "--steps-per-input", "10", "--supervised-window", "200", "--readout", "mean", "--batch-size", "32",
    "--validation-fraction", "0", "--threads", "1",
)  # fmt: skip
# Chosen on validation data (docs/notebook.md), as the rest.
AUXILIARY = (
    "--segment-length", "60", "--auxiliary-window", "60", "--auxiliary-weight", "0.3", "--sampling-steps", "0",
    "--pretrain-steps", str(PRETRAIN_UPDATES),
)  # fmt: skip


class Result(NamedTuple):
    """One number: the accuracy of a system with some labels per class, and what it cost."""

    split: str
    system: str
    labels: int | None
    seed: int
    accuracy: float
    seconds: float
    """Of processor time: pretraining or features included, though several results share them."""


class Task(NamedTuple):
    """The labels of one result: rows of the training split."""

    labels: int | None
    seed: int
    rows: np.ndarray


def measure_labels(recordings: Path, out: Path, pictures: Path, *, seeds: Sequence[int] = SEEDS) -> None:
    """Make all results on spoken digits that are missing, the table and the pictures."""
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        raise RunError(f"{' and '.join(missing)} not installed; they come with `pip install '.[study]'`")
    work = Path("runs/labels")
    tables = {split: _write_tables(recordings, work / split, split) for split in IS_TEST}
    for seed, split, system in itertools.product(seeds, IS_TEST, SYSTEMS):
        _train_all(tables[split], out, work, split=split, system=system, seed=seed)
    for split in IS_TEST:
        _measure_rivals(tables[split], out, split, seeds)
    write_summary(out, pictures)


def _write_tables(recordings: Path, folder: Path, split: str) -> tuple[Path, Path]:
    """Write which recordings are trained and tested on, as tables of files and labels."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for path in sorted(recordings.absolute().glob("[0-9]_*_*.wav")):
        digit, speaker, index = path.stem.split("_")
        rows[IS_TEST[split](speaker, int(index))].append((str(path), digit))
    if not rows[False]:
        raise RunError(f"{recordings} holds no recordings; give the folder of the Free Spoken Digit Dataset")
    paths = folder / "train.csv", folder / "test.csv"
    for path, found in zip(paths, (rows[False], rows[True]), strict=True):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("file", "label"), *found])
    return paths


def _train_all(tables: tuple[Path, Path], out: Path, work: Path, *, split: str, system: str, seed: int) -> None:
    """Train a system with each number of labels; they share one pretraining."""
    train, test = tables
    words = [str(train), "--test-data", str(test), *SHARED, "--objective", SYSTEMS[system], "--seed", str(seed)]
    stem = f"{split}-{system.lower()}-s{seed}"
    if missing := [labels for labels in UPDATES if not _path(out, split, system, labels, seed).exists()]:
        first = work / f"{stem}-first"
        if system != "LSTM":
            words += AUXILIARY
            _run([*words, "--train-steps", "0"], first)
        for labels in missing:
            few = [] if labels is None else ["--labels-per-class", str(labels)]
            adopted = [] if system == "LSTM" else ["--pretrained", str(first)]
            folder = work / f"{stem}-{labels or 'all'}"
            _run([*words, *few, "--train-steps", str(UPDATES[labels]), *adopted], folder)
            scores = record_training(stem, folder).scores
            result = Result(split, system, labels, seed, scores["test_accuracy"], scores["cpu_seconds"])
            _keep(out, result)


def _run(words: Sequence[str], folder: Path) -> None:
    if (folder / "model.safetensors").exists():
        return
    command = ["resume", str(folder)] if (folder / "config.json").exists() else ["train", *words, "--out", str(folder)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.log").open("a") as log:
        done = subprocess.run([sys.executable, "-m", "auxrnn", *command], stdout=log, stderr=log, check=False)
    if done.returncode:
        raise RunError(f"`auxrnn {' '.join(command)}` failed; see {log.name}")


def _measure_rivals(tables: tuple[Path, Path], out: Path, split: str, seeds: Sequence[int]) -> None:
    """Fit MiniRocket and the MFCC features on the labels that ours had."""
    config = DataConfig(data=str(tables[0]), test_data=tables[1])
    dataset = datasets.load(config)
    tasks = []
    for labels, seed in itertools.product(UPDATES, seeds):
        division = divide(dataset.table, DataConfig(data=config.data, labels_per_class=labels), seed=seed)
        tasks.append(Task(labels, seed, division.labeled))
    begin_N1, value_K = dataset.flat.begin_N1, dataset.flat.value_K[:, 0]
    waves = [value_K[begin:end] for begin, end in itertools.pairwise(begin_N1)]
    whole = divide(dataset.table, config, seed=0)
    for system, featurize in {MFCC: _mfcc_features, ROCKET: _rocket_features}.items():
        missing = [task for task in tasks if not _path(out, split, system, task.labels, task.seed).exists()]
        if missing:
            start = time.process_time()
            feature_NF = featurize(waves, whole.train)
            shared = time.process_time() - start
            for result in _fit(system, feature_NF, dataset.table.label_N, missing, whole.test, split=split):
                _keep(out, result._replace(seconds=shared + result.seconds))


def _mfcc_features(waves: Sequence[np.ndarray], _train_rows: np.ndarray) -> np.ndarray:
    """Return mean and deviation of 13 coefficients and their slopes, and the means of both halves of a recording."""
    from python_speech_features import delta, mfcc  # noqa: PLC0415 - optional

    rows = []
    for wave in waves:
        frame_TF = mfcc(wave, SAMPLE_RATE, nfft=256)
        both_TF = np.hstack([frame_TF, delta(frame_TF, 2)])
        half = (len(frame_TF) + 1) // 2
        rows.append(np.r_[both_TF.mean(0), both_TF.std(0), frame_TF[:half].mean(0), frame_TF[half - 1 :].mean(0)])
    return np.array(rows)


def _rocket_features(waves: Sequence[np.ndarray], train_rows: np.ndarray) -> np.ndarray:
    """Return MiniRocket's features of the standardized recordings, padded with silence to one length."""
    from aeon.transformations.collection.convolution_based import MiniRocket  # noqa: PLC0415 - optional

    padded_N1T = np.zeros((len(waves), 1, max(map(len, waves))), dtype=np.float32)
    for row, wave in enumerate(waves):
        padded_N1T[row, 0, : len(wave)] = (wave - wave.mean()) / max(float(wave.std()), 1e-9)
    rocket = MiniRocket(random_state=0, n_jobs=1).fit(padded_N1T[train_rows])
    return np.asarray(rocket.transform(padded_N1T))


def _fit(
    system: str,
    feature_NF: np.ndarray | csr_matrix,
    label_N: np.ndarray,
    tasks: Sequence[Task],
    test_rows: np.ndarray,
    *,
    split: str,
) -> Iterator[Result]:
    """Yield the result of a linear classifier on some features with the labels of each task."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifierCV  # noqa: PLC0415 - slow
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - the same
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415 - the same

    for task in tasks:
        start = time.process_time()
        is_ridge = system == ROCKET
        linear = RidgeClassifierCV(np.logspace(-3, 3, 10)) if is_ridge else LogisticRegression(max_iter=2000)
        model = make_pipeline(StandardScaler(with_mean=isinstance(feature_NF, np.ndarray)), linear)
        model.fit(feature_NF[task.rows], label_N[task.rows])
        accuracy = 100 * float((model.predict(feature_NF[test_rows]) == label_N[test_rows]).mean())
        yield Result(split, system, task.labels, task.seed, accuracy, time.process_time() - start)


def measure_texts(folder: Path, out: Path, pictures: Path, records: Path) -> None:
    """Fit TF-IDF with a linear classifier on the labels that `few_labels` gives its networks; take their records."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow

    config = DataConfig(data="dbpedia", data_dir=folder)
    dataset, counts = datasets.load(config), COUNTS[DBPEDIA]
    tasks = []
    for count, seed in itertools.product(counts, SEEDS):
        kept = DataConfig(data="dbpedia", label_fraction=count / counts[-1])
        tasks.append(Task(_per_class(count), seed, divide(dataset.table, kept, seed=seed).labeled))
    begin_N1, value_K = dataset.flat.begin_N1, dataset.flat.value_K
    texts = ["".join(map(chr, value_K[begin:end].tolist())) for begin, end in itertools.pairwise(begin_N1)]
    whole, start = divide(dataset.table, config, seed=0), time.process_time()
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit([texts[row] for row in whole.train])
    feature_NF = vectorizer.transform(texts)
    shared = time.process_time() - start
    for result in _fit(TF_IDF, feature_NF, dataset.table.label_N, tasks, whole.test, split="dbpedia"):
        _keep(out, result._replace(seconds=shared + result.seconds))
    for job in few_labels.runs(find_scale("full", Path("unused"))):
        record = read_record(records / f"{job.name}.json")
        if job.column.startswith(DBPEDIA) and record is not None:
            count = int(job.column.removeprefix(f"{DBPEDIA}, ").split()[0].replace(",", ""))
            seconds = record.scores["cpu_seconds"]
            accuracy = record.scores["test_accuracy"]
            _keep(out, Result("dbpedia", job.row, _per_class(count), record.seed, accuracy, seconds))
    write_summary(out, pictures)


def _per_class(count: int) -> int | None:
    """Return a number of labels of DBpedia per class; None for all."""
    return None if count == COUNTS[DBPEDIA][-1] else count // NUM_DBPEDIA_CLASSES


def _path(out: Path, split: str, system: str, labels: int | None, seed: int) -> Path:
    name = re.sub("[^a-z]+", "-", system.lower())
    return out / "records" / f"{split}-{name}-{labels or 'all'}-s{seed}.json"


def _keep(out: Path, result: Result) -> None:
    rounded = result._replace(accuracy=round(result.accuracy, 2), seconds=round(result.seconds, 1))
    path = _path(out, result.split, result.system, result.labels, result.seed)
    write_aside(path, json.dumps(rounded._asdict()) + "\n")
    print(f"{path.stem}  {result.accuracy:.1f} %  {result.seconds:.0f} s", flush=True)


def write_summary(out: Path, pictures: Path) -> None:
    """Write a table and a picture for each split that has results."""
    results = [Result(**json.loads(path.read_text())) for path in sorted((out / "records").glob("*.json"))]
    results.sort(key=lambda result: ORDER.index(result.system))
    texts = []
    for split in sorted({result.split for result in results}):
        found = [result for result in results if result.split == split]
        texts.append(_format_table(split, found))
        figure = chart_figure(_make_chart(split, found), width=WIDE, has_title=True)
        write_aside(pictures / f"few-labels-{split}.png", to_png(figure))
    write_aside(out / "labels.md", "\n".join(texts))
    print("\n".join(texts))


TITLES = {
    "official": "Spoken digits, official test recordings",
    "speakers": "Spoken digits, two speakers held out",
    "dbpedia": "The part of DBpedia",
}


def _counts(found: Sequence[Result]) -> list[int | None]:
    return [*sorted({result.labels for result in found if result.labels is not None}), None]


def _format_table(split: str, found: Sequence[Result]) -> str:
    counts = _counts(found)
    head = ["labels per class", *(str(count or "all") for count in counts), "minutes of one core"]
    rows = [head, ["---"] * len(head)]
    for system in dict.fromkeys(result.system for result in found):
        own = [result for result in found if result.system == system]
        cells = [_describe([each.accuracy for each in own if each.labels == count]) for count in counts]
        minutes = [each.seconds / 60 for each in own]
        rows.append([system, *cells, f"{min(minutes):.1f} to {max(minutes):.1f}"])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return f"## {TITLES[split]}\n\n" + "\n".join(lines) + "\n"


def _describe(values: Sequence[float]) -> str:
    if not values:
        return "-"
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else " (one seed)"
    return f"{np.mean(values):.1f}{spread}"


def _make_chart(split: str, found: Sequence[Result]) -> LineChart:
    """Return accuracy against labels per class; all of them stand where they are, at their mean number."""
    all_labels = {"official": 270, "speakers": 200, "dbpedia": 860}[split]
    lines = []
    for system in dict.fromkeys(result.system for result in found):
        own = {
            count: [r.accuracy for r in found if (r.system, r.labels) == (system, count)] for count in _counts(found)
        }
        points = (make_point(count or all_labels, values) for count, values in own.items() if values)
        lines.append(Line(system, tuple(points)))
    return LineChart(
        TITLES[split], "labels per class, the last being all", "test accuracy, %", tuple(lines), is_log_x=True
    )
