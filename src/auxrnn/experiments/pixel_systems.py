"""The recurrent systems that the paper compares on images, in its own numbers; a scale shrinks them."""

from typing import Any

from auxrnn.config import Objective, RunConfig, Window
from auxrnn.experiments.scales import PAPER_WINDOW, Scale

SEGMENT_LENGTH = 600
OBJECTIVES: dict[str, Objective] = {"r-LSTM": "reconstruct", "p-LSTM": "predict"}


def shown_as(title: str, *, ours: object, paper: object) -> str:
    """Name a row or column as the paper does, and say what its spans are here where they are others."""
    return title if ours == paper else f"{title} (here {ours})"


def lstm(scale: Scale, dataset: str, *, seed: int, window: Window = PAPER_WINDOW, **changes: Any) -> RunConfig:
    """Give an LSTM without auxiliary loss, all of whose updates have labels."""
    return scale.config(
        dataset,
        seed=seed,
        pretrain=False,
        objective="none",
        supervised_window=scale.window(window, dataset),
        **changes,
    )


def helped(
    scale: Scale,
    dataset: str,
    objective: Objective,
    *,
    seed: int,
    window: Window = PAPER_WINDOW,
    shape: tuple[int, int] = (1, SEGMENT_LENGTH),
    **changes: Any,
) -> RunConfig:
    """Give an r-LSTM or p-LSTM with n segments of length l (`shape`).

    With n = 1 the auxiliary loss reaches 300 steps, in every other shape l of them (section 5.2), and with full
    back-propagation as far as there are steps. A scale may have a single segment of its own length, which is then also
    its reach.
    """
    num_segments, length = shape
    is_single = shape == (1, SEGMENT_LENGTH)
    if is_single and scale.segment_length is not None:
        length = scale.segment_length
    reach: Window = scale.span(PAPER_WINDOW if is_single and length == SEGMENT_LENGTH else length, dataset)
    values = {
        "objective": objective,
        "supervised_window": scale.window(window, dataset),
        "auxiliary_window": "full" if window == "full" else reach,
        "num_segments": num_segments,
        "segment_length": scale.span(length, dataset),
    }
    pretrain = changes.pop("pretrain", True)
    return scale.config(dataset, seed=seed, pretrain=pretrain, **(values | changes))
