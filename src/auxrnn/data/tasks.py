"""Texts of the synthetic tasks, of any length; the class depends on one or two characters.

The same task and length is the same data everywhere.
Dimension letters: `B` examples of a block, `T` steps.
"""

from collections.abc import Callable, Iterator
from string import ascii_lowercase, digits
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.data.examples import Example, Part
from auxrnn.data.synthetic import ADDING
from auxrnn.structs import Draws

VERSION = 1
"""Incremented when a task is drawn differently: the cache and run folders know the data by it."""
BLOCK_EXAMPLES = 50
"""Texts that are drawn together, which are all that is in memory at once."""
NUM_EXAMPLES: dict[Part, int] = {"train": ADDING.train_examples, "test": ADDING.test_examples}
NUM_DIGITS = 10
RECALL_SYMBOLS = "abcdefgh"
CUE = "?"
NEEDLE_KEYS = "ABCDEFGHIJ"


class Drawn(NamedTuple):
    """Texts as places in the task's alphabet, and their classes."""

    symbol_BT: UInt8[np.ndarray, "B T"]
    label_B: Int64[np.ndarray, " B"]


class MemoryTask(NamedTuple):
    """What texts are made of, which classes they have, and how they are drawn."""

    alphabet: str
    class_names: tuple[str, ...]
    draw: Callable[[int, np.random.RandomState], Drawn]
    """Return a block of texts of the given length."""


def draw_adding(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw digits of which one in each half is marked: written as a letter, a for 0 to j for 9.

    The class is the sum of the two, so 9 is the commonest (one in ten) and 0 and 18 are the rarest (one in a hundred).
    The halves are the first `num_steps // 2` steps and the rest; every place of a half is as likely as any other.
    """
    symbol_BT = rng.randint(NUM_DIGITS, size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    middle = num_steps // 2
    first_B, second_B = _draw_whole(0, middle, rng), _draw_whole(middle, num_steps, rng)
    row_B = np.arange(BLOCK_EXAMPLES)
    label_B = symbol_BT[row_B, first_B].astype(np.int64) + symbol_BT[row_B, second_B]
    symbol_BT[row_B, first_B] += NUM_DIGITS
    symbol_BT[row_B, second_B] += NUM_DIGITS
    return Drawn(symbol_BT, label_B)


def draw_recall(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw symbols with one cue among them; the class is the symbol right after the cue.

    The cue stands anywhere in the first `num_steps // 2` steps, each as likely as any other. All symbols, the one to
    recall too, are drawn alike: it cannot be told from the others but by the cue, and a guess is right one time in 8.
    """
    symbol_BT = rng.randint(len(RECALL_SYMBOLS), size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    cue_B = _draw_whole(0, num_steps // 2, rng)
    row_B = np.arange(BLOCK_EXAMPLES)
    symbol_BT[row_B, cue_B] = len(RECALL_SYMBOLS)
    return Drawn(symbol_BT, symbol_BT[row_B, cue_B + 1].astype(np.int64))


def draw_needle(num_steps: int, rng: np.random.RandomState) -> Drawn:
    """Draw lower-case letters with one key, a capital, among the first `num_steps // 10`; the class is the key."""
    symbol_BT = rng.randint(len(ascii_lowercase), size=(BLOCK_EXAMPLES, num_steps), dtype=np.uint8)
    place_B, label_B = _draw_whole(0, num_steps // 10, rng), _draw_whole(0, len(NEEDLE_KEYS), rng)
    symbol_BT[np.arange(BLOCK_EXAMPLES), place_B] = len(ascii_lowercase) + label_B
    return Drawn(symbol_BT, label_B)


TASKS: dict[str, MemoryTask] = {
    "adding": MemoryTask(
        digits + ascii_lowercase[:NUM_DIGITS], tuple(str(total) for total in range(2 * NUM_DIGITS - 1)), draw_adding
    ),
    "recall": MemoryTask(RECALL_SYMBOLS + CUE, tuple(RECALL_SYMBOLS), draw_recall),
    "needle": MemoryTask(ascii_lowercase + NEEDLE_KEYS, tuple(NEEDLE_KEYS), draw_needle),
}
"""Every task by name."""


def make_examples(name: str, num_steps: int, dtype: type[np.uint8 | np.uint32]) -> Iterator[Example]:
    """Yield all texts of a task as code points of this type, the training texts first."""
    task = TASKS[name]
    code_V = np.frombuffer(task.alphabet.encode(), dtype=np.uint8).astype(dtype)
    for part, num_examples in NUM_EXAMPLES.items():
        for start in range(0, num_examples, BLOCK_EXAMPLES):
            seed = Draws(seed=0, phase=f"{name}/{num_steps}", step=start).rng(part).initial_seed()
            # numpy promises that the draws of this older generator never change; those of its newer one may.
            drawn = task.draw(num_steps, np.random.RandomState(np.random.MT19937(seed)))
            for offset, (symbol_T, label) in enumerate(zip(drawn.symbol_BT, drawn.label_B.tolist(), strict=True)):
                yield Example(code_V[symbol_T], task.class_names[label], f"{part} text {start + offset + 1}", part)


def _draw_whole(low: int, high: int, rng: np.random.RandomState) -> Int64[np.ndarray, " B"]:
    # The type that numpy would choose is another one on some systems, and so would the draws be.
    return rng.randint(low, high, size=BLOCK_EXAMPLES, dtype=np.int64)
