"""What was computed stays valid: jobs keep the names of their records, and records give the committed tables."""

import hashlib
from pathlib import Path

import pytest

from auxrnn.experiments.catalog import EXPERIMENTS, find_jobs, find_outcome
from auxrnn.experiments.jobs import Folders, plan
from auxrnn.experiments.scales import find_scale
from auxrnn.report.pages import outcome_markdown

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(path for scale in ("desk", "full") for path in (RESULTS / scale).glob("*.md"))
NAMES = {
    "smoke": (114, "159de1816233ad6b", "131e88b662120f52"),
    "desk": (318, "6d3fab1e74c23000", "d27aec77c478ae0c"),
    "full": (265, "abf7c8b427cd811d", "aae595f797366b30"),
    "paper": (190, "c327f070a1a2e260", "c14b11ab9dfc5e61"),
}
"""By scale: number of jobs, digest of the names of all tasks, digest of the places that show them."""
NAMES_OF_CELLS = {
    "smoke": (90, "19f4e504ec052706", "a629ba22de530f29"),
    "desk": (90, "307c6a8d1a721443", "2023951d519933f6"),
    "full": (90, "f59a52c3512b20bd", "67c8cddd28200a5a"),
    "paper": (90, "d82e7219ad859d9e", "f487f393e57b238d"),
}
"""The same of `cells`, to which further cells come."""


def digest(names):
    return hashlib.sha256("\n".join(sorted(set(names))).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", ["smoke", "desk", "full", "paper"])
def test_every_job_and_every_shared_pretraining_keeps_its_name(name, tmp_path):
    scale = find_scale(name, tmp_path)
    others = [experiment for experiment in EXPERIMENTS if experiment != "cells"]
    for experiments, expected in ((others, NAMES), (["cells"], NAMES_OF_CELLS)):
        jobs = find_jobs(experiments, scale)
        tasks = plan(jobs, Folders(tmp_path, tmp_path))
        by_place = [
            f"{name} {job.row} {job.column} {job.name}" for name in experiments for job in EXPERIMENTS[name].runs(scale)
        ]
        assert (len(jobs), digest(task.name for task in tasks), digest(by_place)) == expected[name]


def test_the_digests_would_notice_another_name():
    assert digest(["a", "b"]) == digest(["b", "a", "a"]) != digest(["a", "c"])


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_committed_records_give_the_committed_tables(path, tmp_path):
    scale = find_scale(path.parent.name, tmp_path)
    outcome = find_outcome(path.stem, scale, Folders(tmp_path, path.parent / "records"))
    assert outcome_markdown(outcome) == path.read_text()
