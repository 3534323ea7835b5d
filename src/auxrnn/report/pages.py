"""The pages: the demo's, and that of all reproduced tables and figures; HTML files without scripts or outside requests.

Their text and markup are in `templates/`. Charts are inlined as SVG; the results page links to the folder `records`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from auxrnn.config import Window
from auxrnn.files import write_aside
from auxrnn.report import theme
from auxrnn.report.canvas import MemoryErrors, SegmentCanvas, lay_out_all, mean_errors
from auxrnn.report.records import Curve, Reconstructions, read_curve, read_reconstructions
from auxrnn.report.results import (
    Band,
    BarChart,
    Grid,
    Line,
    LineChart,
    Outcome,
    Point,
    Score,
    Verdict,
    by_source,
    describe_duration,
    describe_number,
    to_exact_line,
)
from auxrnn.report.results_tables import cell_texts, describe_progress, grid_caption, grid_sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_EXAMPLES = 8
# Curves of more points than these are left to their charts.
MOST_LISTED = 12
RESULTS_TITLE = "Longer memories through auxiliary losses: the paper's results, reproduced"


class Look(NamedTuple):
    """How a verdict is shown, so that neither color nor symbol stands alone, and what it means."""

    css_class: str
    symbol: str
    meaning: str


LOOKS: dict[Verdict, Look] = {
    "holds": Look(
        "holds", "\u2713", "True for every seed: the ranges over seeds do not overlap. Times were measured once each."
    ),
    "within the spread": Look("unsure", "\u2248", "True for the means only: the ranges over seeds overlap."),
    "does not hold": Look("fails", "\u2717", "Not true even for the means."),
    "open": Look("open", "?", "Too few seeds to tell, or not run yet."),
}


class DemoRow(NamedTuple):
    """One network of the demo; its run lies in the folder `name`. `accuracy` is in percent of the test split."""

    name: str
    title: str
    description: str
    window: Window
    pretrain_steps: int
    train_steps: int
    accuracy: float
    seconds: float


class DemoFacts(NamedTuple):
    """How the numbers of the demo were made; `versions` are pairs of a name and a version."""

    title: str
    dataset: str
    train_examples: int
    test_examples: int
    num_classes: int
    sequence_length: int
    seed: int
    versions: Sequence[tuple[str, str]]
    command: str
    run_commands: Sequence[str]


class DemoErrors(NamedTuple):
    """Errors of r-LSTM's reconstructions: the digits that are shown, and all test digits from the same anchors."""

    shown: MemoryErrors
    test: MemoryErrors


class PageFacts(NamedTuple):
    """How the results page was made; `versions` are pairs of a name and a version."""

    scale: str
    scale_summary: str
    """What the scale means beside the paper's: sizes of data and networks, number of updates, seeds."""
    num_done: int
    """Runs, each counted once though several tables may show it."""
    num_planned: int
    seconds: float
    versions: Sequence[tuple[str, str]]
    commit: str
    command: str


class Drawing(NamedTuple):
    """A chart as SVG in two widths, described for those who see neither."""

    wide: Markup
    narrow: Markup
    description: str


def write_demo_page(folder: Path, *, rows: Sequence[DemoRow], facts: DemoFacts, errors: DemoErrors) -> Path:
    """Write `index.html` and its charts as `demo.png` into the folder of the demo; return the path of the page.

    A chart without records is left out.
    """
    chart = _make_accuracy_chart([read_curve(folder / row.name, title=row.title) for row in rows], facts)
    reconstructions = read_reconstructions(folder / "reconstructions.npz")
    canvases = [] if reconstructions is None else lay_out_all(reconstructions, most=MAX_EXAMPLES)
    shares = [row.accuracy / 100 for row in rows]
    page = _environment().get_template("demo.html")
    text = page.render(
        title=facts.title,
        rows=rows,
        facts=facts,
        errors=errors,
        standard_error=max(100 * math.sqrt(share * (1 - share) / facts.test_examples) for share in shares),
        accuracy=_draw_chart(chart, "accuracy") if any(line.ours for line in chart.lines) else None,
        remembered=_draw_memory(canvases),
        anchor_rows=[canvas.anchor[1] + 1 for canvas in canvases],
        num_rows=len(canvases[0].image_YX) if canvases else 0,
    )
    path = folder / "index.html"
    write_aside(path, text)
    if canvases:
        _write_overview(folder / "demo.png", chart, canvases)
    return path


def _make_accuracy_chart(curves: Sequence[Curve], facts: DemoFacts) -> LineChart:
    lines = tuple(to_exact_line(curve.title, dict(zip(curve.steps, curve.accuracies, strict=True))) for curve in curves)
    num_steps = max(curve.pretrain_steps for curve in curves)
    return LineChart(
        "Test accuracy while training",
        "updates, including pretraining",
        "test accuracy, %",
        lines,
        chance=100 / facts.num_classes,
        band=Band("pretraining without labels", num_steps) if num_steps else None,
    )


def _write_overview(path: Path, chart: LineChart, canvases: Sequence[SegmentCanvas]) -> None:
    """Write both charts of the demo as one picture."""
    from auxrnn.report.charts import to_png  # noqa: PLC0415 - matplotlib is slow to import
    from auxrnn.report.memory_chart import overview_figure  # noqa: PLC0415 - matplotlib is slow to import

    write_aside(path, to_png(overview_figure(chart, canvases)))


def write_results_page(
    path: Path, *, outcomes: Sequence[Outcome], reconstructions: Reconstructions | None, made: PageFacts
) -> Path:
    """Write the page and return its path; without reconstructions it has no section on what the network remembers."""
    canvases = [] if reconstructions is None else lay_out_all(reconstructions, most=MAX_EXAMPLES)
    error, blank_error = mean_errors(canvases) if canvases else (0.0, 0.0)
    tally = _count_verdicts(outcomes)
    page = _environment().get_template("results.html")
    text = page.render(
        title=RESULTS_TITLE,
        outcomes=outcomes,
        by_name={outcome.name: outcome for outcome in outcomes},
        made=made,
        tally=tally,
        num_claims=sum(sum(counts.values()) for counts in tally.values()),
        remembered=_draw_memory(canvases),
        num_examples=len(canvases),
        error=error,
        blank_error=blank_error,
    )
    write_aside(path, text)
    return path


def _count_verdicts(outcomes: Sequence[Outcome]) -> dict[Verdict, dict[str, int]]:
    """Return how often each verdict was given on the paper's claims, by the name of the table or figure."""
    counts = Counter(
        (claim.verdict, outcome.name) for outcome in outcomes for claim in outcome.claims if not claim.is_ours
    )
    return {
        verdict: {outcome.name: counts[verdict, outcome.name] for outcome in outcomes if counts[verdict, outcome.name]}
        for verdict in LOOKS
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("auxrnn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["css_variables"] = theme.css_variables()
    environment.filters |= {
        "by_source": by_source,
        "caption": grid_caption,
        "draw": _draw_chart,
        "duration": describe_duration,
        "explain": lambda verdict: LOOKS[verdict].meaning,
        "look": lambda verdict, part: getattr(LOOKS[verdict], part),
        "number": describe_number,
        "point": _describe_point,
        "progress": describe_progress,
        "runs": lambda score: zip(*score, strict=True),
        "scores": _list_scores,
        "series": theme.series,
        "short_lines": _list_short_lines,
        "sides": grid_sides,
        "texts": cell_texts,
    }
    return environment


def _draw_chart(chart: LineChart | BarChart, name: str) -> Drawing:
    from auxrnn.report.charts import chart_figure  # noqa: PLC0415 - matplotlib is slow to import

    parts = chart.bars if isinstance(chart, BarChart) else chart.lines
    description = f"{chart.title}: {', '.join(part.title for part in parts)}"
    return _draw_twice(partial(chart_figure, chart), name=name, description=description)


def _draw_memory(canvases: Sequence[SegmentCanvas]) -> Drawing | None:
    from auxrnn.report.memory_chart import memory_figure  # noqa: PLC0415 - matplotlib is slow to import

    if not canvases:
        return None
    description = "Digits, true segments, reconstructed segments and their difference"
    return _draw_twice(partial(memory_figure, canvases), name="memory", description=description)


def _draw_twice(draw: "Callable[..., Figure]", *, name: str, description: str) -> Drawing:
    from auxrnn.report.charts import NARROW, WIDE, to_svg  # noqa: PLC0415 - matplotlib is slow to import

    wide, narrow = (
        Markup(to_svg(draw(width=width), name=f"{name}-{kind}"))  # noqa: S704 - matplotlib escapes its texts
        for width, kind in ((WIDE, "wide"), (NARROW, "narrow"))
    )
    return Drawing(wide, narrow, description)


def _list_scores(outcome: Outcome) -> list[tuple[str, list[tuple[str, Score, int]]]]:
    """Return for each table and bar chart its title, and the name, score and decimals of each number in it."""
    tables = [(grid.caption, _list_grid_scores(grid)) for grid in outcome.grids]
    bar_charts = [chart for chart in outcome.charts if isinstance(chart, BarChart)]
    tables += [(chart.title, [(bar.title, bar.ours, 2) for bar in chart.bars if bar.ours]) for chart in bar_charts]
    return [(title, scores) for title, scores in tables if scores]


def _list_grid_scores(grid: Grid) -> list[tuple[str, Score, int]]:
    # A mean hides a digit of what it was made from, a count hides nothing.
    decimals = grid.decimals + grid.is_drawn
    return [
        (f"{row.title}, {column}", cell.ours, decimals)
        for row in grid.rows
        for column, cell in zip(grid.columns, row.cells, strict=True)
        if cell.ours
    ]


def _list_short_lines(outcome: Outcome) -> list[tuple[LineChart, list[Line]]]:
    """Return for each line chart the lines that are few points and no long curves; charts without any are left out."""
    charts = [chart for chart in outcome.charts if isinstance(chart, LineChart)]
    listed = [
        (chart, [line for line in chart.lines if 0 < max(len(line.ours), len(line.paper)) <= MOST_LISTED])
        for chart in charts
    ]
    return [(chart, lines) for chart, lines in listed if lines]


def _describe_point(point: Point) -> str:
    x, y, low, high = map(describe_number, point)
    return f"{x}: {y} ({low} to {high})"
