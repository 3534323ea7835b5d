"""Every system of the comparison goes through the same commands: train, resume, evaluate, predict, cost, models."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from auxrnn.cli.machine import SPECS, count
from auxrnn.config import to_flags, unflatten
from auxrnn.data import datasets
from auxrnn.presets import PRESETS
from auxrnn.runs import open_session, prepare, settle
from auxrnn.saved import load_run
from auxrnn.training.cost import estimate_growth, estimate_time
from cells import MODELS
from command import call, parse_train
from own_data import write_csv
from tools import weights_table

RECURRENT = ["--hidden-size", "4", "--supervised-window", "6", "--head-size", "5"]
AUXILIARY = ["--segment-length", "8", "--auxiliary-window", "5", "--pretrain-steps", "2"]
ATTENTION = ["--hidden-size", "8", "--num-heads", "2", "--head-size", "5", "--warmup-steps", "2"]
WORDS = {
    **dict.fromkeys(MODELS, RECURRENT),
    "lstm": [*RECURRENT, "--pretrain-steps", "2"],
    "transformer": [*ATTENTION, "--filter-size", "6"],
    "dmca": [*ATTENTION, "--block-length", "16", "--block-reach", "4"],
    "lm_lstm": ["--hidden-size", "4", "--head-size", "5", "--pretrain-steps", "2"],
    "sa_lstm": ["--hidden-size", "4", "--head-size", "5", "--pretrain-steps", "2"],
    "char_cnn": ["--pad-to", "130"],
    "conv_rnn": ["--hidden-size", "4", "--pad-to", "20"],
    "vdcnn": ["--depth", "9", "--pad-to", "60"],
}
CARRIERS = {
    f"{model} with {objective}": [model, *RECURRENT, *AUXILIARY, "--objective", objective]
    for model in MODELS
    for objective in ("reconstruct", "predict")
}
SYSTEMS = {name: [name, *words] for name, words in WORDS.items()} | CARRIERS


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("texts") / "texts.csv", 40)


def train(folder, data, words):
    model, *flags = words
    result = call("train", data, "--model", model, *flags, "--train-steps", "2", "--batch-size", "8", "--threads", "1",
                  "--checkpoint-every", "1", "--out", folder)  # fmt: skip
    assert result.code == 0, result.err
    return result


def cut_short(folder, copy):
    """Give a run as it was one checkpoint before its end."""
    shutil.copytree(folder, copy)
    (copy / "model.safetensors").unlink()
    for path in sorted((copy / "checkpoints").glob("step-*"))[-2:]:
        path.unlink()
    return copy


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_is_trained_resumed_evaluated_and_used_on_texts(system, texts, tmp_path):
    words = SYSTEMS[system]
    train(tmp_path / "run", texts, words)
    other = cut_short(tmp_path / "run", tmp_path / "other")
    assert call("resume", other).code == 0
    assert (other / "model.safetensors").read_bytes() == (tmp_path / "run" / "model.safetensors").read_bytes()
    evaluation = json.loads(call("evaluate", tmp_path / "run", "--json").out)
    assert evaluation["examples"] == 8
    result = call("predict", tmp_path / "run", texts, "--json")
    (first, *_), names = json.loads(result.out)["predictions"], {"cat", "dog"}
    assert set(first["probabilities"]) == names
    assert sum(first["probabilities"].values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("system", [name for name, words in SYSTEMS.items() if PRESETS[words[0]].reads == "both"])
def test_every_system_but_those_for_texts_reads_numbers(system, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(30, 24, 2)), y=np.arange(30) % 3)
    train(tmp_path / "run", tmp_path / "data.npz", SYSTEMS[system])
    assert call("evaluate", tmp_path / "run").code == 0
    np.save(tmp_path / "new.npy", rng.normal(size=(1, 24, 2)))
    assert call("predict", tmp_path / "run", tmp_path / "new.npy").out.startswith(str(tmp_path / "new.npy"))


@pytest.mark.parametrize("model", WORDS)
def test_the_cost_of_every_system_is_told(model, texts):
    result = call("cost", texts, "--model", model, *WORDS[model], "--train-steps", "3", "--memory", "0.5", "--json")
    assert result.code == 0, result.err
    facts = json.loads(result.out)
    assert facts["weights"] > 0
    assert 0 < facts["estimated_bytes"] < 2e9
    assert facts["measured_bytes"] >= 0
    assert (facts["unfused_bytes"] is not None) == (model in ("transformer", "dmca"))
    assert facts["memory_bytes"] == 500_000_000
    assert (facts["longest_steps"] is None) == (model in ("char_cnn", "conv_rnn", "vdcnn"))
    assert facts["largest_batch"] > 0
    lines = call("cost", texts, "--model", model, *WORDS[model], "--train-steps", "3").out.splitlines()
    title = "r-LSTM" if model == "lstm" else PRESETS[model].title
    assert lines[0].startswith(f"{'system':<28}{title}, ")


@pytest.mark.parametrize("model", [model for model, preset in PRESETS.items() if preset.reads == "tokens"])
def test_a_model_for_texts_refuses_pixels_in_one_sentence(model):
    result = call("train", "digits", "--model", model)
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith(f"auxrnn: --model is {model}, which reads characters, and this data")


def test_a_flag_that_means_nothing_to_a_model_is_refused_with_those_that_it_is_for(tmp_path):
    for words, sentence in {
        ("gru", "--num-heads", "2"): "--num-heads has no effect with --model gru; it is for transformer, dmca",
        ("transformer", "--supervised-window=9"): "--supervised-window has no effect with --model transformer",
        ("vdcnn", "--no-joint"): "--joint has no effect with --model vdcnn",
        ("irnn", "--gate_init", "zero"): "--gate-init has no effect with --model irnn; it is for lstm, gru,",
    }.items():
        result = call("train", "digits", "--model", *words, "--out", tmp_path / "run")
        assert result.code == 2
        assert result.err.startswith(f"auxrnn: {sentence}")
        assert not (tmp_path / "run").exists()


def test_an_auxiliary_loss_for_a_model_that_takes_none_is_refused(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('data = "digits"\nmodel = "transformer"\nobjective = "predict"\n')
    result = call("train", "--config", path)
    assert result.code == 2
    assert "transformer reads whole sequences and carries no auxiliary loss" in result.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["transformer", "--hidden-size", "30"], "--hidden-size is 30; it must be a multiple of num_heads, 4"),
        (["char_cnn", "--pad-to", "20"], "--pad-to is 20, too short"),
        (["vdcnn", "--pad-to", "20"], "--pad-to is 20, too short"),
        (["vdcnn", "--embedding-size", "0"], "--embedding-size is 0; for vdcnn it must be at least 1"),
        (["lm_lstm", "--objective", "none"], "--objective is none; lm_lstm is predict by definition"),
        (["sa_lstm", "--objective", "predict"], "--objective is predict; sa_lstm is reconstruct by definition"),
        (["gru", "--tie-decoder"], "--tie-decoder is for reconstruct"),
    ],
)
def test_sizes_and_losses_that_do_not_go_together_get_one_sentence(words, sentence, texts, tmp_path):
    for command in (["train", texts, "--out", tmp_path / "run"], ["cost", texts]):
        result = call(*command, "--model", *words)
        assert result.code == 2
        assert result.err.splitlines()[-1].startswith(f"auxrnn: {sentence}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("memory", ["0", "-1", "nan", "inf"])
def test_a_memory_that_is_no_size_is_refused(memory, texts):
    result = call("cost", texts, f"--memory={memory}")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--memory is" in result.err


def test_options_of_a_file_that_names_its_model_must_mean_something_to_it(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('data = "digits"\nmodel = "transformer"\nsupervised-window = 28\n')
    result = call("train", "--config", path)
    assert result.code == 2
    assert "--supervised-window has no effect with --model transformer" in result.err


def test_an_auxiliary_loss_of_a_file_that_a_model_leaves_out_is_said(capsys):
    parse_train(["mnist", "--config", "mnist14", "--model", "gru"])
    assert capsys.readouterr().err == "ignoring the objective and the pretraining of mnist14\n"


def test_unlabeled_sequences_that_nothing_learns_from_are_named(texts, tmp_path):
    (tmp_path / "more.txt").write_text("abc\nxyz\n")
    result = train(tmp_path / "run", texts, [*SYSTEMS["transformer"], "--unlabeled", tmp_path / "more.txt"])
    assert "the 2 sequences without a label are not used: only pretraining learns from them" in result.err


def test_a_warm_up_that_never_ends_is_named(texts, tmp_path):
    words = ["transformer", "--hidden-size", "8", "--warmup-steps", "9", "--lr-schedule", "inverse-sqrt"]
    assert "the learning rate will still rise at the end: --warmup-steps is 9" in train(tmp_path, texts, words).err


def test_whole_sequences_cannot_be_streamed(texts, tmp_path):
    train(tmp_path / "run", texts, SYSTEMS["transformer"])
    result = call("predict", tmp_path / "run", "-", "--stream")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "whole sequences" in result.err


def test_a_network_of_another_model_cannot_be_started_from(texts, tmp_path):
    train(tmp_path / "run", texts, SYSTEMS["gru"])
    words = [texts, "--model", "transformer", *WORDS["transformer"], "--init-from", tmp_path / "run"]
    result = call("train", *words, "--out", tmp_path / "other")
    assert result.code == 2
    assert "give the same --model" in result.err


def test_a_pretrained_language_model_can_be_started_from_by_a_plain_lstm(texts, tmp_path):
    train(tmp_path / "run", texts, [*SYSTEMS["lm_lstm"], "--embedding-size", "3"])
    words = ["lstm", *RECURRENT, "--embedding-size", "3", "--init-from", tmp_path / "run"]
    assert call("train", texts, "--model", *words, "--train-steps", "1", "--out", tmp_path / "other").code == 0


def test_what_will_not_fit_is_said_before_anything_is_written(texts, tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.training.cost.find_free_memory", lambda _device: 200_000)
    words = ["--model", "transformer", *WORDS["transformer"], "--batch-size", "64"]
    result = call("train", texts, *words, "--out", tmp_path / "run")
    assert result.code == 1
    sentence = result.err.splitlines()[-1]
    assert sentence.startswith("auxrnn: a training step on 64 sequences of ")
    assert "200.0 kB are free; what would fit: --batch-size " in sentence
    assert not (tmp_path / "run").exists()


def test_a_training_of_days_is_called_long(texts, tmp_path, monkeypatch):
    monkeypatch.setattr("auxrnn.cli.training.LONG_TRAINING", 0.0)
    result = train(tmp_path / "run", texts, SYSTEMS["gru"])
    assert "this will take long; fewer updates (--train-steps)" in result.err


def test_a_tied_decoder_has_no_weights_of_its_own(texts, tmp_path):
    train(tmp_path / "run", texts, SYSTEMS["sa_lstm"])
    names = safetensors.torch.load_file(tmp_path / "run" / "model.safetensors").keys()
    assert not any("decoder.cell" in name for name in names)
    network = load_run(tmp_path / "run").network
    assert network.objective.decoder.cell is network.encoder.cell


def test_trying_how_long_and_how_large_a_step_is_leaves_no_trace(texts):
    values = {"data": str(texts), "model": "vdcnn", "depth": 9, "pad_to": 60, "batch_size": 4, "train_steps": 2}
    config = settle(unflatten(values))
    dataset = datasets.load(config.data)
    session = open_session(config, dataset, prepare(config, dataset), None)
    before = {name: value.clone() for name, value in session.network.state_dict().items()}
    assert any("running_mean" in name for name in before)
    estimate_growth(session)
    estimate_time(session)
    assert all(torch.equal(value, before[name]) for name, value in session.network.state_dict().items())
    assert all(parameter.grad is None for parameter in session.network.parameters())


def test_the_list_of_models_names_each_with_its_paper_and_weights():
    listed = json.loads(call("models", "--json").out)
    assert list(listed) == list(PRESETS)
    assert all(row["paper"] and row["weights_dbpedia"] for row in listed.values())
    assert listed["char_cnn"]["weights_mnist"] is None
    shown = call("models").out
    assert all(name in shown for name in PRESETS)


@pytest.mark.parametrize(
    ("model", "values", "published"),
    [
        ("lstm", {"objective": "reconstruct"}, 0.46e6),
        ("transformer", {}, 0.43e6),
        ("urnn", {}, 16e3),
        ("irnn", {}, 11e3),
    ],
)
def test_weights_at_published_settings_are_those_published(model, values, published):
    assert count(model, SPECS["mnist"], **values) == pytest.approx(published, rel=0.03)


def test_every_variant_of_the_table_is_what_its_flags_ask_for():
    for variant in weights_table.VARIANTS:
        values = dict(zip(*[iter(variant.flags.replace("--", "").replace("-", "_").split())] * 2, strict=True))
        typed = {name: int(value) if value.isdigit() else value for name, value in values.items()}
        assert unflatten({"data": ""} | typed) == unflatten({"data": "", "model": variant.model} | variant.values)


@pytest.mark.parametrize("model", PRESETS)
def test_the_flags_of_a_config_ask_for_it_again(model):
    config = unflatten({"data": "digits", "model": model, "seed": 3, "batch_size": 7})
    assert parse_train(to_flags(config))["run"] == config


def test_the_table_in_the_docs_is_what_its_tool_prints():
    page = Path(__file__).parent.parent / "docs" / "models.md"
    assert weights_table.make_table() in page.read_text()
