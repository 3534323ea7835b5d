"""A stream gives what reading at once gives, however its steps arrive, and forgets nothing but what it is told to."""

import contextlib
import io
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from auxrnn import runs, saved
from auxrnn.data.formats import SeriesFormat, SymbolFormat
from auxrnn.data.sequences import in_order
from auxrnn.errors import RunError
from auxrnn.kernels.library import find_kernel
from auxrnn.models.encoder import LARGEST_TABLE, Encoder, Head, TokenEmbedding, VectorEmbedding
from auxrnn.models.network import Network
from auxrnn.streaming import Stream, read_steps
from auxrnn.structs import SequenceBatch
from auxrnn.training.evaluate import predict_logits
from cells import make_cell
from command import TWO_AND_TWO, call, train

B, T, D, C, V = 3, 12, 2, 4, 9


def make_network(embedding, *, num_layers=1, readout="last", model="lstm"):
    cell = make_cell(model, embedding.embedding_size, hidden_size=7, num_layers=num_layers)
    classifier = Head(14 if readout == "mean" else 7, head_size=6, output_size=C, drop_connect=0.5)
    return Network(Encoder(embedding, cell=cell), classifier=classifier, objective=None, readout=readout)


def make_input(kind):
    """Give a network and sequences for it."""
    if kind == "tokens":
        return make_network(TokenEmbedding(V, embedding_size=5)), torch.randint(V, (B, T))
    if kind == "mean":
        return make_network(TokenEmbedding(V, embedding_size=5), readout="mean"), torch.randint(V, (B, T))
    if kind == "words":
        return make_network(TokenEmbedding(LARGEST_TABLE + 1, embedding_size=5)), torch.randint(V, (B, T))
    model, x_BTD = "lstm" if kind in ("vectors", "double") else kind, torch.randn(B, T, D)
    network = make_network(VectorEmbedding(D, embedding_size=5), num_layers=2, model=model)
    return (network.double(), x_BTD.double()) if kind == "double" else (network, x_BTD)


def read_at_once(network, x_BT):
    with torch.no_grad():
        label_B = torch.zeros(len(x_BT), dtype=torch.long)
        return network.logits(SequenceBatch(x_BT, label_B)).softmax(dim=1)


@pytest.mark.parametrize("kind", ["vectors", "gru", "ur_lstm", "lru", "legendre", "double", "tokens", "words", "mean"])
@settings(max_examples=25)
@given(cuts=st.sets(st.integers(1, T - 1)), seed=st.integers(0, 9))
def test_steps_in_any_portions_give_the_probabilities_of_reading_at_once(kind, cuts, seed):
    torch.manual_seed(seed)
    network, x_BT = make_input(kind)
    stream = Stream(network, B)
    edges = [0, *sorted(cuts), T]
    for begin, end in itertools.pairwise(edges):
        probability_BC = stream.step(x_BT[:, begin:end])
        torch.testing.assert_close(probability_BC, read_at_once(network, x_BT[:, :end]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["vectors", "tokens"])
def test_a_single_step_needs_no_axis_of_steps_and_may_be_an_array_or_a_list(kind):
    network, x_BT = make_input(kind)
    expected_BC = Stream(network, B).step(x_BT[:, :1])
    for step in (x_BT[:, 0], x_BT[:, 0].numpy(), x_BT[:, 0].tolist()):
        assert torch.equal(Stream(network, B).step(step), expected_BC)


@pytest.mark.parametrize("kind", ["vectors", "gru", "ur_lstm", "lru", "legendre", "double"])
def test_a_row_begins_anew_alone(kind):
    network, x_BT = make_input(kind)
    stream = Stream(network, B)
    stream.step(x_BT[:, :5])
    stream.restart(1)
    probability_BC = stream.step(x_BT[:, 5:])
    expected_BC = read_at_once(network, x_BT)
    expected_BC[1] = read_at_once(network, x_BT[1:2, 5:])[0]
    torch.testing.assert_close(probability_BC, expected_BC, rtol=0, atol=1e-6)


def test_all_rows_begin_anew():
    network, x_BT = make_input("vectors")
    stream = Stream(network, B)
    first_BC = stream.step(x_BT)
    stream.restart()
    assert torch.equal(stream.step(x_BT), first_BC)


@pytest.mark.parametrize("kind", ["vectors", "double"])
def test_training_on_does_not_change_a_stream(kind):
    network, x_BT = make_input(kind)
    stream, expected_BC = Stream(network, B), Stream(network, B).step(x_BT)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)
    assert torch.equal(stream.step(x_BT), expected_BC)


@pytest.mark.parametrize("kind", ["vectors", "tokens"])
def test_autocast_and_default_types_do_not_change_a_stream(kind):
    network, x_BT = make_input(kind)
    expected_BC = Stream(network, B).step(x_BT)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu"):
            probability_BC = Stream(network, B).step(x_BT)
    finally:
        torch.set_default_dtype(torch.float32)
    assert probability_BC.dtype == torch.float32
    # Under autocast the embedding is folded in half precision.
    torch.testing.assert_close(probability_BC, expected_BC, rtol=0, atol=1e-2)


def test_nothing_is_read_from_no_steps():
    network, x_BT = make_input("vectors")
    stream = Stream(network, B)
    expected_BC = stream.step(x_BT[:, :4])
    assert torch.equal(stream.step(x_BT[:, :0]), expected_BC)


@pytest.mark.parametrize(
    ("kind", "shape"), [("vectors", (B, D + 1)), ("vectors", (B + 1, D)), ("vectors", (B,)), ("tokens", (B + 1, 2))]
)
def test_a_step_of_another_shape_is_refused_in_one_sentence(kind, shape):
    network, _ = make_input(kind)
    with pytest.raises(ValueError, match=r"does not fit this stream; give \[3, steps"):
        Stream(network, B).step(torch.zeros(shape))


@pytest.mark.skipif(find_kernel() is None, reason="the torch path has its own check")
@pytest.mark.parametrize("token", [-1, V])
def test_a_token_outside_the_vocabulary_is_refused_and_not_looked_up(token):
    network, x_BT = make_input("tokens")
    with pytest.raises(IndexError, match="not in the vocabulary"):
        Stream(network, B).step(torch.full_like(x_BT, token))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38])
@pytest.mark.parametrize("kind", ["vectors", "double"])
def test_a_step_that_would_spoil_the_state_is_refused_and_changes_nothing(value, kind):
    network, x_BT = make_input(kind)
    stream = Stream(network, B)
    expected_BC = stream.step(x_BT)
    spoiled_BT = x_BT.clone()
    spoiled_BT[1, 2] = value
    with pytest.raises(ValueError, match="holds NaN, or a number beyond"):
        stream.step(spoiled_BT)
    assert torch.equal(stream.step(x_BT[:, :0]), expected_BC)
    assert stream.step(torch.full_like(x_BT, 1e29)).isfinite().all()


def test_lines_become_steps_and_empty_lines_end_sequences():
    assert list(read_steps(["1 2\n", "3,4\n", "\n", "5\t6"], SeriesFormat(2))) == [[1, 2], [3, 4], None, [5, 6]]


def test_lines_of_symbols_keep_all_their_digits():
    form = SymbolFormat((1, 2**60 + 1))
    assert list(read_steps(["1\n", f"{2**60 + 1}\n", "\n", "-7"], form)) == [[1], [2**60 + 1], None, [-7]]
    for wrong in ("1.5", "word", str(2**63)):
        with pytest.raises(RunError, match=r"^line 1 is not a whole number, as in the training data: "):
            list(read_steps([wrong], form))
    with pytest.raises(RunError, match="line 1 has 2 values; a step of this network has 1"):
        list(read_steps(["1 2"], form))


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream") / "run"
    train(folder, *TWO_AND_TWO)
    return folder


def test_the_last_line_of_a_streamed_image_is_its_prediction(run_folder, monkeypatch):
    trained = saved.load_run(run_folder)
    split = runs.load_split(run_folder, "test").select(np.arange(2))
    (batch,) = in_order(split, 2)
    images = batch.x_BT.numpy()
    text = "\n\n".join("\n".join(" ".join(map(str, step)) for step in image) for image in images).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    lines = [json.loads(line) for line in call("predict", run_folder, "-", "--stream", "--json").out.splitlines()]
    num_steps = images.shape[1]
    assert [line["step"] for line in lines] == [*range(1, num_steps + 1)] * 2
    expected_BC = predict_logits(trained.network, [batch]).softmax(dim=1)
    for line, expected_C in zip(lines[num_steps - 1 :: num_steps], expected_BC, strict=True):
        torch.testing.assert_close(torch.tensor(list(line["probabilities"].values())), expected_C, rtol=0, atol=1e-5)
        assert max(line["probabilities"], key=line["probabilities"].get) == line["class"]


@pytest.mark.parametrize(
    ("text", "files", "message"),
    [
        (b"0.5\nhalf", ["-", "--stream"], "auxrnn: line 2 is not numbers: 'half'\n"),
        (b"0.5 0.5", ["-", "--stream"], "auxrnn: line 1 has 2 values; a step of this network has 1\n"),
        (b"nan", ["-", "--stream"], "auxrnn: line 1 is not numbers: 'nan'\n"),
        (b"-2e38", ["-", "--stream"], "auxrnn: line 1 holds a number beyond 6.33825e+29: '-2e38'\n"),
        (b"\x89PNG", ["-", "--stream"], "auxrnn: line 1 is not numbers: '\ufffdPNG'\n"),
        (b"", ["a.png", "--stream"], "auxrnn: --stream reads standard input alone: auxrnn predict RUN - --stream\n"),
    ],
)
def test_a_mistake_in_streaming_gets_one_sentence(run_folder, monkeypatch, text, files, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    result = call("predict", run_folder, *files)
    assert result.code != 0
    assert result.err == message


def test_steps_beyond_the_longest_that_was_read_in_training_change_no_answer(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=rng.random((80, 12)), y=np.arange(80) % 2)
    train(tmp_path / "run", *TWO_AND_TWO, "--max-length", "5", data=tmp_path / "data.npz")
    np.save(tmp_path / "new.npy", series_1T := rng.random((1, 12)))
    (expected,) = json.loads(call("predict", tmp_path / "run", tmp_path / "new.npy", "--json").out)["predictions"]
    lines = "\n".join(map(str, series_1T[0])).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    result = call("predict", tmp_path / "run", "-", "--stream", "--json")
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert [answer["step"] for answer in answers] == list(range(1, 13))
    for answer in answers[4:]:
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert answers[3]["probabilities"] != answers[4]["probabilities"]


def test_answers_come_before_the_input_ends_and_a_closed_pipe_ends_it_quietly(run_folder):
    command = [sys.executable, "-m", "auxrnn", "predict", str(run_folder), "-", "--stream"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdin.write("0.5\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith("1\t")
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write("0.5\n" * 100_000)
            process.stdin.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == ""
