"""A download goes on where it broke off, and ends with the right file or with none. The server is on this machine."""

import hashlib
import http.client
import logging
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from serving import Served, block_network, serving

from auxrnn.data import downloads
from auxrnn.data.downloads import PAUSES, download
from auxrnn.data.spec import PublishedFile
from auxrnn.errors import RunError
from auxrnn.files import locked

CONTENT = bytes(range(256)) * 800
OTHER = CONTENT[::-1]
NUM_BYTES = len(CONTENT)
HALF = 100_000
GIVING_UP = [503] * (1 + len(PAUSES))


def published(*servers, num_bytes=NUM_BYTES, kind="sha256"):
    checksum = f"{kind}:{hashlib.new(kind, CONTENT).hexdigest()}"
    return PublishedFile("file.bin", num_bytes, checksum, tuple(server.url for server in servers))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def slept(monkeypatch):
    """The pauses that a download would have made."""
    slept = []
    monkeypatch.setattr(downloads, "time", SimpleNamespace(sleep=slept.append))
    return slept


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as server:
        yield server


@pytest.fixture
def get(server, tmp_path):
    """Download the server's one file into the folder of the test."""

    def get(served, **facts):
        server.files["/file.bin"] = served
        return download(published(server, **facts), tmp_path)

    return get


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_file_is_downloaded_whole_and_nothing_else_is_left(get, tmp_path, kind):
    path = get(Served(CONTENT), kind=kind)
    assert path.read_bytes() == CONTENT
    assert names_in(tmp_path) == ["file.bin"]


def test_a_broken_download_goes_on_where_it_broke_off(get, tmp_path):
    served = Served(CONTENT, [f"cut:{HALF}", "cut:50000", 503, "refuse"])
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [None, f"bytes={HALF}-", *3 * [f"bytes={HALF + 50000}-"]]
    assert names_in(tmp_path) == ["file.bin"]


def test_a_server_that_goes_silent_is_asked_again(get, monkeypatch):
    read1, answers = http.client.HTTPResponse.read1, []

    def go_silent(response, num_bytes):
        answers.append(response)
        if len(answers) == 2:
            raise TimeoutError
        return read1(response, num_bytes)

    monkeypatch.setattr(http.client.HTTPResponse, "read1", go_silent)
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert len(served.asked) == 2
    assert 0 < int(served.asked[1].removeprefix("bytes=").removesuffix("-")) < len(CONTENT)


def test_attempts_are_not_counted_while_more_of_the_file_comes(get):
    served = Served(CONTENT, ["cut:10000"] * 15)
    assert len(served.answers) > len(PAUSES)
    assert get(served).read_bytes() == CONTENT


def test_attempts_end_where_no_more_of_the_file_comes(get, tmp_path, assert_one_sentence):
    served = Served(CONTENT, [f"cut:{HALF}"] * 99, has_ranges=False)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", "broke off", "first 100,000 bytes", "--data-dir")
    assert len(served.asked) == 1 + len(PAUSES)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENT[:HALF]
    assert not (tmp_path / "file.bin").exists()


def test_the_next_call_goes_on_with_what_was_kept(get, tmp_path):
    with pytest.raises(RunError):
        get(Served(CONTENT, [f"cut:{HALF}", *GIVING_UP]))
    assert names_in(tmp_path) == ["file.bin.part"]
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [f"bytes={HALF}-"]
    assert names_in(tmp_path) == ["file.bin"]


CHILD = """
import sys
from pathlib import Path
from auxrnn.data.downloads import download
from auxrnn.data.spec import PublishedFile
url, checksum, num_bytes, folder, *limit = sys.argv[1:]
if limit:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit[0]),) * 2)
download(PublishedFile("file.bin", int(num_bytes), checksum, (url,)), Path(folder))
"""


def start_child(server, folder, *arguments):
    """Download in another process; with a further argument, no file may become longer than that."""
    facts = [server.url, published(server).checksum, str(len(CONTENT)), str(folder)]
    return subprocess.Popen([sys.executable, "-c", CHILD, *facts, *arguments], stderr=subprocess.PIPE, text=True)


def test_a_full_disk_is_named_and_what_came_is_kept(server, get, tmp_path):
    server.files["/file.bin"] = Served(CONTENT)
    _, err = start_child(server, tmp_path, str(HALF)).communicate()
    (sentence,) = [line for line in err.splitlines() if line.startswith("auxrnn.errors.RunError")]
    assert "(File too large); run again to resume after the first" in sentence
    assert 0 < (tmp_path / "file.bin.part").stat().st_size <= HALF
    assert get(Served(CONTENT)).read_bytes() == CONTENT


def test_a_killed_download_goes_on_in_the_next_process(server, get, tmp_path):
    server.files["/file.bin"] = Served(CONTENT, [f"stall:{HALF}"])
    process = start_child(server, tmp_path)
    part = tmp_path / "file.bin.part"
    wait_until(lambda: process.poll() is not None or (part.exists() and part.stat().st_size > 0))
    process.kill()
    process.communicate()
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked[0] is not None
    assert names_in(tmp_path) == ["file.bin"]


def test_a_file_that_changed_meanwhile_is_found_by_its_checksum(get):
    with pytest.raises(RunError):
        get(Served(OTHER, [f"cut:{HALF}", *GIVING_UP]))
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked == [f"bytes={HALF}-", None]


def test_a_part_of_a_file_of_another_size_is_begun_anew(get, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:HALF])
    served = Served(CONTENT + b"x")
    with pytest.raises(RunError, match="not 204800"):
        get(served)
    assert served.asked == [f"bytes={HALF}-", None]


@pytest.mark.parametrize("content", [CONTENT, OTHER, OTHER + b"too long"], ids=["right", "wrong", "long"])
def test_a_part_that_is_complete_is_verified_and_used_or_begun_anew(get, tmp_path, content):
    (tmp_path / "file.bin.part").write_bytes(content)
    served = Served(CONTENT)
    assert get(served).read_bytes() == CONTENT
    assert served.asked[-1:] == ([] if content is CONTENT else [None])
    assert names_in(tmp_path) == ["file.bin"]


def test_a_file_without_a_length_is_downloaded(get):
    assert get(Served(CONTENT, ["chunked"])).read_bytes() == CONTENT


def test_an_end_without_a_length_that_comes_too_early_is_noticed(get):
    served = Served(CONTENT, [f"bare:{HALF}"])
    assert get(served).read_bytes() == CONTENT
    assert len(served.asked) == 2


def test_a_server_that_sends_more_than_the_file_is_cut_off(get, tmp_path):
    with pytest.raises(RunError, match="its checksum is wrong"):
        get(Served(CONTENT * 100, [f"bare:{100 * len(CONTENT)}"]))
    assert names_in(tmp_path) == []


def test_mirrors_are_tried_in_turn_and_continue_each_others_parts(server, tmp_path):
    server.files["/file.bin"] = Served(CONTENT, [f"cut:{HALF}", *[404] * 9])
    with serving() as mirror:
        served = mirror.files["/file.bin"] = Served(CONTENT)
        assert download(published(server, mirror), tmp_path).read_bytes() == CONTENT
    assert served.asked == [f"bytes={HALF}-"]


def test_without_any_mirror_all_are_named(server, tmp_path, assert_one_sentence):
    server.files["/file.bin"] = Served(CONTENT, [403] * 9)
    with serving() as mirror:
        with pytest.raises(RunError) as error:
            download(published(server, mirror), tmp_path)
        assert_one_sentence(error, server.url, mirror.url, "403", "404", "--data-dir")


def test_wrong_bytes_are_refused_at_once_and_leave_nothing(get, tmp_path, assert_one_sentence):
    served = Served(OTHER)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", "its checksum is wrong", "--data-dir")
    assert served.asked == [None]
    assert names_in(tmp_path) == []


def test_a_file_of_another_size_is_refused_before_it_comes(get, tmp_path, assert_one_sentence):
    with pytest.raises(RunError) as error:
        get(Served(CONTENT), num_bytes=123456)
    assert_one_sentence(error, "204800 bytes", "not 123456")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("status", "num_requests"), [(404, 1), (403, 1), (410, 1), (429, 6), (500, 6), (503, 6)])
def test_only_errors_that_may_pass_are_tried_again(get, tmp_path, assert_one_sentence, status, num_requests):
    served = Served(CONTENT, [status] * 99)
    with pytest.raises(RunError) as error:
        get(served)
    assert_one_sentence(error, "file.bin", f"the server answers {status}", "check the network")
    assert len(served.asked) == num_requests
    assert names_in(tmp_path) == []


def test_pauses_grow(get, slept):
    with pytest.raises(RunError):
        get(Served(CONTENT, GIVING_UP))
    assert slept == sorted(set(PAUSES))


@pytest.mark.parametrize("num_kept", [0, HALF])
def test_without_a_network_the_answer_comes_at_once(monkeypatch, tmp_path, assert_one_sentence, capfd, slept, num_kept):
    block_network(monkeypatch)
    if num_kept:
        (tmp_path / "file.bin.part").write_bytes(CONTENT[:num_kept])
    with pytest.raises(RunError) as error:
        download(published(SimpleNamespace(url="http://example.invalid")), tmp_path)
    cure = "run again to resume after the first 100,000 bytes" if num_kept else "check the network"
    assert_one_sentence(error, "cannot be reached", cure, "--data-dir")
    assert slept == []
    assert capfd.readouterr().err == ""


def wait_until(is_so):
    while not is_so():
        time.sleep(0.01)


def test_two_processes_at_once_bring_the_file_once(server, tmp_path, caplog):
    served = server.files["/file.bin"] = Served(CONTENT, ["hold"])
    results, part = [], tmp_path / "file.bin.part"
    threads = [threading.Thread(target=lambda: results.append(download(published(server), tmp_path))) for _ in range(3)]
    threads[0].start()
    wait_until(lambda: part.exists() and part.stat().st_size > 0)
    with caplog.at_level(logging.WARNING):
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda: caplog.text.count("waiting for another process that is downloading") == 2)
        server.may_go_on.set()
        for thread in threads:
            thread.join()
    assert [path.read_bytes() for path in results] == [CONTENT] * 3
    assert served.asked == [None]
    assert names_in(tmp_path) == ["file.bin"]


def test_who_waits_for_a_process_that_gives_up_takes_over(get, tmp_path, caplog):
    results = []
    waiting = threading.Thread(target=lambda: results.append(get(Served(CONTENT))))
    with caplog.at_level(logging.WARNING), locked(tmp_path / ".lock", waiting_for="testing"):
        waiting.start()
        wait_until(lambda: "waiting for another process" in caplog.text)
        assert not results
    waiting.join()
    assert [path.read_bytes() for path in results] == [CONTENT]


def test_a_bar_with_rate_and_time_left_is_shown_on_stderr_alone(server, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    server.files["/file.bin"] = Served(CONTENT)
    download(published(server), tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "file.bin" in err
    assert "100%" in err
    assert "204.8/204.8 kB" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(server, tmp_path, assert_one_sentence):
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(RunError) as error:
        download(published(server), tmp_path / "closed")
    assert_one_sentence(error, tmp_path / "closed", "Permission denied")
