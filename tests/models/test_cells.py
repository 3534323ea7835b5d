"""What every recurrence must satisfy, whatever its equations: the laws that the rest of the library builds on."""

import pytest
import torch

from auxrnn import bptt
from auxrnn.models.cells.recurrence import GRID, Recurrence
from auxrnn.models.encoder import Encoder, NoEmbedding, TokenEmbedding, VectorEmbedding
from auxrnn.structs import RNNState, StateQuery
from cells import MODELS
from cells import make_cell as make_plain

B, T, NUM_INPUTS, H = 4, 9, 3, 5
LATE_B, EARLY_B = torch.tensor([0, 3, 8, 9]), torch.tensor([9, 4, 1, 0])
MIDDLE = (torch.tensor([-4, 2, 5, 12]), torch.tensor([9, 6, 6, 3]))
# Single precision adds in another order when rows are grouped otherwise; double precision shows mistakes only.
TOLERANCE = {torch.float32: 5e-5, torch.float64: 1e-11}


@pytest.fixture(params=MODELS)
def kind(request):
    return request.param


def make_cell(kind, num_layers=2, dtype=torch.float64):
    """Build a cell without any zero weight or bias to hide behind, and with ReLUs that are mostly open."""
    cell = make_plain(kind, NUM_INPUTS, hidden_size=H, num_layers=num_layers)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
        for bias in cell.bias:
            bias.add_(0.3)
    return cell.to(dtype)


def make_state(cell):
    return RNNState(*(torch.rand_like(part) for part in cell.initial_state(B)))


def make_x(dtype=torch.float64, num_columns=T):
    return torch.randn(B, num_columns, NUM_INPUTS, dtype=dtype)


def measure(*parts):
    """Turn all that is given into one number that depends on each entry in its own way."""
    return sum((part * torch.arange(1, part.numel() + 1).reshape(part.shape).sin()).sum() for part in parts)


def run_measured(cell, x_BTI, begin_B, end_B):
    """Give the final state, and all gradients of a loss that looks at it alone."""
    x_BTI = x_BTI.clone().requires_grad_()
    state = cell(x_BTI, cell.initial_state(B), begin_B=begin_B, end_B=end_B).state
    return state, torch.autograd.grad(measure(*state), [x_BTI, *cell.parameters()])


def read_alone(cell, x_BTI, rows, starts, ends):
    """Run the named steps of rows one by one."""
    steps = zip(rows, starts, ends, strict=True)
    states = [cell(x_BTI[b : b + 1, start:end], cell.initial_state(1)).state for b, start, end in steps]
    return RNNState(*(torch.cat(parts, dim=1) for parts in zip(*states, strict=True)))


def test_it_is_a_recurrence_with_states_of_the_sizes_it_names(kind):
    cell = make_cell(kind, num_layers=3)
    assert isinstance(cell, Recurrence)
    run = cell(make_x(), cell.initial_state(B))
    assert run.h_BTH.shape == (B, T, cell.output_size)
    assert run.state.h_LBH.shape == (cell.num_layers, B, cell.output_size) == (3, B, 2 * H if kind == "urnn" else H)
    assert run.state.c_LBH.shape == (3, B, {"lstm": H, "ur_lstm": H, "lru": 2 * H, "legendre": 2 * 4}.get(kind, 0))
    assert torch.equal(run.state.h_LBH[-1], run.h_BTH[:, -1])


@pytest.mark.parametrize("num_layers", [1, 2])
def test_reading_in_chunks_equals_reading_at_once(kind, num_layers):
    cell, x_BTI = make_cell(kind, num_layers), make_x()
    state, outputs = make_state(cell), []
    whole = cell(x_BTI, state)
    for part in x_BTI.split([1, 5, 3], dim=1):
        h_BTH, state = cell(part, state)
        outputs.append(h_BTH)
    torch.testing.assert_close((torch.cat(outputs, dim=1), *state), (whole.h_BTH, *whole.state), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("begin_B", "end_B"), [(LATE_B, None), (None, EARLY_B), MIDDLE])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_what_stands_in_idle_columns_changes_not_one_bit(kind, num_layers, begin_B, end_B, dtype):
    cell, x_BTI = make_cell(kind, num_layers, dtype), make_x(dtype)
    step_1T = torch.arange(T)[None]
    is_late_BT = step_1T < (0 if begin_B is None else begin_B[:, None])
    idle_BT = is_late_BT | (step_1T >= (T if end_B is None else end_B[:, None]))
    # torch's LSTM is held by a finite weight: see `recurrence.SATURATING`.
    huge = 1e30
    other_BTI = torch.where(idle_BT[:, :, None], huge * torch.randn_like(x_BTI), x_BTI)
    first_state, first_grads = run_measured(cell, x_BTI, begin_B, end_B)
    other_state, other_grads = run_measured(cell, other_BTI, begin_B, end_B)
    assert all(torch.equal(one, two) for one, two in zip(first_state, other_state, strict=True))
    assert all(torch.equal(one, two) for one, two in zip(first_grads, other_grads, strict=True))
    assert all(bool(grad.isfinite().all()) for grad in first_grads)
    assert not first_grads[0][idle_BT].any()
    assert bool(first_grads[0][~idle_BT].any(dim=1).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("side", ["late", "early"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_late_and_early_rows_equal_runs_of_their_own_steps(kind, num_layers, side, dtype):
    cell, x_BTI = make_cell(kind, num_layers, dtype), make_x(dtype)
    begin_B, end_B = (LATE_B, None) if side == "late" else (None, EARLY_B)
    state, grads = run_measured(cell, x_BTI, begin_B, end_B)
    starts = [0] * B if begin_B is None else begin_B.tolist()
    alone = read_alone(cell, x_BTI, range(B), starts, [T] * B if end_B is None else end_B.tolist())
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(tuple(state), tuple(alone), **close)
    expected = torch.autograd.grad(measure(*alone), list(cell.parameters()))
    torch.testing.assert_close(grads[1:], expected, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_that_has_not_begun_keeps_the_initial_state_exactly(kind, dtype):
    cell = make_cell(kind, dtype=dtype)
    start = cell.initial_state(B)
    after = cell(make_x(dtype), start, begin_B=torch.full((B,), T)).state
    assert all(torch.equal(one, two) for one, two in zip(after, start, strict=True))


def test_a_row_without_any_step_keeps_any_state(kind):
    cell = make_cell(kind)
    state = make_state(cell)
    after = cell(make_x(), state, end_B=torch.tensor([0, -3, 0, 0])).state
    assert all(torch.equal(one, two) for one, two in zip(after, state, strict=True))


def test_a_run_of_no_columns_gives_back_its_state_and_no_outputs(kind):
    cell = make_cell(kind)
    state = make_state(cell)
    run = cell(make_x(num_columns=0), state)
    assert run.state is state
    assert run.h_BTH.shape == (B, 0, cell.output_size)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_visit_equals_running_each_row_alone_to_its_place(kind, is_late):
    cell, x_BTI = make_cell(kind), make_x(num_columns=2 * GRID + 3)
    places = StateQuery(torch.tensor([0, 2, 2, 1, 3, 0]), torch.tensor([0, 2 * GRID + 3, 5, GRID, GRID + 1, GRID - 1]))
    begin_B = torch.tensor([0, GRID + 4, 3, GRID]) if is_late else None
    starts = begin_B[places.row_P].tolist() if is_late else [0] * len(places.row_P)
    alone = read_alone(cell, x_BTI, places.row_P.tolist(), starts, places.steps_P.tolist())
    encoder = Encoder(NoEmbedding(NUM_INPUTS), cell=cell)
    state = encoder.states_at(x_BTI, cell.initial_state(B), places, begin_B=begin_B)
    torch.testing.assert_close(tuple(state), tuple(alone), rtol=1e-11, atol=1e-12)
    ours, theirs = (torch.autograd.grad(measure(*part), list(cell.parameters())) for part in (state, alone))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)


def embed_vectors(embedding, x_BTD):
    return x_BTD @ embedding.weight_ED.T + embedding.bias_E


@pytest.mark.parametrize(
    ("embedding", "embed"),
    [
        (VectorEmbedding(2, embedding_size=NUM_INPUTS), embed_vectors),
        (NoEmbedding(NUM_INPUTS), lambda _, x_BTD: x_BTD),
        (TokenEmbedding(7, embedding_size=NUM_INPUTS), lambda embedding, x_BT: embedding.weight_VE[x_BT]),
    ],
)
def test_an_encoder_reads_through_any_embedding(kind, embedding, embed):
    encoder = Encoder(embedding.double(), cell=make_cell(kind))
    x_BT = torch.randint(7, (B, T))
    if not isinstance(embedding, TokenEmbedding):
        torch.nn.init.normal_(getattr(embedding, "bias_E", torch.empty(1)))
        x_BT = torch.randn(B, T, embedding.input_size, dtype=torch.float64)
    run, expected = (
        encoder(x_BT, encoder.initial_state(B)),
        encoder.cell(embed(embedding, x_BT), encoder.initial_state(B)),
    )
    torch.testing.assert_close((run.h_BTH, *run.state), (expected.h_BTH, *expected.state), rtol=1e-11, atol=1e-12)
    parameters = list(encoder.parameters())
    ours, theirs = (torch.autograd.grad(measure(part.h_BTH), parameters) for part in (run, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("window", [0, 1, 4, T, "full"])
def test_any_window_gives_the_values_of_a_plain_run_and_reaches_exactly_the_last_inputs(kind, window):
    encoder = Encoder(NoEmbedding(NUM_INPUTS), cell=make_cell(kind))
    x_BTD = make_x().requires_grad_()
    state = bptt.final_states(encoder, x_BTD, window=window)
    expected = encoder.cell(x_BTD, encoder.initial_state(B)).state
    torch.testing.assert_close(tuple(state), tuple(expected), rtol=1e-12, atol=1e-12)
    if window == 0:
        assert not state.h_LBH.requires_grad
        return
    measure(*state).backward()
    reached_T = x_BTD.grad.abs().sum(dim=(0, 2)) > 0
    assert reached_T.tolist() == [window == "full" or t >= T - window for t in range(T)]


@pytest.mark.parametrize("window", [2, 6, "full"])
def test_windows_over_late_rows_give_the_values_of_sequences_of_their_own(kind, window):
    encoder = Encoder(NoEmbedding(NUM_INPUTS), cell=make_cell(kind))
    x_BTD, first_B = make_x(), torch.tensor([0, 3, 8, 5])
    state = bptt.final_states(encoder, x_BTD, window=window, first_B=first_B)
    alone = read_alone(encoder.cell, x_BTD, range(B), first_B.tolist(), [T] * B)
    torch.testing.assert_close(tuple(state), tuple(alone), rtol=1e-11, atol=1e-12)


class Final(torch.nn.Module):
    """The states after all columns, and after those from `begin_B` to `end_B`: a module, so that weights are inputs."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x_BTI, h_LBH, c_LBH):
        begin_B, end_B = torch.tensor([0, 1]), torch.tensor([3, 2])
        whole = self.cell(x_BTI, RNNState(h_LBH, c_LBH))
        part = self.cell(x_BTI, self.cell.initial_state(2), begin_B=begin_B, end_B=end_B)
        return whole.h_BTH, *(given for given in (*whole.state, *part.state) if given.numel())


@pytest.mark.parametrize("num_layers", [1, 2])
def test_gradients_are_those_of_finite_differences(kind, num_layers):
    final = Final(make_cell(kind, num_layers))
    h_LBH, c_LBH = (part[:, :2].contiguous() for part in make_state(final.cell))
    names, parameters = zip(*final.named_parameters(), strict=True)

    def run(x_BTI, h_LBH, *parameters):
        return torch.func.functional_call(final, dict(zip(names, parameters, strict=True)), (x_BTI, h_LBH, c_LBH))

    inputs = [make_x()[:2, :3].contiguous().requires_grad_(), h_LBH.requires_grad_(), *parameters]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)
