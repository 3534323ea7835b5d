"""Table 4: errors on DBpedia, character by character, with 100 steps of supervised back-propagation."""

from collections.abc import Iterator
from typing import Any

from auxrnn.config import RunConfig
from auxrnn.experiments.collected import Place, Results, claim_below, tell_errors, test_error
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import helped, lstm
from auxrnn.experiments.scales import DBPEDIA, Scale
from auxrnn.report.results import Claim, Grid, LineChart, Row

TITLE = "Table 4: DBpedia with truncated back-propagation"
SUMMARY = (
    "Texts read character by character. All systems but one have a short window of supervised back-propagation, and"
    " those that were pretrained learn their labels without the auxiliary loss."
)
WINDOW, SEGMENT_LENGTH, MANY = 100, 300, (20, 15)
LM, SA, R_MANY, P_CUT = "LM-LSTM Truncate100", "SA-LSTM Truncate100", "r-LSTM 20x15 Truncate100", "p-LSTM Truncate100"
LSTM_CUT, LSTM_FULL = "LSTM Truncate100", "LSTM Full BP"
PAPER = {LSTM_FULL: 13.64, LSTM_CUT: None, LM: 4.04, SA: 3.89, R_MANY: 3.84, P_CUT: 2.85}
"""LSTM Full BP is the one of Table 5; the truncated LSTM is spoken of in the text without a number."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the rows of the table and the two plain LSTMs that the text compares with."""
    for seed in scale.fewer_seeds:
        for row, config in _configs(scale, seed).items():
            yield Job(row, DBPEDIA, config)


def _configs(scale: Scale, seed: int) -> dict[str, RunConfig]:
    reach = scale.span(WINDOW, DBPEDIA)
    cut: dict[str, Any] = {"supervised_window": reach, "auxiliary_window": reach}
    one: dict[str, Any] = {"segment_length": scale.span(SEGMENT_LENGTH, DBPEDIA)}
    one |= {"auxiliary_window": scale.span(SEGMENT_LENGTH, DBPEDIA)}
    return {
        P_CUT: helped(scale, DBPEDIA, "predict", seed=seed, window=WINDOW, joint=False, **one),
        R_MANY: helped(scale, DBPEDIA, "reconstruct", seed=seed, window=WINDOW, shape=MANY, joint=False),
        LM: scale.other(DBPEDIA, "lm_lstm", seed=seed, pretrain=True, **cut),
        SA: scale.other(DBPEDIA, "sa_lstm", seed=seed, pretrain=True, **cut),
        LSTM_CUT: lstm(scale, DBPEDIA, seed=seed, window=WINDOW),
        LSTM_FULL: lstm(scale, DBPEDIA, seed=seed, window="full"),
    }


def claims(results: Results) -> list[Claim]:
    """Judge that random anchors beat whole-sequence pretraining, and both beat none; less is better."""

    def claim(better: str, worse: str) -> Claim:
        return claim_below(results, Place(better, DBPEDIA), Place(worse, DBPEDIA))

    pairs = [(P_CUT, LM), (P_CUT, SA), (R_MANY, LM), (R_MANY, SA), (P_CUT, R_MANY)]
    return [claim(*pair) for pair in pairs] + [claim(row, LSTM_FULL) for row in (P_CUT, R_MANY)]


def conclude(results: Results) -> str:
    """Say all errors: they are few."""
    return tell_errors(results, [Place(row, DBPEDIA) for row in PAPER])


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table as the paper prints it, with the two plain LSTMs on top."""
    rows = tuple(
        Row(_title(results.scale, row), (results.cell(row, DBPEDIA, number, test_error),))
        for row, number in PAPER.items()
    )
    caption = results.scale.say_part("Truncated back-propagation", DBPEDIA)
    return [Grid(caption, "test error, %", (DBPEDIA,), rows, decimals=2)], []


def _title(scale: Scale, row: str) -> str:
    if "Truncate" not in row:
        return row
    (num_segments, length), window = MANY, scale.span(WINDOW, DBPEDIA)
    shape = f"{num_segments}x{scale.span(length, DBPEDIA)}, " if row == R_MANY else ""
    return row if window == WINDOW else f"{row} (here {shape}{window})"
