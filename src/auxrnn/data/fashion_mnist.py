"""Fashion-MNIST: clothing in the file format of MNIST."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import DatasetSpec, PublishedFile

MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
)
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
FILES = (
    PublishedFile("train-images-idx3-ubyte.gz", 26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", MIRRORS),
    PublishedFile("train-labels-idx1-ubyte.gz", 29_515, "md5:25c81989df183df01b3e8a0aad5dffbe", MIRRORS),
    PublishedFile("t10k-images-idx3-ubyte.gz", 4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79", MIRRORS),
    PublishedFile("t10k-labels-idx1-ubyte.gz", 5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310", MIRRORS),
)


def open_fashion_mnist(config: DataConfig) -> Source:
    """Return Fashion-MNIST as a source."""
    from auxrnn.data import images  # noqa: PLC0415 - slow, and the list of datasets does without

    form = images.ImageFormat(28, 28, 1)
    return images.image_source(config, FASHION_MNIST, form, CLASSES, images.read_idx_files)


FASHION_MNIST = DatasetSpec(
    name="fashion_mnist",
    title="Fashion-MNIST, articles of clothing of 28x28 pixels",
    lengths="784",
    num_classes=10,
    train_examples=60_000,
    test_examples=10_000,
    license="MIT",
    citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
    open=open_fashion_mnist,
    files=FILES,
)
