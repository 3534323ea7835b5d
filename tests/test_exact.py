"""The window `exact` gives the gradient of full back-propagation, and keeps nothing that grows with the sequence."""

import pytest
import torch

from auxrnn import bptt, exact
from auxrnn.bptt import CHUNK
from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.models.cells.lru import LRU
from auxrnn.models.encoder import Encoder, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.models.network import LossTerms
from auxrnn.structs import Draws, SequenceBatch
from command import call

B, D, H, V = 3, 2, 5, 7
LENGTHS = [1, 2, 9, CHUNK, CHUNK + 1, 2 * CHUNK + 30]
EMBEDDINGS = {
    "vectors": lambda: NoEmbedding(D),
    "embedded vectors": lambda: VectorEmbedding(D, embedding_size=4),
    "tokens": lambda: TokenEmbedding(V, embedding_size=4),
}


def make(kind, length, *, dropout=0.0):
    """Give an encoder without zeros to hide behind, and sequences for it."""
    embedding = EMBEDDINGS[kind]()
    cell = LRU(embedding.embedding_size, hidden_size=H, num_layers=1, r_min=0.5, r_max=0.9999, dropout=dropout)
    encoder = Encoder(embedding, cell=cell).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return encoder, torch.randint(V, (B, length)) if kind == "tokens" else torch.randn(B, length, D).double()


def draw_first(length, is_late):
    return torch.tensor([0, length - 1, length // 2]) if is_late else None


def assert_same(ours, theirs, encoder):
    """Compare values, and the gradients of a number that depends on each of them in its own way."""
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    entering = [torch.randn_like(part) for part in ours]
    weights = list(encoder.parameters())
    found, expected = (torch.autograd.grad(list(parts), weights, entering) for parts in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        # A sequence of one step has no gradient in lambda.
        assert float((one - other).abs().max()) <= 1e-10 * float(other.abs().max())
    assert max(float(grad.abs().max()) for grad in expected) > 1e-3


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_the_last_states_have_the_gradient_of_full_back_propagation(kind, length, is_late):
    encoder, x_BT = make(kind, length)
    first_B = draw_first(length, is_late)
    expected = bptt.final_states(encoder, x_BT, window="full", first_B=first_B)
    assert_same(exact.final_states(encoder, x_BT, first_B=first_B), expected, encoder)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", EMBEDDINGS)
def test_the_mean_of_all_outputs_has_the_gradient_of_full_back_propagation(kind, length, is_late):
    encoder, x_BT = make(kind, length)
    first_B = draw_first(length, is_late)
    expected, expected_mean_BH = bptt.final_states_and_mean(encoder, x_BT, window="full", first_B=first_B)
    state, mean_BH = exact.final_states_and_mean(encoder, x_BT, first_B=first_B)
    torch.testing.assert_close(state.c_LBH, expected.c_LBH, rtol=1e-10, atol=1e-10)
    assert_same((state.h_LBH, mean_BH), (expected.h_LBH, expected_mean_BH), encoder)


def count_saved(network, num_columns, readout):
    """Count the elements that an update keeps for its backward pass, made there or before; no weights."""
    weights = {parameter.data_ptr() for parameter in network.parameters()}
    kept = []

    def note(tensor):
        if tensor.data_ptr() not in weights:
            kept.append(tensor.numel())
        return tensor

    batch = SequenceBatch(torch.randn(B, num_columns, D), torch.arange(B))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = network.losses(batch, terms=LossTerms(True, False, "exact"), draws=Draws(0, "test", 0)).combine(1.0)
        forward = sum(kept)
        loss.backward()
    if readout == "last":
        assert sum(kept) == forward
    return forward, max(kept)


def make_network(readout, *, dropout=0.0, objective="none"):
    values = {"data": "digits", "model": "lru", "num_layers": 1, "hidden_size": H, "supervised_window": "exact"}
    sizes = {"readout": readout, "dropout": dropout, "objective": objective, "segment_length": 5, "auxiliary_window": 5}
    return build_network(unflatten(values | sizes), InputSpec(D, None, 4, 100))


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_what_is_kept_for_the_backward_pass_does_not_grow_with_the_sequence(readout):
    network = make_network(readout)
    # The batch itself is kept, to be read again.
    short, long = (count_saved(network, num_columns, readout) for num_columns in (2 * CHUNK, 9 * CHUNK))
    batch = 7 * CHUNK * B * D if readout == "mean" else 0
    assert long[0] - short[0] == batch
    assert long[1] == max(short[1], 9 * CHUNK * B * D * bool(batch))


@pytest.mark.parametrize("objective", ["none", "reconstruct", "predict"])
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_an_update_with_an_exact_window_is_that_of_full_back_propagation(readout, objective):
    network = make_network(readout, objective=objective).double()
    batch = SequenceBatch(torch.randn(B, 40, D).double(), torch.arange(B), torch.tensor([0, 30, 39]))
    found = []
    for window in ("exact", "full"):
        terms = LossTerms(True, objective != "none", window)
        loss = network.losses(batch, terms=terms, draws=Draws(0, "test", 0), true_probability=0.5).combine(2.0)
        found.append((loss, *torch.autograd.grad(loss, list(network.parameters()))))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_a_second_reading_drops_what_the_first_one_dropped():
    encoder, x_BT = make("vectors", 2 * CHUNK + 5, dropout=0.3)
    encoder.train()
    torch.manual_seed(5)
    _, mean_BH = exact.final_states_and_mean(encoder, x_BT)
    torch.manual_seed(5)
    state, outputs = encoder.initial_state(B), []
    for part_BS in x_BT.split(CHUNK, dim=1):
        h_BSH, state = encoder(part_BS, state)
        outputs.append(h_BSH)
    assert_same((mean_BH,), (torch.cat(outputs, dim=1).mean(dim=1),), encoder)


def test_a_network_without_exact_gradients_is_refused_in_one_sentence(tmp_path):
    for words in (["lstm"], ["lru"], ["lru", "--num-layers", "2"]):
        flags = ["--supervised-window", "exact", "--out", tmp_path / "run"]
        result = call("train", "digits", "--model", *words, *flags)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert "--supervised-window is exact, which a linear recurrence of one layer has; give" in result.err
    encoder = Encoder(NoEmbedding(D), cell=LRU(D, hidden_size=H, num_layers=2))
    with pytest.raises(ValueError, match="an lru of one layer"):
        exact.final_states(encoder, torch.randn(B, 4, D))


@pytest.mark.parametrize("words", [["--readout", "last"], ["--readout", "mean", "--objective", "reconstruct"]])
def test_a_run_trains_resumes_and_tells_its_cost(words, tmp_path):
    exact_words = ["--model", "lru", "--num-layers", "1", "--hidden-size", "4", "--supervised-window", "exact", *words]
    length = ["--train-steps", "4", "--checkpoint-every", "2", "--threads", "1"]
    result = call("train", "digits", *exact_words, *length, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "labels train it through all steps of a sequence" in result.err
    weights = (tmp_path / "run" / "model.safetensors").read_bytes()
    (tmp_path / "run" / "model.safetensors").unlink()
    newest = max((tmp_path / "run" / "checkpoints").glob("*.json"), key=lambda path: int(path.stem.split("-")[1]))
    newest.unlink()
    newest.with_suffix(".safetensors").unlink()
    assert call("resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == weights
    assert call("cost", "digits", *exact_words, "--train-steps", "4").code == 0
