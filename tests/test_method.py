"""`RLSTM` and `PLSTM`: the command line's networks and losses behind an interface that every PyTorch user knows."""

import copy
import inspect

import pytest
import torch

from auxrnn import PLSTM, RLSTM, Stream
from auxrnn.build import InputSpec, build_network
from auxrnn.config import DataConfig, ModelConfig, ObjectiveConfig, RunConfig, SegmentConfig, flatten, unflatten
from auxrnn.models.network import LossTerms
from auxrnn.planning import choose_sizes
from auxrnn.presets import find_recipe
from auxrnn.structs import Draws, SequenceBatch

B, T, D, V, C = 4, 12, 2, 7, 3
SMALL = {"num_classes": C, "window": 4, "segment_length": 5, "hidden_size": 5, "embedding_size": 3, "head_size": 6}
METHODS = {"reconstruct": RLSTM, "predict": PLSTM}
RAW = {"normalize_auxiliary": False}


def make_model(method, *, is_token=False, **options):
    size = {"vocabulary_size": V} if is_token else {"input_size": D}
    return method(**size | SMALL | options).double()


def make_data(*, is_token=False):
    x = torch.randint(V, (B, T)) if is_token else torch.randn(B, T, D, dtype=torch.float64)
    return x, torch.tensor([0, 2, 1, 2])


@pytest.fixture(params=METHODS.values())
def method(request):
    return request.param


@pytest.mark.parametrize("is_token", [False, True])
@pytest.mark.parametrize("objective", METHODS)
def test_the_loss_is_that_of_the_command_line_on_the_same_draws(objective, is_token):
    config = RunConfig(
        data=DataConfig(data="x"),
        model=ModelConfig(hidden_size=5, embedding_size=3, head_size=6, drop_connect=0.2),
        segments=SegmentConfig(segment_length=5, placement="immediate"),
        loss=ObjectiveConfig(objective=objective, supervised_window=4, auxiliary_window=5),
    )
    network = build_network(config, InputSpec(1 if is_token else D, V if is_token else None, C, T)).double()
    model = make_model(METHODS[objective], is_token=is_token, auxiliary_weight=0.5, **RAW)
    model.load_state_dict(network.state_dict())
    x, y = make_data(is_token=is_token)
    draws = Draws(int(torch.randint(2**62, (), generator=torch.Generator().manual_seed(5))), "loss", 0)
    expected = network.losses(
        SequenceBatch(x, y), terms=LossTerms(True, True, 4), draws=draws, true_probability=0.5
    ).combine(0.5)
    loss = model.loss(x, y, rng=torch.Generator().manual_seed(5), true_probability=0.5)
    assert torch.equal(loss, expected)
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_defaults_are_those_of_the_fast_recipe(method):
    config = unflatten({"data": "x"} | find_recipe("fast", "lstm"))
    values = flatten(choose_sizes(config, InputSpec(1, None, 10, 5000), num_labeled=60_000, num_examples=60_000))
    values["window"] = values.pop("supervised_window")
    for name, parameter in inspect.signature(method).parameters.items():
        if name in values and name != "auxiliary_window":
            assert parameter.default == values[name], name


@pytest.mark.parametrize("is_token", [False, True])
def test_a_constant_prediction_costs_one_whatever_the_scale(method, is_token):
    """The classifier of nothing: a decoder whose output is the mean (or the unigram log-probabilities)."""
    model = make_model(method, is_token=is_token, segment_length="full", drop_connect=0.0)
    x, _ = make_data(is_token=is_token)
    lengths = [T, 5, 9, 7]
    real = torch.cat([x[row, :length] for row, length in enumerate(lengths)])
    if not is_token:
        real, x = 50 * real + 7, 50 * x + 7
    head = model.objective.head if method is PLSTM else model.objective.decoder.head
    with torch.no_grad():
        head.output.weight.zero_()
        head.output.bias.copy_((torch.bincount(real, minlength=V) / len(real)).log() if is_token else real.mean(0))
    constant = -head.output.bias[real].mean() if is_token else (real - real.mean(0)).square().sum(1).mean()
    raw = make_model(method, is_token=is_token, segment_length="full", drop_connect=0.0, **RAW)
    raw.load_state_dict(model.state_dict())
    losses = [one.pretrain_loss(x, lengths, rng=seeded()) for one in (model, raw)]
    torch.testing.assert_close(losses[0] * constant.detach(), losses[1])
    assert 0.5 < losses[0].item() < 1.5


def test_a_batch_without_variation_has_a_finite_loss(method):
    x, y = torch.ones(B, T, D, dtype=torch.float64), torch.tensor([0, 2, 1, 2])
    assert bool(make_model(method).loss(x, y).isfinite())


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_gradients_of_logits_reach_the_window_and_no_further(method, readout):
    model = make_model(method, readout=readout)
    x = make_data()[0].requires_grad_()
    model(x).sum().backward()
    assert (x.grad.abs().sum(dim=(0, 2)) > 0).tolist() == [t >= T - 4 for t in range(T)]


def test_gradients_of_the_loss_reach_the_windows_only():
    model = make_model(RLSTM, placement="immediate", segment_length=2, auxiliary_window=1)
    x, y = make_data()
    x.requires_grad_()
    model.loss(x, torch.full_like(y, -1)).backward()
    assert int((x.grad.abs().sum(dim=2) > 0).sum(dim=1).max()) <= 1 + 2 + 1


@pytest.mark.parametrize("is_token", [False, True])
def test_padding_and_the_rest_of_the_batch_change_nothing(method, is_token):
    model = make_model(method, is_token=is_token).eval()
    x, _ = make_data(is_token=is_token)
    lengths = [T, 5, 9, 1]
    padded = x.clone()
    for row, length in enumerate(lengths):
        padded[row, length:] = 3 if is_token else float("nan")
    together = model(padded, lengths)
    for row, length in enumerate(lengths):
        torch.testing.assert_close(together[row : row + 1], model(x[row : row + 1, :length]), rtol=1e-10, atol=1e-12)
    losses = [model.loss(one, torch.tensor([0, 2, 1, 2]), torch.tensor(lengths), seeded()) for one in (x, padded)]
    assert torch.equal(*losses)
    assert bool(losses[0].isfinite())


def seeded():
    return torch.Generator().manual_seed(3)


def test_rows_without_a_label_count_in_the_auxiliary_loss_alone(method):
    model = make_model(method, drop_connect=0.0, auxiliary_weight=2.0)
    x, y = make_data()
    some = model.loss(x, torch.tensor([0, -1, 1, -1]), rng=seeded())
    auxiliary = model.pretrain_loss(x, rng=seeded())
    labeled = torch.nn.functional.cross_entropy(model(x)[::2], y[::2])
    torch.testing.assert_close(some, labeled + 2 * auxiliary)
    torch.testing.assert_close(model.loss(x, torch.full((B,), -1), rng=seeded()), 2 * auxiliary)


def test_torchs_seed_or_a_generator_decides_all_draws(method):
    model = make_model(method)
    x, y = make_data()
    losses = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        losses.append(model.loss(x, y).item())
    assert losses[0] == losses[1] != losses[2]
    assert model.loss(x, y, rng=seeded()).item() == model.loss(x, y, rng=seeded()).item()
    torch.manual_seed(0)
    one = make_model(method).state_dict()
    torch.manual_seed(0)
    assert all(torch.equal(value, one[name]) for name, value in make_model(method).state_dict().items())


def test_nothing_is_dropped_in_evaluation_mode(method):
    model = make_model(method, drop_connect=0.9)
    x, y = make_data()
    assert model.loss(x, y, rng=seeded()).item() != model.eval().loss(x, y, rng=seeded()).item()
    assert torch.equal(model(x), model.train()(x))


def test_weights_can_be_saved_loaded_and_copied(method, tmp_path):
    model, other = make_model(method), make_model(method)
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other.load_state_dict(torch.load(tmp_path / "weights.pt"))
    x, _ = make_data()
    assert torch.equal(model(x), other(x))
    assert torch.equal(model(x), copy.deepcopy(model)(x))


def test_a_stream_gives_the_probabilities_of_the_whole_sequence(method):
    model = make_model(method).float().eval()
    x = make_data()[0].float()
    stream = Stream(model, num_sequences=B)
    for t in range(T):
        probabilities = stream.step(x[:, t])
    torch.testing.assert_close(probabilities, model(x).softmax(dim=1).detach(), rtol=1e-4, atol=1e-5)


def test_it_moves_to_another_device(method):
    model = make_model(method).to("meta")
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"} == {model.device.type}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_size": None}, "pass input_size for sequences of vectors, or vocabulary_size"),
        ({"vocabulary_size": 5}, "pass input_size for sequences of vectors, or vocabulary_size"),
        ({"num_segments": 0}, "num_segments is 0; it must be at least 1"),
        ({"window": -1}, "supervised_window is -1"),
    ],
)
def test_options_that_cannot_be_are_refused(method, options, message):
    with pytest.raises(ValueError, match=message):
        method(**{"input_size": D, "num_classes": C} | options)


def test_options_of_the_other_method_are_refused():
    with pytest.raises(ValueError, match="placement, order, feedback, tie_decoder have no effect on PLSTM"):
        PLSTM(D, num_classes=C, order="forward")


def test_data_that_does_not_fit_is_refused(method):
    model = make_model(method)
    x, y = make_data()
    for wrong in (x[..., :1], x[..., 0], torch.zeros(B, T, D, dtype=torch.long), x[:, :0]):
        with pytest.raises(ValueError, match=r"this model takes \[B, T, 2\] of floats"):
            model(wrong)
    with pytest.raises(ValueError, match=r"it must be \[4\] of classes"):
        model.loss(x, y[:2])
    for lengths in ([T] * 3, [0, 1, 1, 1], [T + 1, 1, 1, 1]):
        with pytest.raises(ValueError, match="lengths must be 4 numbers from 1 to 12"):
            model(x, lengths)


@pytest.mark.slow
def test_it_learns_from_a_step_far_beyond_the_window_of_the_classification_loss():
    torch.manual_seed(0)
    model = RLSTM(
        1,
        num_classes=2,
        window=5,
        segment_length=25,
        auxiliary_window=25,
        hidden_size=32,
        embedding_size=8,
        head_size=32,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(600):
        y = torch.randint(2, (64,))
        x = 0.1 * torch.randn(64, 25, 1)
        x[:, 0, 0] += 2.0 * y
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    with torch.no_grad():
        assert float((model(x).argmax(dim=1) == y).float().mean()) > 0.95
