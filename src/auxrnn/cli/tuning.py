"""`auxrnn tune`."""

import math
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from auxrnn.cli.commands import (
    PRETRAIN_LENGTHS,
    TRAIN_LENGTHS,
    USE,
    ConfigOption,
    Json,
    RecipeOption,
    command,
    load_data,
    print_json,
    say,
)
from auxrnn.config import RunConfig, change
from auxrnn.errors import UsageError
from auxrnn.files import expand, lock, write_aside
from auxrnn.presets import DEFAULT_RECIPE, RecipeName

if TYPE_CHECKING:
    from auxrnn.tuning.study import Attempt, Running, Tuning
    from auxrnn.tuning.trials import TrialResult

SETTINGS, PAGE = "best.toml", "index.html"


@command(USE, has_layers=True)
def tune(  # noqa: PLR0913 - one for each option
    run: RunConfig,
    *,
    out: Path | None = None,
    minutes: float = 60.0,
    workers: int = 1,
    cluster: str | None = None,
    recipe: RecipeOption = DEFAULT_RECIPE,
    _config: ConfigOption = None,
    given: Annotated[tuple[str, ...], Parameter(show=False)] = (),
    json: Json = False,
) -> int:
    """Search the settings that matter on a validation split.

    Short trainings try learning rate, auxiliary loss and its weight, windows, segment length, hidden size, gate biases
    and readout, the defaults first; what does badly is stopped early. The best three and the defaults are trained again
    with two other seeds, and the best of these for longer. The test split is looked at once, for the winner alone.

    Takes all options of `auxrnn train`: what a flag says is fixed, all else is searched; a --config only says where to
    start. The same command continues a study that was stopped, and more --minutes extend it. OUT gets the study
    (study.db), the best settings (best.toml), the winner (best, a run) and a page (index.html). Needs the extra tune:
    pip install 'auxrnn[tune]'.

    Args:
        out: Folder of the study (default: runs/tune-DATA).
        minutes: Minutes that the whole study may take; a trial has a fortieth of them.
        workers: Trainings at a time; on this machine they share the threads.
        cluster: Train on a Dask cluster, WORKERS at a time: the address of its scheduler, tcp://HOST:8786, or its
            scheduler file. Needs the extra cluster: pip install 'auxrnn[cluster]'.

    Examples:
        auxrnn tune digits --minutes 30 --workers 2
        auxrnn tune sensors.npz --labels-per-class 10 --objective reconstruct
        auxrnn train sensors.npz --config runs/tune-sensors/best.toml --minutes 60
    """
    began = time.monotonic()
    try:
        import optuna  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UsageError("auxrnn tune needs Optuna; pip install 'auxrnn[tune]'") from error
    from auxrnn.executors.executor import open_executor
    from auxrnn.runs import settle
    from auxrnn.tuning.settings import begin
    from auxrnn.tuning.study import Workshop, opened

    if workers < 1:
        raise UsageError("--workers must be at least 1")
    if not 0 < minutes < math.inf:
        raise UsageError(f"minutes is {minutes}; it must be a number above 0")
    asked = _ask(run, given, 1 if cluster else workers)
    folder = expand(out or Path("runs", f"tune-{Path(run.data.data).stem}")).absolute()
    dataset = load_data(asked.data)
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder), opened(folder) as study:
        tuning = begin(study, dataset, settle(asked), fixed=given, folder=folder, minutes=minutes, say=say)
        tuning.began = began
        if tuning.is_done:
            say(f"{folder} has used its {minutes:g} minutes already; more --minutes extend the study")
            return _print_result(tuning, is_json=json)
        _announce(tuning)
        try:
            with open_executor(folder, workers=workers, cluster=cluster) as executor, StudyDisplay(tuning) as display:
                Workshop(tuning, executor, workers, display).work()
        except KeyboardInterrupt:
            say(f"stopped after {len(tuning.finished)} whole trials; the same command continues the study")
            return 130
        finally:
            _write(tuning, settle(asked), recipe)
        return _print_result(tuning, is_json=json)


def _ask(run: RunConfig, given: Sequence[str], workers: int) -> RunConfig:
    """Return the settings where a study starts: no length, no look at the test split, and a validation split."""
    lengths = PRETRAIN_LENGTHS | TRAIN_LENGTHS
    if refused := sorted(lengths.intersection(given)):
        raise UsageError(f"{refused[0]} has no effect here: the minutes plan the length of every trial; leave it out")
    values: dict[str, Any] = dict.fromkeys(lengths) | {"evaluate_all": False, "evaluate_test": False}
    if not run.data.validation_fraction:
        values["validation_fraction"] = "auto"
    if run.threads is None:
        import torch

        values["threads"] = max(1, torch.get_num_threads() // workers)
    return change(run, **values)


def _announce(tuning: "Tuning") -> None:
    from auxrnn.progress import describe_seconds

    names = ", ".join(f"--{name.replace('_', '-')}" for name in tuning.space)
    say(f"searching {names}")
    sizes = tuning.known["sizes"]
    labeled = f"{sizes['labeled']:,} sequences with a label"
    done = f"; {len(tuning.trials)} trials are there already" if tuning.seconds_before else ""
    say(
        f"trials of {describe_seconds(tuning.trial_seconds)} on {labeled}, compared on"
        f" {sizes['validation']:,} others; {describe_seconds(tuning.seconds_left)} left{done}"
    )


class StudyDisplay:
    """Shows a study at work: a bar of its seconds on a terminal, and a line for each training that ends."""

    def __init__(self, tuning: "Tuning") -> None:
        from rich.console import Console

        from auxrnn.progress import make_bars

        self.tuning, self.console = tuning, Console(stderr=True)
        self.bars = make_bars(self.console)
        self.bar = self.bars.add_task("seconds", total=round(60 * tuning.minutes), status="")

    def __enter__(self) -> "StudyDisplay":
        self.bars.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.bars.stop()

    def update(self, active: Iterable["Running"], seconds_left: float) -> None:
        """Show what is running, and how far it is."""
        told = [
            f"{each.attempt.title}{f' {each.curve[len(each.curve)]:.1f} %' if each.curve else ''}" for each in active
        ]
        self.bars.update(self.bar, completed=60 * self.tuning.minutes - seconds_left, status=", ".join(told))

    def end(self, attempt: "Attempt", result: "TrialResult", seconds_left: float) -> None:
        """Say how a training ended, what is best so far, and how much time is left."""
        from auxrnn.progress import describe_seconds

        found = {
            "complete": f"{result.accuracy:.1f} % of the validation split",
            "pruned": f"stopped early at {max(result.curve.values(), default=0):.1f} %",
            "failed": f"failed: {result.reason}",
        }[result.state]
        best = self.tuning.find_leader()
        so_far = f"; best {best[1].accuracy:.1f} % by trial {best[0].number}" if best else ""
        left = f"  ({describe_seconds(seconds_left)} left{so_far})" if attempt.kind != "winner" else ""
        self.console.print(f"{attempt.title}  {found}{left}", highlight=False, markup=False, soft_wrap=True)


def _write(tuning: "Tuning", asked: RunConfig, recipe: RecipeName) -> None:
    """Write the best settings and the page, of an interrupted study as far as it came."""
    from auxrnn.report.tuning_page import write_tuning_page
    from auxrnn.tuning.settings import find_settings, summarize, to_toml

    found = tuning.find_winner()
    if found is None:
        return
    best, score = found
    made_by = shlex.join(["auxrnn", *sys.argv[1:]])
    comments = (f"Trial {best.number} of {made_by}:", f"{score.accuracy:.1f} % of the validation split correct.")
    settings = find_settings(asked, recipe, best)
    write_aside(tuning.folder / SETTINGS, to_toml(settings, comments=comments))
    write_tuning_page(tuning.folder / PAGE, study=summarize(tuning), command=made_by)


def _print_result(tuning: "Tuning", *, is_json: bool) -> int:
    from auxrnn.report.tuning_page import describe_setting
    from auxrnn.tuning.settings import summarize
    from auxrnn.tuning.study import BEST

    study, folder = summarize(tuning), tuning.folder
    best, first = study.best, study.trials[0]
    accuracy = None if study.look is None else study.look.accuracy
    if is_json:
        scores = {
            "validation_accuracy": best.mean,
            "defaults_validation_accuracy": first.mean,
            "test_accuracy": accuracy,
        }
        print_json(
            {"study": str(folder), "trials": len(study.trials), "best": best.number}
            | scores
            | {"settings": dict(best.settings), "importances": dict(study.importances)}
        )
        return 0
    for name, value in best.settings.items():
        importance = f"  importance {study.importances[name]:.2f}" if study.importances else ""
        default = f"(default {describe_setting(first.settings[name])})"
        print(f"{name:<18}{describe_setting(value):<12}{default:<24}{importance}".rstrip())
    on_test = "" if accuracy is None else f", test {accuracy:.1f} %"
    defaults = "the defaults failed" if first.mean is None else f"defaults {first.mean:.1f} %"
    print(f"{folder / BEST}  validation {best.mean:.1f} % ({defaults}){on_test}")
    print(f"{folder / SETTINGS}\n{folder / PAGE}")
    return 0
