"""A dataset's files on this machine: found where the user has them, otherwise downloaded and unpacked."""

import os
from collections.abc import Sequence
from pathlib import Path

from auxrnn.data.spec import Content, DatasetSpec, PublishedFile
from auxrnn.errors import RunError
from auxrnn.files import find_checksum, user_cache

DATA_DIR_VARIABLE = "AUXRNN_DATA_DIR"


def is_at_hand(spec: DatasetSpec, data_dir: Path | None = None) -> bool:
    """Return whether all files of a dataset are here, packed or unpacked, judged by their names and sizes."""
    own, folders = search_folders(spec, data_dir)
    try:
        return all(
            _find(file, folders, own=own, verify=False) or _find_packed(file, folders, own=own, verify=False)
            for file in spec.files
        )
    except (OSError, RunError):
        return False


def get_files(spec: DatasetSpec, data_dir: Path | None = None) -> list[Path]:
    """Return the verified files of a dataset, downloading and unpacking what is missing.

    They are looked for in `data_dir/NAME` and `data_dir`; downloads go to the first, or to where the other files are.
    """
    own, folders = search_folders(spec, data_dir)
    found: list[Path] = []
    for file in spec.files:
        paths = _find(file, folders, own=own) or _make(file, folders, own=own)
        folders = [paths[0].parent, *folders]
        found += paths
    return found


def search_folders(spec: DatasetSpec, data_dir: Path | None = None) -> tuple[str, list[Path]]:
    """Return the name of a dataset's own folder, and the folders that may hold its files; its own comes first."""
    root, own = find_data_folder(data_dir), spec.folder or spec.name
    return own, [root / own, root]


def find_data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder of all datasets: the given one, else $AUXRNN_DATA_DIR, else the user's cache."""
    return Path(data_dir or os.environ.get(DATA_DIR_VARIABLE) or user_cache()).expanduser()


def _make(file: PublishedFile, folders: Sequence[Path], *, own: str) -> list[Path]:
    """Return a file that is not there in a form that can be read: unpacked, after a download if need be."""
    packed = _find_packed(file, folders, own=own)
    if packed is None:
        # What downloads need is slow to import, and most often nothing is downloaded.
        from auxrnn.data.downloads import download  # noqa: PLC0415

        packed = download(file, folders[0])
    if file.folder is None:
        return [packed]
    from auxrnn.data.archives import unpack  # noqa: PLC0415 - the same

    target = packed.parent / file.folder
    unpack(packed, target)
    if found := _find(file, [packed.parent], own=own):
        return found
    raise RunError(f"{target} is in the way of what {file.name} unpacks to; delete or rename that folder")


def _find(file: PublishedFile, folders: Sequence[Path], *, own: str, verify: bool = True) -> list[Path]:
    """Return a file in a form that can be read, from the first folder that has it; archives must be unpacked."""
    for folder in folders:
        # Packed first: run folders know their data by the checksum of the files that were read.
        if file.folder is None and (packed := _find_packed(file, [folder], own=own, verify=verify)):
            return [packed]
        if unpacked := _find_unpacked(file, folder, own=own, verify=verify):
            return unpacked
    return []


def _find_packed(file: PublishedFile, folders: Sequence[Path], *, own: str, verify: bool = True) -> Path | None:
    paths = (folder / file.name for folder in folders)
    return next((path for path in paths if _matches(path, file, path.parent.name == own, verify)), None)


def _find_unpacked(file: PublishedFile, folder: Path, *, own: str, verify: bool) -> list[Path]:
    """Return everything that a file unpacks to; if only a part of it is there, that is an error."""
    places = [(folder / file.folder, True)] if file.folder is not None else []
    places += [(folder, folder.name == own)] if file.unpacked else []
    for place, is_own in places:
        paths = {content.name: place / content.name for content in file.unpacked}
        missing = [each.name for each in file.unpacked if not _matches(paths[each.name], each, is_own, verify)]
        if not missing and place.is_dir():
            return list(paths.values()) or [place]
        if len(missing) < len(paths):
            raise RunError(f"{place} has no {missing[0]} beside its other files; complete or delete the folder")
    return []


def _matches(path: Path, content: Content | PublishedFile, is_own: bool, verify: bool) -> bool:
    """Return whether a file is there; in the dataset's own folder, one with another content is an error."""
    if content.checksum is None or not path.is_file():
        return path.is_file()
    if not verify:
        return path.stat().st_size == content.num_bytes
    kind, _, published = content.checksum.partition(":")
    checksum = find_checksum(path, kind)
    if is_own and checksum != published:
        found = f"its {kind} checksum is {checksum}, not {published}"
        raise RunError(f"{path} is damaged or another version ({found}); delete it to download it again")
    return checksum == published
