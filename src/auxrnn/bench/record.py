"""What a run of the benchmark leaves behind: one JSON object and two pictures."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.bench import paper
from auxrnn.bench.ratios import GOALS, compute_ratios
from auxrnn.bench.results import Case, Results
from auxrnn.bench.systems import TITLES
from auxrnn.files import write_aside
from auxrnn.report.length_plot import LengthCurve, memory_png, time_png

GIBIBYTE = 2**30


class Record(NamedTuple):
    """All measurements, the machine and versions they depend on, and how long they took."""

    results: Results
    environment: dict[str, Any]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Give everything as plain values, the ratios first and under their own names."""
        results = self.results
        cases = {name: getattr(results, name) for name in ("reading", "reading_busy", "window", "streaming")}
        cases |= {f"step_{num_steps}": case for num_steps, case in results.steps.items()}
        return compute_ratios(results) | {
            "goals": {name: goal.describe() for name, goal in GOALS.items()},
            "cases": {name: _case_to_json(case) for name, case in cases.items()},
            "memory": [point._asdict() for point in results.memory],
            "paper_seconds": paper.SECONDS,
            "sizes": asdict(results.sizes),
            "threads": results.num_threads,
            "environment": self.environment,
            "seconds": round(self.seconds, 1),
        }


def write_record(record: Record, folder: Path) -> None:
    """Write `bench.json`, `step-time.png` and `peak-memory.png` into the folder."""
    write_aside(folder / "bench.json", json.dumps(record.to_json(), indent=1) + "\n")
    results = record.results
    num_sequences, num_threads = results.sizes.batch_size, results.num_threads
    time = time_png(time_curves(results), num_sequences=num_sequences, num_threads=num_threads)
    memory = memory_png(memory_curves(results), num_sequences=num_sequences, num_threads=num_threads)
    write_aside(folder / "step-time.png", time)
    write_aside(folder / "peak-memory.png", memory)


def time_curves(results: Results) -> list[LengthCurve]:
    """Give seconds of a training step against the length of the sequences, ours and the paper's."""
    curves = []
    for system, title in TITLES.items():
        times = {num_steps: case.entry(title).seconds for num_steps, case in sorted(results.steps.items())}
        found = {num_steps: seconds for num_steps, seconds in times.items() if seconds is not None}
        curves.append(LengthCurve(title, found, paper.SECONDS[system]))
    return curves


def memory_curves(results: Results) -> list[LengthCurve]:
    """Give gibibytes at the peak of a training step against the length of the sequences; the paper has none."""
    curves = []
    for system, title in TITLES.items():
        peaks = {point.num_steps: point.peak_bytes for point in results.memory if point.system == system}
        found = {num_steps: peak / GIBIBYTE for num_steps, peak in sorted(peaks.items()) if peak is not None}
        curves.append(LengthCurve(title, found, {}))
    return curves


def _case_to_json(case: Case) -> dict[str, Any]:
    contenders = [
        entry._asdict() | {"gflops": entry.gflops, "speed_up": case.speed_up(entry.contender)} for entry in case.entries
    ]
    limit = None if case.limit is None else case.limit._asdict() | {"gflops": case.limit.gflops}
    return {"title": case.title, "baseline": case.baseline, "contenders": contenders, "limit": limit}
