"""A study: Optuna proposes settings, short trainings try them, the best are tried again, and the winner is trained.

Everything known is in the study file (SQLite), which this process alone writes: a study that was killed at any moment
goes on from there, and its unfinished trainings from their checkpoints. No random state is carried: the proposal for a
trial depends on the seed, its number and what is known by then.
"""

import math
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, Protocol

import optuna
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from auxrnn.config import RunConfig, change
from auxrnn.errors import RunError
from auxrnn.executors.executor import TaskExecutor
from auxrnn.executors.tasks import Ending, Task
from auxrnn.structs import Draws
from auxrnn.tuning.space import Space
from auxrnn.tuning.trials import Curve, TrialResult, count_steps, find_curve, is_hopeless, read_result

STUDY, BEST = "study.db", "best"
POLL_SECONDS = 0.2
NUM_LENGTHS = 40
"""A study of one worker has time for so many whole trials: what trials again and training the winner take included."""
NUM_BEST, NUM_AGAIN = 3, 2
"""How many are trained again beside the defaults, and with how many other seeds."""
WINNER_LENGTHS = 8
"""How many times as long as a trial the winner is trained."""
NUM_STARTUP = 8
"""Trials before the first proposal that learns from others."""
FEWEST_RANKED = 5
"""Finished trials below which importances would be noise."""
MOST_EVALUATED = 1000
"""Sequences of a validation split that a training looks at."""
MOST_FAILURES = 5
"""So many failures without any success end the study."""


class Attempt(NamedTuple):
    """One training of a study."""

    kind: Literal["trial", "again", "winner"]
    """A trial, one of the best again with another seed, or the winner."""
    number: int
    """Of the trial whose settings it has."""
    config: RunConfig
    seconds: float
    rivals: Sequence[Curve] = ()

    @property
    def title(self) -> str:
        """Return what it is in words."""
        again = {"trial": "", "again": f" again, seed {self.config.seed}", "winner": ", the winner, for longer"}
        return f"trial {self.number}{again[self.kind]}"

    @property
    def task(self) -> Task:
        """Return the process that it takes."""
        again = f"-seed-{self.config.seed}" if self.kind == "again" else ""
        name = BEST if self.kind == "winner" else f"trial-{self.number}{again}"
        return Task(name, self.config, minutes=self.seconds / 60)


class Running(NamedTuple):
    """A training at work."""

    attempt: Attempt
    since: float
    curve: Curve
    is_given_up: bool = False


class Display(Protocol):
    """Shows a study while it works."""

    def update(self, active: Iterable[Running], seconds_left: float) -> None:
        """Show what is running."""

    def end(self, attempt: Attempt, result: TrialResult, seconds_left: float) -> None:
        """Say how a training ended."""


class Score(NamedTuple):
    """What settings are compared by: mean accuracy on the validation split, then their mean loss, then age."""

    accuracy: float
    negative_loss: float
    negative_number: int


@contextmanager
def opened(folder: Path) -> Iterator[optuna.Study]:
    """Yield the study of a folder, made if there is none; a file that is no study of this version is a `RunError`."""
    path = folder / STUDY
    cure = "put it back as it was, or choose another --out"
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
        yield optuna.create_study(storage=storage, study_name="auxrnn", direction="maximize", load_if_exists=True)
        storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.OptunaError, AssertionError) as error:
        what = (str(error).splitlines() or ["unknown reason"])[0]
        raise RunError(f"the study {path} cannot be read or written ({what}); {cure}") from error
    except RuntimeError as error:
        # Optuna's words for a file of another version.
        if "optuna" not in str(error):
            raise
        raise RunError(
            f"{path} was made by another version of Optuna; use that version, or choose another --out"
        ) from error


@dataclass
class Tuning:
    """A study at work; `base` has the settings where it starts, and `space` those that are searched around them."""

    study: optuna.Study
    folder: Path
    base: RunConfig
    space: Space
    trial_seconds: float
    """How long a trial is trained, which stays the same if the study is extended."""
    minutes: float
    began: float = field(default_factory=time.monotonic)
    """When this process began."""

    def __post_init__(self) -> None:
        # Reading the file takes a while, and nobody else writes it.
        self.known: dict[str, Any] = dict(self.study.user_attrs)
        self.seconds_before = float(self.known.get("seconds", 0.0))
        self.trials: list[FrozenTrial] = []
        """All trials so far, in the order of their numbers."""
        self.read_trials()

    def read_trials(self) -> None:
        """Read all trials again, after one was begun or has ended."""
        self.trials = list(self.study.get_trials(deepcopy=False))

    def note(self, name: str, value: Any) -> None:
        """Keep a fact of the study in its file."""
        self.study.set_user_attr(name, value)
        self.known[name] = value

    @property
    def finished(self) -> list[FrozenTrial]:
        """Return the trials that were trained to their end."""
        return [trial for trial in self.trials if trial.state == TrialState.COMPLETE]

    @property
    def looks(self) -> list[dict[str, Any]]:
        """Return every look at the test split: the trial whose settings were trained, its accuracy, and the minutes."""
        return list(self.known.get("looks", []))

    @property
    def is_done(self) -> bool:
        """Return whether the study has ended, with at least so many minutes."""
        return any(look["minutes"] >= self.minutes for look in self.looks)

    @property
    def seconds_left(self) -> float:
        """Return how long it may work yet; all its processes so far count."""
        return 60 * self.minutes - self.seconds_before - (time.monotonic() - self.began)

    def configure(self, trial: FrozenTrial) -> RunConfig:
        """Return the settings of a trial."""
        return change(self.base, **trial.params)

    def repeats(self, number: int) -> dict[int, tuple[float, float] | None]:
        """Return accuracy and loss of the trainings of a trial with other seeds, by seed; None of one that failed."""
        start = f"again-{number}-"
        return {int(name.removeprefix(start)): kept for name, kept in self.known.items() if name.startswith(start)}

    @property
    def finalists(self) -> list[FrozenTrial]:
        """Return the trials that are trained again: the best ones, and the defaults."""
        best = sorted(self.finished, key=lambda trial: self.score(trial, 0), reverse=True)[:NUM_BEST]
        return list({trial.number: trial for trial in [*best, *self.finished[:1]]}.values())

    def score(self, trial: FrozenTrial, num_repeats: int) -> Score:
        """Return the mean accuracy of a finished trial over its own seed and so many others."""
        repeats = [kept for _, kept in sorted(self.repeats(trial.number).items()) if kept][:num_repeats]
        scores = [(trial.values[0], trial.user_attrs["loss"]), *repeats]
        accuracy, loss = (fmean(column) for column in zip(*scores, strict=True))
        return Score(accuracy, -loss, -trial.number)

    @property
    def sure(self) -> list[FrozenTrial]:
        """Return the finalists that could be trained with every seed that was tried."""
        return [trial for trial in self.finalists if None not in self.repeats(trial.number).values()]

    @property
    def num_repeats(self) -> int:
        """Return with how many other seeds each of them was trained."""
        return min((len(self.repeats(trial.number)) for trial in self.sure), default=0)

    def find_leader(self) -> tuple[FrozenTrial, Score] | None:
        """Return the trial with the best score; None before the first is finished."""
        scored = [(trial, self.score(trial, self.num_repeats)) for trial in self.sure or self.finalists]
        return max(scored, key=lambda pair: pair[1], default=None)

    def find_winner(self) -> tuple[FrozenTrial, Score] | None:
        """Return the leader if it is better than the defaults by a standard error, else the defaults."""
        leader, defaults = self.find_leader(), self.trials[:1]
        if leader is None or defaults[0].number not in [trial.number for trial in self.sure]:
            return leader
        score = self.score(defaults[0], self.num_repeats)
        num_answers = min(self.known["sizes"]["validation"], MOST_EVALUATED) * (1 + self.num_repeats)
        share = (leader[1].accuracy + score.accuracy) / 200
        error = 100 * math.sqrt(2 * share * (1 - share) / num_answers)
        return leader if leader[1].accuracy - score.accuracy > error else (defaults[0], score)

    def rank_settings(self) -> dict[str, float]:
        """Return how much of what differs between finished trials each setting explains; empty if they are too few."""
        if len({trial.values[0] for trial in self.finished}) < 2 or len(self.finished) < FEWEST_RANKED:
            return {}
        evaluator = FanovaImportanceEvaluator(seed=self.base.seed)
        return dict(get_param_importances(self.study, evaluator=evaluator, params=list(self.space)))

    def note_time(self) -> None:
        """Keep how long the study has worked."""
        self.note("seconds", 60 * self.minutes - self.seconds_left)


@dataclass
class Workshop:
    """What works on a study: tasks on an executor, so many at a time."""

    tuning: Tuning
    executor: TaskExecutor
    workers: int
    display: Display
    active: dict[Future[Ending], Running] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left_over = [trial for trial in self.tuning.trials if trial.state == TrialState.RUNNING]
        self.needed = self.tuning.trial_seconds
        """Seconds that a whole trial takes here at most, with the start of its process."""

    def work(self) -> None:
        """Search, try the best again, and train the winner; when interrupted, stop all processes before leaving."""
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self._go_through(iter(self._propose, None), self._tell)
            if not self.tuning.finished:
                raise RunError(f"no trial was trained to its end; the last one says: {self._find_failure()}")
            self._go_through(self._list_again(), self._keep)
            self._go_through([self._choose_winner()], self._look)
        finally:
            for running in self.active.values():
                self.executor.stop(running.attempt.task.name)
            wait(self.active)
            self.tuning.note_time()
            signal.signal(signal.SIGTERM, previous)

    def _go_through(self, attempts: Iterable[Attempt], end: Callable[[Attempt, TrialResult], None]) -> None:
        """Run one attempt after the other, as many at a time as there are workers."""
        upcoming = iter(attempts)
        while True:
            while len(self.active) < self.workers and (attempt := next(upcoming, None)) is not None:
                self.active[self.executor.submit(attempt.task)] = Running(attempt, time.monotonic(), {})
            if not self.active:
                return
            for future in wait(self.active, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED).done:
                running, ending = self.active.pop(future), future.result()
                result = self._find_result(running, ending)
                end(running.attempt, result)
                self._clear(running.attempt, result)
                if running.attempt.kind != "winner":
                    self.needed = max(self.needed, time.monotonic() - running.since)
                self.tuning.note_time()
                self.display.end(running.attempt, result, self.tuning.seconds_left)
            self.active = {future: self._watch(running) for future, running in self.active.items()}
            self.display.update(self.active.values(), self.tuning.seconds_left)

    def _read(self, attempt: Attempt) -> tuple[list[dict[str, Any]], Curve]:
        name = attempt.task.name
        events = self.executor.read_events(name)
        return events, find_curve(events, count_steps(self.tuning.folder / name))

    def _watch(self, running: Running) -> Running:
        """Give a trial up if it does worse than most did at the same point."""
        attempt, (_, curve) = running.attempt, self._read(running.attempt)
        is_given_up = running.is_given_up
        if attempt.kind == "trial" and not is_given_up and len(curve) > len(running.curve):
            is_given_up = is_hopeless(curve, attempt.rivals)
            if is_given_up:
                self.executor.stop(attempt.task.name)
        return running._replace(curve=curve, is_given_up=is_given_up)

    def _find_result(self, running: Running, ending: Ending) -> TrialResult:
        events, curve = self._read(running.attempt)
        if ending.failure is None:
            return read_result(events, curve)
        if running.is_given_up:
            return TrialResult("pruned", curve or running.curve)
        return TrialResult("failed", curve, reason=ending.failure)

    def _clear(self, attempt: Attempt, result: TrialResult) -> None:
        """Remove the run of a training whose result is kept, and its log unless that says why it failed."""
        folder = self.tuning.folder / attempt.task.name
        if attempt.kind != "winner":
            shutil.rmtree(folder, ignore_errors=True)
        if result.state != "failed":
            folder.with_suffix(".log").unlink(missing_ok=True)

    def _propose(self) -> Attempt | None:
        """Return the next trial: one that a killed process left, else a new one; None when it is time to compare."""
        tuning, states = self.tuning, [trial.state for trial in self.tuning.trials]
        if TrialState.COMPLETE not in states:
            # The first trial is made however little time there is.
            is_wanted = not self.active or self._has_time()
            is_wanted &= states.count(TrialState.FAIL) < MOST_FAILURES
        else:
            is_wanted = self._has_time()
        if not is_wanted:
            return None
        if self.left_over:
            number = self.left_over.pop(0).number
        else:
            rng = Draws(tuning.base.seed, "tune", len(states)).rng("propose")
            tuning.study.sampler = TPESampler(n_startup_trials=NUM_STARTUP, seed=rng.initial_seed() % 2**32)
            number = tuning.study.ask(dict(tuning.space)).number
            tuning.read_trials()
        rivals = [dict(each.intermediate_values) for each in tuning.finished]
        config = tuning.configure(tuning.trials[number])
        return Attempt("trial", number, config, tuning.trial_seconds, rivals)

    def _has_time(self) -> bool:
        """Return whether there is time for one more trial; half of all time is for the search, however slow it is."""
        again = (1 + NUM_BEST) * NUM_AGAIN / self.workers * self.needed
        later = min(again + WINNER_LENGTHS * self.tuning.trial_seconds, 30 * self.tuning.minutes)
        return self.tuning.seconds_left >= self.needed + later

    def _tell(self, attempt: Attempt, result: TrialResult) -> None:
        study = self.tuning.study
        trial = Trial(study, self.tuning.trials[attempt.number]._trial_id)
        for tenth, accuracy in result.curve.items():
            trial.report(accuracy, tenth)
        if result.state == "complete":
            trial.set_user_attr("loss", result.loss)
            study.tell(trial, result.accuracy)
        elif result.state == "pruned":
            study.tell(trial, state=TrialState.PRUNED)
        else:
            trial.set_user_attr("reason", result.reason)
            study.tell(trial, state=TrialState.FAIL)
        self.tuning.read_trials()

    def _find_failure(self) -> str:
        return str([trial.user_attrs["reason"] for trial in self.tuning.trials if "reason" in trial.user_attrs][-1])

    def _list_again(self) -> Iterator[Attempt]:
        """Yield the finalists with other seeds, seed by seed, for as long as there is time."""
        tuning, finalists = self.tuning, self.tuning.finalists
        for seed in range(tuning.base.seed + 1, tuning.base.seed + 1 + NUM_AGAIN):
            for trial in finalists:
                has_time = tuning.seconds_left >= self.needed + WINNER_LENGTHS * tuning.trial_seconds
                if seed not in tuning.repeats(trial.number) and has_time:
                    config = change(tuning.configure(trial), seed=seed)
                    yield Attempt("again", trial.number, config, tuning.trial_seconds)

    def _keep(self, attempt: Attempt, result: TrialResult) -> None:
        kept = None if result.state == "failed" else (result.accuracy, result.loss)
        self.tuning.note(f"again-{attempt.number}-{attempt.config.seed}", kept)

    def _choose_winner(self) -> Attempt:
        """Return what is trained in the time that is left; what is there of other settings, or shorter, goes."""
        tuning, best = self.tuning, self.tuning.find_winner()
        assert best is not None
        winner = best[0]
        wanted = [winner.number, tuning.minutes]
        if tuning.known.get("winner") != wanted:
            shutil.rmtree(tuning.folder / BEST, ignore_errors=True)
            tuning.note("winner", wanted)
        config = change(tuning.configure(winner), evaluate_test=True)
        return Attempt("winner", winner.number, config, max(tuning.seconds_left, tuning.trial_seconds))

    def _look(self, attempt: Attempt, result: TrialResult) -> None:
        if result.state == "failed":
            raise RunError(f"training with the best settings failed: {result.reason}")
        look = {"minutes": self.tuning.minutes, "trial": attempt.number, "test_accuracy": result.test_accuracy}
        self.tuning.note("looks", [*self.tuning.looks, look])
