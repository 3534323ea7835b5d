"""Sizes that take seconds, and measurements made up by hand, whose ratios can be worked out in the head."""

from auxrnn.bench.results import Case, Entry, MemoryPoint, Results
from auxrnn.bench.sizes import Sizes
from auxrnn.bench.systems import TITLES

MEBIBYTE = 2**20
TINY = Sizes(
    batch_size=4,
    hidden_size=8,
    reading_length=30,
    window_length=20,
    step_length=60,
    product_size=64,
    rounds=2,
    step_rounds=2,
    stream_steps=5,
    timed_lengths=(40, 60),
    memory_lengths=(50,),
    full_memory_lengths=(60,),
)


def make_steps(num_steps, *seconds):
    entries = [Entry(title, value) for title, value in zip(TITLES.values(), seconds, strict=True)]
    return Case(f"A training step, {num_steps:,} pixels", TITLES["full_bptt"], entries)


def make_results():
    torch_lstm = "nn.Linear + nn.LSTM"
    peaks = {
        "full_bptt": {1_600: 1_000, 12_544: 8_000},
        "r_lstm_1x600": {1_600: 500, 16_384: 510},
        "r_lstm_20x30": {1_600: 300, 16_384: 330},
        "p_lstm": {1_600: 100, 16_384: 900},
    }
    return Results(
        sizes=Sizes(timed_lengths=(1_600, 12_544), memory_lengths=(1_600, 16_384), full_memory_lengths=(1_600, 12_544)),
        num_threads=2,
        reading=Case(
            "Reading",
            torch_lstm,
            [
                Entry("auxrnn", 0.1, 12e9),
                Entry(torch_lstm, 0.25, 12e9),
                Entry("JAX lax.scan", None, note="not installed"),
            ],
            limit=Entry("2,048-cubed matrix product", 0.1, 16e9),
        ),
        reading_busy=Case("Reading", torch_lstm, [Entry("auxrnn", 0.2, 12e9), Entry(torch_lstm, 1.2, 12e9)]),
        window=Case("Window", torch_lstm, [Entry("auxrnn", 0.2, 36e9), Entry(torch_lstm, 0.4, 36e9)]),
        streaming=Case("Stream", "cell", [Entry("auxrnn", 10e-6), Entry("cell", 35e-6)]),
        steps={1_600: make_steps(1_600, 1.0, 1.0, 1.0, 1.0), 12_544: make_steps(12_544, 12.0, 3.0, 2.0, 1.5)},
        memory=[
            MemoryPoint(system, num_steps, peak * MEBIBYTE)
            for system, points in peaks.items()
            for num_steps, peak in points.items()
        ],
    )
