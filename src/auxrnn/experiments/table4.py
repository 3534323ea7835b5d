"""Table 4: DBpedia with truncated back-propagation.

Texts read character by character. All systems but one back-propagate from the labels through a short window, and those
that were pretrained learn from labels without the auxiliary loss.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown, test_error
from auxrnn.experiments.scales import DBPEDIA, Scale

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
    cut = {"supervised_window": window, "auxiliary_window": window}
    settings: dict[str, dict[str, Any]] = {
        P_CUT: {"window": WINDOW, "joint": False, "segment_length": length, "auxiliary_window": length},
        R_MANY: {"window": WINDOW, "joint": False, "shape": MANY},
        LM: cut,
        SA: cut,
        LSTM_CUT: {"window": WINDOW},
        LSTM_FULL: {"window": "full"},
    }
    for seed in scale.fewer_seeds:
        for row, own in settings.items():
            yield Job(row, DBPEDIA, scale.config(row.split()[0], DBPEDIA, seed=seed, **own))


def show(results: Results) -> Shown:
    """Return the table as the paper prints it, with the two plain LSTMs on top."""
    scale, (num_segments, length) = results.scale, MANY
    window = scale.span(WINDOW, DBPEDIA)

    def title(row: str) -> str:
        shape = f"{num_segments}x{scale.span(length, DBPEDIA)}, " if row == R_MANY else ""
        return row if window == WINDOW or "Truncate" not in row else f"{row} (here {shape}{window})"

    return show_errors(results, "Truncated back-propagation", PAPER, ORDERINGS, title=title)


def show_errors(
    results: Results,
    caption: str,
    paper: Mapping[str, float | None],
    orderings: Sequence[tuple[str, str]],
    *,
    title: Callable[[str], str] = str,
) -> Shown:
    """Return errors on DBpedia beside the paper's, and which of them are lower than which."""
    numbers = {row: (number,) for row, number in paper.items()}
    caption = results.scale.add_part(caption, DBPEDIA)
    grid = results.grid(caption, numbers, (DBPEDIA,), title=title, value=test_error)
    claims = [
        results.claim(f"{low} has a lower error than {high}", (high, DBPEDIA), (low, DBPEDIA), value=test_error)
        for low, high in orderings
    ]
    text = f"Test error in %, all after the same number of updates: {', '.join(f'{row} {{}}' for row in paper)}."
    finding = results.tell(text, *((row, DBPEDIA) for row in paper), value=test_error)
    return Shown([grid._replace(unit="test error, %", decimals=2)], claims=claims, finding=finding)
