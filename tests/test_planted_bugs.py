"""The comparisons that guard the method can fail: each bug planted here is caught by the check it belongs to."""

import contextlib
import types

import pytest
import torch

import slow_reference as slow
from auxrnn import auxiliary, bptt
from auxrnn.models.cells import recurrence
from auxrnn.models.decoder import Decoder
from auxrnn.models.encoder import Head
from auxrnn.models.network import LossTerms
from auxrnn.structs import Draws, LossSum, RNNState
from tiny_network import make_batch, make_network

T, WINDOW = 20, 4
DRAWS = Draws(3, "test", 7)


def assert_same(actual, expected, parameters):
    """Compare two losses in value and in all gradients."""
    assert actual.requires_grad
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-12)
    ours, theirs = (
        torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True) for loss in (actual, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def check_read():
    network, batch = make_network("none"), make_batch(num_steps=T)
    state = bptt.final_states(network.encoder, batch.x_BT, window=WINDOW)
    slowly = [slow.read(network.encoder, x_TD, num_steps=T, window=WINDOW)[-1] for x_TD in batch.x_BT]
    expected = sum(h_H.sin().sum() + c_H.cos().sum() for h_H, c_H in slowly)
    actual = state.h_LBH.sin().sum() + state.c_LBH.cos().sum()
    assert_same(actual, expected, list(network.encoder.parameters()))


def check_objective(name, first_B=None):
    """Compare a whole auxiliary step with a loop over its segments, divided once by the number of tokens."""
    network, batch = make_network(name, auxiliary_window=WINDOW), make_batch(num_steps=T, first_B=first_B)
    objective, encoder = network.objective, network.encoder
    losses = network.losses(batch, terms=LossTerms(False, True, 0), draws=DRAWS, true_probability=1.0)
    head = objective.decoder.head if name == "reconstruct" else objective.head
    kept = head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))
    segments = objective.sample(batch.length_B, rng=DRAWS.rng("segments"))
    total = 0.0
    for row, anchor, start, length in zip(*[part.tolist() for part in segments], strict=True):
        x_TD = batch.x_BT[row, 0 if first_B is None else int(first_B[row]) :]
        where = {"anchor": anchor, "length": length} | ({"start": start} if name == "reconstruct" else {})
        total = total + getattr(slow, name)(objective, encoder, x_TD, kept=kept, **where)
    expected = total / int(segments.length_M.sum())
    assert_same(losses.combine(1.0), expected, [*encoder.parameters(), *objective.parameters()])


def check_reconstruct():
    check_objective("reconstruct")


def check_predict():
    check_objective("predict")


def check_padding():
    check_objective("reconstruct", first_B=torch.tensor([0, 3, 11, 18]))


def window_off_by_one(patch):
    right = bptt.states_at

    def wrong(encoder, x_BT, windows, **options):
        return right(encoder, x_BT, [window._replace(window=window.window + 1) for window in windows], **options)

    patch.setattr(bptt, "states_at", wrong)


def segment_window_off_by_one(patch):
    right = bptt.forward_truncated
    patch.setattr(auxiliary, "forward_truncated", lambda *parts, window: right(*parts, window=window + 1))


def scanned_state_dropped(patch):
    patch.setattr(bptt, "_cut", lambda state: RNNState(*(torch.zeros_like(part) for part in state)))


def cell_state_dropped_at_the_cut(patch):
    patch.setattr(bptt, "_cut", lambda state: RNNState(state.h_LBH.detach(), torch.zeros_like(state.c_LBH)))


def cut_after_the_window(patch):
    right = bptt._forward_windows
    patch.setattr(bptt, "_forward_windows", lambda *parts: bptt._cut(right(*parts)))


def scan_with_graph(patch):
    """Read the steps before the windows with a graph, for `bptt` alone; by itself this costs memory only."""
    fake = types.SimpleNamespace(**vars(torch) | {"set_grad_enabled": lambda _: contextlib.nullcontext()})
    patch.setattr(bptt, "torch", fake)


def only_the_output_cut(patch):
    scan_with_graph(patch)
    patch.setattr(bptt, "_cut", lambda state: RNNState(state.h_LBH.detach(), state.c_LBH))


def nothing_cut(patch):
    scan_with_graph(patch)
    patch.setattr(bptt, "_cut", lambda state: state)


def anchor_off_by_one(patch):
    right = auxiliary.Reconstruct.gradient_window

    def wrong(self, batch, segments):
        window = right(self, batch, segments)
        return window._replace(column_M=window.column_M - 1)

    patch.setattr(auxiliary.Reconstruct, "gradient_window", wrong)


def decoder_started_from_zeros(patch):
    patch.setattr(Decoder, "start", lambda self, main: self.cell.initial_state(main.h_LBH.shape[1]))


def order_of_segments_mixed_up(patch):
    right = auxiliary.segment_positions
    patch.setattr(auxiliary, "segment_positions", lambda segments, order: right(segments, order="forward"))


def divided_by_the_batch(patch):
    patch.setattr(LossSum, "mean", lambda self: self.total / 4)


def shorter_segments_counted_as_long(patch):
    def wrong(segments):
        return torch.ones(len(segments.length_M), int(segments.length_M.max()), dtype=torch.bool)

    patch.setattr(auxiliary, "find_targets", wrong)


def padding_read(patch):
    patch.setattr(recurrence, "SATURATING", 0.0)


def mask_not_scaled(patch):
    right = Head.forward
    patch.setattr(
        Head, "forward", lambda self, x, kept=None: right(self, x, None if kept is None else kept.clamp(max=1))
    )


PLANTED = [
    (window_off_by_one, check_read),
    (window_off_by_one, check_reconstruct),
    (segment_window_off_by_one, check_predict),
    (scanned_state_dropped, check_read),
    (scanned_state_dropped, check_reconstruct),
    (scanned_state_dropped, check_predict),
    (cell_state_dropped_at_the_cut, check_read),
    (cell_state_dropped_at_the_cut, check_predict),
    (cut_after_the_window, check_read),
    (cut_after_the_window, check_reconstruct),
    (only_the_output_cut, check_read),
    (nothing_cut, check_read),
    (nothing_cut, check_reconstruct),
    (nothing_cut, check_predict),
    (anchor_off_by_one, check_reconstruct),
    (decoder_started_from_zeros, check_reconstruct),
    (order_of_segments_mixed_up, check_reconstruct),
    (divided_by_the_batch, check_reconstruct),
    (divided_by_the_batch, check_predict),
    (shorter_segments_counted_as_long, check_padding),
    (padding_read, check_padding),
    (mask_not_scaled, check_predict),
]


@pytest.mark.parametrize(("bug", "check"), PLANTED, ids=lambda part: part.__name__)
def test_a_planted_bug_is_caught(bug, check):
    with pytest.MonkeyPatch.context() as patch:
        bug(patch)
        with pytest.raises(AssertionError):
            check()


@pytest.mark.parametrize("check", [check_read, check_reconstruct, check_predict, check_padding])
def test_the_same_comparison_passes_without_a_bug(check):
    check()
