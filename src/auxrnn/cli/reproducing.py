"""`auxrnn reproduce` and `auxrnn report`: the paper's tables and figures, with our numbers beside theirs."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from auxrnn import runs
from auxrnn.cli.options import ReportOptions, ReproduceOptions
from auxrnn.cli.output import error_console, print_json, say
from auxrnn.config import ScaleName
from auxrnn.errors import UsageError, nearest
from auxrnn.experiments.catalog import EXPERIMENTS, PAGE_ORDER, find_jobs, find_outcome, find_title
from auxrnn.experiments.estimates import ListedRun, estimate_bytes, estimate_seconds, list_runs
from auxrnn.experiments.jobs import Folders, plan
from auxrnn.experiments.remembering import keep_best
from auxrnn.experiments.runner import Display, Runner
from auxrnn.experiments.scales import Scale, find_scale
from auxrnn.files import write_aside
from auxrnn.progress import describe_seconds
from auxrnn.report.pages import PageFacts, write_results_page
from auxrnn.report.records import read_reconstructions
from auxrnn.report.results import Outcome
from auxrnn.report.results_tables import outcome_markdown, outcome_text
from auxrnn.report.run_records import read_record
from auxrnn.training.cost import find_free_memory

ALL = "all"
STOPPED = 130
PICTURES = "reconstructions.npz"


def reproduce(options: ReproduceOptions) -> int:
    """Run what some experiments need, and print them."""
    if options.workers < 1 or (options.seeds is not None and options.seeds < 1):
        raise UsageError("--workers and --seeds must be at least 1")
    if options.list:
        return _list(options)
    names = _find_names(options.names)
    scale, folders = _find_scale(options), _find_folders(options)
    try:
        code = _work(names, scale, folders, options)
    finally:
        # Also what was stopped leaves tables of all that is done.
        outcomes = _keep(names, scale, folders, options.results / scale.name)
    for outcome in outcomes:
        if options.json:
            print_json({"name": outcome.name, "done": outcome.num_done, "planned": outcome.num_planned})
        else:
            print(outcome_text(outcome))
    return code


def _keep(names: Sequence[str], scale: Scale, folders: Folders, results: Path) -> list[Outcome]:
    """Write what is known of some experiments into the results folder, and give it."""
    keep_best(find_jobs(names, scale), folders, path=results / PICTURES)
    outcomes = [find_outcome(name, scale, folders) for name in names]
    for outcome in outcomes:
        write_aside(results / f"{outcome.name}.md", outcome_markdown(outcome))
    return outcomes


def _find_names(given: Sequence[str]) -> list[str]:
    if not given:
        raise UsageError(f"NAME is missing; give one or more of {', '.join(EXPERIMENTS)}, or all; --list shows them")
    for name in given:
        if name not in (*EXPERIMENTS, ALL):
            raise UsageError(f"unknown experiment {name!r}{nearest(name, (*EXPERIMENTS, ALL))}")
    return list(EXPERIMENTS) if ALL in given else list(dict.fromkeys(given))


def _find_scale(options: ReproduceOptions) -> Scale:
    scale = find_scale(options.scale, options.runs.absolute() / "made")
    if options.seeds is None:
        return scale
    seeds = tuple(range(options.seeds))
    return scale._replace(seeds=seeds, fewer_seeds=seeds)


def _find_folders(options: ReproduceOptions) -> Folders:
    return Folders(options.runs / options.scale, options.results / options.scale / "records")


def _work(names: Sequence[str], scale: Scale, folders: Folders, options: ReproduceOptions) -> int:
    """Do what is left; 1 if some of it failed."""
    jobs = find_jobs(names, scale)
    tasks = plan(jobs, folders)
    if not tasks:
        say(f"all {len(jobs)} runs are done already")
        return 0
    num_done = sum(folders.is_done(job.name) for job in jobs)
    say(f"{len(jobs)} runs, {num_done} of them done already; {options.workers} at a time")
    if scale.name == "smoke":
        display = Display(tasks, folders, error_console())
        failures = Runner(folders, HereExecutor(), workers=1, display=display, command=_run_here).run(tasks)
    else:
        torch.set_num_threads(1)
        display = Display(tasks, folders, error_console(), seconds=estimate_seconds(tasks, folders))
        with ThreadPoolExecutor(options.workers) as executor:
            failures = Runner(
                folders,
                executor,
                workers=options.workers,
                display=display,
                needs=lambda task: estimate_bytes(task.config),
                free=find_free_memory(torch.device(runs.find_device())),
            ).run(tasks)
    if failures:
        (name, reason), more = (
            next(iter(failures.items())),
            f", and {len(failures) - 1} more" if len(failures) > 1 else "",
        )
        say(f"auxrnn: {name} failed ({reason}){more}; the same command tries again what is missing")
    return 1 if failures else 0


class HereExecutor(Executor):
    """Runs what is submitted at once, in this process: what takes no second is not worth starting one for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function to its end."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _run_here(words: Sequence[str], *, log: Path, out: Path | None) -> int:
    from auxrnn.cli import run

    with contextlib.ExitStack() as stack:
        result = stack.enter_context(log.open("a") if out is None else out.open("w"))
        stack.enter_context(contextlib.redirect_stdout(result))
        stack.enter_context(contextlib.redirect_stderr(stack.enter_context(log.open("a"))))
        code = run(words)
    if code == STOPPED:
        raise KeyboardInterrupt
    return code


def _list(options: ReproduceOptions) -> int:
    """Print every experiment with its runs and times, or the runs of those that are named."""
    folders = _find_folders(options)
    torch.set_num_threads(1)
    if options.names:
        listed = list_runs(_find_names(options.names), _find_scale(options), folders)
        print_json({"runs": [run._asdict() for run in listed]}) if options.json else _print_runs(listed)
        return 0
    asked = [replace(options, scale=scale) for scale in get_args(ScaleName)]
    scales = [(_find_scale(one), _find_folders(one)) for one in asked]
    summaries = []
    for name in EXPERIMENTS:
        if not options.json:
            print(f"{name:<11}{find_title(name)[0]}")
        for scale, scale_folders in scales:
            summaries.append(_summarize(name, scale, list_runs([name], scale, scale_folders)))
            if not options.json:
                _print_summary(summaries[-1])
    if options.json:
        print_json({"experiments": summaries})
    return 0


def _summarize(name: str, scale: Scale, listed: Sequence[ListedRun]) -> dict[str, Any]:
    return {
        "name": name,
        "title": find_title(name)[0],
        "scale": scale.name,
        "num_runs": len(listed),
        "num_done": sum(run.is_done for run in listed),
        "seconds_left": sum(run.seconds for run in listed if not run.is_done),
    }


def _print_summary(summary: dict[str, Any]) -> None:
    left = summary["num_runs"] - summary["num_done"]
    time_left = f"{left} left, about {describe_seconds(summary['seconds_left'])} on one worker" if left else "all done"
    runs_done = f"{summary['num_runs']:>4} runs, {summary['num_done']} done"
    print(f"{'':<11}{summary['scale']:<7}{runs_done}; {time_left}", flush=True)


def _print_runs(listed: Sequence[ListedRun]) -> None:
    for run in listed:
        state = f"done in {describe_seconds(run.seconds)}" if run.is_done else f"about {describe_seconds(run.seconds)}"
        print(f"{run.place:<34} {state:<24} {run.name}")


def report(options: ReportOptions) -> int:
    """Write the page of all experiments."""
    folders = Folders(Path("unused"), options.results / options.scale / "records")
    if not folders.records.is_dir():
        raise UsageError(
            f"{folders.records} holds no records; `auxrnn reproduce all --scale {options.scale}` makes them"
        )
    with tempfile.TemporaryDirectory() as made_folder:
        scale = find_scale(options.scale, Path(made_folder))
    path = options.out or options.results / options.scale / "index.html"
    outcomes = [find_outcome(name, scale, folders) for name in PAGE_ORDER]
    reconstructions = read_reconstructions(options.results / options.scale / PICTURES)
    made = _find_facts(scale, folders)
    write_results_page(path, outcomes=outcomes, reconstructions=reconstructions, made=made)
    if options.pictures is not None:
        _write_pictures(options.pictures, outcomes)
    if options.tables is not None:
        for outcome in outcomes:
            write_aside(options.tables / f"{outcome.name}.md", outcome_markdown(outcome))
    verdicts = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
    if options.json:
        print_json({"page": str(path), "claims": dict(verdicts)})
    else:
        print(path)
    return 0


def _write_pictures(folder: Path, outcomes: Sequence[Outcome]) -> None:
    from auxrnn.report.charts import WIDE, chart_figure, to_png

    for outcome in outcomes:
        for number, chart in enumerate(outcome.charts, start=1):
            picture = to_png(chart_figure(chart, width=WIDE, has_title=True))
            write_aside(folder / f"{outcome.name}-{number}.png", picture)


def _find_facts(scale: Scale, folders: Folders) -> PageFacts:
    """Say what the records were made with, from the records themselves; where they differ, all of it."""
    found = [record for path in sorted(folders.records.glob("*.json")) if (record := read_record(path)) is not None]
    environments = [record.environment for record in found]
    versions = {(name, version) for environment in environments for name, version in environment["versions"].items()}
    versions |= {("python", environment["python"]) for environment in environments}
    commits = sorted({str(environment["commit"]) for environment in environments})
    command = f"auxrnn reproduce all --scale {scale.name} && auxrnn report --scale {scale.name}"
    planned = {job.name for job in find_jobs(PAGE_ORDER, scale)}
    shown = [record for record in found if record.name in planned]
    return PageFacts(
        scale=scale.name,
        scale_summary=f"{scale.summary.capitalize()}.",
        num_done=len(shown),
        num_planned=len(planned),
        seconds=sum(record.seconds for record in shown),
        versions=sorted(versions),
        commit=", ".join(commits),
        command=command,
    )
