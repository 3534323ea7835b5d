"""Dropout of rows that may be a share of a larger batch: it then draws for all of them, as one process would."""

from contextvars import ContextVar

import torch.nn.functional as F
from jaxtyping import Shaped
from torch import Tensor

from auxrnn.structs import Share

SHARE: ContextVar[Share | None] = ContextVar("share", default=None)
"""Which rows of their batch the dropout layers read now; None: all."""


def whole_shape(x: Shaped[Tensor, "B ..."]) -> tuple[int, ...]:
    """Return the shape that a tensor has in the whole batch."""
    share = SHARE.get()
    return tuple(x.shape) if share is None else (share.num_rows, *x.shape[1:])


def own_rows(whole: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """Return the rows that are read now of a draw for the whole batch."""
    share = SHARE.get()
    return whole if share is None else share.take(whole)


def drop(x: Shaped[Tensor, "B ..."], rate: float, *, is_training: bool = True) -> Shaped[Tensor, "B ..."]:
    """Do what torch's dropout does."""
    if SHARE.get() is None or not is_training or not rate:
        return F.dropout(x, rate, is_training)
    return x * own_rows(F.dropout(x.new_ones(whole_shape(x)), rate))
