"""Figure 5: training and test curves on CIFAR10: whether the auxiliary loss regularizes or optimizes."""

from collections.abc import Iterator

from auxrnn.experiments import table2_pixel_images as table2
from auxrnn.experiments.collected import Place, Results, claim_above, tell, trace
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import Claim, Grid, Line, LineChart, Row
from auxrnn.report.run_records import RunRecord

TITLE = "Figure 5: training and test curves (CIFAR10)"
SUMMARY = (
    "Accuracy on training and test images while labels are learned, from the runs of Table 2. An auxiliary loss that"
    " optimizes shows in training; one that regularizes shows in test only."
)
SYSTEMS = {"LSTM": table2.LSTM_FULL, "r-LSTM": table2.R_CUT, "p-LSTM": table2.P_CUT}
PAPER = {"LSTM": (25.0, 61.0, 58.8), "r-LSTM": (33.0, 65.0, 65.9), "p-LSTM": (33.0, 65.0, 64.7)}
"""Training accuracy at the start and at the end, and test accuracy at the end."""
COLUMNS = ("training, early", "training, at the end", "test, at the end")
EARLY = 1
"""The first evaluation after labels are learned from; the one before any is chance."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the runs of Table 2 that the figure shows."""
    for job in table2.runs(scale):
        if job.column == CIFAR10 and job.row in SYSTEMS.values():
            yield job


def claims(results: Results) -> list[Claim]:
    """Judge both advantages: of optimization early, of regularization at the end."""
    found = []
    for system in ("r-LSTM", "p-LSTM"):
        place, baseline = Place(SYSTEMS[system], CIFAR10), Place(SYSTEMS["LSTM"], CIFAR10)
        text = f"Pretraining gives the {system} a better start: higher training accuracy than the LSTM early on"
        found.append(claim_above(results, text, place, baseline, value=train_early))
        text = f"The {system} regularizes: at the end its test accuracy lies closer to its training accuracy"
        found.append(claim_above(results, text, place, baseline, value=_closeness))
    return found


def conclude(results: Results) -> str:
    """Say how high all begin and end, on the images that they learn from."""
    places = [Place(row, CIFAR10) for row in SYSTEMS.values()]
    early = "Soon after the first labels LSTM, r-LSTM and p-LSTM name {}, {} and {} % of their training images"
    late = "at the end {}, {} and {} %"
    told = (tell(results, early, *places, value=train_early), tell(results, late, *places, value=train_late))
    return f"{', '.join(told)}." if all(told) else ""


def train_early(record: RunRecord) -> float:
    """Give the training accuracy soon after the first label."""
    return float(_labeled(record)[EARLY]["train_accuracy"])


def train_late(record: RunRecord) -> float:
    """Give the training accuracy after the last update."""
    return float(record.scores["train_accuracy"])


def _closeness(record: RunRecord) -> float:
    return float(record.scores["test_accuracy"]) - train_late(record)


def _labeled(record: RunRecord) -> list[dict[str, float]]:
    return [point for point in record.curve if "test_accuracy" in point]


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give two charts, training and test, and the ends of the curves as a table."""
    rows = []
    for system, (early, late, test) in PAPER.items():
        row = SYSTEMS[system]
        cells = (
            results.cell(row, CIFAR10, early, train_early),
            results.cell(row, CIFAR10, late, train_late),
            results.cell(row, CIFAR10, test),
        )
        rows.append(Row(table2.name_row(results, row), cells))
    charts = [_chart(results, split) for split in ("train", "test")]
    return [Grid("Ends of the curves", "accuracy, %", COLUMNS, tuple(rows))], charts


def _chart(results: Results, split: str) -> LineChart:
    words = {"train": "training images", "test": "test images"}[split]
    lines = tuple(
        Line(table2.name_row(results, row), trace(results.find(row, CIFAR10), f"{split}_accuracy"))
        for row in SYSTEMS.values()
    )
    return LineChart(f"Accuracy on {words}", "updates, pretraining counted", "accuracy, %", lines, chance=10.0)
