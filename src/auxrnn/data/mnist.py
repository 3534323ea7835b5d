"""MNIST, and pMNIST: the same images with their pixels in one fixed, shuffled order."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import Content, DatasetSpec, PublishedFile

MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist")
PACKED = (
    (9_912_422, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    (28_881, "md5:d53e105ee54ea40749a09fcbcd1e9432"),
    (1_648_877, "md5:9fb629c4189551a2d022fa330f9573f3"),
    (4_542, "md5:ec29112dd5afa0611ce80d1b7f02629c"),
)
UNPACKED = (
    Content("train-images-idx3-ubyte", 47_040_016, "md5:6bbc9ace898e44ae57da46a324031adb"),
    Content("train-labels-idx1-ubyte", 60_008, "md5:a25bea736e30d166cdddb491f175f624"),
    Content("t10k-images-idx3-ubyte", 7_840_016, "md5:2646ac647ad5339dbf082846283269ea"),
    Content("t10k-labels-idx1-ubyte", 10_008, "md5:27ae3e4e09519cfbb04c329615203637"),
)
FILES = tuple(
    PublishedFile(f"{content.name}.gz", *packed, MIRRORS, (content,))
    for content, packed in zip(UNPACKED, PACKED, strict=True)
)


def open_mnist(config: DataConfig) -> Source:
    """Return MNIST or pMNIST as a source."""
    from auxrnn.data import images  # noqa: PLC0415 - slow, and the list of datasets does without

    spec = PMNIST if config.data == PMNIST.name else MNIST
    form = images.ImageFormat(28, 28, 1, permutation=config.permutation if spec is PMNIST else None)
    return images.image_source(config, spec, form, "0123456789", images.read_idx_files)


MNIST = DatasetSpec(
    name="mnist",
    title="MNIST, handwritten digits of 28x28 pixels",
    lengths="784",
    num_classes=10,
    train_examples=60_000,
    test_examples=10_000,
    license="CC BY-SA 3.0",
    citation="LeCun, Bottou, Bengio and Haffner, Gradient-Based Learning Applied to Document Recognition, 1998",
    open=open_mnist,
    files=FILES,
)
PMNIST = MNIST._replace(
    name="pmnist",
    title="MNIST with its pixels in one fixed, shuffled order",
    citation="Le, Jaitly and Hinton, A Simple Way to Initialize Recurrent Networks of Rectified Linear Units, 2015",
    folder="mnist",
)
