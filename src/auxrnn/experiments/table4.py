"""Table 4: errors on DBpedia, character by character, with 100 steps of supervised back-propagation."""

from collections.abc import Iterator
from typing import Any

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, test_error
from auxrnn.experiments.scales import DBPEDIA, Scale
from auxrnn.report.results import Claim, Grid, LineChart

TITLE = "Table 4: DBpedia with truncated back-propagation"
SUMMARY = (
    "Texts read character by character. All systems but one back-propagate from the labels through a short window, and"
    " those that were pretrained learn from labels without the auxiliary loss."
)
WINDOW, SEGMENT_LENGTH, MANY = 100, 300, (20, 15)
LM, SA, R_MANY, P_CUT = "LM-LSTM Truncate100", "SA-LSTM Truncate100", "r-LSTM 20x15 Truncate100", "p-LSTM Truncate100"
LSTM_CUT, LSTM_FULL = "LSTM Truncate100", "LSTM Full BP"
PAPER = {LSTM_FULL: 13.64, LSTM_CUT: None, LM: 4.04, SA: 3.89, R_MANY: 3.84, P_CUT: 2.85}
"""LSTM Full BP is the one of Table 5; the text speaks of the truncated LSTM without a number."""
ORDERINGS = (
    *((P_CUT, LM), (P_CUT, SA), (R_MANY, LM), (R_MANY, SA), (P_CUT, R_MANY)),
    *((P_CUT, LSTM_FULL), (R_MANY, LSTM_FULL)),
)
"""Which errs less than which in the paper: random anchors beat whole-sequence pretraining, and both beat none."""


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the rows of the table and the two plain LSTMs that the text compares with."""
    window, length = (scale.span(steps, DBPEDIA) for steps in (WINDOW, SEGMENT_LENGTH))
    cut: dict[str, Any] = {"supervised_window": window, "auxiliary_window": window}
    one: dict[str, Any] = {"segment_length": length, "auxiliary_window": length}
    for seed in scale.fewer_seeds:
        after: dict[str, Any] = {"seed": seed, "window": WINDOW, "joint": False}
        configs = {
            P_CUT: scale.with_auxiliary(DBPEDIA, "p-LSTM", **after, **one),
            R_MANY: scale.with_auxiliary(DBPEDIA, "r-LSTM", **after, shape=MANY),
            LM: scale.other(DBPEDIA, "lm_lstm", seed=seed, pretrain=True, **cut),
            SA: scale.other(DBPEDIA, "sa_lstm", seed=seed, pretrain=True, **cut),
            LSTM_CUT: scale.lstm(DBPEDIA, seed=seed, window=WINDOW),
            LSTM_FULL: scale.lstm(DBPEDIA, seed=seed, window="full"),
        }
        yield from (Job(row, DBPEDIA, config) for row, config in configs.items())


def claims(results: Results) -> list[Claim]:
    """Judge the orderings of the paper."""
    return [results.claim_less_error((better, DBPEDIA), (worse, DBPEDIA)) for better, worse in ORDERINGS]


def conclude(results: Results) -> str:
    """Return all errors."""
    return results.tell_errors(PAPER, DBPEDIA)


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the table as the paper prints it, with the two plain LSTMs on top."""
    paper = {row: (number,) for row, number in PAPER.items()}
    rows = results.rows(paper, (DBPEDIA,), title=lambda row: _title(results.scale, row), value=test_error)
    caption = results.scale.add_part("Truncated back-propagation", DBPEDIA)
    return [Grid(caption, "test error, %", (DBPEDIA,), rows, decimals=2)], []


def _title(scale: Scale, row: str) -> str:
    (num_segments, length), window = MANY, scale.span(WINDOW, DBPEDIA)
    shape = f"{num_segments}x{scale.span(length, DBPEDIA)}, " if row == R_MANY else ""
    return row if window == WINDOW or "Truncate" not in row else f"{row} (here {shape}{window})"
