"""Contenders that are compared must give the same numbers: a fast wrong answer is no speed-up."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from auxrnn.errors import RunError

# Single precision, summed in another order over some hundred steps: what was seen stays below a tenth of this.
TOLERANCE = 1e-4


def check_agreement(answers: Mapping[str, Any], *, of: str) -> None:
    """Refuse answers that differ from the first by more than rounding, relative to its largest magnitude."""
    arrays = {name: np.asarray(answer) for name, answer in answers.items()}
    reference, *others = arrays
    scale = float(np.abs(arrays[reference]).max())
    for name in others:
        difference = float(np.abs(arrays[name] - arrays[reference]).max()) / scale
        if not difference <= TOLERANCE:
            raise RunError(
                f"{name} and {reference} differ by {difference:.1e} in {of}, so their times cannot be compared;"
                " please report this as a bug"
            )
