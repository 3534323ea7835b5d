"""Formats of sequences: plain values that a run records, and the encoding that makes a network's input of them.

A step of a text is a character or a byte, a step of a series the values of all channels at one time, standardized.
Dimension letters: `T` steps, `D` channels, `V` the vocabulary, `K` steps of many sequences, one after the other.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Float32, Float64, Int64, Shaped, UInt32

from auxrnn.config import MOST, MOST_CHARACTERS, DataConfig
from auxrnn.data.examples import Example, ExampleError, Problems
from auxrnn.data.images import ImageFormat, to_unit
from auxrnn.data.sequences import Encoding, Split, measure_lengths
from auxrnn.errors import UsageError
from auxrnn.structs import LARGEST_INPUT

Tokens = Literal["characters", "bytes"]
ZHANG_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+=<>()[]{}\n "
"""The 69 different characters of Zhang et al. (2015), and the space."""
NUM_CODE_POINTS = 0x110000
NUM_MEASURED = 1000


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
    is_file: bool = False
    """Whether a file is one text, as in a folder of them; otherwise a line is."""

    @property
    def vocabulary_size(self) -> int:
        """How many different tokens there are."""
        return 256 if self.tokens == "bytes" else len(self.alphabet or "") + 1

    def to_values(self, text: str) -> UInt32[np.ndarray, " T"] | Shaped[np.ndarray, " T"]:
        """Return a text as it is kept: code points, or bytes."""
        if self.is_lowercase:
            text = text.lower()
        if self.tokens == "bytes":
            return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


class SeriesFormat(NamedTuple):
    """How numbers are scaled before they are read: plain values, so that a run can record them."""

    num_channels: int
    mean: tuple[float, ...] | None = None
    """What is taken from each channel; None until the training data is known."""
    deviation: tuple[float, ...] | None = None
    """What each channel is then divided by."""
    max_length: int | None = None
    """How many steps of a series are read: the first ones."""
    sample_rate: int | None = None
    """Samples a second of audio, to which recordings are resampled; None for other series."""
    steps_per_input: int = 1
    """Neighboring steps that a network reads as one input; the last one may be filled up."""
    has_mask: bool = False
    """Whether values may be missing, and each input ends in a mask that says which are there."""
    columns: tuple[str, ...] = ()
    """The columns of a table with the steps or the channels, by name, or by number from 1 where they have no names."""
    series_column: str | None = None
    """The column of a table that says which series a row belongs to, where each row is a step."""
    time_column: str | None = None
    """The column by which these steps are sorted."""
    is_file: bool = False
    """Whether a file is one series, as in a folder of them."""
    is_channels_first: bool = False
    """Whether the steps of arrays come last, after the channels."""


class SymbolFormat(NamedTuple):
    """How whole numbers become tokens: plain values, so that a run can record them."""

    symbols: tuple[float, ...] | None = None
    """The whole numbers of the training data in order, with a token each; all others share one more. None until the
    training data is known."""
    max_length: int | None = None
    """How many steps are read: the first ones."""


Format = ImageFormat | TextFormat | SeriesFormat | SymbolFormat
KINDS: dict[str, type[Format]] = {
    "images": ImageFormat, "texts": TextFormat, "series": SeriesFormat, "symbols": SymbolFormat,
}  # fmt: skip


def kind_of(form: Format) -> str:
    """Return the name of a format's kind: images, texts, series or symbols."""
    return next(kind for kind, cls in KINDS.items() if isinstance(form, cls))


def to_plain(form: Format) -> dict[str, Any]:
    """Return a format as plain values for JSON."""
    return {"kind": kind_of(form)} | form._asdict()


def from_plain(values: dict[str, Any]) -> Format:
    """Return the format that `to_plain` was given; anything else raises ValueError, KeyError or TypeError."""
    fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
    form = KINDS[fields.pop("kind")](**fields)
    for name, hint in get_type_hints(type(form)).items():
        if not _fits(getattr(form, name), hint):
            raise TypeError(f"{name} is not of type {hint}")
    return form


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type, as far as formats use types; their whole numbers are sizes."""
    if isinstance(hint, UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint in (int, float):
        is_number = isinstance(value, int | hint) and not isinstance(value, bool)
        return is_number and (abs(value) <= sys.float_info.max if hint is float else 0 < value <= MOST)
    return isinstance(value, hint)


def count_values(form: Format) -> int:
    """Return how many numbers a step has."""
    if isinstance(form, ImageFormat):
        return form.channels
    return form.num_channels if isinstance(form, SeriesFormat) else 1


def steps_per_input(form: Format) -> int:
    """Return how many neighboring steps are one input of a network."""
    return 1 if isinstance(form, TextFormat | SymbolFormat) else form.steps_per_input


def has_mask(form: Format) -> bool:
    """Return whether values may be missing."""
    return isinstance(form, SeriesFormat) and form.has_mask


def step_sizes(form: Format) -> tuple[int, int | None]:
    """Return how many numbers an input of a network has, and the size of the vocabulary if they are tokens."""
    if isinstance(form, TextFormat):
        return 1, form.vocabulary_size
    if isinstance(form, SymbolFormat):
        return 1, len(form.symbols or ()) + 1
    return count_values(form) * form.steps_per_input * (1 + has_mask(form)), None


def make_encoding(form: Format) -> Encoding:
    """Return the encoding of a format."""
    if isinstance(form, ImageFormat):
        return Encoding(to_unit, steps_per_input=form.steps_per_input)
    if isinstance(form, SeriesFormat):
        assert form.mean is not None, "the training data must be known first"
        mean_D, deviation_D = np.array(form.mean), np.array(form.deviation)
        # In double precision: a large mean would cost single precision most of its digits. Beyond its range, a number
        # is as good as the largest that can be summed up.
        return Encoding(
            lambda value: np.clip((value - mean_D) / deviation_D, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32),
            form.max_length,
            steps_per_input=form.steps_per_input,
            has_mask=form.has_mask,
        )
    if isinstance(form, SymbolFormat):
        assert form.symbols is not None, "the training data must be known first"
        symbol_V = np.array(form.symbols, dtype=np.int64)
        return Encoding(lambda value: _find_tokens(value, symbol_V), form.max_length)
    if form.tokens == "bytes":
        return Encoding(lambda value: value.astype(np.int64), form.max_length, form.is_backward)
    assert form.alphabet is not None, "characters need an alphabet first"
    table_V = np.full(NUM_CODE_POINTS, len(form.alphabet), dtype=np.uint16)
    table_V[list(map(ord, form.alphabet))] = np.arange(len(form.alphabet))
    return Encoding(lambda value: table_V[value].astype(np.int64), form.max_length, form.is_backward)


def _find_tokens(value: Shaped[np.ndarray, "..."], symbol_V: Int64[np.ndarray, " V"]) -> Int64[np.ndarray, "..."]:
    """Return the places of whole numbers among the symbols, and one place more for those that are none of them."""
    token = np.minimum(np.searchsorted(symbol_V, value), len(symbol_V) - 1)
    return np.where(symbol_V[token] == value, token, len(symbol_V))


def settle(form: Format, data: DataConfig) -> Format:
    """Return the format with the user's options; options that its kind does not have are refused."""
    if isinstance(form, TextFormat | SymbolFormat) and data.steps_per_input > 1:
        raise UsageError(f"steps_per_input is {data.steps_per_input}, which joins numbers, not tokens; remove it")
    if isinstance(form, TextFormat):
        max_length = form.max_length if data.max_length is None else data.max_length
        return form._replace(max_length=max_length, is_backward=data.read_backward)
    if data.read_backward:
        raise UsageError(f"read_backward has no effect on {kind_of(form)}; remove it")
    if isinstance(form, SymbolFormat):
        return form._replace(max_length=data.max_length)
    if isinstance(form, SeriesFormat):
        return form._replace(max_length=data.max_length, steps_per_input=data.steps_per_input)
    if data.max_length is not None:
        raise UsageError("max_length has no effect on images; image_size makes them shorter")
    return form._replace(steps_per_input=data.steps_per_input)


def fit(form: Format, train: Split, data: DataConfig) -> Format:
    """Return the format with what it learns from the training examples."""
    if isinstance(form, TextFormat) and form.tokens == "characters" and form.alphabet is None:
        count_V = count_all_characters(train)
        found = np.flatnonzero(count_V)
        commonest = found[np.argsort(-count_V[found], kind="stable")][: data.alphabet_size]
        return form._replace(alphabet="".join(map(chr, sorted(commonest.tolist()))))
    if isinstance(form, SeriesFormat) and form.mean is None:
        return fit_scale(form, train.values())
    if isinstance(form, SymbolFormat) and form.symbols is None:
        return form._replace(symbols=tuple(sorted(count_symbols(train))))
    return form


def fit_scale(form: SeriesFormat, blocks: Iterable[Float32[np.ndarray, "_ D"]]) -> SeriesFormat:
    """Return the format that scales by mean and deviation of all steps; a channel that never changes is only moved."""
    mean_D, variance_D = measure_channels(form.num_channels, blocks)
    # No tolerance is needed: sums of up to 2**29 equal 32-bit floats are exact in double precision.
    deviation_D = np.where(variance_D > 0, np.sqrt(variance_D), 1.0)
    return form._replace(mean=tuple(mean_D.tolist()), deviation=tuple(deviation_D.tolist()))


def measure_channels(
    size: int, blocks: Iterable[Float32[np.ndarray, "_ D"]]
) -> tuple[Float64[np.ndarray, " D"], Float64[np.ndarray, " D"]]:
    """Return mean and variance of what is there of each channel; both are 0 where nothing is.

    Blocks of any size are counted in double precision (Chan et al., 1983: squares around the mean, merged).
    """
    count_D, mean_D, square_D = np.zeros(size), np.zeros(size), np.zeros(size)
    for value_KD in blocks:
        # In place: a block may be large.
        block_KD: Float64[np.ndarray, "K D"] = value_KD.astype(np.float64)
        is_missing_KD = np.isnan(block_KD)
        block_KD[is_missing_KD] = 0.0
        there_D = len(block_KD) - is_missing_KD.sum(axis=0)
        block_mean_D, total_D = block_KD.sum(axis=0) / np.maximum(there_D, 1), np.maximum(count_D + there_D, 1)
        shift_D = block_mean_D - mean_D
        block_KD -= block_mean_D
        block_KD[is_missing_KD] = 0.0
        square_D += np.square(block_KD, out=block_KD).sum(axis=0) + shift_D**2 * count_D * there_D / total_D
        mean_D += shift_D * there_D / total_D
        count_D += there_D
    return mean_D, square_D / np.maximum(count_D, 1)


def measure_constant_loss(train: Split) -> float:
    """Return the auxiliary loss per step of the best constant prediction: variance of vectors, entropy of tokens.

    Measured on at most `NUM_MEASURED` training examples; 1 where nothing ever changes, so that it can be divided by.
    """
    chosen = np.unique(np.linspace(0, train.num_examples - 1, min(NUM_MEASURED, train.num_examples)).astype(np.int64))
    # One by one: their common rows might be much longer than they are.
    value_K = np.concatenate([train.select(chosen[each : each + 1]).align()[0][0] for each in range(len(chosen))])
    if np.issubdtype(value_K.dtype, np.integer):
        share_V = np.bincount(value_K) / len(value_K)
        share_V = share_V[share_V > 0]
        loss = float(-(share_V * np.log(share_V)).sum())
    else:
        loss = float(measure_channels(value_K.shape[1], [value_K])[1].sum())
    return loss if loss > 0 else 1.0


def count_all_characters(split: Split) -> Int64[np.ndarray, " V"]:
    """Count how often each code point occurs in a split of texts."""
    count_V = np.zeros(NUM_CODE_POINTS, dtype=np.int64)
    for value_K in split.values():
        # No longer than its largest code point: a million entries would cost more than the counting.
        found_V = np.bincount(value_K)
        count_V[: len(found_V)] += found_V
    return count_V


def count_symbols(split: Split) -> Counter[int]:
    """Count how often each whole number occurs in a split of them; refuse more than could be symbols."""
    counts = Counter[int]()
    for value_K in split.values():
        symbol_V, count_V = np.unique(value_K, return_counts=True)
        counts.update(dict(zip(symbol_V.tolist(), count_V.tolist(), strict=True)))
        if len(counts) > MOST_CHARACTERS:
            what = f"there are more than {MOST_CHARACTERS:,} different integers, too many for symbols"
            raise UsageError(f"tokens is 'integers', and {what}; leave it out to read them as numbers")
    return counts


def count_unknown(split: Split, form: Format) -> Counter[str]:
    """Count the characters or integers that a network was not trained on."""
    if isinstance(form, SymbolFormat):
        known = {*(form.symbols or ())}
        return Counter({str(symbol): count for symbol, count in count_symbols(split).items() if symbol not in known})
    if not isinstance(form, TextFormat) or form.tokens == "bytes":
        return Counter()
    count_V = count_all_characters(split)
    count_V[[ord(character) for character in form.alphabet or ""]] = 0
    return Counter({chr(code): int(count_V[code]) for code in np.flatnonzero(count_V).tolist()})


def describe_alphabet(form: Format, train: Split) -> str:
    """Return the size of a network's alphabet, and how much of the training data it does not cover."""
    if isinstance(form, SymbolFormat):
        return f"{len(form.symbols or ()):,} different integers, and one token for all others"
    if not isinstance(form, TextFormat) or form.alphabet is None:
        return ""
    unknown, total = count_unknown(train, form).total(), int(train.length_N.sum())
    return f"alphabet of {len(form.alphabet)} characters; {100 * unknown / total:.2f} % of the text is not in it"


def describe_inputs(form: Format, train: Split) -> str:
    """Return how many inputs the steps become, where several are joined."""
    if (size := steps_per_input(form)) == 1:
        return ""
    inputs = str(measure_lengths(train.length_N)).replace("steps", "inputs")
    return f"{size} steps are one input of {step_sizes(form)[0]:,} features: {inputs}"


def adopt(form: Format, other: Format) -> Format:
    """Return the format with what another one has learned, so that its network can be trained further."""
    if kind_of(form) != kind_of(other):
        raise UsageError(f"init_from is a run on {kind_of(other)}, and these are {kind_of(form)}; leave it out")
    if isinstance(form, TextFormat) and isinstance(other, TextFormat):
        if form.tokens != other.tokens:
            found = f"tokens is {form.tokens!r}, and the run of --init-from reads {other.tokens}"
            raise UsageError(f"{found}; give the same")
        return form._replace(alphabet=other.alphabet)
    if steps_per_input(form) != steps_per_input(other):
        found = f"steps_per_input is {steps_per_input(form)}, and {steps_per_input(other)} in the run of --init-from"
        raise UsageError(f"{found}; give the same")
    if isinstance(form, SeriesFormat) and isinstance(other, SeriesFormat):
        return _adopt_scale(form, other)
    if isinstance(form, SymbolFormat) and isinstance(other, SymbolFormat):
        return form._replace(symbols=other.symbols)
    return form


def find_bad(value_TD: Float32[np.ndarray, "T D"], *, may_miss: bool) -> Int64[np.ndarray, " I"]:
    """Return step and channel of the first number that cannot be read: infinite, or NaN unless values may be missing.

    This is the only place that knows; empty if all is well.
    """
    is_bad_TD = np.isinf(value_TD) if may_miss else ~np.isfinite(value_TD)
    return np.argwhere(is_bad_TD)[:1].reshape(-1)


def check_numbers(example: Example, *, may_miss: bool, cure: str) -> None:
    """Raise `ExampleError` where an example has numbers that cannot be read; the cure is for those that are missing."""
    if example.value_T.dtype.kind == "f" and len(found := find_bad(example.value_T, may_miss=may_miss)):
        step, channel = found.tolist()
        number = float(example.value_T[step, channel])
        what = f"has {number:.3g} at step {step}, channel {channel}"
        raise ExampleError(what, cure if math.isnan(number) else "give finite 32-bit floats")


def to_numbers(x: object) -> Float32[np.ndarray, "..."]:
    """Return an array of numbers as the cache keeps them."""
    try:
        with np.errstate(over="ignore"):
            return np.atleast_1d(np.asarray(x, dtype=np.float64)).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UsageError("these are not numbers; give arrays of them, and NaN for what is missing") from error


def to_symbols(x: object) -> Int64[np.ndarray, "..."]:
    """Return an array of whole numbers as the cache keeps them."""
    try:
        symbols = np.atleast_1d(np.asarray(x))
    except ValueError:
        symbols = np.array("rows of different lengths")
    if symbols.dtype.kind not in "biu":
        raise UsageError("these are not whole numbers of 64 bits; give arrays of them, one number for each step")
    return symbols.astype(np.int64)


def _adopt_scale(form: SeriesFormat, other: SeriesFormat) -> SeriesFormat:
    if form.sample_rate and other.sample_rate and form.sample_rate != other.sample_rate:
        found = f"the data has {form.sample_rate:,} samples a second, and that of --init-from {other.sample_rate:,}"
        raise UsageError(f"{found}; give --sample-rate {other.sample_rate}")
    if form.has_mask and not other.has_mask:
        raise UsageError("init_from is a run on data without gaps, and this data has some; fill them in")
    return form._replace(mean=other.mean, deviation=other.deviation, has_mask=other.has_mask)


def fit_channels(places: Sequence[tuple[str, int]], like: object) -> SeriesFormat:
    """Return the format of series at some places, each with its number of channels; `like` is kept, and must fit."""
    if not isinstance(like, SeriesFormat | None):
        raise UsageError(f"{places[0][0]} holds series of numbers; give the same kind of data as the training data")
    form = like or SeriesFormat(places[0][1])
    for place, num_channels in places:
        with Problems().at(place):
            check_channels(num_channels, form.num_channels, "give the channels of the training data, in their order")
    return form


def count_channels(number: int) -> str:
    """Return a number of channels in words: "1 channel", "3 channels"."""
    return "1 channel" if number == 1 else f"{number:,} channels"


def check_channels(found: int, needed: int, cure: str) -> None:
    """Raise `ExampleError` for another number of channels than is needed."""
    if found != needed:
        raise ExampleError(f"has {count_channels(found)} instead of {count_channels(needed)}", cure)
