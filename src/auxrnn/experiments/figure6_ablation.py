"""Figure 6: what each ingredient of the r-LSTM is worth (CIFAR10)."""

from collections.abc import Iterator
from typing import Any

from auxrnn.config import RunConfig
from auxrnn.experiments.collected import Place, Results, claim_above
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import helped, lstm
from auxrnn.experiments.scales import CIFAR10, Scale
from auxrnn.report.results import Bar, BarChart, Claim, Grid, Row, describe_score

TITLE = "Figure 6: the r-LSTM without one ingredient at a time (CIFAR10)"
SUMMARY = (
    "The truncated r-LSTM with everything the paper puts into it, and then without each of its ingredients. All runs of"
    " a seed start from the same weights."
)
WHOLE, NO_LOSS = "everything", "no auxiliary loss"
ABLATIONS: dict[str, dict[str, Any]] = {
    "no joint training": {"joint": False},
    "no pretraining": {"pretrain": False},
    "no scheduled sampling": {"sampling_steps": 0},
    "immediate past": {"placement": "immediate"},
    "no spill over the anchor": {"placement": "past"},
    "no embedding": {"embedding_size": 0},
    "no reversal": {"order": "forward"},
    "one decoder layer": {"decoder_layers": 1},
}
PAPER = {WHOLE: 65.9, NO_LOSS: 49.0, "no joint training": 65.9 - 3.6, "immediate past": 65.9 - 2.0}
"""The paper's figure could not be had; these are what its text says of it."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the whole r-LSTM, the LSTM without the loss, and one run for each ingredient."""
    for seed in scale.seeds:
        yield Job(WHOLE, "", _whole(scale, seed=seed))
        yield Job(NO_LOSS, "", lstm(scale, CIFAR10, seed=seed))
        for row, changes in ABLATIONS.items():
            yield Job(row, "", _whole(scale, seed=seed, **changes))


def _whole(scale: Scale, *, seed: int, **changes: Any) -> RunConfig:
    ingredients: dict[str, Any] = {"placement": "past_future", "sampling_steps": scale.sampling_steps}
    return helped(scale, CIFAR10, "reconstruct", seed=seed, **(ingredients | changes))


def claims(results: Results) -> list[Claim]:
    """Judge that every ingredient helps, and that joint training helps most."""
    whole = Place(WHOLE, "")
    found = [claim_above(results, f"{WHOLE.capitalize()} beats {row}", whole, Place(row, "")) for row in ABLATIONS]
    found.insert(0, claim_above(results, f"{WHOLE.capitalize()} beats {NO_LOSS}", whole, Place(NO_LOSS, "")))
    text = "Pretraining is worth a little less than scheduled sampling: no pretraining beats no scheduled sampling"
    found.append(claim_above(results, text, Place("no pretraining", ""), Place("no scheduled sampling", "")))
    for row in ABLATIONS:
        if row != "no joint training":
            text = f"Joint training is worth more: {row} beats no joint training"
            found.append(claim_above(results, text, Place(row, ""), Place("no joint training", "")))
    return found


def conclude(results: Results) -> str:
    """Say which ingredient is missed most and which least, in the mean."""
    whole = results.score(WHOLE, "")
    means = {row: score.mean for row in (NO_LOSS, *ABLATIONS) if (score := results.score(row, "")) is not None}
    if whole is None or len(means) <= len(ABLATIONS):
        return ""
    most, *_, least = sorted(means, key=lambda row: means[row])
    return (
        f"With everything the r-LSTM names {describe_score(whole, decimals=1)} % of the images. Left out alone,"
        f" an ingredient changes that by {means[most] - whole.mean:+.1f} points ({most}) to"
        f" {means[least] - whole.mean:+.1f} ({least})."
    )


def render(results: Results) -> tuple[list[Grid], list[BarChart]]:
    """Give bars, and the same numbers as a table."""
    names = (WHOLE, NO_LOSS, *ABLATIONS)
    bars = tuple(Bar(name, results.score(name, ""), PAPER.get(name)) for name in names)
    rows = tuple(Row(name, (results.cell(name, "", PAPER.get(name)),)) for name in names)
    chart = BarChart("Accuracy of the r-LSTM without one ingredient", "test accuracy, %", bars)
    return [Grid("One ingredient left out at a time", "test accuracy, %", ("CIFAR10",), rows)], [chart]
