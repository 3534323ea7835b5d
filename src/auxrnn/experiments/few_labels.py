"""Few labels: all sequences for pretraining, and labels for only some of them (MNIST and DBpedia). Not in the paper."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import ACCURACY, Results, Shown
from auxrnn.experiments.scales import DBPEDIA, MNIST, PAPER_WINDOW, Scale
from auxrnn.report.results import Grid, LineChart

TITLE = "Few labels: what unlabeled sequences are worth"
SUMMARY = (
    "All networks have labels for only a few sequences, and the same number of updates on them. The r-LSTM and the"
    " p-LSTM are first pretrained on all sequences without labels; one pretraining serves all numbers of labels."
)
SYSTEMS = LSTM, R, P = "LSTM", "r-LSTM", "p-LSTM"


class Study(NamedTuple):
    """One dataset: how many labels, the last being all of them, and how far gradients reach."""

    counts: tuple[int, ...]
    window: int
    settings: dict[str, Any]
    """What differs from the network that is trained with all labels."""


STUDIES = {
    MNIST: Study((100, 300, 1000, 3000, 60_000), PAPER_WINDOW, {}),
    # As in Table 4: the auxiliary loss ends with pretraining.
    DBPEDIA: Study((140, 420, 1400, 4200, 12_038), 100, {"joint": False}),
}
SHARES = (0.06, 0.06, 0.12, 0.18, 1.0)
"""Updates with labels, as shares of those with all labels: few examples are soon memorized."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the runs, seed by seed; with all labels those of MNIST are Table 2's."""
    for seed, (dataset, study) in itertools.product(scale.seeds, STUDIES.items()):
        for count, share in zip(study.counts, SHARES, strict=True):
            few = {"label_fraction": count / study.counts[-1]} | _shorten(scale, dataset, share)
            for row in SYSTEMS:
                changes = ({} if row == LSTM else study.settings) | ({} if share == 1.0 else few)
                config = scale.config(row, dataset, seed=seed, window=study.window, **changes)
                yield Job(row, _column(dataset, count), config)


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
    for dataset, study in STUDIES.items():
        columns = {_column(dataset, count): count for count in study.counts}
        titles = {column: f"{count:,}" for column, count in columns.items()}
        rows = results.rows_by_column(titles, {row: {} for row in SYSTEMS})
        caption = results.scale.add_part(f"{dataset}, by number of labels", dataset)
        grids.append(Grid(caption, ACCURACY, SYSTEMS, rows))
        lines = tuple(results.line(row, columns) for row in SYSTEMS)
        charts.append(LineChart(f"Accuracy with few labels, {dataset}", "labels", ACCURACY, lines, is_log_x=True))
        for (column, title), row in itertools.product(list(titles.items())[:-1], (R, P)):
            text = f"On {dataset} with {title} labels the {row} beats the LSTM"
            claims.append(results.claim(text, (row, column), (LSTM, column), is_ours=True))
    text = "With 1,000 labels of MNIST the LSTM classifies {} % correctly, the r-LSTM {} % and the p-LSTM {} %."
    finding = results.tell(text, *((row, _column(MNIST, 1000)) for row in SYSTEMS))
    return Shown(grids, charts, claims, finding)
