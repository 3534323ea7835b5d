"""Every table and figure of the paper by name, in order of importance, then what stands beside them."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from auxrnn.experiments import (
    few_labels,
    figure3_length,
    figure4_window,
    figure5_curves,
    figure6_ablation,
    mnist784_own_size,
    table1_datasets,
    table2_pixel_images,
    table3_transformer,
    table4_text_truncated,
    table5_text_full,
    table6_sample_rate,
)
from auxrnn.experiments.collected import Results, collect
from auxrnn.experiments.jobs import Job, drop_doubles
from auxrnn.experiments.scales import Scale
from auxrnn.experiments.settings import describe_settings
from auxrnn.experiments.workers import Folders
from auxrnn.report.results import BarChart, Claim, Grid, LineChart, Outcome


class Experiment(Protocol):
    """What every file of an experiment holds, beside the paper's numbers."""

    TITLE: str
    SUMMARY: str

    def runs(self, scale: Scale) -> Iterable[Job]:
        """Yield what it needs."""

    def claims(self, results: Results) -> Sequence[Claim]:
        """Judge what the paper says."""

    def conclude(self, results: Results) -> str:
        """Say in plain words what our numbers are, whatever they are; nothing while they are missing."""

    def render(self, results: Results) -> tuple[Sequence[Grid], Sequence[LineChart | BarChart]]:
        """Give its tables and charts."""


EXPERIMENTS: dict[str, Experiment] = {
    "table1": table1_datasets,
    "table2": table2_pixel_images,
    "figure5": figure5_curves,
    "figure3": figure3_length,
    "figure4": figure4_window,
    "figure6": figure6_ablation,
    "table6": table6_sample_rate,
    "table3": table3_transformer,
    "table4": table4_text_truncated,
    "table5": table5_text_full,
    "mnist784": mnist784_own_size,
    "few_labels": few_labels,
}
KINDS = ("table", "figure", "mnist", "few_labels")
"""In the order of the page."""
PAGE_ORDER = tuple(sorted(EXPERIMENTS, key=lambda name: (KINDS.index(name.rstrip("0123456789")), name)))


def find_jobs(names: Sequence[str], scale: Scale) -> list[Job]:
    """Give the jobs of some experiments, in their order, each once."""
    return drop_doubles(job for name in names for job in EXPERIMENTS[name].runs(scale))


def find_outcome(name: str, scale: Scale, folders: Folders) -> Outcome:
    """Give a table or figure as far as its records go."""
    experiment = EXPERIMENTS[name]
    jobs = list(experiment.runs(scale))
    results = collect(scale, jobs, folders)
    grids, charts = experiment.render(results)
    planned = {job.name for job in jobs}
    return Outcome(
        name=name,
        title=experiment.TITLE,
        scale=scale.name,
        summary=experiment.SUMMARY,
        finding=experiment.conclude(results),
        grids=tuple(grids),
        charts=tuple(charts),
        claims=tuple(experiment.claims(results)),
        settings=(("scale", scale.summary), *describe_settings(jobs)),
        command=f"auxrnn reproduce {name} --scale {scale.name}",
        num_done=len(planned & results.records.keys()),
        num_planned=len(planned),
        seconds=results.seconds,
    )
