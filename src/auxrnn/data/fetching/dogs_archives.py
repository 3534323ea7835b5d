"""The archives of Stanford Dogs: downloaded, unpacked and counted, where a user has not unpacked them already."""

from collections.abc import Sequence
from pathlib import Path

from auxrnn.data.examples import Part, Problems
from auxrnn.data.fetching.local_files import DatasetFile, find_or_download, unpack_part
from auxrnn.data.fetching.published import DogsArchives
from auxrnn.data.fetching.remote_files import Observe
from auxrnn.data.pictures.dogs import IMAGES, LISTS, is_dogs_folder, read_list
from auxrnn.errors import RunError

LISTS_FOLDER = Path(LISTS["train"]).parent.name


def find_or_unpack_dogs(dogs: DogsArchives, folders: Sequence[Path], *, observe: Observe | None = None) -> Path:
    """Give the first folder that holds images and lists, else download what is missing and unpack it.

    Images without lists get the lists if they are all there.
    """
    for folder in folders:
        if is_dogs_folder(folder):
            return folder
    wanted = (dogs.num_images, dogs.num_breeds)
    home = next((folder for folder in folders if _count_images(folder / IMAGES) == wanted), folders[0])
    images, lists = home / IMAGES, home / LISTS_FOLDER
    if not images.exists():
        archive = find_or_download(DatasetFile(dogs.images), (home, *folders), observe=observe)
        unpack_part(archive, images, choose=lambda unpacked: _checked_images(dogs, unpacked / IMAGES, archive))
    _checked_images(dogs, images, images)
    if not lists.exists():
        archive = find_or_download(DatasetFile(dogs.lists), (home, *folders), observe=observe)
        unpack_part(archive, lists, choose=lambda unpacked: _checked_lists(dogs, unpacked, archive))
    _checked_lists(dogs, lists, lists)
    return home


def _checked_images(dogs: DogsArchives, folder: Path, place: Path) -> Path:
    num_images, num_breeds = _count_images(folder)
    if (num_images, num_breeds) != (dogs.num_images, dogs.num_breeds):
        found = f"{num_images:,} images of {num_breeds} breeds, not {dogs.num_images:,} of {dogs.num_breeds}"
        raise RunError(f"{place} holds {found}; delete it to have it downloaded again, or put the lists beside it")
    return folder


def _count_images(folder: Path) -> tuple[int, int]:
    """Count the images in the folders of a folder, and these folders."""
    breeds = [breed for breed in folder.iterdir() if _is_named(breed) and breed.is_dir()] if folder.is_dir() else []
    return sum(_is_named(image) for breed in breeds for image in breed.glob("*.jpg")), len(breeds)


def _is_named(path: Path) -> bool:
    """Say whether a name is a real one: some systems leave hidden companions of files in archives."""
    return not path.name.startswith(".")


def _checked_lists(dogs: DogsArchives, folder: Path, place: Path) -> Path:
    wanted: dict[Part, int] = {"train": dogs.num_train, "test": dogs.num_test}
    for part, num_wanted in wanted.items():
        name = Path(LISTS[part]).name
        # A list that is missing or damaged counts as empty.
        num_found = len(read_list(folder / name, part, Problems(is_patient=True)))
        if num_found != num_wanted:
            what = f"{name} in {place} has {num_found:,} readable entries, not {num_wanted:,}"
            raise RunError(f"{what}; delete {place} to have it downloaded again")
    return folder
