"""The whole benchmark through the command line, at sizes that take seconds."""

import json

import pytest
import torch
from PIL import Image

from auxrnn.bench import sizes, suite
from auxrnn.bench.ratios import GOALS
from auxrnn.bench.record import memory_curves, time_curves
from auxrnn.bench.roster import READERS
from command import call, files_below
from made_up_bench import TINY, make_results


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A benchmark that has run to its end, and what it said."""
    folder = tmp_path_factory.mktemp("bench") / "new" / "folder"
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "QUICK", TINY)
        result = call("bench", "--quick", "--json", "--out", folder)
    return folder, result


def test_the_command_prints_one_object_with_all_ratios_and_keeps_it(finished):
    folder, result = finished
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found == json.loads((folder / "bench.json").read_text())
    assert list(GOALS) == list(found)[: len(GOALS)]
    assert all(found[name] > 0 for name in GOALS)
    assert found["threads"] == found["environment"]["threads"] == 1
    assert found["sizes"]["hidden_size"] == 8
    assert found["cases"].keys() == {"reading", "reading_busy", "window", "streaming", "step_40", "step_60"}
    assert [entry["contender"] for entry in found["cases"]["reading"]["contenders"]] == [
        reader.name for reader in READERS
    ]
    assert {point["system"] for point in found["memory"]} == {"full_bptt", "r_lstm_1x600", "r_lstm_20x30", "p_lstm"}


def test_the_folder_holds_the_record_and_two_pictures(finished):
    folder, _ = finished
    assert files_below(folder) == ["bench.json", "peak-memory.png", "step-time.png"]
    for name in ("peak-memory.png", "step-time.png"):
        with Image.open(folder / name) as image:
            assert image.format == "PNG"
            assert image.width > image.height > 500


def test_progress_stands_on_the_error_stream(finished):
    _, result = finished
    assert result.err.startswith("reading; about")
    assert "left" in result.err.splitlines()[-1]


def test_without_json_the_command_prints_tables(tmp_path, monkeypatch):
    record = suite.Record(make_results(), {"lstm": "fused kernel (avx2)"}, 100.0)
    monkeypatch.setattr(suite, "run", lambda folder, *, sizes, console: record)
    result = call("bench", "--out", tmp_path)
    assert result.code == 0
    assert "reading_vs_nn_lstm" in result.out
    assert result.out.endswith(
        f"2 minutes, threads: 2, fused kernel (avx2)\n{tmp_path} holds the pictures and bench.json with all figures\n"
    )


@pytest.mark.parametrize(("words", "chosen"), [([], sizes.FULL), (["--quick"], sizes.QUICK)])
def test_quick_chooses_the_smaller_sizes(words, chosen, monkeypatch):
    asked = []
    record = suite.Record(make_results(), {"lstm": "fused kernel (avx2)"}, 100.0)
    monkeypatch.setattr(suite, "run", lambda folder, *, sizes, console: asked.append(sizes) or record)
    call("bench", *words)
    assert asked == [chosen]


def test_a_folder_that_cannot_be_made_is_found_out_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("")
    result = call("bench", "--out", tmp_path / "file")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"auxrnn: {tmp_path / 'file'} cannot be read or written")


def test_too_little_memory_is_one_sentence_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.bench.memory._free_bytes", lambda: 2**30)
    result = call("bench", "--out", tmp_path)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "auxrnn: full back-propagation through 12,544 steps needs 17 GiB of memory, 1 are free; close other programs\n"
    )


def test_numbers_too_small_for_full_precision_count_as_zero_only_while_measuring():
    tiny = torch.tensor(1e-38)
    with suite._flushing_denormals():
        assert (tiny * 1e-3).item() == 0
    assert (tiny * 1e-3).item() > 0


def test_curves_hold_what_was_measured_beside_the_paper_s(results):
    full, *_, p_lstm = time_curves(results)
    assert (full.title, full.here) == ("LSTM, full BPTT", {1_600: 1.0, 12_544: 12.0})
    assert full.paper[12_544] == 26.4
    assert p_lstm.paper[16_384] == 8.0
    assert [curve.here for curve in memory_curves(results)][1] == {1_600: 500 / 1024, 16_384: 510 / 1024}
