"""Train for half an hour with frequent evaluations and checkpoints, and watch the process from outside.

Its private memory (RssAnon), file handles and threads are read every second. From the second minute on they must be
flat: memory stays within 2 % of its median, and in the second half, when batches of every size have been seen, rises
by less than 0.1 MB along its linear trend; handles rise by less than one along theirs and are never more than
`MOST_OPEN` above their median (a file may be open when they are counted); the number of threads does not change. It is
also a failure if the training ends by itself.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from stress.kinds import train_words, write_data
from stress.progress import Report

DEFAULT_MINUTES = 30.0
KIND = "texts, best weights"
# More updates than half an hour has; the process is stopped.
LONG = ["--pretrain-steps", "20000", "--train-steps", "5000000", "--evaluate-every", "20", "--checkpoint-every", "20"]
WARM_UP_SECONDS = 60
MOST_RISE, MOST_SHARE, MOST_OPEN = 10**5, 0.02, 4


class Sample(NamedTuple):
    """What a process holds at one moment."""

    memory: int
    handles: int
    threads: int


def main(*, minutes: float | None, seed: int) -> int:
    """Watch one training for so many minutes and return the number of failures."""
    seconds = 60 * (minutes or DEFAULT_MINUTES)
    report = Report("soak", total=int(seconds), seed=seed)
    write_data(report.folder / "data")
    words = [
        *train_words(KIND, report.folder / "data"),
        *LONG,
        "--seed",
        str(seed),
        "--out",
        str(report.folder / "run"),
    ]
    environment = os.environ | {"AUXRNN_CACHE_DIR": str(report.folder / "cache")}
    with (report.folder / "said.txt").open("w") as said:
        command = [sys.executable, "-m", "auxrnn", *words]
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)  # noqa: S603 - our own words
    try:
        samples = _watch(process, seconds, report)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    if code != 130:
        report.fail(f"the training ended by itself with exit code {code}", folder=report.folder)
    rest = np.array(samples[WARM_UP_SECONDS:], dtype=np.float64)
    for problem in _find_problems(rest):
        report.fail(problem, folder=report.folder)
    events = (report.folder / "run" / "metrics.jsonl").read_text().count('"evaluation"')
    done = f"{seconds / 60:g} minutes of training, {events:,} evaluations and about as many checkpoints"
    return report.end(done, f"{_describe(rest)}; {report.num_failures} not flat")


def _watch(process: subprocess.Popen[bytes], seconds: float, report: Report) -> list[Sample]:
    """Read once a second what the process holds."""
    samples: list[Sample] = []
    start = time.monotonic()
    with (report.folder / "samples.csv").open("w") as file:
        while process.poll() is None and time.monotonic() - start < seconds:
            samples.append(_read(Path("/proc", str(process.pid))))
            file.write(",".join(map(str, samples[-1])) + "\n")
            report.show(int(time.monotonic() - start))
            time.sleep(max(0.0, start + len(samples) - time.monotonic()))
    return samples


def _read(folder: Path) -> Sample:
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    memory = 1024 * int(status["RssAnon"].split()[0])
    return Sample(memory, len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir())))


def _find_problems(sample_NS: Float[np.ndarray, "N S"]) -> list[str]:
    if len(sample_NS) < 2:
        return ["the training was too short to say anything: give more --minutes"]
    memory_N, handles_N, threads_N = sample_NS.T
    problems = []
    rise, apart = _rise(memory_N[len(memory_N) // 2 :]), np.abs(memory_N / np.median(memory_N) - 1).max()
    if rise > MOST_RISE or apart > MOST_SHARE:
        problems.append(f"memory is not flat: {_describe(sample_NS)}")
    if _rise(handles_N) > 1 or handles_N.max() > np.median(handles_N) + MOST_OPEN:
        problems.append(f"file handles are not flat: {_describe(sample_NS)}")
    if threads_N.min() != threads_N.max():
        problems.append(f"threads are not flat: {_describe(sample_NS)}")
    return problems


def _rise(value_N: Float[np.ndarray, " N"]) -> float:
    """Return how much a series rises from its first to its last value along its linear trend."""
    return float(np.polyfit(np.arange(len(value_N)), value_N, 1)[0] * len(value_N))


def _describe(sample_NS: Float[np.ndarray, "N S"]) -> str:
    if len(sample_NS) < 2:
        return "nothing measured"
    memory_N, handles_N, threads_N = sample_NS.T
    memory = f"memory {memory_N.min() / 2**20:.1f} to {memory_N.max() / 2**20:.1f} MB"
    memory += f" (trend of the second half {_rise(memory_N[len(memory_N) // 2 :]) / 2**20:+.3f} MB)"
    counts = [f"{values.min():.0f} to {values.max():.0f}" for values in (handles_N, threads_N)]
    return f"{memory}, handles {counts[0]}, threads {counts[1]}"
