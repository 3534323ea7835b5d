"""What a run takes over from another one: its whole pretraining, or its networks to start from."""

import logging
from pathlib import Path

from auxrnn.config import RunConfig, change, flatten, unflatten
from auxrnn.errors import UsageError
from auxrnn.files import read_checked, write_aside
from auxrnn.models.network import Trainable
from auxrnn.saved import METRICS, ModelCard, is_finished, load_run, read_card, read_config
from auxrnn.training.record import load_checkpoint, newest_path

# What does not matter in pretraining: settings that become their defaults there, and those that become other values.
OF_LABELS = (
    "label_fraction", "labels_per_class", "class_weight", "train_epochs", "joint", "lr_halving_epochs",
    "auxiliary_weight", "label_smoothing",
)  # fmt: skip
WITHOUT_LABELS = {"supervised_window": "full", "train_steps": 0}
# What changes no weight: where things lie, and how often somebody looks. The fused LSTM computes the same bits on any
# number of threads; what torch runs itself may round otherwise, attention above all.
WITHOUT_EFFECT = ("data_dir", "threads", "device", "evaluate_every", "checkpoint_every", "log_every")
logger = logging.getLogger(__name__)


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
        raise UsageError("--pretrained is for a run with pretraining; give --pretrain-steps and --objective")
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


def adopt(folder: Path, source: Path) -> None:
    """Put the end of another run's pretraining into the folder of a run to be, as its own newest checkpoint."""
    tensors = newest_path(source / "checkpoints")
    assert tensors is not None, "see check_pretrained"
    write_aside(folder / METRICS, read_checked(source / METRICS))
    # The values come last: without them the tensors do not count, and the run would pretrain by itself.
    for path in (tensors, tensors.with_suffix(".json")):
        write_aside(folder / "checkpoints" / path.name, path.read_bytes())


def take_weights(network: Trainable, card: ModelCard, source: Path) -> None:
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
