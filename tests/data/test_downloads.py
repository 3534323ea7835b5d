"""A download goes on where it broke off, and ends with the right file or with none. The server is on this machine."""

import hashlib
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from serving import Served, serving

import auxrnn
from auxrnn.data.fetching.downloads import PATIENCE, Patience, download
from auxrnn.data.fetching.part_files import open_part
from auxrnn.data.fetching.remote_files import RemoteFile
from auxrnn.data.fetching.transfers import BLOCK_BYTES
from auxrnn.errors import RunError

CONTENT = bytes(range(256)) * 800
OTHER = CONTENT[::-1]
QUICK = Patience(timeout=30.0, pauses=(0.01, 0.01, 0.01))
SOON_SILENT = QUICK._replace(timeout=0.7)
HALF = 100_000


def remote_file(server, *, num_bytes=None, content=CONTENT, kind="sha256"):
    return RemoteFile(f"{server.url}/file.bin", f"{kind}:{hashlib.new(kind, content).hexdigest()}", num_bytes)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def seen():
    """What a download told of its progress."""
    return []


@pytest.fixture
def get(server, tmp_path, seen):
    """Download the server's one file into the folder of the test."""

    def get(served, *, patience=QUICK, **facts):
        server.files["/file.bin"] = served
        remote = remote_file(server, **facts)
        return download(remote, tmp_path, patience=patience, observe=lambda *facts: seen.append(facts))

    return get


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_file_is_downloaded_whole_and_nothing_else_is_left(get, tmp_path, seen, kind):
    path = get(Served(CONTENT), kind=kind, num_bytes=len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert names_in(tmp_path) == ["file.bin"]
    assert seen[0] == ("file.bin", 0, len(CONTENT))
    assert seen[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_a_broken_download_goes_on_where_it_broke_off(get, tmp_path):
    served = Served(CONTENT, [f"cut:{HALF}", "cut:50000", 503, "refuse"])
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [None, f"bytes={HALF}-", *3 * [f"bytes={HALF + 50000}-"]]
    assert names_in(tmp_path) == ["file.bin"]


def test_a_server_that_goes_silent_is_asked_again(get):
    served = Served(CONTENT, [f"stall:{HALF}"])
    assert get(served, patience=SOON_SILENT).read_bytes() == CONTENT
    assert len(served.asked) == 2
    begun_at = int(served.asked[1].removeprefix("bytes=").removesuffix("-"))
    assert 0 < begun_at <= HALF


def test_attempts_are_not_counted_while_more_of_the_file_comes(get):
    served = Served(CONTENT, ["cut:10000"] * 15)
    assert len(served.answers) > len(QUICK.pauses)
    assert get(served).read_bytes() == CONTENT


def test_attempts_end_where_no_more_of_the_file_comes(get, tmp_path, assert_one_sentence):
    served = Served(CONTENT, [f"cut:{HALF}"] * 99, has_ranges=False)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", "broke off", "first 100,000 bytes", "--data-dir")
    assert len(served.asked) == 1 + len(QUICK.pauses)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:HALF]
    assert not (tmp_path / "file.bin").exists()


def test_the_next_call_goes_on_with_what_was_kept(get, tmp_path, seen):
    with pytest.raises(RunError):
        get(Served(CONTENT, [f"cut:{HALF}", 503, 503, 503, 503]))
    assert names_in(tmp_path) == ["file.bin.part", "file.bin.part.json"]
    seen.clear()
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [f"bytes={HALF}-"]
    assert seen[0] == ("file.bin", HALF, len(CONTENT))
    assert names_in(tmp_path) == ["file.bin"]


# The package's own __init__ imports all of it, which takes seconds; a download needs three of its files.
CHILD = """
import sys, types
from pathlib import Path
package = types.ModuleType("auxrnn")
package.__path__ = [sys.argv[1]]
sys.modules["auxrnn"] = package
from auxrnn.data.fetching.downloads import download
from auxrnn.data.fetching.remote_files import RemoteFile
if sys.argv[5:]:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[5]),) * 2)
download(RemoteFile(*sys.argv[2:4]), Path(sys.argv[4]))
"""


def start_child(remote, folder, *arguments):
    """Download in another process; with a further argument, no file may become longer than that."""
    package = str(Path(auxrnn.__file__).parent)
    words = [sys.executable, "-c", CHILD, package, remote.url, remote.checksum, str(folder), *arguments]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True)


def test_a_full_disk_is_named_and_what_came_is_kept(server, get, tmp_path):
    server.files["/file.bin"] = Served(CONTENT)
    _, err = start_child(remote_file(server), tmp_path, str(HALF)).communicate()
    (sentence,) = [line for line in err.splitlines() if line.startswith("auxrnn.errors.RunError")]
    assert "(File too large); ask again to go on after the first" in sentence
    assert 0 < (tmp_path / "file.bin.part").stat().st_size <= HALF
    assert get(Served(CONTENT)).read_bytes() == CONTENT


def test_a_killed_download_goes_on_in_the_next_process(server, get, tmp_path):
    server.files["/file.bin"] = Served(CONTENT, [f"stall:{HALF}"])
    process = start_child(remote_file(server), tmp_path)
    part = tmp_path / "file.bin.part"
    while not (part.exists() and part.stat().st_size > 0):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked[0] is not None
    assert names_in(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("has_ranges", [True, False], ids=["206", "200"])
def test_a_file_that_changed_meanwhile_is_begun_anew(get, seen, has_ranges):
    with pytest.raises(RunError):
        get(Served(OTHER, [f"cut:{HALF}", 503, 503, 503, 503], etag='"old"'))
    seen.clear()
    served = Served(CONTENT, etag='"new"', has_ranges=has_ranges)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == ([f"bytes={HALF}-", None] if has_ranges else [f"bytes={HALF}-"])
    assert seen[0] == ("file.bin", 0, len(CONTENT))


def test_a_change_that_the_server_does_not_tell_is_found_by_the_checksum(get):
    with pytest.raises(RunError):
        get(Served(OTHER, [f"cut:{HALF}", 503, 503, 503, 503], etag=None))
    served = Served(CONTENT, etag=None)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [f"bytes={HALF}-", None]


@pytest.mark.parametrize("content", [CONTENT, OTHER], ids=["right", "wrong"])
def test_a_part_that_was_complete_already_is_checked_and_used_or_begun_anew(get, content):
    with pytest.raises(RunError):
        get(Served(content + b"x", [f"cut:{len(content)}", 404]))
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [f"bytes={len(CONTENT)}-", None]


@pytest.mark.parametrize("note", [None, "", "[]", "{}", '{"url": 1}', "\0"])
def test_a_part_of_unknown_origin_is_begun_anew(get, tmp_path, note):
    (tmp_path / "file.bin.part").write_bytes(OTHER[:HALF])
    if note is not None:
        (tmp_path / "file.bin.part.json").write_text(note)
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [None]
    assert names_in(tmp_path) == ["file.bin"]


def test_a_file_without_a_length_is_downloaded(get, seen):
    assert get(Served(CONTENT, ["chunked"])).read_bytes() == CONTENT
    assert seen[-1] == ("file.bin", len(CONTENT), None)


def test_an_end_without_a_length_that_comes_too_early_is_noticed(get):
    served = Served(CONTENT, [f"bare:{HALF}"])
    assert get(served, num_bytes=len(CONTENT)).read_bytes() == CONTENT
    assert len(served.asked) == 2


def test_wrong_bytes_are_refused_at_once_and_leave_nothing(get, tmp_path, assert_one_sentence):
    served = Served(OTHER)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", "its checksum is wrong", "--data-dir")
    assert served.asked == [None]
    assert names_in(tmp_path) == []


def test_a_file_of_another_size_is_refused_before_it_comes(get, tmp_path, seen, assert_one_sentence):
    with pytest.raises(RunError) as error:
        get(Served(CONTENT), num_bytes=123456)
    assert_one_sentence(error, "204,800 bytes", "not 123,456")
    assert names_in(tmp_path) == []
    assert seen == []


@pytest.mark.parametrize(("status", "num_requests"), [(404, 1), (403, 1), (410, 1), (429, 4), (500, 4), (503, 4)])
def test_only_errors_that_may_pass_are_tried_again(get, tmp_path, assert_one_sentence, status, num_requests):
    served = Served(CONTENT, [status] * 99)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", f"the server answers {status}", "check the connection")
    assert len(served.asked) == num_requests
    assert names_in(tmp_path) == []


def test_pauses_grow(get):
    served = Served(CONTENT, [503] * 99)
    begun = time.monotonic()
    with pytest.raises(RunError):
        get(served, patience=Patience(pauses=(0.05, 0.15)))
    assert time.monotonic() - begun >= 0.2


def test_without_a_network_the_answer_comes_at_once(server, tmp_path, assert_one_sentence, capfd):
    remote = RemoteFile("http://127.0.0.1:9/file.bin", "md5:0")
    begun = time.monotonic()
    with pytest.raises(RunError) as error:
        download(remote, tmp_path)
    assert_one_sentence(error, "file.bin", "cannot be reached", "--data-dir")
    assert time.monotonic() - begun < sum(PATIENCE.pauses)
    assert names_in(tmp_path) == []
    assert capfd.readouterr() == ("", "")


def test_a_network_that_is_lost_on_the_way_is_waited_for(server, tmp_path, assert_one_sentence):
    server.files["/file.bin"] = Served(CONTENT, [f"stall:{HALF}"])
    remote = remote_file(server)

    def stop_soon(_name, done, _total):
        if done == HALF - HALF % BLOCK_BYTES:
            server.server_close()

    begun = time.monotonic()
    with pytest.raises(RunError) as error:
        download(remote, tmp_path, observe=stop_soon, patience=SOON_SILENT._replace(pauses=(0.1, 0.3)))
    assert_one_sentence(error, "cannot be reached", "ask again to go on")
    assert time.monotonic() - begun > 0.7 + 0.1 + 0.3


def test_two_processes_at_once_bring_the_file_once(get, server, tmp_path, caplog):
    served = server.files["/file.bin"] = Served(CONTENT, ["slow"])
    results = []
    begun = threading.Event()

    def run():
        remote, told = remote_file(server), lambda *_: begun.set()
        results.append(download(remote, tmp_path, observe=told, patience=QUICK))

    threads = [threading.Thread(target=run) for _ in range(3)]
    threads[0].start()
    begun.wait(5)
    with caplog.at_level(logging.WARNING):
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
    assert [path.read_bytes() for path in results] == [CONTENT] * 3
    assert served.asked == [None]
    assert "another process is downloading" in caplog.text
    assert names_in(tmp_path) == ["file.bin"]


def test_who_waits_for_a_process_that_gives_up_takes_over(get, tmp_path):
    results = []
    waiting = threading.Thread(target=lambda: results.append(get(Served(CONTENT))))
    with open_part(tmp_path / "file.bin"):
        waiting.start()
        time.sleep(0.1)
        assert not results
    waiting.join()
    assert [path.read_bytes() for path in results] == [CONTENT]
    assert names_in(tmp_path) == ["file.bin"]


def test_a_bar_with_rate_and_time_left_is_shown_on_stderr_alone(server, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    server.files["/file.bin"] = Served(CONTENT)
    download(remote_file(server), tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "file.bin" in err
    assert "100%" in err
    assert "204.8/204.8 kB" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(server, tmp_path, assert_one_sentence):
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(RunError) as error:
        download(remote_file(server), tmp_path / "closed")
    assert_one_sentence(error, tmp_path / "closed", "Permission denied")
