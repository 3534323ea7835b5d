"""Figure 3: accuracy, and the time of an update, as images of dogs grow to 16,384 steps."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auxrnn.config import RunConfig
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Value, test_accuracy
from auxrnn.experiments.scales import DOGS, PAPER_SEGMENT, PAPER_SIDES, PAPER_WINDOW, Scale, shown_as
from auxrnn.report.results import Cell, Claim, Grid, Line, LineChart, Row, to_line
from auxrnn.report.run_records import RunRecord

TITLE = "Figure 3: longer and longer sequences (Stanford Dogs)"
SUMMARY = (
    "The same photographs at eight sizes, so that only the length changes: test accuracy, and seconds per update. The"
    " LSTM has full back-propagation; r-LSTM and p-LSTM back-propagate through a few hundred steps at any length."
)
LSTM, R, P, R_MANY, TRANSFORMER = "LSTM Full BP", "r-LSTM", "p-LSTM", "r-LSTM 20x30", "Transformer"
HELPED = (R, P, R_MANY)
MANY = (20, 30)
LAST_OF_LSTM, AFTER_3000 = 112, 72
"""The last side at which the paper could train its LSTM, and the first that is well beyond 3,000 steps."""
PAPER = {
    LSTM: (3.8, 2.9, 2.1, 1.4, 1.9, 1.1, 1.0, None),
    R: (6.8, 6.2, 5.9, 4.9, 4.9, 4.0, 3.3, 3.7),
    P: (6.5, 6.8, 5.8, 6.5, 4.2, 4.6, 2.9, 2.1),
    R_MANY: (10.4, 9.8, 9.0, 8.9, 8.2, 7.3, 5.0, 4.9),
    TRANSFORMER: (11.8, 10.3, 6.8, 4.4, 2.9, 1.9, None, None),
}
"""Test accuracy by side, one number for each of `PAPER_SIDES`."""
PAPER_SECONDS = {
    LSTM: (3.5, None, 5.8, 10.1, 12.3, 19.1, 26.4, None),
    R: (2.0, None, 3.0, 5.0, 4.1, 4.5, 6.1, 7.1),
    P: (2.9, None, 4.3, 3.6, 4.8, 4.9, 6.1, 8.0),
    R_MANY: (1.0, None, 1.5, 2.2, 3.8, 4.3, 4.7, 6.8),
    TRANSFORMER: (None,) * 8,
}
TIME = " time"
PAPER_CHANCE = 0.83


def runs(scale: Scale) -> Iterator[Job]:
    """Yield the measurements of time first, which are soon done, then the trainings, the slow Transformer's last."""
    for side in scale.timed_sides:
        for row in PAPER:
            yield Job(row + TIME, str(side), _config(scale, row, side, seed=0, is_timed=True), "cost")
    for seed in scale.fewer_seeds:
        for row in PAPER:
            for side in scale.sides:
                yield Job(row, str(side), _config(scale, row, side, seed=seed))


def _config(scale: Scale, row: str, side: int, *, seed: int, is_timed: bool = False) -> RunConfig:
    """Return one system at one side; what is timed has the paper's own lengths and windows."""
    is_resized = "image_size" in scale.datasets[DOGS].settings
    changes: dict[str, Any] = {"image_size": side if is_timed else side // scale.side_divisor} if is_resized else {}
    if is_timed:
        changes |= scale.timed_settings.get("transformer" if row == TRANSFORMER else "lstm", {})
    if is_timed and row in HELPED:
        length, window = (MANY[1], MANY[1]) if row == R_MANY else (PAPER_SEGMENT, PAPER_WINDOW)
        changes |= {"supervised_window": PAPER_WINDOW, "auxiliary_window": window, "segment_length": length}
    if row == LSTM:
        return scale.lstm(DOGS, seed=seed, window="full", **changes)
    if row == TRANSFORMER:
        return scale.other(DOGS, "transformer", seed=seed, **changes)
    shape: dict[str, Any] = {"shape": MANY} if row == R_MANY else {}
    return scale.with_auxiliary(DOGS, row.split(maxsplit=1)[0], seed=seed, **shape, **changes)


def seconds_per_update(record: RunRecord) -> float:
    """Return the time of an update, the longer of the two phases."""
    return float(max(record.scores["seconds_per_update"].values()))


def claims(results: Results) -> list[Claim]:
    """Judge what the paper says of accuracy along the lengths, and of the growth of time."""

    def claim(text: str, better: str, worse: str, side: int) -> Claim:
        return results.claim(text, (better, str(side)), (worse, str(side)))

    first, last = PAPER_SIDES[0], PAPER_SIDES[-1]
    return [
        *(
            claim(f"At the greatest length at which the paper trains the LSTM, {row} beats it", row, LSTM, LAST_OF_LSTM)
            for row in HELPED
        ),
        claim("20x30 beats one segment at the shortest length", R_MANY, R, first),
        claim("20x30 beats one segment at the longest length", R_MANY, R, last),
        *(
            claim(f"At the shortest length the Transformer beats {row}", TRANSFORMER, row, first)
            for row in (LSTM, *HELPED)
        ),
        *(claim(f"Beyond 3,000 steps {row} beats the Transformer", row, TRANSFORMER, AFTER_3000) for row in HELPED),
        *(_claim_growth(results, row) for row in HELPED),
    ]


def _claim_growth(results: Results, row: str) -> Claim:
    """Judge that time grows more slowly than that of the LSTM: measured once each, a ratio of best times."""
    text = f"Time per update grows more slowly for {row} than for the LSTM"
    growth, of_lstm = _find_growth(results, row), _find_growth(results, LSTM)
    if growth is None or of_lstm is None:
        return Claim(text, "open", "not measured yet")
    sides = results.scale.timed_sides
    detail = f"{growth:.1f}x from {sides[0] ** 2:,} to {sides[-1] ** 2:,} steps, LSTM {of_lstm:.1f}x"
    return Claim(text, "holds" if growth < of_lstm else "does not hold", detail)


def _find_growth(results: Results, row: str) -> float | None:
    """Return the time of an update at the longest sequences, divided by that at the shortest that were timed."""
    sides = results.scale.timed_sides
    first, last = (results.score(row + TIME, str(side), seconds_per_update) for side in (sides[0], sides[-1]))
    return None if first is None or last is None else last.mean / first.mean


def conclude(results: Results) -> str:
    """Return how time grows with the length, and the accuracy of all systems at its two ends."""
    first, *_, last = results.scale.timed_sides
    growths = {row: growth for row in PAPER if (growth := _find_growth(results, row)) is not None}
    told = ", ".join(f"{growth:.1f}x for {row}" for row, growth in growths.items())
    sentences = [f"Time per update grows from {first**2:,} to {last**2:,} steps by {told}."] if told else []
    for side in (PAPER_SIDES[0], PAPER_SIDES[-1]):
        rows = [row for row in PAPER if results.find(row, str(side))]
        text = f"Test accuracy in % at {(side // results.scale.side_divisor) ** 2:,} steps: "
        text += f"{', '.join(f'{row} {{}}' for row in rows)}."
        sentences += [results.tell(text, *((row, str(side)) for row in rows))] if rows else []
    return " ".join(sentences)


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return both halves of the figure, and both as tables."""
    scale = results.scale
    lengths = {side: (side // scale.side_divisor) ** 2 for side in PAPER_SIDES}
    accuracy = LineChart(
        "Accuracy as sequences grow",
        "steps",
        "test accuracy, %",
        tuple(_make_line(results, row, lengths, PAPER[row]) for row in PAPER),
        paper_x_label=None if scale.side_divisor == 1 else "steps in the paper",
        chance=_find_chance(results),
    )
    timed = {side: side**2 for side in PAPER_SIDES if side in scale.timed_sides}
    lines = tuple(_make_line(results, row, timed, PAPER_SECONDS[row], TIME, seconds_per_update) for row in PAPER)
    time = LineChart("Time per update as sequences grow", "steps", "seconds", lines, is_log=True)
    many = f"{MANY[0]}x{scale.span(MANY[1], DOGS)}"
    titles = {R_MANY: shown_as(R_MANY, ours=many, paper=f"{MANY[0]}x{MANY[1]}")}
    caption, columns = scale.add_part("Accuracy by length in steps", DOGS), tuple(titles.get(row, row) for row in PAPER)
    rows = _make_rows(results, lengths, PAPER)
    time_rows = _make_rows(results, timed, PAPER_SECONDS, TIME, seconds_per_update)
    grids = [
        Grid(caption, "test accuracy, %", columns, rows),
        Grid("Seconds per update by length in steps", "seconds", tuple(PAPER), time_rows, decimals=2, is_drawn=False),
    ]
    return grids, [accuracy, time]


def _make_rows(
    results: Results,
    lengths: Mapping[int, int],
    paper: Mapping[str, Sequence[float | None]],
    end: str = "",
    value: Value = test_accuracy,
) -> tuple[Row, ...]:
    """Return a row for each side, named by our length and the paper's where they differ."""

    def make_cell(row: str, side: int) -> Cell:
        return results.cell(row + end, str(side), paper[row][PAPER_SIDES.index(side)], value)

    titles = {n: f"{ours:,}" if ours == n**2 else f"{ours:,} (paper {n**2:,})" for n, ours in lengths.items()}
    return tuple(Row(title, tuple(make_cell(row, side) for row in paper)) for side, title in titles.items())


def _make_line(
    results: Results,
    row: str,
    lengths: Mapping[int, int],
    paper: Sequence[float | None],
    end: str = "",
    value: Value = test_accuracy,
) -> Line:
    ours = [(n, score) for side, n in lengths.items() if (score := results.score(row + end, str(side), value))]
    published = zip(PAPER_SIDES, paper, strict=True)
    return to_line(row, ours, [(side**2, number) for side, number in published if number is not None])


def _find_chance(results: Results) -> float:
    """Return the accuracy of guessing among our classes; before any record is read, among the paper's."""
    classes = [record.facts["num_classes"] for record in results.records.values() if "num_classes" in record.facts]
    return 100 / classes[0] if classes else PAPER_CHANCE
