"""Starts a training as `auxrnn train` does, up to its first batch, in a process of its own. Run by `data_suite.py`."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from auxrnn import runs
from auxrnn.config import RunConfig
from auxrnn.data.batches import Batches, draw_batches
from auxrnn.data.datasets import make_splits
from auxrnn.data.summary import describe_alphabet, describe_division, measure_lengths
from auxrnn.heap import keep_freed_memory
from auxrnn.plain_config import unflatten
from auxrnn.progress import ReadingProgress
from auxrnn.structs import Draws
from auxrnn.training.cost import time_step
from auxrnn.training.loop import Session
from auxrnn.training.phases import Phase


def main() -> None:
    """Take a run folder to make, a number of batches to time (0: only start) and a config as JSON; print JSON.

    Times of the clock are told as they are: the one who started this process knows when that was.
    """
    begun = time.monotonic()
    keep_freed_memory()
    folder, num_batches, values = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    session = start(unflatten(values), folder)
    found: dict[str, Any] = {"begun": begun, "ready": time.monotonic(), "processor_seconds": time.process_time()}
    if num_batches:
        found["phases"] = [measure_phase(session, phase, num_batches) for phase in session.phases]
    sys.stdout.write(json.dumps(found) + "\n")


def start(config: RunConfig, folder: Path) -> Session:
    """Do all that comes before the first update but to try how fast an update is; and make the first batch."""
    config = runs.settle(config)
    runs.check_free(folder)
    with ReadingProgress(Path(config.data.data).name, Console(stderr=True)) as progress:
        dataset = runs.load_dataset(config, observe=progress.observe)
    prepared = runs.prepare(config, dataset)
    session = runs.open_session(config, dataset, prepared, folder)
    runs.create(config, prepared, folder)
    train = make_splits(dataset, prepared.division, prepared.card.format).train
    sys.stderr.write(f"{describe_division(dataset, prepared.division)}; {measure_lengths(train.length_N)}\n")
    sys.stderr.write(describe_alphabet(prepared.card.format, train) + "\n")
    first = session.phases[0]
    session.batches_of(first).at(0, phase=first.name)
    return session


def measure_phase(session: Session, phase: Phase, num_batches: int) -> dict[str, Any]:
    """Time the making of batches and a training step of average length; count the steps that are padding."""
    batches = session.batches_of(phase)
    begun = time.perf_counter()
    for step in range(num_batches):
        batches.at(step % batches.steps_per_epoch, phase=phase.name)
    batch_seconds = (time.perf_counter() - begun) / num_batches
    return {
        "phase": phase.name,
        "batch_seconds": batch_seconds,
        "step_seconds": time_step(session, phase, total_step=phase.num_steps // 2),
        **measure_epoch(batches, phase.name),
    }


def measure_epoch(batches: Batches, phase: str) -> dict[str, Any]:
    """Time the shuffling of an epoch, shared out among its batches; and give the share of padding in them."""
    length_N = batches.split.length_N
    begun = time.perf_counter()
    drawn = draw_batches(length_N, batch_size=batches.batch_size, draws=Draws(batches.seed, phase, 1))
    seconds = time.perf_counter() - begun
    num_columns = sum(len(index_B) * int(length_N[index_B].max()) for index_B in drawn)
    return {
        "shuffle_seconds": seconds / len(drawn),
        "padded_share": 1 - int(length_N.sum()) / num_columns,
    }


if __name__ == "__main__":
    main()
