"""Figure 6: what each ingredient of the r-LSTM is worth (CIFAR10)."""

from collections.abc import Iterator
from typing import Any

from auxrnn.experiments import table2
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import Bar, BarChart, Claim, Grid, describe_score

TITLE = "Figure 6: the r-LSTM without one ingredient at a time (CIFAR10)"
SUMMARY = (
    "The truncated r-LSTM with all ingredients of the paper, and then without each of them. All runs of a seed start"
    " from the same weights."
)
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
PAPER = {WHOLE: _WHOLE, NO_LOSS: _NO_LOSS, NO_JOINT: _WHOLE - 3.6, "immediate past": _WHOLE - 2.0}
"""From the text: the figure itself has no numbers."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the whole r-LSTM, the LSTM without the loss, and one run for each ingredient."""
    ingredients: dict[str, Any] = {"placement": "past_future", "sampling_steps": scale.sampling_steps}
    for seed in scale.seeds:
        yield Job(WHOLE, "", scale.with_auxiliary(CIFAR10, "r-LSTM", seed=seed, **ingredients))
        yield Job(NO_LOSS, "", scale.lstm(CIFAR10, seed=seed))
        for row, changes in ABLATIONS.items():
            yield Job(row, "", scale.with_auxiliary(CIFAR10, "r-LSTM", seed=seed, **(ingredients | changes)))


def claims(results: Results) -> list[Claim]:
    """Judge that every ingredient helps, and that joint training helps most."""

    def claim(text: str, better: str, worse: str) -> Claim:
        return results.claim(f"{text}{better} beats {worse}", (better, ""), (worse, ""))

    found = [claim("", WHOLE, row) for row in (NO_LOSS, *ABLATIONS)]
    found = [one._replace(text=one.text.capitalize()) for one in found]
    found.append(claim("Pretraining is worth a little less than scheduled sampling: ", NO_PRETRAINING, NO_SAMPLING))
    return found + [claim("Joint training is worth more: ", row, NO_JOINT) for row in ABLATIONS if row != NO_JOINT]


def conclude(results: Results) -> str:
    """Return which ingredient is missed most and which least, in the mean."""
    whole = results.score(WHOLE, "")
    means = {row: score.mean for row in (NO_LOSS, *ABLATIONS) if (score := results.score(row, "")) is not None}
    if whole is None or len(means) <= len(ABLATIONS):
        return ""
    most, *_, least = sorted(means, key=lambda row: means[row])
    return (
        f"With everything the r-LSTM classifies {describe_score(whole, decimals=1)} % of the images correctly. Leaving"
        f" out one ingredient changes that by {means[most] - whole.mean:+.1f} points ({most}) to"
        f" {means[least] - whole.mean:+.1f} ({least})."
    )


def render(results: Results) -> tuple[list[Grid], list[BarChart]]:
    """Return bars, and the same numbers as a table."""
    paper = {row: PAPER.get(row) for row in (WHOLE, NO_LOSS, *ABLATIONS)}
    bars = tuple(Bar(row, results.score(row, ""), number) for row, number in paper.items())
    rows = results.rows({row: (number,) for row, number in paper.items()}, ("",))
    chart = BarChart("Accuracy of the r-LSTM without one ingredient", table2.UNIT, bars)
    return [Grid("One ingredient left out at a time", table2.UNIT, (CIFAR10,), rows)], [chart]
