"""Texts of the synthetic tasks, of any length. The same task and length is the same data everywhere.

Dimension letters: `B` examples of a block, `T` steps.
"""

from collections.abc import Callable, Iterator
from string import ascii_lowercase, digits
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Part, Problems, Source, Understood
from auxrnn.data.formats import TextFormat
from auxrnn.data.spec import DatasetSpec, check_options
from auxrnn.errors import UsageError
from auxrnn.structs import Draws

VERSION = 1
"""Incremented when a task is drawn differently: the cache and run folders know the data by it."""
DEFAULT_LENGTH, SHORTEST, LONGEST = 200, 10, 1_000_000
BLOCK_EXAMPLES = 50
"""Texts that are drawn together, which are all that is in memory at once."""

Drawn = tuple[UInt8[np.ndarray, "B T"], Int64[np.ndarray, " B"]]
"""Texts as places in the task's alphabet, and their classes."""


class MemoryTask(NamedTuple):
    """What texts are made of, which classes they have, and how a block of some length is drawn."""

    alphabet: str
    class_names: tuple[str, ...]
    draw: Callable[[int, np.random.RandomState], Drawn]


def draw_adding(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw digits of which one in each half is marked: written as a letter, a for 0 to j for 9.

    The class is the sum of the two, so 9 is the commonest (one in ten) and 0 and 18 are the rarest (one in a hundred).
    """
    symbol_BT = rng.randint(10, size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    middle, row_B = num_steps // 2, np.arange(BLOCK_EXAMPLES)
    first_B, second_B = _draw_whole(0, middle, rng), _draw_whole(middle, num_steps, rng)
    label_B = symbol_BT[row_B, first_B].astype(np.int64) + symbol_BT[row_B, second_B]
    symbol_BT[row_B, first_B] += 10
    symbol_BT[row_B, second_B] += 10
    return symbol_BT, label_B


def draw_recall(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw letters from a to h with one cue in the first half; the class is the letter after the cue."""
    symbol_BT = rng.randint(8, size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    cue_B, row_B = _draw_whole(0, num_steps // 2, rng), np.arange(BLOCK_EXAMPLES)
    symbol_BT[row_B, cue_B] = 8
    return symbol_BT, symbol_BT[row_B, cue_B + 1].astype(np.int64)


def draw_needle(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw lower-case letters with one key, a capital, among the first `num_steps // 10`; the class is the key."""
    symbol_BT = rng.randint(26, size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    place_B, label_B = _draw_whole(0, num_steps // 10, rng), _draw_whole(0, 10, rng)
    symbol_BT[np.arange(BLOCK_EXAMPLES), place_B] = 26 + label_B
    return symbol_BT, label_B


TASKS: dict[str, MemoryTask] = {
    "adding": MemoryTask(digits + "abcdefghij", tuple(str(total) for total in range(19)), draw_adding),
    "recall": MemoryTask("abcdefgh?", tuple("abcdefgh"), draw_recall),
    "needle": MemoryTask(ascii_lowercase + "ABCDEFGHIJ", tuple("ABCDEFGHIJ"), draw_needle),
}


def task_source(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return a task as a source of texts."""
    check_options(config, ("length",), what=spec.name)
    length = DEFAULT_LENGTH if config.length is None else config.length
    if not SHORTEST <= length <= LONGEST:
        raise UsageError(f"length is {length}; for {spec.name} it must be from {SHORTEST} to {LONGEST:,}")
    # All characters of a task fit a byte, but those of a user's texts beside them may not.
    dtype = np.uint8 if config.unlabeled is None else np.uint32
    task, num_examples = TASKS[spec.name], spec.train_examples + spec.test_examples
    num_bytes = num_examples * length * np.dtype(dtype).itemsize
    form, names = TextFormat(alphabet=task.alphabet), {label: label for label in task.class_names}

    def read(_problems: Problems, _like: object) -> Understood:
        return Understood(spec.title, form, make_examples(spec, length, dtype), num_examples, num_bytes, names)

    return Source(spec.name, [], {"reader": "task", "version": VERSION, "task": spec.name, "length": length}, read)


def make_examples(spec: DatasetSpec, num_steps: int, dtype: type[np.uint8 | np.uint32]) -> Iterator[Example]:
    """Yield all texts of a task as code points of this type, the training texts first."""
    task = TASKS[spec.name]
    code_V = np.frombuffer(task.alphabet.encode(), dtype=np.uint8).astype(dtype)
    sizes: dict[Part, int] = {"train": spec.train_examples, "test": spec.test_examples}
    for part, start in ((part, start) for part, size in sizes.items() for start in range(0, size, BLOCK_EXAMPLES)):
        seed = Draws(seed=0, phase=f"{spec.name}/{num_steps}", step=start).rng(part).initial_seed()
        # numpy promises that the draws of this older generator never change; those of its newer one may.
        symbol_BT, label_B = task.draw(num_steps, np.random.RandomState(np.random.MT19937(seed)))
        for number, (symbol_T, label) in enumerate(zip(symbol_BT, label_B.tolist(), strict=True), start=start + 1):
            yield Example(code_V[symbol_T], task.class_names[label], f"{part} text {number}", part)


def _draw_whole(low: int, high: int, rng: np.random.RandomState) -> Int64[np.ndarray, " B"]:
    # The type that numpy would choose is another one on some systems, and so would the draws be.
    return rng.randint(low, high, size=BLOCK_EXAMPLES, dtype=np.int64)
