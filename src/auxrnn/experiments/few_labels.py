"""Few labels: what unlabeled sequences are worth.

All networks have labels for only a few sequences, and the same number of updates on them. The r-LSTM and the p-LSTM are
first pretrained on all sequences without labels; one pretraining serves all numbers of labels.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import ACCURACY, Results, Shown
from auxrnn.experiments.scales import DBPEDIA, MNIST, PAPER_WINDOW, Scale
from auxrnn.report.results import LineChart

SYSTEMS = LSTM, R, P = "LSTM", "r-LSTM", "p-LSTM"
COUNTS = {MNIST: (100, 300, 1000, 3000, 60_000), DBPEDIA: (140, 420, 1400, 4200, 12_038)}
"""Numbers of labels, the last being all there are."""
SHARES = (0.06, 0.06, 0.12, 0.18, 1.0)
"""Updates with labels, as shares of those with all labels: few examples are soon memorized."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the runs, seed by seed; with all labels those of MNIST are Table 2's."""
    for seed, (dataset, counts) in itertools.product(scale.seeds, COUNTS.items()):
        for (count, share), row in itertools.product(zip(counts, SHARES, strict=True), SYSTEMS):
            # As in Table 4: on texts gradients reach 100 steps, and the auxiliary loss ends with pretraining.
            changes: dict[str, Any] = {"window": PAPER_WINDOW if dataset == MNIST else 100}
            changes |= {"joint": False} if dataset == DBPEDIA and row != LSTM else {}
            if count < counts[-1]:
                changes |= {"label_fraction": count / counts[-1]} | _shorten(scale, dataset, share)
            yield Job(row, _column(dataset, count), scale.config(row, dataset, seed=seed, **changes))


def _column(dataset: str, count: int) -> str:
    return f"{dataset}, {count:,} labels"


def _shorten(scale: Scale, dataset: str, share: float) -> dict[str, Any]:
    """Return the length of training with few labels, evaluated at its end alone; the paper's scale counts passes."""
    schedule = scale.datasets[dataset].schedule or scale.schedule
    if schedule is None:
        return {}
    updates = max(1, round(share * (schedule.num_updates - schedule.pretrain_updates)))
    return {"train_steps": updates, "evaluate_every": schedule.num_updates}


def show(results: Results) -> Shown:
    """Return a table and a chart of accuracy against labels for each dataset; pretraining should help where few."""
    grids, charts, claims = [], [], []
    for dataset, counts in COUNTS.items():
        columns = {_column(dataset, count): count for count in counts}
        titles = tuple(f"{count:,}" for count in counts)
        caption = results.scale.add_part(f"{dataset}, by number of labels", dataset)
        grid = results.grid(caption, {row: [None] * len(counts) for row in SYSTEMS}, list(columns))
        grids.append(grid._replace(columns=titles).transpose())
        lines = tuple(results.line(row, columns) for row in SYSTEMS)
        charts.append(LineChart(f"Accuracy with few labels, {dataset}", "labels", ACCURACY, lines, is_log_x=True))
        for count, row in itertools.product(counts[:-1], (R, P)):
            text, column = f"On {dataset} with {count:,} labels the {row} beats the LSTM", _column(dataset, count)
            claims.append(results.claim(text, (row, column), (LSTM, column), is_ours=True))
    text = "Test accuracy in % with 1,000 labels of MNIST: LSTM {}, r-LSTM {}, p-LSTM {}."
    finding = results.tell(text, *((row, _column(MNIST, 1000)) for row in SYSTEMS))
    return Shown(grids, charts, claims, finding)
