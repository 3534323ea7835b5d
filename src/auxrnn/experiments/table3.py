"""Table 3: the same images against self-attention."""

from collections.abc import Iterator

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import CIFAR10, IMAGES, MNIST, PMNIST, Scale
from auxrnn.presets import ModelName
from auxrnn.report.results import Claim, Grid, LineChart

TITLE = "Table 3: self-attention on the same images"
SUMMARY = (
    "A Transformer sees all pixels at once, and its cost grows with the square of their number; the T-DMCA attends to"
    " blocks and to compressed memory. Both are compared with the r-LSTM with full back-propagation."
)
R_FULL, TRANSFORMER, DMCA = table2.R_FULL, "Transformer", "T-DMCA"
PAPER = {R_FULL: table2.PAPER[R_FULL], TRANSFORMER: (98.9, 97.9, 62.2), DMCA: (99.3, 97.6, 73.0)}
"""The T-DMCA's are from the text."""
MODELS: dict[str, ModelName] = {TRANSFORMER: "transformer", DMCA: "dmca"}
ORDERINGS = (
    (TRANSFORMER, R_FULL, MNIST),
    (TRANSFORMER, R_FULL, PMNIST),
    (R_FULL, TRANSFORMER, CIFAR10),
    (DMCA, TRANSFORMER, MNIST),
    (TRANSFORMER, DMCA, PMNIST),
    (DMCA, TRANSFORMER, CIFAR10),
)
"""The better, the worse, and on which dataset, in the paper."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the r-LSTM of Table 2 and the two models of attention."""
    for seed in scale.fewer_seeds:
        for dataset in IMAGES:
            yield table2.make_job(scale, R_FULL, dataset, seed=seed)
            for row, model in MODELS.items():
                yield Job(row, dataset, scale.other(dataset, model, seed=seed))


def claims(results: Results) -> list[Claim]:
    """Judge the orderings of the paper, which change from dataset to dataset."""
    return [
        results.claim(f"On {dataset} the {better} beats the {worse}", (better, dataset), (worse, dataset))
        for better, worse, dataset in ORDERINGS
    ]


def conclude(results: Results) -> str:
    """Return how the three do on the first and the last dataset."""
    text = (
        f"Test accuracy in %: on {MNIST} the r-LSTM {{}}, the Transformer {{}}, the T-DMCA {{}};"
        f" on {CIFAR10} {{}}, {{}} and {{}}."
    )
    return results.tell(text, *((row, dataset) for dataset in (MNIST, CIFAR10) for row in PAPER))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the table as the paper prints it, with the T-DMCA of its text."""
    return [Grid("Recurrence against attention", table2.UNIT, IMAGES, results.rows(PAPER, IMAGES))], []
