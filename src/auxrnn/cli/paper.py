"""`auxrnn demo`, `auxrnn reproduce` and `auxrnn report`: the paper's method, tables and figures."""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from auxrnn.cli.commands import PAPER, Flag, Json, command, print_json, run, say
from auxrnn.config import ScaleName
from auxrnn.errors import UsageError, nearest

if TYPE_CHECKING:
    from auxrnn.executors.executor import TaskExecutor
    from auxrnn.experiments.jobs import Folders
    from auxrnn.experiments.scales import Scale
    from auxrnn.report.pages import PageFacts
    from auxrnn.report.results import Outcome

ALL = "all"
PICTURES = "reconstructions.npz"


@command(PAPER)
def demo(*, out: Path = Path("runs/demo"), seed: int = 0, smoke: Flag = False, json: Json = False) -> None:
    """See the method work on handwritten digits, in minutes.

    Trains four networks side by side with the same number of updates: an LSTM with full back-propagation, one whose
    gradients stop after 28 of 196 steps, and an r-LSTM and a p-LSTM with the same 28 steps. Ends with a table and a
    page with learning curves and pictures of what the r-LSTM remembers. If interrupted, call it again to continue.

    Args:
        out: Folder for the four runs and the page index.html.
        seed: Seed of every random draw.
        smoke: Only a few updates, to see that everything works; the numbers mean nothing.

    Examples:
        auxrnn demo --out runs/demo
    """
    from rich.console import Console
    from rich.table import Table

    from auxrnn.experiments import demo as experiment
    from auxrnn.progress import describe_seconds

    rows, _, page = experiment.run(out, seed=seed, is_smoke=smoke, console=Console(stderr=True))
    seconds = sum(row.seconds for row in rows)
    if json:
        print_json({row.name: row.accuracy for row in rows} | {"seconds": seconds})
        return
    title = "Handwritten digits, pixel by pixel"
    table = Table("network", "steps of gradient", "updates", "test accuracy %", title=title)
    for row in rows:
        window, schedule = str(row.config.loss.supervised_window), row.config.schedule
        table.add_row(row.title, window, f"{schedule.pretrain_steps} + {schedule.train_steps}", f"{row.accuracy:.1f}")
    Console().print(table)
    print(f"{describe_seconds(seconds)} of training in all; open {page} in a browser")


@command(PAPER, words="[NAMES...]")
def reproduce(  # noqa: PLR0913 - one for each option
    *names: str,
    scale: ScaleName = "desk",
    workers: int = 1,
    cluster: str | None = None,
    seeds: int | None = None,
    runs: Path = Path("runs/reproduce"),
    results: Path = Path("results"),
    list: Flag = False,  # noqa: A002 - the name of the flag
    json: Json = False,
) -> int:
    """Reproduce tables and figures of the paper (Trinh et al., 2018).

    Prints our numbers beside the published ones. Interrupted runs continue, finished ones are not repeated, and
    runs that several tables need are run once. Every number becomes a small record in the results folder, and each
    table a Markdown file beside them.

    Args:
        names: Tables and figures by name (table2, figure4), or all of them in order of importance: all.
        scale: How large: smoke (seconds), desk (hours on two cores), full (the paper's lengths and sizes with the fast
            recipe, days on two cores) or paper (the published settings).
        workers: Runs at a time, with one thread each.
        cluster: Do the runs on a Dask cluster: the address of its scheduler, tcp://HOST:8786, or its scheduler file.
            Needs the extra cluster: pip install 'auxrnn[cluster]'.
        seeds: Number of seeds of each table entry (default: as the scale says).
        runs: Folder for checkpoints and weights; an interrupted command continues from there.
        results: Folder for records and tables; a run that has its record in RESULTS/SCALE/records is not repeated.
        list: Show all experiments: their runs, what is done, and the estimated time of the rest on this machine.

    Examples:
        auxrnn reproduce --list
        auxrnn reproduce table2 --scale desk --workers 2
        auxrnn reproduce all --scale smoke
        auxrnn reproduce table2 --scale full --cluster tcp://host:8786
    """
    _check_counts(workers, seeds, cluster)
    import torch
    from rich.console import Console
    from rich.markdown import Markdown

    from auxrnn.experiments.jobs import Folders
    from auxrnn.experiments.scales import find_scale
    from auxrnn.report.pages import outcome_markdown

    def choose(scale: ScaleName, made: Path) -> tuple["Scale", Folders]:
        chosen = find_scale(scale, made)
        if seeds is not None:
            chosen = chosen._replace(seeds=tuple(range(seeds)), fewer_seeds=tuple(range(seeds)))
        return chosen, Folders(runs / scale, results / scale / "records")

    torch.set_num_threads(1)
    if list:
        # Names and estimates need no data, so what the smoke scale makes of it is thrown away.
        with tempfile.TemporaryDirectory() as made:
            scales = [choose(name, Path(made)) for name in ([scale] if names else get_args(ScaleName))]
        if names:
            _list_runs(_find_names(names), *scales[0], is_json=json)
        else:
            _list_experiments(scales, is_json=json)
        return 0
    found, (chosen, folders) = _find_names(names), choose(scale, runs.absolute() / "made")
    try:
        code = _work(found, chosen, folders, workers=workers, cluster=cluster)
    finally:
        # An interrupted command also leaves tables of all that is done.
        outcomes = _keep(found, chosen, folders)
    console = Console()
    # The widest table needs 100 columns.
    console.width = max(console.width, 100)
    for outcome in outcomes:
        if json:
            print_json({"name": outcome.name, "done": outcome.num_done, "planned": outcome.num_planned})
        else:
            console.print(Markdown(outcome_markdown(outcome)))
    return code


def _check_counts(workers: int, seeds: int | None, cluster: str | None) -> None:
    if workers < 1 or (seeds is not None and seeds < 1):
        raise UsageError("--workers and --seeds must be at least 1")
    if cluster is not None and workers != 1:
        raise UsageError("--workers is for this machine, and a cluster has workers of its own; leave out --workers")


def _keep(names: Sequence[str], scale: "Scale", folders: "Folders") -> list["Outcome"]:
    """Write what is known of some experiments into the results folder, and return it."""
    from auxrnn.experiments.catalog import find_jobs, find_outcome
    from auxrnn.experiments.remembering import keep_best

    keep_best(find_jobs(names, scale), folders, path=folders.records.parent / PICTURES)
    outcomes = [find_outcome(name, scale, folders) for name in names]
    _write_tables(folders.records.parent, outcomes)
    return outcomes


def _find_names(given: Sequence[str]) -> list[str]:
    from auxrnn.experiments.catalog import EXPERIMENTS

    if not given:
        raise UsageError(f"NAME is missing; give one or more of {', '.join(EXPERIMENTS)}, or all; --list shows them")
    for name in given:
        if name not in (*EXPERIMENTS, ALL):
            raise UsageError(f"unknown experiment {name!r}{nearest(name, (*EXPERIMENTS, ALL))}")
    return list(EXPERIMENTS) if ALL in given else list(dict.fromkeys(given))


def _work(names: Sequence[str], scale: "Scale", folders: "Folders", *, workers: int, cluster: str | None) -> int:
    """Do what is left; 1 if some of it failed."""
    import torch
    from rich.console import Console

    from auxrnn.environment import find_device
    from auxrnn.executors.executor import open_executor
    from auxrnn.experiments.catalog import find_jobs
    from auxrnn.experiments.estimates import estimate_bytes, estimate_seconds
    from auxrnn.experiments.jobs import plan
    from auxrnn.experiments.runner import Display, Runner
    from auxrnn.training.cost import find_free_memory

    jobs = find_jobs(names, scale)
    tasks = plan(jobs, folders)
    if not tasks:
        say(f"all {len(jobs)} runs are done already")
        return 0
    together = f"{workers} at a time" if cluster is None else "on the cluster"
    say(f"{len(jobs)} runs, {sum(folders.is_done(job.name) for job in jobs)} of them done already; {together}")
    is_smoke = scale.name == "smoke"
    seconds = {} if is_smoke else estimate_seconds(tasks, folders)
    with (
        _open_here(folders)
        if is_smoke and cluster is None
        else open_executor(
            folders.runs, workers=workers, free=find_free_memory(torch.device(find_device())), cluster=cluster
        ) as executor
    ):
        display = Display(tasks, executor, Console(stderr=True), seconds=seconds)
        runner = Runner(folders, executor, display, needs=lambda task: estimate_bytes(task.config))
        failures = runner.run(tasks)
    if failures:
        name, reason = next(iter(failures.items()))
        more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
        say(f"auxrnn: {name} failed ({reason}){more}; the same command tries again what is missing")
    return 1 if failures else 0


def _open_here(folders: "Folders") -> "TaskExecutor":
    from auxrnn.executors.local import LocalExecutor

    return LocalExecutor(folders.runs, workers=1, command=_run_here, executor=HereExecutor())


class HereExecutor(Executor):
    """Runs what is submitted at once, in this process: what takes no second is not worth starting one for."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a function to its end."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _run_here(words: Sequence[str], *, log: Path, out: Path | None, should_stop: Callable[[], bool]) -> int:  # noqa: ARG001 - stops by KeyboardInterrupt
    with (
        log.open("a") as said,
        log.open("a") if out is None else out.open("w") as result,
        contextlib.redirect_stdout(result),
        contextlib.redirect_stderr(said),
    ):
        code = run(words)
    if code == 130:
        raise KeyboardInterrupt
    return code


def _list_runs(names: Sequence[str], scale: "Scale", folders: "Folders", *, is_json: bool) -> None:
    from auxrnn.experiments.estimates import list_runs
    from auxrnn.progress import describe_seconds

    listed = list_runs(names, scale, folders)
    if is_json:
        print_json({"runs": [run._asdict() for run in listed]})
        return
    for each in listed:
        state = f"{'done in' if each.is_done else 'about'} {describe_seconds(each.seconds)}"
        print(f"{each.place:<34} {state:<24} {each.name}")


def _list_experiments(scales: Sequence[tuple["Scale", "Folders"]], *, is_json: bool) -> None:
    """Print every experiment at every scale: its runs, what is done, and the time of what is left."""
    from auxrnn.experiments.catalog import EXPERIMENTS, find_title
    from auxrnn.experiments.estimates import list_runs
    from auxrnn.progress import describe_seconds

    def show(text: str) -> None:
        if not is_json:
            print(text, flush=True)

    summaries = []
    for name in EXPERIMENTS:
        title, _ = find_title(name)
        show(f"{name:<11}{title}")
        for scale, folders in scales:
            listed = list_runs([name], scale, folders)
            left = [run.seconds for run in listed if not run.is_done]
            counts = {"num_runs": len(listed), "num_done": len(listed) - len(left), "seconds_left": sum(left)}
            summaries.append({"name": name, "title": title, "scale": scale.name} | counts)
            time_left = f"{len(left)} left, about {describe_seconds(sum(left))} on one worker" if left else "all done"
            show(f"{'':<11}{scale.name:<7}{len(listed):>4} runs, {counts['num_done']} done; {time_left}")
    if is_json:
        print_json({"experiments": summaries})


@command(PAPER)
def report(
    *,
    scale: ScaleName = "desk",
    results: Path = Path("results"),
    out: Path | None = None,
    pictures: Path | None = None,
    tables: Path | None = None,
    json: Json = False,
) -> None:
    """Build one HTML page of all reproduced results.

    It shows all tables and figures with our numbers beside the paper's, which claims hold, and what each cost. It
    is made from the records alone, opens offline and needs no other file.

    Args:
        scale: Which records to show: smoke, desk, full or paper.
        results: Folder with the records made by `auxrnn reproduce`.
        out: File to write (default: RESULTS/SCALE/index.html).
        pictures: Folder for a PNG of every chart.
        tables: Folder for a Markdown file of every table.

    Examples:
        auxrnn report --scale desk
    """
    from auxrnn.experiments.catalog import PAGE_ORDER, find_outcome
    from auxrnn.experiments.jobs import Folders
    from auxrnn.experiments.scales import find_scale
    from auxrnn.report.pages import write_results_page
    from auxrnn.report.records import read_reconstructions

    folders = Folders(Path("unused"), results / scale / "records")
    if not folders.records.is_dir():
        raise UsageError(f"{folders.records} holds no records; `auxrnn reproduce all --scale {scale}` makes them")
    with tempfile.TemporaryDirectory() as made_folder:
        chosen = find_scale(scale, Path(made_folder))
    path = out or results / scale / "index.html"
    outcomes = [find_outcome(name, chosen, folders) for name in PAGE_ORDER]
    reconstructions = read_reconstructions(results / scale / PICTURES)
    write_results_page(path, outcomes=outcomes, reconstructions=reconstructions, made=_find_facts(chosen, folders))
    if pictures is not None:
        _write_pictures(pictures, outcomes)
    if tables is not None:
        _write_tables(tables, outcomes)
    if json:
        verdicts = Counter(claim.verdict for outcome in outcomes for claim in outcome.claims)
        print_json({"page": str(path), "claims": dict(verdicts)})
    else:
        print(path)


def _write_tables(folder: Path, outcomes: Sequence["Outcome"]) -> None:
    from auxrnn.files import write_aside
    from auxrnn.report.pages import outcome_markdown

    for outcome in outcomes:
        write_aside(folder / f"{outcome.name}.md", outcome_markdown(outcome))


def _write_pictures(folder: Path, outcomes: Sequence["Outcome"]) -> None:
    from auxrnn.files import write_aside
    from auxrnn.report.charts import WIDE, chart_figure, to_png

    for outcome in outcomes:
        for number, chart in enumerate(outcome.charts, start=1):
            picture = to_png(chart_figure(chart, width=WIDE, has_title=True))
            write_aside(folder / f"{outcome.name}-{number}.png", picture)


def _find_facts(scale: "Scale", folders: "Folders") -> "PageFacts":
    """Say what the records were made with, from the records themselves; where they differ, all of it."""
    from auxrnn.experiments.catalog import PAGE_ORDER, find_jobs
    from auxrnn.report.pages import PageFacts
    from auxrnn.report.records import read_record

    found = [record for path in sorted(folders.records.glob("*.json")) if (record := read_record(path)) is not None]
    environments = [record.environment for record in found]
    versions = {(name, version) for environment in environments for name, version in environment["versions"].items()}
    planned = {job.name for job in find_jobs(PAGE_ORDER, scale)}
    shown = [record for record in found if record.name in planned]
    return PageFacts(
        scale=scale.name,
        scale_summary=f"{scale.summary.capitalize()}.",
        num_done=len(shown),
        num_planned=len(planned),
        seconds=sum(record.seconds for record in shown),
        versions=sorted(versions | {("python", environment["python"]) for environment in environments}),
        commit=", ".join(sorted({str(environment["commit"]) for environment in environments})),
    )
