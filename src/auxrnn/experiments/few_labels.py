"""Few labels: all sequences for pretraining, and labels for only some of them (MNIST and DBpedia). Not in the paper."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from auxrnn.config import RunConfig
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import DBPEDIA, MNIST, PAPER_WINDOW, Scale
from auxrnn.report.results import Claim, Grid, LineChart, Row, to_line

TITLE = "Few labels: what unlabeled sequences are worth"
SUMMARY = (
    "All networks have labels for only a few sequences, and the same number of updates on them. The r-LSTM and the"
    " p-LSTM are first pretrained on all sequences without labels; one pretraining serves all numbers of labels."
)
LSTM, R, P = "LSTM", "r-LSTM", "p-LSTM"
SYSTEMS = (LSTM, R, P)


class Study(NamedTuple):
    """One dataset: how many labels of how many, and how far gradients reach."""

    num_examples: int
    counts: tuple[int, ...]
    window: int
    settings: dict[str, Any]
    """What differs from the network that is trained with all labels."""


STUDIES = {
    MNIST: Study(60_000, (100, 300, 1000, 3000, 60_000), PAPER_WINDOW, {}),
    # As in Table 4: the auxiliary loss ends with pretraining.
    DBPEDIA: Study(12_038, (140, 420, 1400, 4200, 12_038), 100, {"joint": False}),
}
SHARES = (0.06, 0.06, 0.12, 0.18, 1.0)
"""Updates with labels, as shares of those with all labels: few examples are soon memorized."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the runs, seed by seed; with all labels those of MNIST are Table 2's."""
    for seed, (dataset, study) in itertools.product(scale.seeds, STUDIES.items()):
        for count, share in zip(study.counts, SHARES, strict=True):
            for row in SYSTEMS:
                yield Job(row, _column(dataset, count), _config(scale, row, dataset, count, share=share, seed=seed))


def _column(dataset: str, count: int) -> str:
    return f"{dataset}, {count:,} labels"


def _config(scale: Scale, row: str, dataset: str, count: int, *, share: float, seed: int) -> RunConfig:
    study = STUDIES[dataset]
    changes = {} if row == LSTM else dict(study.settings)
    if count < study.num_examples:
        changes |= {"label_fraction": count / study.num_examples} | _shorten(scale, dataset, share)
    if row == LSTM:
        return scale.lstm(dataset, seed=seed, window=study.window, **changes)
    return scale.with_auxiliary(dataset, row, seed=seed, window=study.window, **changes)


def _shorten(scale: Scale, dataset: str, share: float) -> dict[str, Any]:
    """Return the length of training with few labels, evaluated at its end alone; the paper's scale counts passes."""
    schedule = scale.datasets[dataset].schedule or scale.schedule
    if schedule is None:
        return {}
    updates = max(1, round(share * (schedule.num_updates - schedule.pretrain_updates)))
    return {"train_steps": updates, "evaluate_every": schedule.num_updates}


def claims(results: Results) -> list[Claim]:
    """Judge that pretraining without labels helps wherever labels are few."""
    found = []
    for dataset, study in STUDIES.items():
        for count, row in itertools.product(study.counts[:-1], (R, P)):
            text = f"On {dataset} with {count:,} labels the {row} beats the LSTM"
            column = _column(dataset, count)
            found.append(results.claim(text, (row, column), (LSTM, column), is_ours=True))
    return found


def conclude(results: Results) -> str:
    """Return the accuracies with a thousand labels on MNIST."""
    text = "With 1,000 labels of MNIST the LSTM classifies {} % correctly, the r-LSTM {} % and the p-LSTM {} %."
    return results.tell(text, *((row, _column(MNIST, 1000)) for row in SYSTEMS))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return a table and a chart of accuracy against labels for each dataset."""
    grids, charts = [], []
    for dataset, study in STUDIES.items():
        rows = tuple(
            Row(f"{count:,}", tuple(results.cell(row, _column(dataset, count), None) for row in SYSTEMS))
            for count in study.counts
        )
        caption = results.scale.add_part(f"{dataset}, by number of labels", dataset)
        grids.append(Grid(caption, "test accuracy, %", SYSTEMS, rows))
        lines = tuple(to_line(row, _scores(results, row, dataset)) for row in SYSTEMS)
        title = f"Accuracy with few labels, {dataset}"
        charts.append(LineChart(title, "labels", "test accuracy, %", lines, is_log_x=True))
    return grids, charts


def _scores(results: Results, row: str, dataset: str) -> list[tuple[int, Any]]:
    counts = STUDIES[dataset].counts
    found = [(count, results.score(row, _column(dataset, count))) for count in counts]
    return [(count, score) for count, score in found if score is not None]
