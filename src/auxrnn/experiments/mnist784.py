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
from auxrnn.experiments.scales import MNIST, Scale
from auxrnn.experiments.table2 import LSTM_CUT, R_CUT

PAPER = {row: table2.PAPER[row][:1] for row in (LSTM_CUT, R_CUT)}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the two runs; they are those of Table 2 where a scale has nothing else for them."""
    for seed, row in itertools.product(scale.fewer_seeds, PAPER):
        job = table2.make_job(scale, row, MNIST, seed=seed)
        own = scale.paper_size.get(row)
        yield job if own is None else job._replace(config=unflatten({**own, "seed": seed, "threads": 1}))


def show(results: Results) -> Shown:
    """Return the curves, and their ends beside the paper's numbers."""
    grid = results.grid("784 steps, a window of 300", PAPER, (MNIST,))
    chart = results.curves("Accuracy while training, 784 steps", {row: row for row in PAPER}, MNIST)
    text = "With a window of 300 of 784 steps the r-LSTM beats the LSTM"
    claim = results.claim(text, (R_CUT, MNIST), (LSTM_CUT, MNIST))
    numbers = (f"{row} {{}}, in the paper {paper}" for row, (paper,) in PAPER.items())
    finding = results.tell(f"Test accuracy in %: {'; '.join(numbers)}.", *((row, MNIST) for row in PAPER))
    return Shown([grid], [chart], [claim], finding)
