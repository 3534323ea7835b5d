"""CIFAR-10: color photographs of ten kinds of objects."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import Content, DatasetSpec, PublishedFile

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCH_BYTES = 30_730_000
ARCHIVE = PublishedFile(
    name="cifar-10-binary.tar.gz",
    num_bytes=170_052_171,
    checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
    mirrors=("https://www.cs.toronto.edu/~kriz",),
    unpacked=(
        Content("data_batch_1.bin", BATCH_BYTES, "md5:5dd7e06a14cb22eb9f671a540d1b7c25"),
        Content("data_batch_2.bin", BATCH_BYTES, "md5:5ea93a67294ea407fff1d09f752e9692"),
        Content("data_batch_3.bin", BATCH_BYTES, "md5:942cd6a4bcdd0dd3c604fbe906cb4421"),
        Content("data_batch_4.bin", BATCH_BYTES, "md5:ae636b3ba5c66a11e91e8cb52e771fcb"),
        Content("data_batch_5.bin", BATCH_BYTES, "md5:53f37980c15c3d472c316c40844f3f0d"),
        Content("test_batch.bin", BATCH_BYTES, "md5:803d5f7f4d78ea53de84dbe85f74fb6d"),
    ),
    folder="cifar-10-batches-bin",
)


def open_cifar10(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return CIFAR-10 as a source."""
    from auxrnn.data import images  # noqa: PLC0415 - slow, and the list of datasets does without

    def read(files: Sequence[Path]) -> Iterator[images.ImagePart]:
        yield "train", *images.read_cifar10(files[:-1])
        yield "test", *images.read_cifar10(files[-1:])

    return images.image_source(spec, config, images.ImageFormat(32, 32, 3), read)


CIFAR10 = DatasetSpec(
    name="cifar10",
    title="CIFAR-10, color photographs of 32x32 pixels",
    lengths="1,024",
    num_classes=10,
    train_examples=50_000,
    test_examples=10_000,
    license="research",
    citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    open=open_cifar10,
    files=(ARCHIVE,),
    class_names=CLASSES,
)
