import numpy as np
import pytest

from auxrnn.config import unflatten
from auxrnn.report.pages import DemoFacts, DemoRow
from auxrnn.report.records import MemoryErrors, Reconstructions

HEIGHT, WIDTH = 5, 4


def make_row(name, title, window, num_steps, accuracy, seconds):
    first = num_steps[0]
    curve = {first + step: accuracy * step / num_steps[1] for step in range(10, num_steps[1] + 1, 10)}
    values = {"data": "digits", "seed": 17, "supervised_window": window}
    config = unflatten(values | {"pretrain_steps": first, "train_steps": num_steps[1]})
    return DemoRow(name, title, f"{title} in words", config, curve, seconds)


@pytest.fixture
def rows():
    return [
        make_row("lstm_full", "LSTM, full", "full", (0, 40), 71.3, 75.2),
        make_row("lstm_truncated", "LSTM, truncated", 28, (0, 40), 40.4, 31.0),
        make_row("reconstruct", "r-LSTM", 28, (20, 20), 93.6, 44.4),
        make_row("predict", "p-LSTM", 28, (20, 20), 90.9, 42.0),
    ]


@pytest.fixture
def facts():
    return DemoFacts(
        train_examples=1437,
        test_examples=360,
        num_classes=10,
        sequence_length=196,
        versions=[("auxrnn", "0.1.0"), ("torch", "2.13.0")],
        shown_errors=MemoryErrors(0.0312, 0.1234, 0.0567),
        test_errors=MemoryErrors(0.0415, 0.1312, 0.0678),
    )


@pytest.fixture
def reconstructions():
    """Three examples of 20 pixels, with segments of 5 of them."""
    image_KT = np.linspace(0, 1, 3 * HEIGHT * WIDTH, dtype=np.float32).reshape(3, HEIGHT * WIDTH)
    predicted = np.float32([[0.5, 0.6, 0.7, 0.8], [0.1, 0.2, 0.3, 0.4], [0.9, 1.0, 0.0, 0.1]])
    return Reconstructions(
        image_KT=image_KT,
        anchor_K=np.array([9, 19, 4]),
        reconstruction_KS=predicted,
        is_reversed=True,
        height=HEIGHT,
        width=WIDTH,
    )
