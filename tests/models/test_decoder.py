"""Scheduled sampling: which tokens the decoder is fed, and that its own carry no gradient."""

import pytest
import torch

from auxrnn.auxiliary import Geometry, Reconstruct, TokenLoss
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.decoder import Decoder, Sampling, feed_argmax, feed_sampled, feed_vector
from auxrnn.models.encoder import Head
from auxrnn.structs import Draws, RNNState, SequenceBatch
from tiny import make_encoder

M, S, D, E, H = 5, 6, 2, 3, 4


@pytest.fixture
def decoder():
    head = Head(H, head_size=7, output_size=D, drop_connect=0.5)
    return Decoder(LSTM(E, hidden_size=H, num_layers=2), head=head, feedback=feed_vector).double()


@pytest.fixture
def embedding():
    return make_encoder(input_size=D, embedding_size=E).embedding


@pytest.fixture
def x_MSD():
    return torch.randn(M, S, D, dtype=torch.float64)


@pytest.fixture
def start():
    return RNNState(*(torch.randn(2, M, H, dtype=torch.float64) for _ in range(2)))


def feed(decoder, embedding, x_MSD, start, is_true_MS, dropconnect_mask_OF=None):
    half_MS = torch.full((M, S), 0.5)
    return decoder.generate(embedding, x_MSD, start, Sampling(is_true_MS, half_MS), dropconnect_mask_OF)[1]


def some_true(seed=0):
    return torch.rand(M, S, generator=torch.Generator().manual_seed(seed)) < 0.5


def test_the_first_token_is_always_true(decoder, embedding, x_MSD, start):
    fed_MSD = feed(decoder, embedding, x_MSD, start, torch.zeros(M, S, dtype=torch.bool))
    assert torch.equal(fed_MSD[:, 0], x_MSD[:, 0])
    assert not (fed_MSD[:, 1:] == x_MSD[:, 1:]).any()


def test_true_tokens_only_are_fed_as_they_are(decoder, embedding, x_MSD, start):
    assert torch.equal(feed(decoder, embedding, x_MSD, start, torch.ones(M, S, dtype=torch.bool)), x_MSD)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("has_mask", [False, True])
def test_every_other_token_is_what_the_decoder_says_after_the_tokens_it_was_fed(
    decoder, embedding, x_MSD, start, seed, has_mask
):
    dropconnect_mask_OF = decoder.head.draw_dropconnect_mask(torch.Generator().manual_seed(1)) if has_mask else None
    is_true_MS = some_true(seed)
    fed_MSD = feed(decoder, embedding, x_MSD, start, is_true_MS, dropconnect_mask_OF)
    said_MSD = decoder(embedding, fed_MSD, start, dropconnect_mask_OF=dropconnect_mask_OF)
    expected_MSD = torch.where(is_true_MS[:, 1:, None], x_MSD[:, 1:], said_MSD[:, :-1])
    torch.testing.assert_close(fed_MSD[:, 1:], expected_MSD, rtol=1e-12, atol=1e-13)


def test_only_rows_with_a_token_to_replace_are_run(decoder, embedding, x_MSD, start):
    is_true_MS = torch.ones(M, S, dtype=torch.bool)
    is_true_MS[1, 3] = is_true_MS[4, 1:] = False
    expected_MSD = feed(decoder, embedding, x_MSD, start, is_true_MS)
    poisoned = RNNState(start.h_LBH.clone(), start.c_LBH.clone())
    poisoned.h_LBH[:, [0, 2, 3]] = torch.nan
    fed_MSD = feed(decoder, embedding, x_MSD, poisoned, is_true_MS)
    assert torch.equal(fed_MSD, expected_MSD)
    assert torch.equal((fed_MSD != x_MSD).all(dim=2), ~is_true_MS)


def test_what_comes_in_is_not_changed(decoder, embedding, x_MSD, start):
    is_true_MS = torch.zeros(M, S, dtype=torch.bool)
    before_MSD = x_MSD.clone()
    feed(decoder, embedding, x_MSD, start, is_true_MS)
    assert torch.equal(x_MSD, before_MSD)
    assert not is_true_MS.any()


def test_predictions_that_are_fed_carry_no_gradient(decoder, embedding, x_MSD, start):
    is_true_MS = some_true()
    is_true_MS[:2, 0] = False
    sources = [x_MSD.requires_grad_(), *(part.requires_grad_() for part in start), *decoder.parameters()]
    fed_MSD = feed(decoder, embedding, x_MSD, start, is_true_MS)
    grad_MSD, *others = torch.autograd.grad(fed_MSD.sum(), sources, allow_unused=True)
    is_kept_MS = is_true_MS.clone()
    is_kept_MS[:, 0] = True
    assert torch.equal(grad_MSD, is_kept_MS[:, :, None].expand(M, S, D).double())
    assert others == [None] * len(others)


def reconstruction(true_probability):
    """Give a reconstruction's loss, and a function for the loss of the same segments with given inputs."""
    encoder, draws = make_encoder(input_size=D, embedding_size=E), Draws(0, "test", 0)
    torch.manual_seed(5)
    head = Head(H, head_size=7, output_size=D, drop_connect=0.0)
    decoder = Decoder(LSTM(E, hidden_size=H, num_layers=1), head=head, feedback=feed_vector)
    geometry = Geometry(1, S)
    objective = Reconstruct(
        decoder, token_loss=TokenLoss(is_token=False), geometry=geometry, placement="past", order="forward", window=2
    ).double()
    batch = SequenceBatch(torch.randn(M, 3 * S, D, dtype=torch.float64), torch.zeros(M, dtype=torch.long))
    segments = objective.sample(batch.length_B, rng=draws.rng("segments"))
    main = RNNState(*(torch.randn(1, M, H, dtype=torch.float64) for _ in range(2)))
    loss = objective.loss(encoder, batch, segments, main, draws=draws, true_probability=true_probability)
    token_MSD = torch.stack([batch.x_BT[m, start : start + S + 1] for m, start in enumerate(segments.start_M)])
    return loss.total, token_MSD, lambda x_MSD: decoder(encoder.embedding, x_MSD, main, dropconnect_mask_OF=None)


def test_with_probability_one_all_inputs_are_true():
    total, token_MSD, decode = reconstruction(true_probability=1.0)
    expected = (decode(token_MSD[:, :-1]) - token_MSD[:, 1:]).square().sum()
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-13)


def test_with_probability_zero_only_the_first_input_is_true():
    total, token_MSD, decode = reconstruction(true_probability=0.0)
    fed_MSD = token_MSD[:, :1]
    for _ in range(S - 1):
        fed_MSD = torch.cat([fed_MSD, decode(fed_MSD)[:, -1:]], dim=1)
    expected = (decode(fed_MSD) - token_MSD[:, 1:]).square().sum()
    torch.testing.assert_close(total, expected, rtol=1e-11, atol=1e-12)


def test_sampled_characters_follow_the_frequencies_of_the_softmax():
    num_draws, logits_V = 10_000, torch.tensor([0.3, -1.0, 2.0, 0.0], dtype=torch.float64)
    uniform_M = (torch.arange(num_draws) + 0.5) / num_draws
    drawn_M = feed_sampled(logits_V.expand(num_draws, 4), uniform_M.double())
    frequency_V = torch.bincount(drawn_M, minlength=4) / num_draws
    # Evenly spaced draws miss a probability by less than two of their spacings.
    torch.testing.assert_close(frequency_V.double(), logits_V.softmax(0), rtol=0, atol=2 / num_draws)


def test_a_sampled_character_is_always_one_of_the_vocabulary():
    # In single precision the probabilities of many of these rows add up to less than the highest draw.
    output_MO, highest = torch.randn(1000, 50), 1 - 2**-24
    assert float(output_MO.softmax(dim=1).cumsum(dim=1)[:, -1].min()) < highest
    assert feed_sampled(output_MO, torch.full((1000,), highest)).max() == 49
    assert feed_sampled(output_MO, torch.zeros(1000)).max() == 0


def test_argmax_feeds_the_likeliest_character():
    assert feed_argmax(torch.tensor([[0.0, 3.0, 1.0], [9.0, 1.0, 2.0]]), torch.rand(2)).tolist() == [1, 0]
