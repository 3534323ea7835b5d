"""Chooses what a new run leaves open (auto, or a budget in minutes), from its data and from measured time.

The result is a config of plain values, so that a run resumes exactly, whatever would be chosen today.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from auxrnn import runs
from auxrnn.build import InputSpec, build_phases
from auxrnn.config import RunConfig, Window, decided, flatten, unflatten
from auxrnn.data.collect import PARTS
from auxrnn.data.datasets import Dataset
from auxrnn.data.splits import divide
from auxrnn.presets import name_system
from auxrnn.training.cost import estimate_growth, find_free_memory, find_longest, time_evaluation, time_step
from auxrnn.training.loop import Session, train
from auxrnn.training.record import ListRecorder

DEFAULT_MINUTES = 10.0
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


class Planned(NamedTuple):
    """A config with nothing left open, and its data."""

    config: RunConfig
    prepared: runs.Prepared


class Budget(NamedTuple):
    """Seconds that a run may take from its start on, planning included."""

    seconds: float
    start: float

    @property
    def left(self) -> float:
        """Seconds that are not spent yet."""
        return max(self.start + self.seconds - time.monotonic(), 0.0)


class Trial(NamedTuple):
    """What a short training reached on the validation split."""

    accuracy: float
    loss: float

    def beats(self, other: "Trial") -> bool:
        """Return whether it is better: by accuracy, and by loss where that is the same."""
        return (self.accuracy, -self.loss) > (other.accuracy, -other.loss)


def plan(config: RunConfig, dataset: Dataset, *, minutes: float | None, say: Say) -> Planned:
    """Choose what a config leaves open; with a budget, compare networks and fit both phases into what is left."""
    start = time.monotonic()
    config = _change(config, validation_fraction=_choose_validation(config, dataset))
    planner = Planner(dataset, runs.prepare(config, dataset), say)
    if minutes is not None:
        budget = Budget(60 * minutes, start)
        config = _change(config, supervised_window=planner.choose_window(config, budget))
        config = planner.compare(config, budget)
        config = planner.fit(config, budget.left)
    return Planned(planner.complete(config), planner.prepared)


def choose_sizes(config: RunConfig, spec: InputSpec, *, num_labeled: int, num_examples: int) -> RunConfig:
    """Choose what depends on the size of the data alone; what nobody compared is as in the paper."""
    rows = next(size for least, size in BATCH_SIZES.items() if num_labeled >= least)
    segment = min(LONGEST_SEGMENT, max(1, spec.num_steps // 2))
    chosen = {
        "batch_size": rows,
        "segment_length": segment,
        "auxiliary_window": segment,
        "supervised_window": "full" if spec.num_steps <= LONGEST_FULL_WINDOW else CUT_WINDOW,
        "objective": "reconstruct",
        "readout": "last",
    }
    values = flatten(config)
    config = _change(config, **{name: value for name, value in chosen.items() if values[name] == "auto"})
    if config.loss.sampling_steps == "auto":
        size: int = decided(config.schedule.batch_size)
        counts = (math.ceil(count / size) for count in (num_labeled, num_examples))
        phases = build_phases(config, next(counts), pretrain_steps_per_epoch=next(counts))
        config = _change(config, sampling_steps=sum(phase.num_steps for phase in phases))
    return config


class Planner:
    """Plans a run on data that is already divided."""

    def __init__(self, dataset: Dataset, prepared: runs.Prepared, say: Say) -> None:
        self.dataset = dataset
        self.prepared = prepared
        self.say = say

    def complete(self, config: RunConfig) -> RunConfig:
        """Choose the sizes that are still open."""
        division = self.prepared.division
        counts = {"num_labeled": len(division.labeled), "num_examples": len(division.train)}
        return choose_sizes(config, self.prepared.card.spec, **counts)

    def choose_window(self, config: RunConfig, budget: Budget) -> Window:
        """Choose full back-propagation where memory and time hold it."""
        given, num_steps = config.loss.supervised_window, self.prepared.card.num_steps
        if given != "auto":
            return given
        if num_steps <= LONGEST_FULL_WINDOW:
            return "full"
        session = self._open(_change(config, supervised_window="full", objective="none", pretrain_steps=0))
        free = find_free_memory(session.network.device)
        needed = estimate_growth(session).bytes_for(session.batches.batch_size, find_longest(session))
        if needed > MEMORY_SHARE * free:
            return CUT_WINDOW
        seconds = time_step(session, session.phases[-1], total_step=0)
        return "full" if FEWEST_UPDATES * seconds <= budget.left / 2 else CUT_WINDOW

    def compare(self, config: RunConfig, budget: Budget) -> RunConfig:
        """Choose readout and objective, where they are open, by short trainings on the validation split."""
        is_open = {name for name in ("readout", "objective") if flatten(config)[name] == "auto"}
        if not is_open or not len(self.prepared.division.validation):
            return config
        seconds = TRIAL_SHARE * budget.seconds
        plain = self.fit(_change(config, objective="none", pretrain_steps=0), seconds)
        if (plain.schedule.train_steps or 0) < FEWEST_TRIED:
            self.say("too little time to compare networks: training without auxiliary loss, with mean readout")
            untried = {"objective": "none", "readout": "mean"}
            return _change(config, **{name: untried[name] for name in is_open})
        readouts = ["last", "mean"] if "readout" in is_open else [config.model.readout]
        tried = {}
        for readout in readouts:
            candidate = _change(plain, readout=readout)
            tried[candidate] = self._try(candidate)
        best = max(tried, key=lambda candidate: (tried[candidate].accuracy, -tried[candidate].loss))
        if "objective" in is_open:
            helped = self.fit(_change(best, objective="reconstruct", pretrain_steps=None), seconds)
            tried[helped] = self._try(helped)
            best = helped if tried[helped].beats(tried[best]) else best
        self._report(tried, best, seconds)
        values = flatten(best)
        return _change(config, **{name: values[name] for name in is_open})

    def fit(self, config: RunConfig, seconds: float) -> RunConfig:
        """Choose how many updates both phases have, and how often they are evaluated, for a span of time."""
        has_auxiliary = config.loss.objective != "none"
        one_each = {"pretrain_steps": 1 if has_auxiliary else 0, "train_steps": 1, "train_epochs": None}
        # Scheduled sampling is timed halfway.
        session = self._open(_change(config, **one_each))
        costs = [SLOWER_THAN_TRIED * time_step(session, phase, total_step=1) for phase in session.phases]
        evaluated = session.splits.validation
        a_sequence = time_evaluation(session)
        an_evaluation = a_sequence * (0 if evaluated is None else evaluated.num_examples)
        last = a_sequence * (0 if session.splits.test is None else session.splits.test.num_examples) + an_evaluation
        usable = max(seconds - last, 0.5 * seconds)
        num_evaluations = max(1, min(MOST_EVALUATIONS, int(EVALUATION_SHARE * usable / max(an_evaluation, 1e-9))))
        training = usable - num_evaluations * an_evaluation
        first = PRETRAIN_SHARE * training if has_auxiliary else 0.0
        most = max(ENOUGH_UPDATES, MOST_EPOCHS * session.batches.steps_per_epoch)
        train_steps = max(1, min(most, int((training - first) / costs[-1])))
        pretrain_steps = max(1, min(most, int(first / costs[0]))) if has_auxiliary else 0
        return _change(
            config,
            pretrain_steps=pretrain_steps,
            train_steps=train_steps,
            evaluate_every=max(1, (pretrain_steps + train_steps) // num_evaluations),
        )

    def _open(self, config: RunConfig) -> Session:
        return runs.open_session(self.complete(config), self.dataset, self.prepared, None)

    def _try(self, config: RunConfig) -> Trial:
        """Train as long as was fitted, with annealed rates, and return what it reached."""
        session = self._open(config)
        session.splits = session.splits._replace(test=None)
        train(session)
        assert isinstance(session.recorder, ListRecorder)
        result = session.recorder.events[-1]
        return Trial(result["validation_accuracy"], result["validation_loss"])

    def _report(self, tried: dict[RunConfig, Trial], best: RunConfig, seconds: float) -> None:
        told = ", ".join(f"{_name(config)} {trial.accuracy:.1f}" for config, trial in tried.items())
        self.say(
            f"% correct on the validation split after {seconds:.0f} seconds each: {told}; training the {_name(best)}"
        )


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


def _change(config: RunConfig, **values: Any) -> RunConfig:
    return unflatten(flatten(config) | values)
