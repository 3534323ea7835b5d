"""MNIST at the paper's own size.

All 784 pixels, 128 units, 300 steps of supervised back-propagation, as in Table 2. At desk scale only five epochs and
one seed: too little for a verdict.
"""

import itertools
from collections.abc import Iterator

from auxrnn.config import unflatten
from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import MNIST, PAPER_SEGMENT, PAPER_WINDOW, Scale
from auxrnn.experiments.table2 import LSTM_CUT, R_CUT

# What is possible on a desk: five passes over the data where the paper has 1,100, with the rate, the batches and the
# sampling that the desk's trials found for short trainings.
PAPER = {row: table2.PAPER[row][:1] for row in (LSTM_CUT, R_CUT)}
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
OWN = {
    LSTM_CUT: {"objective": "none", "train_epochs": 5.0, "lr_halving_epochs": 1.0},
    R_CUT: {
        "objective": "reconstruct",
        "placement": "immediate",
        "auxiliary_window": PAPER_WINDOW,
        "segment_length": PAPER_SEGMENT,
        "auxiliary_weight": 30.0,
        "sampling_steps": 9375,
        "pretrain_epochs": 2.0,
        "train_epochs": 3.0,
        "lr_halving_epochs": 3.0 / 5,
    },
}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the two runs; at the other scales they are those of Table 2."""
    for seed, row in itertools.product(scale.fewer_seeds, PAPER):
        job = table2.make_job(scale, row, MNIST, seed=seed)
        own = unflatten(SHARED | OWN[row] | {"seed": seed})
        yield job._replace(config=own) if scale.name == "desk" else job


def show(results: Results) -> Shown:
    """Return the curves, and their ends beside the paper's numbers."""
    grid = results.grid("784 steps, a window of 300", PAPER, (MNIST,))
    chart = results.curves("Accuracy while training, 784 steps", {row: row for row in PAPER}, MNIST)
    text = "With a window of 300 of 784 steps the r-LSTM beats the LSTM"
    claim = results.claim(text, (R_CUT, MNIST), (LSTM_CUT, MNIST))
    numbers = (f"{row} {{}}, in the paper {paper}" for row, (paper,) in PAPER.items())
    finding = results.tell(f"Test accuracy in %: {'; '.join(numbers)}.", *((row, MNIST) for row in PAPER))
    return Shown([grid], [chart], [claim], finding)
