"""A trained recurrent network as ONNX models, which run without auxrnn and torch.

One model reads whole sequences, the other a single input and the state before it. Both take raw values, as the data has
them. The graphs are built from the weights with ONNX's own recurrent operators, and a `Scan` for cells that it does
not have; nothing is traced.
"""

import copy
import importlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from auxrnn import runs, saved
from auxrnn.data.catalog import DATASETS
from auxrnn.data.formats import (
    NUM_CODE_POINTS,
    Format,
    SeriesFormat,
    SymbolFormat,
    TextFormat,
    count_values,
    has_mask,
    make_encoding,
    steps_per_input,
    to_plain,
)
from auxrnn.data.images import ImageFormat, permutation_order, to_unit
from auxrnn.data.inputs import make_split
from auxrnn.data.sequences import Array, to_batch
from auxrnn.data.spec import is_at_hand
from auxrnn.errors import RunError, UsageError
from auxrnn.files import write_aside
from auxrnn.models.cells.gru import GRU
from auxrnn.models.cells.irnn import IRNN
from auxrnn.models.cells.legendre import Legendre, discretize
from auxrnn.models.cells.lru import LRU, Block
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.cells.recurrence import InputMap, Recurrence
from auxrnn.models.cells.ur_lstm import URLSTM
from auxrnn.models.cells.urnn import SMALLEST_SQUARE, URNN
from auxrnn.models.encoder import TokenEmbedding
from auxrnn.models.network import Network
from auxrnn.report.records import read_events
from auxrnn.structs import LARGEST_INPUT
from auxrnn.training.evaluate import predict_logits

# All that is needed, and old enough for every onnxruntime since 1.14.
LOOKUP, IR_VERSION = "ai.onnx.ml", 8
OPSETS = {"": 17, LOOKUP: 2}
"""Versions of ONNX's own operators, and of those beside it, one of which looks up tokens."""
LARGEST_MODEL = 2**31 - 2**24
"""Bytes of weights: a protobuf message ends at 2 GB."""
LARGEST_DIFFERENCE = 1e-5
NUM_COMPARED, MOST_STEPS, MOST_INPUTS = 8, 10_000, 100
"""How many test sequences a model is compared on, with how many steps of each at once, and how many inputs singly."""
# ONNX's numbers for types.
FLOAT, INT32, INT64, BOOL, DOUBLE = 1, 6, 7, 9, 11
Port = tuple[str, int, Sequence[int | str]]
"""Name, type and shape of an input or an output of a graph; a size with a name may be any."""


# ONNX's name for a recurrence, the order it wants our gates in, and its options.
OPERATORS: dict[type, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    # Ours: input, forget, cell, output; theirs: input, output, forget, cell.
    LSTM: ("LSTM", (0, 3, 1, 2), {}),
    # Ours: reset, update, new; theirs: update, reset, new.
    GRU: ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    IRNN: ("RNN", (0,), {"activations": ["Relu"]}),
}


class Export(NamedTuple):
    """The files that were written, and how far their probabilities are from ours, at most."""

    files: tuple[Path, ...]
    largest_difference: float
    num_compared: int
    """Test sequences that were compared, beside random ones."""


def export(run: Path, trained: saved.TrainedRun, file: Path) -> Export:
    """Write the model of whole sequences to `file`, and that of single steps beside it, named `-step`.

    Both are first compared with our own answers; if one differs, nothing is written. A network that reads texts from
    their end has no model of single steps.
    """
    if file.suffix != ".onnx":
        raise UsageError(f"FILE is {str(file)!r}; give a name that ends in .onnx")
    if not isinstance(trained.network, Network):
        model = trained.config.model.model
        raise UsageError(f"model is {model}, which takes whole sequences; only recurrent models can be exported")
    is_backward = make_encoding(trained.card.format).is_backward
    targets = {"sequence": file} | ({} if is_backward else {"step": file.with_stem(f"{file.stem}-step")})
    about = describe(run, trained)
    contents = {kind: build_model(trained, about, is_step=kind == "step") for kind in targets}
    size = steps_per_input(trained.card.format)
    drawn = draw_sequences(trained.card.format, (40 * size, 17 * size - 1, 23 * size), np.random.default_rng(0))
    compared = _take_sequences(run, trained)
    difference = max(find_difference(trained, contents, raws) for raws in (drawn, compared) if raws)
    # No comparison holds for NaN.
    if not difference <= LARGEST_DIFFERENCE:
        what = f"the exported model's probabilities differ from auxrnn's by up to {difference:.1e}"
        raise RunError(f"{what}, and {LARGEST_DIFFERENCE:g} is allowed; nothing was written")
    for kind, path in targets.items():
        write_aside(path, contents[kind])
    return Export(tuple(targets.values()), difference, len(compared))


def describe(run: Path, trained: saved.TrainedRun) -> dict[str, Any]:
    """Return what a user of the models must know, as plain values."""
    form = trained.card.format
    results = [event for event in read_events(run) if event.get("weights", "final") == trained.weights]
    accuracies = [event["test_accuracy"] for event in results if "test_accuracy" in event]
    order = form.permutation if isinstance(form, ImageFormat) else None
    return {
        "auxrnn_version": metadata.version("auxrnn"),
        "model": trained.config.model.model,
        "class_names": trained.card.class_names,
        "x": describe_input(form),
        "input": to_plain(form),
        "pixel_order": permutation_order(order, form.num_steps).tolist() if order else None,  # type: ignore[union-attr]
        "steps_per_input": steps_per_input(form),
        "longest_training_sequence": trained.card.num_steps * steps_per_input(form),
        "test_accuracy": accuracies[-1] if accuracies else None,
    }


def describe_input(form: Format) -> str:
    """Return in words what a model takes."""
    if isinstance(form, SymbolFormat):
        return "whole numbers as in the data; the model looks up their tokens"
    if isinstance(form, TextFormat):
        what = "bytes of UTF-8" if form.tokens == "bytes" else "Unicode code points"
        return f"{what}, of the text in lower case" if form.is_lowercase else what
    what = "numbers as in the data; the model scales them"
    if isinstance(form, ImageFormat):
        what = f"pixels from 0 to 1, {'in pixel_order' if form.permutation else 'row by row'}, all channels of each"
    size, gaps = form.steps_per_input, "; NaN where a value is missing" * has_mask(form)
    joined = f"; {size} steps are one input, the last one filled with NaN" if size > 1 else ""
    return f"{what}{gaps}{joined}"


def require(module: str) -> Any:
    """Import a module of the extra `export`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError("export needs onnx and onnxruntime; pip install 'auxrnn[export]'") from error


class Graph:
    """Nodes of an ONNX graph, with names that begin with a prefix, and the constants that they read."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def name(self, value: str) -> str:
        """Return the name of a value in this graph."""
        return f"{self.prefix}{value}"

    def add(self, operator: str, *inputs: Any, outputs: Sequence[str] = (), **options: Any) -> str:
        """Add a node and return the name of its first output; inputs are names ("" for none) or constants."""
        names = [one if isinstance(one, str) else self._keep(one) for one in inputs]
        outputs = outputs or [f"{self.prefix}{operator}_{len(self.nodes)}"]
        self.nodes.append(require("onnx.helper").make_node(operator, names, outputs, **options))
        return outputs[0]

    def _keep(self, value: Any) -> str:
        """Keep a constant: tensors in single precision, arrays and numbers in their own."""
        array = value.float().numpy(force=True) if isinstance(value, Tensor) else value
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(require("onnx.numpy_helper").from_array(np.asarray(array, order="C"), name))
        return name

    def close(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> Any:
        """Return the whole graph."""
        helper = require("onnx.helper")
        infos = [[helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
        return helper.make_graph(self.nodes, f"{self.prefix}auxrnn", *infos, self.constants)


def build_model(trained: saved.TrainedRun, about: Mapping[str, Any], *, is_step: bool) -> bytes:
    """Return the content of an ONNX file: the model of single inputs, or that of whole sequences.

    Of single inputs (a step, or `steps_per_input` of them): `x` and the parts of the state; `probabilities` and the
    parts of the next state, in the same order. A state of zeros begins a sequence. Of whole sequences: `x` and the
    `lengths` of its rows in steps; what follows the end of a row has no effect.
    """
    network, helper = copy.deepcopy(trained.network).double(), require("onnx.helper")
    assert isinstance(network, Network), "see export"
    builder = Builder(network, trained.card.format)
    graph = builder.build_step() if is_step else builder.build_sequence()
    if sum(len(constant.raw_data) for constant in graph.initializer) > LARGEST_MODEL:
        raise RunError("the network is larger than the 2 GB of an ONNX file; train one with a smaller --hidden-size")
    opsets = [helper.make_opsetid(domain, OPSETS[domain]) for domain in sorted({node.domain for node in graph.node})]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    values = {"kind": "step" if is_step else "sequence", **about}
    helper.set_model_props(model, {name: json.dumps(value) for name, value in values.items() if value is not None})
    content: bytes = model.SerializeToString()
    return content


class Builder(Graph):
    """Builds the graphs of a network, which is in double precision for what is computed of its weights.

    Inside, steps come first, as ONNX's recurrent operators want it. Names end in dimensions as those of tensors do.
    """

    def __init__(self, network: Network, form: Format) -> None:
        super().__init__()
        self.network, self.form, self.cell, self.size = network, form, network.encoder.cell, steps_per_input(form)
        widths = [part.shape[2] for part in self.cell.initial_state(1)]
        self.widths = [width for width in widths if width]
        self.num_parts = len(self.widths)
        self.length_B = self.mask_TB1 = ""
        self.output: Port = "probabilities", FLOAT, ("batch", network.classifier.output.out_features)

    def build_step(self) -> Any:
        """Return the graph that reads one input of each row."""
        is_unitary, has_mean = isinstance(self.cell, URNN), self.network.readout == "mean"
        starts, num_layers = ["h", "c"][: self.num_parts], self.cell.num_layers
        state: list[Port] = [
            (name, FLOAT, (num_layers, "batch", width)) for name, width in zip(starts, self.widths, strict=True)
        ]
        if has_mean:
            state.append(("total", FLOAT, ("batch", self.cell.output_size)))
        if has_mean or is_unitary:
            state.append(("steps", INT64, ("batch",)))
            self.add("Add", "steps", [1], outputs=["next_steps"])
        if is_unitary:
            # Before the first step comes what was learned, not zeros.
            is_begun_1B1 = self.add("Unsqueeze", self.add("Greater", "steps", [0]), [0, 2])
            starts = [self.add("Where", is_begun_1B1, "h", self.cell.initial_state(1).h_LBH)]
        x_BT = "x" if self.size > 1 else self.add("Unsqueeze", "x", [1])
        h_1BH, *ends = self._run(self._read_values(x_BT), *starts)
        for (name, *_), end in zip(state, ends, strict=False):
            self.add("Identity", end, outputs=[f"next_{name}"])
        if has_mean:
            self.add("Add", "total", self.add("Squeeze", h_1BH, [0]), outputs=["next_total"])
        self._classify(ends[0], *(["next_total", "next_steps"] if has_mean else []))
        next_state = [(f"next_{name}", kind, shape) for name, kind, shape in state]
        axes = ("batch",) if self.size == 1 else ("batch", self.size)
        return self.close([self._input(*axes), *state], [self.output, *next_state])

    def build_sequence(self) -> Any:
        """Return the graph that reads whole sequences."""
        encoding, x_BT = make_encoding(self.form), "x"
        if encoding.max_length is not None:
            x_BT = self.add("Slice", x_BT, [0], [encoding.max_length], [1])
        num_rows, num_steps = (self.add("Shape", x_BT, start=axis, end=axis + 1) for axis in (0, 1))
        self.length_B = self.add("Min", "lengths", num_steps)
        if encoding.is_backward:
            x_BT = self.add("ReverseSequence", x_BT, self.length_B, batch_axis=0, time_axis=1)
        self.mask_TB1 = self._mark(num_steps)
        if self.size > 1:
            # What follows the end of a row is missing, up to the end of its last input.
            x_BT = self.add("Where", self.add("Transpose", self.mask_TB1, perm=[1, 0, 2]), x_BT, np.float32(np.nan))
            more = self.add("Mod", self.add("Neg", num_steps), [self.size])
            x_BT = self.add("Pad", x_BT, self.add("Concat", [0] * 4, more, [0], axis=0), np.float32(np.nan))
            self.length_B, num_inputs = (
                self.add("Div", self.add("Add", steps, [self.size - 1]), [self.size])
                for steps in (self.length_B, num_steps)
            )
            self.mask_TB1 = self._mark(num_inputs)
        x_BT = self._read_values(x_BT)
        starts = []
        if type(self.cell) not in OPERATORS:
            shape = self.add("Concat", [1], num_rows, [1], axis=0)
            starts = [self.add("Expand", part, shape) for part in self.cell.initial_state(1)[: self.num_parts]]
        h_TBH, h_LBH, *_ = self._run(x_BT, *starts)
        means = []
        if self.network.readout == "mean":
            read_TBH = self.add("Where", self.mask_TB1, h_TBH, np.float32(0))
            means = [self.add("ReduceSum", read_TBH, [0], keepdims=0), self.length_B]
        self._classify(h_LBH, *means)
        return self.close([self._input("batch", "steps"), ("lengths", INT64, ("batch",))], [self.output])

    def _input(self, *axes: str | int) -> Port:
        is_token = isinstance(self.form, TextFormat | SymbolFormat)
        kind = require("onnx.helper").np_dtype_to_tensor_dtype(np.dtype(raw_type(self.form)))
        return "x", kind, axes if is_token else (*axes, count_values(self.form))

    def _mark(self, num_columns: str) -> str:
        """Return which columns belong to each row, `[T, B, 1]`."""
        column_T = self.add("Range", np.int64(0), self.add("Squeeze", num_columns), np.int64(1))
        return self.add("Less", self.add("Unsqueeze", column_T, [1, 2]), self.add("Unsqueeze", self.length_B, [1]))

    def _read_values(self, x_BT: str) -> str:
        """Return the inputs that the network reads of raw values, as `make_encoding` does."""
        form, x = self.form, x_BT
        if isinstance(form, TextFormat | SymbolFormat):
            if raw_type(form) == np.uint8:
                return self.add("Cast", x, to=INT64)
            keys, tokens = zip(*tabulate_tokens(form).items(), strict=True)
            table = {"keys_int64s": keys, "values_int64s": tokens, "default_int64": tokens[-1]}
            return self.add("LabelEncoder", x, outputs=["tokens"], domain=LOOKUP, **table)
        if isinstance(form, SeriesFormat):
            # In double precision: a large mean would cost single precision most of its digits.
            centered = self.add("Sub", self.add("Cast", x_BT, to=DOUBLE), np.array(form.mean))
            scaled = self.add("Div", centered, np.array(form.deviation))
            clipped = self.add("Clip", scaled, np.float64(-LARGEST_INPUT), np.float64(LARGEST_INPUT))
            x = self.add("Cast", clipped, to=FLOAT)
        if self.size == 1 and not has_mask(form):
            return x
        is_there = self.add("Not", self.add("IsNaN", x_BT))
        parts = [self.add("Where", is_there, x, np.float32(0)), self.add("Cast", is_there, to=FLOAT)]
        shape = [0, -1, count_values(form) * self.size]
        return self.add("Concat", *(self.add("Reshape", one, shape) for one in parts[: 1 + has_mask(form)]), axis=2)

    def _run(self, x_BT: str, h_LBH: str = "", c_LBH: str = "") -> list[str]:
        """Run all layers from a state, or from zeros; return the outputs of the top one, and the parts of the state."""
        embedding, maps = self.network.encoder.embedding, self.cell.input_maps()
        if isinstance(embedding, TokenEmbedding):
            x_BT = self.add("Gather", embedding.weight_VE, x_BT)
        else:
            maps[0] = embedding.fold(maps[0])
        h_TBH = self.add("Transpose", x_BT, perm=[1, 0, 2])
        runs: dict[type[Recurrence], Callable[..., list[str]]] = {URNN: self._run_urnn, URLSTM: self._run_ur_lstm}
        runs |= {LRU: self._run_lru, Legendre: self._run_legendre}
        states = []
        run = runs.get(type(self.cell), self._run_operator)
        for layer, input_map in enumerate(maps):
            start = [part and self.add("Slice", part, [layer], [layer + 1], [0]) for part in (h_LBH, c_LBH)]
            h_TBH, *state = run(layer, input_map, h_TBH, start)
            states.append(state)
        return [h_TBH, *(self.add("Concat", *parts, axis=0) for parts in zip(*states, strict=True))]

    def _run_operator(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        cell = self.cell
        if not isinstance(cell, LSTM | GRU | IRNN):
            raise UsageError(f"{type(cell).__name__} has no ONNX form yet; docs/adding-a-cell.md says what it needs")
        (operator, gates, more), num_parts = OPERATORS[type(cell)], self.num_parts
        bias_hh_G = cell.bias_hh[layer] if isinstance(cell, GRU) else torch.zeros_like(input_map.bias_G)
        weight_GI, bias_G, weight_GH, bias_hh_G = (
            torch.cat([part.chunk(len(gates))[gate] for gate in gates])
            for part in (*input_map, cell.weight_hh[layer], bias_hh_G)
        )
        weights = weight_GI[None], weight_GH[None], torch.cat([bias_G, bias_hh_G])[None]
        lengths = self.length_B and self.add("Cast", self.length_B, to=INT32)
        outputs = [f"{name}_{layer}" for name in ("outputs", "h", "c")][: 1 + num_parts]
        options = {"outputs": outputs, "hidden_size": cell.hidden_size, **more}
        self.add(operator, x_TBI, *weights, lengths, *start[:num_parts], **options)
        return [self.add("Squeeze", outputs[0], [1]), *outputs[1:]]

    def _run_urnn(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        """Run step by step with W as a dense matrix, from real and imaginary parts to real and imaginary parts.

        In double precision: nothing in this recurrence forgets, so rounding adds up over the steps.
        """
        cell = self.cell
        assert isinstance(cell, URNN), "see _run"
        body, bias_H = Graph(f"layer_{layer}_"), cell.bias[layer].numpy(force=True)
        matrix_HH = cell.recurrent_matrix(layer).T.numpy(force=True)
        matrix_RR = np.block([[matrix_HH.real, matrix_HH.imag], [-matrix_HH.imag, matrix_HH.real]])
        sum_BR = body.add("Add", body.add("MatMul", body.name("h"), matrix_RR), body.name("v"))
        halves = [body.name("real"), body.name("imaginary")]
        body.add("Split", body.add("Mul", sum_BR, sum_BR), axis=1, outputs=halves)
        length_BH = body.add("Sqrt", body.add("Add", body.add("Add", *halves), np.float64(SMALLEST_SQUARE)))
        scale_BH = body.add("Relu", body.add("Add", body.add("Div", bias_H, length_BH), np.float64(1)))
        turned_BR = body.add("Mul", sum_BR, body.add("Concat", scale_BH, scale_BH, axis=1))
        return self._scan(body, DOUBLE, [turned_BR], start, self._map(x_TBI, input_map))

    def _run_ur_lstm(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        """Run step by step, as `URLSTM.forward_layer`."""
        cell = self.cell
        assert isinstance(cell, URLSTM), "see _run"
        body, one, two = Graph(f"layer_{layer}_"), np.float32(1), np.float32(2)
        sum_BG = body.add("Add", body.add("MatMul", body.name("h"), cell.weight_hh[layer].T), body.name("v"))
        sums = [body.name(gate) for gate in ("refine", "forget", "cell", "output")]
        body.add("Split", sum_BG, axis=1, outputs=sums)
        r_BH, f_BH, o_BH = (body.add("Sigmoid", sums[gate]) for gate in (0, 1, 3))
        # 1 - g = (1 - f) (1 + f - 2 r f), of which a gate that is almost open keeps more digits than of g.
        bent_BH = body.add("Sub", body.add("Add", f_BH, one), body.add("Mul", two, body.add("Mul", r_BH, f_BH)))
        write_BH = body.add("Mul", body.add("Sub", one, f_BH), bent_BH)
        new_BH = body.add("Sub", body.add("Tanh", sums[2]), body.name("c"))
        c_BH = body.add("Add", body.name("c"), body.add("Mul", write_BH, new_BH))
        h_BH = body.add("Mul", o_BH, body.add("Tanh", c_BH))
        return self._scan(body, FLOAT, [h_BH, c_BH], start, self._map(x_TBI, input_map))

    def _run_lru(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        """Run a block of `LRU`, of which the recurrence alone goes step by step: in double precision, as a uRNN's.

        Its complex state is the `h` of the scan.
        """
        block = self.cell.get_submodule(f"blocks.{layer}")
        assert isinstance(block, Block), "see _run"
        h_TBH = u_TBH = self._map(x_TBI, input_map) if layer == 0 else x_TBI
        if block.norm is not None:
            u_TBH = self.add("LayerNormalization", h_TBH, block.norm.weight, block.norm.bias, epsilon=block.norm.eps)
        body, (re_U, im_U) = Graph(f"layer_{layer}_"), block.decay().numpy(force=True).reshape(2, -1)
        halves = [body.name("real"), body.name("imaginary")]
        body.add("Split", body.name("h"), axis=1, outputs=halves)
        turned_BK = body.add("Mul", body.add("Concat", *reversed(halves), axis=1), np.concatenate([-im_U, im_U]))
        kept_BK = body.add("Mul", body.name("h"), np.concatenate([re_U, re_U]))
        next_BK = body.add("Add", body.add("Add", kept_BK, turned_BK), body.name("v"))
        v_TBK = self.add("MatMul", u_TBH, block.input_weight().T)
        x_TBK, c_1BK = self._scan(body, DOUBLE, [next_BK], start[1:], v_TBK)
        y_TBH = self.add("Add", self.add("MatMul", x_TBK, block.weight_HK.T), self.add("Mul", u_TBH, block.skip_H))
        erf_TBH = self.add("Erf", self.add("Mul", y_TBH, np.float32(0.5**0.5)))
        bent_TBH = self.add("Mul", self.add("Mul", y_TBH, np.float32(0.5)), self.add("Add", erf_TBH, np.float32(1)))
        sides = [self.name(f"{side}_{layer}") for side in ("left", "right")]
        self.add("Split", self._map(bent_TBH, InputMap(block.gate.weight, block.gate.bias)), axis=2, outputs=sides)
        h_TBH = self.add("Add", h_TBH, self.add("Mul", sides[0], self.add("Sigmoid", sides[1])))
        if not self.length_B:
            return [h_TBH, h_TBH, c_1BK]
        last_B1 = self.add("Unsqueeze", self.add("Sub", self.length_B, np.int64(1)), [1])
        h_BH = self.add("GatherND", self.add("Transpose", h_TBH, perm=[1, 0, 2]), last_B1, batch_dims=1)
        return [h_TBH, self.add("Unsqueeze", h_BH, [0]), c_1BK]

    def _run_legendre(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        """Run step by step, in double precision: what is rounded off once stays in the memory for all of its length."""
        cell = self.cell
        assert isinstance(cell, Legendre), "see _run"
        body, (a_NN, b_N) = Graph(f"layer_{layer}_"), discretize(cell.order, cell.length)
        u_BQ1, seen_BH = body.name("u"), body.name("seen")
        body.add(
            "Split", body.name("v"), [cell.num_memories, cell.hidden_size], axis=1, outputs=[body.name("us"), seen_BH]
        )
        body.add("Unsqueeze", body.name("us"), [2], outputs=[u_BQ1])
        kept_BQN = body.add("MatMul", body.add("Reshape", body.name("c"), [0, -1, cell.order]), a_NN.T.numpy())
        m_BQN = body.add("Add", kept_BQN, body.add("Mul", u_BQ1, b_N.numpy()))
        m_BK = body.add("Reshape", m_BQN, [0, -1])
        read_BH = body.add("MatMul", m_BK, cell.weight_hm[layer].T.numpy(force=True))
        h_BH = body.add("Tanh", body.add("Add", read_BH, seen_BH))
        return self._scan(body, DOUBLE, [h_BH, m_BK], start, self._map(x_TBI, input_map))

    def _map(self, x_TBI: str, input_map: InputMap) -> str:
        """Return what the inputs of all steps are mapped to."""
        return self.add("Add", self.add("MatMul", x_TBI, input_map.weight_GI.T), input_map.bias_G)

    def _scan(self, body: Graph, kind: int, new: list[str], start: list[str], v_TBG: str) -> list[str]:
        """Run the body, which makes `new` parts of the state of h, c and v, over all steps that a row reads."""
        parts, is_read, output = (
            [body.name(part) for part in ("h", "c")[: len(new)]],
            *map(body.name, ("is_read", "out")),
        )
        ends = [body.add("Where", is_read, value, part) for value, part in zip(new, parts, strict=True)]
        body.add("Identity", ends[0], outputs=[output])
        # A body reads the constants of the graph around it.
        self.constants += body.constants
        body.constants.clear()
        # Each part of a state has a width of its own.
        owners = [*parts, *parts, output]
        ports = [
            (name, kind, ("batch", f"{owner}_units"))
            for name, owner in zip((*parts, *ends, output), owners, strict=True)
        ]
        sums: Port = body.name("v"), kind, ("batch", "sums")
        graph = body.close([*ports[: len(new)], sums, (is_read, BOOL, ("rows", 1))], ports[len(new) :])
        starts = [self.add("Squeeze", part, [0]) for part in start[: len(new)]]
        values = [self.add("Cast", one, to=kind) for one in (*starts, v_TBG)]
        outputs = [f"{body.prefix}{name}" for name in ("last_h", "last_c")[: len(new)]] + [f"{body.prefix}outputs"]
        mask_TB1 = self.mask_TB1 or np.ones((1, 1, 1), dtype=bool)
        self.add("Scan", *values, mask_TB1, body=graph, num_scan_inputs=2, outputs=outputs)
        *last, h_TBR = (self.add("Cast", one, to=FLOAT) for one in outputs)
        return [h_TBR, *(self.add("Unsqueeze", part, [0]) for part in last)]

    def _classify(self, h_LBH: str, total_BH: str = "", count_B: str = "") -> None:
        """Give the probabilities for the top layer's last output and, with the readout `mean`, that of all outputs."""
        head = self.network.classifier
        x_BF = self.add("Gather", h_LBH, np.int64(-1), axis=0)
        if total_BH:
            count_B1 = self.add("Unsqueeze", self.add("Cast", count_B, to=FLOAT), [1])
            x_BF = self.add("Concat", x_BF, self.add("Div", total_BH, count_B1), axis=1)
        if head.hidden is not None:
            x_BF = self.add("Relu", self.add("Gemm", x_BF, head.hidden.weight, head.hidden.bias, transB=1))
        logits_BC = self.add("Gemm", x_BF, head.output.weight, head.output.bias, transB=1)
        self.add("Softmax", logits_BC, axis=1, outputs=[self.output[0]])


def raw_type(form: Format) -> type[np.generic]:
    """Return the type of the values that a model takes."""
    if isinstance(form, TextFormat):
        return np.uint8 if form.tokens == "bytes" else np.int64
    return np.int64 if isinstance(form, SymbolFormat) else np.float32


def tabulate_tokens(form: TextFormat | SymbolFormat) -> dict[int, int]:
    """Return the token of each code point or symbol that a network knows and, last, of one that it does not know."""
    known = form.symbols or () if isinstance(form, SymbolFormat) else map(ord, form.alphabet or "")
    table = {int(key): token for token, key in enumerate(known)}
    unknown_token = len(table)
    if isinstance(form, TextFormat) and form.is_lowercase:
        lower = {code: ord(chr(code).lower()[0]) for code in range(NUM_CODE_POINTS)}
        table = {code: table[small] for code, small in lower.items() if small in table}
    return table | {next(key for key in itertools.count() if key not in table): unknown_token}


def draw_sequences(form: Format, lengths: Sequence[int], rng: np.random.Generator) -> list[Array]:
    """Draw raw sequences: numbers on the scale of the data and gaps, pixels, or tokens and others."""
    if isinstance(form, ImageFormat):
        return [rng.random((length, form.channels), dtype=np.float32) for length in lengths]
    if isinstance(form, SeriesFormat):
        scale = np.array(form.mean), np.array(form.deviation)
        raws = [rng.normal(*scale, (length, form.num_channels)).astype(np.float32) for length in lengths]
        share = 0.2 if form.has_mask else 0
        return [np.where(rng.random(raw.shape) < share, np.float32(np.nan), raw) for raw in raws]
    if raw_type(form) is np.uint8:
        return [rng.integers(256, size=length, dtype=np.uint8) for length in lengths]
    table = tabulate_tokens(form)
    drawn = [*table, next(key for key in itertools.count() if key not in table)]
    return [rng.choice(drawn, length) for length in lengths]


def find_difference(trained: saved.TrainedRun, contents: Mapping[str, bytes], raws: Sequence[Array]) -> float:
    """Return how far the probabilities of models are from ours on raw sequences, at most.

    Ours are computed in double precision, so that only their rounding counts. Whole sequences are read as one batch,
    and the first one alone.
    """
    network, runtime, form = copy.deepcopy(trained.network).double(), require("onnxruntime"), trained.card.format

    def answer(raws: Sequence[Array]) -> Array:
        batch = to_batch(make_split(raws, form))
        precise_BT = batch.x_BT.double() if batch.x_BT.is_floating_point() else batch.x_BT
        return predict_logits(network, [batch._replace(x_BT=precise_BT)]).softmax(dim=1).numpy()

    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    sessions = {kind: runtime.InferenceSession(content, options) for kind, content in contents.items()}
    whole, length_N, ours_NC = sessions["sequence"], np.array([len(raw) for raw in raws]), answer(raws)
    x_NT = pad_sequence([torch.tensor(raw) for raw in raws], batch_first=True).numpy()
    pairs = [
        (whole.run(None, {"x": x_NT, "lengths": length_N})[0], ours_NC),
        (whole.run(None, {"x": raws[0][None], "lengths": length_N[:1]})[0], ours_NC[:1]),
    ]
    if "step" in sessions:
        longest = make_encoding(form).max_length or MOST_STEPS
        num_steps = min(*length_N, longest, MOST_INPUTS * steps_per_input(form))
        raws = [raw[:num_steps] for raw in raws]
        state = begin(sessions["step"], len(raws))
        for x_B in np.stack([to_inputs(raw, form) for raw in raws], axis=1):
            theirs_NC, *values = sessions["step"].run(None, {"x": x_B} | state)
            state = dict(zip(state, values, strict=True))
        pairs.append((theirs_NC, answer(raws)))
    return float(np.max([np.abs(theirs_NC - ours_NC).max() for theirs_NC, ours_NC in pairs]))


def to_inputs(raw: Array, form: Format) -> Array:
    """Return a raw sequence as the inputs of a model of single ones."""
    if (size := steps_per_input(form)) == 1:
        return raw
    filled_TD = np.pad(raw, ((0, -len(raw) % size), (0, 0)), constant_values=np.nan)
    return filled_TD.reshape(-1, size, raw.shape[1])


def begin(session: Any, num_rows: int) -> dict[str, Array]:
    """Return the state in which a model of single steps begins: zeros."""
    _, *parts = session.get_inputs()
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    return {one.name: np.zeros([num_rows if n == "batch" else n for n in one.shape], kinds[one.type]) for one in parts}


def _take_sequences(run: Path, trained: saved.TrainedRun) -> list[Array]:
    """Return the beginnings of some test sequences of a run, as a model takes them; none where its data is gone."""
    data, form = trained.config.data, trained.card.format
    try:
        if data.data in DATASETS and not is_at_hand(DATASETS[data.data], data.data_dir):
            return []
        (value_K, begin_N1), rows, *_ = runs.load_split(run, "test")
    except (RunError, UsageError):
        return []
    ends = np.minimum(begin_N1[1:], begin_N1[:-1] + MOST_STEPS)
    raws = [np.asarray(value_K[begin_N1[row] : ends[row]]) for row in rows[:NUM_COMPARED]]
    return [to_unit(raw) if isinstance(form, ImageFormat) else raw.astype(raw_type(form)) for raw in raws]
