"""The command line: one function per command; parses, calls, prints. Results on stdout, progress on stderr."""

import contextlib
import io
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.arguments import last_value, parse
from auxrnn.bench.pages import start_with_large_pages
from auxrnn.config import DataConfig, RunConfig, name_fields, nearest, read_toml, unflatten
from auxrnn.data.batches import in_order
from auxrnn.data.datasets import Split
from auxrnn.data.images import read_image_files
from auxrnn.data.sources import search_folders
from auxrnn.errors import RunError, UsageError
from auxrnn.heap import keep_freed_memory
from auxrnn.progress import TrainingProgress, describe_scores, describe_seconds
from auxrnn.report.records import read_events
from auxrnn.streaming import Stream, read_steps
from auxrnn.training.cost import estimate_time
from auxrnn.training.evaluate import Evaluation, evaluate, predict_probabilities
from auxrnn.training.loop import Session

RunFolder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]

MOST_COLUMNS = 12
SUMMARY = """\
auxrnn classifies very long sequences with recurrent networks that learn to remember
through auxiliary losses (Trinh et al., 2018), with short back-propagation.

commands:
  demo       see it work: four networks side by side on handwritten digits (minutes)
  train      train a network on a dataset into a run folder
  resume     continue a run that was stopped, to the same result
  evaluate   accuracy, confusion and recall of a finished run
  predict    classes and probabilities of images or arrays
  bench      how fast this is here, beside what people would use instead
  info       versions, threads, device, which LSTM runs, where data is cached

examples:
  auxrnn demo
  auxrnn train mnist --config mnist14 --out runs/first
  auxrnn evaluate runs/first
  auxrnn predict runs/first digit.png

`auxrnn COMMAND --help` explains each command and its options.
"""


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Options of `train` beside those of the run itself."""

    run: RunConfig
    out: Path | None = None
    """Run folder to make (None: runs/DATA-OBJECTIVE-1, or the next free number)."""
    config: Path | None = None
    """TOML file with defaults for these options (keys named as the flags), or a shipped one: paper, mnist14."""
    json: Flag = False
    """Print the result as one JSON object."""


def train(argv: Sequence[str]) -> int:
    """Train a network on a dataset: plain LSTM, r-LSTM or p-LSTM.

    An r-LSTM on MNIST averaged down to 14x14, gradients of 28 steps:

      auxrnn train mnist --config mnist14 --out runs/mnist14

    The paper's settings, as long as the paper trained:  auxrnn train mnist --config paper

    Ctrl-C stops it and keeps what it has; `auxrnn resume` goes on.
    """
    arguments = parse_train(argv)
    config = runs.settle(arguments.run)
    folder = arguments.out or _next_free_folder(config)
    runs.check_free(folder)
    dataset = runs.load_dataset(config)
    session = runs.open_session(config, dataset, folder)
    runs.create(config, dataset, folder)
    _announce(config, session)
    return _train_to_end(session, folder, is_json=arguments.json)


def parse_train(argv: Sequence[str]) -> TrainArguments:
    """Give what `auxrnn train` is asked for: flags, over the values of a config file, over the defaults."""
    arguments = parse(TrainArguments, argv, "train", default=_train_defaults(argv), description=train.__doc__ or "")
    if not arguments.run.data.data:
        raise UsageError("DATA is missing, here and in the config file; name a dataset: auxrnn train digits")
    return arguments


@dataclass(frozen=True, kw_only=True)
class ResumeArguments:
    """Options of `resume`."""

    run: RunFolder
    """Run folder that `auxrnn train` made."""
    json: Flag = False
    """Print the result as one JSON object."""


def resume(argv: Sequence[str]) -> int:
    """Continue a run that was stopped, from its newest checkpoint, to the same bytes as if it never was.

    example:  auxrnn resume runs/mnist14
    """
    arguments = parse(ResumeArguments, argv, "resume", description=resume.__doc__ or "")
    config = runs.read_config(arguments.run)
    if runs.is_finished(arguments.run):
        _say(f"{arguments.run} is finished already; `auxrnn evaluate {arguments.run}` shows more of its results")
        _print_result(arguments.run, is_json=arguments.json)
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
    json: Flag = False
    """Print one JSON object: accuracy (percent), loss, examples, confusion, recall."""


def evaluate_command(argv: Sequence[str]) -> int:
    """Give accuracy, loss, confusion matrix and recall per class of a finished run.

    example:  auxrnn evaluate runs/mnist14 --json
    """
    arguments = parse(EvaluateArguments, argv, "evaluate", description=evaluate_command.__doc__ or "")
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
    _print_confusion(trained.card.class_names, evaluation)
    return 0


@dataclass(frozen=True, kw_only=True)
class PredictArguments:
    """Options of `predict`."""

    run: RunFolder
    """Run folder of a finished run."""
    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILES")]
    """Images (PNG, JPEG, ...) or arrays (.npy, .npz) of the size the run was trained on; - with --stream."""
    weights: runs.Weights = "final"
    """The final weights, or the best on the validation split."""
    stream: Flag = False
    """Read steps from standard input and say after each what the sequence looks like so far: one step a line, its
    values as the network reads them (pixels from 0 to 1); an empty line begins another sequence."""
    json: Flag = False
    """Print one JSON object: for each sequence its file, class and probabilities; with --stream, one a step."""


def predict(argv: Sequence[str]) -> int:
    """Give the class and the probabilities of images or arrays that the run was not trained on.

    example:  auxrnn predict runs/mnist14 digit.png more.npy --json

    Steps as they come in:  sensor | auxrnn predict runs/mnist14 - --stream
    """
    arguments = parse(PredictArguments, argv, "predict", description=predict.__doc__ or "")
    is_standard_input = arguments.files == (Path("-"),)
    if arguments.stream != is_standard_input:
        raise UsageError("--stream reads standard input, and only --stream does: auxrnn predict RUN - --stream")
    if not arguments.files:
        raise UsageError("no files to predict; name images or arrays: auxrnn predict RUN digit.png")
    trained = runs.load_run(arguments.run, weights=arguments.weights)
    if arguments.stream:
        return _predict_stream(trained, is_json=arguments.json)
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
    smoke: Flag = False
    """Only a few updates, to see that everything works; the figures mean nothing."""
    json: Flag = False
    """Print one JSON object: accuracies in percent on the test split, and seconds."""


def demo(argv: Sequence[str]) -> int:
    """See the method work on handwritten digits, in minutes on two cores.

    Trains four networks side by side with the same number of updates: an LSTM with full back-propagation, one whose
    gradients stop after 28 of 196 steps, an r-LSTM and a p-LSTM with the same 28 steps. Ends with a table and a page
    with the curves and pictures of what the r-LSTM remembers. Stopped, it goes on where it was when called again.

    example:  auxrnn demo --out runs/demo
    """
    from auxrnn.experiments import demo as demo_experiment  # noqa: PLC0415 - matplotlib is slow to import

    arguments = parse(DemoArguments, argv, "demo", description=demo.__doc__ or "")
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
class BenchArguments:
    """Options of `bench`."""

    out: Path = Path("runs/bench")
    """Folder for bench.json and the pictures step-time.png and peak-memory.png; what it holds of them is replaced."""
    quick: Flag = False
    """All ratios from fewer repeats and lengths: three to five minutes on two cores instead of half an hour."""
    json: Flag = False
    """Print one JSON object: the ratios by name, and below them every measurement and what it depends on."""


def bench(argv: Sequence[str]) -> int:
    """Measure speed and memory on this machine, side by side with what people would use instead.

    Reading, windows, single steps and whole training steps against torch's own LSTM, and against JAX, Keras and
    onnxruntime where they are installed (`pip install 'auxrnn[bench]'`); the product of two large matrices as the
    limit of the processor; peak memory, in processes of their own.

    Contenders take turns and the best of several rounds counts; still, let nothing else run meanwhile. It needs 14 GiB
    of memory for full back-propagation; with less than 18 the longest of it is left out. OMP_NUM_THREADS sets the
    number of threads, but JAX and Keras always take all cores.

    example:  auxrnn bench --quick
    """
    from auxrnn.bench import sizes, suite, tables  # noqa: PLC0415 - matplotlib is slow to import

    arguments = parse(BenchArguments, argv, "bench", description=bench.__doc__ or "")
    chosen = sizes.QUICK if arguments.quick else sizes.FULL
    record = suite.run(arguments.out, sizes=chosen, console=_error_console())
    if arguments.json:
        _print_json(record.to_json())
        return 0
    for table in tables.make_tables(record.results):
        Console().print(table)
    lstm = record.environment["lstm"]
    print(f"{describe_seconds(record.seconds)}, threads: {record.results.num_threads}, {lstm}")
    print(f"{arguments.out} holds the pictures and bench.json with all figures")
    return 0


@dataclass(frozen=True, kw_only=True)
class InfoArguments:
    """Options of `info`."""

    json: Flag = False
    """Print one JSON object."""


def info(argv: Sequence[str]) -> int:
    """Give versions, threads, device, which LSTM runs (the fused kernel or torch's) and where data is cached.

    example:  auxrnn info --json
    """
    arguments = parse(InfoArguments, argv, "info", description=info.__doc__ or "")
    config = runs.settle(RunConfig(data=DataConfig(data="digits")))
    facts = runs.describe_environment(config)
    facts["data"] = str(search_folders("mnist")[1])
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
    "bench": bench,
    "info": info,
}


def main() -> None:
    """Run one command and end the process with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    keep_freed_memory()
    if sys.argv[1:2] == ["bench"]:
        start_with_large_pages()
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
    except SystemExit:
        # Only a request for help ends so; what tyro refuses is a UsageError.
        return 0
    except UsageError as error:
        _say(f"auxrnn: {name_fields(str(error), like='--{}')}")
        return 2
    except (RunError, OSError, MemoryError) as error:
        return _fail(error)
    except KeyboardInterrupt:
        _say("auxrnn: stopped")
        return 130


def _fail(error: RunError | OSError | MemoryError) -> int:
    if isinstance(error, BrokenPipeError):
        # Whoever read the results has seen enough; let nothing be left to write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    text = str(error) or "out of memory; use a smaller batch or window"
    if isinstance(error, OSError):
        what = error.filename or "a file"
        text = f"{what} cannot be read or written ({error.strerror}); check the disk and permissions"
    _say(f"auxrnn: {text}")
    return 1


def _train_defaults(argv: Sequence[str]) -> TrainArguments | None:
    """Give the defaults of `train` where a config file is named; DATA is empty if the file does not name it either."""
    path = last_value(argv, "--config")
    if path is None:
        return None
    values = read_toml(Path(path))
    for phase in ("pretrain", "train"):
        # A length given as a flag takes the place of the file's, in whichever unit that stands.
        lengths = {f"{phase}_steps": f"--{phase}-steps", f"{phase}_epochs": f"--{phase}-epochs"}
        if any(last_value(argv, flag) is not None for flag in lengths.values()):
            values = {name: value for name, value in values.items() if name not in lengths}
    return TrainArguments(run=unflatten({"data": ""} | values))


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
    window = config.loss.supervised_window
    num_weights = sum(parameter.numel() for parameter in session.network.parameters())
    _say(
        f"{names[config.loss.objective]} on {config.data.data}: {num_examples:,} sequences of {num_steps} steps,"
        f" {num_weights:,} weights, gradients of {'all' if window == 'full' else window} steps"
    )
    estimate = estimate_time(session)
    plan = " + ".join(f"{phase.num_steps:,} {phase.name}" for phase in session.phases)
    threads = "1 thread" if config.threads == 1 else f"{config.threads} threads"
    _say(f"{plan} updates, about {describe_seconds(estimate.seconds)} here on {threads}")
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
    _print_result(folder, is_json=is_json)
    return 0


def _print_result(folder: Path, *, is_json: bool) -> None:
    """Print the last evaluation of a finished run."""
    *_, last = [event for event in read_events(folder) if event["event"] == "evaluation"]
    scores = {name: value for name, value in last.items() if name.endswith(("_loss", "_accuracy"))}
    if is_json:
        _print_json({"run": str(folder)} | scores)
    else:
        print(f"{folder}  {describe_scores(scores)}".rstrip())


@contextlib.contextmanager
def _stopping(session: Session) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) stop the training after the update under way, and the second one at once."""
    asked = [False]

    def ask(signum: int, _frame: object) -> None:
        if asked[0]:
            # A second request by another process (the demo ends its runs so) must not cost the checkpoint.
            if signum == signal.SIGINT:
                raise KeyboardInterrupt
            return
        asked[0] = True
        _say("stopping after this update; Ctrl-C again stops at once")

    session.should_stop = lambda: asked[0]
    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _predict_stream(trained: runs.TrainedRun, *, is_json: bool) -> int:
    stream, names = Stream(trained.network), trained.card.class_names
    step = 0
    lines = io.TextIOWrapper(
        sys.stdin.buffer, errors="replace"
    )  # a picture by mistake is no text, and gets its sentence
    for values in read_steps(lines, trained.card.image_format.channels):
        if values is None:
            stream.restart()
            step = 0
            continue
        step += 1
        row = stream.push([values])[0].tolist()
        name = names[row.index(max(row))]
        if is_json:
            _print_json({"step": step, "class": name, "probabilities": dict(zip(names, row, strict=True))})
        else:
            print(f"{step}\t{name}\t{max(row):.4f}", flush=True)
    return 0


def _print_confusion(names: Sequence[str], evaluation: Evaluation) -> None:
    """Print counts of true classes in rows and answers in columns; of many classes, the commonest mistake instead."""
    has_all = len(names) <= MOST_COLUMNS
    columns = [str(number) for number in range(len(names))] if has_all else ["most often taken for"]
    table = Table("class", *columns, "recall %", box=SIMPLE, padding=(0, 1, 0, 0))
    rows = zip(names, evaluation.confusion_CC.tolist(), evaluation.recall, strict=True)
    for number, (name, counts, recall) in enumerate(rows):
        mistakes = [0 if other == number else count for other, count in enumerate(counts)]
        mistake = f"{names[mistakes.index(max(mistakes))]} ({max(mistakes)})" if any(mistakes) else "-"
        cells = [str(count) for count in counts] if has_all else [mistake]
        title = name if name == str(number) else f"{number} {name}"
        table.add_row(title, *cells, "-" if recall is None else f"{recall:.1f}")
    Console().print(table)


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _error_console() -> Console:
    return Console(stderr=True)
