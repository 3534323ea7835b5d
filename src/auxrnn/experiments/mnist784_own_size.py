"""MNIST at the paper's own size: the two truncated rows of Table 2 that differ most, one run of each.

What is possible on a desk: all 784 steps, 128 units and windows of 300 as published, but five passes over the data
where the paper has 1,100. Rate, batches and sampling are those that the desk's trials found for short trainings.
"""

from collections.abc import Iterator
from typing import Any

from auxrnn.config import RunConfig
from auxrnn.experiments import table2_pixel_images as table2
from auxrnn.experiments.collected import Place, Results, claim_above, tell, trace
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import SEGMENT_LENGTH
from auxrnn.experiments.scales import MNIST, PAPER_WINDOW, Scale
from auxrnn.plain_config import unflatten
from auxrnn.report.results import Claim, Grid, Line, LineChart, Row

TITLE = "MNIST at the paper's own size"
SUMMARY = (
    "All 784 pixels, 128 units, 300 steps of supervised back-propagation, as in Table 2. At desk scale five passes over"
    " the training images and one seed: a curve to look at, which decides nothing."
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
    "segment_length": SEGMENT_LENGTH,
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
    """Judge the paper's starkest contrast."""
    text = "With a window of 300 of 784 steps the r-LSTM is above the LSTM"
    return [claim_above(results, text, Place(table2.R_CUT, MNIST), Place(table2.LSTM_CUT, MNIST))]


def conclude(results: Results) -> str:
    """Say where both ended."""
    numbers = (f"{row} {{}}, in the paper {paper}" for row, paper in PAPER.items())
    text = f"Digits named rightly, in %: {'; '.join(numbers)}."
    return tell(results, text, *(Place(row, MNIST) for row in ROWS))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the curves, and their ends beside the paper's numbers."""
    rows = tuple(Row(row, (results.cell(row, MNIST, PAPER[row]),)) for row in ROWS)
    lines = tuple(Line(row, trace(results.find(row, MNIST), "test_accuracy")) for row in ROWS)
    chart = LineChart(
        "Accuracy while training, 784 steps", "updates, pretraining counted", "test accuracy, %", lines, chance=10.0
    )
    return [Grid("784 steps, a window of 300", "test accuracy, %", (MNIST,), rows)], [chart]
