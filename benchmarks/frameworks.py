"""Other ways to run the same LSTM: further forms of torch's, and JAX, Keras and onnxruntime where they are installed.

Install them with `pip install 'auxrnn[bench]'`. Each framework is imported when its implementation is built. JAX and
Keras use as many threads as they see cores; only onnxruntime can be told another number.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from auxrnn import bptt
from auxrnn.bench import (
    OURS,
    TORCH_LSTM,
    Call,
    SpeedSizes,
    build_lstm,
    draw_inputs,
    recurrent_gradient,
    torch_cell,
    torch_modules,
)
from auxrnn.config import Window
from auxrnn.models.encoder import Encoder

GATES = 4


class Problem(NamedTuple):
    """What every implementation gets: an encoder to take the weights of, sequences, a gradient at the last outputs."""

    encoder: Encoder
    x_BTD: Tensor
    gradient_BH: Tensor


class Implementation(NamedTuple):
    """An LSTM: `forward` returns the last outputs [B, H], `backward` the gradient of the recurrent weights [4 H, H]."""

    forward: Call
    backward: Call | None


Builders = Mapping[str, Callable[[Problem], Implementation]]


def make_problem(sizes: SpeedSizes, num_steps: int) -> Problem:
    """Return random weights and sequences."""
    return Problem(build_lstm(sizes).encoder, *draw_inputs(sizes, num_steps))


def run_ours(problem: Problem) -> Implementation:
    """Return the library's own forward and backward pass."""
    encoder, x_BTD, gradient_BH = problem

    def forward(window: Window) -> Tensor:
        return bptt.final_states(encoder, x_BTD, window=window).h_LBH[-1]

    return Implementation(lambda: forward(0), lambda: recurrent_gradient(forward("full"), encoder, gradient_BH))


def run_torch(problem: Problem) -> Implementation:
    """Return what a user of torch would write: a linear embedding, then torch's LSTM, time-major."""
    return run_torch_modules(*torch_modules(problem.encoder), problem)


def run_torch_modules(embedding: nn.Module, lstm: nn.LSTM, problem: Problem) -> Implementation:
    """Return the passes of torch's LSTM over embedded steps."""
    modules, x_TBD = nn.ModuleList([embedding, lstm]), problem.x_BTD.transpose(0, 1).contiguous()

    def forward() -> Tensor:
        # Without a graph the LSTM need not keep anything for one.
        lstm.train(torch.is_grad_enabled())
        last_BH: Tensor = lstm(embedding(x_TBD))[1][0][0]
        return last_BH

    return Implementation(forward, lambda: recurrent_gradient(forward(), modules, problem.gradient_BH))


OURS_AND_TORCH: Builders = {OURS: run_ours, TORCH_LSTM: run_torch}


def find_builders() -> Builders:
    """Return all implementations whose packages are installed, and name the others in a sentence each."""
    found = {**OURS_AND_TORCH, "nn.LSTM on raw pixels": run_folded, "loop over nn.LSTMCell": run_cell_loop}
    optional = {
        "JAX lax.scan": (run_jax, ("jax",)),
        "Keras LSTM (JAX)": (run_keras, ("keras", "jax")),
        "onnxruntime": (run_onnx, ("onnx", "onnxruntime")),
    }
    for name, (build, packages) in optional.items():
        missing = [package for package in packages if importlib.util.find_spec(package) is None]
        if missing:
            print(f"{name} is left out: {' and '.join(missing)} not installed", file=sys.stderr)
        else:
            found[name] = build
    return found


def run_folded(problem: Problem) -> Implementation:
    """Return torch's LSTM on the pixels themselves, the embedding multiplied into its weights beforehand."""
    embedding, lstm = torch_modules(problem.encoder)
    weight_ih_GE: Any = lstm.weight_ih_l0
    folded = nn.LSTM(embedding.in_features, lstm.hidden_size)
    state = lstm.state_dict()
    state["weight_ih_l0"] = weight_ih_GE @ embedding.weight
    state["bias_ih_l0"] = state["bias_ih_l0"] + weight_ih_GE @ embedding.bias
    folded.load_state_dict(state)
    return run_torch_modules(nn.Identity(), folded, problem)


def run_cell_loop(problem: Problem) -> Implementation:
    """Return a loop over torch's LSTM cell, as custom recurrences are written."""
    embedding, lstm = torch_modules(problem.encoder)
    cell, x_TBD = torch_cell(lstm), problem.x_BTD.transpose(0, 1).contiguous()
    modules = nn.ModuleList([embedding, cell])

    def forward() -> Tensor:
        h_BH = c_BH = torch.zeros_like(problem.gradient_BH)
        for embedded_BE in embedding(x_TBD):
            h_BH, c_BH = cell(embedded_BE, (h_BH, c_BH))
        return h_BH

    return Implementation(forward, lambda: recurrent_gradient(forward(), modules, problem.gradient_BH))


def run_jax(problem: Problem) -> Implementation:
    """Return an LSTM cell under JAX's `lax.scan`, compiled; JAX returns before it is done, so wait for it."""
    import jax  # noqa: PLC0415 - optional

    weights = jax.device_put(to_numpy(problem))
    x_TBD, gradient_BH = jax.device_put((_array(problem.x_BTD.transpose(0, 1)), _array(problem.gradient_BH)))
    run = jax.jit(scan_lstm)
    run_back = jax.jit(jax.grad(lambda weights: (scan_lstm(weights, x_TBD) * gradient_BH).sum()))
    return Implementation(
        lambda: run(weights, x_TBD).block_until_ready(), lambda: jax.block_until_ready(run_back(weights))["weight_GH"]
    )


def scan_lstm(weights: dict[str, Any], x_TBD: Any) -> Any:
    """Return the last outputs of an LSTM in JAX; with the embedding inside the scan XLA runs faster."""
    import jax  # noqa: PLC0415 - optional

    def step(state: tuple[Any, Any], x_BD: Any) -> tuple[tuple[Any, Any], None]:
        h_BH, c_BH = state
        embedded_BE = x_BD @ weights["embedding_ED"].T + weights["embedding_bias_E"]
        gates_BG = embedded_BE @ weights["weight_GE"].T + h_BH @ weights["weight_GH"].T + weights["bias_G"]
        input_BH, forget_BH, cell_BH, output_BH = jax.numpy.split(gates_BG, GATES, axis=1)
        c_BH = jax.nn.sigmoid(forget_BH) * c_BH + jax.nn.sigmoid(input_BH) * jax.numpy.tanh(cell_BH)
        return (jax.nn.sigmoid(output_BH) * jax.numpy.tanh(c_BH), c_BH), None

    zeros_BH = jax.numpy.zeros((x_TBD.shape[1], weights["weight_GH"].shape[1]), x_TBD.dtype)
    (h_BH, _), _ = jax.lax.scan(step, (zeros_BH, zeros_BH), x_TBD)
    return h_BH


def run_keras(problem: Problem) -> Implementation:
    """Return Keras's dense and LSTM layers on JAX, the backend that compiles them; Keras keeps weights transposed."""
    os.environ["KERAS_BACKEND"] = "jax"  # Keras reads it once, when it is first imported
    import jax  # noqa: PLC0415 - optional
    import keras  # noqa: PLC0415 - optional

    weights, x_BTD = to_numpy(problem), jax.device_put(_array(problem.x_BTD))
    lstm = keras.layers.LSTM(weights["weight_GH"].shape[1])
    embedding = keras.layers.Dense(weights["weight_GE"].shape[1])
    model = keras.Sequential([keras.Input(x_BTD.shape[1:], batch_size=x_BTD.shape[0]), embedding, lstm])
    embedding.set_weights([weights["embedding_ED"].T, weights["embedding_bias_E"]])
    lstm.set_weights([weights["weight_GE"].T, weights["weight_GH"].T, weights["bias_G"]])
    others = [variable.value for variable in model.non_trainable_variables]
    place = [variable.path for variable in model.trainable_variables].index(lstm.cell.recurrent_kernel.path)

    def loss(values: Any) -> Any:
        h_BH, _ = model.stateless_call(values, others, x_BTD, training=True)
        return (h_BH * _array(problem.gradient_BH)).sum()

    run_back = jax.jit(jax.grad(loss))
    values = [variable.value for variable in model.trainable_variables]
    return Implementation(
        lambda: model.predict_on_batch(x_BTD), lambda: jax.block_until_ready(run_back(values))[place].T
    )


def run_onnx(problem: Problem) -> Implementation:
    """Return a linear map and the LSTM operator of onnxruntime, for inference only."""
    import onnxruntime  # noqa: PLC0415 - optional

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # Its threads would otherwise go on spinning for a while and slow down what is timed next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(onnx_model(problem), options, providers=["CPUExecutionProvider"])
    x_TBD = _array(problem.x_BTD.transpose(0, 1))
    return Implementation(lambda: session.run(["h"], {"x": x_TBD})[0][0], None)


def onnx_model(problem: Problem) -> bytes:
    """Return the embedding and the LSTM as the content of an ONNX file, gates in ONNX's order."""
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - optional

    weights = to_numpy(problem)
    # torch has input, forget, cell, output; ONNX has input, output, forget, cell.
    gates = {name: np.concatenate([np.split(weights[name], GATES)[place] for place in (0, 3, 1, 2)])
             for name in ("weight_GE", "weight_GH", "bias_G")}  # fmt: skip
    values = {
        "embedding": np.ascontiguousarray(weights["embedding_ED"].T),
        "embedding_bias": weights["embedding_bias_E"],
        "weight": gates["weight_GE"][None],
        "recurrent": gates["weight_GH"][None],
        "bias": np.concatenate([gates["bias_G"], np.zeros_like(gates["bias_G"])])[None],
    }
    num_rows, num_steps, num_features = problem.x_BTD.shape
    hidden_size = problem.gradient_BH.shape[1]
    nodes = [
        helper.make_node("MatMul", ["x", "embedding"], ["product"]),
        helper.make_node("Add", ["product", "embedding_bias"], ["embedded"]),
        helper.make_node("LSTM", ["embedded", "weight", "recurrent", "bias"], ["", "h"], hidden_size=hidden_size),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (num_steps, num_rows, num_features))
    h = helper.make_tensor_value_info("h", TensorProto.FLOAT, (1, num_rows, hidden_size))
    initializers = [numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "lstm", [x], [h], initializers)
    # Versions that every onnxruntime of the last years reads; older ones would refuse the newest.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def to_numpy(problem: Problem) -> dict[str, Any]:
    """Return the weights as arrays, in torch's order of gates."""
    embedding, lstm = torch_modules(problem.encoder)
    weights: dict[str, Any] = {"embedding_ED": embedding.weight, "embedding_bias_E": embedding.bias}
    weights |= {"weight_GE": lstm.weight_ih_l0, "weight_GH": lstm.weight_hh_l0, "bias_G": lstm.bias_ih_l0}
    return {name: _array(weight) for name, weight in weights.items()}


def _array(tensor: Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().numpy())
