"""MNIST; pMNIST, the same images with their pixels in one fixed, shuffled order; and Fashion-MNIST."""

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
FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
)
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
FASHION_PACKED = (
    (26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    (29_515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
    (4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79"),
    (5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
)
FASHION_FILES = tuple(
    # No checksums of the unpacked files are published; MNIST's have the same names and sizes.
    PublishedFile(
        f"{content.name}.gz",
        *packed,
        FASHION_MIRRORS,
        (Content(content.name, content.num_bytes, others=(str(content.checksum),)),),
    )
    for content, packed in zip(UNPACKED, FASHION_PACKED, strict=True)
)


def open_mnist(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return MNIST, pMNIST or Fashion-MNIST as a source."""
    from auxrnn.data import images  # noqa: PLC0415 - slow, and the list of datasets does without

    form = images.ImageFormat(28, 28, 1, permutation=config.permutation if spec is PMNIST else None)
    return images.image_source(spec, config, form, images.read_idx_files)


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
    class_names=tuple("0123456789"),
)
PMNIST = MNIST._replace(
    name="pmnist",
    title="MNIST with its pixels in one fixed, shuffled order",
    citation="Le, Jaitly and Hinton, A Simple Way to Initialize Recurrent Networks of Rectified Linear Units, 2015",
    folder="mnist",
)
FASHION_MNIST = MNIST._replace(
    name="fashion_mnist",
    title="Fashion-MNIST, articles of clothing of 28x28 pixels",
    license="MIT",
    citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
    files=FASHION_FILES,
    class_names=CLOTHES,
)
