"""What a run leaves open is chosen once, written down as plain values, and fits the data and the time there is."""

import json
import re

import pytest

from auxrnn import planning, saved
from auxrnn.build import InputSpec
from auxrnn.config import DataConfig, RunConfig, flatten, to_flags, unflatten
from auxrnn.planning import choose_sizes
from auxrnn.presets import AUTOMATIC, LEARNING, METHOD, PRESETS, find_recipe
from auxrnn.report.records import read_events
from command import TINY, call, parse_train
from own_data import write_arrays

SMALL = ["--hidden-size", "4", "--embedding-size", "4", "--head-size", "8", "--threads", "1"]
FEW = ["--train-examples", "120", "--batch-size", "20"]


def parse(*words):
    return parse_train([*words])["run"]


def choose(num_steps, *, num_examples=10_000, **values):
    config = unflatten({"data": "x"} | find_recipe("fast", "lstm") | values)
    spec = InputSpec(1, None, 10, num_steps)
    return flatten(choose_sizes(config, spec, num_labeled=num_examples, num_examples=num_examples))


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A run that a budget planned."""
    folder = tmp_path_factory.mktemp("planned") / "run"
    with pytest.MonkeyPatch.context() as patch:
        # However slow the machine, networks are compared.
        patch.setattr(planning, "FEWEST_TRIED", 0)
        result = call("train", "digits", *SMALL, *FEW, "--minutes", "0.1", "--out", folder)
    assert result.code == 0, result.err
    return folder, result


def test_the_papers_recipe_is_what_the_config_says():
    assert parse("digits", "--recipe", "paper") == RunConfig(data=DataConfig(data="digits"))


@pytest.mark.parametrize("recipe", ["fast", "paper"])
def test_naming_the_usual_model_changes_nothing(recipe):
    assert parse("digits", "--recipe", recipe, "--model", "lstm") == parse("digits", "--recipe", recipe)


def test_the_fast_recipe_is_the_default_and_every_flag_overrides_it():
    values = flatten(parse("digits"))
    assert {name: values[name] for name in LEARNING | METHOD | AUTOMATIC} == LEARNING | METHOD | AUTOMATIC
    assert parse("digits", "--lr", "0.5").schedule.lr == 0.5
    assert parse("digits", "--supervised-window", "7").loss.supervised_window == 7


@pytest.mark.parametrize("model", PRESETS)
def test_every_model_has_a_fast_recipe_of_options_that_it_takes(model):
    values = flatten(parse("digits", "--model", model))
    assert values["model"] == model
    assert (values["optimizer"], values["lr_schedule"]) == ("adam", "cosine")
    assert values["objective"] == ("auto" if model == "lstm" else PRESETS[model].settings["objective"])


def test_a_file_may_name_the_recipe_and_a_flag_overrides_it(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('recipe = "paper"\nseed = 3\n')
    words = ["digits", "--config", str(path)]
    of_file, of_flag = parse_train(words), parse_train([*words, "--recipe", "fast"])
    assert (of_file["recipe"], of_file["run"].schedule.optimizer, of_file["run"].seed) == ("paper", "rmsprop", 3)
    assert (of_flag["recipe"], of_flag["run"].schedule.optimizer, of_flag["run"].seed) == ("fast", "adam", 3)


def test_an_option_of_the_auxiliary_loss_asks_for_the_auxiliary_loss():
    assert parse("digits").loss.objective == "auto"
    assert parse("digits", "--segment-length", "9").loss.objective == "reconstruct"
    assert parse("digits", "--objective", "predict", "--segment-length", "9").loss.objective == "predict"


@pytest.mark.parametrize(
    ("num_steps", "window", "segment"), [(784, "full", 75), (1000, "full", 75), (4097, 300, 75), (40, "full", 20)]
)
def test_spans_are_chosen_from_the_length_of_the_data(num_steps, window, segment):
    chosen = choose(num_steps, pretrain_steps=30, train_steps=70)
    assert (chosen["supervised_window"], chosen["segment_length"], chosen["auxiliary_window"]) == (
        window,
        segment,
        segment,
    )
    assert chosen["sampling_steps"] == 100
    assert "auto" not in {value for name, value in chosen.items() if name != "validation_fraction"}


def test_small_sets_have_small_batches_and_what_is_given_stays():
    assert [choose(9, num_examples=count)["batch_size"] for count in (90_000, 2048, 50)] == [64, 32, 16]
    assert choose(9, batch_size=5, supervised_window=3)["batch_size"] == 5
    assert choose(9, pretrain_epochs=1.0, train_epochs=2.0, num_examples=128)["sampling_steps"] == 24


@pytest.mark.parametrize(
    ("given", "pretrain_steps"),
    [
        ({"train_steps": 10}, 5),
        ({"train_steps": 1}, 1),
        ({"train_steps": 5000}, 500),
        ({"train_epochs": 2.0}, 8),
        ({"train_steps": 10, "pretrain_steps": 500}, 500),
        ({"train_steps": 10, "pretrain_steps": 0}, 0),
        ({"train_steps": 0}, 500),
        ({"train_steps": 10, "objective": "none"}, None),
    ],
)
def test_a_short_training_has_a_short_pretraining(given, pretrain_steps):
    chosen = choose(40, num_examples=128, **given)
    assert chosen["pretrain_steps"] == pretrain_steps
    train_steps = 16 if "train_epochs" in given else given["train_steps"]
    assert chosen["sampling_steps"] == (pretrain_steps or 0) + train_steps


def test_a_budget_is_written_down_as_values_alone(planned):
    folder, result = planned
    config = saved.read_config(folder)
    assert "auto" not in flatten(config).values()
    assert config.schedule.train_steps >= 1
    assert config.data.validation_fraction == 0.2
    assert "within 0.1 minutes" in result.err


def test_the_network_that_was_better_on_the_validation_split_is_trained(planned):
    folder, result = planned
    told = re.search(r"seconds each: (.*); training the (.*)", result.err)
    assert told, result.err
    scores = {name: float(score) for name, score in re.findall(r"([^,]+?) (\d+\.\d)(?:, |$)", told[1])}
    assert scores[told[2]] == max(scores.values())
    config = saved.read_config(folder)
    assert told[2].startswith("r-") == (config.loss.objective == "reconstruct")
    assert ("mean readout" in told[2]) == (config.model.readout == "mean")


def test_a_planned_run_is_the_run_of_its_values(planned, tmp_path):
    folder, _ = planned
    words = to_flags(saved.read_config(folder))
    assert call("train", *words, "--out", tmp_path / "again").code == 0
    for name in ("model.safetensors", "model-best.safetensors", "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_the_result_is_that_of_the_best_weights_which_everything_uses(planned):
    folder, result = planned
    *_, last = read_events(folder)
    assert (last["event"], last["weights"]) == ("result", "best")
    assert not any("test_accuracy" in event for event in read_events(folder)[:-1])
    evaluated = json.loads(call("evaluate", folder, "--json").out)
    assert evaluated["weights"] == "best"
    for name in ("accuracy", "balanced_accuracy", "macro_f1"):
        assert evaluated[name] == pytest.approx(last[f"test_{name}"])
    assert f"test {last['test_accuracy']:.1f}%" in result.out
    assert "macro F1" in result.out
    assert "best weights" in call("evaluate", folder).err
    assert json.loads(call("evaluate", folder, "--json", "--weights", "final").out)["weights"] == "final"


def test_without_a_length_ten_minutes_are_planned_and_too_little_time_compares_nothing(tmp_path):
    data = write_arrays(tmp_path / "data.npz")
    result = call("train", data, *SMALL, "--minutes", "0.0001", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "too little time to compare" in result.err
    assert saved.read_config(tmp_path / "run").model.readout == "mean"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--minutes", "0"], ["--minutes is 0.0", "above 0"]),
        (["--minutes", "nan"], ["--minutes is nan", "above 0"]),
        (["--minutes", "5", "--train-steps", "9"], ["--minutes plans the length"]),
        (["--recipe", "slow"], ["--recipe is 'slow'", "'fast' or 'paper'"]),
    ],
)
def test_a_budget_that_cannot_be_is_one_sentence(words, parts, tmp_path):
    result = call("train", "digits", *words, "--out", tmp_path / "run")
    assert result.code == 2
    assert all(part in result.err for part in parts), result.err
    assert not (tmp_path / "run").exists()


def test_training_ends_early_when_the_validation_split_no_longer_improves(tmp_path):
    words = [*TINY, "--objective", "none", "--lr", "1e-30", "--validation-fraction", "0.2", "--evaluate-every", "2"]
    result = call("train", "digits", *words, "--train-steps", "50", "--patience", "3", "--out", tmp_path / "run")
    assert result.code == 0, result.err
    events = [event for event in read_events(tmp_path / "run") if event["event"] != "train"]
    # The first evaluation is the best, and three more are not better; the result is that of the last update.
    assert [event["step"] for event in events] == [0, 2, 4, 6, 6]
    (tmp_path / "run" / "model.safetensors").unlink()
    before = (tmp_path / "run" / "metrics.jsonl").read_text().count("\n")
    assert call("resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("\n") == before


def test_patience_needs_a_validation_split(tmp_path):
    result = call("train", "digits", *TINY, "--patience", "2", "--train-steps", "2", "--out", tmp_path / "run")
    assert result.code == 2
    assert "--patience is 2" in result.err
    assert "--validation-fraction" in result.err
