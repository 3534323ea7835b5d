"""Files and archives that are made up for the tests of where data comes from."""

import hashlib
import io
import tarfile


def md5(content):
    return "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()


def archive_of(parts):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in {
            f"{next(iter(parts)).rpartition('/')[0]}/readme.html".lstrip("/"): b"hello",
            **parts,
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def write_parts(folder, parts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in parts.items():
        (folder / name).write_bytes(content)
