"""`auxrnn reproduce` and `auxrnn report`: the paper's tables and figures, with our numbers beside theirs."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import torch
import tyro

from auxrnn import runs
from auxrnn.arguments import parse
from auxrnn.cli.output import Flag, error_console, print_json, say
from auxrnn.errors import UsageError, nearest
from auxrnn.experiments.catalog import EXPERIMENTS, PAGE_ORDER, find_jobs, find_outcome
from auxrnn.experiments.estimates import (
    ListedRun,
    Summary,
    estimate_bytes,
    estimate_seconds,
    list_runs,
    summarize,
)
from auxrnn.experiments.jobs import Folders, plan
from auxrnn.experiments.protocols import find_scale
from auxrnn.experiments.remembering import keep_best
from auxrnn.experiments.runner import Display, Runner
from auxrnn.experiments.scales import Scale, ScaleName
from auxrnn.files import write_aside
from auxrnn.progress import describe_seconds
from auxrnn.report.pages import PageFacts, write_results_page
from auxrnn.report.records import read_reconstructions
from auxrnn.report.results import Outcome
from auxrnn.report.results_tables import outcome_markdown, outcome_text
from auxrnn.report.run_records import read_record
from auxrnn.training.process_memory import find_free_memory

ALL = "all"
STOPPED = 130
PICTURES = "reconstructions.npz"


@dataclass(frozen=True, kw_only=True)
class ReproduceArguments:
    """Options of `reproduce`."""

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="NAME")] = ()
    """Tables and figures by name (table2, figure4), or all of them in order of importance: all."""
    scale: ScaleName = "desk"
    """How large: smoke (seconds), desk (hours on two cores), full (the paper's lengths and sizes with the
    fast recipe, days on two cores) or paper (the published settings)."""
    workers: int = 1
    """Runs at a time, one thread each."""
    seeds: int | None = None
    """Seeds of every number (None: as the scale says)."""
    runs: Path = Path("runs/reproduce")
    """Folder for checkpoints and weights; what is interrupted goes on from there."""
    results: Path = Path("results")
    """Folder for records and tables, to be kept: what has its record in SCALE/records is not run again."""
    list: Flag = False
    """Show all experiments: their runs, what is done, and about how long the rest takes here."""
    json: Flag = False
    """Print one JSON object."""


def reproduce(argv: Sequence[str]) -> int:
    """Run what a table or figure of the paper needs, and print it with our numbers beside the paper's.

    What was interrupted goes on, what is done is not repeated, and runs that several tables need are run once. Every
    number becomes a small record in the results folder; the table stands beside them as Markdown.

    Examples:
      auxrnn reproduce --list
      auxrnn reproduce table2 --scale desk --workers 2
      auxrnn reproduce all --scale smoke
    """
    arguments = parse(ReproduceArguments, argv, "reproduce", description=reproduce.__doc__ or "")
    if arguments.workers < 1 or (arguments.seeds is not None and arguments.seeds < 1):
        raise UsageError("--workers and --seeds must be at least 1")
    if arguments.list:
        return _list(arguments)
    names = _find_names(arguments.names)
    scale, folders = _find_scale(arguments), _find_folders(arguments)
    try:
        code = _work(names, scale, folders, arguments)
    finally:
        # Also what was stopped leaves tables of all that is done.
        outcomes = _keep(names, scale, folders, arguments.results / scale.name)
    for outcome in outcomes:
        if arguments.json:
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


def _find_scale(arguments: ReproduceArguments) -> Scale:
    scale = find_scale(arguments.scale, arguments.runs.absolute() / "made")
    if arguments.seeds is None:
        return scale
    seeds = tuple(range(arguments.seeds))
    return scale._replace(seeds=seeds, fewer_seeds=seeds)


def _find_folders(arguments: ReproduceArguments) -> Folders:
    return Folders(arguments.runs / arguments.scale, arguments.results / arguments.scale / "records")


def _work(names: Sequence[str], scale: Scale, folders: Folders, arguments: ReproduceArguments) -> int:
    """Do what is left; 1 if some of it failed."""
    jobs = find_jobs(names, scale)
    tasks = plan(jobs, folders)
    if not tasks:
        say(f"all {len(jobs)} runs are done already")
        return 0
    num_done = sum(folders.is_done(job) for job in jobs)
    say(f"{len(jobs)} runs, {num_done} of them done already; {arguments.workers} at a time")
    if scale.name == "smoke":
        display = Display(tasks, folders, error_console())
        failures = Runner(folders, HereExecutor(), workers=1, display=display, command=_run_here).run(tasks)
    else:
        torch.set_num_threads(1)
        display = Display(tasks, folders, error_console(), seconds=estimate_seconds(tasks, folders))
        with ThreadPoolExecutor(arguments.workers) as executor:
            failures = Runner(
                folders,
                executor,
                workers=arguments.workers,
                display=display,
                needs=lambda task: estimate_bytes(task.config),
                free=find_free_memory(torch.device(runs.find_device())),
            ).run(tasks)
    if failures:
        (name, reason), more = failures[0], f", and {len(failures) - 1} more" if len(failures) > 1 else ""
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
    from auxrnn.cli import run  # noqa: PLC0415 - the command line runs itself

    with contextlib.ExitStack() as stack:
        result = stack.enter_context(log.open("a") if out is None else out.open("w"))
        stack.enter_context(contextlib.redirect_stdout(result))
        stack.enter_context(contextlib.redirect_stderr(stack.enter_context(log.open("a"))))
        code = run(words)
    if code == STOPPED:
        raise KeyboardInterrupt
    return code


def _list(arguments: ReproduceArguments) -> int:
    """Print every experiment with its runs and times, or the runs of those that are named."""
    folders = _find_folders(arguments)
    torch.set_num_threads(1)
    if arguments.names:
        listed = list_runs(_find_names(arguments.names), _find_scale(arguments), folders)
        print_json({"runs": [run._asdict() for run in listed]}) if arguments.json else _print_runs(listed)
        return 0
    summaries = []
    for name in EXPERIMENTS:
        for scale_name in get_args(ScaleName):
            asked = replace(arguments, scale=scale_name)
            summaries.append(summarize(name, _find_scale(asked), _find_folders(asked)))
            if not arguments.json:
                _print_summary(summaries[-1])
    if arguments.json:
        print_json({"experiments": [summary._asdict() for summary in summaries]})
    return 0


def _print_summary(summary: Summary) -> None:
    if summary.scale == get_args(ScaleName)[0]:
        print(f"{summary.name:<11}{summary.title}")
    left = summary.num_runs - summary.num_done
    time_left = f"{left} left, about {describe_seconds(summary.seconds_left)} on one worker" if left else "all done"
    print(f"{'':<11}{summary.scale:<7}{summary.num_runs:>4} runs, {summary.num_done} done; {time_left}", flush=True)


def _print_runs(listed: Sequence[ListedRun]) -> None:
    for run in listed:
        state = f"done in {describe_seconds(run.seconds)}" if run.is_done else f"about {describe_seconds(run.seconds)}"
        print(f"{run.place:<34} {state:<24} {run.name}")


@dataclass(frozen=True, kw_only=True)
class ReportArguments:
    """Options of `report`."""

    scale: ScaleName = "desk"
    """Which records to show: smoke, desk, full or paper."""
    results: Path = Path("results")
    """Folder with the records that `auxrnn reproduce` made."""
    out: Path | None = None
    """File to write (None: RESULTS/SCALE/index.html)."""
    pictures: Path | None = None
    """Folder to put every chart into as a PNG, to be shown elsewhere."""
    tables: Path | None = None
    """Folder to put every table into as Markdown."""
    json: Flag = False
    """Print one JSON object."""


def report(argv: Sequence[str]) -> int:
    """Make one HTML file of all tables and figures: ours beside the paper's, which claims hold, and what each cost.

    It is made from the committed records alone, opens offline and needs no other file.

    example:  auxrnn report --scale desk
    """
    arguments = parse(ReportArguments, argv, "report", description=report.__doc__ or "")
    folders = Folders(Path("unused"), arguments.results / arguments.scale / "records")
    if not folders.records.is_dir():
        raise UsageError(
            f"{folders.records} holds no records; `auxrnn reproduce all --scale {arguments.scale}` makes them"
        )
    with tempfile.TemporaryDirectory() as made_folder:
        scale = find_scale(arguments.scale, Path(made_folder))
    path = arguments.out or arguments.results / arguments.scale / "index.html"
    outcomes = [find_outcome(name, scale, folders) for name in PAGE_ORDER]
    reconstructions = read_reconstructions(arguments.results / arguments.scale / PICTURES)
    made = _find_facts(scale, folders)
    write_results_page(path, outcomes=outcomes, reconstructions=reconstructions, made=made)
    if arguments.pictures is not None:
        _write_pictures(arguments.pictures, outcomes)
    if arguments.tables is not None:
        for outcome in outcomes:
            write_aside(arguments.tables / f"{outcome.name}.md", outcome_markdown(outcome))
    verdicts = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
    if arguments.json:
        print_json({"page": str(path), "claims": dict(verdicts)})
    else:
        print(path)
    return 0


def _write_pictures(folder: Path, outcomes: Sequence[Outcome]) -> None:
    from auxrnn.report.charts import WIDE, chart_figure, to_png  # noqa: PLC0415 - matplotlib is slow to import

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
