"""Chooses what a new run leaves open (auto, or a budget in minutes), from its data and from measured time.

The result is a config of plain values, so that a run resumes exactly, whatever would be chosen today.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from auxrnn import runs
from auxrnn.build import InputSpec, build_phases
from auxrnn.config import RunConfig, SupervisedWindow, change, decided, flatten
from auxrnn.data.datasets import PARTS, Dataset
from auxrnn.data.splits import divide
from auxrnn.errors import UsageError
from auxrnn.presets import name_system
from auxrnn.training.cost import estimate_growth, find_longest, find_memory, time_evaluation, time_step
from auxrnn.training.loop import Session, train
from auxrnn.training.processes import ALONE, Processes
from auxrnn.training.record import ListRecorder

LONGEST_FULL_WINDOW, CUT_WINDOW, LONGEST_SEGMENT = 1000, 300, 75
LARGEST_BATCH = 64
BATCH_SIZES = {16_000: LARGEST_BATCH, 1000: 32, 0: 16}
"""Sequences in a batch, by the least number of labeled examples: small sets want more updates."""
FEW_EXAMPLES, FEWEST_HELD_OUT = 1000, 5
"""Below the first a fifth is held out as validation split, otherwise a tenth; below the second none."""
FEWEST_UPDATES, FEWEST_TRIED = 500, 100
"""Full back-propagation through long sequences must leave time for so many; a comparison needs so many."""
TRIAL_SHARE, PRETRAIN_SHARE, EVALUATION_SHARE = 0.1, 0.2, 0.1
"""Shares of the time: of each network that is compared; of pretraining and of evaluation in what is then left."""
MOST_EVALUATIONS, MOST_EPOCHS, ENOUGH_UPDATES = 20, 200, 3000
"""A small set needs no more passes than this, if these are at least so many updates."""
SLOWER_THAN_TRIED = 1.15
"""How much longer an update takes than the best of a few that were timed."""
MEMORY_SHARE = 0.5

Say = Callable[[str], None]


def plan(
    config: RunConfig, dataset: Dataset, *, minutes: float | None, say: Say, processes: Processes = ALONE
) -> tuple[RunConfig, runs.Prepared]:
    """Return a config with nothing left open, and its data; a budget is spent on comparing networks and both phases.

    Several processes do all of it together, and agree on what they measured.
    """
    if minutes is not None and not 0 < minutes < math.inf:
        raise UsageError(f"minutes is {minutes}; it must be a number above 0")
    end = time.monotonic() + 60 * (minutes or 0)
    config = change(config, validation_fraction=_choose_validation(config, dataset))
    planner = Planner(dataset, runs.prepare(config, dataset), say, processes)
    if minutes is not None:
        left = processes.agree(end - time.monotonic())
        config = change(config, supervised_window=planner.choose_window(config, left))
        config = planner.compare(config, seconds=TRIAL_SHARE * 60 * minutes)
        config = planner.fit(config, max(processes.agree(end - time.monotonic()), 0.0))
    return planner.complete(config), planner.prepared


class Outlook(NamedTuple):
    """What training would take: the seconds of a pass over the training data, and the passes in a budget of minutes."""

    sequences: int
    seconds_per_pass: float
    passes: float


def foresee(session: Session, minutes: float) -> Outlook:
    """Measure a few updates, and say how far a planned run would come."""
    batches = session.batches
    seconds = SLOWER_THAN_TRIED * time_step(session, session.phases[-1], total_step=0) * batches.steps_per_epoch
    most = max(ENOUGH_UPDATES / batches.steps_per_epoch, MOST_EPOCHS)
    # Three networks are tried before the best is trained.
    return Outlook(batches.split.num_examples, seconds, min(most, (1 - 3 * TRIAL_SHARE) * 60 * minutes / seconds))


def choose_sizes(config: RunConfig, spec: InputSpec, *, num_labeled: int, num_examples: int) -> RunConfig:
    """Choose what depends on the size of the data alone; what nobody compared is as in the paper."""
    segment = min(LONGEST_SEGMENT, max(1, spec.num_steps // 2))
    chosen = {
        "batch_size": next(size for least, size in BATCH_SIZES.items() if num_labeled >= least),
        "segment_length": segment,
        "auxiliary_window": segment,
        "supervised_window": "full" if spec.num_steps <= LONGEST_FULL_WINDOW else CUT_WINDOW,
        "objective": "reconstruct",
        "readout": "last",
    }
    values = flatten(config)
    config = change(config, **{name: value for name, value in chosen.items() if values[name] == "auto"})
    size: int = decided(config.schedule.batch_size)
    labeled, every = (math.ceil(count / size) for count in (num_labeled, num_examples))
    num_steps = [phase.num_steps for phase in build_phases(config, labeled, pretrain_steps_per_epoch=every)]
    is_open = (config.schedule.pretrain_steps, config.schedule.pretrain_epochs) == (None, None)
    if is_open and config.loss.objective != "none":
        # Who asks for a few updates with labels wants a quick run.
        num_steps[0] = min([num_steps[0], *(math.ceil(steps / 2) for steps in num_steps[1:])])
        config = change(config, pretrain_steps=num_steps[0])
    if config.loss.sampling_steps == "auto":
        config = change(config, sampling_steps=sum(num_steps))
    return config


@dataclass
class Planner:
    """Plans a run on data that is already divided."""

    dataset: Dataset
    prepared: runs.Prepared
    say: Say
    processes: Processes

    def complete(self, config: RunConfig) -> RunConfig:
        """Choose the sizes that are still open."""
        card, division = self.prepared.card, self.prepared.division
        return choose_sizes(config, card.spec, num_labeled=len(division.labeled), num_examples=len(division.train))

    def choose_window(self, config: RunConfig, seconds: float) -> SupervisedWindow:
        """Choose full back-propagation where memory and time hold it."""
        given = config.loss.supervised_window
        if given != "auto":
            return given
        if self.prepared.card.num_steps <= LONGEST_FULL_WINDOW:
            return "full"
        session = self._open(change(config, supervised_window="full", objective="none", pretrain_steps=0))
        needed = estimate_growth(session).bytes_for(session.num_rows, find_longest(session))
        if needed > MEMORY_SHARE * find_memory(session):
            return CUT_WINDOW
        update = time_step(session, session.phases[-1], total_step=0)
        return "full" if FEWEST_UPDATES * update <= seconds / 2 else CUT_WINDOW

    def compare(self, config: RunConfig, *, seconds: float) -> RunConfig:
        """Choose readout and objective, where they are open, by training each so long; the validation split decides."""
        is_open = {name for name in ("readout", "objective") if flatten(config)[name] == "auto"}
        if not is_open or not len(self.prepared.division.validation):
            return config
        plain = self.fit(change(config, objective="none", pretrain_steps=0), seconds)
        if (plain.schedule.train_steps or 0) < FEWEST_TRIED:
            self.say("too little time to compare networks: training without auxiliary loss, with mean readout")
            untried = {"objective": "none", "readout": "mean"}
            return change(config, **{name: untried[name] for name in is_open})
        readouts = ["last", "mean"] if "readout" in is_open else [config.model.readout]
        tried = {candidate: self._try(candidate) for candidate in (change(plain, readout=name) for name in readouts)}
        best = max(tried, key=tried.__getitem__)
        if "objective" in is_open:
            helped = self.fit(change(best, objective="reconstruct", pretrain_steps=None), seconds)
            tried[helped] = self._try(helped)
            best = helped if tried[helped] > tried[best] else best
        told = ", ".join(f"{_name(candidate)} {accuracy:.1f}" for candidate, (accuracy, _) in tried.items())
        after = f"% correct on the validation split after {seconds:.0f} seconds each"
        self.say(f"{after}: {told}; training the {_name(best)}")
        return change(config, **{name: flatten(best)[name] for name in is_open})

    def fit(self, config: RunConfig, seconds: float) -> RunConfig:
        """Choose how many updates both phases have, and how often they are evaluated, for a span of time."""
        has_auxiliary = config.loss.objective != "none"
        # Scheduled sampling is timed halfway.
        session = self._open(change(config, pretrain_steps=int(has_auxiliary), train_steps=1, train_epochs=None))
        costs = [SLOWER_THAN_TRIED * time_step(session, phase, total_step=1) for phase in session.phases]
        held_out = (session.splits.validation, session.splits.test, session.held_out)
        sizes = (0 if split is None else split.num_examples for split in held_out)
        a_sequence = time_evaluation(session)
        an_evaluation, a_test, a_calibration = (a_sequence * size for size in sizes)
        usable = max(seconds - a_test - an_evaluation - a_calibration, 0.5 * seconds)
        num_evaluations = max(1, min(MOST_EVALUATIONS, int(EVALUATION_SHARE * usable / max(an_evaluation, 1e-9))))
        training = usable - num_evaluations * an_evaluation
        first = PRETRAIN_SHARE * training if has_auxiliary else 0.0
        most = max(ENOUGH_UPDATES, MOST_EPOCHS * session.batches.steps_per_epoch)
        train_steps = max(1, min(most, int((training - first) / costs[-1])))
        pretrain_steps = max(1, min(most, int(first / costs[0]))) if has_auxiliary else 0
        every = max(1, (pretrain_steps + train_steps) // num_evaluations)
        return change(config, pretrain_steps=pretrain_steps, train_steps=train_steps, evaluate_every=every)

    def _open(self, config: RunConfig) -> Session:
        return runs.open_session(self.complete(config), self.dataset, self.prepared, None, self.processes)

    def _try(self, config: RunConfig) -> tuple[float, float]:
        """Train as long as was fitted, with annealed rates, and return accuracy and negative loss: more is better."""
        session = self._open(config)
        session.splits, session.held_out = session.splits._replace(test=None), None
        train(session)
        assert isinstance(session.recorder, ListRecorder)
        result = session.recorder.events[-1]
        return result["validation_accuracy"], -result["validation_loss"]


def _choose_validation(config: RunConfig, dataset: Dataset) -> float:
    """Choose what part to hold out: none where the data has a validation split or too few examples."""
    given = config.data.validation_fraction
    if given != "auto":
        return given
    if (dataset.table.part_N == PARTS.index("validation")).any():
        return 0.0
    undivided = replace(config.data, validation_fraction=0.0)
    num_labeled = len(divide(dataset.table, undivided, seed=config.seed).labeled)
    fraction = 0.2 if num_labeled < FEW_EXAMPLES else 0.1
    return fraction if fraction * num_labeled >= FEWEST_HELD_OUT else 0.0


def _name(config: RunConfig) -> str:
    system = name_system(config.model.model, config.loss.objective)
    return f"{system} with mean readout" if config.model.readout == "mean" else system
