import io

import pytest
from rich.console import Console

from auxrnn.bench.results import Entry, MemoryPoint
from auxrnn.bench.tables import describe_time, make_tables
from made_up_bench import make_steps


def render(results, *, width=80):
    file = io.StringIO()
    console = Console(file=file, width=width)
    for table in make_tables(results):
        console.print(table)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def test_tables_show_times_speed_ups_rates_goals_and_who_is_missing(results):
    lines = render(results)
    assert "auxrnn 100.00 ms 2.50 120.0" in lines
    assert "nn.Linear + nn.LSTM 250.00 ms 1.00 48.0" in lines
    assert "JAX lax.scan not installed" in lines
    assert "2,048-cubed matrix product 100.00 ms 160.0" in lines
    assert "r-LSTM 20x30 2.00 s 6.00" in lines
    assert "1,600 1.00 1.00 1.00 1.00" in lines
    assert "12,544 12.00 3.00 2.00 1.50" in lines
    assert "1,600 1,000 500 300 100" in lines
    assert "12,544 8,000 - - -" in lines
    assert "reading_vs_nn_lstm 2.500 >= 2.2 yes" in lines
    assert "memory_growth 1.100 <= 1.05 no" in lines


def test_a_point_that_did_not_fit_is_shown_as_such(results):
    point = MemoryPoint("full_bptt", 16_384, None, "needs 18 GiB of memory, 17 are free")
    steps = make_steps(16_384, None, 4.0, 3.0, 2.0)
    lines = render(results._replace(memory=[*results.memory, point], steps=results.steps | {16_384: steps}))
    assert "16,384 - 510 330 900" in lines
    assert "16,384 - 4.00 3.00 2.00" in lines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.345, "12.35 s"), (1.0, "1.00 s"), (0.9876, "987.60 ms"), (0.001, "1.00 ms"), (1.234e-5, "12.3 us")],
)
def test_a_time_has_the_unit_that_suits_it(seconds, text):
    assert describe_time(Entry("ours", seconds)) == text
