"""Kill trainings with SIGKILL, resume them, and compare with the same run never killed.

Every kind of run in `stress.kinds` is killed at random moments, at numbered file operations (before, after, in the
middle of a write) and at evaluations and phase boundaries, in turn. For the kinds in `EVERY_OPERATION` each operation
of `auxrnn train` has its turn. Half of the killed runs are killed again while they resume. A run that does not exist
yet after its kill is started again with the same words. Failures are: a command that is refused or ends in a traceback;
in the end, other bytes in the weights, the best weights, the checkpoints' tensors, the metrics without their times, or
any other file of the run folder or the cache; a file that the run never killed does not have, or lacks.

Commands run in forked processes that begin with everything imported (see `stress.forks`). The kills are real and lose
what a process keeps in memory; what the system has accepted but not yet put on the disk survives them, as it would
not survive a power cut.
"""

import itertools
import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stress import forks
from stress.contents import describe, find_differences
from stress.forks import Ended
from stress.kinds import KINDS, train_words, write_data
from stress.progress import Report
from stress.tripwire import find_boundaries, kill_at, list_operations

DEFAULT_COUNT = 1000
EVERY_OPERATION = ("texts, best weights", "images, unpacked")


class Whole(NamedTuple):
    """A run that was never killed."""

    words: list[str]
    run: dict[str, str]
    cache: dict[str, str]
    operations: list[str]
    seconds: float


class Trial(NamedTuple):
    """A run to be killed."""

    number: int
    kind: str
    first: "Kill"
    whole: Whole


class Kill(NamedTuple):
    """When a process is killed: after some seconds, or at one of its file operations."""

    why: str
    seconds: float | None = None
    operation: int | None = None
    is_after: bool = False


def main(*, count: int | None, seed: int) -> int:
    """Kill until so many kills are counted, and return the number of failures."""
    count = count or DEFAULT_COUNT
    report, rng = Report("kills", total=count, seed=seed), random.Random(seed)  # noqa: S311 - nothing secret
    data = report.folder / "data"
    write_data(data)
    imported = (*EVERY_OPERATION, "a sample of the digits")
    forks.import_all([forks.command(*train_words(kind, data), "--out", "run") for kind in imported], report.folder)
    wholes = {kind: _train_whole(kind, data, report.folder) for kind in KINDS}
    every = [(kind, number) for kind in EVERY_OPERATION for number in range(len(wholes[kind].operations))]
    num_operations = len(every)
    rng.shuffle(every)
    kills = Counter[str]()
    for number, (kind, first) in enumerate(_plan(wholes, every, rng)):
        if kills.total() >= count:
            break
        _try(Trial(number, kind, first, wholes[kind]), kills=kills, report=report)
        report.show(kills.total())
    done = ", ".join(f"{number} at {why}" for why, number in sorted(kills.items()))
    swept = f"{num_operations - len(every)} of {num_operations} file operations of {len(EVERY_OPERATION)} kinds in turn"
    figure = f"{kills.total()} kills, {report.num_failures} runs with other bytes, leftover files or errors"
    return report.end(f"SIGKILL and resume, {len(KINDS)} kinds of run: {done}; {swept}", figure)


def _train_whole(kind: str, data: Path, root: Path) -> Whole:
    words, folder = [*train_words(kind, data), "--out", "run"], root / "whole" / kind.replace(" ", "-")
    listed = root / "operations.json"
    ended = forks.start(list_operations(forks.command(*words), listed), folder=folder).wait()
    assert ended.code == 0, f"{kind}: {ended.err}"
    operations = json.loads(listed.read_text())
    return Whole(words, describe(folder / "run"), describe(folder / "cache"), operations, ended.seconds)


def _plan(wholes: dict[str, Whole], every: list[tuple[str, int]], rng: random.Random) -> Iterator[tuple[str, Kill]]:
    """Yield without end the kinds to train and their first kills; use up `every` operation to kill at."""
    for kind in itertools.cycle(rng.sample(list(wholes), len(wholes))):
        whole = wholes[kind]
        yield kind, Kill("random moments", seconds=rng.uniform(0, whole.seconds))
        yield kind, Kill("boundaries", operation=rng.choice(find_boundaries(whole.operations)), is_after=_toss(rng))
        yield kind, _draw_operation(whole, rng)
        for _ in range(min(6, len(every))):
            other, number = every.pop()
            yield other, Kill("file operations", operation=number, is_after=_toss(rng))


def _draw_operation(whole: Whole, rng: random.Random) -> Kill:
    return Kill("file operations", operation=rng.randrange(len(whole.operations)), is_after=_toss(rng))


def _toss(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _try(trial: Trial, *, kills: Counter[str], report: Report) -> None:
    """Train one run, killed once or twice, to its end; compare."""
    rng = random.Random(f"{report.seed} {trial.number}")  # noqa: S311 - nothing secret
    folder, whole, killed = report.folder / f"trial-{trial.number}", trial.whole, []
    second = _draw_operation(whole, rng) if _toss(rng) else Kill("random moments", rng.uniform(0, whole.seconds))
    for kill in (trial.first, second if _toss(rng) else None, None):
        ended = _run_and_kill(folder, _words_to_continue(folder, whole), kill)
        has_hung = ended.seconds >= forks.SECONDS_TO_HANG
        if ended.code != -signal.SIGKILL or kill is None or has_hung:
            break
        kills[kill.why] += 1
        killed.append(ended.sentence if kill.seconds is None else f"after {kill.seconds:.3f} s")
    problems = _find_problems(folder, ended, whole)
    if problems:
        more = [f"and {len(problems) - 3} more"] if len(problems) > 3 else []
        first_ones = "; ".join([*problems[:3], *more])
        report.fail(f"{trial.kind}, killed {' and '.join(killed)}: {first_ones}", folder=folder)
    else:
        shutil.rmtree(folder)


def _run_and_kill(folder: Path, words: list[str], kill: Kill | None) -> Ended:
    task = forks.command(*words)
    if kill is None:
        return forks.start(task, folder=folder).wait()
    if kill.operation is not None:
        return forks.start(kill_at(task, kill.operation, is_after=kill.is_after), folder=folder).wait()
    assert kill.seconds is not None
    return forks.start(task, folder=folder).wait(kill_after=kill.seconds)


def _words_to_continue(folder: Path, whole: Whole) -> list[str]:
    return ["resume", "run"] if (folder / "run" / "config.json").exists() else whole.words


def _find_problems(folder: Path, ended: Ended, whole: Whole) -> list[str]:
    if ended.code != 0:
        return [f"exit code {ended.code}: {ended.sentence}"]
    found = find_differences(describe(folder / "run"), whole.run)
    found += find_differences(describe(folder / "cache"), whole.cache)
    # What is worst comes first, since a line shows only a few.
    return sorted(found, key=lambda problem: not problem.startswith("other bytes"))
