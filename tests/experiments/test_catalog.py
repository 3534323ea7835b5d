"""Every table and figure at every scale: what the command line takes, the paper's numbers and its settings."""

import re
from pathlib import Path

import pytest

from auxrnn.config import flatten, to_flags
from auxrnn.experiments import table2, table5, table6
from auxrnn.experiments.catalog import EXPERIMENTS, PAGE_ORDER, find_jobs, find_outcome, find_title
from auxrnn.experiments.jobs import Folders
from auxrnn.experiments.results import Results
from auxrnn.experiments.scales import DOGS, find_scale
from auxrnn.presets import PRESETS
from auxrnn.pretraining import first_phase
from command import parse_train

SCALES = ("smoke", "desk", "full", "paper")
DESK_SCALE, FULL_SCALE, PAPER_SCALE = (find_scale(name, Path("unused")) for name in SCALES[1:])
PUBLISHED = {
    "hidden_size": 128,
    "num_layers": 1,
    "embedding_size": 128,
    "head_size": 256,
    "drop_connect": 0.5,
    "decoder_layers": 2,
    "optimizer": "rmsprop",
    "batch_size": 128,
    "lr": 0.001,
    "lr_halving_epochs": 300.0,
    "sampling_steps": 100_000,
    "train_epochs": 1000.0,
}


@pytest.fixture(scope="module", params=SCALES)
def scale(request, tmp_path_factory):
    return find_scale(request.param, tmp_path_factory.mktemp("made"))


def jobs_of(name, scale, *, kind="train"):
    return [job for job in EXPERIMENTS[name].runs(scale) if job.kind == kind]


def find_values(name, row, column):
    """Give the settings of the one run that a place of a table has at the paper's scale."""
    (found,) = [job.config for job in jobs_of(name, PAPER_SCALE) if (job.row, job.column) == (row, column)]
    return flatten(found)


def differing(values, **expected):
    return {name: values[name] for name, value in expected.items() if values[name] != value}


def test_the_catalog_has_the_six_tables_and_the_four_figures_with_numbers():
    names = [*(f"table{number}" for number in range(1, 7)), *(f"figure{number}" for number in range(3, 7))]
    assert list(PAGE_ORDER) == [*names, "cells", "few_labels"]
    for name in names:
        assert find_title(name)[0].startswith(f"{name[:-1].capitalize()} {name[-1]}: ")


def test_the_command_line_takes_every_kind_of_run_and_asks_for_the_same(scale):
    # Flags are parsed one by one, so a run counts if it has a flag that none before it had with its model.
    configs = [job.config for job in find_jobs(list(EXPERIMENTS), scale)]
    configs += [first for config in configs if (first := first_phase(config)) is not None]
    seen = set()
    for config in configs:
        words = to_flags(config)
        flags = {(config.model.model, word) for word in words if word.startswith("--")}
        if not flags <= seen:
            seen |= flags
            assert flatten(parse_train(words)["run"]) == flatten(config)
    assert len(seen) >= 50


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_runs_at_every_scale_and_each_place_has_each_seed_once(name, scale):
    jobs = list(EXPERIMENTS[name].runs(scale))
    places = [(job.row, job.column, job.config.seed) for job in jobs]
    assert len(places) == len(set(places)) > 0
    assert {job.config.seed for job in jobs} <= set(scale.seeds)
    assert {job.config.threads for job in jobs} == {1}


def test_figure_5_needs_no_run_that_table_2_does_not_have(scale):
    names = {job.name for job in jobs_of("table2", scale)}
    shown = {job.name for job in jobs_of("figure5", scale)}
    assert len(shown) == 3 * len(scale.seeds)
    assert shown <= names


def test_cells_have_the_settings_of_the_lstm_of_table_2_except_for_their_own(scale):
    settings = {(job.row, job.column): flatten(job.config) for job in jobs_of("cells", scale)}
    tabled = {(job.row, job.column): flatten(job.config) for job in jobs_of("table2", scale) if job.config.seed == 0}
    assert [row for row, _ in settings][:6] == ["UR-LSTM Truncate300"] * 3 + ["r-UR-LSTM Truncate300"] * 3
    for (row, column), values in settings.items():
        expected = tabled[re.sub("UR-LSTM|Legendre|LRU|GRU", "LSTM", row), column]
        changed = {name for name, value in values.items() if value != expected[name]}
        # An LRU is another kind of stack, at its published rates, which are not halved.
        own = PRESETS["lru"].settings.keys() - {"objective", "supervised_window"} | {"hidden_size", "lr_halving_epochs"}
        assert changed <= {"model", "gate_init", "embedding_size", "lr"} | (own if "LRU" in row else set())
        assert ("model" in changed) == (values["model"] != "lstm")


def test_runs_that_several_experiments_need_are_run_once(scale):
    together = find_jobs(["table2", "figure5", "table3"], scale)
    rest = find_jobs(["table3"], scale)
    assert len({job.name for job in together}) == len(together)
    assert len(together) < len(find_jobs(["table2"], scale)) + len(rest)


def test_experiments_are_worked_through_in_the_order_asked_for(scale):
    first = [job.name for job in find_jobs(["table2"], scale)]
    both = [job.name for job in find_jobs(["table2", "figure4", "figure5"], scale)]
    assert both[: len(first)] == first


@pytest.mark.parametrize("column", ["MNIST", "pMNIST", "CIFAR10"])
def test_at_the_papers_scale_table_2_has_the_published_settings(column):
    for system, objective in (("r-LSTM", "reconstruct"), ("p-LSTM", "predict")):
        both = PUBLISHED | {"objective": objective, "num_segments": 1, "segment_length": 600, "pretrain_epochs": 100.0}
        cut, full = (find_values("table2", f"{system} {kind}", column) for kind in ("Truncate300", "Full BP"))
        assert differing(cut, **both, supervised_window=300, auxiliary_window=300) == {}
        assert differing(full, **both, supervised_window="full") == {}
        assert (cut["joint"], cut["placement"], cut["order"]) == (True, "past_future", "reversed")
    plain = PUBLISHED | {"objective": "none", "pretrain_epochs": 0.0}
    assert differing(find_values("table2", "LSTM Truncate300", column), **plain, supervised_window=300) == {}
    assert differing(find_values("table2", "LSTM Full BP", column), **plain, supervised_window="full") == {}


def test_the_sequence_autoencoder_is_fed_true_tokens_at_every_scale(scale):
    jobs = [*jobs_of("table4", scale), *jobs_of("table5", scale)]
    assert {job.config.loss.sampling_steps for job in jobs if job.row.startswith("SA-LSTM")} == {0}


def test_at_the_papers_scale_dogs_have_20_and_100_passes_over_150_000_images():
    jobs = jobs_of("figure3", PAPER_SCALE)
    assert PAPER_SCALE.datasets[DOGS].settings["enlarge_to"] == 150_000
    assert {job.config.schedule.train_epochs for job in jobs} == {100.0}
    assert {job.config.data.image_size for job in jobs} == {40, 48, 56, 72, 80, 96, 112, 128}
    first = {job.row: job.config.schedule.pretrain_epochs for job in jobs}
    helped = ("r-LSTM", "p-LSTM", "r-LSTM 20x30")
    assert [row for row, epochs in first.items() if epochs == 20.0] == list(helped)
    assert not any(epochs for row, epochs in first.items() if row not in helped)


def test_at_the_papers_scale_the_auxiliary_loss_of_n_segments_reaches_their_length():
    shapes = {}
    for job in jobs_of("table6", PAPER_SCALE):
        segments, loss = job.config.segments, job.config.loss
        assert loss.auxiliary_window == segments.segment_length
        assert loss.supervised_window == int(job.column)
        shapes[job.row] = (segments.num_segments, segments.segment_length)
    assert [f"{n} x {length}" for n, length in shapes.values()] == list(table6.PAPER)
    many = {"num_segments": 20, "segment_length": 30, "auxiliary_window": 30, "supervised_window": 300}
    assert differing(find_values("figure3", "r-LSTM 20x30", "40"), **many) == {}
    texts = {"num_segments": 20, "segment_length": 15, "auxiliary_window": 15, "supervised_window": 100}
    assert differing(find_values("table4", "r-LSTM 20x15 Truncate100", "DBpedia"), **texts, joint=False) == {}


def test_at_the_papers_scale_the_unrestricted_r_lstm_has_two_layers_of_512_units():
    values = find_values("table5", table5.R_LARGE, "DBpedia")
    large = {"num_layers": 2, "hidden_size": 512, "num_segments": 20, "segment_length": 15}
    assert differing(values, **large, supervised_window="full", joint=False) == {}


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ("table1", "few_labels")])
def test_on_a_desk_all_runs_of_a_table_have_the_same_number_of_updates(name):
    schedules = [job.config.schedule for job in jobs_of(name, DESK_SCALE)]
    updates = {(schedule.pretrain_steps or 0) + schedule.train_steps for schedule in schedules}
    assert len(updates) == 1
    assert name == "figure3" or updates == {DESK_SCALE.schedule.num_updates}


def test_what_is_said_of_the_settings_is_what_the_runs_have():
    folders = Folders(Path("none"), Path("none"))
    settings = {name: dict(find_outcome(name, DESK_SCALE, folders).settings) for name in EXPERIMENTS}
    assert settings["table6"]["hidden size"] == "64"
    assert "hidden size" not in settings["table5"]
    assert "hidden size 128" in settings["table5"][table5.R_LARGE]
    assert "placement past_future" in settings["figure6"]["everything"]
    assert "placement immediate" in settings["figure6"]["immediate past"]
    assert "batch size 32" in settings["figure3"]["r-LSTM time"]
    assert "data mnist / pmnist / cifar10" in settings["table2"]["LSTM Full BP"]


def test_an_update_is_timed_with_the_spans_of_the_paper_also_on_a_desk():
    for job in jobs_of("figure3", DESK_SCALE, kind="cost"):
        if job.row == "r-LSTM 20x30 time":
            many = {"num_segments": 20, "segment_length": 30, "auxiliary_window": 30, "supervised_window": 300}
            assert differing(flatten(job.config), **many) == {}
        elif job.row in ("r-LSTM time", "p-LSTM time"):
            one = {"num_segments": 1, "segment_length": 600, "auxiliary_window": 300, "supervised_window": 300}
            assert differing(flatten(job.config), **one) == {}


@pytest.mark.parametrize(("scale", "start"), [(DESK_SCALE, "a forget bias of one"), (FULL_SCALE, "(chrono)")])
def test_table_2_says_how_the_gates_of_its_scale_start(scale, start):
    assert start in table2.show(Results(scale, [], {})).grids[0].caption
