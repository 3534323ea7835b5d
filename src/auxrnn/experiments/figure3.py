"""Figure 3: longer and longer sequences (Stanford Dogs).

The same photographs at eight sizes, so that only the length changes: test accuracy, and seconds per update. The LSTM
has full back-propagation; r-LSTM and p-LSTM back-propagate through a few hundred steps at any length.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auxrnn.config import RunConfig, Window
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import ACCURACY, Results, Shown, Value, test_accuracy
from auxrnn.experiments.scales import DOGS, PAPER_SEGMENT, PAPER_SIDES, PAPER_WINDOW, SINGLE, Scale, shown_as
from auxrnn.report.records import RunRecord
from auxrnn.report.results import Claim, Grid, LineChart

LSTM, R, P, R_MANY, TRANSFORMER = "LSTM Full BP", "r-LSTM", "p-LSTM", "r-LSTM 20x30", "Transformer"
ROWS, HELPED = (LSTM, R, P, R_MANY, TRANSFORMER), (R, P, R_MANY)
MANY = (20, 30)
LAST_OF_LSTM, AFTER_3000 = 112, 72
"""The last side at which the paper could train its LSTM, and the first that is well beyond 3,000 steps."""
TIME = " time"
_NUMBERS = {
    LSTM: (3.8, 2.9, 2.1, 1.4, 1.9, 1.1, 1.0, None),
    R: (6.8, 6.2, 5.9, 4.9, 4.9, 4.0, 3.3, 3.7),
    P: (6.5, 6.8, 5.8, 6.5, 4.2, 4.6, 2.9, 2.1),
    R_MANY: (10.4, 9.8, 9.0, 8.9, 8.2, 7.3, 5.0, 4.9),
    TRANSFORMER: (11.8, 10.3, 6.8, 4.4, 2.9, 1.9, None, None),
    LSTM + TIME: (3.5, None, 5.8, 10.1, 12.3, 19.1, 26.4, None),
    R + TIME: (2.0, None, 3.0, 5.0, 4.1, 4.5, 6.1, 7.1),
    P + TIME: (2.9, None, 4.3, 3.6, 4.8, 4.9, 6.1, 8.0),
    R_MANY + TIME: (1.0, None, 1.5, 2.2, 3.8, 4.3, 4.7, 6.8),
    TRANSFORMER + TIME: (None,) * 8,
}
PAPER = {row: dict(zip(map(str, PAPER_SIDES), numbers, strict=True)) for row, numbers in _NUMBERS.items()}
"""Test accuracy, and seconds per update, by side."""
PAPER_CHANCE = 0.83


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the measurements of time first, which are soon done, then the trainings, the slow Transformer's last."""
    for side, row in itertools.product(scale.timed_sides, ROWS):
        yield Job(row + TIME, str(side), _config(scale, row, side, seed=0, is_timed=True), "cost")
    for seed, row, side in itertools.product(scale.fewer_seeds, ROWS, scale.sides):
        yield Job(row, str(side), _config(scale, row, side, seed=seed))


def _config(scale: Scale, row: str, side: int, *, seed: int, is_timed: bool = False) -> RunConfig:
    """Return one system at one side; what is timed has the paper's own lengths and windows."""
    is_resized = "image_size" in scale.datasets[DOGS].settings
    changes: dict[str, Any] = {"image_size": side if is_timed else side // scale.side_divisor} if is_resized else {}
    if is_timed:
        changes |= scale.timed_settings.get("transformer" if row == TRANSFORMER else "lstm", {})
    if is_timed and row in HELPED:
        length, reach = (MANY[1], MANY[1]) if row == R_MANY else (PAPER_SEGMENT, PAPER_WINDOW)
        changes |= {"supervised_window": PAPER_WINDOW, "auxiliary_window": reach, "segment_length": length}
    window: Window = "full" if row == LSTM else PAPER_WINDOW
    shape = MANY if row == R_MANY else SINGLE
    return scale.config(row.split(maxsplit=1)[0], DOGS, seed=seed, window=window, shape=shape, **changes)


def seconds_per_update(record: RunRecord) -> float:
    """Return the time of an update, the longer of the two phases."""
    return float(max(record.scores["seconds_per_update"].values()))


def show(results: Results) -> Shown:
    """Return both halves of the figure, and both as tables."""
    scale = results.scale
    lengths = {str(side): (side // scale.side_divisor) ** 2 for side in PAPER_SIDES}
    timed = {str(side): side**2 for side in scale.timed_sides}
    many = shown_as(R_MANY, ours=f"{MANY[0]}x{scale.span(MANY[1], DOGS)}", paper=f"{MANY[0]}x{MANY[1]}")
    accuracy = _make_grid(results, scale.add_part("Accuracy by length in steps", DOGS), ROWS, lengths)
    time_rows = [row + TIME for row in ROWS]
    times = _make_grid(results, "Seconds per update by length in steps", time_rows, timed, value=seconds_per_update)
    grids = [
        accuracy._replace(columns=(LSTM, R, P, many, TRANSFORMER)),
        times._replace(columns=ROWS, unit="seconds", decimals=2, is_drawn=False),
    ]
    growths = _find_growths(results)
    claims = [*_claims(results), *_claims_of_time(results, growths)]
    return Shown(grids, _draw(results, lengths, timed), claims, _tell(results, growths))


def _make_grid(
    results: Results, caption: str, rows: Sequence[str], lengths: Mapping[str, int], *, value: Value = test_accuracy
) -> Grid:
    """Return a table by length in steps: ours, and the paper's where it differs."""
    paper = {row: [PAPER[row][side] for side in lengths] for row in rows}
    grid = results.grid(caption, paper, list(lengths), value=value)
    pairs = [(length, int(side) ** 2) for side, length in lengths.items()]
    titles = (f"{ours:,}" if ours == paper else f"{ours:,} (paper {paper:,})" for ours, paper in pairs)
    return grid._replace(columns=tuple(titles)).transpose()


def _draw(results: Results, lengths: Mapping[str, int], timed: Mapping[str, int]) -> list[LineChart]:
    def published(row: str) -> list[tuple[int, float]]:
        return [(int(side) ** 2, number) for side, number in PAPER[row].items() if number is not None]

    # The accuracy of guessing among our classes; before any record is read, among the paper's.
    classes = [record.facts["num_classes"] for record in results.records.values() if "num_classes" in record.facts]
    accuracy = LineChart(
        "Accuracy as sequences grow",
        "steps",
        ACCURACY,
        tuple(results.line(row, lengths, published(row)) for row in ROWS),
        paper_x_label=None if results.scale.side_divisor == 1 else "steps in the paper",
        chance=100 / classes[0] if classes else PAPER_CHANCE,
    )
    times = tuple(
        results.line(row + TIME, timed, published(row + TIME), value=seconds_per_update)._replace(title=row)
        for row in ROWS
    )
    return [accuracy, LineChart("Time per update as sequences grow", "steps", "seconds", times, is_log=True)]


def _claims(results: Results) -> Iterator[Claim]:
    def claim(text: str, better: str, worse: str, side: int) -> Claim:
        return results.claim(text, (better, str(side)), (worse, str(side)))

    first, last = PAPER_SIDES[0], PAPER_SIDES[-1]
    for row in HELPED:
        text = f"At the greatest length at which the paper trains the LSTM, {row} beats it"
        yield claim(text, row, LSTM, LAST_OF_LSTM)
    yield claim("20x30 beats one segment at the shortest length", R_MANY, R, first)
    yield claim("20x30 beats one segment at the longest length", R_MANY, R, last)
    for row in (LSTM, *HELPED):
        yield claim(f"At the shortest length the Transformer beats {row}", TRANSFORMER, row, first)
    for row in HELPED:
        yield claim(f"Beyond 3,000 steps {row} beats the Transformer", row, TRANSFORMER, AFTER_3000)


def _claims_of_time(results: Results, growths: Mapping[str, float]) -> Iterator[Claim]:
    """Judge that time grows more slowly than that of the LSTM: measured once each, a ratio of best times."""
    first, *_, last = results.scale.timed_sides
    for row in HELPED:
        text = f"Time per update grows more slowly for {row} than for the LSTM"
        if {row, LSTM} <= growths.keys():
            detail = f"{growths[row]:.1f}x from {first**2:,} to {last**2:,} steps, LSTM {growths[LSTM]:.1f}x"
            yield Claim(text, "holds" if growths[row] < growths[LSTM] else "does not hold", detail)
        else:
            yield Claim(text, "open", "not measured yet")


def _find_growths(results: Results) -> dict[str, float]:
    """Return by system the time of an update at the greatest length, divided by that at the shortest that was timed."""
    first, *_, last = map(str, results.scale.timed_sides)
    scores = {row: [results.score(row + TIME, side, seconds_per_update) for side in (first, last)] for row in ROWS}
    return {row: longest.mean / shortest.mean for row, (shortest, longest) in scores.items() if shortest and longest}


def _tell(results: Results, growths: Mapping[str, float]) -> str:
    """Return how time grows with the length, and the accuracy of all systems at its two ends."""
    first, *_, last = results.scale.timed_sides
    told = ", ".join(f"{growth:.1f}x for {row}" for row, growth in growths.items())
    sentences = [f"Time per update grows from {first**2:,} to {last**2:,} steps by {told}."] if told else []
    for side in (PAPER_SIDES[0], PAPER_SIDES[-1]):
        rows = [row for row in ROWS if results.find(row, str(side))]
        text = f"Test accuracy in % at {(side // results.scale.side_divisor) ** 2:,} steps: "
        text += f"{', '.join(f'{row} {{}}' for row in rows)}."
        sentences += [results.tell(text, *((row, str(side)) for row in rows))] if rows else []
    return " ".join(sentences)
