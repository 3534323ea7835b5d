"""Table 5: DBpedia against models built for characters.

The r-LSTM with two layers, 20 segments of 15 characters and full back-propagation, compared with convolutional networks
and with LSTMs that were pretrained on whole texts.
"""

from collections.abc import Iterator
from typing import Any

from auxrnn.experiments.jobs import Job
from auxrnn.experiments.results import Results, Shown
from auxrnn.experiments.scales import DBPEDIA, Scale
from auxrnn.experiments.table4 import show_errors

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
WHOLE = {"supervised_window": "full", "auxiliary_window": "full"}


def runs(scale: Scale) -> Iterator[Job]:
    """Yield one run for each row of the table, the slow convolutions last."""
    large = {"num_layers": 2, "hidden_size": scale.large_size, "embedding_size": scale.large_size, "joint": False}
    systems: dict[str, tuple[str, dict[str, Any]]] = {
        LSTM_FULL: ("LSTM", {"window": "full"}),
        "LM-LSTM": ("LM-LSTM", WHOLE),
        "SA-LSTM": ("SA-LSTM", WHOLE),
        R_LARGE: ("r-LSTM", {"window": "full", "shape": (20, 15)} | large),
        "char-CNN": ("char-CNN", {}),
        "CNN+RNN": ("CNN+RNN", {}),
        DEEPEST: ("VDCNN", {}),
    }
    for seed in scale.fewer_seeds:
        for row, (system, own) in systems.items():
            yield Job(row, DBPEDIA, scale.config(system, DBPEDIA, seed=seed, **own))


def show(results: Results) -> Shown:
    """Return the table as the paper prints it; the r-LSTM errs less than all but the deepest network."""
    orderings = [(R_LARGE, row) for row in PAPER if row not in (R_LARGE, DEEPEST)] + [(DEEPEST, R_LARGE)]
    return show_errors(results, "No limit on size or back-propagation", PAPER, orderings)
