"""A run is a folder: start one, resume it, load what it trained, share its pretraining.

It holds `config.json`, `environment.json`, `model.json` (what the network must know of its data to be used elsewhere),
`splits.json` (which rows it was trained and tested on, where these were drawn), `metrics.jsonl`, `checkpoints/` and at
the end `model.safetensors` (with a validation split, `model-best.safetensors`). `sums.json` has their checksums; a file
that differs is refused.
"""

import importlib.metadata
import json
import logging
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float32
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from torch import Tensor

from auxrnn.build import InputSpec, build_network, build_session
from auxrnn.config import (
    MOST,
    OPEN_FIELDS,
    CheckpointName,
    DataConfig,
    RunConfig,
    SplitName,
    Weights,
    change,
    flatten,
    unflatten,
)
from auxrnn.data import datasets, formats
from auxrnn.data.catalog import DATASETS
from auxrnn.data.datasets import Dataset
from auxrnn.data.formats import (
    Format,
    SeriesFormat,
    from_plain,
    has_mask,
    make_encoding,
    step_sizes,
    to_plain,
)
from auxrnn.data.images import ImageFormat
from auxrnn.data.inputs import to_split
from auxrnn.data.sequences import Encoding, Split, by_length, in_order
from auxrnn.data.splits import Division, divide, is_drawn, make_splits
from auxrnn.errors import RunError, UsageError
from auxrnn.files import (
    ASIDE,
    NEXT,
    SUMS,
    cannot_write,
    damaged,
    digest,
    expand,
    find_checksum,
    lock,
    read_checked,
    read_sums,
    remove_asides,
    write_aside,
    write_sums,
)
from auxrnn.kernels.library import describe as describe_kernel
from auxrnn.models.network import Trainable
from auxrnn.streaming import RawStream
from auxrnn.training.evaluate import predict_probabilities
from auxrnn.training.loop import BEST, Position, Session, train
from auxrnn.training.record import (
    Checkpoint,
    FileRecorder,
    ListRecorder,
    load_checkpoint,
    load_newest,
    newest_path,
    remove_old,
    save_checkpoint,
)

BATCH_SIZE = 64
RUN_FORMAT = 3
"""Raised by one when a run folder can no longer be read by the version before."""
CONFIG, CARD, SPLITS, FINAL = "config.json", "model.json", "splits.json", "model.safetensors"
ENVIRONMENT, METRICS = "environment.json", "metrics.jsonl"
TEMPERATURE = "temperature"
PACKAGES = ("auxrnn", "torch", "numpy", "safetensors", "scikit-learn")
# What does not matter in pretraining: settings that become their defaults there, and those that become other values.
OF_LABELS = (
    "label_fraction", "labels_per_class", "class_weight", "train_epochs", "joint", "lr_halving_epochs",
    "auxiliary_weight", "label_smoothing",
)  # fmt: skip
WITHOUT_LABELS = {"supervised_window": "full", "train_steps": 0}
# What changes no weight: where things lie, and how often somebody looks. The fused LSTM computes the same bits on any
# number of threads; what torch runs itself may round otherwise, attention above all.
WITHOUT_EFFECT = ("data_dir", "threads", "device", "evaluate_every", "checkpoint_every", "log_every")
FUSED_MODELS = ("lstm", "lm_lstm", "sa_lstm")
MISREAD = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""What comes of reading a JSON file that holds something else than was written."""
logger = logging.getLogger(__name__)


class ModelCard(NamedTuple):
    """With the weights and the config, all that prediction needs."""

    class_names: tuple[str, ...]
    format: Format
    num_steps: int
    """Length of the longest training sequence."""
    checksum: str | None
    """Of the data, and of how it was read; None for runs of the first version."""
    constant_loss: float = 1.0
    """Auxiliary loss per step of the best constant prediction on the training data."""

    @property
    def spec(self) -> InputSpec:
        """What a network must fit to read such sequences."""
        sizes = (*step_sizes(self.format), len(self.class_names), self.num_steps)
        return InputSpec(*sizes, self.constant_loss, has_mask(self.format))


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
    temperature: float = 1.0
    """What the logits of the network are divided by, already."""

    def predict_proba(
        self, x: ArrayLike | Sequence[Any], *, lengths: ArrayLike | None = None
    ) -> Float32[np.ndarray, "N C"]:
        """Return the probability of each class of `card.class_names` for sequences of raw values, as in the data.

        Give an array `[N, T]` or `[N, T, D]` (and lengths, where it is padded), a list of arrays of different lengths,
        a list of texts, or images as `[N, height, width]`, `[N, height, width, channels]` or their pixels `[N, T]`.
        """
        split = to_split(x, self.card.format, lengths=lengths)
        order = by_length(split)
        probability_NC = predict_probabilities(self.network, in_order(split.select(order), BATCH_SIZE)).numpy()
        answer: Float32[np.ndarray, "N C"] = probability_NC[np.argsort(order)]
        return answer

    def predict(self, x: ArrayLike | Sequence[Any], *, lengths: ArrayLike | None = None) -> list[str]:
        """Return the name of the likeliest class of each sequence; see `predict_proba`."""
        return [self.card.class_names[number] for number in self.predict_proba(x, lengths=lengths).argmax(axis=1)]

    def stream(self, num_sequences: int = 1) -> RawStream:
        """Return a stream that takes raw values step by step."""
        return RawStream(self.network, self.card.format, self.card.class_names, num_sequences)


def settle(config: RunConfig) -> RunConfig:
    """Resolve device, threads and absolute paths, so that resuming uses the same."""
    values, data = flatten(config), config.data.data
    names = [name for name in ("data_dir", "test_data", "unlabeled", "init_from") if values[name] is not None]
    names += ["data"] if data not in DATASETS and expand(data).exists() else []
    absolute = {name: str(expand(values[name]).absolute()) for name in names}
    machine = {"threads": config.threads or torch.get_num_threads(), "device": config.device or find_device()}
    return change(config, **absolute, **machine)


def prepare(config: RunConfig, dataset: Dataset) -> Prepared:
    """Divide the data of a new run, and settle how it is read, learning from its training examples alone.

    A run that starts from another one's networks reads as that one did: other characters would mean other tokens.
    """
    division = divide(dataset.table, config.data, seed=config.seed)
    form = formats.settle(dataset.facts.format, config.data)
    if dataset.facts.num_missing and isinstance(form, SeriesFormat):
        form = form._replace(has_mask=True)
    if config.init_from is not None:
        form = formats.adopt(form, load_run(config.init_from).card.format)
    max_length = None if isinstance(form, ImageFormat) else form.max_length
    label_N = dataset.table.label_N[division.train]
    encoding = Encoding(lambda value: value, max_length, steps_per_input=formats.steps_per_input(form))
    kept = Split(dataset.flat, division.train, label_N, encoding)
    fitted = formats.fit(form, kept, config.data)
    loss = formats.measure_constant_loss(kept._replace(encoding=make_encoding(fitted)))
    card = ModelCard(dataset.facts.class_names, fitted, int(kept.length_N.max()), dataset.checksum, loss)
    return Prepared(card, division, is_drawn(dataset.table, config.data))


def prepare_again(config: RunConfig, dataset: Dataset, folder: Path) -> Prepared:
    """Return the data of a run as it was divided and read when the run began."""
    card, path = read_card(folder), folder / SPLITS
    if card.checksum is not None and card.checksum != dataset.checksum:
        # Its splits would mean other examples.
        if dataset.name != config.data.data:
            what = "is not the data that this run was trained on: contents and names of files must be the same"
            raise RunError(f"{dataset.name} {what}; give that data, or train again")
        raise RunError(f"{dataset.name} has changed since this run began; put it back as it was, or train again")
    if not path.exists() and not is_drawn(dataset.table, config.data):
        return Prepared(card, divide(dataset.table, config.data, seed=config.seed), is_drawn=False)
    try:
        values = json.loads(read_checked(path))
        division = Division(*(np.array(values[name], dtype=np.int64).reshape(-1) for name in Division._fields))
        if any(len(rows) and not 0 <= rows.min() <= rows.max() < len(dataset.table.label_N) for rows in division):
            raise ValueError("rows that are not there")
    except MISREAD as error:
        raise damaged(path) from error
    return Prepared(card, division, is_drawn=True)


def find_data(config: RunConfig, *, moved_to: Path | None = None, data_dir: Path | None = None) -> DataConfig:
    """Return where the data of a run is now; what is gone is named, with the flag that says where it is."""
    data, others = config.data, (("--test-data", config.data.test_data), ("--unlabeled", config.data.unlabeled))
    if moved_to is not None:
        if data.data in DATASETS:
            raise UsageError(f"--data is for files of your own; {data.data} is looked for in --data-dir")
        if not expand(moved_to).exists():
            raise UsageError(f"{moved_to} does not exist; let --data name the file or folder that {data.data} was")
        data = replace(data, data=str(expand(moved_to).absolute()))
    elif data.data not in DATASETS and not Path(data.data).exists():
        raise RunError(f"the data of this run is gone: {data.data}; let --data name its new place")
    for flag, path in others:
        if path is not None and not path.exists():
            raise RunError(f"the {flag} of this run is gone: {path}; put it back there")
    return replace(data, data_dir=data_dir or data.data_dir)


def load_split(folder: Path, name: SplitName, *, data: Path | None = None, data_dir: Path | None = None) -> Split:
    """Load one part of a run's dataset, as the run divided it; `data` is where its files are, if they have moved."""
    config = read_config(folder)
    dataset = datasets.load(find_data(config, moved_to=data, data_dir=data_dir))
    prepared = prepare_again(config, dataset, folder)
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    split = {"train": splits.train.labeled(), "validation": splits.validation, "test": splits.test}[name]
    if split is None:
        cure = "--validation-fraction" if name == "validation" else "--test-fraction or --test-data"
        raise UsageError(f"this run has no {name} split; train with {cure} to get one, or choose another --split")
    return split


def open_session(config: RunConfig, dataset: Dataset, prepared: Prepared, folder: Path | None) -> Session:
    """Put together the training of a run, in its own folder (None keeps nothing) and with its number of threads."""
    assert config.threads is not None, "settle the config first"
    torch.set_num_threads(config.threads)
    network = build_network(config, prepared.card.spec)
    if config.init_from is not None and (folder is None or newest_path(folder / "checkpoints") is None):
        _take_weights(network, prepared.card, config.init_from)
    try:
        if torch.device(str(config.device)).type == "meta":
            raise RuntimeError("nothing is computed there")
        network.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device is {config.device!r}, which is not available here; use cpu") from error
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    if config.patience is not None and splits.validation is None:
        raise UsageError(f"patience is {config.patience}, which needs a validation split; give --validation-fraction")
    recorder = ListRecorder() if folder is None else FileRecorder(folder / METRICS)
    return build_session(config, network, splits, recorder=recorder, folder=folder)


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a run, or anything but what a process left that was killed while it made one."""
    if (folder / CONFIG).exists():
        cure = f"`auxrnn resume {folder}` continues it, or choose another --out"
        raise UsageError(f"{folder} already holds a run; {cure}")
    if folder.exists() and not (folder.is_dir() and _is_half_made(folder)):
        raise UsageError(f"{folder} exists and is not an empty folder; choose another --out")


def _is_half_made(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    asides = {path.name for path in folder.glob(f".*{ASIDE}")}
    # The checksums are what is written first, unless a pretraining was adopted.
    is_ours = SUMS in names or any(name.startswith(f".{SUMS}.") for name in asides)
    return not names or (is_ours and names - asides <= {SUMS, ENVIRONMENT, CARD, SPLITS})


@contextmanager
def claim(folder: Path | Iterable[Path]) -> Iterator[Path]:
    """Make and lock the folder of a new run: the given one, or the first of several that nobody has made yet.

    The lock is held to the end of the block. If no run is in the folder by then, it is removed.
    """
    try:
        claimed = folder if isinstance(folder, Path) else next(filter(_make_new, folder))
        if not claimed.exists():
            claimed.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(Path(error.filename), error) from error
    with lock(claimed):
        check_free(claimed)
        for left in claimed.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield claimed
        finally:
            if not (claimed / CONFIG).exists():
                shutil.rmtree(claimed, ignore_errors=True)


def _make_new(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def create(config: RunConfig, prepared: Prepared, folder: Path, *, pretrained: Path | None = None) -> None:
    """Fill the claimed folder of a new run, perhaps with the pretraining of another one.

    Its config comes last: a folder counts as a run only when all it needs is there.
    """
    card = prepared.card._asdict() | {"format": to_plain(prepared.card.format)}
    values = {ENVIRONMENT: describe_environment(config), CARD: card}
    texts = {name: json.dumps(one, indent=2) + "\n" for name, one in values.items()}
    if prepared.is_drawn:
        rows = {name: rows.tolist() for name, rows in prepared.division._asdict().items()}
        texts[SPLITS] = json.dumps(rows) + "\n"
    texts[CONFIG] = json.dumps({"format": RUN_FORMAT} | flatten(config), indent=2) + "\n"
    if pretrained is not None:
        _adopt(folder, pretrained)
    write_sums(folder, {name: digest(text) for name, text in texts.items()})
    for name, text in texts.items():
        write_aside(folder / name, text)


def remove_half_made(folder: Path) -> None:
    """Remove what was left by a process that was killed while it made a run; nothing where one is still at work."""
    if folder.is_dir():
        with suppress(RunError), lock(folder):
            if not (folder / CONFIG).exists():
                shutil.rmtree(folder)


def train_or_resume(session: Session) -> bool:
    """Train from the newest whole checkpoint on, or from the start; False if it was stopped before its end."""
    folder = session.folder
    assert folder is not None
    checkpoint = load_newest(session.checkpoint_folder)
    _settle_sums(folder)
    remove_asides(folder)
    remove_old(session.checkpoint_folder)
    if checkpoint is None and newest_path(session.checkpoint_folder) is not None:
        raise RunError(f"no checkpoint in {session.checkpoint_folder} is whole; train again into another folder")
    is_done = train(session, checkpoint)
    if is_done:
        _finish(session, folder)
    return is_done


def extend(session: Session, folder: Path) -> bool:
    """Give a run another number of updates with labels: that of the session, which was made with it.

    A kill at any moment leaves a run that can be used: as it was; without its final weights, which resuming writes
    again; or with the new length. False if its weights may differ from those of a run that had the new length at once.
    """
    checkpoint, wanted = load_newest(session.checkpoint_folder), session.config.schedule.train_steps
    position = {"phase_index": 0, "step": 0, "num_stale": 0} if checkpoint is None else checkpoint.values["position"]
    # A run of pretraining alone ends before its phase with labels.
    is_begun = position["phase_index"] >= len(session.phases) - 1
    num_done = position["step"] if is_begun else 0
    if wanted is None or wanted <= num_done:
        raise UsageError(f"train_steps is {wanted}, and {folder} has done {num_done:,} updates with labels; give more")
    if checkpoint is not None and session.config.patience is not None:
        # Patience counts anew. The tensors are the same, so that the values of before and after both fit them.
        anew = Checkpoint(checkpoint.tensors, checkpoint.values | {"position": position | {"num_stale": 0}})
        total_step = session.total_step(Position(position["phase_index"], position["step"]))
        save_checkpoint(session.checkpoint_folder, anew, step=total_step)
    values = json.loads(read_checked(folder / CONFIG)) | {"train_steps": wanted, "train_epochs": None}
    text = json.dumps(values, indent=2) + "\n"
    if sums := read_sums(folder):
        write_sums(folder, sums | {CONFIG + NEXT: digest(text)})
    (folder / FINAL).unlink(missing_ok=True)
    write_aside(folder / CONFIG, text)
    _settle_sums(folder)
    is_planned = session.phases[-1].lr_schedule == "cosine" or session.splits.validation is not None
    return not (num_done and is_planned)


def _settle_sums(folder: Path) -> None:
    """End the replacement of the config, and forget the checksums of the end that the run had; it is unfinished."""
    sums = read_sums(folder)
    if sums.keys() & {CONFIG + NEXT, METRICS}:
        kept = {name: value for name, value in sums.items() if name not in (CONFIG + NEXT, METRICS, FINAL, BEST)}
        write_sums(folder, kept | {CONFIG: digest(read_checked(folder / CONFIG))})


def _finish(session: Session, folder: Path) -> None:
    """Write the weights; the final ones come last, and the checksums of all before them."""
    kept = ({BEST: session.best} if session.best is not None else {}) | {FINAL: session.network.state_dict()}
    # The same weights give the same bytes. A temperature lies in the header of the weights that it belongs to.
    headers = {BEST: {TEMPERATURE: repr(session.temperature)}}
    _write_last(folder, {name: _to_bytes(weights, headers.get(name)) for name, weights in kept.items()})


def _to_bytes(weights: Mapping[str, Tensor], header: dict[str, str] | None = None) -> bytes:
    return safetensors.torch.save({key: one.contiguous() for key, one in weights.items()}, header)


def _write_last(folder: Path, contents: Mapping[str, bytes]) -> None:
    if sums := read_sums(folder):
        metrics = {METRICS: find_checksum(folder / METRICS)}
        write_sums(folder, sums | metrics | {name: digest(content) for name, content in contents.items()})
    for name, content in contents.items():
        write_aside(folder / name, content)


def keep(trained: TrainedRun, events: Iterable[dict[str, Any]], folder: Path, **more: str) -> None:
    """Fill the claimed folder of a run that was trained in memory; `more` are files by name, without their .json."""
    none = np.zeros(0, dtype=np.int64)
    create(trained.config, Prepared(trained.card, Division(none, none, none, none), is_drawn=False), folder)
    recorder = FileRecorder(folder / METRICS)
    for event in events:
        recorder.write(event)
    others = {f"{name}.json": text.encode() for name, text in more.items()}
    _write_last(folder, others | {FINAL: _to_bytes(trained.network.state_dict())})


def is_finished(folder: Path) -> bool:
    """Return whether a run has its final weights."""
    return (folder / FINAL).is_file()


def load_run(
    folder: Path | str, *, weights: Weights | None = None, checkpoint: CheckpointName | None = None
) -> TrainedRun:
    """Load a run's network, on the CPU; `network.to(device)` moves it, and batches follow.

    Unless others are named, the weights are the best on the validation split, of a run without one the final ones.
    The best ones of a finished run give calibrated probabilities. `checkpoint="latest"` takes both kinds from the
    newest checkpoint, of a run that may be unfinished.
    """
    folder = Path(folder)
    config = read_config(folder)
    if checkpoint is None and not is_finished(folder):
        what = f"has not finished training; `auxrnn resume {folder}` continues it"
        raise RunError(f"{folder} {what}, and --checkpoint latest uses it as it is")
    load = _read_weights if checkpoint is None else _read_checkpoint
    weights, path, tensors, temperature = load(folder, config, weights)
    card = read_card(folder)
    network = build_network(config, card.spec)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        raise RunError(f"{path} does not fit the run's config.json; train again into another folder") from error
    calibrate(network, temperature)
    if not all(bool(value.isfinite().all()) for value in network.state_dict().values()):
        raise RunError(f"{path} holds numbers that are not finite; train again into another folder")
    return TrainedRun(config, card, network, weights, temperature)


@torch.no_grad()
def calibrate(network: Trainable, temperature: float) -> None:
    """Divide the logits of a network by a temperature, for good."""
    for parameter in network.classifier.output.parameters():
        parameter.div_(temperature)


def _read_temperature(content: bytes) -> float:
    """Return the temperature in the header of a file of weights; 1 of earlier versions, and of final weights."""
    size = int.from_bytes(content[:8], "little")
    return float(json.loads(content[8 : 8 + size]).get("__metadata__", {}).get(TEMPERATURE, 1))


Stored = tuple[Weights, Path, dict[str, Tensor], float]
"""Which weights are used, where they lie, what they are, and their temperature."""


def _read_weights(folder: Path, _config: RunConfig, weights: Weights | None) -> Stored:
    """Return weights of a finished run."""
    weights = weights or ("best" if (folder / BEST).is_file() else "final")
    path = folder / (BEST if weights == "best" else FINAL)
    if not path.is_file():
        raise UsageError(f"{folder} has no best weights; they need --validation-fraction above 0 in training")
    content = read_checked(path)
    try:
        return weights, path, safetensors.torch.load(content), _read_temperature(content)
    except (SafetensorError, ValueError) as error:
        raise damaged(path) from error


def _read_checkpoint(folder: Path, config: RunConfig, weights: Weights | None) -> Stored:
    """Return weights of the newest whole checkpoint, which has no temperature yet."""
    path = folder / "checkpoints"
    checkpoint = load_newest(path)
    if checkpoint is None:
        raise RunError(f"{folder} has no whole checkpoint yet; `auxrnn resume {folder}` makes one")
    position, has_labels = checkpoint.values["position"], first_phase(config) is None
    phase = "training" if has_labels or position["phase_index"] else "pretraining, which learns no labels"
    logger.info("the newest checkpoint is of update %s of %s", f"{position['step']:,}", phase)
    best = {name[5:]: value for name, value in checkpoint.tensors.items() if name.startswith("best.")}
    if weights == "best" and not best:
        raise UsageError(f"{folder} has no best weights in its checkpoint; --weights final takes the newest")
    if best and weights != "final":
        return "best", path, best, 1.0
    tensors = {name[8:]: one for name, one in checkpoint.tensors.items() if name.startswith("network.")}
    return "final", path, tensors, 1.0


def read_config(folder: Path) -> RunConfig:
    """Read the config of a run; a folder that is no run, or one of another version, is refused."""
    path = folder / CONFIG
    if not path.is_file():
        raise UsageError(f"{folder} is not a run (it has no config.json); give a folder that `auxrnn train` made")
    try:
        values = json.loads(read_checked(path))
        run_format = values.pop("format")
        if run_format == RUN_FORMAT and not (folder / SUMS).exists():
            raise damaged(folder / SUMS)
        # The first two formats have no checksums.
        if run_format in (1, 2, RUN_FORMAT):
            config = unflatten(values)
            if config.threads is None or "auto" in [flatten(config)[name] for name in OPEN_FIELDS]:
                raise ValueError("what was left open is settled when a run begins")
            return config
        if not isinstance(run_format, int):
            raise TypeError("a format is a number")
    except UsageError as error:
        cure = "put it back as it was, or train again into another folder"
        raise RunError(f"{path} is damaged or edited ({error}); {cure}") from error
    except MISREAD as error:
        raise damaged(path) from error
    version = f"another version of auxrnn (run format {run_format}, here {RUN_FORMAT})"
    raise RunError(f"{folder} was made by {version}; use that version, or train again")


def read_card(folder: Path) -> ModelCard:
    """Read the card of a run."""
    path = folder / CARD
    try:
        values = json.loads(read_checked(path))
        if "image_format" in values:
            form = from_plain({"kind": "images"} | values["image_format"])
            # Runs of the first version are all of images.
            return ModelCard(tuple(values["class_names"]), form, form.num_steps, None)  # type: ignore[union-attr]
        classes, form, num_steps = tuple(values["class_names"]), from_plain(values["format"]), values["num_steps"]
        make_encoding(form)
        if not all(isinstance(name, str) for name in classes) or not 0 < num_steps <= MOST:
            raise TypeError("a class is a name, and a length is a number")
        return ModelCard(classes, form, int(num_steps), values["checksum"], float(values.get("constant_loss", 1.0)))
    except MISREAD as error:
        raise damaged(path) from error


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


def read_environment(folder: Path) -> dict[str, Any]:
    """Return the versions, the machine and the commit that a run was begun with; nothing of a run that kept none."""
    path = folder / ENVIRONMENT
    if not path.exists() and ENVIRONMENT not in read_sums(folder):
        return {}
    try:
        return dict(json.loads(read_checked(path)))
    except MISREAD as error:
        raise damaged(path) from error


def compare_environment(config: RunConfig, folder: Path) -> str:
    """Return what rounds differently from when a run began; nothing if a resumed run will end with the same bytes."""
    if not (folder / ENVIRONMENT).exists() and not read_sums(folder):
        # A run of an earlier version, where nobody needed it.
        return ""
    try:
        began = json.loads(read_checked(folder / ENVIRONMENT))
        then = {"torch": began["versions"]["torch"], "the LSTM": began.get("lstm")}
    except MISREAD as error:
        raise damaged(folder / ENVIRONMENT) from error
    now = {"torch": importlib.metadata.version("torch")}
    now |= {"the LSTM": describe_kernel()} if config.model.model in FUSED_MODELS else {}
    # Both vector builds of the kernel compute the same bits.
    same = {"fused kernel (avx2)", "fused kernel (avx512)", None}
    changed = [name for name in now if then[name] != now[name] and not {then[name], now[name]} <= same]
    return ", ".join(f"{name} was {then[name]} and is {now[name]}" for name in changed)


def find_device() -> str:
    """Return where networks are trained unless another device is named."""
    # Other accelerators can be asked for by name, but nobody has tried them yet.
    return "cuda" if torch.cuda.is_available() else "cpu"


def first_phase(config: RunConfig) -> RunConfig | None:
    """Return the run that is the pretraining of this one and nothing else; None where there is none.

    It knows nothing of labels, so runs that differ only in what comes after may share it. A run that adopts it goes on
    from its last checkpoint as if it had been stopped there, and ends with the same bytes as one that pretrained alone.
    """
    if config.loss.objective == "none" or not (config.schedule.pretrain_steps or config.schedule.pretrain_epochs):
        return None
    usual = flatten(unflatten({"data": ""}))
    return change(config, **{name: usual[name] for name in OF_LABELS} | WITHOUT_LABELS)


def check_pretrained(config: RunConfig, card: ModelCard, source: Path) -> None:
    """Refuse a run whose pretraining is not that of this config and data, is not finished, or went beyond it."""
    wanted, found = first_phase(config), read_config(source)
    if wanted is None:
        raise UsageError("--pretrained is for a run with pretraining; give --pretrain-steps and an objective")
    if found.schedule.train_steps != 0 or not is_finished(source):
        raise UsageError(f"{source} is not a finished pretraining; make one with --train-steps 0")
    theirs = flatten(first_phase(found) or found)
    for name, value in flatten(wanted).items():
        if name not in WITHOUT_EFFECT and value != theirs[name]:
            rule = "a first phase can only be shared by runs that pretrain alike"
            raise UsageError(f"{name} is {value} here and {theirs[name]} in {source}; {rule}")
    if read_card(source).checksum not in (None, card.checksum):
        raise UsageError(f"{source} was pretrained on other data, or the data has changed; pretrain again")
    newest = newest_path(source / "checkpoints")
    if newest is None or load_checkpoint(newest.with_suffix(".json")) is None:
        raise UsageError(f"{source} has no whole checkpoint to take the pretraining from; pretrain again")


def _adopt(folder: Path, source: Path) -> None:
    """Put the end of another run's pretraining into the folder of a run to be, as its own newest checkpoint."""
    tensors = newest_path(source / "checkpoints")
    assert tensors is not None, "see check_pretrained"
    write_aside(folder / METRICS, read_checked(source / METRICS))
    # The values come last: without them the tensors do not count, and the run would pretrain by itself.
    for path in (tensors, tensors.with_suffix(".json")):
        write_aside(folder / "checkpoints" / path.name, path.read_bytes())


def _find_commit() -> str | None:
    """Return the commit of the source this package runs from, where it is a checkout of its own."""
    if not (Path(__file__).parents[2] / ".git").exists():
        return None
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed words
    except (OSError, subprocess.CalledProcessError):
        return None


def _take_weights(network: Trainable, card: ModelCard, source: Path) -> None:
    """Start from another run's networks: always its main one, its head for the same classes, its decoder if it fits."""
    other = load_run(source, weights="final")
    theirs, ours = other.network.state_dict(), network.state_dict()
    if other.card.class_names != card.class_names:
        theirs = {name: value for name, value in theirs.items() if not name.startswith("classifier.")}
    fitting = {name: value for name, value in theirs.items() if name in ours and value.shape == ours[name].shape}
    if not all(name in fitting for name in ours if name.startswith(("encoder.", "reader."))):
        cure = "give the same --model, --hidden-size, --embedding-size and --num-layers, and data of the same kind"
        difference = "are of another kind, or of other sizes, than this run asks for"
        raise UsageError(f"the networks of {source} {difference}; {cure}")
    objective = {name for name in ours if name.startswith("objective.")}
    if not objective <= fitting.keys():
        fitting = {name: value for name, value in fitting.items() if name not in objective}
    network.load_state_dict(ours | fitting)
    fresh = {name.partition(".")[0] for name in ours.keys() - fitting.keys()}
    logger.info("started from the networks of %s%s", source, f"; new: {', '.join(sorted(fresh))}" if fresh else "")
