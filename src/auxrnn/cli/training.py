"""`auxrnn train` and `auxrnn resume`."""

import contextlib
import math
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from auxrnn import pretrained, runs
from auxrnn.arguments import parse
from auxrnn.cli.output import Flag, RunFolder, error_console, print_json, say
from auxrnn.cli.run_options import check_run, find_defaults, find_recipe_name, load_data
from auxrnn.config import DEFAULT_MODEL, RunConfig, Window, decided
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.splits import drawn_parts
from auxrnn.data.summary import describe_alphabet, describe_division, describe_skipped, measure_lengths
from auxrnn.errors import RunError, UsageError
from auxrnn.files import describe_bytes
from auxrnn.networks import count_weights
from auxrnn.planning import DEFAULT_MINUTES, plan
from auxrnn.presets import PRESETS, PRETRAINED_MODELS, name_system
from auxrnn.progress import TrainingProgress, describe_scores, describe_seconds
from auxrnn.recipes import DEFAULT_RECIPE, RecipeName
from auxrnn.report.records import read_events
from auxrnn.training.cost import estimate_time
from auxrnn.training.loop import Session
from auxrnn.training.memory import estimate_growth, find_longest
from auxrnn.training.process_memory import find_free_memory

LONG_TRAINING = 86_400.0
"""Seconds from which on a user should be told that there are other ways."""


@dataclass(frozen=True, kw_only=True)
class TrainArguments:
    """Options of `train` beside those of the run itself."""

    run: RunConfig
    out: Path | None = None
    """Run folder to make (None: runs/DATA-MODEL-1, or the next free number)."""
    recipe: RecipeName = DEFAULT_RECIPE
    """Where the defaults of all options come from: fast (converges within minutes to an hour of one core) or paper (the
    published settings)."""
    minutes: float | None = None
    """Minutes that the run may take: its length is planned from measured updates (None: 10 with the fast recipe, unless
    a length is given)."""
    config: Path | None = None
    """TOML file with defaults for these options (keys named as the flags), or a shipped one: paper, mnist14."""
    pretrained: Path | None = None
    """Take the first phase from this run, which pretrained alike with --train-steps 0; the result is the same."""
    json: Flag = False
    """Print the result as one JSON object."""


def train(argv: Sequence[str]) -> int:
    """Train a network on a dataset or on your own files: r-LSTM, p-LSTM, or any system the paper compares with.

    Without a length it plans for ten minutes: it compares an LSTM with an r-LSTM on a validation split, trains the
    better one, and keeps the weights that were best there.

      auxrnn train mnist --minutes 60
      auxrnn train mnist --objective reconstruct --train-epochs 8     an r-LSTM in any case

    --recipe fast, the default, has Adam with a warm-up and a cosine, gates with memories of all lengths, batches of 64,
    and an auxiliary loss in units of the data's variance; the defaults below are its values, and auto ones are chosen
    from the data. --recipe paper has the paper's settings, and --config paper also its length: 100 + 1,000 epochs.

    Datasets, and your own files:

      auxrnn train digits                            handwritten digits, bundled
      auxrnn train mnist                             also pmnist, fashion_mnist, cifar10
      auxrnn train stanford_dogs --image-size 40     also --enlarge-to 150000
      auxrnn train dbpedia --supervised-window 100   texts, character by character
      auxrnn train adding --length 500               a task of memory, made up; also recall, needle
      auxrnn train photos/ --image-size 32           images, photos/CLASS/*.jpg
      auxrnn train reviews.csv --label-column stars  texts: .csv, .tsv, .jsonl, .parquet
      auxrnn train reviews.csv --tokens bytes        the same, byte by byte
      auxrnn train data.npz                          arrays: x [N, T] or [N, T, D], y, lengths
      auxrnn train Heartbeat_TRAIN.ts                time series (UCR/UEA)
      auxrnn train a.csv --label-fraction 0.05 --unlabeled b.txt     few labels

    Other systems (`auxrnn models` lists them), with the sizes that their authors published; --recipe paper has also
    their optimizers and rates:

      auxrnn train mnist --model transformer
      auxrnn train mnist --model gru --objective reconstruct     an r-GRU

    `auxrnn data check PATH` says beforehand what is understood of your files and what is wrong with them.

    Ctrl-C stops it and keeps what it has; `auxrnn resume` goes on.
    """
    arguments = parse_train(argv)
    config = runs.settle(arguments.run)
    minutes = _find_minutes(arguments)
    if arguments.out is not None:
        runs.check_free(arguments.out)
    dataset = load_data(config)
    config, prepared = plan(config, dataset, minutes=minutes, say=say)
    folder = arguments.out or _next_free_folder(config)
    if arguments.pretrained is not None:
        pretrained.check_fits(config, arguments.pretrained)
    session = runs.open_session(config, dataset, prepared, folder)
    _check_memory(config, session)
    source = arguments.pretrained
    runs.create(config, prepared, folder, fill=None if source is None else partial(pretrained.adopt, source=source))
    _announce_data(config, dataset, prepared)
    _announce(config, session, minutes=minutes)
    return _train_to_end(session, folder, is_json=arguments.json)


def _find_minutes(arguments: TrainArguments) -> float | None:
    """Return the budget of a run; None where its length is given in updates or passes, or is the paper's."""
    schedule, minutes = arguments.run.schedule, arguments.minutes
    lengths = (schedule.pretrain_steps, schedule.pretrain_epochs, schedule.train_steps, schedule.train_epochs)
    has_length = any(length is not None for length in lengths)
    if minutes is None:
        return None if has_length or arguments.recipe == "paper" else DEFAULT_MINUTES
    if not 0 < minutes < math.inf:
        raise UsageError(f"--minutes is {minutes}; it must be a number above 0")
    if has_length:
        raise UsageError("--minutes plans the length of both phases; leave out their --...-steps and --...-epochs")
    return minutes


def parse_train(argv: Sequence[str]) -> TrainArguments:
    """Give what `auxrnn train` is asked for: flags, over the values of a config file, over the defaults."""
    default = TrainArguments(run=find_defaults(argv), recipe=find_recipe_name(argv))
    arguments = parse(TrainArguments, argv, "train", default=default, description=train.__doc__ or "")
    check_run(argv, arguments.run)
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
    dataset = load_data(config)
    prepared = runs.prepare_again(config, dataset, arguments.run)
    session = runs.open_session(config, dataset, prepared, arguments.run)
    _check_memory(config, session)
    return _train_to_end(session, arguments.run, is_json=arguments.json)


def _next_free_folder(config: RunConfig) -> Path:
    stem = f"{Path(config.data.data).stem}-{_short_name(config)}"
    number = 1
    while Path("runs", f"{stem}-{number}").exists():
        number += 1
    return Path("runs", f"{stem}-{number}")


def _short_name(config: RunConfig) -> str:
    """Give the name of a model and its auxiliary loss, for a folder: reconstruct, lstm, gru-predict, transformer."""
    model, objective = config.model.model, config.loss.objective
    if objective == "none" or model in PRETRAINED_MODELS:
        return model
    return objective if model == DEFAULT_MODEL else f"{model}-{objective}"


def _check_memory(config: RunConfig, session: Session) -> None:
    """Refuse a training that the memory cannot hold, rather than die in its first step."""
    free = find_free_memory(session.network.device)
    rows, longest = session.batches.batch_size, find_longest(session)
    growth = estimate_growth(session)
    needed = growth.bytes_for(rows, longest)
    if free is None or needed <= free:
        return
    fits = growth.most_rows(free, longest)
    cures = [f"--batch-size {fits}"] if fits else []
    cures.append(f"sequences of at most {growth.longest(free, rows):,} steps")
    if PRESETS[config.model.model].is_recurrent:
        cures.append("a shorter --supervised-window, --auxiliary-window or --segment-length")
    raise RunError(
        f"a training step on {rows} sequences of {longest:,} steps needs about {describe_bytes(needed)} of memory, and"
        f" {describe_bytes(free)} are free; what would fit: {', or '.join(cures)}"
    )


def _announce_data(config: RunConfig, dataset: Dataset, prepared: runs.Prepared) -> None:
    """Say what was understood of the data, and how it is divided."""
    say(f"{config.data.data}: {dataset.description}")
    drawn = drawn_parts(dataset.table, config.data)
    how = f" ({' and '.join(drawn)} drawn)" if drawn else ""
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    lengths = measure_lengths(splits.train.length_N)
    say(f"{describe_division(dataset, prepared.division)}{how}; {len(dataset.class_names)} classes; {lengths}")
    for line in (describe_alphabet(prepared.card.format, splits.train), describe_skipped(dataset)):
        if line:
            say(line)


def _announce(config: RunConfig, session: Session, *, minutes: float | None) -> None:
    """Say in two lines what will be done and about how long it takes here; a clipped segment in one more."""
    model, window = config.model.model, config.loss.supervised_window
    is_cut = PRESETS[model].is_recurrent and window != "full"
    say(
        f"{name_system(model, config.loss.objective)} of {count_weights(session.network):,} weights, gradients of"
        f" {window if is_cut else 'all'} steps"
    )
    estimate = estimate_time(session)
    plan = " + ".join(f"{phase.num_steps:,} {phase.name}" for phase in session.phases)
    threads = "1 thread" if config.threads == 1 else f"{config.threads} threads"
    budget = "" if minutes is None else f", planned to end within {minutes:g} minutes of the start"
    say(f"{plan} updates, about {describe_seconds(estimate.seconds)} here on {threads}{budget}")
    _warn(config, session, seconds=estimate.seconds)
    longest = find_longest(session) - 1
    length: Window = decided(config.segments.segment_length)
    if config.loss.objective != "none" and length != "full" and length > longest:
        say(f"segments of {length} are longer than the data: clipped to {longest}")


def _warn(config: RunConfig, session: Session, *, seconds: float) -> None:
    """Say what a user may not have meant: data that goes unused, a rate that never gets there, days of waiting."""
    unused = session.pretrain_batches.split.num_examples - session.batches.split.num_examples
    if unused and all(phase.is_supervised for phase in session.phases):
        say(f"the {unused:,} sequences without a label are not used: there is no pretraining")
    num_steps, warmup = session.phases[-1].num_steps, config.schedule.warmup_steps
    if warmup > num_steps and config.schedule.lr_schedule != "cosine":
        say(f"the learning rate will still rise at the end: --warmup-steps is {warmup:,}, longer than the training")
    if seconds > LONG_TRAINING:
        say(
            "that is long: fewer updates (--train-steps), shorter sequences (--image-size, --max-length, --length) or"
            " another model take less; `auxrnn cost` compares them, and what is stopped can be resumed"
        )


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
    """Print the result of a finished run: of the weights that will be used, else of the last update."""
    *_, last = [event for event in read_events(folder) if event["event"] in ("evaluation", "result")]
    scores = {name: value for name, value in last.items() if name.endswith(("_loss", "_accuracy", "_f1"))}
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
