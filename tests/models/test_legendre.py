"""The Legendre memory beside what it must be: the published equations, its own recurrence, and a window of the past."""

import numpy as np
import pytest
import torch
from scipy.signal import cont2discrete

from auxrnn.models.cells.legendre import BLOCK, CHUNK, Legendre, discretize
from auxrnn.models.cells.recurrence import Recurrence
from auxrnn.models.encoder import NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.structs import RNNState, StateQuery

B, H, Q, N = 4, 5, 2, 6


def make_cell(input_size=3, *, num_layers=1, length=40, order=N, dtype=torch.float64):
    cell = Legendre(
        input_size,
        hidden_size=H,
        num_layers=num_layers,
        num_memories=Q,
        memory_order=order,
        memory_length="full",
        num_steps=length,
    )
    for bias in cell.bias:
        torch.nn.init.normal_(bias)
    return cell.to(dtype)


def make_matrices(order, length):
    """Write out A and B as Voelker et al. do, entry by entry."""
    a = [
        [(2 * i + 1) / length * (-1.0 if i < j else (-1.0) ** (i - j + 1)) for j in range(order)] for i in range(order)
    ]
    return np.array(a), np.array([[(2 * i + 1) / length * (-1.0) ** i] for i in range(order)])


@pytest.mark.parametrize(("order", "length"), [(1, 1), (6, 40), (32, 9), (64, 784)])
def test_the_memory_is_the_published_one_discretized_exactly(order, length):
    a_NN, b_N1, *_ = cont2discrete((*make_matrices(order, length), np.eye(order), np.zeros((order, 1))), 1.0, "zoh")
    ours_NN, ours_N = discretize(order, length)
    np.testing.assert_allclose(ours_NN, a_NN, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours_N, b_N1[:, 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("num_steps", [64, 150])
def test_a_memory_holds_the_last_steps_as_legendre_polynomials(num_steps):
    length, order = 64, 24
    cell = make_cell(1, length=length, order=order)
    with torch.no_grad():
        cell.weight_ih[0][0], cell.bias[0][0] = 1.0, 0.0
    time_T = np.arange(num_steps) / length
    signal_T = np.sin(5 * time_T) + time_T**2
    state = cell(torch.tensor(signal_T)[None, :, None], cell.initial_state(1)).state
    age_S = np.arange(0.5, length) / length
    rebuilt_S = np.polynomial.legendre.legval(2 * age_S - 1, state.c_LBH[0, 0, :order].detach().numpy())
    middle = slice(length // 4, -length // 4)
    np.testing.assert_allclose(rebuilt_S[middle], signal_T[::-1][:length][middle], rtol=0, atol=0.02)


def plain_run(cell, x_BTI, state):
    """Run one layer step by step, as its equations say."""
    a_NN, b_N = discretize(cell.order, cell.length)
    m_BQN = state.c_LBH[0].reshape(len(x_BTI), Q, N)
    for x_BI in x_BTI.unbind(1):
        sums_BG = x_BI @ cell.weight_ih[0].T + cell.bias[0]
        m_BQN = m_BQN @ a_NN.T + sums_BG[:, :Q, None] * b_N
        h_BH = (m_BQN.flatten(1) @ cell.weight_hm[0].T + sums_BG[:, Q:]).tanh()
    return RNNState(h_BH[None], m_BQN.flatten(1)[None])


@pytest.mark.parametrize("num_steps", [1, CHUNK, 2 * CHUNK + 3])
def test_chunks_and_the_impulse_response_equal_the_plain_recurrence(num_steps):
    cell, x_BTI = make_cell(), torch.randn(B, num_steps, 3, dtype=torch.float64)
    state = RNNState(*map(torch.randn_like, cell.initial_state(B)))
    query = StateQuery(torch.arange(B), torch.full((B,), num_steps))
    plain = plain_run(cell, x_BTI, state)
    for ours in (cell(x_BTI, state).state, cell.states_at(x_BTI, state, query)):
        torch.testing.assert_close(tuple(ours), tuple(plain), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("start", ["empty", "held"])
@pytest.mark.parametrize("kind", ["vectors", "linear", "letters", "words"])
def test_states_without_recurrence_equal_those_of_it_in_values_and_gradients(kind, start, dtype):
    embeddings = {
        "vectors": NoEmbedding(3),
        "linear": VectorEmbedding(2, embedding_size=3),
        "letters": TokenEmbedding(7, embedding_size=3),
        "words": TokenEmbedding(1000, embedding_size=3),
    }
    embedding, cell = embeddings[kind].to(dtype), make_cell(dtype=dtype)
    num_steps = BLOCK + 37
    x_BT = torch.randint(7, (B, num_steps))
    if kind in ("vectors", "linear"):
        x_BT = torch.randn(B, num_steps, embedding.input_size, dtype=dtype)
    steps_P = torch.tensor([num_steps, 5, 8, 0, 17, 36]) if start == "empty" else torch.full((6,), BLOCK + 30)
    query, begin_B = StateQuery(torch.tensor([0, 1, 1, 2, 3, 3]), steps_P), None
    state = cell.initial_state(B)
    if start == "empty":
        begin_B = torch.tensor([0, 3, 0, 20])
    else:
        state = RNNState(*map(torch.randn_like, state))
    ours, theirs = (
        read(cell, x_BT, state, query, embedding=embedding, begin_B=begin_B)
        for read in (Legendre.states_at, Recurrence.states_at)
    )
    close = {"rtol": 0, "atol": {torch.float32: 2e-5, torch.float64: 1e-12}[dtype]}
    torch.testing.assert_close(tuple(ours), tuple(theirs), **close)
    parameters = [*cell.parameters(), *embedding.parameters()]
    grads = (torch.autograd.grad(sum(part.square().sum() for part in found), parameters) for found in (ours, theirs))
    close = {torch.float32: {"rtol": 1e-3, "atol": 1e-3}, torch.float64: {"rtol": 1e-10, "atol": 1e-11}}[dtype]
    torch.testing.assert_close(*grads, **close)


def test_whole_sequences_of_one_layer_are_read_without_recurrence(monkeypatch):
    cell, x_BTI = make_cell(dtype=torch.float32), torch.randn(B, BLOCK + 70, 3)
    query = StateQuery(torch.arange(B), torch.full((B,), BLOCK + 70))
    expected = cell(x_BTI, cell.initial_state(B)).state
    monkeypatch.setattr(cell, "forward_layer", None)
    found = cell.states_at(x_BTI, cell.initial_state(B), query)
    torch.testing.assert_close(tuple(found), tuple(expected), rtol=0, atol=2e-5)


def test_a_stream_before_a_training_leaves_no_constant_that_a_graph_refuses():
    cell, x_BTI = make_cell(length=41), torch.randn(B, 5, 3, dtype=torch.float64)
    with torch.inference_mode():
        cell(x_BTI, cell.initial_state(B))
    cell(x_BTI, cell.initial_state(B)).h_BTH.sum().backward()
    assert all(parameter.grad is not None for parameter in cell.parameters())


def test_there_is_no_memory_more_than_inputs_and_all_layers_have_as_many():
    one, stack = make_cell(1), make_cell(3, num_layers=2)
    assert (one.num_memories, stack.num_memories) == (1, Q)
    assert stack.initial_state(B).c_LBH.shape == (2, B, Q * N)
