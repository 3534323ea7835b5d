"""Archives are unpacked whole or not at all, and never lead out of their folder, fill the disk or leave anything."""

import bz2
import gzip
import io
import lzma
import os
import resource
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auxrnn.data import archives
from auxrnn.data.archives import ARCHIVE_SUFFIXES, unpack
from auxrnn.errors import RunError

FILES = {"top.txt": b"top", "a/1.bin": bytes(range(256)) * 3000, "a/b/2.txt": b"", "umlaut \u00e4/x": b"x" * 511}


def member(name, content=b"", kind=tarfile.REGTYPE, **fields):
    """Describe a member of a tar."""
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content), kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_of(*members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def zip_of(*members, packing=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def packed(suffix, files):
    """Give an archive of the kind that a name says."""
    if suffix == ".zip":
        return zip_of(("a/", b""), *files.items())
    plain = tar_of(
        member("a", kind=tarfile.DIRTYPE), member(".", kind=tarfile.DIRTYPE), *map(member, files, files.values())
    )
    pack = {"gz": gzip.compress, "tgz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    return pack.get(suffix.rpartition(".")[2], bytes)(plain)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def box(tmp_path):
    """A folder in which nothing but the archive may be left, below one in which nothing may appear."""
    (tmp_path / "outer/box").mkdir(parents=True)
    return tmp_path / "outer/box"


def unpack_bytes(box, content, **limits):
    archive = box / "archive"
    archive.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(archives, name, value)
        unpack(archive, box / "out")
    return {
        path.relative_to(box / "out").as_posix(): path.read_bytes()
        for path in (box / "out").rglob("*")
        if path.is_file()
    }


def assert_refused(box, content, assert_one_sentence, *parts, **limits):
    with pytest.raises(RunError) as error:
        unpack_bytes(box, content, **limits)
    assert_one_sentence(error, box / "archive", *parts)
    assert names_in(box) == ["archive"]
    assert names_in(box.parent) == ["box"]


@pytest.mark.parametrize("suffix", ARCHIVE_SUFFIXES)
def test_every_kind_is_unpacked_with_its_folders(box, suffix):
    assert unpack_bytes(box, packed(suffix, FILES)) == FILES
    assert names_in(box) == ["archive", "out"]


@pytest.mark.parametrize("suffix", [".zip", ".tgz"])
def test_a_folder_around_everything_is_left_out(box, suffix):
    files = {f"outer/inner/{name}": content for name, content in FILES.items()}
    content = (
        zip_of(*files.items(), ("__MACOSX/x", b"")) if suffix == ".zip" else tar_of(*map(member, files, files.values()))
    )
    assert unpack_bytes(box, content) == FILES


def test_modes_and_owners_of_members_are_not_taken_over(box):
    unpack_bytes(box, tar_of(member("run", b"x", mode=0o6777, uid=1, gid=1), member("locked", b"x", mode=0)))
    assert stat.S_IMODE((box / "out/run").stat().st_mode) & 0o7022 == 0
    assert (box / "out/run").stat().st_uid == os.getuid()
    assert (box / "out/locked").read_bytes() == b"x"


BAD_NAMES = {
    "/etc/passwd": "leads out of its folder",
    "../out": "leads out of its folder",
    "a/../../x": "leads out of its folder",
    "a/..": "leads out of its folder",
    "/".join("a" * 101): "more than 100 levels",
}


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize(
    "make",
    [lambda name: tar_of(member("ok", b"x"), member(name, b"x")), lambda name: zip_of(("ok", b"x"), (name, b"x"))],
    ids=["tar", "zip"],
)
def test_a_name_that_leads_elsewhere_is_refused(box, assert_one_sentence, name, make):
    assert_refused(box, make(name), assert_one_sentence, f"{name[:100]!r}", BAD_NAMES[name])


@pytest.mark.parametrize("name", ["../out/", "/abs/"])
def test_a_folder_that_leads_elsewhere_is_refused(box, assert_one_sentence, name):
    assert_refused(box, zip_of((name, b"")), assert_one_sentence, f"{name!r}")
    assert_refused(box, tar_of(member(name, kind=tarfile.DIRTYPE)), assert_one_sentence, f"{name.rstrip('/')!r}")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"V"]
)
def test_links_and_devices_in_a_tar_are_refused(box, assert_one_sentence, kind):
    content = tar_of(member("ok", b"x"), member("trap", kind=kind, linkname="ok"), member("trap/x", b"x"))
    assert_refused(box, content, assert_one_sentence, "'trap', a link, a device")


def test_a_file_that_is_mostly_a_hole_is_refused(box, assert_one_sentence):
    headers = {"major": "1", "minor": "0", "name": "hole", "realsize": "1000000000"}
    pieces = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    sparse = member("x", pieces, pax_headers={f"GNU.sparse.{name}": value for name, value in headers.items()})
    assert_refused(box, tar_of(sparse), assert_one_sentence, "'hole', a link, a device or a sparse file")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip_are_refused(box, assert_one_sentence, kind):
    info = zipfile.ZipInfo("trap")
    info.external_attr = (kind | 0o777) << 16
    assert_refused(box, zip_of((info, b"/etc")), assert_one_sentence, "'trap', a link or a device")


def test_an_encrypted_member_is_refused(box, assert_one_sentence):
    content = bytearray(zip_of(("secret", b"x")))
    for magic, offset in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        content[content.index(magic) + offset] |= 1
    assert_refused(box, content, assert_one_sentence, "'secret', which is encrypted")


def test_an_unknown_packing_is_not_called_damage(box, assert_one_sentence):
    content = bytearray(zip_of(("x", b"x")))
    for magic, offset in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
        content[content.index(magic) + offset] = 9
    assert_refused(box, content, assert_one_sentence, "of an unknown compression at 'x'")


def test_the_number_of_members_is_limited(box, assert_one_sentence):
    names = ["a/", "1", "2", "3"]
    content = zip_of(*((name, b"") for name in names))
    assert_refused(box, content, assert_one_sentence, "'3', one of more than 3 members", MOST_MEMBERS=3)
    assert set(unpack_bytes(box, content, MOST_MEMBERS=4)) == {"1", "2", "3"}
    shutil.rmtree(box / "out")
    content = tar_of(*map(member, names[1:]))
    assert_refused(box, content, assert_one_sentence, "one of more than 2 members", MOST_MEMBERS=2)


@pytest.mark.parametrize("suffix", ARCHIVE_SUFFIXES)
def test_the_size_unpacked_is_limited_by_counting(box, assert_one_sentence, suffix):
    content = packed(suffix, {"large": bytes(10**6)})
    assert_refused(box, content, assert_one_sentence, "'large'", "more than 900,000 bytes", MOST_BYTES=900_000)


@pytest.mark.parametrize("suffix", [".zip", ".tgz", ".tar.bz2", ".tar.xz"])
def test_the_ratio_is_limited_once_enough_is_unpacked(box, assert_one_sentence, suffix):
    content = packed(suffix, {"large": bytes(10**7)})
    assert_refused(box, content, assert_one_sentence, "more than 100 times its size", MOST_RATIO=100, FREE_BYTES=10**6)
    assert unpack_bytes(box, content, MOST_RATIO=100, FREE_BYTES=11 * 10**6) == {"large": bytes(10**7)}


@pytest.mark.parametrize("size", [10, 10**6 + 10])
def test_a_size_that_a_zip_only_claims_is_not_trusted(box, assert_one_sentence, size):
    content = bytearray(zip_of(("large", bytes(10**6))))
    for magic, offset in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        place = content.index(magic) + offset
        content[place : place + 4] = size.to_bytes(4, "little")
    assert_refused(box, content, assert_one_sentence, "damaged", "at 'large'")


def test_a_header_that_would_fill_the_memory_is_not_read(box, assert_one_sentence):
    small, large = (member("x", b"x", pax_headers={"comment": "a" * length}) for length in (1000, 2**20))
    assert unpack_bytes(box, gzip.compress(tar_of(small))) == {"x": b"x"}
    shutil.rmtree(box / "out")
    assert_refused(box, gzip.compress(tar_of(large)), assert_one_sentence, "damaged")
    info, _ = member("x", kind=tarfile.GNUTYPE_LONGNAME, size=-1024)
    # Read up to its end, it would be said to unpack to too much.
    content = info.tobuf(tarfile.GNU_FORMAT) + bytes(10**6)
    assert_refused(box, content, assert_one_sentence, "damaged", MOST_BYTES=10**5)


def test_a_member_of_negative_size_does_not_lead_backward(box, assert_one_sentence):
    info, _ = member("x", size=-1024)
    content = info.tobuf(tarfile.GNU_FORMAT) + tar_of(member("y", b"y"))
    assert_refused(box, content, assert_one_sentence, "damaged")


@pytest.mark.parametrize("suffix", ARCHIVE_SUFFIXES)
def test_a_truncated_archive_is_refused_wherever_it_ends(box, assert_one_sentence, suffix):
    content = packed(suffix, FILES | {"noise": os.urandom(2000)})
    # The last records of a tar are all zeros, and none of them is missed but the first.
    lengths = {0, 1, 100, 512, len(content) // 2, len(content) - 1}
    if suffix == ".tar":
        last = content.rstrip(b"\0")
        lengths = {0, 1, 100, 512, 1024, len(content) // 2, len(last) - 5, -(-len(last) // 512) * 512}
    for length in sorted(lengths):
        assert_refused(box, content[:length], assert_one_sentence, "truncated, damaged")


@pytest.mark.parametrize("suffix", [".zip", ".tgz", ".tar.bz2", ".tar.xz"])
def test_a_flipped_byte_is_noticed_by_the_checksum(box, assert_one_sentence, suffix):
    content = bytearray(packed(suffix, {"noise": os.urandom(3000)}))
    content[len(content) // 2] ^= 1
    assert_refused(box, content, assert_one_sentence, "truncated, damaged")


def test_a_damaged_header_is_not_taken_for_the_end(box, assert_one_sentence):
    content = bytearray(tar_of(member("first", b"1"), member("second", b"2")))
    content[1024 + 150] ^= 1
    assert_refused(box, content, assert_one_sentence, "damaged", "at 'first'")


LARGE = {"tar": tar_of(member("x", bytes(10**6))), "zip": zip_of(("x", bytes(10**6)))}
UNPACK = """
import sys
from pathlib import Path
from auxrnn.data.archives import unpack
unpack(*map(Path, sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", LARGE)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(box, kind):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10**5,) * 2)

    (box / "archive").write_bytes(LARGE[kind])
    words = [sys.executable, "-c", UNPACK, box / "archive", box / "out"]
    done = subprocess.run(words, preexec_fn=limit, capture_output=True, text=True, check=False)
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("auxrnn.errors.RunError")]
    assert "File too large" in sentence
    assert names_in(box) == ["archive"]


def test_a_folder_that_is_there_is_left_alone_and_a_file_is_in_the_way(box, assert_one_sentence):
    archive = box / "archive"
    archive.write_bytes(tar_of(member("x", b"x")))
    (box / "there").mkdir()
    unpack(archive, box / "there")
    assert names_in(box / "there") == []
    (box / "file").touch()
    with pytest.raises(RunError) as error:
        unpack(archive, box / "file")
    assert_one_sentence(error, box / "file", "cannot be unpacked")


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: path.mkdir(), os.mkfifo], ids=["absent", "folder", "pipe"]
)
def test_what_is_no_file_is_refused(box, assert_one_sentence, make):
    make(box / "archive.zip")
    with pytest.raises(RunError) as error:
        unpack(box / "archive.zip", box / "out")
    assert_one_sentence(error, box / "archive.zip", "is not a file")


def test_missing_folders_above_are_made(box):
    (box / "archive").write_bytes(tar_of(member("x", b"x")))
    unpack(box / "archive", box / "far/off/out")
    assert names_in(box / "far/off") == ["out"]


def test_many_that_unpack_at_once_all_find_the_whole_folder(box):
    archive, files = box / "archive.tgz", {str(number): bytes([number]) * 1000 for number in range(100)}
    archive.write_bytes(packed(".tgz", files))
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(unpack, archive, box / "out") for _ in range(4)]:
            done.result()
    assert names_in(box) == ["archive.tgz", "out"]
    assert names_in(box / "out") == sorted([*files, "a"])


def test_the_folder_of_a_faster_process_stays(box, monkeypatch):
    (box / "archive").write_bytes(tar_of(member("x", b"mine")))

    @contextmanager
    def be_slower(path, *, waiting_for):
        (box / "out").mkdir()
        (box / "out/x").write_bytes(b"theirs")
        yield

    monkeypatch.setattr("auxrnn.data.archives.locked", be_slower)
    unpack(box / "archive", box / "out")
    assert (box / "out/x").read_bytes() == b"theirs"
    assert names_in(box) == ["archive", "out"]


@pytest.mark.parametrize("is_there", [True, False])
def test_what_a_killed_process_left_is_removed(box, is_there):
    (box / "archive").write_bytes(tar_of(member("x", b"x")))
    (box / ".out.lock").touch()
    (box / ".out").mkdir()
    (box / ".out/half").write_bytes(b"x" * 1000)
    if is_there:
        (box / "out").mkdir()
    unpack(box / "archive", box / "out")
    assert names_in(box) == ["archive", "out"]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_fuzzed_archive_is_unpacked_or_refused_and_nothing_is_left(box, data):
    content = bytearray(data.draw(st.sampled_from(SEEDS)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=5)):
        content[place] = data.draw(st.integers(0, 255))
    place = data.draw(st.integers(0, len(content)))
    content[place:place] = data.draw(st.binary(max_size=3))
    content = content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    try:
        unpack_bytes(box, content, MOST_BYTES=10**6)
    except RunError as error:
        sentence = str(error)
    else:
        sentence = ""
        shutil.rmtree(box / "out")
    assert "\n" not in sentence
    assert names_in(box) == ["archive"]
    assert names_in(box.parent) == ["box"]


SEEDS = [packed(suffix, {"a/1": b"one" * 50, "long" * 30: b"2"}) for suffix in ARCHIVE_SUFFIXES]
