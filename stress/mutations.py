"""Inputs that nobody expects: whole ones in which bytes, words or values are changed, as drawn from an `rng`."""

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMBERS = (
    "0", "-0", "1", "-1", "2", "3", "007", "0.5", "-0.0", "1e-400", "1e-45", "0.1e1", "127", "255", "256", "1_000",
    "65536", "1e9", "2147483647", "2147483648", "4294967296", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1000000000000000000", "1" + "0" * 30, "9" * 400, "3.4e38", "3.5e38",
    "-3.4e38", "1.7e308", "1e308", "1e309", "-1e999", "nan", "NaN", "-nan", "inf", "Infinity", "-inf", "0x10", "1j",
    "\uff11\uff12", "\u0663", "\u00bd", "1,5", "1e", "+1", " 1 ",
)  # fmt: skip
"""Numbers at which types and ranges end, and what looks like a number."""
WORDS = (
    "", " ", "-", "--", "auto", "full", "none", "true", "false", "null", "None", ".", "..", "~", "~nouser", "/",
    "/dev/null", "nul\0l", "a\nb", "\x1b[31mred\x1b[0m", "[/red]", "\u202eabc", "\ufeff", "\u00e4", "e\u0301",
    "\U0001f600", "\udcff", "x" * 300, "%s%n", "{0}", "$HOME", "'", '"', "\\", "a\tb", "\x7f", "\u2028", "../../x",
)  # fmt: skip
JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 2**31, 2**53 + 1, 2**63, 10**30, 1e308, float("nan"), float("inf"), "",
    "x", "auto", "full", "\ud800", "a\nb\x1b[0m", "x" * 500, [], [[]], [0], ["a"], {}, {"a": 1}, [None] * 3, [1e999],
)  # fmt: skip
JSON_TOKENS = (*(json.dumps(value).encode() for value in JSON_VALUES), *b'{ } [ , : "'.split(), b"[" * 2000)
BINARY_NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
DIGITS = re.compile(rb"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")
MOST_COPIES = 50

Action = Callable[[bytearray, Random, Sequence[bytes]], None]


def mutate(rng: Random, seeds: Sequence[bytes], tokens: Sequence[bytes] = ()) -> bytes:
    """Return one of the seeds with a few changes; now and then bytes or words that have nothing to do with them."""
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(200))
    if tokens and rng.random() < 0.05:
        return b"".join(rng.choices(tokens, k=rng.randrange(1, 40)))
    content = bytearray(rng.choice(seeds))
    actions = [*ACTIONS, *([_insert_token] * 4 if tokens else [])]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        action = rng.choice(actions)
        action(content, rng, tokens if action is _insert_token else seeds)
    return bytes(content)


def change_json(rng: Random, value: Any) -> Any:
    """Return a JSON value in which one value, at any depth, is another one, or one entry is missing or there twice."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        changed = dict(value)
        chance = rng.random()
        if chance < 0.1:
            del changed[key]
        elif chance < 0.15:
            changed[rng.choice(WORDS)] = value[key]
        else:
            changed[key] = change_json(rng, value[key])
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        piece = rng.choice(([], [value[at]] * 2, [change_json(rng, value[at])], [change_json(rng, value[at])]))
        return [*value[:at], *piece, *value[at + 1 :]]
    return rng.choice(JSON_VALUES)


def mutate_json(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """Return lines of JSON of which one has another value, or whose bytes are changed."""
    if rng.random() < 0.3:
        return mutate(rng, seeds, JSON_TOKENS)
    lines = rng.choice(seeds).split(b"\n") if rng.random() < 0.5 else [rng.choice(seeds)]
    at = rng.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except ValueError:
        return mutate(rng, seeds, JSON_TOKENS)
    lines[at] = json.dumps(change_json(rng, value)).encode()
    return b"\n".join(lines)


def _flip_bit(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set_early_byte(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    """Change the front, where headers are."""
    if content:
        content[rng.randrange(min(len(content), 64))] = rng.randrange(256)


def _truncate(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    del content[rng.randrange(len(content) + 1) :]


def _delete(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    start = rng.randrange(len(content) + 1)
    del content[start : start + rng.choice((1, 2, 4, 8, 64))]


def _repeat(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    start = rng.randrange(len(content) + 1)
    piece = content[start : start + rng.choice((1, 4, 16, 200))]
    content[start:start] = piece * rng.choice((1, 1, 2, MOST_COPIES))


def _splice(content: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    content[rng.randrange(len(content) + 1) :] = other[rng.randrange(len(other) + 1) :]


def _set_binary_number(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    size = rng.choice((1, 2, 4, 8))
    number = rng.choice(BINARY_NUMBERS) % 256**size
    start = rng.randrange(len(content) + 1)
    content[start : start + size] = number.to_bytes(size, rng.choice(("little", "big")))


def _set_number(content: bytearray, rng: Random, _seeds: Sequence[bytes]) -> None:
    """Replace digits by a number at which something ends."""
    found = [match.span() for match in DIGITS.finditer(bytes(content[: 2**14]))]
    if found:
        start, end = rng.choice(found)
        content[start:end] = rng.choice(NUMBERS).encode()


def _insert_token(content: bytearray, rng: Random, tokens: Sequence[bytes]) -> None:
    start, token = rng.randrange(len(content) + 1), rng.choice(tokens)
    content[start : start + rng.choice((0, 0, len(token)))] = token


def encode_all(words: Sequence[str]) -> tuple[bytes, ...]:
    """Return words as bytes; what is no Unicode becomes bytes that are no UTF-8."""
    return tuple(word.encode("utf-8", "surrogatepass") for word in words)


ACTIONS: tuple[Action, ...] = (
    _flip_bit, _flip_bit, _set_early_byte, _truncate, _delete, _repeat, _splice, _set_binary_number, _set_number,
    _set_number,
)  # fmt: skip
