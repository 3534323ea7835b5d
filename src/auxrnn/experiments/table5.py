"""Table 5: errors on DBpedia, character by character, without limits on size and back-propagation."""

from collections.abc import Iterator

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, test_error
from auxrnn.experiments.scales import DBPEDIA, Scale
from auxrnn.presets import ModelName
from auxrnn.report.results import Claim, Grid, LineChart

TITLE = "Table 5: DBpedia against models built for characters"
SUMMARY = (
    "The r-LSTM with two layers, 20 segments of 15 characters and full back-propagation, compared with convolutional"
    " networks and with LSTMs that were pretrained on whole texts."
)
LSTM_FULL, R_LARGE, DEEPEST = "LSTM Full Backprop", "r-LSTM n=20, l=15, 2 layers", "29-layer CNN"
PAPER = {
    LSTM_FULL: 13.64,
    "char-CNN": 1.66,
    "CNN+RNN": 1.43,
    DEEPEST: 1.29,
    "LM-LSTM": 1.50,
    "SA-LSTM": 2.34,
    R_LARGE: 1.40,
}
CONVOLUTIONAL: dict[str, ModelName] = {"char-CNN": "char_cnn", "CNN+RNN": "conv_rnn", DEEPEST: "vdcnn"}
PRETRAINED: dict[str, ModelName] = {"LM-LSTM": "lm_lstm", "SA-LSTM": "sa_lstm"}
WHOLE = {"supervised_window": "full", "auxiliary_window": "full"}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one run for each row of the table, the slow convolutions last."""
    large = {"num_layers": 2, "hidden_size": scale.large_size, "embedding_size": scale.large_size, "joint": False}
    for seed in scale.fewer_seeds:
        yield Job(LSTM_FULL, DBPEDIA, scale.lstm(DBPEDIA, seed=seed, window="full"))
        for row, model in PRETRAINED.items():
            yield Job(row, DBPEDIA, scale.other(DBPEDIA, model, seed=seed, pretrain=True, **WHOLE))
        config = scale.with_auxiliary(DBPEDIA, "r-LSTM", seed=seed, window="full", shape=(20, 15), **large)
        yield Job(R_LARGE, DBPEDIA, config)
        for row, model in CONVOLUTIONAL.items():
            yield Job(row, DBPEDIA, scale.other(DBPEDIA, model, seed=seed))


def claims(results: Results) -> list[Claim]:
    """Judge that the r-LSTM errs less than all but the deepest network."""
    orderings = [(R_LARGE, row) for row in PAPER if row not in (R_LARGE, DEEPEST)] + [(DEEPEST, R_LARGE)]
    return [results.claim_less_error((better, DBPEDIA), (worse, DBPEDIA)) for better, worse in orderings]


def conclude(results: Results) -> str:
    """Return all errors."""
    return results.tell_errors(PAPER, DBPEDIA)


def render(results: Results) -> tuple[list[Grid], list[LineChart]]:
    """Return the table as the paper prints it."""
    rows = results.rows({row: (number,) for row, number in PAPER.items()}, (DBPEDIA,), value=test_error)
    caption = results.scale.add_part("No limit on size or back-propagation", DBPEDIA)
    return [Grid(caption, "test error, %", (DBPEDIA,), rows, decimals=2)], []
