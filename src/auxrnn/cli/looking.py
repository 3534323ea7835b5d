"""`auxrnn show`, `auxrnn compare` and `auxrnn board`: finished and running trainings, looked at."""

import logging
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from auxrnn.cli.commands import USE, Flag, Json, command, print_json, say
from auxrnn.cli.evaluating import FinishedRun
from auxrnn.config import SplitName
from auxrnn.errors import RunError, UsageError
from auxrnn.files import digest, expand, user_cache

WAIT_SECONDS = 2
DataPath = Annotated[
    Path | None, Parameter(help="File or folder with the run's own data, if it has moved since the training.")
]
DataDir = Annotated[
    Path | None,
    Parameter(help="Folder that holds the files of a dataset by name, if they have moved since the training."),
]


@command(USE)
def show(
    run: FinishedRun,
    *,
    out: Path | None = None,
    split: SplitName = "test",
    data: DataPath = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Build one HTML page of a finished run.

    It shows the result, learning curves, confused classes, how far the probabilities can be trusted, and the settings;
    of a recurrent network also when in the sequence it makes up its mind, and of an r-LSTM what it remembers. The page
    opens offline and needs no other file.

    Args:
        out: File to write (default: RUN/index.html).
        split: Split of the dataset to classify.

    Examples:
        auxrnn show runs/mnist14
        auxrnn show runs/mnist14 --out page.html --split validation
    """
    from auxrnn.findings import look_at
    from auxrnn.report.run_pages import write_run_page

    found = look_at(run, split, data=data, data_dir=data_dir)
    page = write_run_page(out or run / "index.html", found=found, command=shlex.join(["auxrnn", *sys.argv[1:]]))
    print_json({"page": str(page)}) if json else print(page)


@command(USE, words="RUN RUN...")
def compare(
    *runs: Path,
    out: Path = Path("compare.html"),
    split: SplitName = "test",
    data: DataPath = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Build one HTML page that compares finished runs.

    It shows their curves over each other, what differs in their settings, and accuracies with confidence intervals.
    Runs that were tested on the same sequences are also compared on these one by one (McNemar's test).

    Args:
        runs: Run folders of two or more finished runs.
        out: File to write.
        split: Split of the dataset to classify.

    Examples:
        auxrnn compare runs/first runs/second
        auxrnn compare runs/seed0 runs/seed1 runs/seed2 --out seeds.html --json
    """
    if len(dict.fromkeys(runs)) < max(2, len(runs)):
        raise UsageError("name two or more different runs to compare: auxrnn compare runs/first runs/second")
    from auxrnn.findings import read_answers
    from auxrnn.report.comparisons import find_differing, make_pairs, write_comparison_page

    compared = [read_answers(run, split, data=data, data_dir=data_dir) for run in runs]
    if len({run.name for run in runs}) == len(runs):
        compared = [each._replace(title=run.name) for run, each in zip(runs, compared, strict=True)]
    pairs, made_by = make_pairs(compared), shlex.join(["auxrnn", *sys.argv[1:]])
    page = write_comparison_page(out, runs=compared, split=split, command=made_by)
    if json:
        scores = [
            {"run": each.title, "accuracy": each.accuracy, "interval": each.interval, "examples": len(each.is_right)}
            for each in compared
        ]
        found = {"pairs": [pair._asdict() for pair in pairs], "differences": find_differing(compared)}
        print_json({"page": str(page), "runs": scores} | found)
        return
    for each in compared:
        low, high = each.interval
        print(f"{each.title}  accuracy {each.accuracy:.1f} % (95 % interval {low:.1f} to {high:.1f})")
    for pair in pairs:
        counts = f"{pair.only_first} and {pair.only_second} right alone"
        print(f"{pair.first} and {pair.second}: {counts}, p = {pair.p_value:.3g}")
    if any(each.examples != compared[0].examples for each in compared):
        say("some were tested on other sequences than the first: compare the curves of those only")
    print(page)


@command(USE, words="RUNS...")
def board(
    *runs: Path,
    logdir: Path | None = None,
    port: int | None = None,
    once: Flag = False,
) -> None:
    """Follow runs in TensorBoard, also while they train.

    Writes event files from the metrics of the runs and starts TensorBoard on them; Ctrl-C ends both. Called again, it
    adds what is new; nothing is logged twice. Needs the extra board: pip install 'auxrnn[board]'.

    Args:
        runs: Run folders, or folders of runs; new runs in these are found while it works.
        logdir: Folder for the event files (default: one in the cache, the same for the same runs).
        port: Port of TensorBoard's server (default: the first that is free from 6006 on).
        once: Only write the event files, and end.

    Examples:
        auxrnn board runs
        auxrnn board runs/first runs/second --logdir events --once
    """
    if not runs:
        raise UsageError("name run folders or a folder of runs: auxrnn board runs")
    try:
        from auxrnn.report.board import follow, name_runs
    except ImportError as error:
        raise UsageError("auxrnn board needs TensorBoard; pip install 'auxrnn[board]'") from error
    known_as = digest("\0".join(str(run.absolute()) for run in runs))[:16]
    place = user_cache() / "board" / known_as if logdir is None else expand(logdir)

    if not name_runs(runs):
        raise UsageError(f"there are no runs in {', '.join(map(str, runs))}; give folders that `auxrnn train` made")
    looks = follow(runs, place)
    say(f"{next(looks):,} events written to {place}")
    if once:
        print(place)
        return
    _serve(place, port)
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(WAIT_SECONDS)
            next(looks)


def _serve(logdir: Path, port: int | None) -> None:
    """Start TensorBoard in this process, beside what it does."""
    from tensorboard.program import TensorBoard, TensorBoardServerException

    server = TensorBoard()
    server.configure(logdir=str(logdir), port=port, reload_interval=5, load_fast="false")
    # Its messages, one for each request, are of no use to who only wants to look.
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    try:
        print(server.launch(), flush=True)
    except TensorBoardServerException as error:
        raise RunError(f"TensorBoard does not start: {error.msg}; try another --port") from error
    say("open this address in a browser; Ctrl-C ends TensorBoard")
