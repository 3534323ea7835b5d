"""Figure 3: accuracy, and the time of a batch, as images of dogs grow to 16,384 steps."""

from collections.abc import Iterator
from typing import Any

from auxrnn.config import RunConfig
from auxrnn.experiments.collected import Place, Results, claim_above, tell, test_accuracy
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import OBJECTIVES, SEGMENT_LENGTH, helped, lstm, shown_as
from auxrnn.experiments.scales import DOGS, PAPER_WINDOW, Scale
from auxrnn.report.results import Claim, Grid, Line, LineChart, Row, to_line
from auxrnn.report.run_records import RunRecord

TITLE = "Figure 3: longer and longer sequences (Stanford Dogs)"
SUMMARY = (
    "The same photographs at eight sizes, so that only the length changes. Above, accuracy; below, seconds for one"
    " update. The LSTM has full back-propagation; r-LSTM and p-LSTM keep a few hundred steps in memory at any length."
)
SIZES = (40, 48, 56, 72, 80, 96, 112, 128)
LSTM, R, P, R_MANY, TRANSFORMER = "LSTM Full BP", "r-LSTM", "p-LSTM", "r-LSTM 20x30", "Transformer"
SYSTEMS = (LSTM, R, P, R_MANY, TRANSFORMER)
MANY = (20, 30)
LAST_OF_LSTM, AFTER_3000 = 112, 72
"""The last size at which the paper could train its LSTM, and the first that is well beyond 3,000 steps."""
PAPER = {
    LSTM: (3.8, 2.9, 2.1, 1.4, 1.9, 1.1, 1.0, None),
    R: (6.8, 6.2, 5.9, 4.9, 4.9, 4.0, 3.3, 3.7),
    P: (6.5, 6.8, 5.8, 6.5, 4.2, 4.6, 2.9, 2.1),
    R_MANY: (10.4, 9.8, 9.0, 8.9, 8.2, 7.3, 5.0, 4.9),
    TRANSFORMER: (11.8, 10.3, 6.8, 4.4, 2.9, 1.9, None, None),
}
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
    sizes = [*scale.timed_sizes]
    for size in sizes:
        for row in SYSTEMS:
            yield Job(row + TIME, str(size), _config(scale, row, size, seed=0, is_timed=True), "cost")
    for seed in scale.fewer_seeds:
        for row in SYSTEMS:
            for size in scale.sides:
                yield Job(row, str(size), _config(scale, row, size, seed=seed))


def _config(scale: Scale, row: str, size: int, *, seed: int, is_timed: bool = False) -> RunConfig:
    """Give one system at one size; what is timed has the paper's own lengths and spans."""
    changes: dict[str, Any] = {"image_size": size if is_timed else scale.side(size)} if scale.is_of_images(DOGS) else {}
    if is_timed:
        changes |= scale.timed_settings.get("transformer" if row == TRANSFORMER else "lstm", {})
        changes |= _published_spans(row)
    if row == LSTM:
        return lstm(scale, DOGS, seed=seed, window="full", **changes)
    if row == TRANSFORMER:
        return scale.other(DOGS, "transformer", seed=seed, **changes)
    objective = OBJECTIVES["p-LSTM" if row == P else "r-LSTM"]
    shape: dict[str, Any] = {"shape": MANY} if row == R_MANY else {}
    return helped(scale, DOGS, objective, seed=seed, **shape, **changes)


def _published_spans(row: str) -> dict[str, Any]:
    """Give how far gradients of a row with an auxiliary loss reach in the paper, and how long its segments are."""
    if row not in (R, P, R_MANY):
        return {}
    length, reach = (MANY[1], MANY[1]) if row == R_MANY else (SEGMENT_LENGTH, PAPER_WINDOW)
    return {"supervised_window": PAPER_WINDOW, "auxiliary_window": reach, "segment_length": length}


def seconds_of_update(record: RunRecord) -> float:
    """Give the time of an update with labels, the longer of the two phases."""
    return float(max(record.scores["seconds_per_update"].values()))


def claims(results: Results) -> list[Claim]:
    """Judge what the paper says of accuracy along the lengths, and of the growth of time."""

    def claim(text: str, better: str, worse: str, size: int) -> Claim:
        return claim_above(results, text, Place(better, str(size)), Place(worse, str(size)))

    first, last = SIZES[0], SIZES[-1]
    found = [
        claim(f"At the greatest length that the LSTM can do, {row} beats it", row, LSTM, LAST_OF_LSTM)
        for row in (R, P, R_MANY)
    ]
    found += [
        claim("20x30 beats one segment, at the shortest", R_MANY, R, first),
        claim("20x30 beats one segment, at the longest", R_MANY, R, last),
    ]
    rivals = [row for row in SYSTEMS if row != TRANSFORMER]
    found += [claim(f"At the shortest the Transformer beats {row}", TRANSFORMER, row, first) for row in rivals]
    found += [
        claim(f"After some 3,000 steps {row} beats the Transformer", row, TRANSFORMER, AFTER_3000)
        for row in (R, P, R_MANY)
    ]
    return found + [_growth(results, row) for row in (R, P, R_MANY)]


def _growth(results: Results, row: str) -> Claim:
    """Judge that time grows more slowly than that of the LSTM: measured once each, a ratio of best times."""
    text = f"The time of a batch grows more slowly for {row} than for the LSTM"
    growth, of_lstm = _find_growth(results, row), _find_growth(results, LSTM)
    if growth is None or of_lstm is None:
        return Claim(text, "open", "not measured yet")
    sizes = results.scale.timed_sizes
    detail = f"from {sizes[0]} to {sizes[-1]} pixels a side {growth:.1f} times, the LSTM {of_lstm:.1f} times"
    return Claim(text, "holds" if growth < of_lstm else "does not hold", detail)


def _find_growth(results: Results, row: str) -> float | None:
    """Give how many times as long an update takes at the longest as at the shortest that were timed."""
    sizes = results.scale.timed_sizes
    first, last = (results.score(row + TIME, str(size), seconds_of_update) for size in (sizes[0], sizes[-1]))
    return None if first is None or last is None else last.mean / first.mean


def conclude(results: Results) -> str:
    """Say how time grows with the length, and what all systems get at its two ends."""
    ends = (_tell_accuracy(results, size) for size in (SIZES[0], SIZES[-1]))
    return " ".join(filter(None, (_tell_growth(results), *ends)))


def _tell_growth(results: Results) -> str:
    growths = {row: growth for row in SYSTEMS if (growth := _find_growth(results, row)) is not None}
    first, last = results.scale.timed_sizes[0], results.scale.timed_sizes[-1]
    told = ", ".join(f"{row} {growth:.1f}" for row, growth in growths.items())
    return f"From {first**2:,} to {last**2:,} steps an update takes so many times as long: {told}." if told else ""


def _tell_accuracy(results: Results, size: int) -> str:
    rows = [row for row in SYSTEMS if results.score(row, str(size)) is not None]
    length = results.scale.side(size) ** 2
    text = f"Photographs of {length:,} steps named rightly, in %: {', '.join(f'{row} {{}}' for row in rows)}."
    return tell(results, text, *(Place(row, str(size)) for row in rows)) if rows else ""


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give both halves of the figure, and both as tables."""
    halves = (_render_accuracy(results), _render_time(results))
    return [grid for grid, _ in halves], [chart for _, chart in halves]


def _render_accuracy(results: Results) -> tuple[Grid, LineChart]:
    scale = results.scale
    lengths = {size: scale.side(size) ** 2 for size in SIZES}
    rows = tuple(
        Row(
            f"{length:,}" if length == size**2 else f"{length:,} (paper {size**2:,})",
            tuple(results.cell(row, str(size), PAPER[row][place]) for row in SYSTEMS),
        )
        for place, (size, length) in enumerate(lengths.items())
    )
    caption, columns = scale.say_part("Accuracy by length in steps", DOGS), tuple(_title(scale, row) for row in SYSTEMS)
    chart = LineChart(
        "Accuracy as sequences grow",
        "steps",
        "test accuracy, %",
        tuple(_line(results, row, lengths) for row in SYSTEMS),
        paper_x_label=None if scale.side_divisor == 1 else "steps of the paper's",
        chance=_find_chance(results),
    )
    return Grid(caption, "test accuracy, %", columns, rows), chart


def _render_time(results: Results) -> tuple[Grid, LineChart]:
    sizes = [size for size in SIZES if size in results.scale.timed_sizes]
    rows = tuple(
        Row(
            f"{size**2:,}",
            tuple(results.cell(row + TIME, str(size), _paper_seconds(row, size), seconds_of_update) for row in SYSTEMS),
        )
        for size in sizes
    )
    lines = tuple(_time_line(results, row, sizes) for row in SYSTEMS)
    chart = LineChart("Time of one update as sequences grow", "steps", "seconds", lines, is_log=True)
    caption = "Seconds of one update by length in steps"
    return Grid(caption, "seconds", SYSTEMS, rows, decimals=2, is_drawn=False), chart


def _title(scale: Scale, row: str) -> str:
    ours = (MANY[0], scale.span(MANY[1], DOGS)) if row == R_MANY else MANY
    return shown_as(row, ours=f"{ours[0]}x{ours[1]}", paper=f"{MANY[0]}x{MANY[1]}")


def _find_chance(results: Results) -> float:
    """Give the accuracy of guessing among as many classes as our photographs have; before any is read, the paper's."""
    classes = [record.facts["num_classes"] for record in results.records.values() if "num_classes" in record.facts]
    return 100 / classes[0] if classes else PAPER_CHANCE


def _paper_seconds(row: str, size: int) -> float | None:
    return PAPER_SECONDS[row][SIZES.index(size)]


def _line(results: Results, row: str, lengths: dict[int, int]) -> Line:
    ours = [(n, score) for size, n in lengths.items() if (score := results.score(row, str(size), test_accuracy))]
    paper = [(size**2, number) for size, number in zip(SIZES, PAPER[row], strict=True) if number is not None]
    return to_line(row, ours, paper)


def _time_line(results: Results, row: str, sizes: list[int]) -> Line:
    ours = [(s**2, score) for s in sizes if (score := results.score(row + TIME, str(s), seconds_of_update))]
    paper = [(s**2, number) for s in SIZES if (number := _paper_seconds(row, s)) is not None]
    return to_line(row, ours, paper)
