"""Table 3: self-attention on the same images.

A Transformer sees all pixels at once, and its cost grows with the square of their number; the T-DMCA attends to blocks
and to compressed memory. Both are compared with the r-LSTM with full back-propagation.
"""

import itertools
from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import CIFAR10, IMAGES, MNIST, PMNIST, Scale

R_FULL, TRANSFORMER, DMCA = table2.R_FULL, "Transformer", "T-DMCA"
PAPER = {R_FULL: table2.PAPER[R_FULL], TRANSFORMER: (98.9, 97.9, 62.2), DMCA: (99.3, 97.6, 73.0)}
"""The T-DMCA's are from the text."""
ORDERINGS = (
    (TRANSFORMER, R_FULL, MNIST),
    (TRANSFORMER, R_FULL, PMNIST),
    (R_FULL, TRANSFORMER, CIFAR10),
    (DMCA, TRANSFORMER, MNIST),
    (TRANSFORMER, DMCA, PMNIST),
    (DMCA, TRANSFORMER, CIFAR10),
)
"""The better, the worse, and on which dataset, in the paper."""
FINDING = "Test accuracy in %: on MNIST the r-LSTM {}, the Transformer {}, the T-DMCA {}; on CIFAR10 {}, {} and {}."


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the r-LSTM of Table 2 and the two models of attention."""
    for seed, dataset, row in itertools.product(scale.fewer_seeds, IMAGES, PAPER):
        yield table2.make_job(scale, row, dataset, seed=seed)


def show(results: Results) -> Shown:
    """Return the table as the paper prints it, with the T-DMCA of its text."""
    claims = [
        results.claim(f"On {dataset} the {better} beats the {worse}", (better, dataset), (worse, dataset))
        for better, worse, dataset in ORDERINGS
    ]
    finding = results.tell(FINDING, *((row, dataset) for dataset in (MNIST, CIFAR10) for row in PAPER))
    return Shown([results.grid("Recurrence against attention", PAPER, IMAGES)], claims=claims, finding=finding)
