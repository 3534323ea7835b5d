"""Figure 5: training and test curves (CIFAR10).

Accuracy on training and test images while learning from labels, from the runs of Table 2. If the auxiliary loss helps
optimization, training accuracy rises; if it regularizes, only test accuracy does.
"""

from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown, test_accuracy
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.records import RunRecord
from auxrnn.report.results import Claim, Grid

LSTM, R, P = table2.LSTM_FULL, table2.R_CUT, table2.P_CUT
PAPER = {
    row: (*ends, table2.PAPER[row][2]) for row, ends in {LSTM: (25.0, 61.0), R: (33.0, 65.0), P: (33.0, 65.0)}.items()
}
"""Training accuracy at the start and at the end, and test accuracy at the end."""
COLUMNS = ("training, early", "training, at the end", "test, at the end")
EARLY = "Soon after the first labels LSTM, r-LSTM and p-LSTM classify {}, {} and {} % of the training images correctly"


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the runs of Table 2 that the figure shows."""
    return (job for job in table2.runs(scale) if job.column == CIFAR10 and job.row in PAPER)


def train_early(record: RunRecord) -> float:
    """Return the training accuracy soon after the first label."""
    labeled = [point for point in record.curve if "test_accuracy" in point]
    # The first evaluation is of a network that has seen no label.
    return float(labeled[1]["train_accuracy"])


def train_late(record: RunRecord) -> float:
    """Return the training accuracy after the last update."""
    return float(record.scores["train_accuracy"])


def show(results: Results) -> Shown:
    """Return two charts, training and test, and the ends of the curves as a table."""
    titles = {row: table2.name_row(results, row) for row in PAPER}
    values = (train_early, train_late, test_accuracy)
    rows = {
        titles[row]: [results.cell(row, CIFAR10, *pair) for pair in zip(numbers, values, strict=True)]
        for row, numbers in PAPER.items()
    }
    charts = [
        results.curves(f"Accuracy on {words} images", titles, CIFAR10, split=split)._replace(y_label="accuracy, %")
        for split, words in (("train", "training"), ("test", "test"))
    ]
    places = [(row, CIFAR10) for row in PAPER]
    early = results.tell(EARLY, *places, value=train_early)
    late = results.tell("at the end {}, {} and {} %", *places, value=train_late)
    finding = f"{early}, {late}." if early and late else ""
    return Shown([Grid("Ends of the curves", "accuracy, %", COLUMNS, rows)], charts, list(_claims(results)), finding)


def _claims(results: Results) -> Iterator[Claim]:
    """Judge both advantages: of optimization early, of regularization at the end."""
    for row in (R, P):
        system, places = row.split()[0], ((row, CIFAR10), (LSTM, CIFAR10))
        text = f"Pretraining gives the {system} a better start: higher training accuracy than the LSTM early on"
        yield results.claim(text, *places, value=train_early)
        text = f"The {system} regularizes: at the end its test accuracy is closer to its training accuracy"
        text += " than the LSTM's"
        yield results.claim(text, *places, value=lambda record: test_accuracy(record) - train_late(record))
