"""Stanford Dogs: color photographs of 120 breeds, read at a size that the user chooses."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import Content, DatasetSpec, PublishedFile, check_options, get_files
from auxrnn.errors import UsageError

MIRRORS = ("http://vision.stanford.edu/aditya86/ImageNetDogs",)
# The authors publish no checksums; these are the ones that TensorFlow Datasets has found.
IMAGES = PublishedFile(
    name="images.tar",
    num_bytes=793_579_520,
    checksum="sha256:a443fc2f9a851aa1a7b8e4fa4af94b8459fce2c9f5a2f4dd4669cf9673a4ec58",
    mirrors=MIRRORS,
    folder="Images",
)
LISTS = PublishedFile(
    name="lists.tar",
    num_bytes=481_280,
    checksum="sha256:34b47cacd9a98b5d150e084f24d29391c084c55272295ec65c85651bc35f4d6c",
    mirrors=MIRRORS,
    unpacked=(Content("train_list.mat"), Content("test_list.mat")),
    folder="lists",
)


def open_stanford_dogs(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return Stanford Dogs as a source; a user's own copy may have only some of the breeds."""
    from auxrnn.data.readers.dogs import dogs_source  # noqa: PLC0415 - slow, and the list of datasets does without
    from auxrnn.data.readers.image_folder import ImageOptions  # noqa: PLC0415 - the same

    check_options(config, ("image_size", "enlarge_to"), what=spec.name)
    if config.image_size is None:
        raise UsageError("stanford_dogs has images of many sizes; give --image-size, 40 to 128 in the paper")
    images, *_lists = get_files(spec, config.data_dir)
    return dogs_source(spec.name, images.parent, ImageOptions(config.image_size, config.enlarge_to))


STANFORD_DOGS = DatasetSpec(
    name="stanford_dogs",
    title="Stanford Dogs, color photographs of dogs by breed, at any size",
    lengths="1,600 to 16,384",
    num_classes=120,
    train_examples=12_000,
    test_examples=8_580,
    license="research",
    citation="Khosla, Jayadevaprakash, Yao and Fei-Fei, Novel Dataset for Fine-Grained Image Categorization, 2011",
    open=open_stanford_dogs,
    files=(IMAGES, LISTS),
)
