"""How large the things are that the benchmark measures, and how often it measures them."""

from dataclasses import dataclass

from auxrnn.bench.paper import LENGTHS


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """One benchmark. The defaults are those of the published figures; tests take smaller ones through the same code."""

    batch_size: int = 128
    hidden_size: int = 128
    reading_length: int = 784
    window_length: int = 300
    step_length: int = 12_544
    """Where a training step is compared with full back-propagation, in time and in memory."""
    product_size: int = 2048
    rounds: int = 15
    step_rounds: int = 5
    stream_steps: int = 500
    """Steps of one sequence that are timed together: a clock is too coarse for one."""
    timed_lengths: tuple[int, ...] = LENGTHS
    memory_lengths: tuple[int, ...] = LENGTHS
    """Growth is from the shortest to the longest of these."""
    full_memory_lengths: tuple[int, ...] = LENGTHS

    def __post_init__(self) -> None:
        if self.step_length not in self.timed_lengths or self.step_length not in self.full_memory_lengths:
            raise ValueError(f"step_length is {self.step_length}; it must be one of the lengths that are measured")


FULL = Sizes()
# A step of full back-propagation through 12,544 steps takes ten seconds: four are timed, two are measured for memory.
QUICK = Sizes(
    rounds=5,
    step_rounds=4,
    stream_steps=300,
    timed_lengths=(1_600, 12_544),
    memory_lengths=(1_600, 16_384),
    full_memory_lengths=(1_600, 12_544),
)
