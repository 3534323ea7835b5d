"""A run is a folder: prepare one, claim and fill its folder, train it, resume it, extend it.

It holds `config.json`, `environment.json`, `model.json` (what the network must know of its data to be used elsewhere),
`splits.json` (which rows it was trained and tested on, where these were drawn), `metrics.jsonl`, `checkpoints/` and at
the end `model.safetensors` (with a validation split, `model-best.safetensors`). `sums.json` has their checksums; a file
that differs is refused.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from auxrnn.build import build_network, build_session
from auxrnn.config import DataConfig, RunConfig, SplitName, change, flatten
from auxrnn.data import datasets, formats
from auxrnn.data.catalog import DATASETS
from auxrnn.data.datasets import Dataset
from auxrnn.data.formats import SeriesFormat, make_encoding, to_plain
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Encoding, Split
from auxrnn.data.splits import Division, divide, is_drawn, make_splits
from auxrnn.environment import ENVIRONMENT, describe_environment, find_device
from auxrnn.errors import RunError, UsageError
from auxrnn.files import (
    ASIDE,
    NEXT,
    SUMS,
    cannot_write,
    digest,
    expand,
    find_checksum,
    lock,
    read_checked,
    read_sums,
    reading,
    remove_asides,
    write_aside,
    write_sums,
)
from auxrnn.pretraining import adopt, take_weights
from auxrnn.saved import (
    CARD,
    CONFIG,
    FINAL,
    METRICS,
    RUN_FORMAT,
    TEMPERATURE,
    ModelCard,
    TrainedRun,
    load_run,
    read_card,
    read_config,
)
from auxrnn.training.loop import BEST, Position, Session, train
from auxrnn.training.processes import ALONE, Processes
from auxrnn.training.record import (
    Checkpoint,
    FileRecorder,
    ListRecorder,
    load_newest,
    newest_path,
    remove_old,
    save_checkpoint,
    send_checkpoint,
)

SPLITS = "splits.json"


class Prepared(NamedTuple):
    """The data of a run, ready to train on: how it is read, and how it is divided."""

    card: ModelCard
    division: Division
    is_drawn: bool
    """Whether chance had a part in the division."""


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
    with reading(path):
        values = json.loads(read_checked(path))
        division = Division(*(np.array(values[name], dtype=np.int64).reshape(-1) for name in Division._fields))
        if any(len(rows) and not 0 <= rows.min() <= rows.max() < len(dataset.table.label_N) for rows in division):
            raise ValueError("rows that are not there")
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


def open_session(
    config: RunConfig, dataset: Dataset, prepared: Prepared, folder: Path | None, processes: Processes = ALONE
) -> Session:
    """Put together the training of a run, in its own folder (None keeps nothing) and with its number of threads."""
    assert config.threads is not None, "settle the config first"
    torch.set_num_threads(config.threads)
    network = build_network(config, prepared.card.spec)
    if config.init_from is not None and (folder is None or newest_path(folder / "checkpoints") is None):
        take_weights(network, prepared.card, config.init_from)
    try:
        if torch.device(str(config.device)).type == "meta":
            raise RuntimeError("nothing is computed there")
        network.to(config.device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device is {config.device!r}, which is not available here; use cpu") from error
    splits = make_splits(dataset, prepared.division, prepared.card.format)
    if not config.evaluate_test:
        splits = splits._replace(test=None)
    if config.patience is not None and splits.validation is None:
        raise UsageError(f"patience is {config.patience}, which needs a validation split; give --validation-fraction")
    recorder = ListRecorder() if folder is None else FileRecorder(folder / METRICS)
    return build_session(config, network, splits, recorder=recorder, folder=folder, processes=processes)


def check_free(folder: Path, *, other: str = "another --out") -> None:
    """Refuse a folder that holds a run, or anything but what a process left that was killed while it made one."""
    if (folder / CONFIG).exists():
        raise UsageError(f"{folder} already holds a run; `auxrnn resume {folder}` continues it, or choose {other}")
    if folder.exists() and not (folder.is_dir() and _is_half_made(folder)):
        raise UsageError(f"{folder} exists and is not an empty folder; choose {other}")


def _is_half_made(folder: Path) -> bool:
    names = {path.name for path in folder.iterdir()}
    asides = {path.name for path in folder.glob(f".*{ASIDE}")}
    # The checksums are what is written first, unless a pretraining was adopted.
    is_ours = SUMS in names or any(name.startswith(f".{SUMS}.") for name in asides)
    return not names or (is_ours and names - asides <= {SUMS, ENVIRONMENT, CARD, SPLITS})


@contextmanager
def claim(folder: Path | Iterable[Path], *, other: str = "another --out") -> Iterator[Path]:
    """Make and lock the folder of a new run: the given one, or the first of several that nobody has made yet.

    One that is not free is refused, with what to choose instead. The lock is held to the end of the block. If no run is
    in the folder by then, it is removed.
    """
    try:
        claimed = folder if isinstance(folder, Path) else next(filter(_make_new, folder))
        if not claimed.exists():
            claimed.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(Path(error.filename), error) from error
    with lock(claimed):
        check_free(claimed, other=other)
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
        adopt(folder, pretrained)
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
    """Train from the newest whole checkpoint on, or from the start; False if it was stopped before its end.

    Of several processes the first one has the folder, and sends the checkpoint to the others.
    """
    folder = session.folder
    checkpoint = None if folder is None else _take_newest(session, folder)
    is_done = train(session, send_checkpoint(checkpoint, session.processes))
    if is_done and folder is not None:
        _finish(session, folder)
    return is_done


def _take_newest(session: Session, folder: Path) -> Checkpoint | None:
    """Return the newest whole checkpoint, and clean the folder of what a killed process left."""
    checkpoint = load_newest(session.checkpoint_folder)
    _settle_sums(folder)
    remove_asides(folder)
    remove_old(session.checkpoint_folder)
    if checkpoint is None and newest_path(session.checkpoint_folder) is not None:
        raise RunError(f"no checkpoint in {session.checkpoint_folder} is whole; train again into another folder")
    return checkpoint


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
