import pytest

from auxrnn.report.results import Cell, Grid, Row, describe_duration
from auxrnn.report.results_tables import (
    cell_texts,
    claims_markdown,
    describe_seeds,
    grid_markdown,
    outcome_markdown,
    outcome_text,
)
from made_up_results import IMAGES, NOT_RUN, ONE_SEED, OUTCOMES, TABLE, make_score


def markdown_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def make_grid(*cells, columns=None):
    columns = columns or tuple(f"column {place}" for place in range(len(cells)))
    return Grid("Caption", "%", columns, (Row("LSTM", tuple(cells)),))


def test_a_markdown_table_has_ours_beside_the_paper_s_in_each_column():
    header, rule, *rows = markdown_rows(grid_markdown(IMAGES))
    names = ["MNIST, ours", "MNIST, paper", "pMNIST, ours", "pMNIST, paper", "CIFAR10, ours", "CIFAR10, paper"]
    assert header == ["", *names]
    assert rule == [":---", *["---:"] * 6]
    assert rows[0] == ["LSTM, full BPTT", "90.0 ± 0.5", "95.0", "85.0 ± 0.5", "95.0", "80.0 ± 0.5", "95.0"]
    assert [row[0] for row in rows] == [row.title for row in IMAGES.rows]


def test_a_table_without_any_number_of_the_paper_has_no_column_for_it():
    header, _, row = markdown_rows(grid_markdown(make_grid(Cell(make_score(3.0), None), columns=("MNIST",))))
    assert header == ["", "MNIST"]
    assert row == ["LSTM", "3.0 ± 0.5"]


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        (Cell(make_score(3.0), 4.0), ("3.0 ± 0.5", "4.0")),
        (Cell(make_score(3.0, num_seeds=1), 4.0), ("3.0 (one seed)", "4.0")),
        (Cell(None, 4.0, "infeasible"), ("infeasible", "4.0")),
        (Cell(make_score(3.0), None, "illegible"), ("3.0 ± 0.5", "illegible")),
        (Cell(make_score(3.0), 4.0, "half the data"), ("3.0 ± 0.5 (half the data)", "4.0")),
        (Cell(None, None, "not run"), ("not run", "-")),
        (Cell(None, None), ("-", "-")),
    ],
)
def test_a_missing_side_shows_the_note_once_or_a_dash(cell, texts):
    assert cell_texts(cell, make_grid(cell, columns=("MNIST",))) == texts


def test_a_count_has_neither_seeds_nor_a_spread():
    grid = make_grid(Cell(make_score(60000.0, num_seeds=1), 60000.0), columns=("MNIST",))
    grid = grid._replace(is_drawn=False, decimals=0, unit="")
    assert cell_texts(grid.rows[0].cells[0], grid) == ("60,000", "60,000")
    assert "(" not in grid_markdown(grid)


@pytest.mark.parametrize(
    ("seeds", "words"),
    [((3, 3), "deviation of 3 seeds"), ((3, 2), "deviation of 2 to 3 seeds"), ((1, 1), "one seed, so no spread")],
)
def test_the_caption_says_how_many_seeds_there_are(seeds, words):
    grid = make_grid(*(Cell(make_score(3.0, num_seeds=count), None) for count in seeds))
    assert words in describe_seeds(grid)
    assert words in grid_markdown(grid)


def test_a_table_of_which_nothing_ran_says_so():
    assert "not measured here yet" in grid_markdown(NOT_RUN.grids[0])


def test_bars_in_titles_do_not_break_a_markdown_table():
    grid = Grid("Caption", "%", ("a|b",), (Row("c\nd | e", (Cell(None, 1.0),)),))
    lines = grid_markdown(grid).splitlines()
    assert lines[-1] == r"| c d \| e | - | 1.0 |"
    assert r"a\|b, ours" in lines[2]


def test_a_row_with_too_few_cells_is_refused():
    with pytest.raises(ValueError, match="longer"):
        grid_markdown(make_grid(Cell(None, 1.0), columns=("one", "two")))


def test_each_claim_stands_with_its_verdict_and_its_numbers():
    lines = claims_markdown(TABLE.claims).splitlines()
    assert lines[:2] == ["- **holds**: r-LSTM beats LSTM.", "    - 90.0 against 80.0."]
    assert [line.split("**")[1] for line in lines[::2]] == [claim.verdict for claim in TABLE.claims]


@pytest.mark.parametrize("give", [outcome_markdown, outcome_text])
def test_an_outcome_tells_its_progress_its_cost_and_its_command(give):
    assert "all 72 runs are done, 3 h 05 min of training" in give(TABLE)
    assert "1 of 9 runs are done, 1 min 00 s of training" in give(ONE_SEED)
    assert "none of 9 runs is done yet" in give(NOT_RUN)
    for outcome in OUTCOMES:
        text = give(outcome)
        assert outcome.title in text
        assert outcome.summary in text
        assert outcome.finding in text
        assert outcome.command in text
        assert all(claim.text in text and claim.detail in text for claim in outcome.claims)


def test_text_for_a_terminal_is_aligned():
    lines = outcome_text(TABLE).splitlines()
    start = next(index for index, line in enumerate(lines) if "MNIST" in line)
    table = lines[start + 1 : start + 10]
    assert table[0].split() == ["ours", "paper"] * 3
    ends = [[place for place in range(len(line)) if line[place:].startswith(" 95.0")] for line in table[1:]]
    assert len(ends[0]) == 3
    assert all(places == ends[0] for places in ends)


@pytest.mark.parametrize("num_columns", [1, 3, 9])
def test_text_for_a_terminal_fits_100_columns_and_loses_nothing(num_columns):
    scores = [make_score(10.0 + place, num_seeds=1) for place in range(num_columns)]
    columns = tuple(f"dataset number {place}" for place in range(num_columns))
    cells = tuple(Cell(score, 50.0) for score in scores)
    grid = Grid("Caption " * 20, "%", columns, (Row("a title of many words, " * 4, cells), Row("short", cells)))
    long = TABLE._replace(summary="word " * 60, grids=(grid,))
    text = outcome_text(long)
    assert max(map(len, text.splitlines())) <= 100
    assert all(text.count(f"{score.mean:.1f} (one seed)") == 2 for score in scores)
    assert all(column in text for column in columns)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.7, "1 h 00 min"), (11_100.0, "3 h 05 min")],
)
def test_times_are_told_in_their_two_largest_units(seconds, words):
    assert describe_duration(seconds) == words
