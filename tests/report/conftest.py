import json

import numpy as np
import pytest

from auxrnn.report.canvas import MemoryErrors
from auxrnn.report.pages import DemoErrors, DemoFacts, DemoRow
from auxrnn.report.records import Reconstructions

HEIGHT, WIDTH = 5, 4


@pytest.fixture
def rows():
    return [
        DemoRow("lstm_full", "LSTM, full", "corrected through all steps", "full", 0, 40, 71.3, 75.2),
        DemoRow("lstm_truncated", "LSTM, truncated", "corrected through few", 28, 0, 40, 40.4, 31.0),
        DemoRow("reconstruct", "r-LSTM", "rebuilds the past", 28, 20, 20, 93.6, 44.4),
        DemoRow("predict", "p-LSTM", "predicts the future", 28, 20, 20, 90.9, 42.0),
    ]


@pytest.fixture
def facts():
    return DemoFacts(
        title="Digits, pixel by pixel",
        dataset="bundled digits",
        train_examples=1437,
        test_examples=360,
        num_classes=10,
        sequence_length=196,
        seed=17,
        versions=[("auxrnn", "0.1.0"), ("torch", "2.13.0")],
        command="auxrnn demo --seed 17",
        run_commands=["auxrnn train digits --seed 17"],
    )


@pytest.fixture
def errors():
    return DemoErrors(MemoryErrors(0.0312, 0.1234, 0.0567), MemoryErrors(0.0415, 0.1312, 0.0678))


@pytest.fixture
def reconstructions():
    """Three examples of 20 pixels; the last has a shorter segment, padded with NaN."""
    image_KT = np.linspace(0, 1, 3 * HEIGHT * WIDTH, dtype=np.float32).reshape(3, HEIGHT * WIDTH)
    predicted = np.float32([[0.5, 0.6, 0.7, 0.8], [0.1, 0.2, 0.3, 0.4], [0.9, 1.0, np.nan, np.nan]])
    return Reconstructions(
        image_KT=image_KT,
        anchor_K=np.array([12, 19, 6]),
        start_K=np.array([5, 15, 0]),
        length_K=np.array([4, 4, 2]),
        reconstruction_KS=predicted,
        label_K=np.array([0, 1, 2]),
        is_reversed=True,
        height=HEIGHT,
        width=WIDTH,
    )


@pytest.fixture
def demo(tmp_path, rows, reconstructions):
    """The folder of a finished demo."""
    for row in rows:
        write_run(tmp_path / row.name, row)
    np.savez(tmp_path / "reconstructions.npz", **reconstructions._asdict())
    return tmp_path


def write_run(folder, row):
    folder.mkdir()
    phase = "joint" if row.pretrain_steps else "supervised"
    events = [
        {"event": "evaluation", "phase": "pretrain", "step": step, "total_step": step, "test_loss": 0.1}
        for step in range(10, row.pretrain_steps + 1, 10)
    ]
    events += [
        {
            "event": "evaluation",
            "phase": phase,
            "step": step,
            "total_step": row.pretrain_steps + step,
            "test_accuracy": row.accuracy * step / row.train_steps,
        }
        for step in range(10, row.train_steps + 1, 10)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
