import json

import numpy as np
import pytest

from auxrnn.errors import RunError
from auxrnn.report.records import read_events, read_reconstructions

EVENTS = [{"event": "train", "step": 1}, {"event": "evaluation", "step": 2, "note": "\u00e9"}]


def write_lines(folder, events):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))


def test_events_come_back_in_the_order_written(tmp_path):
    write_lines(tmp_path, EVENTS)
    assert read_events(tmp_path) == EVENTS


def test_a_run_that_has_not_begun_has_no_events(tmp_path):
    assert read_events(tmp_path / "nowhere") == []


LAST_LINE = json.dumps(EVENTS[1], ensure_ascii=False).encode()


@pytest.mark.parametrize("num_bytes", range(1, len(LAST_LINE)))
def test_a_last_line_cut_anywhere_costs_only_itself(tmp_path, num_bytes):
    write_lines(tmp_path, EVENTS[:1])
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(LAST_LINE[:num_bytes])
    assert read_events(tmp_path) == EVENTS[:1]


def test_damage_before_the_last_line_is_named(tmp_path):
    write_lines(tmp_path, EVENTS)
    text = (tmp_path / "metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text('{"event": "tr\n' + text)
    with pytest.raises(RunError, match="line 1"):
        read_events(tmp_path)


@pytest.fixture
def kept(tmp_path, reconstructions):
    np.savez(tmp_path / "reconstructions.npz", **reconstructions._asdict())
    return tmp_path / "reconstructions.npz"


def test_reconstructions_come_back_as_written(kept, reconstructions):
    found = read_reconstructions(kept)
    for name, wanted in reconstructions._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), wanted)
    assert found.is_reversed is True


def test_no_reconstructions_are_no_failure(tmp_path):
    assert read_reconstructions(tmp_path / "reconstructions.npz") is None


@pytest.mark.parametrize("keep", [0, 100, -30])
def test_damaged_reconstructions_are_said_to_be_damaged(kept, keep):
    kept.write_bytes(kept.read_bytes()[:keep])
    with pytest.raises(RunError, match="is damaged"):
        read_reconstructions(kept)


@pytest.mark.parametrize(("is_reversed", "first"), [(True, 0), (False, 1)])
def test_predicted_pixels_stand_at_their_steps_and_errors_count_them_alone(reconstructions, is_reversed, first):
    shown = reconstructions._replace(is_reversed=is_reversed)
    predicted_KT = shown.find_predicted()
    for k, start in enumerate((5, 15, 0)):
        steps = range(start + first, start + first + 4)
        assert np.flatnonzero(~np.isnan(predicted_KT[k])).tolist() == list(steps)
        np.testing.assert_array_equal(predicted_KT[k, steps], shown.reconstruction_KS[k])
    mean_image_T = np.linspace(0.2, 0.7, 20, dtype=np.float32)
    is_predicted_KT = ~np.isnan(predicted_KT)
    truth_P, guess_P = shown.image_KT[is_predicted_KT], np.broadcast_to(mean_image_T, (3, 20))[is_predicted_KT]
    wanted = [((guess - truth_P) ** 2).mean() for guess in (predicted_KT[is_predicted_KT], 0.0, guess_P)]
    assert shown.measure(mean_image_T) == pytest.approx(tuple(wanted), rel=1e-6)
