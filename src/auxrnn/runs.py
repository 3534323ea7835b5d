"""A run is a folder: start one, resume it, load what it trained.

It holds `config.json`, `environment.json`, `model.json` (what the network must know of its data to be used elsewhere),
`splits.json` (which rows it was trained and tested on, where these were drawn), `metrics.jsonl`, `checkpoints/` and at
the end `model.safetensors` (with a validation split, `model-best.safetensors`).
"""

import fcntl
import importlib.metadata
import json
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError

from auxrnn.build import build_session
from auxrnn.cards import (
    ModelCard,
    card_to_json,
    check_same_data,
    division_to_json,
    find_division,
    make_card,
    read_card,
)
from auxrnn.config import READABLE_FORMATS, RUN_FORMAT, RunConfig, SplitName, Weights, to_json, unflatten
from auxrnn.data import datasets
from auxrnn.data.catalog import DATASETS
from auxrnn.data.collect import Observe
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.sequences import Split
from auxrnn.data.splits import Division, divide, is_drawn
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_write, write_aside
from auxrnn.kernels.library import describe as describe_kernel
from auxrnn.models.network import Trainable
from auxrnn.networks import build_network
from auxrnn.training.checkpoint import load_newest, newest_path
from auxrnn.training.loop import BEST, Session, save_weights, train
from auxrnn.training.record import FileRecorder, ListRecorder

CONFIG = "config.json"
PACKAGES = ("auxrnn", "torch", "numpy", "safetensors", "scikit-learn")
logger = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """The data of a run, ready to train on: how it is read, and how it is divided."""

    card: ModelCard
    division: Division
    is_drawn: bool
    """Whether chance had a part in the division."""


class TrainedRun(NamedTuple):
    """A finished run, ready to evaluate or predict."""

    config: RunConfig
    card: ModelCard
    network: Trainable
    weights: Weights = "final"


def settle(config: RunConfig) -> RunConfig:
    """Resolve device, threads and absolute paths, so that resuming uses the same."""
    data = config.data
    own = Path(data.data).expanduser()
    is_own = data.data not in DATASETS and own.exists()
    return replace(
        config,
        data=replace(
            data,
            data=str(own.absolute()) if is_own else data.data,
            data_dir=_make_absolute(data.data_dir),
            test_data=_make_absolute(data.test_data),
            unlabeled=_make_absolute(data.unlabeled),
        ),
        init_from=_make_absolute(config.init_from),
        threads=config.threads or torch.get_num_threads(),
        device=config.device or find_device(),
    )


def _make_absolute(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser().absolute()


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a run, or anything else."""
    if (folder / CONFIG).exists():
        raise UsageError(
            f"{folder} already holds a run; `auxrnn resume {folder}` continues it, or choose another --out"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder; choose another --out")


def create(config: RunConfig, prepared: Prepared, folder: Path, *, fill: Callable[[Path], None] | None = None) -> None:
    """Make the folder of a new run, whole or not at all; `fill` puts into it what the run goes on from.

    Its config comes last: a folder counts as a run only when all it needs is there. Meanwhile it is locked.
    """
    check_free(folder)
    contents = {
        "environment.json": json.dumps(describe_environment(config), indent=2) + "\n",
        "model.json": card_to_json(prepared.card),
        **({"splits.json": division_to_json(prepared.division)} if prepared.is_drawn else {}),
    }
    _make(folder)
    with lock(folder):
        try:
            for name, content in contents.items():
                write_aside(folder / name, content)
            if fill is not None:
                fill(folder)
            write_aside(folder / CONFIG, to_json(config))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def is_half_made(folder: Path) -> bool:
    """Return whether a folder was left by a process that was killed while it made a run of it."""
    return folder.is_dir() and not (folder / CONFIG).exists() and any(folder.iterdir()) and not is_locked(folder)


def load_dataset(config: RunConfig, *, observe: Observe = lambda _done, _total: None) -> Dataset:
    """Load the data that a config names."""
    return datasets.load(config.data, observe=observe)


def prepare(config: RunConfig, dataset: Dataset) -> Prepared:
    """Divide the data of a new run, and settle how it is read."""
    division = divide(dataset.table, config.data, seed=config.seed)
    start = None if config.init_from is None else load_run(config.init_from).card
    card = make_card(config, dataset, division, start=start)
    return Prepared(card, division, is_drawn(dataset.table, config.data))


def prepare_again(config: RunConfig, dataset: Dataset, folder: Path) -> Prepared:
    """Return the data of a run as it was divided and read when the run began."""
    card = read_card(folder)
    check_same_data(card, dataset)
    return Prepared(card, find_division(config, dataset, folder), is_drawn(dataset.table, config.data))


def load_split(folder: Path, name: SplitName, *, data_dir: Path | None = None) -> Split:
    """Load one part of a run's dataset, as the run divided it."""
    config = read_config(folder)
    if data_dir is not None:
        config = replace(config, data=replace(config.data, data_dir=data_dir))
    dataset = load_dataset(config)
    prepared = prepare_again(config, dataset, folder)
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    split = {"train": splits.train.labeled(), "validation": splits.validation, "test": splits.test}[name]
    if split is None:
        cure = "--validation-fraction" if name == "validation" else "--test-fraction or --test-data"
        raise UsageError(f"this run has no {name} split (it takes {cure} in training); choose another --split")
    return split


def open_session(config: RunConfig, dataset: Dataset, prepared: Prepared, folder: Path | None) -> Session:
    """Put together the training of a run, in its own folder (None keeps nothing) and with its number of threads."""
    assert config.threads is not None, "settle the config first"
    torch.set_num_threads(config.threads)
    network = build_network(config, prepared.card.spec)
    if config.init_from is not None and (folder is None or newest_path(folder / "checkpoints") is None):
        _take_weights(network, prepared.card, config.init_from)
    _move(network, config)
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    recorder = ListRecorder() if folder is None else FileRecorder(folder / "metrics.jsonl")
    if config.patience is not None and splits.validation is None:
        raise UsageError(f"patience is {config.patience}, which needs a validation split; give --validation-fraction")
    return build_session(config, network, splits, recorder=recorder, folder=folder)


def train_or_resume(session: Session) -> bool:
    """Train from the newest whole checkpoint on, or from the start; False if it was stopped before its end."""
    folder = session.folder
    assert folder is not None
    checkpoint = load_newest(session.checkpoint_folder)
    if checkpoint is None and newest_path(session.checkpoint_folder) is not None:
        raise RunError(f"no checkpoint in {session.checkpoint_folder} is whole; train again into another folder")
    is_done = train(session, checkpoint)
    if is_done:
        save_weights(session.network, folder / "model.safetensors")
    return is_done


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep a second process from training in the same folder; the lock ends with the process, however it ends."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        _lock_or_refuse(handle, folder)
        yield
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Return whether some process is training in a folder."""
    try:
        with lock(folder):
            return False
    except RunError:
        return True


def _lock_or_refuse(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(f"another process is training in {folder}; wait for it or stop it first") from error


def read_config(folder: Path) -> RunConfig:
    """Read the config of a run; a folder that is no run, or one of another version, is refused."""
    path = folder / CONFIG
    if not path.is_file():
        raise UsageError(f"{folder} is not a run (it has no config.json); give a folder that `auxrnn train` made")
    try:
        values = json.loads(path.read_text())
        run_format = values["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error
    if run_format not in READABLE_FORMATS:
        raise RunError(
            f"{folder} was made by another version of auxrnn (run format {run_format}, here {RUN_FORMAT});"
            " use that version, or train again"
        )
    try:
        return unflatten({name: value for name, value in values.items() if name != "format"})
    except (UsageError, TypeError) as error:
        raise _damaged(path) from error


def is_finished(folder: Path) -> bool:
    """Return whether a run has its final weights."""
    return (folder / "model.safetensors").is_file()


def load_run(folder: Path | str, *, weights: Weights | None = None) -> TrainedRun:
    """Load a finished run's network, on the CPU; `network.to(device)` moves it, and batches follow.

    Unless others are named, the weights are the best on the validation split, of a run without one the final ones.
    """
    folder = Path(folder)
    config = read_config(folder)
    if not is_finished(folder):
        raise RunError(f"{folder} has not finished training; `auxrnn resume {folder}` continues it")
    weights = weights or ("best" if (folder / BEST).is_file() else "final")
    path = folder / (BEST if weights == "best" else "model.safetensors")
    if not path.is_file():
        raise UsageError(f"{folder} has no best weights; they need --validation-fraction above 0 in training")
    card = read_card(folder)
    network = build_network(config, card.spec)
    hint = f"delete it and `auxrnn resume {folder}` writes it again" if weights == "final" else "take the final weights"
    tensors = _read_weights(path, hint=hint)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(f"{path} does not fit the run's config.json; train again into another folder") from error
    return TrainedRun(config, card, network, weights)


def describe_environment(config: RunConfig) -> dict[str, Any]:
    """Return the versions, the machine and the commit that a run depends on."""
    return {
        "command": shlex.join(["auxrnn", *sys.argv[1:]]),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": config.threads,
        "device": config.device,
        "lstm": describe_kernel(),
        "commit": _find_commit(),
    }


def find_device() -> str:
    """Return where networks are trained unless another device is named."""
    # Other accelerators can be asked for by name, but nobody has tried them yet.
    return "cuda" if torch.cuda.is_available() else "cpu"


def _find_commit() -> str | None:
    """Return the commit of the source this package runs from, where it is a checkout of its own."""
    if not (Path(__file__).parents[2] / ".git").exists():
        return None
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed words
    except (OSError, subprocess.CalledProcessError):
        return None


def _read_weights(path: Path, *, hint: str) -> dict[str, torch.Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path} is damaged; {hint}") from error


def _damaged(path: Path) -> RunError:
    return RunError(f"{path} is damaged; train again into another folder")


def _move(network: Trainable, config: RunConfig) -> None:
    try:
        network.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device is {config.device!r}, which cannot be used here; cpu always can") from error


def _take_weights(network: Trainable, card: ModelCard, source: Path) -> None:
    """Start from another run's networks: always its main one, its head for the same classes, its decoder if it fits."""
    other = load_run(source, weights="final")
    theirs, ours = other.network.state_dict(), network.state_dict()
    if other.card.class_names != card.class_names:
        theirs = {name: value for name, value in theirs.items() if not name.startswith("classifier.")}
    fitting = {name: value for name, value in theirs.items() if name in ours and value.shape == ours[name].shape}
    if not all(name in fitting for name in ours if name.startswith(("encoder.", "reader."))):
        raise UsageError(
            f"the networks of {source} are of another kind, or of other sizes, than this run asks for; give the same"
            " --model, --hidden-size, --embedding-size and --num-layers, and data of the same kind"
        )
    objective = {name for name in ours if name.startswith("objective.")}
    if not objective <= fitting.keys():
        fitting = {name: value for name, value in fitting.items() if name not in objective}
    network.load_state_dict(ours | fitting)
    parts = ["classifier", "objective"]
    fresh = [part for part in parts if any(name.startswith(part) and name not in fitting for name in ours)]
    logger.info("started from the networks of %s%s", source, f"; new: {', '.join(fresh)}" if fresh else "")
