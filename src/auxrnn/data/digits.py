"""Scikit-learn's 1,797 digits of 8x8, centered on 14x14 so that a long blank follows what must be remembered."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import DatasetSpec


def open_digits(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return the digits as a source."""
    # Slow imports, which the list of datasets does without.
    import numpy as np  # noqa: PLC0415

    from auxrnn.data import images, splits  # noqa: PLC0415
    from auxrnn.structs import Draws  # noqa: PLC0415

    def read(_files: Sequence[Path]) -> Iterator[images.ImagePart]:
        from sklearn.datasets import load_digits  # noqa: PLC0415

        digits = load_digits()
        images_NHWC = np.rint(digits.images[..., None] * (255 / 16)).astype(np.uint8)
        label_N = digits.target.astype(np.int64)
        # The split is part of the dataset: the same whatever the seed of a run.
        rng = Draws(seed=0, phase="digits", step=0).rng("split")
        test = splits.draw_stratified(label_N, num_examples=spec.test_examples, rng=rng)
        yield "train", np.delete(images_NHWC, test, axis=0), np.delete(label_N, test)
        yield "test", images_NHWC[test], label_N[test]

    return images.image_source(spec, config, images.ImageFormat(8, 8, 1, canvas=14), read)


DIGITS = DatasetSpec(
    name="digits",
    title="handwritten digits of 8x8 pixels, bundled with scikit-learn",
    lengths="196",
    num_classes=10,
    train_examples=1_437,
    test_examples=360,
    license="CC BY 4.0",
    citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Repository, 1998",
    open=open_digits,
    class_names=tuple("0123456789"),
)
