"""Every table and figure of the paper by name, in order of importance, then what is not in the paper."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from auxrnn.config import flatten, unflatten
from auxrnn.experiments import (
    cells,
    few_labels,
    figure3,
    figure4,
    figure5,
    figure6,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
)
from auxrnn.experiments.jobs import UNNAMED, Folders, Job
from auxrnn.experiments.results import Results, Shown, collect
from auxrnn.experiments.scales import Scale
from auxrnn.presets import AUXILIARY, MODEL_OPTIONS, PRESETS
from auxrnn.report.results import Outcome


class Experiment(Protocol):
    """What the file of an experiment holds, beside the paper's numbers; its docstring is its title and summary."""

    __name__: str

    def runs(self, scale: Scale) -> Iterable[Job]:
        """Yield what it needs."""

    def show(self, results: Results) -> Shown:
        """Return its tables and charts, the claims of the paper judged, and our numbers in a sentence."""


_MODULES: tuple[Experiment, ...] = (
    *(table1, table2, figure5, figure3, figure4, figure6, table6, table3, table4, table5),
    few_labels,
    cells,
)
EXPERIMENTS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}
PAGE_ORDER = sorted(EXPERIMENTS, key=lambda name: (not name[-1].isdecimal(), name[0] == "f", name))
"""Tables, figures, then what is not in the paper."""
ALWAYS_SHOWN = ("hidden_size", "batch_size", "optimizer", "lr")
"""Settings that are shown even where they are the published ones."""


def find_jobs(names: Sequence[str], scale: Scale) -> list[Job]:
    """Return the jobs of some experiments, in their order, each once."""
    jobs: dict[str, Job] = {}
    for job in itertools.chain.from_iterable(EXPERIMENTS[name].runs(scale) for name in names):
        jobs.setdefault(job.name, job)
    return list(jobs.values())


def find_title(name: str) -> tuple[str, str]:
    """Return the title of an experiment and its summary in plain words."""
    title, _, summary = (EXPERIMENTS[name].__doc__ or "").partition(".\n\n")
    return title, " ".join(summary.split())


def find_outcome(name: str, scale: Scale, folders: Folders) -> Outcome:
    """Return a table or figure as far as its records go."""
    title, summary = find_title(name)
    jobs = list(EXPERIMENTS[name].runs(scale))
    results = collect(scale, jobs, folders)
    planned = {job.name for job in jobs}
    return Outcome(
        name=name,
        title=title,
        scale=scale.name,
        summary=summary,
        **EXPERIMENTS[name].show(results)._asdict(),
        settings=[("scale", scale.summary), *describe_settings(jobs)],
        num_done=len(planned & results.records.keys()),
        num_planned=len(planned),
        seconds=sum(record.seconds for record in results.records.values()),
    )


def describe_settings(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """Return names and values: what all runs share, if not the published value; then what each row differs in.

    Where the runs of a row differ among themselves, by dataset for instance, all their values are given.
    """
    shared: list[tuple[str, str]] = []
    differing: dict[str, list[str]] = defaultdict(list)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for job in jobs:
        rows[job.row].append(_find_settings(job))
    for name, published in flatten(unflatten({"data": ""})).items():
        given = {
            row: list(dict.fromkeys(str(values[name]) for values in settings if values.get(name) is not None))
            for row, settings in rows.items()
        }
        values, words = set(itertools.chain(*given.values())), name.replace("_", " ")
        if len(values) > 1:
            for row, found in given.items():
                if found:
                    differing[row].append(f"{words} {' / '.join(found)}")
        elif values and (values != {str(published)} or name in ALWAYS_SHOWN):
            shared.append((words, values.pop()))
    return shared + [(row, ", ".join(differing[row])) for row in rows if row in differing]


def _find_settings(job: Job) -> dict[str, Any]:
    """Return the values that have an effect on a job: only those of its data for a count of a dataset."""
    if job.kind == "data":
        return {name: value for name, value in vars(job.config.data).items() if name not in UNNAMED}
    model, objective = job.config.model.model, job.config.loss.objective
    without_effect = MODEL_OPTIONS - set(PRESETS[model].options) | set(AUXILIARY if objective == "none" else ())
    return {name: value for name, value in flatten(job.config).items() if name not in {*UNNAMED, *without_effect}}
