"""Table 3: the same images against self-attention."""

from collections.abc import Iterator

from auxrnn.experiments import table2_pixel_images as table2
from auxrnn.experiments.collected import Place, Results, claim_above, tell
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import helped
from auxrnn.experiments.scales import CIFAR10, IMAGES, MNIST, PMNIST, Scale
from auxrnn.presets import ModelName
from auxrnn.report.results import Claim, Grid, LineChart, Row

TITLE = "Table 3: self-attention on the same images"
SUMMARY = (
    "A Transformer sees all pixels at once, at a memory cost that grows with their number; the T-DMCA attends to blocks"
    " and to compressed memory. Both stand beside the r-LSTM with full back-propagation."
)
R_FULL, TRANSFORMER, DMCA = table2.R_FULL, "Transformer", "T-DMCA"
PAPER = {R_FULL: table2.PAPER[R_FULL], TRANSFORMER: (98.9, 97.9, 62.2), DMCA: (99.3, 97.6, 73.0)}
"""The T-DMCA's are from the text."""
MODELS: dict[str, ModelName] = {TRANSFORMER: "transformer", DMCA: "dmca"}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the r-LSTM of Table 2 and the two models of attention."""
    for seed in scale.fewer_seeds:
        for dataset in IMAGES:
            yield Job(R_FULL, dataset, helped(scale, dataset, "reconstruct", seed=seed, window="full"))
            for row, model in MODELS.items():
                yield Job(row, dataset, scale.other(dataset, model, seed=seed))


def claims(results: Results) -> list[Claim]:
    """Judge the orderings of the paper, which change from dataset to dataset."""

    def claim(first: str, second: str, dataset: str) -> Claim:
        text = f"On {dataset} the {first} beats the {second}"
        return claim_above(results, text, Place(first, dataset), Place(second, dataset))

    return [
        claim(TRANSFORMER, R_FULL, MNIST),
        claim(TRANSFORMER, R_FULL, PMNIST),
        claim(R_FULL, TRANSFORMER, CIFAR10),
        claim(DMCA, TRANSFORMER, MNIST),
        claim(TRANSFORMER, DMCA, PMNIST),
        claim(DMCA, TRANSFORMER, CIFAR10),
    ]


def conclude(results: Results) -> str:
    """Say how the three do on the first and the last dataset."""
    text = (
        f"Images named rightly, in %: on {MNIST} the r-LSTM {{}}, the Transformer {{}}, the T-DMCA {{}};"
        f" on {CIFAR10} {{}}, {{}} and {{}}."
    )
    return tell(results, text, *(Place(row, dataset) for dataset in (MNIST, CIFAR10) for row in PAPER))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table as the paper prints it, with the T-DMCA of its text."""
    rows = tuple(
        Row(row, tuple(results.cell(row, dataset, n) for dataset, n in zip(IMAGES, numbers, strict=True)))
        for row, numbers in PAPER.items()
    )
    return [Grid("Recurrence against attention", "test accuracy, %", IMAGES, rows)], []
