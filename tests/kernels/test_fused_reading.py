"""Networks in single precision read the same on the kernel and on torch's own LSTM, in values and gradients."""

import pytest
import torch

from auxrnn import bptt
from auxrnn.bptt import GradientWindow
from auxrnn.kernels import gated as kernel
from auxrnn.models.encoder import LARGEST_TABLE, Encoder, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.structs import RNNState, StateQuery
from stacks import assert_near

B, T, E, H = 19, 23, 5, 10
SMALL, LARGE = 12, LARGEST_TABLE + 1
EMBEDDINGS = {
    "vectors": lambda: VectorEmbedding(2, embedding_size=E),
    "bare vectors": lambda: NoEmbedding(E),
    "characters": lambda: TokenEmbedding(SMALL, embedding_size=E),
    "words": lambda: TokenEmbedding(LARGE, embedding_size=E),
}
BEGIN_B = torch.arange(B) * 7 % (T + 3) - 1
END_B = torch.arange(B) * 5 % (T + 1)


@pytest.fixture(params=[1, 2], ids=["one layer", "two layers"])
def num_layers(request):
    return request.param


@pytest.fixture(params=EMBEDDINGS)
def encoder(request, kind, num_layers):
    encoder = Encoder(EMBEDDINGS[request.param](), cell=kind(E, hidden_size=H, num_layers=num_layers))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    return encoder


@pytest.fixture
def x_BT(encoder):
    embedding = encoder.embedding
    if isinstance(embedding, TokenEmbedding):
        return torch.randint(len(embedding.weight_VE), (B, T))
    return torch.randn(B, T, embedding.input_size, requires_grad=True)


@pytest.fixture
def start(encoder):
    return RNNState(*(torch.randn_like(part).requires_grad_() for part in encoder.initial_state(B)))


def assert_same_on_torch(on_torch, read, sources):
    """Compare the tensors that `read` gives, and the gradients of a number that depends on each of their entries."""

    def measure():
        results = read()
        loss = sum((part * torch.arange(part.numel()).reshape(part.shape).sin()).sum() for part in results)
        return results, torch.autograd.grad(loss, sources, allow_unused=True, materialize_grads=True)

    results, grads = measure()
    with on_torch():
        expected, expected_grads = measure()
    assert_near(results, expected, relative=1e-5)
    assert_near(grads, expected_grads, relative=1e-4)


def list_sources(encoder, *others):
    return [*encoder.parameters(), *(tensor for tensor in others if tensor.requires_grad)]


@pytest.mark.parametrize("begin_B", [None, BEGIN_B], ids=["", "begin"])
@pytest.mark.parametrize("end_B", [None, END_B], ids=["", "end"])
def test_a_run_is_the_same(best_build, on_torch, encoder, x_BT, start, begin_B, end_B):
    if begin_B is not None:
        start = encoder.initial_state(B)
    first_B1 = torch.zeros(B, 1) if begin_B is None else begin_B[:, None]
    last_B1 = torch.full((B, 1), T) if end_B is None else end_B[:, None]
    is_read_BT = (torch.arange(T) >= first_B1) & (torch.arange(T) < last_B1)

    def read():
        run = encoder.cell(x_BT, start, embedding=encoder.embedding, begin_B=begin_B, end_B=end_B)
        return run.h_BTH * is_read_BT[:, :, None], *run.state

    assert_same_on_torch(on_torch, read, list_sources(encoder, x_BT, *start))


@pytest.mark.parametrize("begin_B", [None, BEGIN_B], ids=["", "begin"])
def test_states_at_places_are_the_same(best_build, on_torch, encoder, x_BT, start, begin_B):
    places = StateQuery(torch.randint(B, (31,)), torch.randint(T + 1, (31,)))
    if begin_B is not None:
        start = encoder.initial_state(B)
    sources = list_sources(encoder, x_BT, *start)
    assert_same_on_torch(on_torch, lambda: encoder.states_at(x_BT, start, places, begin_B=begin_B), sources)


@pytest.mark.parametrize("windows", [(4, 9), (7, "full"), ("full", 0), (1, T)])
@pytest.mark.parametrize("first_B", [None, BEGIN_B.clamp(0, T - 1)], ids=["", "late"])
def test_readings_at_anchors_of_each_row_are_the_same(best_build, on_torch, encoder, x_BT, windows, first_B):
    row_M = torch.arange(B).repeat(2)
    column_M = T - 1 - torch.arange(2 * B) * 3 % 4
    readings = [GradientWindow(row_M, column_M, windows[0]), bptt.final_window(x_BT, window=windows[1])]

    def read():
        states = bptt.states_at(encoder, x_BT, readings, first_B=first_B)
        return [part for state in states for part in state]

    assert_same_on_torch(on_torch, read, list_sources(encoder, x_BT))


def test_the_kernel_takes_single_precision_on_the_cpu_and_nothing_else(best_build):
    weight, x_BTD, token_BT = torch.zeros(3), torch.zeros(1, 1, 1), torch.zeros(1, 1, dtype=torch.long)
    assert kernel.can_run(x_BTD, weight)
    assert kernel.can_run(token_BT, weight)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        assert not kernel.can_run(x_BTD.to(dtype), weight.to(dtype))
        assert not kernel.can_run(token_BT, weight.to(dtype))
        assert not kernel.can_run(x_BTD.to(dtype), weight)
    assert not kernel.can_run(x_BTD.to("meta"), weight.to("meta"))


@pytest.mark.parametrize(("dtype", "device"), [(torch.float64, "cpu"), (torch.float32, "meta")])
def test_other_precisions_and_devices_never_call_the_kernel(best_build, kind, monkeypatch, dtype, device):
    monkeypatch.setattr("auxrnn.kernels.gated.forward", None)
    encoder = Encoder(EMBEDDINGS["vectors"](), cell=kind(E, hidden_size=H, num_layers=2)).to(device, dtype)
    x_BTD = torch.zeros(B, T, 2, dtype=dtype, device=device)
    state = encoder(x_BTD, encoder.initial_state(B)).state
    assert (state.h_LBH.dtype, state.h_LBH.device.type) == (dtype, device)
