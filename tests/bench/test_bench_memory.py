import dataclasses
import sys

import pytest

from auxrnn.bench import memory
from auxrnn.bench.memory import describe_lack, measure_point
from auxrnn.bench.sizes import FULL, Sizes
from auxrnn.errors import RunError


def test_a_process_of_its_own_gives_the_memory_of_a_step(tiny):
    point = measure_point(tiny, "r_lstm_20x30", num_steps=40)
    assert (point.system, point.num_steps) == ("r_lstm_20x30", 40)
    assert point.peak_bytes > 0


def test_a_process_that_fails_gives_one_sentence(tiny):
    with pytest.raises(RunError, match=r"^a process failed \(.*must be at least 1.*\) while .* of p-LSTM was measured"):
        measure_point(dataclasses.replace(tiny, hidden_size=0), "p_lstm", num_steps=40)


def test_a_process_that_the_system_kills_gives_one_sentence(tiny, tmp_path, monkeypatch):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(RunError, match=r"^the system killed a process, .* while .* full BPTT was measured$"):
        measure_point(tiny, "full_bptt", num_steps=40)


@pytest.mark.parametrize(("free", "is_enough"), [(21.0, False), (22.5, True)])
def test_full_back_propagation_is_tried_only_where_it_fits(free, is_enough, monkeypatch):
    monkeypatch.setattr(memory, "_free_bytes", lambda: int(free * 2**30))
    lack = describe_lack(FULL, 16_384)
    assert lack == ("" if is_enough else "needs 22 GiB of memory, 21 are free")


def test_the_estimate_of_what_full_back_propagation_needs_is_a_little_above_what_it_takes():
    sizes = Sizes(batch_size=64, hidden_size=64)
    taken = measure_point(sizes, "full_bptt", num_steps=1_000).peak_bytes
    assert 0.7 < taken / memory.needed_bytes(sizes, 1_000) < 1.1
