"""`auxrnn train` and `auxrnn resume`."""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from auxrnn import runs
from auxrnn.arguments import last_value, parse
from auxrnn.cards import choose
from auxrnn.cli.output import Flag, RunFolder, error_console, print_json, say
from auxrnn.config import RunConfig, read_toml, unflatten
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.splits import drawn_parts
from auxrnn.data.summary import describe_alphabet, describe_division, describe_skipped, measure_lengths
from auxrnn.errors import UsageError
from auxrnn.progress import ReadingProgress, TrainingProgress, describe_scores, describe_seconds
from auxrnn.report.records import read_events
from auxrnn.training.cost import estimate_time
from auxrnn.training.loop import Session


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
    """Train a network on a dataset or on your own files: plain LSTM, r-LSTM or p-LSTM.

    An r-LSTM on MNIST averaged down to 14x14, gradients of 28 steps:

      auxrnn train mnist --config mnist14 --out runs/mnist14

    The paper's settings, as long as the paper trained:  auxrnn train mnist --config paper

    Datasets, and your own files:

      auxrnn train digits                            handwritten digits, bundled
      auxrnn train mnist                             also pmnist, fashion_mnist, cifar10
      auxrnn train stanford_dogs --image-size 40     also --enlarge-to 150000
      auxrnn train dbpedia --supervised-window 100   texts, character by character
      auxrnn train photos/ --image-size 32           images, photos/CLASS/*.jpg
      auxrnn train reviews.csv --label-column stars  texts: .csv, .tsv, .jsonl, .parquet
      auxrnn train reviews.csv --tokens bytes        the same, byte by byte
      auxrnn train data.npz                          arrays: x [N, T] or [N, T, D], y, lengths
      auxrnn train Heartbeat_TRAIN.ts                time series (UCR/UEA)
      auxrnn train a.csv --label-fraction 0.05 --unlabeled b.txt     few labels

    `auxrnn data check PATH` says beforehand what is understood of your files and what is wrong with them.

    Ctrl-C stops it and keeps what it has; `auxrnn resume` goes on.
    """
    arguments = parse_train(argv)
    config = runs.settle(arguments.run)
    folder = arguments.out or _next_free_folder(config)
    runs.check_free(folder)
    dataset = _load(config)
    prepared = runs.prepare(config, dataset)
    session = runs.open_session(config, dataset, prepared, folder)
    runs.create(config, prepared, folder)
    _announce_data(config, dataset, prepared)
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
        say(f"{arguments.run} is finished already; `auxrnn evaluate {arguments.run}` shows more of its results")
        _print_result(arguments.run, is_json=arguments.json)
        return 0
    dataset = _load(config)
    prepared = runs.prepare_again(config, dataset, arguments.run)
    session = runs.open_session(config, dataset, prepared, arguments.run)
    return _train_to_end(session, arguments.run, is_json=arguments.json)


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


def _load(config: RunConfig) -> Dataset:
    with ReadingProgress(Path(config.data.data).name, error_console()) as progress:
        return runs.load_dataset(config, observe=progress.observe)


def _next_free_folder(config: RunConfig) -> Path:
    stem = f"{Path(config.data.data).stem}-{config.loss.objective}"
    number = 1
    while Path("runs", f"{stem}-{number}").exists():
        number += 1
    return Path("runs", f"{stem}-{number}")


def _announce_data(config: RunConfig, dataset: Dataset, prepared: runs.Prepared) -> None:
    """Say what was understood of the data, and how it is divided."""
    say(f"{config.data.data}: {dataset.description}")
    drawn = drawn_parts(dataset.table, choose(config))
    how = f" ({' and '.join(drawn)} drawn)" if drawn else ""
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    lengths = measure_lengths(splits.train.length_N)
    say(f"{describe_division(dataset, prepared.division)}{how}; {len(dataset.class_names)} classes; {lengths}")
    for line in (describe_alphabet(prepared.card.format, splits.train), describe_skipped(dataset)):
        if line:
            say(line)


def _announce(config: RunConfig, session: Session) -> None:
    """Say in two lines what will be done and about how long it takes here; a clipped segment in one more."""
    names = {"none": "LSTM", "reconstruct": "r-LSTM", "predict": "p-LSTM"}
    window = config.loss.supervised_window
    num_weights = sum(parameter.numel() for parameter in session.network.parameters())
    say(
        f"{names[config.loss.objective]} of {num_weights:,} weights, gradients of"
        f" {'all' if window == 'full' else window} steps"
    )
    estimate = estimate_time(session)
    plan = " + ".join(f"{phase.num_steps:,} {phase.name}" for phase in session.phases)
    threads = "1 thread" if config.threads == 1 else f"{config.threads} threads"
    say(f"{plan} updates, about {describe_seconds(estimate.seconds)} here on {threads}")
    longest = int(session.pretrain_batches.split.length_N.max()) - 1
    if config.loss.objective != "none" and config.segments.segment_length > longest:
        say(f"segments of {config.segments.segment_length} are longer than the data: clipped to {longest}")


def _train_to_end(session: Session, folder: Path, *, is_json: bool) -> int:
    progress = TrainingProgress(session.phases, error_console())
    with runs.lock(folder), _stopping(session), progress:
        session.observe = progress.observe
        is_done = runs.train_or_resume(session)
    if not is_done:
        say(f"stopped; `auxrnn resume {folder}` goes on from here")
        return 130
    _print_result(folder, is_json=is_json)
    return 0


def _print_result(folder: Path, *, is_json: bool) -> None:
    """Print the last evaluation of a finished run."""
    *_, last = [event for event in read_events(folder) if event["event"] == "evaluation"]
    scores = {name: value for name, value in last.items() if name.endswith(("_loss", "_accuracy"))}
    if is_json:
        print_json({"run": str(folder)} | scores)
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
        say("stopping after this update; Ctrl-C again stops at once")

    session.should_stop = lambda: asked[0]
    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
