"""Scheduled sampling in the kernel's own pass feeds what the loop over torch's LSTM feeds, and teaches the same."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from auxrnn.kernels.library import WORTH_A_THREAD
from auxrnn.models.decoder import Decoder, Sampling, feed_argmax, feed_sampled, feed_vector
from auxrnn.models.encoder import Embedding, Head, TokenEmbedding, VectorEmbedding
from auxrnn.structs import RNNState
from stacks import assert_near

M, S, E, H, VOCABULARY_SIZE = 37, 8, 3, 9, 23
KINDS = [(feed_vector, 1), (feed_vector, 2), (feed_vector, 3), (feed_vector, 4), (feed_argmax, 0), (feed_sampled, 0)]


class Work(NamedTuple):
    """A decoder and what it reads."""

    decoder: Decoder
    embedding: Embedding
    x_MS: Tensor
    start: RNNState
    sampling: Sampling
    dropconnect_mask_OF: Tensor | None

    def sources(self):
        """Give all that a loss on the decoder's outputs may teach."""
        x = [self.x_MS] if self.x_MS.is_floating_point() else []
        start = [part for part in self.start if part.numel()]
        return [*x, *start, *self.decoder.parameters(), *self.embedding.parameters()]

    def decode(self):
        """Give predictions, some inputs of which are predictions too."""
        return self.decoder(
            self.embedding, self.x_MS, self.start, dropconnect_mask_OF=self.dropconnect_mask_OF, sampling=self.sampling
        )

    def generate(self):
        """Give the inputs as they are fed."""
        return self.decoder.generate(self.embedding, self.x_MS, self.start, self.sampling, self.dropconnect_mask_OF)[1]


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0].__name__}-{kind[1]}")
def work(request, kind):
    feedback, num_features = request.param
    output_size = num_features or VOCABULARY_SIZE
    head = Head(H, head_size=13, output_size=output_size, drop_connect=0.5)
    decoder = Decoder(kind(E, hidden_size=H, num_layers=2), head=head, feedback=feedback)
    embedding = (VectorEmbedding if num_features else TokenEmbedding)(output_size, embedding_size=E)
    with torch.no_grad():
        for parameter in [*decoder.parameters(), *embedding.parameters()]:
            parameter.add_(0.5 * torch.randn_like(parameter))
    x_MS = torch.randn(M, S, num_features) if num_features else torch.randint(VOCABULARY_SIZE, (M, S))
    start = RNNState(*(torch.randn_like(part).requires_grad_() for part in decoder.cell.initial_state(M)))
    sampling = Sampling(torch.rand(M, S) < 0.5, torch.rand(M, S))
    sampling.is_true_MS[:3] = torch.tensor([[True], [False], [True]])
    dropconnect_mask_OF = head.draw_dropconnect_mask(torch.Generator().manual_seed(1))
    return Work(decoder, embedding, x_MS.requires_grad_(bool(num_features)), start, sampling, dropconnect_mask_OF)


def learn(work):
    """Give the predictions and all gradients of a loss on them."""
    output_MSO = work.decode()
    loss = (output_MSO * torch.arange(output_MSO.numel()).reshape(output_MSO.shape).sin()).sum()
    return output_MSO, torch.autograd.grad(loss, work.sources())


def test_the_kernel_feeds_what_the_loop_feeds(build, work, on_torch):
    fused_MS = work.generate()
    with on_torch():
        looped_MS = work.generate()
    if work.x_MS.is_floating_point():
        assert_near([fused_MS], [looped_MS], relative=1e-5)
    else:
        assert torch.equal(fused_MS, looped_MS)
    is_fed_back_MS = work.sampling.find_fed_back()
    assert torch.equal(fused_MS[~is_fed_back_MS], work.x_MS[~is_fed_back_MS])
    assert (fused_MS[is_fed_back_MS] != work.x_MS[is_fed_back_MS]).any()


@pytest.mark.parametrize("is_dropping", [False, True])
def test_predictions_and_gradients_equal_those_of_the_loop(build, work, on_torch, is_dropping):
    work = work if is_dropping else work._replace(dropconnect_mask_OF=None)
    output_MSO, grads = learn(work)
    with on_torch():
        expected_MSO, expected_grads = learn(work)
    assert_near([output_MSO], [expected_MSO], relative=1e-5)
    assert_near(grads, expected_grads, relative=1e-4)


@pytest.mark.parametrize("work", [kind for kind in KINDS if kind[0] is feed_vector], indirect=True)
def test_what_was_fed_back_carries_no_gradient_and_what_was_true_does(build, work):
    grad_MSD = learn(work)[1][0]
    assert torch.equal(grad_MSD.any(dim=2), ~work.sampling.find_fed_back())


def test_what_comes_in_is_not_changed(build, work):
    before_MS = work.x_MS.detach().clone()
    learn(work)
    work.generate()
    assert torch.equal(work.x_MS, before_MS)


def test_fed_predictions_do_not_depend_on_the_number_of_threads(build, work):
    rows_M = torch.arange(M).repeat(20)
    assert len(rows_M) * S * H**2 * 4 > WORTH_A_THREAD
    many = work._replace(
        x_MS=work.x_MS[rows_M],
        start=work.start.select(rows_M),
        sampling=Sampling(work.sampling.is_true_MS[rows_M], work.sampling.uniform_MS[rows_M]),
    )
    one = many.generate()
    torch.set_num_threads(3)
    three = many.generate()
    torch.set_num_threads(1)
    assert torch.equal(one, three)


def test_a_head_learns_on_a_frozen_recurrence(best_build, work):
    frozen = [*work.embedding.parameters(), *work.decoder.cell.parameters()]
    for parameter in frozen:
        parameter.requires_grad_(False)
    start = RNNState(*(part.detach() for part in work.start))
    output_MSO = work._replace(start=start, x_MS=work.x_MS.detach()).decode()
    output_MSO.sum().backward()
    assert all(parameter.grad is not None for parameter in work.decoder.head.parameters())
    assert all(parameter.grad is None for parameter in frozen)
