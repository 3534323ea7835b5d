"""`auxrnn train` and `auxrnn resume`."""

import contextlib
import itertools
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from auxrnn.cli.commands import USE, ConfigOption, Flag, Json, RecipeOption, command, load_data, print_json, say
from auxrnn.cli.together import is_under_torchrun
from auxrnn.config import DEFAULT_MODEL, RunConfig, Window, change, decided
from auxrnn.errors import RunError, UsageError
from auxrnn.files import check_sums, damaged, expand, lock
from auxrnn.presets import DEFAULT_RECIPE, PRESETS, PRETRAINED_MODELS, name_system

if TYPE_CHECKING:
    from auxrnn.data.datasets import Dataset
    from auxrnn.runs import Prepared
    from auxrnn.training.loop import Session
    from auxrnn.training.processes import Processes

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
    out = None if out is None else expand(out)
    if _is_restarted(out):
        assert out is not None
        return resume(out, json=json)
    config = settle(run)
    processes = _join(config)
    if out is not None and processes.is_first:
        check_free(out)
    dataset = load_data(config.data)
    config, prepared = plan(config, dataset, minutes=minutes, say=say, processes=processes)
    _check_same(processes, config, prepared)
    if pretrained is not None:
        check_pretrained(config, prepared.card, pretrained)
    with claim(out or _default_folders(config)) if processes.is_first else nullcontext() as folder:
        session = open_session(config, dataset, prepared, folder, processes)
        check_memory(session)
        seconds = estimate_time(session).seconds
        if seconds > YEAR and not endless:
            cure = "fewer updates or passes take less, and --endless asks for it all the same"
            raise UsageError(f"this training would take {describe_seconds(seconds)} here; {cure}")
        if folder is not None:
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
    from auxrnn.training.processes import count_restarts

    config = saved.read_config(run)
    processes = _join(config)
    if count_restarts() and train_steps == config.schedule.train_steps:
        # The run was made longer before it was restarted.
        train_steps = None
    if train_steps is not None:
        if train_steps < 1:
            raise UsageError(f"train_steps is {train_steps}; it must be at least 1")
        config = change(config, train_steps=train_steps, train_epochs=None)
    with lock(run) if processes.is_first else nullcontext():
        if processes.agree(float(saved.is_finished(run))):
            check_sums(run)
            if train_steps is None:
                return _show_finished(config, run, data, is_json=json)
        if changed := environment.compare_environment(config, run):
            what = "the weights will not be, byte for byte, those of a run without the interruption"
            say(f"{changed}: {what}, but equal up to rounding")
        dataset = load_data(runs.find_data(config, moved_to=data))
        prepared, folder = runs.prepare_again(config, dataset, run), run if processes.is_first else None
        _check_same(processes, config, prepared)
        session = runs.open_session(config, dataset, prepared, folder, processes)
        check_memory(session)
        if train_steps is not None and processes.is_first and not runs.extend(session, run):
            what = f"learning rate and evaluations follow the new length of {train_steps:,} updates from here"
            say(f"{what}: the weights may differ from those of a run that had this length from its beginning")
        return _train_to_end(session, folder, is_json=json)


def _show_finished(config: RunConfig, run: Path, data: Path | None, *, is_json: bool) -> int:
    from auxrnn import runs

    if data is not None:
        # There is nothing to read it for, but a wrong one would else be found when it is needed.
        runs.prepare_again(config, load_data(runs.find_data(config, moved_to=data)), run)
    say(f"{run} is finished already; `auxrnn evaluate {run}` shows more of its results")
    return _print_result(run, is_json=is_json)


def _is_restarted(out: Path | None) -> bool:
    """Return whether torchrun has restarted this command after it had begun its run, which is then to be continued."""
    from auxrnn.environment import describe_command, read_environment
    from auxrnn.saved import CONFIG
    from auxrnn.training.processes import count_restarts, may_restart

    if out is None and may_restart():
        raise UsageError("--max-restarts needs --out, so that a restarted training finds its run; give --out FOLDER")
    is_there = out is not None and count_restarts() > 0 and (out / CONFIG).is_file()
    return is_there and out is not None and read_environment(out).get("command") == describe_command()


def _join(config: RunConfig) -> "Processes":
    """Meet the other processes that torchrun started, with the same settings."""
    from auxrnn.training.processes import join

    processes = join(str(config.device))
    _check_same(processes, config)
    return processes


def _check_same(processes: "Processes", config: RunConfig, prepared: "Prepared | None" = None) -> None:
    """Refuse processes with other settings or data than the others, on machines where threads may differ."""
    what = "their settings" if prepared is None else "their data"
    processes.check_same(f"{change(config, threads=1)} {prepared and prepared.card}", what)


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
    from auxrnn.training.cost import estimate_growth, find_longest, find_memory

    free = find_memory(session)
    rows, longest, growth = session.num_rows, find_longest(session), estimate_growth(session)
    needed = growth.bytes_for(rows, longest)
    if needed <= free:
        return
    fits = growth.most_rows(free, longest)
    cures = [f"--batch-size {fits * session.processes.turn.num_processes}"] if fits else []
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
    if not session.processes.is_alone:
        threads = f"{session.processes.turn.num_processes} processes of {threads} each"
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


def _train_to_end(session: "Session", folder: Path | None, *, is_json: bool) -> int:
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
    return 0 if folder is None else _print_result(folder, is_json=is_json)


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
        # A second request by another process (the demo ends its runs so) must not cost the checkpoint. torchrun passes
        # Ctrl-C on to processes that have it from the terminal already, and ends them all when one has failed.
        if asked[0] and signum == signal.SIGINT and not is_under_torchrun():
            raise KeyboardInterrupt
        if not asked[0] and (signum == signal.SIGINT or not is_under_torchrun()):
            say(f"stopping after this update{'' if is_under_torchrun() else '; Ctrl-C again stops at once'}")
        asked[0] = True

    session.should_stop = lambda: asked[0]
    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
