"""Interleaved timing: what is compared runs side by side, so that a slow minute of the machine slows all of it."""

import math
import time
from collections.abc import Callable, Mapping

Call = Callable[[], object]
Clock = Callable[[], float]


def time_side_by_side(
    contenders: Mapping[str, Call], *, rounds: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Give the least seconds of each contender over several rounds, in each of which every one runs once.

    The least, because whatever disturbs a measurement only ever adds to it; so a first round that still compiles or
    touches new memory does no harm.
    """
    least = dict.fromkeys(contenders, math.inf)
    for _ in range(rounds):
        for name, call in contenders.items():
            start = clock()
            call()
            least[name] = min(least[name], clock() - start)
    return least
