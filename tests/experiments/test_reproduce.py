"""`auxrnn reproduce` and `auxrnn report` from end to end, on made-up data that takes seconds."""

import html
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from auxrnn.experiments.catalog import EXPERIMENTS, find_jobs, find_outcome, find_title
from auxrnn.experiments.jobs import Folders
from auxrnn.experiments.scales import find_scale
from auxrnn.report.records import read_record
from command import Result, call, files_below


class Reproduction(NamedTuple):
    """All experiments, done once, and what that printed."""

    words: list[str]
    runs: Path
    results: Path
    result: Result

    @property
    def records(self):
        return self.results / "smoke" / "records"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduce")
    words = ["--scale", "smoke", "--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return Reproduction(words, folder / "runs", folder / "results", call("reproduce", "all", *words))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("cwd"))


def find_all(whole):
    return find_jobs(list(EXPERIMENTS), find_scale("smoke", whole.runs / "made"))


def test_every_job_gets_its_record_and_nothing_fails(whole):
    assert whole.result.code == 0, whole.result.err
    assert "failed" not in whole.result.err
    jobs = find_all(whole)
    assert {path.stem for path in whole.records.iterdir()} == {job.name for job in jobs}
    for job in jobs:
        record = read_record(whole.records / f"{job.name}.json")
        expected = {"train": "test_accuracy", "cost": "seconds_per_update", "data": "lengths"}[job.kind]
        assert expected in record.scores
        assert record.seed == job.config.seed


def test_every_experiment_is_printed_and_stands_beside_the_records_as_markdown(whole):
    found = {path.stem: path.read_text() for path in (whole.results / "smoke").glob("*.md")}
    assert found.keys() == EXPERIMENTS.keys()
    for name in EXPERIMENTS:
        assert find_title(name)[0] in found[name]
        assert find_title(name)[0] in whole.result.out
        assert "not run yet" not in found[name]
    assert "96.4" in found["table2"]


def test_every_experiment_says_in_words_what_was_measured_and_nothing_before(whole, tmp_path):
    scale = find_scale("smoke", whole.runs / "made")
    for name in EXPERIMENTS:
        finding = find_outcome(name, scale, Folders(whole.runs / "smoke", whole.records)).finding
        assert re.search(r"\d.*\.$", finding), name
        assert not {"{", "}"} & set(finding)
        assert find_outcome(name, scale, Folders(tmp_path, tmp_path)).finding == "", name


def test_records_name_no_folder_of_the_machine(whole):
    for path in whole.records.iterdir():
        assert str(whole.runs.parent) not in path.read_text(), path.name


def test_a_run_that_several_tables_show_was_trained_once(whole):
    folders = {path.name for path in (whole.runs / "smoke").iterdir() if path.is_dir()}
    jobs = {job.name for job in find_all(whole) if job.kind == "train"}
    assert {name for name in folders if not name.startswith("first-")} == jobs
    adopted = [path for path in (whole.runs / "smoke").glob("first-*") if path.is_dir()]
    assert 0 < len(adopted) < len(jobs)


def test_what_is_done_is_not_done_again(whole):
    before = {path: path.stat().st_mtime_ns for path in (*whole.records.iterdir(), *whole.runs.rglob("*"))}
    again = call("reproduce", "all", *whole.words)
    assert (again.code, again.out) == (0, whole.result.out)
    assert f"all {len(find_all(whole))} runs are done already" in again.err
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_json_is_one_line_for_each_experiment(whole):
    result = call("reproduce", "figure5", "table1", "--json", *whole.words)
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert lines == [{"name": "figure5", "done": 3, "planned": 3}, {"name": "table1", "done": 5, "planned": 5}]


def test_the_list_of_an_experiment_names_its_runs_and_which_are_done(whole, tmp_path):
    words = ["--list", "figure5", "--scale", "smoke", "--runs", str(whole.runs), "--results"]
    done, none = (call("reproduce", *words, str(results)) for results in (whole.results, tmp_path))
    assert (done.code, none.code) == (0, 0)
    names = [job.name for job in find_jobs(["figure5"], find_scale("smoke", whole.runs / "made"))]
    assert [line.split()[-1] for line in done.out.splitlines()] == names
    assert [line.split()[-1] for line in none.out.splitlines()] == names
    assert all(re.search(r"CIFAR10 +done ", line) for line in done.out.splitlines())
    assert not any("done" in line for line in none.out.splitlines())


def test_the_report_shows_all_experiments_with_the_numbers_of_the_records(whole, tmp_path):
    result = call("report", "--scale", "smoke", "--results", whole.results, "--out", tmp_path / "page.html")
    assert result.code == 0, result.err
    page = html.unescape((tmp_path / "page.html").read_text())
    for name in EXPERIMENTS:
        assert find_title(name)[0] in page
    assert re.search(r"(\d+) of \1 runs are done", page)
    assert "not counted yet" not in page


def test_the_report_counts_a_run_that_several_tables_show_once(whole, tmp_path):
    call("report", "--scale", "smoke", "--results", whole.results, "--out", tmp_path / "page.html")
    num_runs = len(find_all(whole))
    assert f"{num_runs} of {num_runs} runs are done" in (tmp_path / "page.html").read_text()


def test_the_report_writes_one_file_and_nothing_else(whole, tmp_path):
    before = files_below(whole.results)
    result = call("report", "--scale", "smoke", "--results", whole.results, "--out", tmp_path / "page.html")
    assert result.out.strip() == str(tmp_path / "page.html")
    assert files_below(tmp_path) == ["page.html"]
    assert files_below(whole.results) == before
    assert files_below(Path.cwd()) == []


def test_the_report_gives_its_tables_and_charts_as_files_where_it_is_asked_to(whole, tmp_path):
    parts = ["--tables", tmp_path / "tables", "--pictures", tmp_path / "pictures"]
    call("report", "--scale", "smoke", "--results", whole.results, "--out", tmp_path / "page.html", *parts)
    for name in EXPERIMENTS:
        made = (whole.results / "smoke" / f"{name}.md").read_text()
        assert (tmp_path / "tables" / f"{name}.md").read_text() == made
    assert (tmp_path / "pictures" / "table2-1.png").read_bytes().startswith(b"\x89PNG")


def test_a_damaged_record_is_named_in_one_sentence(whole, tmp_path):
    results = shutil.copytree(whole.results, tmp_path / "results")
    path = next((results / "smoke" / "records").glob("data-*.json"))
    path.write_text("{")
    result = call("reproduce", "table1", *whole.words[:-1], results)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith(f"auxrnn: {path} is damaged; remove it")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tabel2"], "unknown experiment 'tabel2'; did you mean 'table2'?"),
        ([], "NAME is missing; give one or more of table1"),
        (["table2", "--workers", "0"], "--workers and --seeds must be at least 1"),
        (["table2", "--seeds", "0"], "--workers and --seeds must be at least 1"),
        (["table2", "--scale", "desc"], "--scale is 'desc'; it takes 'smoke', 'desk', 'full' or 'paper'"),
        (["--list", "tabel2", "--scale", "smoke"], "did you mean 'table2'?"),
    ],
)
def test_a_mistake_gives_one_sentence_and_makes_nothing(words, part):
    result = call("reproduce", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[-1].startswith("auxrnn: ")
    assert part in result.err
    assert files_below(Path.cwd()) == []


def test_a_report_without_records_says_how_to_make_them():
    result = call("report", "--scale", "smoke")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "holds no records; `auxrnn reproduce all --scale smoke` makes them" in result.err
    assert files_below(Path.cwd()) == []
