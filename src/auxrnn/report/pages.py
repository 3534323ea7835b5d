"""The demo's page, the page of all reproduced tables and figures, and each of them as Markdown, made from `templates/`.

Pages are HTML files without scripts or outside requests. Charts are inlined as SVG, once for a desk and once for a
phone; the results page links to the folder `records`.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from auxrnn.config import RunConfig, to_flags
from auxrnn.files import write_aside
from auxrnn.report import theme
from auxrnn.report.records import MemoryErrors, Reconstructions
from auxrnn.report.results import (
    BarChart,
    Line,
    LineChart,
    Outcome,
    Picture,
    describe_duration,
    describe_number,
    make_point,
)

VISIBLE = {"\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5"}
"""What stands for a character that would leave its line."""


class DemoRow(NamedTuple):
    """One network of the demo; its run lies in the folder `name`."""

    name: str
    title: str
    description: str
    config: RunConfig
    curve: Mapping[int, float]
    """Accuracies in percent of the test split by number of updates, pretraining counted."""
    seconds: float

    @property
    def accuracy(self) -> float:
        """Return the accuracy after the last update."""
        return self.curve[max(self.curve)]

    @property
    def command(self) -> str:
        """Return the command that trains it."""
        return f"auxrnn train {shlex.join(to_flags(self.config))}"


class DemoFacts(NamedTuple):
    """Data and versions of the demo, and errors of the r-LSTM's reconstructions."""

    train_examples: int
    test_examples: int
    num_classes: int
    sequence_length: int
    versions: Sequence[tuple[str, str]]
    shown_errors: MemoryErrors
    """Of the digits that are shown."""
    test_errors: MemoryErrors
    """Of all test digits, from the same anchors."""


class PageFacts(NamedTuple):
    """How the results page was made. A run counts once though several tables may show it."""

    scale: str
    scale_summary: str
    num_done: int
    num_planned: int
    seconds: float
    versions: Sequence[tuple[str, str]]
    commit: str


def write_demo_page(
    folder: Path, *, rows: Sequence[DemoRow], facts: DemoFacts, reconstructions: Reconstructions
) -> Path:
    """Write `index.html` and its charts as `demo.png` into the folder of the demo; return the path of the page."""
    from auxrnn.report import charts, memory  # noqa: PLC0415 - matplotlib is slow to import

    chart = LineChart(
        "Test accuracy while training",
        "updates, including pretraining",
        "test accuracy, %",
        tuple(Line(row.title, tuple(make_point(x, [y]) for x, y in sorted(row.curve.items()))) for row in rows),
        chance=100 / facts.num_classes,
        pretraining=max(row.config.schedule.pretrain_steps or 0 for row in rows),
    )
    shares = [row.accuracy / 100 for row in rows]
    text = load_template("demo.html").render(
        rows=rows,
        facts=facts,
        standard_error=max(100 * math.sqrt(share * (1 - share) / facts.test_examples) for share in shares),
        chart=chart,
        reconstructions=reconstructions,
    )
    write_aside(folder / "index.html", text)
    write_aside(folder / "demo.png", charts.to_png(memory.overview_figure(chart, reconstructions)))
    return folder / "index.html"


def write_results_page(
    path: Path, *, outcomes: Sequence[Outcome], reconstructions: Reconstructions | None, made: PageFacts
) -> Path:
    """Write the page and return its path; without reconstructions it has no section on what the network remembers."""
    errors = reconstructions and reconstructions.measure(np.zeros_like(reconstructions.image_KT[0]))
    page = load_template("results.html")
    write_aside(path, page.render(outcomes=outcomes, made=made, reconstructions=reconstructions, errors=errors))
    return path


def outcome_markdown(outcome: Outcome) -> str:
    """Return everything about a table or figure that is text, under a heading of the second level."""
    return load_template("outcome.md").render(outcome=outcome)


@cache
def load_template(name: str) -> Template:
    """Return one of the templates of this package, with what all of them can draw and say."""
    environment = Environment(
        loader=PackageLoader("auxrnn.report"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["shades"] = theme.SHADES
    filters = {"draw": _draw, "duration": describe_duration, "number": describe_number, "series": theme.series}
    filters |= {"letter": lambda letter: VISIBLE.get(letter, letter)}
    environment.filters |= filters
    return environment.get_template(name)


def _draw(drawn: LineChart | BarChart | Reconstructions | Picture, name: str, size: str) -> Markup:
    """Return a chart, or what a network remembers, as SVG of the size "wide" or "narrow"."""
    from auxrnn.report import charts, memory  # noqa: PLC0415 - matplotlib is slow to import

    width = charts.WIDE if size == "wide" else charts.NARROW
    if isinstance(drawn, Reconstructions):
        figure = memory.memory_figure(drawn, width=width)
    elif isinstance(drawn, Picture):
        figure = drawn.make(width)
    else:
        figure = charts.chart_figure(drawn, width=width)
    return Markup(charts.to_svg(figure, name=f"{name}-{size}"))  # noqa: S704 - matplotlib escapes its texts
