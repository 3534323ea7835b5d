"""Table 2: accuracy on MNIST, pMNIST and CIFAR10, pixel by pixel, with full and truncated back-propagation."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from auxrnn.config import Window
from auxrnn.experiments.collected import Place, Results, claim_above, tell, trace
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import OBJECTIVES, helped, lstm, shown_as
from auxrnn.experiments.scales import CIFAR10, IMAGES, MNIST, PAPER_WINDOW, PMNIST, Scale, count_steps
from auxrnn.plain_config import flatten
from auxrnn.presets import ModelName
from auxrnn.report.results import Cell, Claim, Grid, Line, LineChart, Row

TITLE = "Table 2: MNIST, pMNIST and CIFAR10, pixel by pixel"
SUMMARY = (
    "An LSTM reads an image one pixel at a time and names it after the last. Full BP corrects it through all steps,"
    " truncated through the last few only. The r-LSTM must also rebuild what it read, the p-LSTM predict what follows."
)
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
LSTM_FULL, LSTM_CUT, R_CUT, P_CUT, R_FULL, P_FULL = list(PAPER)[2:]
MAIN_ROWS = (LSTM_CUT, R_CUT, P_CUT, LSTM_FULL, R_FULL, P_FULL)
OTHERS: dict[str, ModelName] = {"iRNN": "irnn", "uRNN": "urnn"}
CUT_ROWS = (LSTM_CUT, R_CUT, P_CUT)
MNIST_GAP = 40.0
UNIT = "test accuracy, %"


class Variation(NamedTuple):
    """What the truncated rows are tried with besides, and where."""

    words: str
    settings: dict[str, Any]
    datasets: tuple[str, ...]
    gap: float = 0.0
    """Points by which the truncated r-LSTM should be ahead."""
    is_papers: bool = False
    """Whether it brings the runs closer to the paper's, so that its numbers belong beside ours."""


PAPER_SIZE = {"hidden_size": 128, "embedding_size": 128}
VARIATIONS = {
    "128 units": Variation("with 128 units, as in the paper", PAPER_SIZE, (MNIST,), MNIST_GAP, is_papers=True),
    # The paper does not say how its gates start.
    "chrono": Variation("with forget biases drawn for long memories (chrono)", {"gate_init": "chrono"}, IMAGES),
}


def find_variations(scale: Scale) -> dict[str, Variation]:
    """Give the variations that are not what the scale does anyhow."""
    usual = flatten(lstm(scale, MNIST, seed=0))
    return {name: found for name, found in VARIATIONS.items() if not found.settings.items() <= usual.items()}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the six LSTMs with one seed, then with the others (p-LSTMs last), the older networks, the variations."""
    first, others = scale.seeds[:1], scale.seeds[1:]
    of_p = [row for row in MAIN_ROWS if row.startswith("p-")]
    for seeds, rows in ((first, MAIN_ROWS), (others, [row for row in MAIN_ROWS if row not in of_p]), (others, of_p)):
        for row, dataset, seed in itertools.product(rows, IMAGES, seeds):
            yield make_job(scale, row, dataset, seed=seed)
    for seed in scale.fewer_seeds:
        for row, model in OTHERS.items():
            for dataset in (MNIST, PMNIST):
                yield Job(row, dataset, scale.other(dataset, model, seed=seed))
    for name, variation in find_variations(scale).items():
        for seed, row, dataset in itertools.product(scale.seeds, CUT_ROWS, variation.datasets):
            job = make_job(scale, row, dataset, seed=seed, **variation.settings)
            yield job._replace(row=_varied(row, name))


def _varied(row: str, name: str) -> str:
    return f"{row} ({name})"


def make_job(scale: Scale, row: str, dataset: str, *, seed: int, **changes: Any) -> Job:
    """Give the run of one of the six LSTMs."""
    system, kind = row.split(" ", 1)
    window: Window = "full" if kind == "Full BP" else PAPER_WINDOW
    if system == "LSTM":
        return Job(row, dataset, lstm(scale, dataset, seed=seed, window=window, **changes))
    return Job(row, dataset, helped(scale, dataset, OBJECTIVES[system], seed=seed, window=window, **changes))


def claims(results: Results) -> list[Claim]:
    """Judge what the paper says of its table, then what is asked beyond it."""
    found = []
    for dataset in IMAGES:
        for row in (R_CUT, P_CUT):
            text = f"On {dataset} the truncated {row.split()[0]} beats the truncated LSTM"
            found.append(claim_above(results, text, Place(row, dataset), Place(LSTM_CUT, dataset)))
    for dataset in (PMNIST, CIFAR10):
        for row in (R_CUT, P_CUT):
            text = f"On {dataset} the truncated {row.split()[0]} beats even the fully trained LSTM"
            found.append(claim_above(results, text, Place(row, dataset), Place(LSTM_FULL, dataset)))
    for row in (R_CUT, P_CUT):
        text = f"On {PMNIST} the truncated {row.split()[0]} beats even the fully trained uRNN"
        found.append(claim_above(results, text, Place(row, PMNIST), Place("uRNN", PMNIST)))
    for other, dataset in itertools.product(OTHERS, (MNIST, PMNIST)):
        text = f"On {dataset} the r-LSTM with full back-propagation beats the {other}"
        found.append(claim_above(results, text, Place(R_FULL, dataset), Place(other, dataset)))
    for dataset in IMAGES:
        text = f"On {dataset} the r-LSTM with full back-propagation beats the fully trained LSTM"
        found.append(claim_above(results, text, Place(R_FULL, dataset), Place(LSTM_FULL, dataset)))
        text = f"On {dataset} the truncated r-LSTM beats the truncated p-LSTM"
        found.append(claim_above(results, text, Place(R_CUT, dataset), Place(P_CUT, dataset)))
    return [*found, _claim_gap(results), *_claims_of_variations(results)]


def _claim_gap(results: Results) -> Claim:
    """Judge the least that the paper's 85 points on MNIST should leave at any scale."""
    text = f"On MNIST the truncated r-LSTM is above the truncated LSTM by {MNIST_GAP:.0f} points or more"
    claim = claim_above(results, text, Place(R_CUT, MNIST), Place(LSTM_CUT, MNIST), by=MNIST_GAP)
    return claim._replace(is_ours=True)


def _claims_of_variations(results: Results) -> list[Claim]:
    """Judge whether the truncated r-LSTM is ahead there too; asked after the main table was known."""
    found = []
    for name, variation in find_variations(results.scale).items():
        for dataset in variation.datasets:
            text = f"On {dataset}, {variation.words}, the truncated r-LSTM beats the truncated LSTM"
            text += f" by {variation.gap:.0f} points or more" if variation.gap else ""
            first, second = (Place(_varied(row, name), dataset) for row in (R_CUT, LSTM_CUT))
            found.append(claim_above(results, text, first, second, by=variation.gap)._replace(is_ours=True))
    return found


def conclude(results: Results) -> str:
    """Say what help is worth on MNIST, with little back-propagation and with all of it."""
    window = results.scale.window(PAPER_WINDOW, MNIST)
    text = (
        f"Corrected through {count_steps(window)} only, an LSTM names {{}} % of MNIST's digits. If it must also rebuild"
        " what it read, it names {} %; if it must predict what follows, {} %. Corrected through all steps, it names"
        " {} % without such help and {} and {} % with it."
    )
    rows = (LSTM_CUT, R_CUT, P_CUT, LSTM_FULL, R_FULL, P_FULL)
    return tell(results, text, *(Place(row, MNIST) for row in rows))


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table as the paper prints it, and smaller ones of the variations."""
    rows = tuple(
        Row(
            name_row(results, row),
            tuple(results.cell(row, dataset, number) for dataset, number in zip(IMAGES, numbers, strict=True)),
        )
        for row, numbers in PAPER.items()
    )
    grids = [Grid("Gates start with a forget bias of one", UNIT, IMAGES, rows)]
    varied = (_grid_of_variation(results, *item) for item in find_variations(results.scale).items())
    return [*grids, *varied], [_curves(results)]


def _grid_of_variation(results: Results, name: str, variation: Variation) -> Grid:
    def find_cell(row: str, dataset: str) -> Cell:
        paper = PAPER[row][IMAGES.index(dataset)] if variation.is_papers else None
        return results.cell(_varied(row, name), dataset, paper)

    rows = tuple(
        Row(name_row(results, row), tuple(find_cell(row, dataset) for dataset in variation.datasets))
        for row in CUT_ROWS
    )
    return Grid(f"The same {variation.words}", UNIT, variation.datasets, rows)


def _curves(results: Results) -> LineChart:
    """Show how the six LSTMs learn MNIST."""
    rows = (LSTM_FULL, LSTM_CUT, R_CUT, P_CUT, R_FULL, P_FULL)
    lines = tuple(Line(name_row(results, row), trace(results.find(row, MNIST), "test_accuracy")) for row in rows)
    return LineChart(
        "Accuracy on MNIST while training", "updates, pretraining counted", "test accuracy, %", lines, chance=10.0
    )


def name_row(results: Results, row: str) -> str:
    """Name a row as the paper does, and say what its window is here where it is another one."""
    is_cut = row in CUT_ROWS
    window = results.scale.window(PAPER_WINDOW, MNIST)
    return shown_as(row, ours=window if is_cut else PAPER_WINDOW, paper=PAPER_WINDOW)
