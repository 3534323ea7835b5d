"""An exported model gives what the network gives on raw values, at once and step by step, and says what it is."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from auxrnn import export, saved
from auxrnn.build import build_network
from auxrnn.config import DataConfig, ModelConfig, ObjectiveConfig, RunConfig, SegmentConfig
from auxrnn.data.formats import SeriesFormat, SymbolFormat, TextFormat, make_encoding, steps_per_input
from auxrnn.data.images import ImageFormat
from auxrnn.data.inputs import make_split
from auxrnn.data.sequences import in_order
from auxrnn.errors import RunError, UsageError
from auxrnn.export import begin, build_model, draw_sequences, to_inputs
from auxrnn.streaming import RawStream, Stream
from auxrnn.training.evaluate import predict_logits
from command import TWO_AND_TWO, call, files_below, train
from own_data import write_csv

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

CLOSE = {"rtol": 0, "atol": 1e-5}
LENGTHS = (12, 5, 9)
FORMATS = {
    # Means and deviations that single precision could not tell apart before they are scaled.
    "series": SeriesFormat(3, mean=(1000.0, 0.0, -5e6), deviation=(2.0, 1e-3, 7.0)),
    "characters": TextFormat(alphabet="abc\u00e9"),
    "bytes": TextFormat("bytes"),
    "pixels": ImageFormat(3, 4, 2),
    # Not even double precision tells the last two apart.
    "symbols": SymbolFormat((-7, 0, 3, 2**60, 2**60 + 1)),
    "gaps": SeriesFormat(3, mean=(1000.0, 0.0, -5e6), deviation=(2.0, 1e-3, 7.0), has_mask=True),
    "joined series": SeriesFormat(2, mean=(3.0, -1.0), deviation=(2.0, 0.5), steps_per_input=4),
    "joined gaps": SeriesFormat(2, mean=(3.0, -1.0), deviation=(2.0, 0.5), steps_per_input=4, has_mask=True),
    "joined pixels": ImageFormat(3, 4, 2, steps_per_input=5),
}
CELLS = ["lstm", "gru", "ur_lstm", "lru", "legendre", "irnn", "urnn"]
# The last two have no other readout.
SYSTEMS = [
    *((model, readout) for model in CELLS for readout in ("last", "mean")),
    ("lm_lstm", "last"),
    ("sa_lstm", "last"),
]


def make_run(model, form, **options):
    """Give a run with a network that is random everywhere, so that nothing hides behind zeros."""
    torch.manual_seed(0)
    objective = {"lm_lstm": "predict", "sa_lstm": "reconstruct"}.get(model, "none")
    sizes = {"num_layers": 1, "readout": "last", "embedding_size": 5, "head_size": 6} | options
    config = RunConfig(
        data=DataConfig(data="made"),
        model=ModelConfig(model=model, hidden_size=7, **sizes),
        segments=SegmentConfig(segment_length=5),
        loss=ObjectiveConfig(objective=objective, auxiliary_window=5),
    )
    card = saved.ModelCard(("one", "two", "three"), form, 20, None)
    network = build_network(config, card.spec)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return saved.TrainedRun(config, card, network)


def open_model(trained, *, is_step, about=None):
    content = build_model(trained, about or {}, is_step=is_step)
    onnx.checker.check_model(content, full_check=True)
    return onnxruntime.InferenceSession(content)


def pad(raws, *, filler=0):
    """Give raw sequences as one array in which every row begins at the first column."""
    longest = max(map(len, raws))
    return np.stack(
        [np.concatenate([raw, np.full((longest - len(raw), *raw.shape[1:]), filler, raw.dtype)]) for raw in raws]
    )


def predict(trained, raws):
    """Give our own probabilities, as `auxrnn predict` computes them."""
    split = make_split(raws, trained.card.format)
    return predict_logits(trained.network, in_order(split, len(raws))).softmax(dim=1).numpy()


def assert_sequences_agree(trained, *, lengths=LENGTHS):
    raws = draw_sequences(trained.card.format, lengths, np.random.default_rng(1))
    session = open_model(trained, is_step=False)
    # Raw values as a user gives them; of a text these are no arrays, and images have one size.
    is_array = isinstance(trained.card.format, SeriesFormat | SymbolFormat)
    ours_NC = trained.predict_proba(raws) if is_array else predict(trained, raws)
    for filler in (0, np.nan if raws[0].dtype.kind == "f" else 1):
        x_NT = pad(raws, filler=filler)
        (theirs_NC,) = session.run(None, {"x": x_NT, "lengths": np.array(list(map(len, raws)))})
        np.testing.assert_allclose(theirs_NC, ours_NC, **CLOSE)
    # Another batch size, another length.
    (alone_1C,) = session.run(None, {"x": raws[1][None], "lengths": np.array([len(raws[1])])})
    np.testing.assert_allclose(alone_1C, ours_NC[1:2], **CLOSE)


def assert_steps_agree(trained, *, num_rows=2, num_steps=9):
    form, size = trained.card.format, steps_per_input(trained.card.format)
    x_NT = np.stack(draw_sequences(form, [num_steps] * num_rows, np.random.default_rng(2)))
    session, stream = open_model(trained, is_step=True), RawStream(trained.network, form, num_sequences=num_rows)
    state = begin(session, num_rows)
    x_SN = np.stack([to_inputs(x_T, form) for x_T in x_NT], axis=1)
    for x_N, raw_NS in zip(x_SN, np.split(x_NT, range(size, num_steps, size), axis=1), strict=True):
        theirs_NC, *values = session.run(None, {"x": x_N} | state)
        state = dict(zip(state, values, strict=True))
        ours_NC = stream.step(raw_NS.astype(np.uint32) if isinstance(form, TextFormat) else raw_NS)
        # The last input may be incomplete.
        np.testing.assert_allclose(theirs_NC, (stream.finish() if ours_NC is None else ours_NC).numpy(), **CLOSE)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("model", "readout"), SYSTEMS)
def test_every_cell_reads_raw_values_as_our_network_does(model, kind, readout):
    trained = make_run(model, FORMATS[kind], readout=readout)
    assert_sequences_agree(trained)
    assert_steps_agree(trained)


@pytest.mark.parametrize("kind", ["series", "characters", "symbols", "joined gaps"])
@pytest.mark.parametrize("model", CELLS)
@pytest.mark.parametrize("readout", ["last", "mean"])
def test_two_layers_with_a_linear_head_and_no_embedding_agree(model, kind, readout):
    trained = make_run(model, FORMATS[kind], num_layers=2, head_size=0, embedding_size=0, readout=readout)
    assert_sequences_agree(trained)
    assert_steps_agree(trained, num_rows=1)


def test_a_network_remembers_thousands_of_steps_as_ours_does():
    # Nothing in a uRNN forgets, not even what was rounded.
    for model in ("lstm", "urnn"):
        trained = make_run(model, FORMATS["pixels"])
        precise = trained._replace(network=trained.network.double())
        raws = draw_sequences(trained.card.format, (3000,), np.random.default_rng(0))
        session = open_model(trained, is_step=False)
        (theirs_NC,) = session.run(None, {"x": raws[0][None], "lengths": np.array([3000])})
        encoded_NT = make_encoding(trained.card.format).encode(raws[0])[None]
        np.testing.assert_allclose(theirs_NC, Stream(precise.network).step(encoded_NT).numpy(), **CLOSE)


@pytest.mark.parametrize("model", ["lstm", "urnn"])
def test_texts_read_from_their_end_and_cut_texts_agree(model):
    for readout in ("last", "mean"):
        form = FORMATS["characters"]._replace(is_backward=True, max_length=6)
        assert_sequences_agree(make_run(model, form, readout=readout))


@pytest.mark.parametrize("model", ["lstm", "irnn"])
def test_numbers_beyond_the_range_are_clipped_and_large_offsets_keep_their_digits(model):
    # Single precision has no such mean, and infinity times zero, or less itself, is no number.
    trained = make_run(model, SeriesFormat(2, mean=(5e6 + 0.123, 0.0), deviation=(0.25, 1e-30)))
    session = open_model(trained, is_step=False)
    for raw_TD in ([[5e6 + 0.5, 0], [5e6 - 1, 0]], [[5e6 + 0.5, 1e30]], [[5e6, -np.inf]]):
        raw = np.array(raw_TD, dtype=np.float32)
        (theirs_NC,) = session.run(None, {"x": raw[None], "lengths": np.array([len(raw)])})
        np.testing.assert_allclose(theirs_NC, predict(trained, [raw]), **CLOSE)


@pytest.mark.parametrize("alphabet", ["abc", "", "\0z", "\u4e00\U0001f600"])
def test_every_code_point_becomes_its_token_also_an_unknown_one(alphabet):
    trained = make_run("lstm", TextFormat(alphabet=alphabet))
    session = open_model(trained, is_step=False)
    known, unknown = [*map(ord, alphabet)], [ord("y"), 0x10FFFF, 0xD800]
    for code in [*known, *unknown]:
        (theirs_NC,) = session.run(None, {"x": np.array([[code]]), "lengths": np.array([1])})
        np.testing.assert_allclose(theirs_NC, predict(trained, [np.array([code])]), **CLOSE)
    (below_1C,) = session.run(None, {"x": np.array([[-7]]), "lengths": np.array([1])})
    np.testing.assert_allclose(below_1C, predict(trained, [np.array([0x10FFFF])]), **CLOSE)


def test_capitals_are_read_in_lower_case_by_a_network_that_reads_so():
    trained = make_run("gru", TextFormat(alphabet="abc", is_lowercase=True))
    session = open_model(trained, is_step=False)
    x_NT = np.array([[*map(ord, "aBC!")], [*map(ord, "abc!")]])
    upper_C, lower_C = session.run(None, {"x": x_NT, "lengths": np.array([4, 4])})[0]
    assert (upper_C == lower_C).all()


@pytest.mark.parametrize("readout", ["last", "mean"])
def test_zeros_in_one_row_of_the_state_begin_a_new_sequence_there(readout):
    trained = make_run("urnn", FORMATS["pixels"], readout=readout)
    session = open_model(trained, is_step=True)
    x_ND = np.random.default_rng(0).random((2, 2), dtype=np.float32)
    fresh = begin(session, 2)
    first_NC, *values = session.run(None, {"x": x_ND} | fresh)
    state = dict(zip(fresh, values, strict=True))
    for value in state.values():
        value[(slice(None), 1) if value.ndim == 3 else 1] = 0
    again_NC, *_ = session.run(None, {"x": x_ND} | state)
    np.testing.assert_allclose(again_NC[1], first_NC[1], **CLOSE)
    assert np.abs(again_NC[0] - first_NC[0]).max() > 1e-3


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits") / "run"
    train(folder, *TWO_AND_TWO, "--image-size", "4")
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    path = write_csv(folder / "texts.csv", 60)
    train(folder / "run", "--objective", "none", "--train-steps", "2", "--pretrain-steps", "0", data=path)
    return folder / "run"


def test_the_command_writes_both_models_and_compares_them_on_test_sequences(digits, tmp_path):
    result = call("export", digits, tmp_path / "new" / "digits.onnx")
    assert (result.code, files_below(tmp_path / "new")) == (0, ["digits-step.onnx", "digits.onnx"])
    assert re.search(r"difference .*: \d\.\de-\d\d \(random sequences and 8 of the test split\)", result.err)
    again = json.loads(call("export", digits, tmp_path / "other.onnx", "--json").out)
    assert again["largest_difference"] <= 1e-5
    assert (tmp_path / "other.onnx").read_bytes() == (tmp_path / "new" / "digits.onnx").read_bytes()


def read_about(path):
    meta = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map
    return {key: json.loads(value) for key, value in meta.items()}


def write_arrays(path, kind):
    rng = np.random.default_rng(0)
    x_NT = rng.integers(-2, 3, (60, 11))
    if kind == "joined gaps":
        x_NT = rng.normal(5, 9, (60, 11, 2)).astype(np.float32)
        x_NT[rng.random(x_NT.shape) < 0.2] = np.nan
    np.savez(path, x=x_NT, y=np.arange(60) % 2)
    return x_NT


OPTIONS = {
    "symbols": (["--tokens", "integers"], {"steps_per_input": 1, "longest_training_sequence": 11}),
    "joined gaps": (
        ["--steps-per-input", "4", "--max-length", "10"],
        {"steps_per_input": 4, "longest_training_sequence": 12},
    ),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_integers_and_joined_steps_with_gaps_are_exported_compared_and_told(kind, tmp_path):
    x_NT, (words, facts) = write_arrays(tmp_path / "x.npz", kind), OPTIONS[kind]
    train(tmp_path / "run", *TWO_AND_TWO, *words, data=tmp_path / "x.npz")
    result = call("export", tmp_path / "run", tmp_path / "model.onnx")
    assert result.code == 0, result.err
    assert "(random sequences and 8 of the test split)" in result.err
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (theirs_NC,) = session.run(None, {"x": x_NT, "lengths": np.full(60, 11)})
    np.testing.assert_allclose(theirs_NC, saved.load_run(tmp_path / "run").predict_proba(x_NT), **CLOSE)
    for name in ("model", "model-step"):
        about = read_about(tmp_path / f"{name}.onnx")
        assert about | facts == about
        if kind == "symbols":
            assert about["input"] == {"kind": "symbols", "symbols": [-2, -1, 0, 1, 2], "max_length": None}
            assert about["x"] == "whole numbers as in the data; the model looks up their tokens"
        else:
            assert (about["input"]["has_mask"], about["input"]["max_length"]) == (True, 10)
            assert about["x"].endswith(
                "; NaN where a value is missing; 4 steps are one input, the last one filled with NaN"
            )


def test_the_models_say_what_they_are(digits, texts, tmp_path):
    for name, run in (("digits", digits), ("texts", texts)):
        assert call("export", run, tmp_path / f"{name}.onnx").code == 0

    about, step, text = (read_about(tmp_path / f"{name}.onnx") for name in ("digits", "digits-step", "texts"))
    scores = [json.loads(line) for line in (digits / "metrics.jsonl").read_text().splitlines()]
    assert about["class_names"] == [str(digit) for digit in range(10)]
    assert about["test_accuracy"] == next(one["test_accuracy"] for one in reversed(scores) if "test_accuracy" in one)
    assert (about["kind"], step["kind"], about["input"]["image_size"]) == ("sequence", "step", 4)
    assert about["x"] == "pixels from 0 to 1, row by row, all channels of each"
    assert (text["class_names"], text["x"]) == (["cat", "dog"], "Unicode code points")
    assert set("abcxyz") <= set(text["input"]["alphabet"])


def test_the_order_of_permuted_pixels_is_told():
    form = ImageFormat(2, 2, 1, permutation="pmnist")
    about = export.describe(Path("nowhere"), make_run("lstm", form))
    assert sorted(about["pixel_order"]) == [0, 1, 2, 3]
    assert "pixel_order" in about["x"]


def test_moved_data_leaves_random_sequences_to_compare_on(texts, tmp_path):
    data = texts.parent / "texts.csv"
    data.rename(tmp_path / "moved.csv")
    try:
        result = call("export", texts, tmp_path / "model.onnx")
    finally:
        (tmp_path / "moved.csv").rename(data)
    assert result.code == 0, result.err
    assert "(random ones)" in result.err


def test_texts_read_from_their_end_have_no_model_of_steps(tmp_path):
    trained = make_run("lstm", FORMATS["characters"]._replace(is_backward=True))
    written = export.export(tmp_path, trained, tmp_path / "model.onnx")
    assert (written.files, files_below(tmp_path)) == ((tmp_path / "model.onnx",), ["model.onnx"])


@pytest.mark.parametrize("operator", list(export.OPERATORS))
def test_a_wrong_order_of_gates_is_found_and_nothing_is_written(operator, tmp_path, monkeypatch):
    name, gates, _ = export.OPERATORS[operator]
    wrong = (name, gates[::-1], {"activations": ["Tanh"]} if name == "RNN" else {})
    monkeypatch.setitem(export.OPERATORS, operator, wrong)
    model = {"LSTM": "lstm", "GRU": "gru", "RNN": "irnn"}[name]
    with pytest.raises(RunError, match=r"differ from auxrnn's by up to .*; nothing was written"):
        export.export(tmp_path, make_run(model, FORMATS["pixels"]), tmp_path / "model.onnx")
    assert files_below(tmp_path) == []


def test_what_cannot_be_exported_gets_one_sentence(digits, texts, tmp_path):
    words = ["--model", "char_cnn", "--pad-to", "130", "--train-steps", "1", "--batch-size", "8"]
    assert call("train", texts.parent / "texts.csv", *words, "--out", tmp_path / "cnn").code == 0
    for run, file, code, sentence in (
        (tmp_path / "cnn", "model.onnx", 2, "model is char_cnn, which takes whole sequences"),
        (digits, "model.pt", 2, "give a name that ends in .onnx"),
        (tmp_path / "absent", "model.onnx", 2, "is not a run"),
        (digits, "/proc/none/model.onnx", 1, "cannot write"),
    ):
        result = call("export", run, tmp_path / file)
        assert (result.code, result.err.count("\n")) == (code, 1), result.err
        assert sentence in result.err


@pytest.mark.parametrize("module", ["onnx.helper", "onnxruntime"])
def test_a_missing_extra_is_named(module, digits, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    result = call("export", digits, tmp_path / "model.onnx")
    assert (result.code, files_below(tmp_path)) == (2, [])
    assert result.err == "auxrnn: export needs onnx and onnxruntime; pip install 'auxrnn[export]'\n"


@pytest.mark.parametrize("model", ["lstm", "urnn"])
def test_a_model_beyond_two_gigabytes_is_refused(model, monkeypatch):
    # The recurrent matrix alone: 7 units, with 4 gates or as 14 real numbers.
    monkeypatch.setattr(export, "LARGEST_MODEL", {"lstm": 4 * 7 * 7 * 4, "urnn": 14 * 14 * 8}[model])
    with pytest.raises(RunError, match="2 GB"):
        build_model(make_run(model, FORMATS["pixels"]), {}, is_step=True)


def test_a_baseline_is_refused_by_the_function_too(tmp_path):
    trained = make_run("lstm", FORMATS["characters"])
    with pytest.raises(UsageError, match="only recurrent models"):
        export.export(tmp_path, trained._replace(network=torch.nn.Linear(1, 1)), tmp_path / "model.onnx")


def test_the_example_of_the_documentation_runs_without_auxrnn_and_torch(digits, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "export.md").read_text()
    assert call("export", digits, tmp_path / "digits.onnx").code == 0
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        proof = "\nimport sys\nassert not {'torch', 'auxrnn'} & set(sys.modules)\n"
        done = subprocess.run(
            [sys.executable, "-c", block + proof], check=False, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r"^\d 0\.\d", done.stdout)
