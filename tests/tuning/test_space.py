"""What is searched: ranges around the start, nothing fixed or without effect, and nothing longer than the data."""

import pytest

from auxrnn.config import change, unflatten
from auxrnn.presets import find_recipe
from auxrnn.tuning.space import find_space, find_start, find_windows


def planned(model="lstm", **values):
    """Give a config with nothing left open, as a plan makes it."""
    chosen = {"objective": "reconstruct", "readout": "last", "supervised_window": "full", "segment_length": 10}
    chosen |= {"auxiliary_window": 10, "batch_size": 16, "sampling_steps": 9, "validation_fraction": 0.2}
    found = find_recipe("fast", model)
    is_open = [name for name, value in found.items() if value == "auto"]
    return unflatten({"data": "digits", "model": model} | found | {name: chosen[name] for name in is_open} | values)


def test_all_that_matters_is_searched_and_the_start_lies_within():
    space = find_space(planned(), fixed=(), longest=40)
    names = {"lr", "objective", "readout", "supervised_window", "auxiliary_window", "segment_length", "hidden_size"}
    assert set(space) == names | {"gate_init", "auxiliary_weight"}
    start = find_start(planned(), space, longest=40)
    for name, found in space.items():
        assert found._contains(found.to_internal_repr(start[name])), name


@pytest.mark.parametrize("longest", [1, 2, 7, 29, 150, 12_544])
@pytest.mark.parametrize("window", ["full", 1, 75, 300])
def test_windows_are_never_longer_than_the_sequences(window, longest):
    found = find_windows(window, longest)
    assert all(each == "full" or 1 <= each < longest for each in found)
    config = planned(supervised_window=window, segment_length=window, auxiliary_window=window)
    space = find_space(config, fixed=(), longest=longest)
    start = find_start(config, space, longest)
    assert all(start[name] in found for name in space if name.endswith("window"))


def test_what_is_fixed_is_not_searched():
    space = find_space(planned(), fixed=("lr", "hidden_size", "seed"), longest=40)
    assert not {"lr", "hidden_size"} & set(space)
    assert "readout" in space


def test_without_an_auxiliary_loss_its_settings_are_not_searched():
    space = find_space(planned(objective="none"), fixed=("objective",), longest=40)
    assert set(space) == {"lr", "readout", "supervised_window", "hidden_size", "gate_init"}
    # Left open, it may be chosen again.
    assert "auxiliary_weight" in find_space(planned(objective="none"), fixed=(), longest=40)


@pytest.mark.parametrize(
    ("model", "values", "missing"),
    [
        ("transformer", {}, {"objective", "supervised_window", "gate_init", "readout"}),
        ("ur_lstm", {}, {"gate_init"}),
        ("lru", {"supervised_window": "exact", "num_layers": 1}, {"supervised_window"}),
        ("sa_lstm", {}, {"objective", "auxiliary_weight"}),
        ("lstm", {"init_from": "runs/other"}, {"hidden_size", "gate_init"}),
        ("lstm", {"auxiliary_weight": 0.0}, {"auxiliary_weight"}),
    ],
)
def test_what_has_no_effect_is_not_searched(model, values, missing):
    space = find_space(planned(model, **values), fixed=(), longest=40)
    assert "lr" in space
    assert not missing & set(space)


@pytest.mark.parametrize("model", ["lstm", "gru", "lru", "legendre", "transformer", "lm_lstm", "vdcnn"])
def test_every_corner_of_the_space_is_a_legal_config(model):
    config = planned(model)
    space = find_space(config, fixed=(), longest=40)
    for name, found in space.items():
        corners = found.choices if hasattr(found, "choices") else (found.low, found.high)
        for value in corners:
            change(config, **{name: value})
