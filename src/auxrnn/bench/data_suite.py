"""The benchmark of data: what starting and batches cost with data of the real thing's size."""

import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from auxrnn import runs
from auxrnn.bench.child import Watched, watch_child
from auxrnn.bench.data_kinds import KINDS, Kind
from auxrnn.bench.data_results import DataResults, KindResults, PhaseCost, Start, to_json
from auxrnn.bench.data_sizes import DataSizes
from auxrnn.bench.pages import VARIABLE
from auxrnn.bench.watch import Watch
from auxrnn.data.cache import CACHE_DIR_VARIABLE, SPARE_BYTES, describe_bytes
from auxrnn.errors import RunError
from auxrnn.files import write_aside
from auxrnn.plain_config import unflatten


class DataRecord(NamedTuple):
    """All measurements, the machine and versions they depend on, and how long they took."""

    results: DataResults
    environment: dict[str, Any]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Give everything as plain values, the figures first and under their own names."""
        rest = {"environment": self.environment, "seconds": round(self.seconds, 1)}
        return to_json(self.results) | {"sizes": asdict(self.results.sizes)} | rest


def run_data(folder: Path, *, sizes: DataSizes, console: Console) -> DataRecord:
    """Make data up, measure, remove the data, and write what was found into the folder."""
    if sys.platform != "linux":
        raise RunError("the benchmark measures memory as Linux tells it; run it on Linux")
    folder.mkdir(parents=True, exist_ok=True)
    _say_space(folder, sizes, console)
    watch = Watch(make_data_plan(sizes), console)
    with watch.bar, tempfile.TemporaryDirectory(dir=folder, prefix="made-up-") as place:
        results = DataResults(sizes, {kind.name: measure_kind(kind, Path(place), sizes, watch) for kind in KINDS})
    config = unflatten(KINDS[0].configure(Path("texts"), sizes))
    record = DataRecord(results, runs.describe_environment(runs.settle(config)), watch.seconds)
    write_aside(folder / "data.json", json.dumps(record.to_json(), indent=1) + "\n")
    return record


def measure_kind(kind: Kind, place: Path, sizes: DataSizes, watch: Watch) -> KindResults:
    """Make data of one kind up, take all measurements on it, and remove it."""
    data, cache = place / kind.name, place / f"{kind.name}-cache"
    names = name_parts(kind)
    with watch.part(names[0]):
        kind.make(data, sizes)
    with watch.part(names[1]):
        first = _start(kind, place / "first", sizes)
    with watch.part(names[2]):
        second = [_start(kind, place / f"second-{number}", sizes) for number in range(1, sizes.second_starts)]
    with watch.part(names[3]):
        second.append(_start(kind, place / "last", sizes, num_batches=sizes.num_batches))
    results = KindResults(
        first=to_start(first),
        second_starts=[to_start(watched) for watched in second],
        phases=[PhaseCost(**values) for values in second[-1].answer["phases"]],
        source_bytes=_measure(data),
        cached_bytes=_measure(cache),
    )
    for child in place.iterdir():
        shutil.rmtree(child)
    return results


def to_start(watched: Watched) -> Start:
    """Say how long a process took to its first batch, counted from when it was started."""
    answer, started = watched.answer, watched.started
    return Start(
        seconds=answer["ready"] - started,
        import_seconds=answer["begun"] - started,
        processor_seconds=answer["processor_seconds"],
        peak_bytes=watched.peak_bytes(until=answer["ready"]),
    )


def make_data_plan(sizes: DataSizes) -> dict[str, float]:
    """Give all parts in their order, each with rough seconds on two cores."""
    texts, images = sizes.num_texts / 560_000, sizes.num_images / 150_000
    costs = {
        "texts": (10 * texts, 3 + 20 * texts, 3.0 * (sizes.second_starts - 1), 15.0),
        "images": (15 * images, 3 + 90 * images, 4.0 * (sizes.second_starts - 1), 40.0),
    }
    return {name: cost for kind in KINDS for name, cost in zip(name_parts(kind), costs[kind.name], strict=True)}


def name_parts(kind: Kind) -> tuple[str, str, str, str]:
    """Name what is done with a kind of data, in order."""
    steps = "second start and training steps"
    return f"making {kind.name} up", f"{kind.name}, first start", f"{kind.name}, second start", f"{kind.name}, {steps}"


def _say_space(folder: Path, sizes: DataSizes, console: Console) -> None:
    """Say how much space is needed for a while, and refuse if there is less."""
    needed = max(kind.space(sizes) for kind in KINDS) + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise RunError(
            f"the data that is made up needs {describe_bytes(needed)} in {folder}, where {describe_bytes(free)} are"
            " free; free some space, choose another --out, or --quick for a tenth"
        )
    text = f"making data up in {folder}: up to {describe_bytes(needed)}, removed at the end"
    console.print(text, highlight=False, soft_wrap=True)


def _start(kind: Kind, run: Path, sizes: DataSizes, *, num_batches: int = 0) -> Watched:
    place = run.parent
    values = kind.configure(place / kind.name, sizes)
    return watch_child(
        "auxrnn.bench.data_point",
        [run, num_batches, json.dumps(values)],
        environment={CACHE_DIR_VARIABLE: str(place / f"{kind.name}-cache"), VARIABLE: ""},
        doing=f"a training on {kind.name} was started",
    )


def _measure(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
