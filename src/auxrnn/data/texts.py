"""Texts as sequences: one step is one character, or one byte.

Dimension letters: `T` steps, `V` the vocabulary, `K` characters of many texts, one after the other.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int64, Shaped, UInt16, UInt32

Tokens = Literal["characters", "bytes"]
ZHANG_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+=<>()[]{}\n "
"""The 69 different characters of Zhang et al. (2015), and the space."""
NUM_CODE_POINTS = 0x110000
NUM_BYTES = 256


class TextFormat(NamedTuple):
    """How texts become sequences: plain values, so that a run can record them and prediction repeat them."""

    tokens: Tokens = "characters"
    """What a step is."""
    alphabet: str | None = None
    """The characters that have a token of their own, in its order; all others share one more. None for bytes, and until
    the training data is known."""
    is_lowercase: bool = False
    """Whether texts are read in lower case."""
    is_backward: bool = False
    """Whether texts are read from their end."""
    max_length: int | None = None
    """How many steps of a text are read: the first ones, also when they are then read backward."""
    columns: tuple[str, ...] = ()
    """The columns of a table that make up a text, by name, or by number from 1 where they have no names."""

    @property
    def vocabulary_size(self) -> int:
        """How many different tokens there are."""
        return NUM_BYTES if self.tokens == "bytes" else len(self.alphabet or "") + 1

    def to_values(self, text: str) -> UInt32[np.ndarray, " T"] | Shaped[np.ndarray, " T"]:
        """Return a text as it is kept: code points, or bytes."""
        if self.is_lowercase:
            text = text.lower()
        if self.tokens == "bytes":
            return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)

    def make_table(self) -> UInt16[np.ndarray, " V"]:
        """Return the token of each byte or code point, as a lookup table."""
        if self.tokens == "bytes":
            return np.arange(NUM_BYTES, dtype=np.uint16)
        assert self.alphabet is not None, "characters need an alphabet first"
        table = np.full(NUM_CODE_POINTS, len(self.alphabet), dtype=np.uint16)
        table[list(map(ord, self.alphabet))] = np.arange(len(self.alphabet))
        return table


def choose_alphabet(count_V: Int64[np.ndarray, " V"], *, most: int) -> str:
    """Return the commonest characters, at most so many, in the order of their code points."""
    found = np.flatnonzero(count_V)
    commonest = found[np.argsort(-count_V[found], kind="stable")][:most]
    return "".join(chr(code) for code in sorted(commonest.tolist()))
