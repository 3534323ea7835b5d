"""A run is a folder: start one, resume it, load what it trained.

It holds `config.json`, `environment.json`, `model.json` (what the network must know of its data to be used elsewhere),
`metrics.jsonl`, `checkpoints/` and at the end `model.safetensors` (with a validation split, `model-best.safetensors`).
"""

import fcntl
import importlib.metadata
import json
import logging
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError

from auxrnn import config as configs
from auxrnn.build import InputSpec, build_network, build_session, choose_examples
from auxrnn.config import RUN_FORMAT, RunConfig
from auxrnn.data import datasets
from auxrnn.data.datasets import Dataset, Split
from auxrnn.data.images import ImageFormat
from auxrnn.errors import RunError, UsageError
from auxrnn.files import cannot_write, write_aside
from auxrnn.kernels.library import describe as describe_kernel
from auxrnn.training.checkpoint import load_newest, newest_path
from auxrnn.training.loop import Session, save_weights, train
from auxrnn.training.record import FileRecorder
from auxrnn.training.step import Network

PACKAGES = ("auxrnn", "torch", "numpy", "safetensors", "scikit-learn")
logger = logging.getLogger(__name__)

Weights = Literal["final", "best"]
SplitName = Literal["test", "train", "validation"]


class ModelCard(NamedTuple):
    """What travels with a model: its classes, and how an image becomes a sequence it can read."""

    class_names: tuple[str, ...]
    image_format: ImageFormat

    @property
    def spec(self) -> InputSpec:
        """What a network must fit to read such sequences."""
        return InputSpec(self.image_format.channels, None, len(self.class_names), self.image_format.num_steps)


class TrainedRun(NamedTuple):
    """A finished run, ready to evaluate or predict."""

    config: RunConfig
    card: ModelCard
    network: Network


def settle(config: RunConfig) -> RunConfig:
    """Fix what depends on the machine and on where the user stands, so that resuming uses the same again."""
    data_dir, init_from = config.data.data_dir, config.init_from
    return replace(
        config,
        data=replace(config.data, data_dir=None if data_dir is None else data_dir.expanduser().absolute()),
        init_from=None if init_from is None else init_from.expanduser().absolute(),
        threads=config.threads or torch.get_num_threads(),
        device=config.device or _find_device(),
    )


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a run, or anything else."""
    if (folder / "config.json").exists():
        raise UsageError(
            f"{folder} already holds a run; `auxrnn resume {folder}` continues it, or choose another --out"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an empty folder; choose another --out")


def create(config: RunConfig, dataset: Dataset, folder: Path) -> None:
    """Make the folder of a new run, whole or not at all.

    Its config comes last: a folder counts as a run only when all it needs is there.
    """
    check_free(folder)
    card = {"class_names": dataset.class_names, "image_format": dataset.image_format._asdict()}
    try:
        write_aside(folder / "environment.json", json.dumps(describe_environment(config), indent=2) + "\n")
        write_aside(folder / "model.json", json.dumps(card, indent=2) + "\n")
        write_aside(folder / "config.json", configs.to_json(config))
    except BaseException:
        with suppress(OSError):
            for name in ("environment.json", "model.json", "config.json"):
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()
        raise


def load_dataset(config: RunConfig) -> Dataset:
    """Load the dataset that a config names."""
    data = config.data
    return datasets.load(data.data, data_dir=data.data_dir, image_size=data.image_size, permutation=data.permutation)


def load_split(config: RunConfig, name: SplitName, *, data_dir: Path | None = None) -> Split:
    """Load one part of a run's dataset, as the run divided it."""
    if data_dir is not None:
        config = replace(config, data=replace(config.data, data_dir=data_dir))
    dataset = load_dataset(config)
    if name == "test":
        return dataset.test
    train, validation = choose_examples(config, dataset.train)
    if name == "train":
        return train
    if validation is None:
        raise UsageError("this run held out no validation split; --split takes test or train")
    return validation


def open_session(config: RunConfig, dataset: Dataset, folder: Path) -> Session:
    """Put together the training of a run, in its own folder and with its number of threads."""
    assert config.threads is not None, "settle the config first"
    torch.set_num_threads(config.threads)
    card = ModelCard(dataset.class_names, dataset.image_format)
    network = build_network(config, card.spec)
    if config.init_from is not None and newest_path(folder / "checkpoints") is None:
        _take_weights(network, card, config.init_from)
    _move(network, config)
    return build_session(
        config,
        network,
        train=dataset.train,
        test=dataset.test,
        recorder=FileRecorder(folder / "metrics.jsonl"),
        folder=folder,
    )


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


def _lock_or_refuse(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunError(f"another process is training in {folder}; wait for it or stop it first") from error


def read_config(folder: Path) -> RunConfig:
    """Read the config of a run; a folder that is no run, or one of another version, is refused."""
    path = folder / "config.json"
    if not path.is_file():
        raise UsageError(f"{folder} is not a run (it has no config.json); give a folder that `auxrnn train` made")
    try:
        values = json.loads(path.read_text())
        run_format = values["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path) from error
    if run_format != RUN_FORMAT:
        raise RunError(
            f"{folder} was made by another version of auxrnn (run format {run_format}, here {RUN_FORMAT});"
            " use that version, or train again"
        )
    try:
        return configs.unflatten({name: value for name, value in values.items() if name != "format"})
    except (UsageError, TypeError) as error:
        raise _damaged(path) from error


def is_finished(folder: Path) -> bool:
    """Tell whether a run has its final weights."""
    return (folder / "model.safetensors").is_file()


def load_run(folder: Path, *, weights: Weights = "final") -> TrainedRun:
    """Load a finished run's network, on the CPU; `network.to(device)` moves it, and batches follow."""
    config = read_config(folder)
    if not is_finished(folder):
        raise RunError(f"{folder} has not finished training; `auxrnn resume {folder}` continues it")
    path = folder / ("model.safetensors" if weights == "final" else "model-best.safetensors")
    if not path.is_file():
        raise UsageError(f"{folder} has no best weights; they need --validation-fraction above 0 in training")
    card = _read_card(folder)
    network = build_network(config, card.spec)
    hint = f"delete it and `auxrnn resume {folder}` writes it again" if weights == "final" else "take the final weights"
    tensors = _read_weights(path, hint=hint)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(f"{path} does not fit the run's config.json; train again into another folder") from error
    return TrainedRun(config, card, network)


def describe_environment(config: RunConfig) -> dict[str, Any]:
    """Give the versions, the machine and the commit that a run depends on."""
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


def _find_device() -> str:
    # Other accelerators can be asked for by name, but nobody has tried them yet.
    return "cuda" if torch.cuda.is_available() else "cpu"


def _find_commit() -> str | None:
    """Give the commit of the source this package runs from, where it is a checkout of its own."""
    if not (Path(__file__).parents[2] / ".git").exists():
        return None
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed words
    except (OSError, subprocess.CalledProcessError):
        return None


def _read_card(folder: Path) -> ModelCard:
    try:
        values = json.loads((folder / "model.json").read_text())
        return ModelCard(tuple(values["class_names"]), ImageFormat(**values["image_format"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{folder / 'model.json'} is missing or damaged; train again into another folder") from error


def _read_weights(path: Path, *, hint: str) -> dict[str, torch.Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path} is damaged; {hint}") from error


def _damaged(path: Path) -> RunError:
    return RunError(f"{path} is damaged; train again into another folder")


def _move(network: Network, config: RunConfig) -> None:
    try:
        network.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device is {config.device!r}, which cannot be used here; cpu always can") from error


def _take_weights(network: Network, card: ModelCard, source: Path) -> None:
    """Start from another run's networks: always its encoder, its head for the same classes, its decoder if it fits."""
    other = load_run(source)
    theirs, ours = other.network.state_dict(), network.state_dict()
    if other.card.class_names != card.class_names:
        theirs = {name: value for name, value in theirs.items() if not name.startswith("classifier.")}
    fitting = {name: value for name, value in theirs.items() if name in ours and value.shape == ours[name].shape}
    if not all(name in fitting for name in ours if name.startswith("encoder.")):
        raise UsageError(
            f"the networks of {source} have other sizes than this run asks for;"
            " give the same --hidden-size, --embedding-size and --num-layers, and data of the same kind"
        )
    objective = {name for name in ours if name.startswith("objective.")}
    if not objective <= fitting.keys():
        fitting = {name: value for name, value in fitting.items() if name not in objective}
    network.load_state_dict(ours | fitting)
    parts = ["classifier", "objective"]
    fresh = [part for part in parts if any(name.startswith(part) and name not in fitting for name in ours)]
    logger.info("started from the networks of %s%s", source, f"; new: {', '.join(fresh)}" if fresh else "")
