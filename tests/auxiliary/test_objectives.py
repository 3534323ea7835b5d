"""Both objectives equal the slow reference, in values and gradients, in every placement, order and window."""

import pytest
import torch

import slow_reference as slow
from auxrnn.auxiliary import Geometry, Predict, Reconstruct, TokenLoss
from auxrnn.bptt import states_at
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.decoder import Decoder, feed_argmax, feed_sampled, feed_vector, feed_vector_and_mask
from auxrnn.models.encoder import Encoder, Head, TokenEmbedding, VectorEmbedding
from auxrnn.structs import Draws, SequenceBatch
from tiny import make_encoder

B, T, D, E, H, V = 3, 23, 2, 3, 4, 5
DRAWS = Draws(seed=3, phase="test", step=7)


def make_reconstruct(
    *,
    placement="past_future",
    order="reversed",
    window=3,
    num_segments=2,
    length=6,
    decoder_layers=2,
    feedback=feed_vector,
):
    is_vector = feedback in (feed_vector, feed_vector_and_mask)
    head = Head(H, head_size=6, output_size=D if is_vector else V, drop_connect=0.5)
    decoder = Decoder(LSTM(E, hidden_size=H, num_layers=decoder_layers), head=head, feedback=feedback)
    return Reconstruct(
        decoder,
        token_loss=TokenLoss(is_token=not is_vector),
        geometry=Geometry(num_segments, length),
        placement=placement,
        order=order,
        window=window,
    ).double()


def make_predict(*, window=3, num_segments=2, length=6, num_upper=1):
    upper = LSTM(H, hidden_size=H, num_layers=num_upper) if num_upper else None
    head = Head(H, head_size=6, output_size=D, drop_connect=0.5)
    geometry = Geometry(num_segments, length)
    return Predict(upper, head=head, token_loss=TokenLoss(is_token=False), geometry=geometry, window=window).double()


def make_batch(*, length=T, first_B=None):
    x_BTD = torch.randn(B, length, D, dtype=torch.float64, requires_grad=True)
    return SequenceBatch(x_BTD, torch.zeros(B, dtype=torch.long), first_B)


def token_encoder_and_batch():
    cell = LSTM(E, hidden_size=H, num_layers=1)
    encoder = Encoder(TokenEmbedding(V, embedding_size=E), cell=cell).double()
    return encoder, SequenceBatch(torch.randint(V, (B, T)), torch.zeros(B, dtype=torch.long))


def run_fast(objective, encoder, batch, *, true_probability=1.0, draws=DRAWS):
    segments = objective.sample(batch.length_B, rng=DRAWS.rng("segments"))
    (state,) = states_at(encoder, batch.x_BT, [objective.gradient_window(batch, segments)], first_B=batch.first_B)
    loss = objective.loss(encoder, batch, segments, state, draws=draws, true_probability=true_probability)
    return segments, loss


def sum_slowly(objective, encoder, batch, segments, one_segment):
    """Add the slow losses of all segments, each on its own sequence without its padding."""
    total, num_tokens = 0.0, 0
    for m, (row, anchor, start, length) in enumerate(zip(*[part.tolist() for part in segments], strict=True)):
        first = 0 if batch.first_B is None else int(batch.first_B[row])
        x_TD = batch.x_BT[row, first:]
        total = total + one_segment(m, x_TD, anchor, start, length)
        num_tokens += length
    return total, num_tokens


def assert_same(loss, expected, parameters):
    total, num_tokens = expected
    assert int(loss.num_tokens) == num_tokens
    torch.testing.assert_close(loss.total, total, rtol=1e-10, atol=1e-12)
    ours = torch.autograd.grad(loss.total, parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True)
    assert all(bool(grad.any()) for grad in theirs[-4:]), "the head must receive a gradient"
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-9, atol=1e-11)


def parameters_of(*parts):
    return [parameter for part in parts for parameter in ([part] if torch.is_tensor(part) else part.parameters())]


@pytest.mark.parametrize("window", [0, 1, 4, 40, "full"])
@pytest.mark.parametrize("order", ["reversed", "forward"])
@pytest.mark.parametrize("placement", ["immediate", "past", "past_future"])
def test_reconstruct_equals_the_slow_reference(placement, order, window):
    encoder, batch = make_encoder(), make_batch()
    objective = make_reconstruct(placement=placement, order=order, window=window)
    kept = objective.decoder.head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))
    segments, loss = run_fast(objective, encoder, batch)

    def one(m, x_TD, anchor, start, length):
        return slow.reconstruct(objective, encoder, x_TD, anchor=anchor, start=start, length=length, kept=kept)

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(batch.x_BT, encoder, objective))


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("decoder_layers", [1, 2])
def test_reconstruct_equals_the_slow_reference_at_any_depth(num_layers, decoder_layers):
    encoder, batch = make_encoder(num_layers=num_layers), make_batch()
    objective = make_reconstruct(decoder_layers=decoder_layers)
    segments, loss = run_fast(objective, encoder, batch, draws=None)

    def one(m, x_TD, anchor, start, length):
        return slow.reconstruct(objective, encoder, x_TD, anchor=anchor, start=start, length=length)

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(batch.x_BT, encoder, objective))


@pytest.mark.parametrize("true_probability", [0.0, 0.4, 0.9])
def test_scheduled_sampling_equals_the_slow_reference(true_probability):
    encoder, batch, objective = make_encoder(), make_batch(), make_reconstruct()
    kept = objective.decoder.head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))
    segments, loss = run_fast(objective, encoder, batch, true_probability=true_probability)
    is_true_MS = torch.rand(2, 6, 6, generator=DRAWS.rng("sampling"))[0] < true_probability

    def one(m, x_TD, anchor, start, length):
        return slow.reconstruct(
            objective,
            encoder,
            x_TD,
            anchor=anchor,
            start=start,
            length=length,
            kept=kept,
            is_true=is_true_MS[m],
            choose=lambda output, step: output,
        )

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(batch.x_BT, encoder, objective))


@pytest.mark.parametrize("feedback", [feed_sampled, feed_argmax])
def test_characters_with_scheduled_sampling_equal_the_slow_reference(feedback):
    encoder, batch = token_encoder_and_batch()
    objective = make_reconstruct(feedback=feedback)
    kept = objective.decoder.head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))
    segments, loss = run_fast(objective, encoder, batch, true_probability=0.5)
    uniform_2MS = torch.rand(2, 6, 6, generator=DRAWS.rng("sampling"))

    def one(m, x_T, anchor, start, length):
        def choose(output, step):
            if feedback is feed_argmax:
                return output.argmax()
            return (output.softmax(0).cumsum(0)[:-1] < uniform_2MS[1, m, step]).sum()

        return slow.reconstruct(
            objective,
            encoder,
            x_T,
            anchor=anchor,
            start=start,
            length=length,
            kept=kept,
            is_true=uniform_2MS[0, m] < 0.5,
            choose=choose,
        )

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(encoder, objective))


@pytest.mark.parametrize("num_upper", [0, 1, 2])
@pytest.mark.parametrize("window", [1, 4, 6, 40, "full"])
def test_predict_equals_the_slow_reference(window, num_upper):
    encoder, batch = make_encoder(), make_batch()
    objective = make_predict(window=window, num_upper=num_upper)
    kept = objective.head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))
    segments, loss = run_fast(objective, encoder, batch)

    def one(m, x_TD, anchor, start, length):
        assert start == anchor
        return slow.predict(objective, encoder, x_TD, anchor=anchor, length=length, kept=kept)

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(batch.x_BT, encoder, objective))


@pytest.mark.parametrize("window", [2, "full"])
@pytest.mark.parametrize("kind", ["reconstruct", "predict"])
def test_padding_changes_no_loss_and_no_gradient(kind, window):
    first_B = torch.tensor([0, 9, T - 2])
    encoder, batch = make_encoder(), make_batch(first_B=first_B)
    objective = (make_reconstruct if kind == "reconstruct" else make_predict)(window=window, length=9)
    segments, loss = run_fast(objective, encoder, batch, draws=None)

    def one(m, x_TD, anchor, start, length):
        if kind == "predict":
            return slow.predict(objective, encoder, x_TD, anchor=anchor, length=length)
        return slow.reconstruct(objective, encoder, x_TD, anchor=anchor, start=start, length=length)

    expected = sum_slowly(objective, encoder, batch, segments, one)
    assert_same(loss, expected, parameters_of(batch.x_BT, encoder, objective))


def make_gaps(*, has_mask):
    """Give sequences of two values a step, a third of them gaps, and masks of the two where there are any."""
    first_B, is_there_BTD = torch.tensor([0, 9, T - 4]), torch.rand(B, T, D) > 1 / 3
    value_BTD = torch.where(is_there_BTD, torch.randn(B, T, D, dtype=torch.float64), 0.0)
    x_BTD = torch.cat([value_BTD, is_there_BTD.double()], dim=2) if has_mask else value_BTD
    batch = SequenceBatch(x_BTD.requires_grad_(), torch.zeros(B, dtype=torch.long), first_B, is_there_BTD)
    embedding = VectorEmbedding(x_BTD.shape[2], embedding_size=E)
    return Encoder(embedding, cell=LSTM(E, hidden_size=H, num_layers=1)).double(), batch


def count_targets(batch, segments, order):
    """Count the values that are targets, as steps: a step counts by the share of its values that are there."""
    num_values = 0
    for row, _anchor, start, length in zip(*[part.tolist() for part in segments], strict=True):
        targets = range(start, start + length) if order == "reversed" else range(start + 1, start + length + 1)
        first = int(batch.first_B[row])
        num_values += sum(int(batch.is_there_BTD[row, first + target].sum()) for target in targets)
    return num_values / D


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("true_probability", [0.4, 1.0])
@pytest.mark.parametrize("kind", ["reconstruct", "predict"])
def test_gaps_are_no_targets_in_the_slow_reference_either(kind, true_probability, has_mask):
    encoder, batch = make_gaps(has_mask=has_mask)
    feedback = feed_vector_and_mask if has_mask else feed_vector
    objective = make_reconstruct(feedback=feedback) if kind == "reconstruct" else make_predict()
    segments, loss = run_fast(objective, encoder, batch, true_probability=true_probability)
    is_true_MS = torch.rand(2, 6, 6, generator=DRAWS.rng("sampling"))[0] < true_probability
    head = objective.decoder.head if kind == "reconstruct" else objective.head
    kept = head.draw_dropconnect_mask(DRAWS.rng("decoder drop-connect"))

    def one(m, x_TD, anchor, start, length):
        first = int(batch.first_B[segments.row_M[m]])
        options = {"anchor": anchor, "length": length, "is_there_TD": batch.is_there_BTD[segments.row_M[m], first:]}
        if kind == "predict":
            return slow.predict(objective, encoder, x_TD, kept=kept, **options)
        options |= {"start": start, "is_true": is_true_MS[m]}
        # Of a step that is fed back all values are there.
        return slow.reconstruct(
            objective,
            encoder,
            x_TD,
            kept=kept,
            choose=lambda output, step: torch.cat([output, torch.ones(D * has_mask)]),
            **options,
        )

    total, _ = sum_slowly(objective, encoder, batch, segments, one)
    num_steps = count_targets(batch, segments, "reversed" if kind == "reconstruct" else "forward")
    assert float(loss.num_tokens) == pytest.approx(num_steps)
    torch.testing.assert_close(loss.total, total, rtol=1e-10, atol=1e-12)
    parameters = parameters_of(batch.x_BT, encoder, objective)
    ours = torch.autograd.grad(loss.total, parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad(total, parameters, allow_unused=True, materialize_grads=True)
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-9, atol=1e-11)


def test_a_segment_longer_than_the_data_is_clipped():
    encoder, batch, objective = make_encoder(), make_batch(length=5), make_reconstruct(length=600)
    segments, loss = run_fast(objective, encoder, batch)
    assert segments.length_M.tolist() == [4] * 6
    assert int(loss.num_tokens) == 24


def test_a_batch_of_sequences_of_one_step_has_no_tokens_and_no_loss():
    encoder, batch, objective = make_encoder(), make_batch(length=1), make_reconstruct()
    _, loss = run_fast(objective, encoder, batch)
    assert int(loss.num_tokens) == 0
    assert float(loss.mean().detach()) == 0.0


@pytest.mark.parametrize("kind", ["reconstruct", "predict"])
def test_gradcheck(kind):
    encoder = make_encoder()
    objective = (make_reconstruct if kind == "reconstruct" else make_predict)(window="full", length=4)
    label_B = torch.zeros(B, dtype=torch.long)

    def loss_of(x_BTD):
        _, loss = run_fast(objective, encoder, SequenceBatch(x_BTD, label_B), draws=None)
        return loss.mean()

    x_BTD = torch.randn(B, 7, D, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss_of, (x_BTD,))


@pytest.mark.parametrize("window", [1, 4])
def test_reconstruct_reaches_only_the_window_left_of_the_anchor(window):
    encoder, batch = make_encoder(), make_batch(length=40)
    objective = make_reconstruct(placement="immediate", window=window, num_segments=1)
    segments = objective.sample(batch.length_B, rng=DRAWS.rng("segments"))
    (state,) = states_at(encoder, batch.x_BT, [objective.gradient_window(batch, segments)])
    state.c_LBH.sum().backward()
    reached_BT = batch.x_BT.grad.abs().sum(dim=2) > 0
    for row, anchor in zip(segments.row_M.tolist(), segments.anchor_M.tolist(), strict=True):
        assert reached_BT[row].tolist() == [anchor - window < t <= anchor for t in range(40)]


def test_rebuild_gives_what_the_decoder_says_when_fed_only_itself():
    encoder, batch, objective = make_encoder(), make_batch(), make_reconstruct()
    with torch.no_grad():
        segments = objective.sample(batch.length_B, rng=DRAWS.rng("segments"))
        (state,) = states_at(encoder, batch.x_BT, [objective.gradient_window(batch, segments)])
        rebuilt_MSD = objective.generate(encoder, batch, segments, state)
        for m, (row, anchor, start, length) in enumerate(zip(*[part.tolist() for part in segments], strict=True)):
            main = slow.read(encoder, batch.x_BT[row], num_steps=anchor + 1, window="full")
            decoder_state, token = slow.start_decoder(objective.decoder.cell, main), batch.x_BT[row, start + length]
            for s in range(length):
                embedded = slow.embed(encoder.embedding, token)
                decoder_state = slow.lstm_step(objective.decoder.cell, embedded, decoder_state)
                token = slow.head(objective.decoder.head, decoder_state[-1][0], None)
                torch.testing.assert_close(rebuilt_MSD[m, s], token, rtol=1e-10, atol=1e-12)
