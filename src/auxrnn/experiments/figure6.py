"""Figure 6: the r-LSTM without one ingredient at a time (CIFAR10).

The truncated r-LSTM with all ingredients of the paper, and then without each of them. All runs of a seed start from the
same weights.
"""

from collections.abc import Iterator
from typing import Any

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import ACCURACY, Results, Shown
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import BarChart, Claim

WHOLE, NO_LOSS, NO_JOINT = "everything", "no auxiliary loss", "no joint training"
NO_PRETRAINING, NO_SAMPLING = "no pretraining", "no scheduled sampling"
ABLATIONS: dict[str, dict[str, Any]] = {
    NO_JOINT: {"joint": False},
    NO_PRETRAINING: {"pretrain": False},
    NO_SAMPLING: {"sampling_steps": 0},
    "immediate past": {"placement": "immediate"},
    "no spill over the anchor": {"placement": "past"},
    "no embedding": {"embedding_size": 0},
    "no reversal": {"order": "forward"},
    "one decoder layer": {"decoder_layers": 1},
}
_WHOLE, _NO_LOSS = (table2.PAPER[row][2] or 0.0 for row in (table2.R_CUT, table2.LSTM_CUT))
PAPER: dict[str, float | None] = {
    WHOLE: _WHOLE,
    NO_LOSS: _NO_LOSS,
    **dict.fromkeys(ABLATIONS),
    NO_JOINT: _WHOLE - 3.6,
    "immediate past": _WHOLE - 2.0,
}
"""From the text: the figure itself has no numbers."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the whole r-LSTM, the LSTM without the loss, and one run for each ingredient."""
    ingredients: dict[str, Any] = {"placement": "past_future", "sampling_steps": scale.sampling_steps}
    for seed in scale.seeds:
        yield Job(WHOLE, "", scale.config("r-LSTM", CIFAR10, seed=seed, **ingredients))
        yield Job(NO_LOSS, "", scale.config("LSTM", CIFAR10, seed=seed))
        for row, changes in ABLATIONS.items():
            yield Job(row, "", scale.config("r-LSTM", CIFAR10, seed=seed, **(ingredients | changes)))


def show(results: Results) -> Shown:
    """Return bars, and the same numbers as a table."""
    grid = results.grid("One ingredient left out at a time", {row: (number,) for row, number in PAPER.items()}, ("",))
    bars = {row: cell for row, (cell,) in grid.rows.items()}
    chart = BarChart("Accuracy of the r-LSTM without one ingredient", ACCURACY, bars)
    return Shown([grid._replace(columns=(CIFAR10,))], [chart], list(_claims(results)), _tell(results))


def _claims(results: Results) -> Iterator[Claim]:
    """Judge that every ingredient helps, and that joint training helps most."""

    def claim(text: str, better: str, worse: str) -> Claim:
        return results.claim(f"{text}{better} beats {worse}", (better, ""), (worse, ""))

    for row in (NO_LOSS, *ABLATIONS):
        yield results.claim(f"Everything beats {row}", (WHOLE, ""), (row, ""))
    yield claim("Pretraining is worth a little less than scheduled sampling: ", NO_PRETRAINING, NO_SAMPLING)
    for row in ABLATIONS:
        if row != NO_JOINT:
            yield claim("Joint training is worth more: ", row, NO_JOINT)


def _tell(results: Results) -> str:
    """Return which ingredient is missed most and which least, on average."""
    scores = {row: score for row in PAPER if (score := results.score(row, "")) is not None}
    if len(scores) < len(PAPER):
        return ""
    whole = scores.pop(WHOLE)
    most, *_, least = sorted(scores, key=lambda row: scores[row].mean)
    return (
        f"With everything the r-LSTM classifies {whole.describe()} % of the images correctly. Leaving"
        f" out one ingredient changes that by {scores[most].mean - whole.mean:+.1f} points ({most}) to"
        f" {scores[least].mean - whole.mean:+.1f} ({least})."
    )
