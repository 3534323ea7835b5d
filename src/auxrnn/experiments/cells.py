"""Other cells: what the loss adds to recurrences that are made to remember.

Table 2 with other recurrences in place of the LSTM: the same images, windows, losses and updates, each without and with
an auxiliary loss.
"""

import itertools
from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import IMAGES, MNIST, PAPER_WINDOW, Scale, shown_as
from auxrnn.report.records import RunRecord
from auxrnn.report.results import Claim

CELLS = ("UR-LSTM", "LRU", "Legendre", "LSTM", "GRU")
CUT, FULL = "Truncate300", "Full BP"
PAPER = {row: table2.PAPER[row] for row in table2.MAIN_ROWS} | {"UR-LSTM Full BP": (99.28, 96.96, 71.0)}
"""Of the LSTM those of Table 2; of the UR-LSTM those of Gu et al. (2020)."""


def find_rows(kind: str) -> list[str]:
    """Return the rows of one kind of back-propagation, cell by cell."""
    return [f"{prefix}{cell} {kind}" for cell, prefix in itertools.product(CELLS, ("", "r-", "p-"))]


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the truncated rows, those with full back-propagation, and the p-rows; those of the LSTM are Table 2's."""
    rows = sorted([*find_rows(CUT), *find_rows(FULL)], key=lambda row: row.startswith("p-"))
    for seed, row, dataset in itertools.product(scale.fewer_seeds, rows, IMAGES):
        yield table2.make_job(scale, row, dataset, seed=seed)


def show(results: Results) -> Shown:
    """Return accuracies and minutes by back-propagation, and how the truncated networks learn."""
    window, grids = results.scale.window(PAPER_WINDOW, MNIST), []
    titles = {row: shown_as(row, ours=window, paper=PAPER_WINDOW) for row in find_rows(CUT)}
    titles |= {row: row for row in find_rows(FULL)}
    for caption, kind in (("Truncated back-propagation", CUT), ("Full back-propagation", FULL)):
        paper = {row: PAPER.get(row, (None,) * len(IMAGES)) for row in find_rows(kind)}
        grids.append(results.grid(caption, paper, IMAGES, title=titles.__getitem__))
    nothing = {row: (None,) * len(IMAGES) for row in titles}
    times = results.grid("Minutes of one core", nothing, IMAGES, title=titles.__getitem__, value=count_minutes)
    grids.append(times._replace(unit="", decimals=0, is_drawn=False))
    shown = {row: titles[row] for row in find_rows(CUT) if not row.startswith("p-")}
    charts = [results.curves(f"Accuracy on {dataset} while training", shown, dataset) for dataset in IMAGES]
    text = (
        f"On MNIST, with back-propagation through {window} {'step' if window == 1 else 'steps'}, test accuracy in % is"
        f" {', '.join(f'{cell} {{}} and r-{cell} {{}}' for cell in CELLS)}."
    )
    places = [(f"{prefix}{cell} {CUT}", MNIST) for cell, prefix in itertools.product(CELLS, ("", "r-"))]
    return Shown(grids, charts, list(_claims(results)), results.tell(text, *places))


def count_minutes(record: RunRecord) -> float:
    """Return the processor time of a run, or where its record has none, how long it took on its one core."""
    return float(record.scores.get("cpu_seconds", record.seconds)) / 60


def _claims(results: Results) -> Iterator[Claim]:
    """Judge each cell against the LSTM, and whether the loss still helps it."""

    def claim(dataset: str, text: str, better: str, worse: str) -> Claim:
        return results.claim(f"On {dataset} {text}", (better, dataset), (worse, dataset), is_ours=True)

    for cell, dataset in itertools.product([cell for cell in CELLS if cell != "LSTM"], IMAGES):
        for other in ("LSTM", "r-LSTM"):
            text = f"the truncated r-{cell} beats the truncated {other}"
            yield claim(dataset, text, f"r-{cell} {CUT}", f"{other} {CUT}")
        for kind, words in ((CUT, "truncated"), (FULL, "full")):
            text = f"the r-{cell} with {words} back-propagation beats the {cell}: the loss still helps"
            yield claim(dataset, text, f"r-{cell} {kind}", f"{cell} {kind}")
