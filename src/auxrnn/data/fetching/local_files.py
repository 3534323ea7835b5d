"""A dataset's files on this machine: found where a user has them, else downloaded and unpacked, always checked."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.fetching.archives import unpack
from auxrnn.data.fetching.remote_files import Content, Observe, RemoteFile, find_checksum
from auxrnn.errors import RunError


class DatasetFile(NamedTuple):
    """A file as it is downloaded, and the other forms in which a user may have it."""

    remote: RemoteFile
    unpacked: tuple[Content, ...] = ()
    namesakes: frozenset[str] = frozenset()
    """Checksums of other datasets' files that have the same name."""

    @property
    def forms(self) -> tuple[Content, ...]:
        """All forms, the downloaded one first."""
        return self.remote.content, *self.unpacked


def find_or_download(file: DatasetFile, folders: Sequence[Path], *, observe: Observe | None = None) -> Path:
    """Give the path of a file, packed or unpacked, from the first folder that has it, else download it packed.

    The first folder, and any of its name, belongs to the dataset: what has the file's name there must be the file. In
    other folders it may also be another dataset's, and is then passed over.
    """
    for folder in folders:
        for form in file.forms:
            is_own = folder.name == folders[0].name
            if _is_intact_file(folder / form.name, form, namesakes=file.namesakes, is_own=is_own):
                return folder / form.name
    # What downloads need takes a quarter of a second to import, and most often nothing is downloaded.
    from auxrnn.data.fetching.downloads import download  # noqa: PLC0415

    return download(file.remote, folders[0], observe=observe)


def find_or_unpack(
    archive: RemoteFile,
    members: Sequence[Content],
    subfolder: str,
    folders: Sequence[Path],
    *,
    observe: Observe | None = None,
) -> tuple[Path, ...]:
    """Give the paths of an archive's members, from a folder (or its `subfolder`) that has them, else unpack it."""
    for folder in (place for root in folders for place in (root / subfolder, root)):
        if found := _find_all(members, folder):
            return found
    path = find_or_download(DatasetFile(archive), folders, observe=observe)
    target = path.parent / subfolder
    unpack_part(path, target, choose=lambda unpacked: gather(members, unpacked, path))
    if found := _find_all(members, target):
        return found
    raise RunError(f"{target} is in the way of what {path.name} unpacks to; delete or rename that folder")


def is_there(content: Content, folder: Path) -> bool:
    """Say whether a folder has a file that looks right from outside: its name, and its size where that is known."""
    path = folder / content.name
    try:
        return path.is_file() and content.num_bytes in (None, path.stat().st_size)
    except OSError:
        return False


def unpack_part(archive: Path, target: Path, *, choose: Callable[[Path], Path]) -> None:
    """Unpack an archive and put the folder chosen from all of it at `target`, where it appears only when complete."""
    aside = None
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        unpack(archive, aside / "all")
        choose(aside / "all").rename(target)
    except OSError as error:
        # Another process may have been faster; then its files are checked like any others.
        if not target.exists():
            reason = error.strerror or type(error).__name__
            hint = f"unpack it yourself and let --data-dir name the folder that holds {target.name}"
            raise RunError(f"{archive} could not be unpacked into {target.parent} ({reason}); {hint}") from error
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def gather(members: Sequence[Content], unpacked: Path, archive: Path) -> Path:
    """Move the named files of an unpacked archive into one new folder, wherever they lie; check them, give the folder.

    A member whose checksum is not known may be missing.
    """
    folder = unpacked.with_name("chosen")
    folder.mkdir()
    for member in members:
        for path in sorted(unpacked.rglob(member.name))[:1]:
            path.rename(folder / member.name)
        found = folder / member.name
        if member.checksum and not (found.is_file() and find_checksum(found, member.checksum) == member.checksum):
            what = "another" if found.is_file() else "no"
            raise RunError(f"{archive} holds {what} {member.name}; delete it to have it downloaded again")
    return folder


def _find_all(members: Sequence[Content], folder: Path) -> tuple[Path, ...]:
    """Give the intact files of a folder, or nothing where it has none of them; some without the others is an error."""
    missing = [member.name for member in members if not _is_intact_file(folder / member.name, member)]
    if missing and len(missing) < len(members):
        raise RunError(f"{folder} holds no {missing[0]} beside its other files; delete the folder or complete it")
    return () if missing else tuple(folder / member.name for member in members)


def _is_intact_file(
    path: Path, content: Content, *, namesakes: frozenset[str] = frozenset(), is_own: bool = True
) -> bool:
    """Say whether the file is there; raise `RunError` where it is there and not what it should be."""
    try:
        if not path.is_file() or (content.checksum is None and not is_own):
            return False
        found, num_bytes = find_checksum(path, content.checksum or "md5:"), path.stat().st_size
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    # Where the checksum is not known the size must do, in a folder that is for these files alone.
    is_plausible = content.checksum is None and num_bytes == content.num_bytes and found not in namesakes
    if found == content.checksum or is_plausible:
        return True
    if not is_own and (found in namesakes or num_bytes == content.num_bytes):
        return False
    reason = _describe_difference(content, found, num_bytes)
    raise RunError(f"{path} is damaged or another version ({reason}); delete it to have it downloaded again")


def _describe_difference(content: Content, found: str, num_bytes: int) -> str:
    if content.num_bytes not in (None, num_bytes):
        return f"it has {num_bytes:,} bytes, not {content.num_bytes:,}, and its {_name(found)}"
    if content.checksum is None:
        return f"its {_name(found)}, which is another dataset's"
    return f"its {_name(found)}, not {content.checksum.partition(':')[2]}"


def _name(checksum: str) -> str:
    kind, _, digits = checksum.partition(":")
    return f"{'MD5' if kind == 'md5' else 'SHA-256'} is {digits}"
