"""The embedding folded into the recurrence is the embedding applied before it."""

import torch

from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.encoder import Encoder, NoEmbedding, TokenEmbedding
from tiny import make_encoder

B, T, V, E, H = 3, 7, 6, 4, 5


def assert_same_runs(encoder, x_BT, embedded_BTE, parameters):
    """Compare the encoder's run with its bare cell on inputs that were embedded beforehand."""
    state = encoder.initial_state(x_BT.shape[0])
    ours = encoder(x_BT, state)
    theirs = encoder.cell(embedded_BTE, state)
    torch.testing.assert_close((ours.h_BTH, *ours.state), (theirs.h_BTH, *theirs.state), rtol=1e-12, atol=1e-13)
    our_grads, their_grads = (
        torch.autograd.grad((run.h_BTH.sin().sum() + run.state.c_LBH.cos().sum()), parameters) for run in (ours, theirs)
    )
    assert all(bool(grad.any()) for grad in their_grads)
    torch.testing.assert_close(our_grads, their_grads, rtol=1e-10, atol=1e-12)


def test_a_folded_embedding_equals_the_unfolded_in_values_and_gradients():
    encoder = make_encoder(num_layers=2)
    x_BTD = torch.randn(B, T, 2, dtype=torch.float64, requires_grad=True)
    embedded_BTE = x_BTD @ encoder.embedding.weight_ED.T + encoder.embedding.bias_E
    assert_same_runs(encoder, x_BTD, embedded_BTE, [x_BTD, *encoder.parameters()])


def test_tokens_are_read_as_their_vectors():
    embedding = TokenEmbedding(V, embedding_size=E)
    encoder = Encoder(embedding, cell=LSTM(E, hidden_size=H, num_layers=1)).double()
    x_BT = torch.randint(V, (B, T))
    one_hot_BTV = torch.nn.functional.one_hot(x_BT, V).double()
    assert_same_runs(encoder, x_BT, one_hot_BTV @ embedding.weight_VE, list(encoder.parameters()))


def test_without_an_embedding_the_input_itself_is_read():
    encoder = Encoder(NoEmbedding(2), cell=LSTM(2, hidden_size=H, num_layers=1)).double()
    x_BTD = torch.randn(B, T, 2, dtype=torch.float64, requires_grad=True)
    assert_same_runs(encoder, x_BTD, x_BTD, [x_BTD, *encoder.parameters()])
    assert not list(encoder.embedding.parameters())


def test_rows_may_begin_late_through_the_encoder():
    encoder = make_encoder()
    x_BTD = torch.randn(B, T, 2, dtype=torch.float64)
    begin_B = torch.tensor([0, 2, 4])
    together = encoder(x_BTD, encoder.initial_state(B), begin_B=begin_B).state
    for b in range(B):
        alone = encoder(x_BTD[b : b + 1, begin_B[b] :], encoder.initial_state(1)).state
        torch.testing.assert_close(together.select(torch.tensor([b])), alone, rtol=1e-12, atol=1e-13)
