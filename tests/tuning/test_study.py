"""A study: what is tried and in which order, what a failure costs, what a stop loses, and who wins."""

from concurrent.futures import Future
from pathlib import Path

import optuna
import pytest

from auxrnn.config import read_file, unflatten
from auxrnn.errors import RunError
from auxrnn.executors.tasks import Ending
from auxrnn.presets import find_recipe
from auxrnn.tuning import study as studies
from auxrnn.tuning.settings import find_settings, to_toml
from auxrnn.tuning.space import find_space, find_start
from auxrnn.tuning.study import Tuning, Workshop, opened

LONGEST, STEPS = 40, 10
VALUES = {"data": "digits", "validation_fraction": 0.2, "evaluate_test": False, "evaluate_all": False, "seed": 3}
PLANNED = {"batch_size": 16, "objective": "none", "readout": "last", "supervised_window": "full"}
PLANNED |= {"auxiliary_window": 10, "segment_length": 10}


class Clock:
    """Time that passes only where something is said to take time."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


class Silence:
    """Shows nothing; `at_end` happens whenever a training has ended."""

    def __init__(self, at_end=lambda attempt: None):
        self.ended, self.at_end = [], at_end

    def update(self, active, seconds_left):
        pass

    def end(self, attempt, result, seconds_left):
        self.ended.append((attempt, result))
        self.at_end(attempt)


class Trainer:
    """An executor that trains nothing: `score` gives the accuracy for the settings of a run, or None if it shall fail.

    A training ends when it is looked at `looks` times, and shows a tenth of its curve each time.
    """

    def __init__(self, folder, clock, score, *, seconds=10.0, looks=1):
        self.folder, self.clock, self.score, self.seconds, self.looks = folder, clock, score, seconds, looks
        self.tasks, self.running, self.events, self.stopped = [], {}, {}, []

    def submit(self, task):
        self.tasks.append(task)
        self.events[task.name] = []
        future = Future()
        self.running[task.name] = [task, future, self.looks]
        if self.looks == 1:
            self.finish(task.name)
        return future

    def read_events(self, name):
        if name in self.running and self.looks > 1:
            self.running[name][2] -= 1
            task, _, left = self.running[name]
            step = STEPS - left
            self.events[name].append(evaluation(step, (self.score(task.config) or 0) * step / STEPS))
            if left == 0:
                self.finish(name)
        return self.events[name]

    def finish(self, name):
        task, future, _ = self.running.pop(name)
        self.clock.now += self.seconds
        accuracy = self.score(task.config)
        if accuracy is None:
            future.set_result(Ending("the loss is not a finite number"))
            return
        self.events[name] = [evaluation(step, accuracy * step / STEPS) for step in range(1, STEPS + 1)]
        found = {"event": "result", "validation_accuracy": accuracy, "validation_loss": 1 - accuracy / 100}
        if task.config.evaluate_test:
            found["test_accuracy"] = accuracy - 1
        self.events[name].append(found)
        if name == "best":
            (self.folder / name).mkdir(exist_ok=True)
        future.set_result(Ending())

    def stop(self, name):
        self.stopped.append(name)
        if name in self.running:
            _, future, _ = self.running.pop(name)
            future.set_result(Ending("stopped"))


def evaluation(step, accuracy):
    return {"event": "evaluation", "step": step, "validation_accuracy": accuracy}


def rate(config):
    """Score by learning rate: 0.002 would be best, and the default is not."""
    return 100 - 20 * abs(config.schedule.lr - 2e-3) / 2e-3


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(studies.time, "monotonic", found.monotonic)
    monkeypatch.setattr(studies, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(studies, "count_steps", lambda folder: STEPS)
    return found


class Bench:
    """A study as the command sets it up, though its file is in memory, and everything that it trained."""

    def __init__(self, folder, clock, score=rate, *, minutes=400 / 60, workers=1):
        self.file = optuna.create_study(direction="maximize")
        self.file.set_user_attr("sizes", {"validation": 1000})
        self.folder, self.clock, self.workers, self.minutes = folder, clock, workers, minutes
        self.trainer, self.display = Trainer(folder, clock, score), Silence()

    def work(self, look=lambda tuning: None):
        base = unflatten(find_recipe("fast", "lstm") | PLANNED | VALUES)
        self.folder.mkdir(exist_ok=True)
        space = find_space(base, fixed=(), longest=LONGEST)
        self.file.enqueue_trial(find_start(base, space, LONGEST), skip_if_exists=True)
        tuning = Tuning(self.file, self.folder, base, space, 10.0, self.minutes, began=self.clock.now)
        try:
            Workshop(tuning, self.trainer, self.workers, self.display).work()
        finally:
            look(tuning)

    @property
    def names(self):
        return [task.name.removeprefix("trial-") for task in self.trainer.tasks]


@pytest.fixture
def bench(tmp_path, clock):
    return lambda *words, **options: Bench(tmp_path / "study", clock, *words, **options)


def test_the_defaults_come_first_and_what_wins_is_never_worse_than_they(bench):
    def look(tuning):
        first, (winner, score) = tuning.trials[0], tuning.find_winner()
        assert first.params["lr"] == 8e-3
        assert score >= tuning.score(first, tuning.num_repeats)
        assert winner.params["lr"] < 8e-3
        assert tuning.rank_settings().keys() == tuning.space.keys()
        assert max(tuning.rank_settings(), key=tuning.rank_settings().get) == "lr"

    study = bench()
    study.work(look)
    # 400 seconds for 40 trainings of ten: the finalists twice more, the winner with eight times ten.
    assert study.names[:3] == ["0", "1", "2"]
    again = [name for name in study.names if "seed" in name]
    assert len(again) in (6, 8)
    assert {name.split("-")[-1] for name in again} == {"4", "5"}
    assert "0-seed-4" in again
    assert study.names[-1] == "best"
    assert len(study.names) <= 33
    assert 79.9 <= 60 * study.trainer.tasks[-1].minutes <= 100
    assert {60 * task.minutes for task in study.trainer.tasks[:-1]} == {10}


def test_the_test_split_is_looked_at_once_for_the_winner(bench):
    study = bench()
    study.work()
    looking = [task.name for task in study.trainer.tasks if task.config.evaluate_test]
    assert looking == ["best"]


def test_no_trial_is_begun_that_would_end_too_late(bench, clock):
    study = bench(minutes=5)
    study.trainer.seconds = 60.0
    study.work()
    # However slow it is: half of the time searches, and what is left must hold the winner.
    assert study.names == ["0", "1", "0-seed-4", "best"]
    assert clock.now <= 5 * 60


def test_failures_are_told_and_do_not_end_the_study(bench):
    study = bench(lambda config: None if config.schedule.lr > 9e-3 else rate(config))
    reasons = []
    study.work(
        lambda tuning: reasons.extend(t.user_attrs.get("reason") for t in tuning.trials if t.state.name == "FAIL")
    )
    assert reasons
    assert set(reasons) == {"the loss is not a finite number"}
    assert study.names[-1] == "best"


def test_a_study_in_which_all_fails_ends_with_the_reason(bench):
    study = bench(lambda config: None)
    with pytest.raises(RunError, match=r"no trial was trained to its end.*the loss is not a finite number"):
        study.work()
    assert study.names == ["0", "1", "2", "3", "4"]


def test_settings_that_fail_with_another_seed_do_not_win(bench):
    def fragile(config):
        return None if config.seed != 3 and config.schedule.lr != 8e-3 else rate(config)

    study, winners = bench(fragile), []
    study.work(lambda tuning: winners.append(tuning.find_winner()[0].number))
    assert winners == [0]


@pytest.mark.parametrize(("gain", "is_kept"), [(0.5, True), (3.0, False)])
def test_the_defaults_stay_unless_others_are_better_by_a_standard_error(bench, gain, is_kept):
    # Three seeds with 1,000 sequences each: at 80 % the standard error of a difference is 1.03 points.
    study, winners = bench(lambda config: 80 + gain * (config.schedule.lr < 8e-3)), []
    study.work(lambda tuning: winners.append(tuning.find_winner()[0].number == 0))
    assert winners == [is_kept]


def test_what_does_badly_is_stopped_on_its_way_and_never_the_finalists(bench):
    study, states = bench(), []
    study.trainer.looks = STEPS
    study.work(lambda tuning: states.extend(trial.state.name for trial in tuning.trials))
    assert states.count("PRUNED") >= 3
    assert states[0] == "COMPLETE"
    assert [f"trial-{number}" for number, state in enumerate(states) if state == "PRUNED"] == study.trainer.stopped


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("moment", [0, 3, 18])
def test_a_study_that_is_stopped_goes_on_where_it_was(bench, tmp_path, clock, moment, workers):
    study = bench(workers=workers)

    def interrupt(attempt):
        if len(study.display.ended) == moment + 1:
            raise KeyboardInterrupt

    study.display.at_end = interrupt
    with pytest.raises(KeyboardInterrupt):
        study.work()
    trained = list(study.names)
    study.display = Silence()
    study.work()
    assert study.names[-1] == "best"
    # Nothing that had ended is trained again, and what had not keeps its place.
    repeated = len(study.names) - len(set(study.names))
    assert repeated <= workers
    assert len(trained) > moment
    if workers == 1:
        whole = Bench(tmp_path / "whole", clock)
        whole.work()
        proposals = {task.name: task.config for task in study.trainer.tasks if "seed" not in task.name}
        del proposals["best"]
        assert proposals == {task.name: task.config for task in whole.trainer.tasks if task.name in proposals}


def test_a_study_that_is_done_does_nothing_and_more_minutes_extend_it(bench):
    study, looks = bench(), []
    study.work(lambda tuning: looks.append((tuning.is_done, len(tuning.looks))))
    before = len([name for name in study.names if name.isdecimal()])
    study.minutes = 800 / 60
    study.work(lambda tuning: looks.append((tuning.is_done, len(tuning.looks))))
    after = [name for name in study.names if name.isdecimal()]
    assert len(after) > before + 20
    assert len(set(after)) == len(after)
    assert looks == [(True, 1), (True, 2)]


def test_trainings_run_side_by_side(bench):
    study, together = bench(workers=3), []
    study.display.update = lambda active, seconds_left: together.append(len(list(active)))
    study.work()
    assert max(together) <= 3
    assert sorted(study.names[:3]) == ["0", "1", "2"]


def test_a_file_that_is_no_study_is_named(tmp_path):
    (tmp_path / "study.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(RunError, match=r"study\.db cannot be read or written.*choose another --out"), opened(tmp_path):
        pass


def test_the_file_of_the_best_settings_says_what_was_asked_and_what_was_found(tmp_path):
    asked = unflatten(find_recipe("fast", "lstm") | VALUES | {"data": 'a "b".npz', "labels_per_class": 5, "threads": 2})
    params = {"lr": 0.00123, "objective": "none", "hidden_size": 64, "segment_length": 10, "supervised_window": "full"}
    best = optuna.trial.create_trial(
        value=1.0, params=params,
        distributions={name: optuna.distributions.CategoricalDistribution([value]) for name, value in params.items()},
    )  # fmt: skip
    path = Path(tmp_path / "best.toml")
    path.write_text(to_toml(find_settings(asked, "fast", best), comments=["found"]))
    expected = {"recipe": "fast", "model": "lstm", "data": 'a "b".npz', "labels_per_class": 5, "seed": 3}
    expected |= {"validation_fraction": 0.2, "lr": 0.00123, "objective": "none", "hidden_size": 64}
    assert read_file(path) == expected | {"supervised_window": "full"}
    assert path.read_text().startswith("# found\n")
