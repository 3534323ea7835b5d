"""Start two to four trainings at the same moment and look for a mix of two of them.

In turn they get the same `--out` and none (default names), with an empty cache and a full one; each has a seed of its
own. A round fails if two processes win one folder or none does; if the config, the weights, the metrics or the printed
result of a folder are not those of the winner's seed trained alone; if a loser does not end with exit code 1 or 2 and
one sentence; if a file is left that a run alone does not leave. Processes are forked with everything imported (see
`stress.forks`) and wait for one signal.
"""

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stress import forks
from stress.contents import describe, find_differences
from stress.forks import Ended
from stress.kinds import train_words, write_data
from stress.progress import Report

DEFAULT_COUNT = 200
KINDS = ("texts, best weights", "series", "images", "images, unpacked")
MOST_PROCESSES = 4


class Alone(NamedTuple):
    """What one seed leaves when nothing else runs."""

    run: dict[str, str]
    cache: dict[str, str]
    scores: dict[str, float]


class Start(NamedTuple):
    """One round: what is started, and how."""

    kind: str
    num_processes: int
    has_out: bool
    has_cache: bool


def main(*, count: int | None, seed: int) -> int:
    """Do so many rounds and return the number of failures."""
    count = count or DEFAULT_COUNT
    report, rng = Report("starts", total=count, seed=seed), random.Random(seed)  # noqa: S311 - nothing secret
    data = report.folder / "data"
    write_data(data)
    forks.import_all([forks.command(*train_words(kind, data), "--out", "run") for kind in KINDS], report.folder)
    alone = {
        (kind, number): _train_alone(kind, number, data, report.folder)
        for kind in KINDS
        for number in range(MOST_PROCESSES)
    }
    num_processes = 0
    ways = itertools.cycle(itertools.product(KINDS, (True, False), (True, False)))
    for number, (kind, has_out, has_cache) in enumerate(itertools.islice(ways, count)):
        start = Start(kind, rng.randint(2, MOST_PROCESSES), has_out, has_cache)
        num_processes += start.num_processes
        _try(start, report.folder / f"round-{number}", data=data, alone=alone, report=report)
        report.show(number + 1)
    figure = f"{count} rounds of {num_processes} processes, {report.num_failures} mixed, with leftovers or errors"
    return report.end(
        "two to four trainings started at the same moment: one folder, default names, empty cache", figure
    )


def _words(kind: str, seed: int, data: Path, *, has_out: bool) -> list[str]:
    out = ["--out", "run"] if has_out else []
    return [*train_words(kind, data), "--seed", str(seed), "--json", *out]


def _train_alone(kind: str, seed: int, data: Path, root: Path) -> Alone:
    folder = root / "alone" / f"{kind.replace(' ', '-')}-{seed}"
    ended = forks.start(forks.command(*_words(kind, seed, data, has_out=True)), folder=folder).wait()
    assert ended.code == 0, ended.err
    return Alone(_describe_run(folder / "run"), describe(folder / "cache"), _scores(ended))


def _describe_run(folder: Path) -> dict[str, str]:
    # The command differs with and without --out, and so does the file that has it.
    return {name: digest for name, digest in describe(folder).items() if name != "environment.json"}


def _scores(ended: Ended) -> dict[str, float]:
    values: dict[str, float] = json.loads(ended.out)
    return {name: value for name, value in values.items() if name != "run"}


def _try(start: Start, folder: Path, *, data: Path, alone: dict[tuple[str, int], Alone], report: Report) -> None:
    """Do one round."""
    if start.has_cache:
        shutil.copytree(report.folder / "alone" / f"{start.kind.replace(' ', '-')}-0" / "cache", folder / "cache")
    words = [_words(start.kind, seed, data, has_out=start.has_out) for seed in range(start.num_processes)]
    ends = _run_together([forks.command(*each) for each in words], folder)
    wins = [(seed, ended) for seed, ended in enumerate(ends) if ended.code == 0]
    problems = [f"seed {seed} ended with {ended.code}: {ended.sentence}" for seed, ended in enumerate(ends)
                if ended.code and not ended.is_refused]  # fmt: skip
    if len(wins) != (1 if start.has_out else start.num_processes):
        problems.append(f"{len(wins)} of {start.num_processes} trained: {[ended.sentence for ended in ends]}")
    for seed, ended in wins:
        problems += _find_mix(folder, ended, alone[start.kind, seed])
    problems += find_differences(describe(folder / "cache"), alone[start.kind, 0].cache)
    made = {str(Path(json.loads(ended.out)["run"])) for _, ended in wins} | {"cache"}
    problems += [f"leftover {name}" for name in sorted(_list_runs(folder) - made)]
    if problems:
        report.fail(f"{start}: {'; '.join(problems)}", folder=folder)
    else:
        shutil.rmtree(folder)


def _find_mix(folder: Path, ended: Ended, expected: Alone) -> list[str]:
    run = Path(json.loads(ended.out)["run"])
    differences = find_differences(_describe_run(folder / run), expected.run)
    return [f"{run}: {what}" for what in differences + ["other scores"] * (_scores(ended) != expected.scores)]


def _list_runs(folder: Path) -> set[str]:
    """Return the run folders, and whatever else lies where they do."""
    found = {str(path.relative_to(folder)) for pattern in ("*", "runs/*") for path in folder.glob(pattern)}
    return found - {"runs"}


def _run_together(tasks: list[Callable[[], int]], folder: Path) -> list[Ended]:
    """Run tasks in processes of their own that begin at the same moment."""
    gate, opener = os.pipe()

    def after_gate(task: Callable[[], int]) -> Callable[[], int]:
        def run() -> int:
            os.close(opener)
            # Ends when the parent closes its side: for all of them at once.
            os.read(gate, 1)
            return task()

        return run

    children = [forks.start(after_gate(task), folder=folder, name=str(number)) for number, task in enumerate(tasks)]
    os.close(opener)
    ends = [child.wait() for child in children]
    os.close(gate)
    return ends
