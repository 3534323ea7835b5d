"""Large datasets: how long a training takes to its first batch, how much memory, and what a batch costs."""

import functools
import json
import shutil
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil

from auxrnn import runs
from auxrnn.bench import time_in_turns
from auxrnn.config import unflatten
from auxrnn.data import datasets
from auxrnn.errors import RunError
from auxrnn.training.cost import time_step
from auxrnn.training.loop import Session
from benchmarks.processes import own_process
from benchmarks.synthetic_data import DataSizes, make_images, make_texts

FULL_DATA, QUICK_DATA = DataSizes(), DataSizes(num_texts=56_000, num_images=15_000)
MAKE = {"texts": make_texts, "images": make_images}
# What the paper trains on DBpedia (section 4.3) and on Stanford Dogs (section 4.2).
SETTINGS: dict[str, dict[str, Any]] = {
    "texts": {"text_column": "2+3", "label_column": "1", "max_length": 1014}
    | {"supervised_window": 100, "segment_length": 300, "auxiliary_window": 300},
    "images": {"supervised_window": 300, "segment_length": 600, "auxiliary_window": 300},
}
NUM_BATCHES = 30
SECONDS_BETWEEN_LOOKS = 0.02
GIGABYTE = 10**9


def measure_data(folder: Path, sizes: DataSizes) -> dict[str, float]:
    """Make data in the folder, measure, and remove it again; return the figures with units in their names."""
    folder.mkdir(parents=True, exist_ok=True)
    # Images are cached as three bytes a pixel, and their files have less than one.
    needed, free = sizes.num_images * sizes.image_size**2 * 4, shutil.disk_usage(folder).free
    if needed > free:
        raise RunError(
            f"synthetic data needs {needed / GIGABYTE:.1f} GB in {folder}, where {free / GIGABYTE:.1f} GB are free;"
            " free some space, choose another --out, or --quick for a tenth"
        )
    figures: dict[str, float] = {}
    for kind in MAKE:
        with tempfile.TemporaryDirectory(dir=folder, prefix="synthetic-") as place:
            found = _measure_kind(kind, Path(place), sizes)
        figures |= {f"{kind}_{name}": value for name, value in found.items()}
    return figures


def _measure_kind(kind: str, place: Path, sizes: DataSizes) -> dict[str, float]:
    data, cache = place / kind, place / "cache"
    MAKE[kind](data, sizes)
    config = json.dumps({"data": str(data)} | SETTINGS[kind])
    figures: dict[str, float] = {}
    for number, name in enumerate(("first_start", "second_start")):
        with own_process(AUXRNN_CACHE_DIR=str(cache)) as process:
            run = str(place / f"run-{number}")
            seconds, peak = _watch(process.submit(_start, config, run))
            figures |= {f"{name}_seconds": seconds, f"{name}_gigabytes": peak / GIGABYTE}
            if number == 1:
                figures |= process.submit(_measure_batches, config, run).result()
    sizes_on_disk = {"source_gigabytes": _num_bytes(data), "cached_gigabytes": _num_bytes(cache)}
    return {name: num_bytes / GIGABYTE for name, num_bytes in sizes_on_disk.items()} | figures


def _watch(future: Future[None]) -> tuple[float, int]:
    """Return the seconds that a task takes, and the most memory of child processes that belongs to no file (Linux)."""
    begun, peak = time.monotonic(), 0
    while not future.done():
        peak = max([peak, *map(anonymous_bytes, psutil.Process().children())])
        time.sleep(SECONDS_BETWEEN_LOOKS)
    future.result()
    return time.monotonic() - begun, peak


def anonymous_bytes(process: psutil.Process) -> int:
    """Return the resident memory of a process that belongs to no file; 0 for one that has ended."""
    try:
        memory = process.memory_info()
    except psutil.NoSuchProcess:
        return 0
    return int(memory.rss - memory.shared)


@functools.cache
def _open(config: str, folder: str) -> Session:
    """Do all that `auxrnn train` does before its first update; once in each process."""
    settled = runs.settle(unflatten(json.loads(config)))
    dataset = datasets.load(settled.data)
    prepared = runs.prepare(settled, dataset)
    runs.create(settled, prepared, Path(folder))
    return runs.open_session(settled, dataset, prepared, Path(folder))


def _start(config: str, folder: str) -> None:
    session = _open(config, folder)
    first = session.phases[0]
    session.batches_of(first).at(0, phase=first.name)


def _measure_batches(config: str, folder: str) -> dict[str, float]:
    """Time the batches of the last phase and one training step, and count how much of the batches is padding."""
    session = _open(config, folder)
    phase = session.phases[-1]
    batches = session.batches_of(phase)
    numbers = iter(range(NUM_BATCHES))
    made = []
    seconds = time_in_turns(
        {"batch": lambda: made.append(batches.at(next(numbers) % batches.steps_per_epoch, phase=phase.name))},
        rounds=1,
        repeats=NUM_BATCHES,
    )["batch"]
    step = time_step(session, phase, total_step=phase.num_steps // 2)
    num_columns = sum(batch.x_BT.shape[0] * batch.x_BT.shape[1] for batch in made)
    padded = 1 - sum(int(batch.length_B.sum()) for batch in made) / num_columns
    found = {"batch_milliseconds": 1e3 * seconds, "step_seconds": step, "batch_percent": 100 * seconds / step}
    return found | {"padded_percent": 100 * padded}


def _num_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
