"""Tables and claims as Markdown: ours beside the paper's, and what is missing said once."""

import pytest

from auxrnn.report.pages import outcome_markdown
from auxrnn.report.results import Cell, Grid, describe_duration
from made_up_results import IMAGES, NOT_RUN, ONE_SEED, OUTCOMES, TABLE, make_score


def grid_markdown(grid):
    return outcome_markdown(TABLE._replace(finding="", summary="", grids=(grid,), claims=()))


def markdown_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def make_grid(*cells, columns=None):
    columns = columns or tuple(f"column {place}" for place in range(len(cells)))
    return Grid("Caption", "%", columns, {"LSTM": cells})


def test_a_markdown_table_has_ours_beside_the_paper_s_in_each_column():
    header, rule, *rows = markdown_rows(grid_markdown(IMAGES))
    names = ["MNIST, ours", "MNIST, paper", "pMNIST, ours", "pMNIST, paper", "CIFAR10, ours", "CIFAR10, paper"]
    assert header == ["", *names]
    assert rule == [":---", *["---:"] * 6]
    assert rows[0] == ["LSTM, full BPTT", "90.0 ± 0.5", "95.0", "85.0 ± 0.5", "95.0", "80.0 ± 0.5", "95.0"]
    assert [row[0] for row in rows] == list(IMAGES.rows)


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
        (Cell(make_score(3.0), None), ("3.0 ± 0.5", "-")),
        (Cell(None, None, "not run"), ("not run", "-")),
        (Cell(None, None), ("-", "-")),
    ],
)
def test_a_missing_side_shows_the_note_once_or_a_dash(cell, texts):
    grid = make_grid(cell, Cell(None, 1.0), columns=("MNIST", "CIFAR10"))
    assert grid.texts(cell) == texts


def test_a_transposed_table_has_its_rows_as_columns():
    grid = IMAGES.transpose()
    assert (list(grid.columns), list(grid.rows)) == (list(IMAGES.rows), list(IMAGES.columns))
    assert grid.rows["CIFAR10"][1] == IMAGES.rows["LSTM, Truncate300"][2]
    assert grid.transpose() == IMAGES


def test_a_count_has_neither_seeds_nor_a_spread():
    grid = make_grid(Cell(make_score(60000.0, num_seeds=1), 60000.0), columns=("MNIST",))
    grid = grid._replace(is_drawn=False, decimals=0, unit="")
    assert grid.texts(grid.rows["LSTM"][0]) == ("60,000", "60,000")
    assert grid.describe() == "Caption"


@pytest.mark.parametrize(
    ("seeds", "words"),
    [((3, 3), "deviation of 3 seeds"), ((3, 2), "deviation of 2 to 3 seeds"), ((1, 1), "one seed, so no spread")],
)
def test_the_caption_says_how_many_seeds_there_are(seeds, words):
    grid = make_grid(*(Cell(make_score(3.0, num_seeds=count), None) for count in seeds))
    assert words in grid.describe()


def test_a_table_of_which_nothing_ran_says_so():
    assert "not measured here yet" in grid_markdown(NOT_RUN.grids[0])


def test_bars_in_titles_do_not_break_a_markdown_table():
    grid = Grid("Caption", "%", ("a|b",), {"c\nd | e": (Cell(None, 1.0),)})
    lines = [line for line in grid_markdown(grid).splitlines() if line.startswith("|")]
    assert lines[-1] == r"| c d \| e | - | 1.0 |"
    assert r"a\|b, ours" in lines[0]


def test_each_claim_stands_with_its_verdict_and_its_numbers():
    lines = [line for line in outcome_markdown(TABLE).splitlines() if line.lstrip().startswith("- ")]
    assert lines[:2] == ["- **holds**: r-LSTM beats LSTM.", "    - 90.0 against 80.0."]
    assert [line.split("**")[1] for line in lines[::2]] == [claim.verdict for claim in TABLE.claims]


def test_an_outcome_tells_its_progress_its_cost_and_its_command():
    assert "all 72 runs are done, 3 h 05 min of training" in outcome_markdown(TABLE)
    assert "1 of 9 runs are done, 1 min 00 s of training" in outcome_markdown(ONE_SEED)
    assert "none of 9 runs is done yet" in outcome_markdown(NOT_RUN)
    for outcome in OUTCOMES:
        text = outcome_markdown(outcome)
        command = f"`auxrnn reproduce {outcome.name} --scale desk`"
        parts = (outcome.title, outcome.summary, outcome.finding, command)
        assert all(part in text for part in (*parts, *(claim.text for claim in outcome.claims)))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.7, "1 h 00 min"), (11_100.0, "3 h 05 min")],
)
def test_times_are_told_in_their_two_largest_units(seconds, words):
    assert describe_duration(seconds) == words
