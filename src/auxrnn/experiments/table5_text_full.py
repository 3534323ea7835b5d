"""Table 5: errors on DBpedia, character by character, without limits on size and back-propagation."""

from collections.abc import Iterator

from auxrnn.experiments.collected import Place, Results, claim_below, tell_errors, test_error
from auxrnn.experiments.jobs import Job
from auxrnn.experiments.pixel_systems import helped, lstm
from auxrnn.experiments.scales import DBPEDIA, Scale
from auxrnn.presets import ModelName
from auxrnn.report.results import Claim, Grid, LineChart, Row

TITLE = "Table 5: DBpedia against models built for characters"
SUMMARY = (
    "The r-LSTM with two layers, 20 segments of 15 characters and full back-propagation, beside convolutional networks"
    " and LSTMs that were pretrained on whole texts."
)
LSTM_FULL, R_LARGE = "LSTM Full Backprop", "r-LSTM n=20, l=15, 2 layers"
PAPER = {
    LSTM_FULL: 13.64,
    "char-CNN": 1.66,
    "CNN+RNN": 1.43,
    "29-layer CNN": 1.29,
    "LM-LSTM": 1.50,
    "SA-LSTM": 2.34,
    R_LARGE: 1.40,
}
CONVOLUTIONAL: dict[str, ModelName] = {"char-CNN": "char_cnn", "CNN+RNN": "conv_rnn", "29-layer CNN": "vdcnn"}
PRETRAINED: dict[str, ModelName] = {"LM-LSTM": "lm_lstm", "SA-LSTM": "sa_lstm"}
MANY = (20, 15)


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one run for each row of the table, the slow convolutions last."""
    for seed in scale.fewer_seeds:
        yield Job(LSTM_FULL, DBPEDIA, lstm(scale, DBPEDIA, seed=seed, window="full"))
        for row, model in PRETRAINED.items():
            whole = {"supervised_window": "full", "auxiliary_window": "full"}
            yield Job(row, DBPEDIA, scale.other(DBPEDIA, model, seed=seed, pretrain=True, **whole))
        large = {"num_layers": 2, "hidden_size": scale.large_size, "embedding_size": scale.large_size}
        config = helped(scale, DBPEDIA, "reconstruct", seed=seed, window="full", shape=MANY, joint=False, **large)
        yield Job(R_LARGE, DBPEDIA, config)
        for row, model in CONVOLUTIONAL.items():
            yield Job(row, DBPEDIA, scale.other(DBPEDIA, model, seed=seed))


def claims(results: Results) -> list[Claim]:
    """Judge that the r-LSTM is behind the deepest network only; less is better."""

    def claim(better: str, worse: str) -> Claim:
        return claim_below(results, Place(better, DBPEDIA), Place(worse, DBPEDIA))

    others = [row for row in PAPER if row not in (R_LARGE, "29-layer CNN")]
    return [claim(R_LARGE, row) for row in others] + [claim("29-layer CNN", R_LARGE)]


def conclude(results: Results) -> str:
    """Say all errors: they are few."""
    return tell_errors(results, [Place(row, DBPEDIA) for row in PAPER])


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Give the table as the paper prints it."""
    rows = tuple(Row(row, (results.cell(row, DBPEDIA, number, test_error),)) for row, number in PAPER.items())
    caption = results.scale.say_part("Without limits", DBPEDIA)
    return [Grid(caption, "test error, %", (DBPEDIA,), rows, decimals=2)], []
