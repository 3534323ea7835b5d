"""`auxrnn train` and `auxrnn resume`."""

import contextlib
import math
import signal
from collections.abc import Iterator
from pathlib import Path

from auxrnn import runs
from auxrnn.build import count_weights
from auxrnn.cli.options import ResumeOptions, TrainOptions
from auxrnn.cli.output import error_console, load_data, print_json, say
from auxrnn.config import DEFAULT_MODEL, RunConfig, Window, decided
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.splits import drawn_parts
from auxrnn.data.summary import describe_alphabet, describe_division, describe_skipped, measure_lengths
from auxrnn.errors import RunError, UsageError
from auxrnn.files import describe_bytes
from auxrnn.planning import DEFAULT_MINUTES, plan
from auxrnn.presets import PRESETS, PRETRAINED_MODELS, name_system
from auxrnn.progress import TrainingProgress, describe_scores, describe_seconds
from auxrnn.report.records import read_events
from auxrnn.training.cost import estimate_growth, estimate_time, find_free_memory, find_longest
from auxrnn.training.loop import Session

LONG_TRAINING = 86_400.0
"""Seconds from which on a user should be told that there are other ways."""


def train(options: TrainOptions) -> int:
    """Train a new run from its plan to its end."""
    config = runs.settle(options.run)
    minutes = _find_minutes(options)
    if options.out is not None:
        runs.check_free(options.out)
    dataset = load_data(config)
    config, prepared = plan(config, dataset, minutes=minutes, say=say)
    folder = options.out or _next_free_folder(config)
    if options.pretrained is not None:
        runs.check_pretrained(config, options.pretrained)
    session = runs.open_session(config, dataset, prepared, folder)
    _check_memory(config, session)
    runs.create(config, prepared, folder, pretrained=options.pretrained)
    _announce_data(config, dataset, prepared)
    _announce(config, session, minutes=minutes)
    return _train_to_end(session, folder, is_json=options.json)


def _find_minutes(options: TrainOptions) -> float | None:
    """Return the budget of a run; None where its length is given in updates or passes, or is the paper's."""
    schedule, minutes = options.run.schedule, options.minutes
    lengths = (schedule.pretrain_steps, schedule.pretrain_epochs, schedule.train_steps, schedule.train_epochs)
    has_length = any(length is not None for length in lengths)
    if minutes is None:
        return None if has_length or options.recipe == "paper" else DEFAULT_MINUTES
    if not 0 < minutes < math.inf:
        raise UsageError(f"--minutes is {minutes}; it must be a number above 0")
    if has_length:
        raise UsageError("--minutes plans the length of both phases; leave out their --...-steps and --...-epochs")
    return minutes


def resume(options: ResumeOptions) -> int:
    """Continue a run from its newest checkpoint."""
    config = runs.read_config(options.run)
    if runs.is_finished(options.run):
        say(f"{options.run} is finished already; `auxrnn evaluate {options.run}` shows more of its results")
        _print_result(options.run, is_json=options.json)
        return 0
    dataset = load_data(config)
    prepared = runs.prepare_again(config, dataset, options.run)
    session = runs.open_session(config, dataset, prepared, options.run)
    _check_memory(config, session)
    return _train_to_end(session, options.run, is_json=options.json)


def _next_free_folder(config: RunConfig) -> Path:
    stem = f"{Path(config.data.data).stem}-{_short_name(config)}"
    number = 1
    while Path("runs", f"{stem}-{number}").exists():
        number += 1
    return Path("runs", f"{stem}-{number}")


def _short_name(config: RunConfig) -> str:
    """Return the name of a model and its auxiliary loss, for a folder: reconstruct, lstm, gru-predict, transformer."""
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
    if needed <= free:
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
    say(f"{config.data.data}: {dataset.facts.description}")
    drawn = drawn_parts(dataset.table, config.data)
    how = f" ({' and '.join(drawn)} drawn)" if drawn else ""
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    lengths = measure_lengths(splits.train.length_N)
    say(f"{describe_division(dataset, prepared.division)}{how}; {len(dataset.facts.class_names)} classes; {lengths}")
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
        say(f"stopped; `auxrnn resume {folder}` continues from this checkpoint")
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
