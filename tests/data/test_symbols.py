"""Integers as symbols: each one of the training rows has a token, all others share one; and the layout [N, D, T]."""

from collections import Counter

import numpy as np
import pytest

from auxrnn import runs, saved
from auxrnn.config import DataConfig, RunConfig
from auxrnn.data import datasets, formats
from auxrnn.data.examples import Problems
from auxrnn.data.formats import SeriesFormat, SymbolFormat
from auxrnn.data.inputs import read_inputs
from auxrnn.data.sequences import in_order
from auxrnn.data.sources import find_source
from auxrnn.errors import RunError, UsageError
from auxrnn.streaming import Stream
from auxrnn.training.evaluate import predict_logits
from command import call

X_NT = np.array([[-5, 7, 2**60], [7, 7, -5], [-5, 7, 2**60], [7, 7, -5]])


def save(folder, x=X_NT, **others):
    np.savez(folder / "x.npz", x=x, y=np.arange(len(x)) % 2, **others)
    return folder / "x.npz"


def read(path, *, like=None, **options):
    understood = find_source(path, DataConfig(data=str(path), **options)).read(Problems(), like)
    return understood, [example.value_T.tolist() for example in understood.examples]


def test_every_integer_of_the_training_rows_is_a_symbol_and_all_others_share_one_token(tmp_path):
    path = save(tmp_path)
    config = RunConfig(data=DataConfig(data=str(path), tokens="integers"))
    form = runs.prepare(config, datasets.load(config.data)).card.format
    assert form == SymbolFormat((-5, 7, 2**60))
    assert formats.step_sizes(form) == (1, 4)
    encode = formats.make_encoding(form).encode
    assert encode(np.array([2**60, -5, 7, 8, -(2**62), 2**62])).tolist() == [2, 0, 1, 3, 3, 3]
    assert formats.from_plain(formats.to_plain(form)) == form


def test_new_arrays_are_read_as_symbols_and_unseen_ones_are_counted(tmp_path):
    form = SymbolFormat((-5, 7))
    (inputs,) = read_inputs(save(tmp_path, lengths=np.array([1, 2, 3, 3])), form)
    assert inputs.split.length_N.tolist() == [1, 2, 3, 3]
    assert formats.count_unknown(inputs.split, form) == Counter({str(2**60): 1})


@pytest.mark.parametrize(
    ("x", "found"), [(X_NT / 2, "holds values of type float64"), (np.ones((4, 2, 3), int), "has the shape [4, 2, 3]")]
)
def test_what_is_no_row_of_integers_is_refused(tmp_path, x, found):
    with pytest.raises(RunError) as refused:
        read(save(tmp_path, x), tokens="integers")
    assert found in str(refused.value)
    assert str(refused.value).endswith("save whole numbers of the shape [N, T], or leave out --tokens integers")


def test_more_integers_than_could_be_symbols_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MOST_CHARACTERS", 2)
    config = RunConfig(data=DataConfig(data=str(save(tmp_path)), tokens="integers"))
    with pytest.raises(UsageError, match="more than 2 different integers, too many for symbols; leave it out"):
        runs.prepare(config, datasets.load(config.data))


@pytest.mark.parametrize("objective", ["reconstruct", "predict"])
def test_a_stream_of_symbols_answers_as_prediction_does(tmp_path, objective):
    x_NT = np.random.default_rng(0).integers(-2, 3, (20, 6))
    words = ["--tokens", "integers", "--objective", objective, "--hidden-size", "4", "--train-steps", "2"]
    words += ["--pretrain-steps", "2", "--segment-length", "3", "--out", tmp_path / "run"]
    assert call("train", save(tmp_path, x_NT), *words).code == 0
    trained = saved.load_run(tmp_path / "run")
    (inputs,) = read_inputs(tmp_path / "x.npz", trained.card.format)
    probability_NC = predict_logits(trained.network, in_order(inputs.split, 64)).softmax(dim=1)
    stream = Stream(trained.network, len(x_NT))
    encoded = formats.make_encoding(trained.card.format).encode(x_NT)
    np.testing.assert_allclose(stream.step(encoded), probability_NC, atol=1e-5)


def test_arrays_that_look_transposed_are_described_with_the_flag_that_transposes_them(tmp_path):
    x_NDT = np.arange(40.0).reshape(2, 2, 10)
    path = save(tmp_path, x_NDT, lengths=np.array([10, 4]))
    hint = "if it is the other way round, give --channels-first"
    with pytest.raises(RunError, match=f"has the length 10; give it a length from 1 to 2, the steps .*; {hint}"):
        read(path)
    assert read(save(tmp_path, x_NDT))[0].description.endswith(f"up to 2 steps of 10 channels; {hint}")
    save(tmp_path, x_NDT, lengths=np.array([10, 4]))
    understood, values = read(path, channels_first=True)
    assert values == [x_NDT[0].T.tolist(), x_NDT[1].T[:4].tolist()]
    assert understood.format == SeriesFormat(2, is_channels_first=True)
    assert understood.description.endswith("10 steps of 2 channels")
    assert read(path, like=understood.format)[1] == values


def test_arrays_that_look_transposed_by_the_flag_are_described_without_it(tmp_path):
    path = save(tmp_path, np.arange(40.0).reshape(2, 10, 2))
    understood, _ = read(path, channels_first=True)
    hint = "; if it is the other way round, leave out --channels-first"
    assert understood.description.endswith(f"up to 2 steps of 10 channels{hint}")
    # In predictions the axes are those of the run.
    assert hint not in read(path, like=understood.format)[0].description


def test_every_training_says_that_axes_look_swapped_and_a_check_says_it_once(tmp_path, capsys):
    path = save(tmp_path, np.random.default_rng(0).normal(size=(20, 2, 10)))
    hint = "2 steps of 10 channels; if it is the other way round, give --channels-first"
    for number in range(2):
        # The second one finds the data in the cache.
        words = ["--train-steps", "1", "--hidden-size", "4", "--out", tmp_path / f"run-{number}"]
        assert hint in call("train", path, *words).err
    checked = call("data", "check", path)
    assert (checked.out + checked.err).count(hint) == 1
    checked = call("data", "check", path, "--channels-first")
    assert checked.code == 0
    assert "10 steps of 2 channels\n" in checked.out


def test_arrays_without_channels_cannot_have_them_first(tmp_path):
    with pytest.raises(UsageError, match="without channels; remove --channels-first"):
        read(save(tmp_path), channels_first=True)
