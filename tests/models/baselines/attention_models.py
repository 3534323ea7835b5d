"""Small attention models, their rows alone beside their rows in a batch, and what their operations hold."""

from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from auxrnn.models.baselines.dmca import DMCA
from auxrnn.models.baselines.transformer import Transformer

FUSED = {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"}


def make_transformer(input_size=3, vocabulary_size=None, hidden_size=8, dropout=0.0):
    sizes = {"num_layers": 2, "num_heads": 2, "filter_size": 16}
    return Transformer(
        input_size, vocabulary_size=vocabulary_size, hidden_size=hidden_size, dropout=dropout, **sizes
    ).double()


def make_dmca(input_size=3, vocabulary_size=None, hidden_size=8, dropout=0.0):
    sizes = {"num_layers": 5, "num_heads": 2, "block_length": 8, "block_reach": 4, "compression": 3}
    return DMCA(input_size, vocabulary_size=vocabulary_size, hidden_size=hidden_size, dropout=dropout, **sizes).double()


def check_equal(actual, expected, tolerance):
    """Compare to the scale of the expected tensor: single elements may cancel to nothing."""
    scale = float(expected.detach().abs().max())
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance * scale)


def check_rows_alone(model, lengths, num_columns, *, garbage, tolerance):
    """Check that features and all gradients of a batch are those of its rows read one by one."""
    dtype = next(model.parameters()).dtype
    rows = [torch.randn(length, 3, dtype=dtype) for length in lengths]
    x_BTD = torch.full((len(rows), num_columns, 3), garbage, dtype=dtype)
    for b, row_TD in enumerate(rows):
        x_BTD[b, num_columns - len(row_TD) :] = row_TD
    first_B = num_columns - torch.tensor(lengths)
    weight_BH = torch.randn(len(rows), model.output_size, dtype=dtype)
    batch = run(model, x_BTD, first_B, weight_BH)
    alone = [run(model, row_TD[None], None, weight_BH[b : b + 1]) for b, row_TD in enumerate(rows)]
    check_equal(batch.features_BH, torch.cat([one.features_BH for one in alone]), tolerance)
    for b, (one, length) in enumerate(zip(alone, lengths, strict=True)):
        check_equal(batch.x_grad[b, num_columns - length :], one.x_grad[0], tolerance)
        assert bool((batch.x_grad[b, : num_columns - length] == 0).all())
    for actual, *parts in zip(batch.weight_grads, *(one.weight_grads for one in alone), strict=True):
        check_equal(actual, torch.stack(parts).sum(dim=0), tolerance)


class Outcome(NamedTuple):
    features_BH: torch.Tensor
    x_grad: torch.Tensor
    weight_grads: tuple[torch.Tensor, ...]


def run(model, x_BTD, first_B, weight_BH):
    x_BTD = x_BTD.clone().requires_grad_()
    features_BH = model(x_BTD, first_B)
    x_grad, *weight_grads = torch.autograd.grad((features_BH * weight_BH).sum(), [x_BTD, *model.parameters()])
    return Outcome(features_BH.detach(), x_grad, tuple(weight_grads))


class Operations(TorchDispatchMode):
    """Notes each operation that runs and the largest tensor that any of them gives."""

    def __init__(self):
        super().__init__()
        self.names = []
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        for result in results if isinstance(results, tuple | list) else [results]:
            if isinstance(result, torch.Tensor):
                self.largest = max(self.largest, result.numel())
        return results

    def count(self, name):
        return self.names.count(name)


class Cost(NamedTuple):
    saved: int
    largest: int


def measure(model, num_columns, *, is_padded):
    """Give how many elements one pass saves for backward, and how many its largest tensor has at any time."""
    x_BTD = torch.randn(2, num_columns, 3, dtype=torch.float64)
    first_B = torch.tensor([0, num_columns // 2]) if is_padded else None
    saved = []
    with Operations() as operations:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x.numel()) or x, lambda x: x):
            features_BH = model(x_BTD, first_B)
        features_BH.sum().backward()
    return Cost(sum(saved), operations.largest)


def check_linear_cost(model, num_columns, *, is_padded):
    """Check that doubling T doubles what a pass holds, but for a part that does not depend on T."""
    short, middle, long = (measure(model, factor * num_columns, is_padded=is_padded) for factor in (1, 2, 4))
    assert long.saved - middle.saved == 2 * (middle.saved - short.saved) > 0
    assert long.largest == 2 * middle.largest == 4 * short.largest
