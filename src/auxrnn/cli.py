"""The command line: one function per command; parses, calls, prints. Results on stdout, progress on stderr."""

import contextlib
import io
import json
import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.config import DataConfig, RunConfig, nearest, read_toml, unflatten
from auxrnn.data.batches import in_order
from auxrnn.data.datasets import Split, dataset_names
from auxrnn.data.images import read_image_files
from auxrnn.data.sources import search_folders
from auxrnn.errors import RunError, UsageError
from auxrnn.experiments import demo as demo_experiment
from auxrnn.progress import TrainingProgress, describe_scores, describe_seconds
from auxrnn.training.cost import estimate_time
from auxrnn.training.evaluate import evaluate, predict_probabilities
from auxrnn.training.loop import Session

Arguments = TypeVar("Arguments")
RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
JsonFlag = Annotated[bool, tyro.conf.FlagCreatePairsOff]

SUMMARY = """\
auxrnn classifies very long sequences with recurrent networks that learn to remember
through auxiliary losses (Trinh et al., 2018), with short back-propagation.

commands:
  demo       see it work: four networks side by side on handwritten digits (minutes)
  train      train a network on a dataset into a run folder
  resume     continue a run that was stopped, to the same result
  evaluate   accuracy, confusion and recall of a finished run
  predict    classes and probabilities of images or arrays
  info       versions, threads, device, where data is cached

examples:
  auxrnn demo
  auxrnn train mnist --image-size 14 --supervised-window 28 --out runs/first
  auxrnn evaluate runs/first
  auxrnn predict runs/first digit.png

`auxrnn COMMAND --help` explains each command and its options.
"""


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Options of `train` beside those of the run itself."""

    run: RunConfig
    out: Path | None = None
    """Run folder to make (default: runs/DATA-OBJECTIVE-1, or the next free number)."""
    config: Path | None = None
    """TOML file with defaults for these options (keys named as the flags), or a shipped one: paper, mnist14."""
    json: JsonFlag = False
    """Print the result as one JSON object."""


def train(argv: Sequence[str]) -> int:
    """Train a network on a dataset: plain LSTM, r-LSTM or p-LSTM.

    An r-LSTM on MNIST averaged down to 14x14, gradients of 28 steps:

      auxrnn train mnist --config mnist14 --out runs/mnist14

    The paper's settings, as long as the paper trained:  auxrnn train mnist --config paper
    Ctrl-C stops it and keeps what it has; `auxrnn resume` goes on.
    """
    arguments = _parse(TrainArguments, argv, "train", default=_train_defaults(argv), description=train.__doc__)
    config = runs.settle(arguments.run)
    folder = arguments.out or _next_free_folder(config)
    runs.check_free(folder)
    dataset = runs.load_dataset(config)
    session = runs.open_session(config, dataset, folder)
    _announce(config, session)
    runs.create(config, dataset, folder)
    return _train_to_end(session, folder, is_json=arguments.json)


@dataclass(frozen=True, kw_only=True)
class ResumeArguments:
    """Options of `resume`."""

    run: RunFolder
    """Run folder that `auxrnn train` made."""
    json: JsonFlag = False
    """Print the result as one JSON object."""


def resume(argv: Sequence[str]) -> int:
    """Continue a run that was stopped, from its newest checkpoint, to the same bytes as if it never was.

    example:  auxrnn resume runs/mnist14
    """
    arguments = _parse(ResumeArguments, argv, "resume", description=resume.__doc__)
    config = runs.read_config(arguments.run)
    if runs.is_finished(arguments.run):
        _say(f"{arguments.run} is finished already; `auxrnn evaluate {arguments.run}` shows its results")
        return 0
    session = runs.open_session(config, runs.load_dataset(config), arguments.run)
    return _train_to_end(session, arguments.run, is_json=arguments.json)


@dataclass(frozen=True, kw_only=True)
class EvaluateArguments:
    """Options of `evaluate`."""

    run: RunFolder
    """Run folder of a finished run."""
    split: runs.SplitName = "test"
    """Part of the dataset to classify."""
    weights: runs.Weights = "final"
    """The final weights, or the best on the validation split."""
    data_dir: Path | None = None
    """Folder that holds the dataset's files, where it is not that of the training."""
    json: JsonFlag = False
    """Print one JSON object: accuracy (percent), loss, examples, confusion, recall."""


def evaluate_command(argv: Sequence[str]) -> int:
    """Give accuracy, loss, confusion matrix and recall per class of a finished run.

    example:  auxrnn evaluate runs/mnist14 --json
    """
    arguments = _parse(EvaluateArguments, argv, "evaluate", description=evaluate_command.__doc__)
    trained = runs.load_run(arguments.run, weights=arguments.weights)
    split = runs.load_split(trained.config, arguments.split, data_dir=arguments.data_dir)
    evaluation = evaluate(trained.network, in_order(split, trained.config.schedule.batch_size))
    if arguments.json:
        recall = dict(zip(trained.card.class_names, evaluation.recall, strict=True))
        confusion = evaluation.confusion_CC.tolist()
        _print_json(
            {
                "accuracy": evaluation.accuracy,
                "loss": evaluation.loss,
                "examples": evaluation.num_examples,
                "confusion": confusion,
                "recall": recall,
            }
        )
        return 0
    print(f"accuracy {evaluation.accuracy:.2f} %   loss {evaluation.loss:.4f}   {evaluation.num_examples} examples")
    table = Table("true \\ answer", *trained.card.class_names, "recall %")
    for name, counts, recall_percent in zip(
        trained.card.class_names, evaluation.confusion_CC.tolist(), evaluation.recall, strict=True
    ):
        table.add_row(name, *map(str, counts), "-" if recall_percent is None else f"{recall_percent:.1f}")
    Console().print(table)
    return 0


@dataclass(frozen=True, kw_only=True)
class PredictArguments:
    """Options of `predict`."""

    run: RunFolder
    """Run folder of a finished run."""
    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILES")]
    """Images (PNG, JPEG, ...) or arrays (.npy, .npz) of the size the run was trained on."""
    weights: runs.Weights = "final"
    """The final weights, or the best on the validation split."""
    json: JsonFlag = False
    """Print one JSON object: for each sequence its file, class and probabilities."""


def predict(argv: Sequence[str]) -> int:
    """Give the class and the probabilities of images or arrays that the run was not trained on.

    example:  auxrnn predict runs/mnist14 digit.png more.npy --json
    """
    arguments = _parse(PredictArguments, argv, "predict", description=predict.__doc__)
    if not arguments.files:
        raise UsageError("no files to predict; name images or arrays: auxrnn predict RUN digit.png")
    trained = runs.load_run(arguments.run, weights=arguments.weights)
    inputs = read_image_files(arguments.files, trained.card.image_format)
    split = Split(inputs.x_NTD, np.zeros(len(inputs.names), dtype=np.int64))
    probabilities = predict_probabilities(trained.network, in_order(split, trained.config.schedule.batch_size)).tolist()
    names = trained.card.class_names
    rows = [
        {"file": name, "class": names[row.index(max(row))], "probabilities": dict(zip(names, row, strict=True))}
        for name, row in zip(inputs.names, probabilities, strict=True)
    ]
    if arguments.json:
        _print_json({"predictions": rows})
    for row in [] if arguments.json else rows:
        print(f"{row['file']}\t{row['class']}\t{max(row['probabilities'].values()):.4f}")
    return 0


@dataclass(frozen=True, kw_only=True)
class DemoArguments:
    """Options of `demo`."""

    out: Path = Path("runs/demo")
    """Folder for the four runs and the page index.html."""
    seed: int = 0
    """Seed of every draw."""
    smoke: JsonFlag = False
    """Only a few updates, to see that everything works; the figures mean nothing."""
    json: JsonFlag = False
    """Print one JSON object: accuracies in percent on the test split, and seconds."""


def demo(argv: Sequence[str]) -> int:
    """See the method work on handwritten digits, in minutes on two cores.

    Trains four networks side by side with the same number of updates: an LSTM with full back-propagation, one whose
    gradients stop after 28 of 196 steps, an r-LSTM and a p-LSTM with the same 28 steps. Ends with a table and a page
    with the curves and pictures of what the r-LSTM remembers. Stopped, it goes on where it was when called again.

    example:  auxrnn demo --out runs/demo
    """
    arguments = _parse(DemoArguments, argv, "demo", description=demo.__doc__)
    result = demo_experiment.run(arguments.out, seed=arguments.seed, is_smoke=arguments.smoke, console=_error_console())
    if arguments.json:
        _print_json(result.accuracies | {"seconds": result.seconds})
        return 0
    table = Table(
        "network", "steps of gradient", "updates", "test accuracy %", title="Handwritten digits, pixel by pixel"
    )
    for row in result.rows:
        table.add_row(row.title, str(row.window), f"{row.pretrain_steps} + {row.train_steps}", f"{row.accuracy:.1f}")
    Console().print(table)
    print(f"{describe_seconds(result.seconds)}; open {result.page} in a browser")
    return 0


@dataclass(frozen=True, kw_only=True)
class InfoArguments:
    """Options of `info`."""

    json: JsonFlag = False
    """Print one JSON object."""


def info(argv: Sequence[str]) -> int:
    """Give versions, threads, device and where data is cached.

    example:  auxrnn info --json
    """
    arguments = _parse(InfoArguments, argv, "info", description=info.__doc__)
    config = runs.settle(RunConfig(data=DataConfig(data="digits")))
    facts = runs.describe_environment(config)
    facts["data"] = {name: str(search_folders(name)[0]) for name in dataset_names()}
    del facts["command"]
    if arguments.json:
        _print_json(facts)
    for name, value in {} if arguments.json else facts.items():
        text = ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        print(f"{name:<10}{text}")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "train": train,
    "resume": resume,
    "evaluate": evaluate_command,
    "predict": predict,
    "info": info,
}


def main() -> None:
    """Run one command and end the process with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command and give its exit code; mistakes and failures become one sentence on stderr."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(SUMMARY, end="")
        return 0 if argv else 2
    try:
        if argv[0] not in COMMANDS:
            raise UsageError(f"unknown command {argv[0]!r}{nearest(argv[0], COMMANDS)}")
        return COMMANDS[argv[0]](argv[1:])
    except UsageError as error:
        _say(f"auxrnn: {error}")
        return 2
    except RunError as error:
        _say(f"auxrnn: {error}")
        return 1
    except KeyboardInterrupt:
        _say("auxrnn: stopped")
        return 130


def _parse(
    kind: type[Arguments],
    argv: Sequence[str],
    command: str,
    *,
    description: str | None,
    default: Arguments | None = None,
) -> Arguments:
    """Parse the arguments of a command; what tyro has to say against them becomes one sentence."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return tyro.cli(
                kind,
                prog=f"auxrnn {command}",
                description=description,
                args=list(argv),
                default=tyro.MISSING_NONPROP if default is None else default,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except SystemExit as stop:
        if stop.code == 0:
            raise
        raise UsageError(_flatten_box(printed.getvalue()) + f"; see auxrnn {command} --help") from stop
    except ValueError as error:
        raise UsageError(str(error)) from error


def _flatten_box(text: str) -> str:
    """Take the words out of the frame that tyro draws around its messages."""
    lines = [line.strip("│╭╮╰╯─ ") for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("For full helptext", "auxrnn "))]
    lines = [
        re.sub(r"^(Parsing error|Required options|Unrecognized options|Invalid choice)\W*$", r"\1:", line)
        for line in lines
    ]
    return re.sub(r"\s+", " ", " ".join(lines)).rstrip(".")


def _train_defaults(argv: Sequence[str]) -> TrainArguments:
    """Give the defaults of `train`: those of the config file, if one is named; only DATA must still be given."""
    values = _config_file(argv)
    config = unflatten({"data": ""} | values)
    if "data" not in values:
        config = replace(config, data=replace(config.data, data=tyro.MISSING))
    return TrainArguments(run=config)


def _config_file(argv: Sequence[str]) -> dict[str, Any]:
    """Read the defaults that `--config` names, before the flags are parsed."""
    for index, word in enumerate(argv):
        if word == "--config" and index + 1 < len(argv):
            return read_toml(Path(argv[index + 1]))
        if word.startswith("--config="):
            return read_toml(Path(word.removeprefix("--config=")))
    return {}


def _next_free_folder(config: RunConfig) -> Path:
    stem = f"{config.data.data}-{config.loss.objective}"
    number = 1
    while Path("runs", f"{stem}-{number}").exists():
        number += 1
    return Path("runs", f"{stem}-{number}")


def _announce(config: RunConfig, session: Session) -> None:
    """Say in two lines what will be done and about how long it takes here; a clipped segment in one more."""
    names = {"none": "LSTM", "reconstruct": "r-LSTM", "predict": "p-LSTM"}
    num_examples, num_steps = session.batches.split.x_NTD.shape[:2]
    num_weights = sum(parameter.numel() for parameter in session.network.parameters())
    _say(
        f"{names[config.loss.objective]} on {config.data.data}: {num_examples:,} sequences of {num_steps} steps,"
        f" {num_weights / 1e6:.2f}M weights, gradients of {config.loss.supervised_window} steps"
    )
    estimate = estimate_time(session)
    plan = " + ".join(f"{phase.num_steps:,} {phase.name}" for phase in session.phases)
    _say(f"{plan} updates, about {describe_seconds(estimate.seconds)} here on {config.threads} thread(s)")
    longest = num_steps - 1
    if config.loss.objective != "none" and config.segments.segment_length > longest:
        _say(f"segments of {config.segments.segment_length} are longer than the data: clipped to {longest}")


def _train_to_end(session: Session, folder: Path, *, is_json: bool) -> int:
    progress = TrainingProgress(session.phases, _error_console())
    with runs.lock(folder), _stopping(session), progress:
        session.observe = progress.observe
        is_done = runs.train_or_resume(session)
    if not is_done:
        _say(f"stopped; `auxrnn resume {folder}` goes on from here")
        return 130
    if is_json:
        _print_json({"run": str(folder)} | session.scores)
    else:
        print(f"{folder}  {describe_scores(session.scores)}")
    return 0


@contextlib.contextmanager
def _stopping(session: Session) -> Iterator[None]:
    """Let the first Ctrl-C stop the training after the update under way, and the second one at once."""
    asked = [False]

    def ask(_signum: int, _frame: object) -> None:
        if asked[0]:
            raise KeyboardInterrupt
        asked[0] = True
        _say("stopping after this update; Ctrl-C again stops at once")

    session.should_stop = lambda: asked[0]
    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _error_console() -> Console:
    return Console(stderr=True)
