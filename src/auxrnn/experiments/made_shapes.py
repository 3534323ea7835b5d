"""Stand-ins for the datasets that have a name: as many examples, as long, but nothing in them and nothing to download.

All steps of all sequences are one value that stands in memory once, so a stand-in for gigabytes takes a few megabytes:
what is kept of each example beside its steps. How long a network takes does not depend on what it reads.
Dimension letters: `N` examples, `K` steps of all sequences together.
"""

import math

import numpy as np
from jaxtyping import Int64

from auxrnn.config import DataConfig
from auxrnn.data import dbpedia, synthetic
from auxrnn.data.catalog import DATASETS
from auxrnn.data.collect import PARTS, Table
from auxrnn.data.datasets import Dataset
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Flat
from auxrnn.data.spec import DatasetSpec
from auxrnn.data.tasks import TASKS
from auxrnn.data.texts import ZHANG_ALPHABET, TextFormat
from auxrnn.errors import UsageError

IMAGES = {
    "mnist": ImageFormat(28, 28, 1),
    "pmnist": ImageFormat(28, 28, 1),
    "fashion_mnist": ImageFormat(28, 28, 1),
    "cifar10": ImageFormat(32, 32, 3),
}
DOGS_CHANNELS = 3
TEXT_LENGTHS = {0.0: 10, 0.1: 97, 0.25: 163, 0.5: 280, 0.75: 399, 0.9: 458, 0.99: 493, 0.999: 831, 1.0: 3598}
"""Characters of DBpedia's texts, by the share of the texts that are no longer."""
LETTER = ord("a")


def can_make(request: DataConfig) -> bool:
    """Say whether there is a stand-in: not for the user's own files, nor for digits, which are always at hand."""
    has_own = request.test_data is not None or request.unlabeled is not None
    return request.data in DATASETS and request.data != "digits" and not has_own


def make_dataset(request: DataConfig) -> Dataset:
    """Make a stand-in for what a request names; each class has as many examples as any other."""
    facts, form = DATASETS[request.data], _choose_format(request)
    origin_N = _find_origins(facts, request.enlarge_to)
    num_train = len(origin_N) - facts.test_examples
    lengths = [_find_lengths(count, request, form) for count in (num_train, facts.test_examples)]
    begin_N1 = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    part_N = np.repeat([PARTS.index("train"), PARTS.index("test")], [num_train, facts.test_examples]).astype(np.int8)
    label_N = np.arange(len(origin_N)) % facts.num_classes
    return Dataset(
        name=request.data,
        flat=Flat(_fill(int(begin_N1[-1]), form), begin_N1),
        table=Table(begin_N1, label_N, part_N, origin_N),
        class_names=tuple(str(number) for number in range(facts.num_classes)),
        format=form,
        description=f"a stand-in for {request.data}",
        skipped=(),
        num_skipped=0,
        checksum="",
    )


def _choose_format(request: DataConfig) -> Format:
    if request.data in TASKS:
        return TextFormat(alphabet=TASKS[request.data].alphabet)
    if request.data == "dbpedia":
        alphabet = ZHANG_ALPHABET if request.tokens == "characters" else None
        return TextFormat(request.tokens, alphabet, max_length=dbpedia.MAX_LENGTH)
    if request.data in IMAGES:
        return IMAGES[request.data]._replace(image_size=request.image_size)
    assert request.data == "stanford_dogs", "a new dataset needs a stand-in"
    if request.image_size is None:
        raise UsageError("stanford_dogs has images of many sizes; give --image-size, 40 to 128 in the paper")
    return ImageFormat(request.image_size, request.image_size, DOGS_CHANNELS, is_resized=True)


def _find_origins(facts: DatasetSpec, enlarge_to: int | None) -> Int64[np.ndarray, " N"]:
    """Give the picture that each example shows: training pictures, their crops where asked for, and test pictures."""
    num_train = max(facts.train_examples, enlarge_to or 0)
    origin_N = np.arange(num_train + facts.test_examples)
    origin_N[facts.train_examples : num_train] %= facts.train_examples
    return origin_N


def _find_lengths(num_examples: int, request: DataConfig, form: Format) -> Int64[np.ndarray, " N"]:
    if request.data == "dbpedia":
        share_N = np.linspace(0, 1, num_examples)
        return np.rint(np.interp(share_N, list(TEXT_LENGTHS), list(TEXT_LENGTHS.values()))).astype(np.int64)
    num_steps = form.num_steps if isinstance(form, ImageFormat) else request.length or synthetic.DEFAULT_LENGTH
    return np.full(num_examples, num_steps)


def _fill(num_steps: int, form: Format) -> np.ndarray:
    """Give steps that are all the same, in the memory of one."""
    if isinstance(form, TextFormat):
        code = LETTER if form.alphabet is None else ord(form.alphabet[0])
        return np.broadcast_to(np.array(code, dtype=np.uint8), (num_steps,))
    assert isinstance(form, ImageFormat)
    gray = np.array(math.pi / 4, dtype=np.float32)
    return np.broadcast_to(gray, (num_steps, form.channels))
