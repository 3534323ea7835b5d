"""A loaded run takes raw values: whole sequences, and streams of them, give what the data itself gives."""

import io
import json
import re
import sys

import numpy as np
import pytest

import auxrnn
from auxrnn import runs
from auxrnn.data.inputs import read_inputs
from auxrnn.data.sequences import in_order
from auxrnn.training.evaluate import predict_logits
from command import TINY, TWO_AND_TWO, call, train
from own_data import write_csv

NUM_ROWS, LONGEST, SCALES = 50, 23, np.array([1e-3, 1.0, 1e4])


def write_motions(path, *, has_gaps=False):
    """Write recordings of three channels on very different scales; return them, unpadded."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(6, LONGEST + 1, NUM_ROWS)
    lengths[0] = LONGEST
    x_NTD = (rng.standard_normal((NUM_ROWS, LONGEST, 3)) + np.array([0, 50, -3])) * SCALES
    x_NTD[::2, :, 2] += 2e4
    if has_gaps:
        x_NTD[rng.random(x_NTD.shape) < 0.2] = np.nan
    np.savez(path, x=x_NTD, y=np.array(["walk", "run"])[np.arange(NUM_ROWS) % 2], lengths=lengths)
    return [x_TD[:length] for x_TD, length in zip(x_NTD, lengths, strict=True)]


def train_motions(folder, size, *, has_gaps, words=()):
    rows = write_motions(folder / "data.npz", has_gaps=has_gaps)
    result = train(folder / "run", "--steps-per-input", size, *TWO_AND_TWO, *words, data=folder / "data.npz")
    return rows, result


def read_to_the_end(stream, x):
    """Give a stream one step after the other; return the last answer, and when there were answers."""
    answers = [stream.step(step) for step in x]
    end = stream.finish()
    last = [answer for answer in (*answers, end) if answer is not None][-1]
    return last[0].numpy(), [answer is not None for answer in answers], end


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("size", [1, 4])
def test_raw_recordings_give_the_same_whole_in_a_stream_and_in_the_data(tmp_path, size, has_gaps):
    rows, _ = train_motions(tmp_path, size, has_gaps=has_gaps)
    run = auxrnn.load_run(str(tmp_path / "run"))
    whole_NC, stream = run.predict_proba(rows), run.stream()
    split = runs.load_split(tmp_path / "run", "test")
    expected_NC = predict_logits(run.network, in_order(split, 64)).softmax(dim=1).numpy()
    np.testing.assert_allclose(whole_NC[split.row_N], expected_NC, atol=1e-6)
    for x_TD, expected_C in zip(rows, whole_NC, strict=True):
        last_C, has_answered, end = read_to_the_end(stream, x_TD)
        np.testing.assert_allclose(last_C, expected_C, atol=1e-5)
        assert has_answered == [t % size == size - 1 for t in range(len(x_TD))]
        assert (end is None) == (len(x_TD) % size == 0)
    assert stream.class_names == ("run", "walk")
    assert run.predict(rows) == [("run", "walk")[number] for number in whole_NC.argmax(axis=1)]
    assert np.ptp(whole_NC[:, 0]) > 1e-4, "the answers must depend on what is read"


@pytest.mark.parametrize("size", [1, 4])
def test_arrays_with_lengths_several_rows_and_portions_give_the_same(tmp_path, size):
    rows, _ = train_motions(tmp_path, size, has_gaps=True)
    run, data = auxrnn.load_run(tmp_path / "run"), np.load(tmp_path / "data.npz")
    whole_NC = run.predict_proba(rows)
    np.testing.assert_allclose(run.predict_proba(data["x"], lengths=data["lengths"]), whole_NC, atol=1e-6)
    np.testing.assert_allclose(run.predict_proba(data["x"])[0], whole_NC[0], atol=1e-6)
    stream, x_BTD = run.stream(5), data["x"][:5]
    for portion in np.split(x_BTD, [3, 4, 11], axis=1):
        last_BC = stream.step(portion)
    last_BC = last_BC if size == 1 else stream.finish()
    np.testing.assert_allclose(last_BC.numpy(), run.predict_proba(x_BTD), atol=1e-5)
    stream.restart()
    for step_BD in x_BTD[:, :4].swapaxes(0, 1):
        last_BC = stream.step(step_BD)
    np.testing.assert_allclose(last_BC.numpy(), run.predict_proba(x_BTD[:, :4]), atol=1e-5)


@pytest.mark.parametrize("size", [1, 4])
def test_the_command_line_streams_and_predicts_the_same(tmp_path, size, monkeypatch):
    rows, result = train_motions(tmp_path, size, has_gaps=True)
    assert "missing values: " in result.err
    assert size == 1 or "4 steps are one input of 24 features: 2 to 6 inputs" in result.err
    expected_NC = auxrnn.load_run(tmp_path / "run").predict_proba(rows)
    text = "\n\n".join(
        "\n".join(",".join(map(repr, step.tolist())).replace("nan", "?") for step in x) for x in rows[:3]
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    lines = call("predict", tmp_path / "run", "-", "--stream", "--json").out.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["step"] for answer in answers] == [
        t for x in rows[:3] for t in range(1, len(x) + 1) if t % size == 0 or t == len(x)
    ]
    last = [
        one for one, after in zip(answers, [*answers[1:], {"step": 0}], strict=True) if after["step"] <= one["step"]
    ]
    np.save(tmp_path / "new.npy", rows[0][None])
    (whole,) = json.loads(call("predict", tmp_path / "run", tmp_path / "new.npy", "--json").out)["predictions"]
    for answer, expected_C in zip([*last, whole], [*expected_NC[:3], expected_NC[0]], strict=True):
        np.testing.assert_allclose([*answer["probabilities"].values()], expected_C, atol=1e-5)


def test_reading_stops_at_the_longest_length_and_the_answer_stays(tmp_path):
    rows, _ = train_motions(tmp_path, 4, has_gaps=False, words=["--max-length", "10"])
    run = auxrnn.load_run(tmp_path / "run")
    stream = run.stream()
    answers = [stream.step(step) for step in rows[0]]
    assert [answer is not None for answer in answers[:11]] == [t in (3, 7, 9, 10) for t in range(11)]
    np.testing.assert_allclose(answers[-1][0].numpy(), run.predict_proba(rows[:1])[0], atol=1e-5)
    np.testing.assert_array_equal(run.predict_proba([rows[0]]), run.predict_proba([rows[0][:10]]))
    assert stream.finish() is None


def test_texts_are_predicted_and_streamed_as_they_are(tmp_path):
    train(tmp_path / "run", *TWO_AND_TWO, data=write_csv(tmp_path / "reviews.csv"))
    run, texts = auxrnn.load_run(tmp_path / "run"), ["abc abc.", "xyz", "z\N{SNOWMAN}!"]
    whole_NC, stream = run.predict_proba(texts), run.stream()
    for text, expected_C in zip(texts, whole_NC, strict=True):
        np.testing.assert_allclose(read_to_the_end(stream, text)[0], expected_C, atol=1e-5)
        np.testing.assert_allclose(stream.step(text)[0].numpy(), expected_C, atol=1e-5)
        stream.restart()
    assert set(run.predict(texts)) <= {"cat", "dog"}
    for wrong in (None, 7, [7], ["ab"], ["a", "bc"]):
        with pytest.raises(auxrnn.UsageError, match="give 2 texts of equal length"):
            run.stream(2).step(wrong)
    pair = run.stream(2)
    np.testing.assert_allclose(pair.step(["abc", "xyz"]).numpy(), run.predict_proba(["abc", "xyz"]), atol=1e-5)


def test_integers_are_predicted_and_streamed_as_symbols(tmp_path, monkeypatch):
    # Single precision could not tell the large ones apart, double precision neither.
    symbol_V = np.array([-3, 0, 2**60, 2**60 + 1, 7])
    x_NT, lengths = np.random.default_rng(0).choice(symbol_V[:4], (60, 8)), np.r_[8, np.arange(59) % 7 + 1]
    np.savez(tmp_path / "data.npz", x=x_NT, y=np.arange(60) % 2, lengths=lengths)
    train(tmp_path / "run", "--tokens", "integers", *TWO_AND_TWO, data=tmp_path / "data.npz")
    run = auxrnn.load_run(tmp_path / "run")
    (inputs,) = read_inputs(tmp_path / "data.npz", run.card.format)
    whole_NC = predict_logits(run.network, in_order(inputs.split, 64)).softmax(dim=1).numpy()
    rows = [x_T[:length] for x_T, length in zip(x_NT, lengths, strict=True)]
    for x, more in ((rows, {}), (x_NT, {"lengths": lengths}), ([x_T[:, None] for x_T in rows], {})):
        np.testing.assert_allclose(run.predict_proba(x, **more), whole_NC, atol=1e-6)
    for x_T, expected_C in zip(rows, whole_NC, strict=True):
        np.testing.assert_allclose(read_to_the_end(run.stream(), x_T.tolist())[0], expected_C, atol=1e-5)
        np.testing.assert_allclose(run.stream().step(x_T)[0].numpy(), expected_C, atol=1e-5)
    unknown_NT, stream = np.where(x_NT[:3] == 0, 7, x_NT[:3]), run.stream(3)
    for step_B in unknown_NT.T:
        last_BC = stream.step(step_B)
    np.testing.assert_allclose(last_BC.numpy(), run.predict_proba(unknown_NT), atol=1e-5)
    np.testing.assert_allclose(run.stream(3).step(unknown_NT).numpy(), last_BC.numpy(), atol=1e-5)
    lines = "\n".join(map(str, rows[0])).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    answers = [
        json.loads(line) for line in call("predict", tmp_path / "run", "-", "--stream", "--json").out.split("\n")[:-1]
    ]
    np.testing.assert_allclose([*answers[-1]["probabilities"].values()], whole_NC[0], atol=1e-5)
    assert np.ptp(whole_NC[:, 0]) > 1e-5, "the answers must depend on what is read"
    for wrong in ([[1.5, 2.0]], [["a"]], [[2**70]], [np.ones((2, 2), int)], [[]], [[[1], [2, 3]]]):
        with pytest.raises(auxrnn.UsageError, match=r"^[^\n]+; [^\n]+$"):
            run.predict_proba(wrong)
    for wrong in (1.5, "a", [2**70], np.ones((2, 2), int), None):
        with pytest.raises(auxrnn.UsageError, match=r"^[^\n]+; [^\n]+$"):
            run.stream().step(wrong)


@pytest.mark.parametrize("size", [1, 9])
def test_images_are_predicted_and_streamed_as_pixels(tmp_path, size):
    train(tmp_path / "run", "--steps-per-input", size, *TWO_AND_TWO)
    run, split = auxrnn.load_run(tmp_path / "run"), runs.load_split(tmp_path / "run", "test")
    pixel_NT = np.concatenate(list(split.values())).reshape(-1, 196)[:4]
    expected_NC = predict_logits(run.network, in_order(split.select(np.arange(4)), 4)).softmax(dim=1).numpy()
    assert pixel_NT.dtype == np.uint8
    for x in (pixel_NT, pixel_NT.reshape(-1, 14, 14), pixel_NT / 255, pixel_NT.astype(int)):
        np.testing.assert_allclose(run.predict_proba(x), expected_NC, atol=1e-6)
    for x in (pixel_NT[0], pixel_NT[0] / 255, pixel_NT[0].astype(int)):
        np.testing.assert_allclose(read_to_the_end(run.stream(), x)[0], expected_NC[0], atol=1e-5)


WRONG = {
    "text": "abc", "nothing": [], "channels": np.zeros((2, 5, 4)), "words": [["a", "b"]], "flat": [1.0, 2.0],
    "infinite": np.full((2, 3, 3), np.inf), "gap": np.full((2, 3, 3), np.nan), "empty": [np.zeros((0, 3))],
}  # fmt: skip


def test_what_a_run_cannot_read_is_refused_in_one_sentence(tmp_path):
    train_motions(tmp_path, 1, has_gaps=False)
    run = auxrnn.load_run(tmp_path / "run")
    for wrong in WRONG.values():
        with pytest.raises(auxrnn.UsageError) as error:
            run.predict_proba(wrong)
        assert re.fullmatch(r"[^\n]+; [^\n]+", str(error.value))
    for wrong in (*[*WRONG.values()][:-1], [1.0, np.nan, 2.0], [1.0, 2.0], None):
        with pytest.raises(auxrnn.UsageError) as error:
            run.stream().step(wrong)
        assert re.fullmatch(r"[^\n]+; [^\n]+", str(error.value))
    for lengths in ([1], [1, 99]):
        with pytest.raises(auxrnn.UsageError) as error:
            run.predict_proba(np.zeros((2, 5, 3)), lengths=lengths)
        assert re.fullmatch(r"[^\n]*length[^\n]+; [^\n]+", str(error.value))


def test_a_network_trained_without_gaps_asks_to_fill_them_in(tmp_path):
    train_motions(tmp_path, 1, has_gaps=False)
    np.save(tmp_path / "new.npy", np.full((1, 3, 3), np.nan))
    result = call("predict", tmp_path / "run", tmp_path / "new.npy")
    assert result.code == 1
    assert "example 0 has nan at step 0, channel 0; fill it in: the training data had no gaps" in result.err


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
@pytest.mark.parametrize("model", ["lstm", "gru", "ur_lstm", "lru", "legendre"])
def test_joined_steps_with_gaps_train_resume_and_tell_their_cost(tmp_path, objective, model):
    words = ["--objective", objective, "--model", model, "--sampling-steps", "4", "--checkpoint-every", "1"]
    train_motions(tmp_path, 3, has_gaps=True, words=words)
    assert "nan" not in (tmp_path / "run" / "metrics.jsonl").read_text().lower()
    weights = (tmp_path / "run" / "model.safetensors").read_bytes()
    (tmp_path / "run" / "model.safetensors").unlink()
    for newest in sorted((tmp_path / "run" / "checkpoints").glob("step-4.*")):
        newest.unlink()
    assert call("resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == weights
    assert call("evaluate", tmp_path / "run").code == 0
    cost = call("cost", tmp_path / "data.npz", *TINY, *words, "--steps-per-input", "3")
    assert (cost.code, "sequences of up to 8 steps" in cost.out) == (0, True), cost.err


def test_inputs_of_another_size_and_texts_are_refused(tmp_path):
    train_motions(tmp_path, 4, has_gaps=False)
    start = ["--init-from", tmp_path / "run", "--out", tmp_path / "no", *TINY, *TWO_AND_TWO]
    other = call("train", tmp_path / "data.npz", *start)
    assert "--steps-per-input is 1, and 4 in the run of --init-from; give the same" in other.err
    write_motions(tmp_path / "gaps.npz", has_gaps=True)
    gaps = call("train", tmp_path / "gaps.npz", *start, "--steps-per-input", "4")
    assert "--init-from is a run on data without gaps, and this data has some; fill them in" in gaps.err
    texts = call("train", write_csv(tmp_path / "reviews.csv"), "--steps-per-input", "2", "--out", tmp_path / "no")
    assert "--steps-per-input is 2, which joins numbers, not tokens; remove it" in texts.err
    assert (other.code, gaps.code, texts.code) == (2, 2, 2)
    check = call("data", "check", tmp_path / "gaps.npz", "--json")
    assert json.loads(check.out)["missing_values"] > 0
    assert "missing values: " in call("data", "check", tmp_path / "gaps.npz").out
    assert call("data", "check", tmp_path / "gaps.npz", "--missing", "refuse").code == 1
    assert call("data", "check", tmp_path / "reviews.csv", "--steps-per-input", "2").code == 1
