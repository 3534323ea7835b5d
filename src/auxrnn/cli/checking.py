"""`auxrnn data check` and `auxrnn data show`: what is in a file and what is wrong with it, and pictures of it."""

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.cli.options import CheckOptions, ShowOptions
from auxrnn.cli.output import load_data, print_json, say
from auxrnn.config import RunConfig
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat, permutation_order
from auxrnn.data.sequences import NO_LABEL, Split
from auxrnn.data.summary import Findings, check, count_lengths, measure_lengths
from auxrnn.data.texts import TextFormat
from auxrnn.files import write_aside
from auxrnn.report.data_pictures import Shown, draw_images, draw_series, draw_texts

NUM_BINS = 10
BAR_WIDTH = 40
MOST_CLASSES = 40
MOST_PROBLEMS = 50
NUM_SHOWN = 6


def check_data(options: CheckOptions) -> int:
    """Print what is in some data and what is wrong with it."""
    findings = check(options.data)
    if options.json:
        print_json(_to_plain(findings))
    else:
        _print_findings(options.data.data, findings)
    return 0 if findings.would_train else 1


def show_data(options: ShowOptions) -> int:
    """Write a picture of some examples."""
    config = runs.settle(RunConfig(data=options.data))
    dataset = load_data(config)
    picture = draw(options.data.data, dataset, runs.prepare(config, dataset), num_shown=NUM_SHOWN)
    write_aside(options.out, picture)
    say(f"{options.data.data}: {dataset.facts.description}")
    print(options.out)
    return 0


def _to_plain(findings: Findings) -> dict[str, object]:
    problems = findings.problems
    lengths = measure_lengths(findings.length_N)._asdict() if findings.has_examples else None
    return {
        "would_train": findings.would_train,
        "description": None if findings.facts is None else findings.facts.description,
        "examples": len(findings.length_N),
        "lengths": lengths,
        "classes": findings.count_classes(),
        "num_refused": problems.num_refused,
        "refused": problems.refused,
        "num_skipped": problems.num_skipped,
        "skipped": problems.skipped,
    }


def _print_findings(name: str, findings: Findings) -> None:
    if findings.facts is not None:
        print(f"{name}: {findings.facts.description}")
    if findings.has_examples:
        counts = findings.count_classes()
        num_classes = 0 if findings.facts is None else len(findings.facts.class_names)
        print(f"{len(findings.length_N):,} sequences, {num_classes} classes, {measure_lengths(findings.length_N)}")
        _print_classes(counts)
        _print_lengths(findings.length_N)
    problems = findings.problems
    for title, sentences, count in (
        ("skipped", problems.skipped, problems.num_skipped),
        ("error", problems.refused, problems.num_refused),
    ):
        for sentence in sentences[:MOST_PROBLEMS]:
            print(f"{title}: {sentence}")
        if count > MOST_PROBLEMS:
            print(f"{title}: {count - MOST_PROBLEMS:,} more")
    if findings.would_train:
        print("training would start")
    else:
        print(f"training would fail: {problems.num_refused:,} {'problem' if problems.num_refused == 1 else 'problems'}")


def _print_classes(counts: dict[str, dict[str, int]]) -> None:
    """Print how many examples each class has, as numbers for each split and as a bar."""
    names = list(dict.fromkeys(name for part in counts.values() for name in part))
    table = Table("class", *counts, "balance", box=SIMPLE)
    totals = {name: sum(part.get(name, 0) for part in counts.values()) for name in names}
    for name in names[:MOST_CLASSES]:
        cells = [f"{part.get(name, 0):,}" for part in counts.values()]
        table.add_row(name, *cells, _bar(totals[name], max(totals.values())))
    Console().print(table)
    if len(names) > MOST_CLASSES:
        print(f"and {len(names) - MOST_CLASSES} more classes")


def _print_lengths(length_N: np.ndarray) -> None:
    """Print how many sequences there are of which lengths, as bars."""
    if length_N.min() == length_N.max():
        return
    table = Table("steps", "sequences", "", box=SIMPLE)
    bins = count_lengths(length_N, NUM_BINS)
    for first, last, count in bins:
        table.add_row(f"{first:,} to {last:,}", f"{count:,}", _bar(count, max(count for _, _, count in bins)))
    Console().print(table)


def _bar(count: int, most: int) -> str:
    """Return a bar of at most `BAR_WIDTH` blocks; anything above zero shows."""
    return "\N{FULL BLOCK}" * (max(1, round(BAR_WIDTH * count / most)) if count else 0)


def draw(name: str, dataset: Dataset, prepared: runs.Prepared, *, num_shown: int) -> bytes:
    """Draw some training examples of as many classes as there is room for; gives a PNG."""
    form = prepared.card.format
    train = make_splits(dataset, prepared.division, form).train
    chosen = _choose(train, num_shown)
    shown = [_show(chosen.select(np.array([row])), dataset, form) for row in range(chosen.num_examples)]
    title = f"{name}: {dataset.facts.description}"
    if isinstance(form, ImageFormat):
        order_T = None if form.permutation is None else permutation_order(form.permutation, form.num_steps)
        return draw_images(shown, size=form.size, order_T=order_T, title=title)
    if isinstance(form, TextFormat):
        return draw_texts(shown, title=title, unknown=None if form.alphabet is None else len(form.alphabet))
    return draw_series(shown, title=title)


def _choose(train: Split, num_shown: int) -> Split:
    """Take the first example of each class, then the second, and so on."""
    rank_N = np.zeros(train.num_examples, dtype=np.int64)
    for label in np.unique(train.label_N):
        rows = np.flatnonzero(train.label_N == label)
        rank_N[rows] = np.arange(len(rows))
    return train.select(np.lexsort((train.label_N, rank_N))[:num_shown])


def _show(one: Split, dataset: Dataset, form: Format) -> Shown:
    value_NT, _ = one.align()
    label = int(one.label_N[0])
    text = None
    if isinstance(form, TextFormat):
        kept = np.concatenate(list(one.values()))
        is_bytes = form.tokens == "bytes"
        text = kept.tobytes().decode(errors="replace") if is_bytes else "".join(map(chr, kept.tolist()))
        text = text[::-1] if form.is_backward else text
    return Shown("no label" if label == NO_LABEL else dataset.facts.class_names[label], value_NT[0], text)
