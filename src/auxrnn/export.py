"""A trained recurrent network as ONNX models, which run without auxrnn and torch.

One model reads whole sequences, the other a single step and the state before it. Both take raw values, as the data has
them. The graphs are built from the weights with ONNX's own recurrent operators, and a `Scan` for the uRNN; nothing is
traced.
"""

import copy
import importlib
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from auxrnn import runs, saved
from auxrnn.data.catalog import DATASETS
from auxrnn.data.formats import NUM_CODE_POINTS, Format, SeriesFormat, TextFormat, make_encoding, to_plain
from auxrnn.data.images import ImageFormat, permutation_order, to_unit
from auxrnn.data.sequences import Array, Flat, Split, to_batch
from auxrnn.data.spec import is_at_hand
from auxrnn.errors import RunError, UsageError
from auxrnn.files import write_aside
from auxrnn.models.cells.gru import GRU
from auxrnn.models.cells.irnn import IRNN
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.cells.recurrence import InputMap
from auxrnn.models.cells.urnn import SMALLEST_SQUARE, URNN
from auxrnn.models.encoder import TokenEmbedding
from auxrnn.models.network import Network
from auxrnn.report.records import read_events
from auxrnn.streaming import Stream
from auxrnn.structs import LARGEST_INPUT
from auxrnn.training.evaluate import predict_logits

# All that is needed, and old enough for every onnxruntime since 1.14.
OPSET, IR_VERSION = 17, 8
LARGEST_MODEL = 2**31 - 2**24
"""Bytes of weights: a protobuf message ends at 2 GB."""
LARGEST_DIFFERENCE = 1e-5
NUM_COMPARED, MOST_STEPS, MOST_SINGLE_STEPS = 8, 10_000, 100
"""How many test sequences a model is compared on, and how many steps of each are read at once or one by one."""
# ONNX's numbers for types.
FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11


class Operator(NamedTuple):
    """ONNX's name for a recurrence, the order it wants our gates in, and its options."""

    name: str
    gates: tuple[int, ...]
    options: Mapping[str, Any]


OPERATORS = {
    # Ours: input, forget, cell, output; theirs: input, output, forget, cell.
    LSTM: Operator("LSTM", (0, 3, 1, 2), {}),
    # Ours: reset, update, new; theirs: update, reset, new.
    GRU: Operator("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    IRNN: Operator("RNN", (0,), {"activations": ["Relu"]}),
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
    rng = np.random.default_rng(0)
    drawn, compared = draw_sequences(trained.card.format, (40, 17, 23), rng), _take_sequences(run, trained)
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
        "longest_training_sequence": trained.card.num_steps,
        "test_accuracy": accuracies[-1] if accuracies else None,
    }


def describe_input(form: Format) -> str:
    """Return in words what a model takes."""
    if isinstance(form, SeriesFormat):
        return "numbers as in the data; the model scales them"
    if isinstance(form, ImageFormat):
        return f"pixels from 0 to 1, {'in pixel_order' if form.permutation else 'row by row'}, all channels of each"
    what = "bytes of UTF-8" if form.tokens == "bytes" else "Unicode code points"
    return f"{what}, of the text in lower case" if form.is_lowercase else what


def require(module: str) -> Any:
    """Import a module of the extra `export`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError("export needs onnx and onnxruntime; pip install 'auxrnn[export]'") from error


class Port(NamedTuple):
    """An input or an output of a graph; a size with a name may be any."""

    name: str
    kind: type[np.generic]
    shape: tuple[int | str, ...]


class Graph:
    """Nodes of an ONNX graph, with names that begin with a prefix, and the constants that they read."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

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
        infos = [
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
             for name, kind, shape in ports]
            for ports in (inputs, outputs)
        ]  # fmt: skip
        return helper.make_graph(self.nodes, f"{self.prefix}auxrnn", *infos, self.constants)


def build_model(trained: saved.TrainedRun, about: Mapping[str, Any], *, is_step: bool) -> bytes:
    """Return the content of an ONNX file: the model of single steps, or that of whole sequences.

    Of single steps: `x` and the parts of the state; `probabilities` and the parts of the next state, in the same order.
    A state of zeros begins a sequence. Of whole sequences: `x` and the `lengths` of its rows; what follows the end of a
    row has no effect.
    """
    network, helper = copy.deepcopy(trained.network).double(), require("onnx.helper")
    assert isinstance(network, Network), "see export"
    builder = Builder(network, trained.card.format)
    graph = builder.build_step() if is_step else builder.build_sequence()
    if sum(len(constant.raw_data) for constant in graph.initializer) > LARGEST_MODEL:
        raise RunError("the network is larger than the 2 GB of an ONNX file; train one with a smaller --hidden-size")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
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
        self.network, self.form, self.cell = network, form, network.encoder.cell
        self.length_B = self.mask_TB1 = ""
        self.output = Port("probabilities", np.float32, ("batch", network.classifier.output.out_features))

    def build_step(self) -> Any:
        """Return the graph that reads one step of each row."""
        is_unitary, has_mean = isinstance(self.cell, URNN), self.network.readout == "mean"
        size = self.cell.num_layers, "batch", self.cell.output_size
        state = [Port(name, np.float32, size) for name in ("h", "c")[: 1 + isinstance(self.cell, LSTM)]]
        starts = [port.name for port in state]
        if has_mean:
            state.append(Port("total", np.float32, size[1:]))
        if has_mean or is_unitary:
            state.append(Port("steps", np.int64, ("batch",)))
            self.add("Add", "steps", [1], outputs=["next_steps"])
        if is_unitary:
            # Before the first step comes what was learned, not zeros.
            is_begun_1B1 = self.add("Unsqueeze", self.add("Greater", "steps", [0]), [0, 2])
            starts = [self.add("Where", is_begun_1B1, "h", self.cell.initial_state(1).h_LBH)]
        h_1BH, *ends = self._run(self.add("Unsqueeze", self._read_values("x"), [1]), *starts)
        for port, end in zip(state, ends, strict=False):
            self.add("Identity", end, outputs=[f"next_{port.name}"])
        if has_mean:
            self.add("Add", "total", self.add("Squeeze", h_1BH, [0]), outputs=["next_total"])
        self._classify(ends[0], *(["next_total", "next_steps"] if has_mean else []))
        next_state = [port._replace(name=f"next_{port.name}") for port in state]
        return self.close([self._input("batch"), *state], [self.output, *next_state])

    def build_sequence(self) -> Any:
        """Return the graph that reads whole sequences."""
        encoding, x_BT = make_encoding(self.form), "x"
        if encoding.max_length is not None:
            x_BT = self.add("Slice", x_BT, [0], [encoding.max_length], [1])
        x_BT = self._read_values(x_BT)
        num_rows, num_steps = (self.add("Shape", x_BT, start=axis, end=axis + 1) for axis in (0, 1))
        self.length_B = self.add("Min", "lengths", num_steps)
        if encoding.is_backward:
            x_BT = self.add("ReverseSequence", x_BT, self.length_B, batch_axis=0, time_axis=1)
        step_T = self.add("Range", np.int64(0), self.add("Squeeze", num_steps), np.int64(1))
        length_B1 = self.add("Unsqueeze", self.length_B, [1])
        self.mask_TB1 = self.add("Less", self.add("Unsqueeze", step_T, [1, 2]), length_B1)
        starts = []
        if isinstance(self.cell, URNN):
            shape = self.add("Concat", [1], num_rows, [1], axis=0)
            starts = [self.add("Expand", self.cell.initial_state(1).h_LBH, shape)]
        h_TBH, h_LBH, *_ = self._run(x_BT, *starts)
        means = []
        if self.network.readout == "mean":
            read_TBH = self.add("Where", self.mask_TB1, h_TBH, np.float32(0))
            means = [self.add("ReduceSum", read_TBH, [0], keepdims=0), self.length_B]
        self._classify(h_LBH, *means)
        return self.close([self._input("batch", "steps"), Port("lengths", np.int64, ("batch",))], [self.output])

    def _input(self, *axes: str) -> Port:
        if isinstance(self.form, TextFormat):
            return Port("x", np.uint8 if self.form.tokens == "bytes" else np.int64, axes)
        size = self.form.channels if isinstance(self.form, ImageFormat) else self.form.num_channels
        return Port("x", np.float32, (*axes, size))

    def _read_values(self, x: str) -> str:
        """Return what the network reads of raw values, as `make_encoding` does; `x` is one step, or all of them."""
        form = self.form
        if isinstance(form, ImageFormat):
            return x
        if isinstance(form, SeriesFormat):
            # In double precision: a large mean would cost single precision most of its digits.
            centered = self.add("Sub", self.add("Cast", x, to=DOUBLE), np.array(form.mean))
            scaled = self.add("Div", centered, np.array(form.deviation))
            clipped = self.add("Clip", scaled, np.float64(-LARGEST_INPUT), np.float64(LARGEST_INPUT))
            return self.add("Cast", clipped, to=FLOAT)
        if form.tokens == "bytes":
            return self.add("Cast", x, to=INT64)
        token_V = tabulate_tokens(form)
        # The last token is the unknown one; -1 means the last as well.
        return self.add("Gather", token_V, self.add("Clip", x, np.int64(-1), np.int64(len(token_V) - 1)))

    def _run(self, x_BT: str, h_LBH: str = "", c_LBH: str = "") -> list[str]:
        """Run all layers from a state, or from zeros; return the outputs of the top one, and the parts of the state."""
        embedding, maps = self.network.encoder.embedding, self.cell.input_maps()
        if isinstance(embedding, TokenEmbedding):
            x_BT = self.add("Gather", embedding.weight_VE, x_BT)
        else:
            maps[0] = embedding.fold(maps[0])
        h_TBH = self.add("Transpose", x_BT, perm=[1, 0, 2])
        run, states = self._run_urnn if isinstance(self.cell, URNN) else self._run_operator, []
        for layer, input_map in enumerate(maps):
            start = [part and self.add("Slice", part, [layer], [layer + 1], [0]) for part in (h_LBH, c_LBH)]
            h_TBH, *state = run(layer, input_map, h_TBH, start)
            states.append(state)
        return [h_TBH, *(self.add("Concat", *parts, axis=0) for parts in zip(*states, strict=True))]

    def _run_operator(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        cell = self.cell
        assert isinstance(cell, LSTM | GRU | IRNN), "another cell needs a method of its own"
        operator, num_parts = OPERATORS[type(cell)], 1 + isinstance(cell, LSTM)
        bias_hh_G = cell.bias_hh[layer] if isinstance(cell, GRU) else torch.zeros_like(input_map.bias_G)
        weight_GI, bias_G, weight_GH, bias_hh_G = (
            torch.cat([part.chunk(len(operator.gates))[gate] for gate in operator.gates])
            for part in (*input_map, cell.weight_hh[layer], bias_hh_G)
        )
        weights = weight_GI[None], weight_GH[None], torch.cat([bias_G, bias_hh_G])[None]
        lengths = self.length_B and self.add("Cast", self.length_B, to=INT32)
        outputs = [f"{name}_{layer}" for name in ("outputs", "h", "c")][: 1 + num_parts]
        options = {"hidden_size": cell.hidden_size, **operator.options}
        self.add(operator.name, x_TBI, *weights, lengths, *start[:num_parts], outputs=outputs, **options)
        return [self.add("Squeeze", outputs[0], [1]), *outputs[1:]]

    def _run_urnn(self, layer: int, input_map: InputMap, x_TBI: str, start: list[str]) -> list[str]:
        """Run step by step with W as a dense matrix, from real and imaginary parts to real and imaginary parts.

        In double precision: nothing in this recurrence forgets, so rounding adds up over the steps.
        """
        cell = self.cell
        assert isinstance(cell, URNN), "see _run"
        body, bias_H = Graph(f"layer_{layer}_"), cell.bias[layer].numpy(force=True)
        z, v, is_read, next_z, h = (f"{body.prefix}{name}" for name in ("z", "v", "is_read", "next_z", "h"))
        matrix_HH = cell.recurrent_matrix(layer).T.numpy(force=True)
        matrix_RR = np.block([[matrix_HH.real, matrix_HH.imag], [-matrix_HH.imag, matrix_HH.real]])
        sum_BR = body.add("Add", body.add("MatMul", z, matrix_RR), v)
        halves = [f"{body.prefix}real", f"{body.prefix}imaginary"]
        body.add("Split", body.add("Mul", sum_BR, sum_BR), axis=1, outputs=halves)
        length_BH = body.add("Sqrt", body.add("Add", body.add("Add", *halves), np.float64(SMALLEST_SQUARE)))
        scale_BH = body.add("Relu", body.add("Add", body.add("Div", bias_H, length_BH), np.float64(1)))
        turned_BR = body.add("Mul", sum_BR, body.add("Concat", scale_BH, scale_BH, axis=1))
        body.add("Where", is_read, turned_BR, z, outputs=[next_z])
        body.add("Identity", next_z, outputs=[h])
        ports = [Port(name, np.float64, ("batch", cell.output_size)) for name in (z, v, next_z, h)]
        # A body reads the constants of the graph around it.
        self.constants += body.constants
        body.constants.clear()
        graph = body.close([*ports[:2], Port(is_read, np.bool_, ("rows", 1))], ports[2:])
        v_TBR = self.add("Add", self.add("MatMul", x_TBI, input_map.weight_GI.T), input_map.bias_G)
        z_BR, v_TBR = (self.add("Cast", one, to=DOUBLE) for one in (self.add("Squeeze", start[0], [0]), v_TBR))
        outputs, mask_TB1 = [f"last_{layer}", f"outputs_{layer}"], self.mask_TB1 or np.ones((1, 1, 1), dtype=bool)
        self.add("Scan", z_BR, v_TBR, mask_TB1, body=graph, num_scan_inputs=2, outputs=outputs)
        z_BR, h_TBR = (self.add("Cast", one, to=FLOAT) for one in outputs)
        return [h_TBR, self.add("Unsqueeze", z_BR, [0])]

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
        self.add("Softmax", logits_BC, axis=1, outputs=[self.output.name])


def tabulate_tokens(form: TextFormat) -> Array:
    """Return the token of each code point up to the last known one, and once that of all others."""
    code_V = np.arange(NUM_CODE_POINTS)
    if form.is_lowercase:
        code_V = np.array([ord(chr(code).lower()[0]) for code in code_V])
    token_V = make_encoding(form).encode(code_V)
    return token_V[: np.flatnonzero(token_V < form.vocabulary_size - 1).max(initial=-1) + 2]


def draw_sequences(form: Format, lengths: Sequence[int], rng: np.random.Generator) -> list[Array]:
    """Draw raw sequences: numbers on the scale of the data, pixels, bytes, or characters and one unknown one."""
    if isinstance(form, ImageFormat):
        return [rng.random((length, form.channels), dtype=np.float32) for length in lengths]
    if isinstance(form, SeriesFormat):
        scale = np.array(form.mean), np.array(form.deviation)
        return [rng.normal(*scale, (length, form.num_channels)).astype(np.float32) for length in lengths]
    if form.tokens == "bytes":
        return [rng.integers(256, size=length, dtype=np.uint8) for length in lengths]
    known = [*map(ord, form.alphabet or ""), NUM_CODE_POINTS - 1]
    return [rng.choice(np.array(known), length) for length in lengths]


def find_difference(trained: saved.TrainedRun, contents: Mapping[str, bytes], raws: Sequence[Array]) -> float:
    """Return how far the probabilities of models are from ours on raw sequences, at most.

    Ours are computed in double precision, so that only their rounding counts. Whole sequences are read as one batch,
    and the first one alone.
    """
    network, runtime = copy.deepcopy(trained.network).double(), require("onnxruntime")
    encoding, row_N = make_encoding(trained.card.format), np.arange(len(raws))
    length_N = np.array([len(raw) for raw in raws])
    x_NT = np.zeros((len(raws), length_N.max(), *raws[0].shape[1:]), raws[0].dtype)
    for row, raw in enumerate(raws):
        x_NT[row, : len(raw)] = raw
    split = Split(Flat(np.concatenate(raws), np.r_[0, length_N.cumsum()]), row_N, row_N, encoding)
    batch = to_batch(split)
    precise_BT = batch.x_BT.double() if batch.x_BT.is_floating_point() else batch.x_BT
    ours_NC = predict_logits(network, [batch._replace(x_BT=precise_BT)]).softmax(dim=1).numpy()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    sessions = {kind: runtime.InferenceSession(content, options) for kind, content in contents.items()}
    whole = sessions["sequence"]
    pairs = [(whole.run(None, {"x": x_NT, "lengths": length_N})[0], ours_NC)]
    pairs.append((whole.run(None, {"x": raws[0][None], "lengths": length_N[:1]})[0], ours_NC[:1]))
    if "step" in sessions:
        x_NT = x_NT[:, : min(length_N.min(), MOST_SINGLE_STEPS)]
        stream, encoded_NT = Stream(network, len(raws)), encoding.encode(x_NT)
        state = begin(sessions["step"], len(raws))
        for step in range(x_NT.shape[1]):
            theirs_NC, *values = sessions["step"].run(None, {"x": x_NT[:, step]} | state)
            state = dict(zip(state, values, strict=True))
            pairs.append((theirs_NC, stream.step(encoded_NT[:, step : step + 1]).numpy()))
    return float(np.max([np.abs(theirs_NC - ours_NC).max() for theirs_NC, ours_NC in pairs]))


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
    if isinstance(form, ImageFormat):
        return [to_unit(raw) for raw in raws]
    is_text = isinstance(form, TextFormat) and form.tokens == "characters"
    return [raw.astype(np.int64) for raw in raws] if is_text else raws
