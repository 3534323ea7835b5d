"""Records gathered into the places of a table, and what is said of the paper's sentences on their ground."""

from pathlib import Path

import pytest

from auxrnn.config import unflatten
from auxrnn.experiments import table1
from auxrnn.experiments.jobs import Folders, Job
from auxrnn.experiments.results import Results, collect
from auxrnn.experiments.results import test_error as error_of
from auxrnn.experiments.scales import DBPEDIA, find_scale
from auxrnn.report.records import RunRecord, write_record
from auxrnn.report.results import Claim

DESK_SCALE, PAPER_SCALE = (find_scale(name, Path("unused")) for name in ("desk", "paper"))
UPPER, LOWER = ("upper", "MNIST"), ("lower", "MNIST")


def make_job(row, seed, **values):
    return Job(row, "MNIST", unflatten({"data": "digits", "seed": seed} | values))


def make_record(job, accuracy):
    return RunRecord(job.name, {"seed": job.config.seed}, {"test_accuracy": accuracy}, 1.0, [], {}, {})


def make_results(upper, lower):
    """One job for each value; those of the lower row have another learning rate, so that they are other runs."""
    pairs = [(make_job("upper", seed), value) for seed, value in enumerate(upper)]
    pairs += [(make_job("lower", seed, lr=0.1), value) for seed, value in enumerate(lower)]
    records = {job.name: make_record(job, value) for job, value in pairs if value is not None}
    return Results(PAPER_SCALE, [job for job, _ in pairs], records)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((82.0, 83.0, 81.0), (79.0, 78.0, 80.0), "holds"),
        ((82.0, 83.0, 80.0), (79.0, 78.0, 80.0), "within the spread"),
        ((82.0, 90.0, 70.0), (79.0, 78.0, 80.0), "within the spread"),
        ((80.0, 80.0, 80.0), (80.0, 80.0, 80.0), "does not hold"),
        ((79.0, 78.0, 80.0), (82.0, 83.0, 81.0), "does not hold"),
        ((99.0, 99.0), (1.0, 1.0, 1.0), "open"),
        ((99.0, 99.0, 99.0), (1.0, 1.0), "open"),
    ],
)
def test_a_claim_holds_only_if_every_seed_agrees_and_there_are_three(first, second, verdict):
    assert make_results(first, second).claim("text", UPPER, LOWER).verdict == verdict


@pytest.mark.parametrize(
    ("first", "verdict"),
    [((91.0, 92.0, 93.0), "holds"), ((89.0, 92.0, 93.0), "within the spread"), ((80.0, 81.0, 82.0), "does not hold")],
)
def test_a_margin_must_be_passed_by_every_seed(first, verdict):
    second = (48.0, 49.0, 50.0)
    assert make_results(first, second).claim("text", UPPER, LOWER, by=40.0).verdict == verdict


def test_a_claim_whose_runs_are_missing_is_open():
    for results in (make_results((1.0,) * 3, (None,) * 3), make_results((None,) * 3, (1.0,) * 3)):
        assert results.claim("text", UPPER, LOWER) == Claim("text", "open", "not all of its runs are done")


def test_a_claim_with_some_seeds_missing_is_open_and_says_so():
    claim = make_results((80.0, 82.0, None), (10.0, 10.0, 10.0)).claim("text", UPPER, LOWER)
    assert claim.verdict == "open"
    assert "too few seeds" in claim.detail


def test_a_claim_names_both_numbers_and_their_distance():
    claim = make_results((81.0, 82.0, 83.0), (70.0, 72.0, 74.0)).claim("the text", UPPER, LOWER)
    assert claim == Claim("the text", "holds", "upper 82.0 ± 1.0, lower 72.0 ± 2.0: +10.0 points on average")


def test_a_sentence_has_our_numbers_in_the_order_of_its_places_or_is_not_said():
    told = make_results((81.0, 82.0, 83.0), (70.0,)).tell("{} beside {}", UPPER, LOWER)
    assert told == "82.0 ± 1.0 beside 70.0 (one seed)"
    assert make_results((81.0,), (None,)).tell("{} beside {}", UPPER, LOWER) == ""


def test_of_errors_the_smaller_is_better():
    results = make_results((98.0, 98.0, 98.0), (90.0, 90.0, 90.0))
    assert results.claim("", LOWER, UPPER, value=error_of).verdict == "holds"
    assert results.score(*UPPER, error_of).values == (2.0, 2.0, 2.0)


def test_scores_stand_in_the_order_of_the_seeds_whatever_the_order_of_the_records():
    jobs = [make_job("upper", seed) for seed in range(3)]
    records = [make_record(job, 70.0 + job.config.seed) for job in jobs]
    results = Results(PAPER_SCALE, jobs, {record.name: record for record in reversed(records)})
    assert results.score(*UPPER) == ((70.0, 71.0, 72.0), tuple(records))


def test_records_of_other_seeds_than_are_planned_count_too(tmp_path):
    planned, other = make_job("upper", 0), make_job("upper", 7)
    for job, accuracy in ((planned, 70.0), (other, 80.0), (make_job("upper", 1, lr=0.1), 1.0)):
        write_record(make_record(job, accuracy), tmp_path)
    results = collect(PAPER_SCALE, [planned], Folders(tmp_path, tmp_path))
    assert [run.seed for run in results.score(*UPPER).runs] == [0, 7]
    assert results.score(*UPPER).values == (70.0, 80.0)


def test_a_place_without_a_number_says_why():
    results = make_results((80.0,), (None,))
    assert results.cell(*UPPER, 96.4) == (results.score(*UPPER), 96.4, "")
    assert results.cell(*LOWER, 11.3) == (None, 11.3, "not run yet")
    assert results.cell("another", "MNIST", None) == (None, None, "")
    assert results.cell("another", "MNIST", 97.0) == (None, 97.0, "not part of this scale")


def test_collecting_reads_the_records_that_are_there(tmp_path):
    jobs = [make_job("upper", seed) for seed in range(2)]
    write_record(make_record(jobs[1], 80.0), tmp_path)
    results = collect(PAPER_SCALE, jobs, Folders(tmp_path / "unused", tmp_path))
    assert results.records == {jobs[1].name: make_record(jobs[1], 80.0)}
    assert [run.seed for run in results.score(*UPPER).runs] == [1]


@pytest.mark.parametrize(("max_length", "median"), [(256, 256), (300, 287), (None, 287)])
def test_table_1_shows_lengths_as_training_cuts_them(max_length, median):
    job = next(job for job in table1.runs(DESK_SCALE) if job.row == DBPEDIA)
    scores = {"lengths": {"median": 287}, "classes": {"train": {"a": 2, "b": 3}}}
    record = RunRecord(job.name, {"seed": 0, "max_length": max_length}, scores, 0.0, [], {}, {})
    (grid,) = table1.show(Results(DESK_SCALE, [job], {job.name: record})).grids
    assert [cell.ours.mean for cell in grid.rows[DBPEDIA]] == [median, 2, 5]
