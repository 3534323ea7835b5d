"""Datasets of equally large images, from arrays in memory to a source.

Dimension letters: `N` examples, `H` and `W` rows and columns of an image, `C` its channels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from auxrnn.config import DataConfig
from auxrnn.data.examples import Example, Part, Plain, Problems, Source, Understood
from auxrnn.data.images import ImageFormat, to_sequences
from auxrnn.data.local_files import get_files
from auxrnn.data.readers.binary_images import read_idx
from auxrnn.data.spec import DatasetSpec, check_options
from auxrnn.errors import UsageError

BLOCK_EXAMPLES = 1024
ImagePart = tuple[Part, UInt8[np.ndarray, "N H W C"], Int64[np.ndarray, " N"]]
"""A split, all its images and the numbers of their classes."""


def image_source(
    config: DataConfig,
    spec: DatasetSpec,
    form: ImageFormat,
    class_names: Sequence[str],
    read: Callable[[Sequence[Path]], Iterable[ImagePart]],
) -> Source:
    """Return a dataset as a source, given how its files are read; options are checked before anything is downloaded."""
    check_options(config, ("image_size", "permutation") if form.permutation else ("image_size",), what=spec.name)
    if config.image_size is not None and config.image_size > min(form.size):
        raise UsageError(f"image_size is {config.image_size}; for {spec.name} it must be from 1 to {min(form.size)}")
    form = form._replace(image_size=config.image_size)
    files = get_files(spec, config.data_dir)
    num_examples = spec.train_examples + spec.test_examples
    num_bytes = num_examples * form.num_steps * form.channels * (1 if form.image_size is None else 4)
    colors, (height, width) = "gray" if form.channels == 1 else "color", form.size
    description = f"{colors} images of {width}x{height}, pixel by pixel"

    def understand(_problems: Problems, _like: object) -> Understood:
        examples = (example for part in read(files) for example in _to_examples(part, form))
        names = {str(number): class_name for number, class_name in enumerate(class_names)}
        return Understood(description, form, examples, num_examples, num_bytes, names)

    plain: dict[str, Plain] = {"reader": spec.name, **form._asdict()}
    return Source(spec.name, files, plain, understand)


def read_idx_files(files: Sequence[Path]) -> Iterator[ImagePart]:
    """Yield the splits of a dataset in MNIST's four files: training images and labels, test images and labels."""
    train_images, train_labels, test_images, test_labels = files
    yield "train", read_idx(train_images)[..., None], read_idx(train_labels).astype(np.int64)
    yield "test", read_idx(test_images)[..., None], read_idx(test_labels).astype(np.int64)


def _to_examples(images: ImagePart, form: ImageFormat) -> Iterator[Example]:
    part, images_NHWC, label_N = images
    for start in range(0, len(label_N), BLOCK_EXAMPLES):
        x_NTD = to_sequences(images_NHWC[start : start + BLOCK_EXAMPLES], form)
        for row, x_TD in enumerate(x_NTD, start=start):
            yield Example(x_TD, str(label_N[row]), f"{part} image {row}", part)
