"""T-DMCA's parts equal slow explicit versions; padding changes nothing; memory grows with the steps."""

import math

import pytest
import torch
from attention_models import FUSED, Operations, check_equal, check_linear_cost, check_rows_alone, make_dmca

from auxrnn.models.baselines.dmca import DMCA, CompressedAttention, LocalAttention, SeparableConvolution
from auxrnn.models.baselines.layers import find_real
from auxrnn.models.baselines.transformer import Projections

B, D, H, HEADS = 4, 3, 8, 2
BLOCK, COMPRESSION = 8, 3
T = 29
LENGTHS = [T, 1, 9, 16]


def attend_slowly(query_TH, key_UH, value_UH, allowed_TU):
    """Attend over one row, head by head, with the whole matrix of weights at hand."""
    width = H // HEADS
    found = []
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        score_TU = query_TH[:, part] @ key_UH[:, part].T / math.sqrt(width)
        found.append(score_TU.masked_fill(~allowed_TU, -math.inf).softmax(dim=1) @ value_UH[:, part])
    return torch.cat(found, dim=1)


def list_near(num_steps, reach):
    """Tell which steps are in a step's own block or within `reach` of that block."""
    near_TT = torch.zeros(num_steps, num_steps, dtype=torch.bool)
    for t in range(num_steps):
        start = t // BLOCK * BLOCK
        near_TT[t, max(start - reach, 0) : start + BLOCK + reach] = True
    return near_TT


def check_against_slow(module, read_slowly, is_padded):
    """Compare a part with its slow version on the real steps of each row, in values and gradients."""
    x_BTH = torch.randn(B, T, H, dtype=torch.float64, requires_grad=True)
    lengths = LENGTHS if is_padded else [T] * B
    weight_BTH = torch.randn(B, T, H, dtype=torch.float64)
    actual_BTH = module(x_BTH, find_real(torch.tensor(lengths), T) if is_padded else None)
    expected = [read_slowly(x_BTH[b, :length]) for b, length in enumerate(lengths)]
    actual = [actual_BTH[b, :length] for b, length in enumerate(lengths)]
    check_equal(torch.cat(actual), torch.cat(expected), 1e-12)
    sources = [x_BTH, *module.parameters()]
    grads, slow_grads = (
        torch.autograd.grad(sum((weight_BTH[b, : len(row)] * row).sum() for b, row in enumerate(rows)), sources)
        for rows in (actual, expected)
    )
    for grad, slow_grad in zip(grads, slow_grads, strict=True):
        check_equal(grad, slow_grad, 1e-12)


@pytest.mark.parametrize("reach", [0, 4, 11])
@pytest.mark.parametrize("is_padded", [False, True])
def test_local_attention_equals_full_attention_under_a_mask(reach, is_padded):
    maps = Projections(H, num_heads=HEADS)
    attention = LocalAttention(maps, block_length=BLOCK, block_reach=reach).double()

    def read_slowly(x_TH):
        near_TT = list_near(len(x_TH), reach)
        return maps.output(attend_slowly(maps.query(x_TH), maps.key(x_TH), maps.value(x_TH), near_TT))

    check_against_slow(attention, read_slowly, is_padded)


@pytest.mark.parametrize("compression", [1, 3, 5])
@pytest.mark.parametrize("is_padded", [False, True])
def test_compressed_attention_equals_a_convolution_step_by_step(compression, is_padded):
    maps = Projections(H, num_heads=HEADS)
    attention = CompressedAttention(maps, hidden_size=H, compression=compression).double()

    def compress_slowly(x_TH, layer):
        kernel_HSH = layer.weight.reshape(H, compression, H)
        windows = []
        for start in range(0, len(x_TH), compression):
            steps = enumerate(x_TH[start : start + compression])
            bias_H = torch.zeros(H, dtype=torch.float64) if layer.bias is None else layer.bias
            windows.append(sum((kernel_HSH[:, s] @ x_H for s, x_H in steps), bias_H))
        return torch.stack(windows)

    def read_slowly(x_TH):
        key_UH = compress_slowly(maps.key(x_TH), attention.compress_key)
        value_UH = compress_slowly(maps.value(x_TH), attention.compress_value)
        allowed_TU = torch.ones(len(x_TH), len(key_UH), dtype=torch.bool)
        return maps.output(attend_slowly(maps.query(x_TH), key_UH, value_UH, allowed_TU))

    check_against_slow(attention, read_slowly, is_padded)


@pytest.mark.parametrize("kernel_length", [3, 31])
@pytest.mark.parametrize("is_padded", [False, True])
def test_a_separable_convolution_is_centered_and_sees_zeros_outside_a_row(kernel_length, is_padded):
    convolution = SeparableConvolution(H, kernel_length=kernel_length).double()

    def read_slowly(x_TH):
        rows = []
        for t in range(len(x_TH)):
            near = [(s, t + s - kernel_length // 2) for s in range(kernel_length)]
            rows.append(sum(convolution.kernel_HS[:, s] * x_TH[at] for s, at in near if 0 <= at < len(x_TH)))
        return convolution.mix(torch.stack(rows))

    check_against_slow(convolution, read_slowly, is_padded)


def test_local_and_compressed_attention_take_turns():
    kinds = [type(block.attention) for block in make_dmca().stack.blocks]
    assert kinds == [LocalAttention, CompressedAttention, LocalAttention, CompressedAttention, LocalAttention]


def test_a_block_adds_attention_and_convolutions_to_what_it_reads():
    block = make_dmca().stack.blocks[1]
    x_BTH = torch.randn(B, T, H, dtype=torch.float64)
    y_BTH = x_BTH + block.attention(block.attention_norm(x_BTH), None)
    hidden_BTH = block.feed_forward.inner(block.feed_forward_norm(y_BTH), None).clamp(min=0)
    check_equal(block(x_BTH, None), y_BTH + block.feed_forward.outer(hidden_BTH, None), 1e-12)


@pytest.mark.parametrize("num_columns", [5, 8, 29, 48])
@pytest.mark.parametrize("garbage", [1e300, float("nan")])
def test_rows_in_a_padded_batch_are_those_rows_alone(num_columns, garbage):
    lengths = [num_columns, 1, *torch.randint(1, num_columns + 1, (4,)).tolist()]
    check_rows_alone(make_dmca(), lengths, num_columns, garbage=garbage, tolerance=1e-12)


def test_rows_in_a_padded_batch_are_those_rows_alone_in_single_precision():
    check_rows_alone(make_dmca().float(), [200, 1, 37, 136], 200, garbage=3e38, tolerance=1e-5)


@pytest.mark.parametrize("first_B", [None, T - torch.tensor(LENGTHS)], ids=["full", "padded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_runs_in_the_fused_kernel(first_B, dtype):
    model = make_dmca(dropout=0.1).to(dtype)
    with Operations() as operations:
        model(torch.randn(B, T, D, dtype=dtype), first_B).sum().backward()
    assert {name: operations.count(name) for name in FUSED} == dict.fromkeys(FUSED, 5)
    assert not any("softmax" in name for name in operations.names)


@pytest.mark.parametrize("is_padded", [False, True])
def test_memory_grows_linearly_with_the_steps(is_padded):
    check_linear_cost(make_dmca(dropout=0.1), 10 * BLOCK * COMPRESSION, is_padded=is_padded)


def test_tokens_are_read_as_well():
    model = make_dmca(vocabulary_size=5)
    x_BT = torch.randint(5, (B, T))
    check_equal(model(x_BT, torch.tensor([9] * B)), model(x_BT[:, 9:]), 1e-12)


def test_dropout_is_on_in_training_and_off_at_evaluation():
    model = make_dmca(dropout=0.5)
    plain = make_dmca(dropout=0.0)
    plain.load_state_dict(model.state_dict())
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    assert not torch.equal(model(x_BTD), model(x_BTD))
    assert torch.equal(model.eval()(x_BTD), plain(x_BTD))


@pytest.mark.parametrize("first_B", [None, T - torch.tensor(LENGTHS)], ids=["full", "padded"])
def test_autocast_gives_the_same_but_for_rounding(first_B):
    model = make_dmca().float()
    x_BTD = torch.randn(B, T, D)
    with torch.autocast("cpu", dtype=torch.float16):
        actual_BH = model(x_BTD, first_B)
    actual_BH.sum().backward()
    # A number of 16 bits has 11 that count; some fifty roundings follow one another.
    check_equal(actual_BH.float(), model(x_BTD, first_B), 50 * 2**-11)
    assert all(bool(weight.grad.isfinite().all()) for weight in model.parameters())


def test_the_model_of_the_paper_gives_128_features():
    sizes = {"hidden_size": 128, "num_layers": 5, "num_heads": 4, "dropout": 0.1}
    model = DMCA(1, vocabulary_size=None, block_length=256, block_reach=128, compression=3, **sizes)
    assert model(torch.randn(1, 300, 1)).shape == (1, model.output_size) == (1, 128)
