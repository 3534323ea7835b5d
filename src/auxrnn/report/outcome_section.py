"""One reproduced table or figure as a section of the results page: tables, charts, verdicts and what is behind them."""

import html
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from auxrnn.report.axis_style import describe_number
from auxrnn.report.document import html_figure
from auxrnn.report.durations import describe_duration
from auxrnn.report.figures import NARROW, WIDE, to_svg
from auxrnn.report.result_plots import chart_figure
from auxrnn.report.results import BarChart, Cell, Claim, Grid, Line, LineChart, Outcome, Row, Score, Verdict, by_source
from auxrnn.report.results_tables import cell_texts, describe_progress, grid_caption, shows_paper


class Look(NamedTuple):
    """How a verdict is shown, so that neither color nor symbol stands alone."""

    css_class: str
    symbol: str


LOOKS: dict[Verdict, Look] = {
    "holds": Look("holds", "&#10003;"),
    "within the spread": Look("unsure", "&asymp;"),
    "does not hold": Look("fails", "&#10007;"),
    "open": Look("open", "?"),
}
# Curves of more points than these are left to their charts.
MOST_LISTED = 12


def outcome_section(outcome: Outcome) -> str:
    """Give the whole section, whose id is the name of the outcome."""
    return f"""<section id="{html.escape(outcome.name)}">
<h2>{html.escape(outcome.title)}</h2>
<p>{html.escape(outcome.summary)}</p>
{_finding(outcome)}{_warning(outcome)}{"".join(map(_grid_table, outcome.grids))}{"".join(_charts(outcome))}
{_claims(outcome.claims)}
<p class="small">{html.escape(describe_progress(outcome))}<br>
Command: <code>{html.escape(outcome.command)}</code></p>
{_details(outcome)}</section>
"""


def short_title(outcome: Outcome) -> str:
    """Give what the paper calls it: `Table 2`."""
    return outcome.title.split(":")[0]


def badge(verdict: Verdict) -> str:
    """Give a verdict as a word with a symbol and a color."""
    look = LOOKS[verdict]
    return f'<span class="badge {look.css_class}"><span aria-hidden="true">{look.symbol}</span> {verdict}</span>'


def _finding(outcome: Outcome) -> str:
    return f"<p><strong>Here.</strong> {html.escape(outcome.finding)}</p>\n" if outcome.finding else ""


def _warning(outcome: Outcome) -> str:
    if outcome.num_done == outcome.num_planned:
        return ""
    text = "Not run yet: nothing here is ours."
    if outcome.num_done:
        text = f"Not finished: {outcome.num_done} of {outcome.num_planned} runs are done, so numbers may still move."
    return f'<div class="note"><p>{text}</p></div>\n'


def _grid_table(grid: Grid) -> str:
    sides = ("ours", "paper") if shows_paper(grid) else ("ours",)
    titles = "".join(f'<th colspan="{len(sides)}" scope="colgroup">{html.escape(title)}</th>' for title in grid.columns)
    under = "".join(f'<th class="{side}" scope="col">{side}</th>' for side in sides) * len(grid.columns)
    return f"""<div class="scroll"><table>
<caption>{html.escape(grid_caption(grid))}</caption>
<thead><tr><td></td>{titles}</tr>
<tr><td></td>{under}</tr></thead>
<tbody>
{"".join(_grid_row(row, grid) for row in grid.rows)}</tbody>
</table></div>
"""


def _grid_row(row: Row, grid: Grid) -> str:
    cells = [_grid_cell(cell, column, grid) for cell, column in zip(row.cells, grid.columns, strict=True)]
    return f'<tr><th scope="row">{html.escape(row.title)}</th>\n{"".join(cells)}</tr>\n'


def _grid_cell(cell: Cell, column: str, grid: Grid) -> str:
    """Give our number with its spread in a weaker tone, and the paper's if the table has any."""
    ours, paper = (html.escape(text) for text in cell_texts(cell, grid))
    label = html.escape(column)
    if cell.ours:
        mean, _, rest = ours.partition(" ")
        ours = f"{mean} <span>{rest}</span>"
    our_class = "ours" if cell.ours else "ours missing"
    entry = f'<td class="{our_class}" data-label="{label}, ours">{ours}</td>'
    if shows_paper(grid):
        paper_class = "missing" if cell.paper is None else "paper"
        entry += f'<td class="{paper_class}" data-label="{label}, paper">{paper}</td>'
    return entry + "\n"


def _charts(outcome: Outcome) -> Iterator[str]:
    for index, chart in enumerate(outcome.charts):
        wide, narrow = (
            to_svg(chart_figure(chart, width=width), name=f"{outcome.name}-{index}-{kind}")
            for width, kind in ((WIDE, "wide"), (NARROW, "narrow"))
        )
        yield f"<h3>{html.escape(chart.title)}</h3>\n{html_figure(wide, narrow, _describe_chart(chart))}"


def _describe_chart(chart: LineChart | BarChart) -> str:
    """Say what a chart shows to those who do not see it; its numbers stand below it."""
    parts = chart.bars if isinstance(chart, BarChart) else chart.lines
    return f"{chart.title}: {', '.join(part.title for part in parts)}"


def _claims(claims: Sequence[Claim]) -> str:
    return "".join(
        f'<h3>{heading}</h3>\n<ul class="claims">\n{"".join(map(_claim, some))}</ul>\n'
        for heading, some in by_source(claims)
    )


def _claim(claim: Claim) -> str:
    return (
        f"<li><span>{badge(claim.verdict)}</span><div><p>{html.escape(claim.text)}</p>\n"
        f'<p class="small">{html.escape(claim.detail)}</p></div></li>\n'
    )


def _details(outcome: Outcome) -> str:
    """Give settings, and seeds, values, time and records of each number, to be opened by those who ask."""
    settings = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>\n" for name, value in outcome.settings
    )
    tables = "".join(_score_table(title, scores) for title, scores in _score_lists(outcome) if scores)
    tables += "".join(_point_table(chart) for chart in outcome.charts if isinstance(chart, LineChart))
    if not settings and not tables:
        return ""
    entries = f"<dl>\n{settings}</dl>\n" if settings else ""
    return f"<details>\n<summary>Settings, and what each number was made from</summary>\n{entries}{tables}</details>\n"


def _score_lists(outcome: Outcome) -> Iterator[tuple[str, list[tuple[str, Score, int]]]]:
    """Give for each table and chart of bars its title, and the name, score and decimals of each number in it."""
    for grid in outcome.grids:
        cells = [(row.title, *pair) for row in grid.rows for pair in zip(grid.columns, row.cells, strict=True)]
        # A mean hides a digit of what it was made from, a count hides nothing.
        decimals = grid.decimals + grid.is_drawn
        yield grid.caption, [(f"{row}, {column}", cell.ours, decimals) for row, column, cell in cells if cell.ours]
    for chart in outcome.charts:
        if isinstance(chart, BarChart):
            yield chart.title, [(bar.title, bar.ours, 2) for bar in chart.bars if bar.ours]


def _score_table(title: str, scores: Sequence[tuple[str, Score, int]]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td class="all">{_runs(score, decimals=decimals)}</td></tr>\n'
        for name, score, decimals in scores
    )
    return _detail_table(title, "Runs: value, seed, time; each links to its record", rows)


def _runs(score: Score, *, decimals: int) -> str:
    items = "".join(
        f'<li><a href="records/{quote(record)}.json">{value:.{decimals}f}</a> '
        f'<span class="small">{_describe_cost(seed, seconds)}</span></li>'
        for value, seed, seconds, record in zip(*score, strict=True)
    )
    return f'<ul class="runs">{items}</ul>'


def _describe_cost(seed: int, seconds: float) -> str:
    """Say which seed a number has and how long it took; counts and measurements trained nothing."""
    return f"seed {seed}, {describe_duration(seconds)}" if seconds else f"seed {seed}"


def _point_table(chart: LineChart) -> str:
    """List the points of each line that is not a long curve; none of a chart that has only these."""
    listed = [line for line in chart.lines if 0 < max(len(line.ours), len(line.paper)) <= MOST_LISTED]
    rows = "".join(
        f'<tr><th scope="row">{html.escape(line.title)}</th><td class="all">{_describe_points(line)}</td></tr>\n'
        for line in listed
    )
    header = f"{chart.y_label} at each x: mean of the seeds (lowest to highest)"
    return _detail_table(chart.title, header, rows) if rows else ""


def _describe_points(line: Line) -> str:
    ours = "; ".join(
        f"{describe_number(x)}: {describe_number(y)} ({describe_number(low)} to {describe_number(high)})"
        for x, y, low, high in line.ours
    )
    paper = "; ".join(f"{describe_number(x)}: {describe_number(y)}" for x, y in line.paper)
    return "<br>".join(f"{side}: {points}" for side, points in (("ours", ours), ("paper", paper)) if points)


def _detail_table(title: str, header: str, rows: str) -> str:
    return f"""<div class="scroll"><table>
<caption>{html.escape(title)}</caption>
<thead><tr><td></td><th class="all" scope="col">{html.escape(header)}</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>
"""
