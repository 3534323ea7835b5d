"""Peers from other frameworks, measured where they are installed (`pip install auxrnn[bench]`) and never required.

Each imports its framework when it is built: nobody who does not run the benchmark has to wait for it. They use as many
threads as they see cores; only onnxruntime can be told another number.
"""

import os
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from auxrnn.bench.peers import Problem, take_weights


class ScanLSTM:
    """JAX: an LSTM cell under `lax.scan`, compiled. The embedding stands inside, which XLA runs faster than before."""

    def __init__(self, problem: Problem) -> None:
        import jax  # noqa: PLC0415 - optional

        weights = take_weights(problem.encoder)._asdict()
        self.weights = jax.device_put({name: to_numpy(weight) for name, weight in weights.items()})
        self.x_TBD, self.pull_BH = jax.device_put((to_numpy(problem.x_TBD), to_numpy(problem.pull_BH)))
        self.run = jax.jit(scan_lstm)
        self.run_back = jax.jit(jax.grad(lambda weights, x_TBD, pull_BH: (scan_lstm(weights, x_TBD) * pull_BH).sum()))

    def read(self) -> Any:
        """Read all steps; JAX returns before it is done, so wait for it."""
        return self.run(self.weights, self.x_TBD).block_until_ready()

    def differentiate(self) -> Any:
        """Go forward and back, and wait for the gradients of all weights."""
        import jax  # noqa: PLC0415 - optional

        return jax.block_until_ready(self.run_back(self.weights, self.x_TBD, self.pull_BH))["weight_GH"]


def scan_lstm(weights: dict[str, Any], x_TBD: Any) -> Any:
    """Give the last outputs of an LSTM in JAX, to be compiled."""
    import jax  # noqa: PLC0415 - optional

    def step(state: tuple[Any, Any], x_BD: Any) -> tuple[tuple[Any, Any], None]:
        h_BH, c_BH = state
        embedded_BE = x_BD @ weights["embedding_ED"].T + weights["embedding_bias_E"]
        gates_BG = embedded_BE @ weights["weight_GE"].T + h_BH @ weights["weight_GH"].T + weights["bias_G"]
        input_BH, forget_BH, cell_BH, output_BH = jax.numpy.split(gates_BG, 4, axis=1)
        kept_BH = jax.nn.sigmoid(forget_BH) * c_BH
        c_BH = kept_BH + jax.nn.sigmoid(input_BH) * jax.numpy.tanh(cell_BH)
        return (jax.nn.sigmoid(output_BH) * jax.numpy.tanh(c_BH), c_BH), None

    zeros_BH = jax.numpy.zeros((x_TBD.shape[1], weights["weight_GH"].shape[1]), x_TBD.dtype)
    (h_BH, _), _ = jax.lax.scan(step, (zeros_BH, zeros_BH), x_TBD)
    return h_BH


class KerasLSTM:
    """Keras: dense and LSTM layers on JAX, the backend that compiles them."""

    def __init__(self, problem: Problem) -> None:
        os.environ["KERAS_BACKEND"] = "jax"  # Keras reads it once, when it is first imported
        import jax  # noqa: PLC0415 - optional
        import keras  # noqa: PLC0415 - optional

        weights = take_weights(problem.encoder)
        num_rows, num_steps, num_features = problem.x_BTD.shape
        embedding = keras.layers.Dense(weights.weight_GE.shape[1])
        lstm = keras.layers.LSTM(weights.weight_GH.shape[1])
        inputs = keras.Input((num_steps, num_features), batch_size=num_rows)
        self.model = keras.Sequential([inputs, embedding, lstm])
        embedding.set_weights([to_numpy(weights.embedding_ED.T), to_numpy(weights.embedding_bias_E)])
        lstm.set_weights([to_numpy(weights.weight_GE.T), to_numpy(weights.weight_GH.T), to_numpy(weights.bias_G)])
        self.x_BTD, self.pull_BH = jax.device_put((to_numpy(problem.x_BTD), to_numpy(problem.pull_BH)))
        self.recurrent_path = lstm.cell.recurrent_kernel.path
        self.run_back = jax.jit(jax.grad(self._loss))

    def read(self) -> Any:
        """Read all steps as a user of Keras would."""
        return self.model.predict_on_batch(self.x_BTD)

    def differentiate(self) -> Any:
        """Go forward and back, and wait for the gradients of all weights; Keras keeps weights transposed."""
        import jax  # noqa: PLC0415 - optional

        variables = self.model.trainable_variables
        values = [variable.value for variable in variables]
        gradients = jax.block_until_ready(self.run_back(values, self.x_BTD, self.pull_BH))
        return gradients[[variable.path for variable in variables].index(self.recurrent_path)].T

    def _loss(self, values: Any, x_BTD: Any, pull_BH: Any) -> Any:
        others = [variable.value for variable in self.model.non_trainable_variables]
        h_BH, _ = self.model.stateless_call(values, others, x_BTD, training=True)
        return (h_BH * pull_BH).sum()


class OnnxLSTM:
    """onnxruntime: a linear map and the LSTM operator, for inference only."""

    def __init__(self, problem: Problem) -> None:
        import onnxruntime  # noqa: PLC0415 - optional

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        # Its threads would otherwise go on spinning for a while and slow down who is timed next.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        model = onnx_model(problem)
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.x_TBD = to_numpy(problem.x_TBD)

    def read(self) -> Any:
        """Read all steps in one call."""
        (h_1BH,) = self.session.run(["h"], {"x": self.x_TBD})
        return h_1BH[0]


def onnx_model(problem: Problem) -> bytes:
    """Give the embedding and the LSTM as the content of an ONNX file."""
    from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415 - optional

    weights = take_weights(problem.encoder)
    bias_G = reorder_gates(weights.bias_G)
    values = {
        "embedding": to_numpy(weights.embedding_ED.T),
        "embedding_bias": to_numpy(weights.embedding_bias_E),
        "weight": reorder_gates(weights.weight_GE)[None],
        "recurrent": reorder_gates(weights.weight_GH)[None],
        "bias": np.concatenate([bias_G, np.zeros_like(bias_G)])[None],
    }
    nodes = [
        helper.make_node("MatMul", ["x", "embedding"], ["product"]),
        helper.make_node("Add", ["product", "embedding_bias"], ["embedded"]),
        helper.make_node(
            "LSTM", ["embedded", "weight", "recurrent", "bias"], ["", "h"], hidden_size=len(problem.pull_BH[0])
        ),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, problem.x_TBD.shape)
    h = helper.make_tensor_value_info("h", TensorProto.FLOAT, (1, *problem.pull_BH.shape))
    initializers = [numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "lstm", [x], [h], initializers)
    # Versions that every onnxruntime of the last years reads; the newest would refuse to load in older ones.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def reorder_gates(weight_G: torch.Tensor) -> Float[np.ndarray, "G *I"]:
    """Turn torch's order of gates into ONNX's: input, output, forget, cell."""
    input_H, forget_H, cell_H, output_H = weight_G.chunk(4)
    return to_numpy(torch.cat([input_H, output_H, forget_H, cell_H]))


def to_numpy(tensor: torch.Tensor) -> Float[np.ndarray, "*shape"]:
    """Give a tensor as a contiguous array of its own."""
    return np.ascontiguousarray(tensor.numpy())
