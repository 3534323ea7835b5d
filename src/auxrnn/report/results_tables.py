"""Reproduced tables and claims as text: Markdown for files, and aligned columns for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from auxrnn.report.results import Cell, Claim, Grid, Outcome, Row, by_source, describe_duration, describe_score

WIDTH = 100
TITLE_WIDTH = 34
GAP = 3
MISSING = "-"


def grid_markdown(grid: Grid) -> str:
    """Return the table as the paper prints it, with our number and the paper's in columns beside each other."""
    sides = grid_sides(grid)
    header = ["", *(f"{column}, {side}" if sides[1:] else column for column in grid.columns for side in sides)]
    lines = [_markdown_line(header), "|:---|" + "---:|" * (len(header) - 1)]
    lines += [_markdown_line([row.title, *_row_texts(row, grid)]) for row in grid.rows]
    return f"{grid_caption(grid)}\n\n" + "\n".join(lines) + "\n"


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Return one item of a list for each claim: the verdict and the claim, and below it the numbers behind it."""
    lines = []
    for claim in claims:
        lines += [f"- **{claim.verdict}**: {_on_one_line(claim.text)}\n", f"    - {_on_one_line(claim.detail)}\n"]
    return "".join(lines)


def outcome_markdown(outcome: Outcome) -> str:
    """Return everything about a table or figure that is text, under a heading of the second level."""
    parts = [f"## {_on_one_line(outcome.title)}\n", f"{outcome.summary}\n"]
    parts += [f"**Here.** {outcome.finding}\n"] if outcome.finding else []
    parts += map(grid_markdown, outcome.grids)
    parts += [f"{heading}:\n\n{claims_markdown(claims)}" for heading, claims in by_source(outcome.claims)]
    parts.append(f"{describe_progress(outcome)} Command: `{outcome.command}`\n")
    return "\n".join(parts)


def outcome_text(outcome: Outcome) -> str:
    """Return the same for a terminal of 100 columns; only a single word can be wider than that."""
    parts = [_wrap(outcome.title), _wrap(outcome.summary)]
    parts += [_wrap(f"Here: {outcome.finding}")] if outcome.finding else []
    parts += [f"{_wrap(grid_caption(grid))}\n\n" + "\n\n".join(_grid_blocks(grid)) for grid in outcome.grids]
    for heading, claims in by_source(outcome.claims):
        parts.append("\n".join([f"{heading}:", *map(_claim_text, claims)]))
    parts.append(f"{_wrap(describe_progress(outcome))}\n{outcome.command}")
    return "\n\n".join(parts) + "\n"


def describe_progress(outcome: Outcome) -> str:
    """Return the scale, how many runs are done, and how long they trained, as a sentence."""
    if outcome.num_done == 0:
        return f"Scale {outcome.scale}: none of {outcome.num_planned} runs is done yet."
    all_done = "all" if outcome.num_done == outcome.num_planned else f"{outcome.num_done} of"
    progress = f"Scale {outcome.scale}: {all_done} {outcome.num_planned} runs are done"
    # Counting a dataset or timing an update trains nothing.
    if not outcome.seconds:
        return f"{progress}."
    time = describe_duration(outcome.seconds)
    return f"{progress}, {time} of training in all (shared pretraining is counted in each run)."


def grid_caption(grid: Grid) -> str:
    """Return what the table shows, in which unit, and over how many seeds."""
    facts = [fact for fact in (grid.unit, describe_seeds(grid)) if fact]
    return f"{grid.caption} ({'; '.join(facts)})" if facts else grid.caption


def describe_seeds(grid: Grid) -> str:
    """Return what our numbers are: means over how many seeds, or a single one."""
    if not grid.is_drawn:
        return ""
    counts = {len(cell.ours.values) for row in grid.rows for cell in row.cells if cell.ours}
    if not counts:
        return "not measured here yet"
    if counts == {1}:
        return "ours: one seed, so no spread is known"
    fewest, most = min(counts), max(counts)
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    return f"ours: mean \u00b1 standard deviation of {seeds}"


def cell_texts(cell: Cell, grid: Grid) -> tuple[str, str]:
    """Return our side and the paper's; a missing side is the note, once, or a dash."""
    decimals = grid.decimals
    if cell.ours:
        is_drawn = grid.is_drawn
        ours = describe_score(cell.ours, decimals=decimals) if is_drawn else f"{cell.ours.mean:,.{decimals}f}"
        is_note_of_ours = cell.paper is not None and cell.note
        ours += f" ({cell.note})" if is_note_of_ours else ""
    else:
        ours = cell.note or MISSING
    if cell.paper is not None:
        return ours, f"{cell.paper:,.{decimals}f}"
    return ours, (cell.note if cell.ours else "") or MISSING


def grid_sides(grid: Grid) -> tuple[str, ...]:
    """Return the sides that a table shows; the paper's only if it has any number in this table."""
    has_paper = any(cell.paper is not None for row in grid.rows for cell in row.cells)
    return ("ours", "paper") if has_paper else ("ours",)


def _row_texts(row: Row, grid: Grid) -> list[str]:
    """Return the texts of a row, one or two for each of the grid's columns."""
    pairs = [cell_texts(cell, grid) for cell, _ in zip(row.cells, grid.columns, strict=True)]
    return [text for pair in pairs for text in pair[: len(grid_sides(grid))]]


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(_on_one_line(text).replace("|", r"\|") for text in texts) + " |"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _wrap(text: str, *, width: int = WIDTH, indent: str = "") -> str:
    return textwrap.fill(text, width=width, subsequent_indent=indent)


def _claim_text(claim: Claim) -> str:
    indent = 20 * " "
    return (
        _wrap(f"{claim.verdict:<18}  {claim.text}", indent=indent) + "\n" + _wrap(indent + claim.detail, indent=indent)
    )


def _grid_blocks(grid: Grid) -> Iterator[str]:
    """Return the table as aligned lines, in as many blocks of columns as the width asks for."""
    titles = [textwrap.wrap(row.title, TITLE_WIDTH) or [""] for row in grid.rows]
    left = max([0, *(len(line) for lines in titles for line in lines)])
    columns = [_column_lines(grid, place) for place in range(len(grid.columns))]
    for block in _pack_columns(columns, room=WIDTH - left):
        header, rows = block[:2], block[2:]
        lines = [" " * left + line for line in header]
        for title, line in zip(titles, rows, strict=True):
            lines += [*title[:-1], title[-1].ljust(left) + line]
        yield "\n".join(line.rstrip() for line in lines)


def _column_lines(grid: Grid, place: int) -> list[str]:
    """Return one column, all lines equally wide: its title, what its sides are, and ours beside the paper's."""
    num_sides = len(grid_sides(grid))
    pairs = [grid_sides(grid), *(cell_texts(row.cells[place], grid)[:num_sides] for row in grid.rows)]
    widths = [max(map(len, side)) for side in zip(*pairs, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(pair, widths, strict=True)) for pair in pairs]
    lines.insert(0, grid.columns[place])
    width = GAP + max(map(len, lines))
    return [line.rjust(width) for line in lines]


def _pack_columns(columns: Sequence[list[str]], *, room: int) -> Iterator[list[str]]:
    """Put columns beside each other while they fit; each block has at least one."""
    block: list[str] = []
    for column in columns:
        if block and len(block[0]) + len(column[0]) > room:
            yield block
            block = []
        block = [left + right for left, right in zip(block, column, strict=True)] if block else column
    if block:
        yield block
