"""`auxrnn train` and `auxrnn resume`."""

import contextlib
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from auxrnn.cli.commands import USE, ConfigOption, Flag, Json, RecipeOption, command, load_data, print_json, say
from auxrnn.config import DEFAULT_MODEL, RunConfig, Window, change, decided
from auxrnn.errors import RunError, UsageError
from auxrnn.files import check_sums, damaged, expand, lock
from auxrnn.presets import DEFAULT_RECIPE, PRESETS, PRETRAINED_MODELS, name_system

if TYPE_CHECKING:
    from auxrnn.data.datasets import Dataset
    from auxrnn.runs import Prepared
    from auxrnn.training.loop import Session

DEFAULT_MINUTES = 10.0
PHASES = {
    "pretrain": "without labels (pretraining)",
    "joint": "with labels and auxiliary loss",
    "supervised": "with labels",
}
LONG_TRAINING = 86_400.0
"""Seconds from which on a user should be told that there are other ways."""
YEAR = 365 * 86_400.0


@command(USE, has_layers=True)
def train(
    run: RunConfig,
    *,
    out: Path | None = None,
    minutes: float | None = None,
    recipe: RecipeOption = DEFAULT_RECIPE,
    _config: ConfigOption = None,
    pretrained: Path | None = None,
    endless: Flag = False,
    json: Json = False,
) -> int:
    """Train a network on a dataset or on your own files.

    Without a length it plans for ten minutes: short trials compare two readouts of an LSTM and then an r-LSTM (an LSTM
    that also learns to reconstruct what it has read) on a validation split, the best is trained, and the weights that
    did best on that split are kept. --objective predict makes it a p-LSTM (which also learns to predict what comes),
    and --model takes any of `auxrnn models`.

    --recipe fast, the default, uses Adam with warm-up and cosine decay, gate biases for a range of time scales
    (chrono), batches of 64, and an auxiliary loss divided by that of a constant prediction. The defaults below are its
    values; those that say auto are chosen from the data. --recipe paper has the settings of Trinh et al. (2018), and
    --config paper also their length, 100 and 1,000 epochs. --model NAME --help shows the options and defaults of
    another model.

    Ctrl-C stops the training and keeps a checkpoint; `auxrnn resume` continues from it. `auxrnn data check PATH` says
    beforehand how your files are understood and what is wrong with them.

    Args:
        out: Run folder to create (default: runs/DATA-MODEL-1, or the next free number).
        minutes: Minutes that the run may take; its length is planned from measured updates (default: 10 with the fast
            recipe, unless a number of steps or epochs is given).
        pretrained: Reuse the pretraining of this run instead of repeating it: a run of 0 train steps on the same data
            and with the same pretraining settings, sampling steps included.
        endless: Train even if it would take more than a year here.

    Examples:
        auxrnn train digits                              handwritten digits, bundled
        auxrnn train mnist --minutes 60                  also pmnist, cifar10
        auxrnn train mnist --objective reconstruct --train-epochs 8
        auxrnn train mnist --model transformer           `auxrnn models` lists all
        auxrnn train mnist --model gru --objective reconstruct
        auxrnn train stanford_dogs --image-size 40       also --enlarge-to 150000
        auxrnn train dbpedia --supervised-window 100     texts, character by character
        auxrnn train adding --length 500                 synthetic task of memory
        auxrnn train photos/ --image-size 32             images in photos/CLASS/*.jpg
        auxrnn train reviews.csv --label-column stars    also .tsv, .jsonl, .parquet
        auxrnn train reviews.csv --tokens bytes          the same, byte by byte
        auxrnn train sounds/ --steps-per-input 16        audio in sounds/CLASS/*.wav
        auxrnn train walks.csv                           numbers: wide or long table
        auxrnn train data.npz                            x [N, T] or [N, T, D], and y
        auxrnn train Heartbeat_TRAIN.ts                  time series (UCR/UEA)
        auxrnn train a.csv --label-fraction 0.05 --unlabeled b.txt
    """
    from auxrnn.planning import plan
    from auxrnn.pretraining import check_pretrained
    from auxrnn.progress import describe_seconds
    from auxrnn.runs import check_free, claim, create, open_session, settle
    from auxrnn.training.cost import estimate_time

    minutes = _find_minutes(run, minutes, is_fast=recipe == "fast")
    config = settle(run)
    if out is not None:
        out = expand(out)
        check_free(out)
    dataset = load_data(config.data)
    config, prepared = plan(config, dataset, minutes=minutes, say=say)
    if pretrained is not None:
        check_pretrained(config, prepared.card, pretrained)
    with claim(out or _default_folders(config)) as folder:
        session = open_session(config, dataset, prepared, folder)
        check_memory(session)
        seconds = estimate_time(session).seconds
        if seconds > YEAR and not endless:
            cure = "fewer updates or passes take less, and --endless asks for it all the same"
            raise UsageError(f"this training would take {describe_seconds(seconds)} here; {cure}")
        create(config, prepared, folder, pretrained=pretrained)
        _announce_data(session, dataset, prepared)
        _announce(session, minutes=minutes, seconds=seconds)
        return _train_to_end(session, folder, is_json=json)


@command(USE)
def resume(run: Path, *, train_steps: int | None = None, data: Path | None = None, json: Json = False) -> int:
    """Continue an interrupted run from its newest checkpoint, or train a run for longer.

    The weights of an interrupted run become the same, byte for byte, as those of a run without the interruption.

    Args:
        run: Run folder made by `auxrnn train`.
        train_steps: Updates with labels that the run shall have in all; a finished run trains on until then. From where
            the run stands, a cosine learning rate follows the curve of the new length.
        data: File or folder with the data of the run, if it has moved since the run began.

    Examples:
        auxrnn resume runs/mnist14
        auxrnn resume runs/mnist14 --train-steps 20000     more of the same
    """
    from auxrnn import environment, runs, saved

    config = saved.read_config(run)
    if train_steps is not None:
        if train_steps < 1:
            raise UsageError(f"train_steps is {train_steps}; it must be at least 1")
        config = change(config, train_steps=train_steps, train_epochs=None)
    with lock(run):
        if saved.is_finished(run):
            check_sums(run)
            if train_steps is None:
                if data is not None:
                    # There is nothing to read it for, but a wrong one would else be found when it is needed.
                    runs.prepare_again(config, load_data(runs.find_data(config, moved_to=data)), run)
                say(f"{run} is finished already; `auxrnn evaluate {run}` shows more of its results")
                return _print_result(run, is_json=json)
        if changed := environment.compare_environment(config, run):
            say(f"{changed}: the weights will not be, byte for byte, those of a run without the interruption")
        dataset = load_data(runs.find_data(config, moved_to=data))
        session = runs.open_session(config, dataset, runs.prepare_again(config, dataset, run), run)
        check_memory(session)
        if train_steps is not None and not runs.extend(session, run):
            what = f"learning rate and evaluations follow the new length of {train_steps:,} updates from here"
            say(f"{what}: the weights may differ from those of a run that had this length from its beginning")
        return _train_to_end(session, run, is_json=json)


def _find_minutes(run: RunConfig, minutes: float | None, *, is_fast: bool) -> float | None:
    """Return the budget of a run; None where its length is given in updates or passes, or is the paper's."""
    schedule = run.schedule
    lengths = (schedule.pretrain_steps, schedule.pretrain_epochs, schedule.train_steps, schedule.train_epochs)
    has_length = lengths != (None,) * 4
    if minutes is None:
        return DEFAULT_MINUTES if is_fast and not has_length else None
    if has_length:
        raise UsageError("--minutes plans the length of both phases; leave out their --...-steps and --...-epochs")
    return minutes


def _default_folders(config: RunConfig) -> Iterator[Path]:
    """Return runs/DATA-MODEL-1, -2 and so on; an r-LSTM counts as reconstruct, a p-GRU as gru-predict."""
    model, objective = config.model.model, config.loss.objective
    has_auxiliary = objective != "none" and model not in PRETRAINED_MODELS
    names = [model] if model != DEFAULT_MODEL or not has_auxiliary else []
    stem = "-".join([Path(config.data.data).stem, *names, *([objective] if has_auxiliary else [])])
    return (Path("runs", f"{stem}-{number}") for number in itertools.count(1))


def check_memory(session: "Session") -> None:
    """Refuse a training that the memory cannot hold, rather than die in its first step."""
    from auxrnn.files import describe_bytes
    from auxrnn.training.cost import estimate_growth, find_free_memory, find_longest

    free = find_free_memory(session.network.device)
    rows, longest, growth = session.batches.batch_size, find_longest(session), estimate_growth(session)
    needed = growth.bytes_for(rows, longest)
    if needed <= free:
        return
    fits = growth.most_rows(free, longest)
    cures = [f"--batch-size {fits}"] if fits else []
    cures.append(f"sequences of at most {growth.longest(free, rows):,} steps")
    if PRESETS[session.config.model.model].is_recurrent:
        cures.append("a shorter --supervised-window, --auxiliary-window or --segment-length")
    raise RunError(
        f"a training step on {rows} sequences of {longest:,} steps needs about {describe_bytes(needed)} of memory, and"
        f" {describe_bytes(free)} are free; what would fit: {', or '.join(cures)}"
    )


def _announce_data(session: "Session", dataset: "Dataset", prepared: "Prepared") -> None:
    """Say what was understood of the data, and how it is divided."""
    from auxrnn.data.formats import describe_alphabet, describe_inputs
    from auxrnn.data.sequences import measure_lengths
    from auxrnn.data.splits import drawn_parts

    data, train = session.config.data, session.pretrain_batches.split
    drawn = drawn_parts(dataset.table, data)
    how = f" ({' and '.join(drawn)} drawn)" if drawn else ""
    say(f"{data.data}: {dataset.facts.description}")
    division, num_classes = prepared.division.describe(dataset.table), len(dataset.facts.class_names)
    say(f"{division}{how}; {num_classes} classes; {measure_lengths(train.num_steps_N)}")
    form, facts = prepared.card.format, dataset.facts
    rare = prepared.division.describe_rare(dataset.table, facts.class_names, data.labels_per_class)
    known = (rare, describe_alphabet(form, train), describe_inputs(form, train))
    for line in (*known, facts.describe_missing(), facts.describe_skipped()):
        if line:
            say(line)


def _announce(session: "Session", *, minutes: float | None, seconds: float) -> None:
    """Say in two lines what will be done and about how long it takes here; in more what a user may not have meant."""
    from auxrnn.build import count_weights
    from auxrnn.progress import describe_seconds
    from auxrnn.training.cost import find_longest

    config, longest = session.config, find_longest(session)
    model, window = config.model.model, config.loss.supervised_window
    is_cut = PRESETS[model].is_recurrent and isinstance(window, int) and window < longest
    reach = f"the last {window} of up to {longest:,}" if is_cut else "all"
    system = name_system(model, config.loss.objective)
    say(f"{system} of {count_weights(session.network):,} weights; labels train it through {reach} steps of a sequence")
    plan = " + ".join(f"{phase.num_steps:,} {PHASES[phase.name]}" for phase in session.phases)
    threads = "1 thread" if config.threads == 1 else f"{config.threads} threads"
    budget = "" if minutes is None else f", planned to end within {minutes:g} minutes of the start"
    say(f"updates: {plan}; about {describe_seconds(seconds)} here on {threads}{budget}")
    unused = session.pretrain_batches.split.num_examples - session.batches.split.num_examples
    if unused and all(phase.is_supervised for phase in session.phases):
        say(f"the {unused:,} sequences without a label are not used: only pretraining learns from them")
    warmup = config.schedule.warmup_steps
    if warmup > session.phases[-1].num_steps and config.schedule.lr_schedule != "cosine":
        say(f"the learning rate will still rise at the end: --warmup-steps is {warmup:,}, longer than the training")
    if seconds > LONG_TRAINING:
        say(
            "this will take long; fewer updates (--train-steps), shorter sequences (--image-size, --max-length,"
            " --length) or another model take less (`auxrnn cost` compares them); a stopped run can be resumed"
        )
    length: Window = decided(config.segments.segment_length)
    if config.loss.objective != "none" and length != "full" and length >= longest:
        say(f"--segment-length is {length}, longer than the data: {longest - 1} steps are taken")


def _train_to_end(session: "Session", folder: Path, *, is_json: bool) -> int:
    from auxrnn import runs
    from auxrnn.progress import show_training

    with _stopping(session), show_training(session.phases) as session.observe:
        is_done = runs.train_or_resume(session)
    if not is_done:
        say(
            f"stopped; `auxrnn resume {folder}` continues from this checkpoint, and"
            f" `auxrnn evaluate {folder} --checkpoint latest` shows how good it is so far"
        )
        return 130
    return _print_result(folder, is_json=is_json)


def _print_result(folder: Path, *, is_json: bool) -> int:
    """Print the result of a finished run: of the weights that will be used, else of the last update."""
    from auxrnn.progress import describe_scores
    from auxrnn.report.records import read_events

    results = [event for event in read_events(folder) if event["event"] in ("evaluation", "result")]
    if not results:
        raise damaged(folder / "metrics.jsonl")
    last = results[-1]
    scores = {name: value for name, value in last.items() if name.endswith(("_loss", "_accuracy", "_f1"))}
    if is_json:
        print_json({"run": str(folder)} | scores)
    else:
        print(f"{folder}  {describe_scores(scores)}".rstrip())
    return 0


@contextlib.contextmanager
def _stopping(session: "Session") -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) stop the training after the update under way, and the second one at once."""
    asked = [False]

    def ask(signum: int, _frame: object) -> None:
        # A second request by another process (the demo ends its runs so) must not cost the checkpoint.
        if asked[0] and signum == signal.SIGINT:
            raise KeyboardInterrupt
        if not asked[0]:
            say("stopping after this update; Ctrl-C again stops at once")
        asked[0] = True

    session.should_stop = lambda: asked[0]
    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
