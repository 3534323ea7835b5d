"""Updates, evaluations and checkpoints in their fixed order, phase by phase.

At each update: train, then log, evaluate and save if it is their turn. A checkpoint comes last and holds everything
that the next update depends on, so that a run resumed from it does what the run that was never stopped does.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from jaxtyping import Float
from safetensors import SafetensorError
from torch import Tensor

from auxrnn.config import RunConfig, SupervisedWindow, decided
from auxrnn.data.sequences import Batches, Split, Splits, by_length, in_order
from auxrnn.errors import RunError
from auxrnn.files import damaged
from auxrnn.models.network import Losses, LossTerms, Trainable
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training import optimizers
from auxrnn.training.calibration import fit_temperature
from auxrnn.training.evaluate import evaluate, evaluate_auxiliary, predict_split
from auxrnn.training.optimizers import Phase, make_optimizer
from auxrnn.training.processes import ALONE, LostError, Processes
from auxrnn.training.record import Checkpoint, Recorder, newest_path, save_checkpoint

EVALUATIONS_PER_PHASE = 10
FEWEST_CALIBRATED = 20
"""Sequences below which a temperature would follow chance."""
BEST = "model-best.safetensors"

logger = logging.getLogger(__name__)


@dataclass
class Meter:
    """Sums since the last line of the log."""

    supervised_total: float = 0.0
    num_examples: int = 0
    num_correct: int = 0
    auxiliary_total: float = 0.0
    num_tokens: int | float = 0

    def add(self, losses: Losses) -> None:
        """Count one batch."""
        if losses.supervised is not None and losses.num_correct is not None:
            self.supervised_total += losses.supervised.total.item()
            self.num_examples += int(losses.supervised.num_tokens)
            self.num_correct += int(losses.num_correct)
        if losses.auxiliary is not None:
            self.auxiliary_total += losses.auxiliary.total.item()
            self.num_tokens += losses.auxiliary.num_tokens.item()

    def means(self) -> dict[str, float]:
        """Return the means of what was counted."""
        means = {}
        if self.num_examples:
            means["supervised_loss"] = self.supervised_total / self.num_examples
            means["train_accuracy"] = 100 * self.num_correct / self.num_examples
        if self.num_tokens:
            means["auxiliary_loss"] = self.auxiliary_total / self.num_tokens
        return means


@dataclass
class Position:
    """Where a run stands: `step` updates of phase `phase_index` are done."""

    phase_index: int = 0
    step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    best_accuracy: float | None = None
    num_stale: int = 0
    """Evaluations since the best one."""
    meter: Meter = field(default_factory=Meter)


class Clock(NamedTuple):
    """When a run would have begun, had it never been interrupted: in elapsed and in processor time.

    Elapsed time says little on a shared machine; with one thread, processor time is the time of one core.
    """

    start: float
    cpu_start: float

    def read(self) -> dict[str, float]:
        """Return the seconds since then."""
        seconds, cpu_seconds = time.monotonic() - self.start, time.process_time() - self.cpu_start
        return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}

    def stamp(self, position: Position) -> Position:
        """Return a position with the seconds since then."""
        now = self.read()
        return replace(position, seconds=now["seconds"], cpu_seconds=now["cpu_seconds"])


class Tick(NamedTuple):
    """What a progress display may show after each update: running means, and scores if there was an evaluation."""

    phase: Phase
    step: int
    means: dict[str, float]
    scores: dict[str, float]


@dataclass
class Session:
    """One training, from its first update to its last."""

    network: Trainable
    batches: Batches
    """Of the examples that have a label."""
    pretrain_batches: Batches
    """Of all examples."""
    splits: Splits
    """What is evaluated: a fixed part of the training examples, and what is held out of them."""
    phases: list[Phase]
    config: RunConfig
    recorder: Recorder
    folder: Path | None
    """Where checkpoints go; None keeps nothing, as do all processes but the first of several."""
    processes: Processes = ALONE
    observe: Callable[[Tick], None] = lambda _tick: None
    should_stop: Callable[[], bool] = lambda: False
    best: dict[str, Tensor] | None = None
    """The best weights on the validation split so far; checkpoints hold them too."""
    held_out: Split | None = None
    """The whole validation split, for the temperature of the best weights; None fits none."""
    temperature: float = 1.0
    """What calibrates the best weights, known when training ends."""

    @property
    def checkpoint_folder(self) -> Path:
        """Where checkpoints go."""
        assert self.folder is not None
        return self.folder / "checkpoints"

    @property
    def num_rows(self) -> int:
        """How many rows of a batch this process has at most."""
        return math.ceil(self.batches.batch_size / self.processes.turn.num_processes)

    def batches_of(self, phase: Phase) -> Batches:
        """Return the batches that a phase learns from."""
        return self.batches if phase.is_supervised else self.pretrain_batches

    def terms_of(self, phase: Phase) -> LossTerms:
        """Return which losses count in a phase, and how."""
        window: SupervisedWindow = decided(self.config.loss.supervised_window)
        return LossTerms(phase.is_supervised, phase.is_auxiliary, window, self.config.schedule.label_smoothing)

    def true_probability(self, total_step: int) -> float:
        """Return the probability of scheduled sampling that the decoder is fed a true token."""
        return optimizers.true_token_probability(total_step, sampling_steps=decided(self.config.loss.sampling_steps))

    def total_step(self, position: Position) -> int:
        """Count the updates of all phases so far: the clock of scheduled sampling."""
        return sum(phase.num_steps for phase in self.phases[: position.phase_index]) + position.step


def train(session: Session, checkpoint: Checkpoint | None = None) -> bool:
    """Train from the start or from a checkpoint on; False if `should_stop` ended it before the last update."""
    position, optimizer = _restore(session, checkpoint)
    clock = Clock(time.monotonic() - position.seconds, time.process_time() - position.cpu_seconds)
    if checkpoint is None:
        session.recorder.rewind(0)
        for tensor in session.network.state_dict().values():
            session.processes.send_tensor(tensor)
        _save(session, position, optimizer)
    while position.phase_index < len(session.phases):
        phase = session.phases[position.phase_index]
        if position.step == 0 and phase.is_supervised:
            _record_evaluation(session, position, clock)
        while position.step < phase.num_steps and not _has_stalled(session, position):
            is_asked = _update(session, position, optimizer)
            _finish_step(session, position, optimizer, clock)
            is_end = phase is session.phases[-1] and position.step == phase.num_steps
            if is_asked and not is_end:
                _save(session, clock.stamp(position), optimizer)
                return False
        last, position = position, clock.stamp(Position(position.phase_index + 1, best_accuracy=position.best_accuracy))
        optimizer = make_optimizer(session.config.schedule.optimizer, session.network, lr=phase.lr)
    if session.phases[-1].is_supervised:
        _record_result(session, last, clock)
    return True


def _has_stalled(session: Session, position: Position) -> bool:
    """Return whether the validation accuracy has not improved for `patience` evaluations."""
    return session.config.patience is not None and position.num_stale >= session.config.patience


class Gradients(NamedTuple):
    """What is known of a batch when the network has its gradients."""

    losses: Losses
    loss: Float[Tensor, ""]
    """The weighted sum of both."""
    norm: Float[Tensor, ""]
    """Of the gradients before they were clipped."""
    is_asked_to_stop: bool
    """Whether any of the processes is."""


def compute_gradients(
    session: Session,
    phase: Phase,
    batch: SequenceBatch,
    *,
    draws: Draws,
    true_probability: float,
    processes: Processes = ALONE,
) -> Gradients:
    """Set the gradients of a batch, those of other processes included."""
    network, terms, weight = session.network, session.terms_of(phase), session.config.loss.auxiliary_weight
    own = network.losses(batch, terms=terms, draws=draws, true_probability=true_probability)
    own, is_asked = processes.count_together(own, batch.share, is_asked=session.should_stop())
    losses = own

    def add_up() -> None:
        nonlocal losses
        losses = processes.add_gradients(network, own)

    clip_norm = session.config.schedule.clip_norm
    norm = optimizers.back_propagate(network, own.combine(weight), clip_norm=clip_norm, add_up=add_up)
    return Gradients(losses, losses.combine(weight), norm, is_asked)


def _update(session: Session, position: Position, optimizer: torch.optim.Optimizer) -> bool:
    """Do one update: the only place where weights change. Return whether it shall be the last for now."""
    phase = session.phases[position.phase_index]
    batch = session.batches_of(phase).at(position.step, phase=phase.name).to(session.network.device)
    draws = Draws(session.config.seed, phase.name, position.step)
    true_probability = session.true_probability(session.total_step(position))
    found = compute_gradients(
        session, phase, batch, draws=draws, true_probability=true_probability, processes=session.processes
    )
    for name, value in (("loss", found.loss), ("gradient", found.norm)):
        if not bool(torch.isfinite(value)):
            raise _not_finite(session, position, name, update=position.step + 1)
    optimizers.set_rate(optimizer, phase.lr_at(position.step))
    optimizer.step()
    position.step += 1
    position.meter.add(found.losses)
    return found.is_asked_to_stop


def _finish_step(session: Session, position: Position, optimizer: torch.optim.Optimizer, clock: Clock) -> None:
    """Show, log, evaluate and save, each if it is its turn; all of them at the end of a phase."""
    phase, config = session.phases[position.phase_index], session.config
    is_last = position.step == phase.num_steps
    means = position.meter.means()
    if is_last or position.step % config.log_every == 0:
        rate = {"lr": phase.lr_at(position.step - 1)}
        session.recorder.write(_stamp("train", session, position) | means | rate | clock.read())
        position.meter = Meter()
    every = config.evaluate_every or max(1, phase.num_steps // EVALUATIONS_PER_PHASE)
    scores: dict[str, float] = {}
    if is_last or position.step % every == 0:
        scores = _record_evaluation(session, position, clock)
    session.observe(Tick(phase, position.step, means, scores))
    if is_last or position.step % config.checkpoint_every == 0 or _has_stalled(session, position):
        _save(session, clock.stamp(position), optimizer)


def _record_evaluation(session: Session, position: Position, clock: Clock) -> dict[str, float]:
    """Evaluate, keep the weights if they are the best so far on the validation split, and return the scores."""
    phase, splits, config = session.phases[position.phase_index], session.splits, session.config
    is_end = phase is session.phases[-1] and position.step == phase.num_steps
    scores: dict[str, float] = {}
    for name, split in splits._asdict().items():
        is_due = name == "validation" or (name == "test" and is_end and splits.validation is None)
        if split is not None and (is_due or config.evaluate_all):
            scores |= _score(session, name, split, phase)
    _check_scores(session, position, scores)
    session.recorder.write(_stamp("evaluation", session, position) | scores | clock.read())
    accuracy = scores.get("validation_accuracy")
    if accuracy is None:
        return scores
    position.num_stale += 1
    if accuracy > (-1 if position.best_accuracy is None else position.best_accuracy):
        position.best_accuracy, position.num_stale = accuracy, 0
        session.best = _copy_weights(session.network)
    return scores


def _check_scores(session: Session, position: Position, scores: dict[str, float]) -> None:
    if not all(math.isfinite(score) for score in scores.values()):
        raise _not_finite(session, position, "loss of an evaluation", update=position.step)


def _copy_weights(network: Trainable) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def _record_result(session: Session, last: Position, clock: Clock) -> None:
    """Evaluate the test split with the best weights on the validation split, which are those that will be used."""
    if session.splits.validation is None:
        return
    assert session.best is not None, "a phase with labels ends with an evaluation"
    final = _copy_weights(session.network)
    session.network.load_state_dict(session.best)
    scores = _score(session, "validation", session.splits.validation, session.phases[-1])
    if session.splits.test is not None:
        scores |= _score(session, "test", session.splits.test, session.phases[-1])
    _check_scores(session, last, scores)
    if session.held_out is not None:
        session.temperature = _calibrate(session, session.held_out)
        scores["temperature"] = session.temperature
    if session.folder is not None:
        session.network.load_state_dict(final)
    session.recorder.write(_stamp("result", session, last) | {"weights": "best"} | scores | clock.read())
    session.recorder.flush()


def _calibrate(session: Session, held_out: Split) -> float:
    if held_out.num_examples < FEWEST_CALIBRATED:
        return 1.0
    size = session.batches.batch_size
    logits_NC = predict_split(session.network, held_out, batch_size=size, processes=session.processes)
    return fit_temperature(logits_NC, torch.from_numpy(held_out.label_N), smoothing=2 / (held_out.num_examples + 2))


def _score(session: Session, name: str, split: Split, phase: Phase) -> dict[str, float]:
    network, processes = session.network, session.processes
    batches = in_order(split.select(by_length(split)), session.batches.batch_size, processes.turn)
    if phase.is_supervised:
        evaluation = evaluate(network, batches, processes)
        scores = {f"{name}_loss": evaluation.loss, f"{name}_accuracy": evaluation.accuracy}
        if name == "test":
            scores["test_balanced_accuracy"] = evaluation.balanced_accuracy
            scores["test_macro_f1"] = evaluation.macro_f1
        return scores
    loss = evaluate_auxiliary(network, batches, seed=session.config.seed, processes=processes)
    return {f"{name}_auxiliary_loss": loss}


def _stamp(event: str, session: Session, position: Position) -> dict[str, Any]:
    phase = session.phases[position.phase_index].name
    return {"event": event, "phase": phase, "step": position.step, "total_step": session.total_step(position)}


def _save(session: Session, position: Position, optimizer: torch.optim.Optimizer) -> None:
    if session.folder is None:
        return
    tensors = {f"network.{name}": value for name, value in session.network.state_dict().items()}
    tensors |= optimizers.collect_state(optimizer, session.network)
    tensors |= {f"best.{name}": value for name, value in (session.best or {}).items()}
    mark = session.recorder.flush()
    values = {"position": asdict(position), "mark": mark, "events_sha256": session.recorder.checksum()}
    save_checkpoint(session.checkpoint_folder, Checkpoint(tensors, values), step=session.total_step(position))


def _restore(session: Session, checkpoint: Checkpoint | None) -> tuple[Position, torch.optim.Optimizer]:
    optimizer = make_optimizer(session.config.schedule.optimizer, session.network, lr=session.phases[0].lr)
    if checkpoint is None:
        return Position(), optimizer
    values = dict(checkpoint.values["position"])
    position = Position(**values | {"meter": Meter(**values["meter"])})
    if position.best_accuracy is not None:
        session.best = _find_best(session, checkpoint)
    try:
        # These two lines only ask whether phase and best weights fit; the third takes the weights.
        _ = session.phases[position.phase_index]
        session.network.load_state_dict(session.best or session.network.state_dict())
        session.network.load_state_dict(checkpoint.weights("network"))
        optimizers.restore_state(optimizer, session.network, checkpoint.tensors, kind=session.config.schedule.optimizer)
    except (RuntimeError, LookupError) as error:
        # Possible in run folders of earlier versions, which have no checksums.
        raise RunError("the newest checkpoint does not fit config.json; put that back as it was") from error
    session.recorder.rewind(checkpoint.values["mark"])
    kept = checkpoint.values.get("events_sha256")
    if session.folder is not None and kept not in (None, session.recorder.checksum()):
        logger.warning(
            "%s/metrics.jsonl is damaged or edited; training goes on, but the record may be wrong", session.folder
        )
    return position, optimizer


def _find_best(session: Session, checkpoint: Checkpoint) -> dict[str, Tensor]:
    if best := checkpoint.weights("best"):
        return best
    # Earlier versions kept them in a file of their own, which was replaced again and again.
    assert session.folder is not None
    try:
        return dict(safetensors.torch.load((session.folder / BEST).read_bytes()))
    except (OSError, SafetensorError) as error:
        raise damaged(session.folder / BEST) from error


def _not_finite(session: Session, position: Position, name: str, *, update: int) -> RunError:
    if not session.processes.is_first:
        # All processes find the same, and the first one knows what was saved.
        return LostError()
    phase = session.phases[position.phase_index].name
    kept = None if session.folder is None else newest_path(session.checkpoint_folder)
    where = "nothing was saved" if kept is None else f"the last good checkpoint is {kept}"
    what = f"the {name} is not a finite number at update {update} of phase {phase}"
    return RunError(f"{what}; {where}; train again with a smaller --lr")
