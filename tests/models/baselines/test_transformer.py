"""The Transformer equals torch's own encoder, ignores padding, and never holds a matrix of queries by keys."""

import math

import pytest
import torch
from attention_models import FUSED, Operations, check_equal, check_linear_cost, check_rows_alone, make_transformer
from torch import nn

from auxrnn.models.baselines.layers import find_real
from auxrnn.models.baselines.transformer import Projections, StepEmbedding, Transformer, compute_positions
from auxrnn.models.encoder import Head

B, T, D, H, V = 4, 11, 3, 8, 6
LENGTHS = [T, 1, 5, 8]


def copy_to_torch(block):
    """Give torch's own pre-norm layer with the weights of a block; it has biases in attention, set to zero."""
    options = {"norm_first": True, "batch_first": True, "layer_norm_eps": 1e-6, "activation": "relu"}
    layer = nn.TransformerEncoderLayer(H, 2, dim_feedforward=16, dropout=0.0, dtype=torch.float64, **options)
    maps = block.attention.maps
    with torch.no_grad():
        layer.self_attn.in_proj_weight.copy_(torch.cat([maps.query.weight, maps.key.weight, maps.value.weight]))
        layer.self_attn.in_proj_bias.zero_()
        layer.self_attn.out_proj.bias.zero_()
    layer.self_attn.out_proj.load_state_dict(maps.output.state_dict(), strict=False)
    layer.linear1.load_state_dict(block.feed_forward.inner.state_dict())
    layer.linear2.load_state_dict(block.feed_forward.outer.state_dict())
    layer.norm1.load_state_dict(block.attention_norm.state_dict())
    layer.norm2.load_state_dict(block.feed_forward_norm.state_dict())
    return layer


def spread_weights(model):
    """Move norms and biases away from where they start, so that leaving one out shows."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def list_weight_gradients(block, layer):
    """Pair the gradients of a block with those of torch's layer."""
    maps, feed_forward = block.attention.maps, block.feed_forward
    ours = torch.cat([maps.query.weight.grad, maps.key.weight.grad, maps.value.weight.grad])
    yield ours, layer.self_attn.in_proj_weight.grad
    for own, other in [
        (maps.output, layer.self_attn.out_proj),
        (feed_forward.inner, layer.linear1),
        (feed_forward.outer, layer.linear2),
        (block.attention_norm, layer.norm1),
        (block.feed_forward_norm, layer.norm2),
    ]:
        yield own.weight.grad, other.weight.grad


@pytest.mark.parametrize("is_padded", [False, True])
def test_a_block_equals_torchs_own_layer_in_values_and_gradients(is_padded):
    block = spread_weights(make_transformer()).stack.blocks[0]
    layer = copy_to_torch(block)
    real_BT = find_real(torch.tensor(LENGTHS if is_padded else [T] * B), T)
    x_BTH = torch.randn(B, T, H, dtype=torch.float64, requires_grad=True)
    y_BTH = x_BTH.detach().clone().requires_grad_()
    weight_BTH = torch.randn(B, T, H, dtype=torch.float64).masked_fill(~real_BT.unsqueeze(2), 0)
    actual_BTH = block(x_BTH, real_BT if is_padded else None)
    expected_BTH = layer(y_BTH, src_key_padding_mask=~real_BT)
    check_equal(actual_BTH[real_BT], expected_BTH[real_BT], 1e-12)
    (actual_BTH * weight_BTH).sum().backward()
    (expected_BTH * weight_BTH).sum().backward()
    check_equal(x_BTH.grad, y_BTH.grad, 1e-12)
    for actual, expected in list_weight_gradients(block, layer):
        check_equal(actual, expected, 1e-12)


def test_the_whole_model_is_embedding_blocks_norm_and_mean():
    model = spread_weights(make_transformer())
    stack = model.stack
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    layer = stack.embedding.embedding
    h_BTH = math.sqrt(H) * (x_BTD @ layer.weight.T + layer.bias) + slow_positions(T, H)
    for block in stack.blocks:
        h_BTH = copy_to_torch(block)(h_BTH)
    centered_BTH = h_BTH - h_BTH.mean(dim=2, keepdim=True)
    normal_BTH = centered_BTH / (centered_BTH.square().mean(dim=2, keepdim=True) + 1e-6).sqrt()
    expected_BH = (normal_BTH * stack.norm.weight + stack.norm.bias).mean(dim=1)
    check_equal(model(x_BTD), expected_BH, 1e-12)


def slow_positions(num_columns, hidden_size):
    """Give each position's sines, then its cosines, one by one."""
    num_timescales = hidden_size // 2
    place_TH = torch.zeros(num_columns, hidden_size, dtype=torch.float64)
    for t in range(num_columns):
        for e in range(num_timescales):
            timescale = math.exp(math.log(1e4) * e / max(num_timescales - 1, 1))
            place_TH[t, e] = math.sin(t / timescale)
            place_TH[t, num_timescales + e] = math.cos(t / timescale)
    return place_TH


@pytest.mark.parametrize("hidden_size", [2, 3, 8, 9])
def test_positions_are_sines_then_cosines(hidden_size):
    actual_TH = compute_positions(300, hidden_size=hidden_size, like=torch.zeros(1, dtype=torch.float64))
    torch.testing.assert_close(actual_TH, slow_positions(300, hidden_size), rtol=0, atol=1e-12)


def test_positions_of_16_bits_are_computed_with_more():
    actual_TH = compute_positions(3000, hidden_size=4, like=torch.zeros(1, dtype=torch.bfloat16))
    # Rounded once: half a unit in the last of 8 bits.
    torch.testing.assert_close(actual_TH.double(), slow_positions(3000, 4), rtol=0, atol=2**-8)


def test_tokens_are_looked_up_and_scaled_by_the_root_of_the_width():
    embedding = StepEmbedding(1, vocabulary_size=V, hidden_size=H, dropout=0.0).double()
    x_BT = torch.randint(V, (B, T))
    expected_BTH = embedding.embedding.weight[x_BT] * math.sqrt(H) + slow_positions(T, H)
    torch.testing.assert_close(embedding(x_BT), expected_BTH, rtol=1e-12, atol=1e-12)


def test_embedded_tokens_start_with_unit_variance():
    embedding = StepEmbedding(1, vocabulary_size=2000, hidden_size=50, dropout=0.0)
    # 100,000 normal numbers: four standard errors of their standard deviation are 4 / sqrt(200000).
    assert abs(float(embedding.scale * embedding.embedding.weight.detach().std()) - 1) < 0.009


@pytest.mark.parametrize("garbage", [0.0, 1e300, float("nan")])
def test_rows_in_a_padded_batch_are_those_rows_alone(garbage):
    check_rows_alone(spread_weights(make_transformer()), LENGTHS, T, garbage=garbage, tolerance=1e-12)


def test_rows_in_a_padded_batch_are_those_rows_alone_in_single_precision():
    check_rows_alone(make_transformer().float(), [600, 1, 37, 513], 600, garbage=3e38, tolerance=1e-5)


def test_tokens_in_padding_change_nothing():
    model = make_transformer(vocabulary_size=V)
    x_BT = torch.randint(V, (B, T))
    first_B = T - torch.tensor(LENGTHS)
    expected_BH = torch.cat([model(x_BT[b : b + 1, first:]) for b, first in enumerate(first_B.tolist())])
    x_BT[~find_real(torch.tensor(LENGTHS), T).flip(1)] = -1
    check_equal(model(x_BT, first_B), expected_BH, 1e-12)


@pytest.mark.parametrize("first_B", [None, T - torch.tensor(LENGTHS)], ids=["full", "padded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_runs_in_the_fused_kernel(first_B, dtype):
    model = make_transformer(dropout=0.1).to(dtype)
    with Operations() as operations:
        model(torch.randn(B, T, D, dtype=dtype), first_B).sum().backward()
    assert {name: operations.count(name) for name in FUSED} == dict.fromkeys(FUSED, 2)
    assert not any("softmax" in name for name in operations.names)


def test_a_full_batch_meets_no_mask():
    with Operations() as operations:
        make_transformer()(torch.randn(B, T, D, dtype=torch.float64))
    assert not {"where", "masked_fill", "index", "lt"} & set(operations.names)


@pytest.mark.parametrize("is_padded", [False, True])
def test_memory_grows_linearly_with_the_steps(is_padded):
    check_linear_cost(make_transformer(dropout=0.1), 200, is_padded=is_padded)


def test_the_model_of_the_paper_has_430_thousand_weights():
    model = Transformer(
        1, vocabulary_size=None, hidden_size=128, num_layers=2, num_heads=4, filter_size=512, dropout=0.1
    )
    head = Head(model.output_size, head_size=256, output_size=10, drop_connect=0.5)
    assert sum(weight.numel() for part in (model, head) for weight in part.parameters()) == 431_626


def test_dropout_is_on_in_training_and_off_at_evaluation():
    model = make_transformer(dropout=0.5)
    plain = make_transformer(dropout=0.0)
    plain.load_state_dict(model.state_dict())
    x_BTD = torch.randn(B, T, D, dtype=torch.float64)
    assert not torch.equal(model(x_BTD), model(x_BTD))
    assert torch.equal(model.eval()(x_BTD), plain(x_BTD))


def test_dropout_acts_at_each_of_its_places():
    model = make_transformer(dropout=0.5)
    with Operations() as operations:
        model(torch.randn(B, T, D, dtype=torch.float64))
    # Once on the embedding, and three times in each of two blocks.
    assert operations.count("random_") == 7


@pytest.mark.parametrize("first_B", [None, T - torch.tensor(LENGTHS)], ids=["full", "padded"])
def test_autocast_gives_the_same_but_for_rounding(first_B):
    model = make_transformer().float()
    x_BTD = torch.randn(B, T, D)
    with torch.autocast("cpu", dtype=torch.float16):
        actual_BH = model(x_BTD, first_B)
    actual_BH.sum().backward()
    # A number of 16 bits has 11 that count; some twenty roundings follow one another.
    check_equal(actual_BH.float(), model(x_BTD, first_B), 20 * 2**-11)
    assert all(bool(weight.grad.isfinite().all()) for weight in model.parameters())


def test_linear_maps_start_glorot_uniform():
    model = make_transformer(hidden_size=128)
    weight = model.stack.blocks[0].feed_forward.inner.weight.detach()
    bound = math.sqrt(6 / (128 + 16))
    # Of 2048 uniform numbers the largest falls short of the bound by a hundredth with probability 1e-9.
    assert 0.99 * bound < float(weight.abs().max()) <= bound
    assert bool((model.stack.blocks[0].feed_forward.inner.bias == 0).all())


def test_a_width_that_heads_cannot_share_is_refused():
    with pytest.raises(ValueError, match="hidden_size is 8; it must be a multiple of num_heads, 3"):
        Projections(8, num_heads=3)
