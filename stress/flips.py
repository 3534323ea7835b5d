"""Flip single bits in every file of a run folder and of the cache, and use what is there.

After each flip `evaluate`, `predict`, `load_run` and `resume` are run on a finished run; `resume` and, if it succeeds,
`evaluate` on an unfinished one; `train`, `evaluate` and `resume` on a damaged cache. A flip is noticed if a command
ends with one sentence that names the file (of the cache: or the entry), or names it and gives the same answers as
before. It is without effect if all answers are equal in every bit. It fails if there is a traceback, a hang, a sentence
that does not name the file, another answer, or, if all commands succeed, another byte in any other file.

Each flip is made in a fresh copy, and all commands are called in one forked process (see `stress.forks`).
"""

import contextlib
import hashlib
import io
import json
import logging
import random
import re
import resource
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import safetensors.torch

from auxrnn import cli
from auxrnn.errors import RunError, UsageError
from auxrnn.saved import load_run
from stress import forks
from stress.contents import describe, find_differences
from stress.kinds import train_words, write_data
from stress.progress import Report
from stress.tripwire import kill_at, list_operations

DEFAULT_COUNT = 50
KINDS = {"texts, best weights": "more.txt"}
"""Runs that have every file a run folder can have, each with a file to predict."""
MOST_BYTES = 4 * 2**30
"""Memory of a child, so that a damaged size ends in an error instead of taking the machine's."""
REMEMBERED = "leftover cache/checksums/"
Task = Callable[[], int]


class Answer(NamedTuple):
    """What one command gave."""

    code: int
    out: str
    err: str


class Place(NamedTuple):
    """What is flipped, and what is run then."""

    title: str
    folder: str
    """Where the files are."""
    tasks: dict[str, Task]
    answers: dict[str, Answer]
    after: dict[str, str]
    """Contents after the tasks, had nothing been flipped."""


def main(*, count: int | None, seed: int) -> int:
    """Flip so many bits in each file and return the number of failures."""
    count = count or DEFAULT_COUNT
    report = Report("flips", total=0, seed=seed)
    data, outcomes = report.folder / "data", Counter[tuple[str, str]]()
    write_data(data)
    forks.import_all([forks.command(*train_words(kind, data), "--out", "run") for kind in KINDS], report.folder)
    flips = []
    for kind in KINDS:
        pristine = _prepare(kind, data, report.folder)
        for place in _make_places(kind, data, pristine):
            files = [path for path in sorted((pristine / place.folder).rglob("*")) if path.is_file()]
            flips += [(pristine, place, path.relative_to(pristine)) for path in files for _ in range(count)]
    report.total = len(flips)
    for number, (pristine, place, path) in enumerate(flips):
        rng = random.Random(f"{seed} {number}")  # noqa: S311 - nothing secret
        outcome = _try(number, pristine, place, path, rng=rng, report=report)
        outcomes[f"{place.title}: {_general_name(path)}", outcome] += 1
        report.show(number + 1)
    return _end(outcomes, count, report)


def _end(outcomes: Counter[tuple[str, str]], count: int, report: Report) -> int:
    kinds = ("noticed", "without effect", "FAILED")
    for name in sorted({name for name, _ in outcomes}):
        sys.stdout.write(f"{name}: {', '.join(f'{outcomes[name, kind]} {kind}' for kind in kinds)}\n")
    sums = [sum(number for (_, kind), number in outcomes.items() if kind == wanted) for wanted in kinds]
    done = f"{count} bit flips in each file of a finished and an unfinished run and of their cache"
    return report.end(
        done, f"{sum(sums)} flips: {sums[0]} noticed and named, {sums[1]} without effect, {sums[2]} failed"
    )


def _general_name(path: Path) -> str:
    """Return the name of a file without numbers and checksums."""
    return re.sub(r"[0-9a-f]{32,}|\d{8}", "N", "/".join(path.parts[1:]))


def _prepare(kind: str, data: Path, root: Path) -> Path:
    """Make a folder with a finished run, an unfinished one and their cache."""
    folder, listed = root / "pristine" / kind.replace(" ", "-"), root / "operations.json"
    words = train_words(kind, data)
    ended = forks.start(list_operations(forks.command(*words, "--out", "listed"), listed), folder=folder).wait()
    assert ended.code == 0, ended.err
    shutil.rmtree(folder / "listed")
    shutil.rmtree(folder / "cache")
    operations = json.loads(listed.read_text())
    last = max(number for number, operation in enumerate(operations) if '"event": "train"' in operation)
    forks.start(kill_at(forks.command(*words, "--out", "part"), last, is_after=True), folder=folder).wait()
    ended = forks.start(forks.command(*words, "--out", "run"), folder=folder).wait()
    assert ended.code == 0, ended.err
    return folder


def _make_places(kind: str, data: Path, pristine: Path) -> list[Place]:
    """Return what can be flipped, with the answers before."""
    new = str(data / KINDS[kind])
    evaluate, resume = _command("evaluate", "run", "--json"), _command("resume", "part", "--json")
    finished: dict[str, Task] = {
        "evaluate": evaluate,
        "evaluate --weights final": _command("evaluate", "run", "--weights", "final", "--json"),
        "predict": _command("predict", "run", new, "--json"),
        "predict --weights final": _command("predict", "run", new, "--weights", "final", "--json"),
        "load_run": partial(_load, Path("run")),
        "resume": _command("resume", "run", "--json"),
    }
    unfinished: dict[str, Task] = {"resume": lambda: resume() or _command("evaluate", "part", "--json")()}
    train = _command(*train_words(kind, data), "--out", "new", "--json")
    cached = {"train": train, "evaluate": evaluate, "resume": resume}
    copy, places = pristine.parent / "copy", []
    tasks_in = {"run": ("finished", finished), "part": ("unfinished", unfinished), "cache": ("cache", cached)}
    for folder, (title, tasks) in tasks_in.items():
        answers = _ask(pristine, copy, tasks)
        assert answers is not None
        places.append(Place(title, folder, tasks, answers, describe(copy)))
    return places


def _command(*words: str) -> Task:
    return partial(cli.run, list(words))


def _load(folder: Path) -> int:
    """Load a run as a library does, and print a digest of its card and weights."""
    try:
        loaded = load_run(folder)
    except (RunError, UsageError) as error:
        sys.stderr.write(f"auxrnn: {error}\n")
        return 1
    weights = safetensors.torch.save({name: value.contiguous() for name, value in loaded.network.state_dict().items()})
    sys.stdout.write(f"{loaded.card} {hashlib.sha256(weights).hexdigest()}\n")
    return 0


def _ask(
    pristine: Path, copy: Path, tasks: dict[str, Task], *, flip: Callable[[Path], None] = lambda _copy: None
) -> dict[str, Answer] | None:
    """Do the tasks in a fresh copy, in a process of their own; None if it did not come to their end."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(pristine, copy)
    flip(copy)
    answered = copy.parent / "answers.json"
    answered.unlink(missing_ok=True)

    def answer_all() -> int:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        answers = {name: _call(task) for name, task in tasks.items()}
        answered.write_text(json.dumps(answers))
        return 0

    forks.start(answer_all, folder=copy).wait()
    if not answered.exists():
        return None
    return {name: Answer(*values) for name, values in json.loads(answered.read_text()).items()}


def _call(task: Task) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=err, force=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = task()
        except BaseException:
            code = forks.CRASHED
            traceback.print_exc()
    return Answer(code, out.getvalue(), err.getvalue())


def _try(number: int, pristine: Path, place: Place, path: Path, *, rng: random.Random, report: Report) -> str:
    """Flip one bit and return what came of it."""
    folder, bit = report.folder / f"flip-{number}", rng.randrange(8 * (pristine / path).stat().st_size)
    answers = _ask(pristine, folder, place.tasks, flip=lambda copy: _flip(copy / path, bit))
    # A checkpoint is named without its suffix, and a file of the cache by the entry that it belongs to.
    others = {"checkpoints": path.stem, "checksums": path.name}
    names = [path.name, others.get(path.parent.name, path.parent.name if place.folder == "cache" else path.name)]
    problems = ["hung or was killed"] if answers is None else _judge(place, answers, names)
    if answers is not None and not any(answer.code for answer in answers.values()):
        changed = find_differences(describe(folder), place.after)
        # A checksum that the cache remembers of the damaged file does no harm.
        problems += [one for one in changed if not one.endswith(str(path)) and not one.startswith(REMEMBERED)]
    if problems or answers is None:
        report.fail(f"{place.title}, bit {bit} of {path}: {'; '.join(problems[:3])}", folder=folder)
        return "FAILED"
    shutil.rmtree(folder)
    is_noticed = any(_names_file(answer.err, names) > _names_file(place.answers[name].err, names)
                     for name, answer in answers.items())  # fmt: skip
    return "noticed" if is_noticed else "without effect"


def _names_file(text: str, names: list[str]) -> bool:
    return any(name in text for name in names)


def _flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def _judge(place: Place, answers: dict[str, Answer], names: list[str]) -> list[str]:
    """Return what is wrong with the answers."""
    problems = []
    for command, answer in answers.items():
        sentence = (answer.err.splitlines() or [""])[-1]
        if "Traceback" in answer.err or answer.code not in (0, 1, 2):
            problems.append(f"{command} crashed: {sentence}")
        elif answer.code and not _names_file(sentence, names):
            problems.append(f"{command} does not name the file: {sentence}")
        elif not answer.code and answer.out != place.answers[command].out:
            problems.append(f"{command} gave another answer")
    return problems
