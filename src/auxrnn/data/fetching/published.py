"""The files of each dataset as they are published: where, how large, and with which checksums."""

from typing import NamedTuple

from auxrnn.data.fetching.local_files import DatasetFile
from auxrnn.data.fetching.remote_files import Content, RemoteFile


class DogsArchives(NamedTuple):
    """The archives of Stanford Dogs, and what they unpack to."""

    images: RemoteFile
    lists: RemoteFile
    num_breeds: int
    num_images: int
    num_train: int
    num_test: int


IDX_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""MNIST's files unpacked, and Fashion-MNIST's: they have the same names and sizes."""
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
MNIST_PACKED = (
    ("md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
    ("md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
    ("md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
    ("md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
)
MNIST_UNPACKED = (
    "md5:6bbc9ace898e44ae57da46a324031adb",
    "md5:a25bea736e30d166cdddb491f175f624",
    "md5:2646ac647ad5339dbf082846283269ea",
    "md5:27ae3e4e09519cfbb04c329615203637",
)
FASHION_MNIST_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
FASHION_MNIST_PACKED = (
    ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
    ("md5:25c81989df183df01b3e8a0aad5dffbe", 29_515),
    ("md5:bef4ecab320f06d8554ea6380940ec79", 4_422_102),
    ("md5:bb300cfdad3c16e7a12a480ee83cd310", 5_148),
)
MNIST = tuple(
    DatasetFile(
        RemoteFile(f"{MNIST_URL}/{name}.gz", *packed),
        unpacked=(Content(name, num_bytes, unpacked),),
        namesakes=frozenset(checksum for checksum, _ in FASHION_MNIST_PACKED),
    )
    for (name, num_bytes), packed, unpacked in zip(IDX_FILES.items(), MNIST_PACKED, MNIST_UNPACKED, strict=True)
)
FASHION_MNIST = tuple(
    DatasetFile(
        RemoteFile(f"{FASHION_MNIST_URL}/{name}.gz", *packed),
        unpacked=(Content(name, num_bytes),),
        namesakes=frozenset((*MNIST_UNPACKED, *(checksum for checksum, _ in MNIST_PACKED))),
    )
    for (name, num_bytes), packed in zip(IDX_FILES.items(), FASHION_MNIST_PACKED, strict=True)
)

CIFAR10_FOLDER = "cifar-10-batches-bin"
CIFAR10 = RemoteFile(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", 170_052_171
)
CIFAR10_MEMBERS = (
    Content("data_batch_1.bin", 30_730_000, "md5:5dd7e06a14cb22eb9f671a540d1b7c25"),
    Content("data_batch_2.bin", 30_730_000, "md5:5ea93a67294ea407fff1d09f752e9692"),
    Content("data_batch_3.bin", 30_730_000, "md5:942cd6a4bcdd0dd3c604fbe906cb4421"),
    Content("data_batch_4.bin", 30_730_000, "md5:ae636b3ba5c66a11e91e8cb52e771fcb"),
    Content("data_batch_5.bin", 30_730_000, "md5:53f37980c15c3d472c316c40844f3f0d"),
    Content("test_batch.bin", 30_730_000, "md5:803d5f7f4d78ea53de84dbe85f74fb6d"),
)

DBPEDIA_FOLDER = "dbpedia_csv"
DBPEDIA = RemoteFile(
    "https://s3.amazonaws.com/fast-ai-nlp/dbpedia_csv.tgz",
    "sha256:42db5221ddedddb673a4cabcc5f3a7d869714c878bcfe4ba94b29d14aa38e417",
    68_341_743,
)
DBPEDIA_MEMBERS = (
    Content("train.csv", 174_148_970, "sha256:3fea0c8c6ae73d0911f9cf37ec68606d169c4edd9214c6443b035649a3fb38ce"),
    Content("test.csv", 21_775_285, "sha256:3d7b5fc00870e3446e322479af553629f55e313dd3b4249c08b68132d1230804"),
    Content("classes.txt"),
)

DOGS_URL = "http://vision.stanford.edu/aditya86/ImageNetDogs"
# Its authors publish no checksums; these are the ones that TensorFlow Datasets has found.
DOGS = DogsArchives(
    RemoteFile(
        f"{DOGS_URL}/images.tar",
        "sha256:a443fc2f9a851aa1a7b8e4fa4af94b8459fce2c9f5a2f4dd4669cf9673a4ec58",
        793_579_520,
    ),
    RemoteFile(
        f"{DOGS_URL}/lists.tar",
        "sha256:34b47cacd9a98b5d150e084f24d29391c084c55272295ec65c85651bc35f4d6c",
        481_280,
    ),
    num_breeds=120,
    num_images=20_580,
    num_train=12_000,
    num_test=8_580,
)
