"""Table 2: MNIST, pMNIST and CIFAR10, pixel by pixel.

An LSTM reads an image one pixel at a time and classifies it after the last. Full BP back-propagates through all steps,
the truncated rows only through the last few. The r-LSTM also learns to reconstruct what it has read, the p-LSTM to
predict what comes next.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from auxrnn.config import Window, flatten
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import CIFAR10, IMAGES, MNIST, PAPER_WINDOW, PMNIST, Scale, shown_as
from auxrnn.report.results import Claim

PAPER = {
    "iRNN": (97.0, 82.0, None),
    "uRNN": (95.1, 91.4, None),
    "LSTM Full BP": (98.3, 89.4, 58.8),
    "LSTM Truncate300": (11.3, 88.8, 49.0),
    "r-LSTM Truncate300": (96.4, 92.8, 65.9),
    "p-LSTM Truncate300": (95.4, 92.5, 64.7),
    "r-LSTM Full BP": (98.4, 95.2, 72.2),
    "p-LSTM Full BP": (98.0, 92.8, 67.6),
}
I_RNN, U_RNN, LSTM_FULL, LSTM_CUT, R_CUT, P_CUT, R_FULL, P_FULL = PAPER
CUT_ROWS = (LSTM_CUT, R_CUT, P_CUT)
MAIN_ROWS = (*CUT_ROWS, LSTM_FULL, R_FULL, P_FULL)
MNIST_GAP = 40.0
"""The least that the paper's 85 points should leave at any scale."""
GATES = {
    "forget-one": "Gates start with a forget bias of one",
    "chrono": "Gates start with forget biases drawn for long memories (chrono)",
}


class Variation(NamedTuple):
    """Settings that the truncated rows are also tried with, and on which datasets."""

    words: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]
    is_papers: bool = False
    """Whether the paper has this setting, so that its numbers belong beside ours and its gap should show."""


PAPER_SIZE = {"hidden_size": 128, "embedding_size": 128}
VARIATIONS = {
    "128 units": Variation("with 128 units, as in the paper", PAPER_SIZE, (MNIST,), is_papers=True),
    # The paper does not say how its gates start.
    "chrono": Variation("with forget biases drawn for long memories (chrono)", {"gate_init": "chrono"}, IMAGES),
}


def find_variations(scale: Scale) -> dict[str, Variation]:
    """Return the variations that differ from what the scale does anyway."""
    usual = flatten(scale.config("LSTM", MNIST, seed=0))
    return {name: found for name, found in VARIATIONS.items() if not found.settings.items() <= usual.items()}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the six LSTMs with one seed, then with the others (p-LSTMs last), the older networks, the variations."""
    first, others = scale.seeds[:1], scale.seeds[1:]
    of_p = [row for row in MAIN_ROWS if row.startswith("p-")]
    for seeds, rows in ((first, MAIN_ROWS), (others, [row for row in MAIN_ROWS if row not in of_p]), (others, of_p)):
        for row, dataset, seed in itertools.product(rows, IMAGES, seeds):
            yield make_job(scale, row, dataset, seed=seed)
    for seed, row, dataset in itertools.product(scale.fewer_seeds, (I_RNN, U_RNN), (MNIST, PMNIST)):
        yield make_job(scale, row, dataset, seed=seed)
    for name, variation in find_variations(scale).items():
        for seed, row, dataset in itertools.product(scale.seeds, CUT_ROWS, variation.datasets):
            job = make_job(scale, row, dataset, seed=seed, **variation.settings)
            yield job._replace(row=f"{row} ({name})")


def make_job(scale: Scale, row: str, dataset: str, *, seed: int, **changes: Any) -> Job:
    """Return the run of a row on a dataset."""
    system, _, kind = row.partition(" ")
    window: Window = "full" if kind == "Full BP" else PAPER_WINDOW
    return Job(row, dataset, scale.config(system, dataset, seed=seed, window=window, **changes))


def show(results: Results) -> Shown:
    """Return the table as the paper prints it, smaller ones of the variations, and how the six LSTMs learn MNIST."""
    title = functools.partial(name_row, results)
    gates = GATES[flatten(results.scale.config("LSTM", MNIST, seed=0))["gate_init"]]
    grids = [results.grid(gates, PAPER, IMAGES, title=title)]
    for name, variation in find_variations(results.scale).items():
        places = [IMAGES.index(dataset) for dataset in variation.datasets]
        paper = {
            f"{row} ({name})": [PAPER[row][place] if variation.is_papers else None for place in places]
            for row in CUT_ROWS
        }
        grids.append(results.grid(f"The same {variation.words}", paper, variation.datasets, title=title))
    curves = results.curves("Accuracy on MNIST while training", {row: title(row) for row in list(PAPER)[2:]}, MNIST)
    window = results.scale.window(PAPER_WINDOW, MNIST)
    text = (
        f"With back-propagation through {window} {'step' if window == 1 else 'steps'}, the LSTM classifies {{}} % of"
        " MNIST's test digits correctly, the r-LSTM {} % and the p-LSTM {} %. With full back-propagation they reach"
        " {} %, {} % and {} %."
    )
    finding = results.tell(text, *((row, MNIST) for row in MAIN_ROWS))
    return Shown(grids, [curves], [*_claims_of_the_paper(results), *_claims_beyond(results)], finding)


def _claims_of_the_paper(results: Results) -> Iterator[Claim]:
    def claim(dataset: str, text: str, better: str, worse: str) -> Claim:
        return results.claim(f"On {dataset} {text}", (better, dataset), (worse, dataset))

    cut = {R_CUT: "the truncated r-LSTM", P_CUT: "the truncated p-LSTM"}
    for dataset, (row, system) in itertools.product(IMAGES, cut.items()):
        yield claim(dataset, f"{system} beats the truncated LSTM", row, LSTM_CUT)
    for dataset, (row, system) in itertools.product((PMNIST, CIFAR10), cut.items()):
        yield claim(dataset, f"{system} beats even the LSTM with full back-propagation", row, LSTM_FULL)
    for row, system in cut.items():
        yield claim(PMNIST, f"{system} beats even the uRNN with full back-propagation", row, U_RNN)
    for other, dataset in itertools.product((I_RNN, U_RNN), (MNIST, PMNIST)):
        yield claim(dataset, f"with full back-propagation the r-LSTM beats the {other}", R_FULL, other)
    for dataset in IMAGES:
        yield claim(dataset, "with full back-propagation the r-LSTM beats the LSTM", R_FULL, LSTM_FULL)
        yield claim(dataset, "the truncated r-LSTM beats the truncated p-LSTM", R_CUT, P_CUT)


def _claims_beyond(results: Results) -> Iterator[Claim]:
    text = "the truncated r-LSTM beats the truncated LSTM"
    margin = f" by {MNIST_GAP:.0f} points or more"
    yield results.claim(f"On MNIST {text}{margin}", (R_CUT, MNIST), (LSTM_CUT, MNIST), by=MNIST_GAP, is_ours=True)
    for name, variation in find_variations(results.scale).items():
        for dataset in variation.datasets:
            better, worse = ((f"{row} ({name})", dataset) for row in (R_CUT, LSTM_CUT))
            claimed = f"On {dataset}, {variation.words}, {text}{margin if variation.is_papers else ''}"
            by = MNIST_GAP if variation.is_papers else 0.0
            yield results.claim(claimed, better, worse, by=by, is_ours=True)


def name_row(results: Results, row: str) -> str:
    """Return the paper's name of a row, with our window where that is another one."""
    row = row.split(" (", maxsplit=1)[0]
    window = results.scale.window(PAPER_WINDOW, MNIST) if row in CUT_ROWS else PAPER_WINDOW
    return shown_as(row, ours=window, paper=PAPER_WINDOW)
