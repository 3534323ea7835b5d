"""MNIST at the paper's own size: the two truncated rows of Table 2 that differ most, one run of each.

What is possible on a desk: all 784 steps, 128 units and windows of 300 as published, but five passes over the data
where the paper has 1,100. Rate, batches and sampling are those that the desk's trials found for short trainings.
"""

from collections.abc import Iterator
from typing import Any

from auxrnn.config import RunConfig, unflatten
from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import MNIST, PAPER_SEGMENT, PAPER_WINDOW, Scale
from auxrnn.report.results import Claim, Grid, Line, LineChart

TITLE = "MNIST at the paper's own size"
SUMMARY = (
    "All 784 pixels, 128 units, 300 steps of supervised back-propagation, as in Table 2. At desk scale only five"
    " epochs and one seed: too little for a verdict."
)
ROWS = (table2.LSTM_CUT, table2.R_CUT)
PAPER = {row: table2.PAPER[row][0] for row in ROWS}
NUM_EPOCHS, PRETRAIN_EPOCHS, NUM_RATES = 5.0, 2.0, 5
SHARED = {
    "data": "mnist",
    "batch_size": 32,
    "lr": 4e-3,
    "drop_connect": 0.2,
    "supervised_window": PAPER_WINDOW,
    "evaluate_every": 625,
    "checkpoint_every": 100,
    "threads": 1,
}
AUXILIARY = {
    "objective": "reconstruct",
    "placement": "immediate",
    "auxiliary_window": PAPER_WINDOW,
    "segment_length": PAPER_SEGMENT,
    "auxiliary_weight": 30.0,
    "sampling_steps": 9375,
}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the two runs; at the other scales they are those of Table 2."""
    for seed in scale.fewer_seeds:
        for row in ROWS:
            job = table2.make_job(scale, row, MNIST, seed=seed)
            yield job._replace(config=_shortened(row, seed)) if scale.name == "desk" else job


def _shortened(row: str, seed: int) -> RunConfig:
    is_plain = row == table2.LSTM_CUT
    pretrain_epochs = 0.0 if is_plain else PRETRAIN_EPOCHS
    train_epochs = NUM_EPOCHS - pretrain_epochs
    lengths: dict[str, Any] = {"train_epochs": train_epochs, "lr_halving_epochs": train_epochs / NUM_RATES}
    extra = {"objective": "none"} if is_plain else AUXILIARY | {"pretrain_epochs": pretrain_epochs}
    return unflatten(SHARED | lengths | extra | {"seed": seed})


def claims(results: Results) -> list[Claim]:
    """Judge the paper's largest gap."""
    text = "With a window of 300 of 784 steps the r-LSTM beats the LSTM"
    return [results.claim(text, (table2.R_CUT, MNIST), (table2.LSTM_CUT, MNIST))]


def conclude(results: Results) -> str:
    """Return where both ended."""
    numbers = (f"{row} {{}}, in the paper {paper}" for row, paper in PAPER.items())
    text = f"Test accuracy in %: {'; '.join(numbers)}."
    return results.tell(text, *((row, MNIST) for row in ROWS))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the curves, and their ends beside the paper's numbers."""
    rows = results.rows({row: (PAPER[row],) for row in ROWS}, (MNIST,))
    lines = tuple(Line(row, results.curve(row, MNIST, "test_accuracy")) for row in ROWS)
    x_label = "updates, pretraining counted"
    chart = LineChart("Accuracy while training, 784 steps", x_label, table2.UNIT, lines, chance=10.0)
    return [Grid("784 steps, a window of 300", table2.UNIT, (MNIST,), rows)], [chart]
