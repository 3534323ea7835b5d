"""What people would use instead of this library, each in its fastest form, and the library behind the same two methods.

All of them are given the same weights and the same sequences, so that all must give the same numbers. `differentiate`
gives the gradient of the recurrent weights for a gradient `pull_BH` at the last outputs. None of them asks whether a
graph is wanted: who times them does.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from auxrnn import bptt
from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.encoder import Encoder


class Problem(NamedTuple):
    """What every contender is given: the library's encoder to take the weights from, sequences and a last gradient."""

    encoder: Encoder
    x_BTD: Float[Tensor, "B T D"]
    pull_BH: Float[Tensor, "B H"]

    @property
    def x_TBD(self) -> Float[Tensor, "T B D"]:
        """Give the sequences time-major: what torch, JAX and ONNX read fastest."""
        return self.x_BTD.transpose(0, 1).contiguous()


class Weights(NamedTuple):
    """An embedding and an LSTM in torch's order of gates: input, forget, cell, output."""

    embedding_ED: Float[Tensor, "E D"]
    embedding_bias_E: Float[Tensor, " E"]
    weight_GE: Float[Tensor, "G E"]
    weight_GH: Float[Tensor, "G H"]
    bias_G: Float[Tensor, " G"]


def take_weights(encoder: Encoder) -> Weights:
    """Give the weights of an encoder of one layer, without their history."""
    names = ("embedding.weight_ED", "embedding.bias_E", "cell.weight_ih.0", "cell.weight_hh.0", "cell.bias.0")
    state = encoder.state_dict()
    return Weights(*(state[name] for name in names))


@runtime_checkable
class Reader(Protocol):
    """A contender that reads sequences to their end."""

    def read(self) -> Any:
        """Give the last outputs [B, H]."""


@runtime_checkable
class Trainer(Reader, Protocol):
    """A contender that also back-propagates."""

    def differentiate(self) -> Any:
        """Give the gradient of the recurrent weights [G, H]."""


class Ours:
    """The library itself."""

    def __init__(self, problem: Problem) -> None:
        self.encoder, self.x_BTD, self.pull_BH = problem

    def read(self) -> Tensor:
        """Read without a graph, as training and prediction do."""
        return bptt.read(self.encoder, self.x_BTD, window=0).h_LBH[-1]

    def differentiate(self) -> Any:
        """Read with the graph of all steps, and go back through them."""
        _go_back(lambda: bptt.read(self.encoder, self.x_BTD, window="full").h_LBH[-1], self.pull_BH, [self.encoder])
        assert isinstance(self.encoder.cell, LSTM)
        return self.encoder.cell.weight_hh[0].grad


class EmbeddedLSTM:
    """What a user of torch would write: a linear embedding, then torch's LSTM."""

    def __init__(self, problem: Problem) -> None:
        weights = take_weights(problem.encoder)
        self.x_TBD, self.pull_BH = problem.x_TBD, problem.pull_BH
        self.embedding = make_linear(weights.embedding_ED, weights.embedding_bias_E)
        self.lstm = make_lstm(weights.weight_GE, weights.weight_GH, weights.bias_G)

    def read(self) -> Tensor:
        """Read all steps in one call."""
        return run_lstm(self.lstm, self.embedding(self.x_TBD))

    def differentiate(self) -> Any:
        """Read all steps in one call, and go back through them."""
        _go_back(self.read, self.pull_BH, [self.embedding, self.lstm])
        return self.lstm.weight_hh_l0.grad


class RawLSTM:
    """torch's LSTM on the pixels themselves, the embedding multiplied into its weights beforehand."""

    def __init__(self, problem: Problem) -> None:
        weights = take_weights(problem.encoder)
        weight_GD = weights.weight_GE @ weights.embedding_ED
        bias_G = weights.bias_G + weights.weight_GE @ weights.embedding_bias_E
        self.x_TBD, self.pull_BH = problem.x_TBD, problem.pull_BH
        self.lstm = make_lstm(weight_GD, weights.weight_GH, bias_G)

    def read(self) -> Tensor:
        """Read all steps in one call."""
        return run_lstm(self.lstm, self.x_TBD)

    def differentiate(self) -> Any:
        """Read all steps in one call, and go back through them."""
        _go_back(self.read, self.pull_BH, [self.lstm])
        return self.lstm.weight_hh_l0.grad


class CellLoop:
    """A loop over torch's LSTM cell, as custom recurrences are written."""

    def __init__(self, problem: Problem) -> None:
        weights = take_weights(problem.encoder)
        self.x_TBD, self.pull_BH = problem.x_TBD, problem.pull_BH
        self.embedding = make_linear(weights.embedding_ED, weights.embedding_bias_E)
        self.cell = make_cell(weights)

    def read(self) -> Tensor:
        """Read step by step."""
        h_BH = c_BH = torch.zeros_like(self.pull_BH)
        for embedded_BE in self.embedding(self.x_TBD):
            h_BH, c_BH = self.cell(embedded_BE, (h_BH, c_BH))
        return h_BH

    def differentiate(self) -> Any:
        """Read step by step, and go back through them."""
        _go_back(self.read, self.pull_BH, [self.embedding, self.cell])
        return self.cell.weight_hh.grad


class EmbeddedCell:
    """One step of one sequence after another with torch's LSTM cell: the recurrence alone, without a classifier."""

    def __init__(self, encoder: Encoder) -> None:
        weights = take_weights(encoder)
        self.embedding = make_linear(weights.embedding_ED, weights.embedding_bias_E)
        self.cell = make_cell(weights)
        self.state = (torch.zeros(1, self.cell.hidden_size), torch.zeros(1, self.cell.hidden_size))

    def push(self, x_1D: Float[Tensor, "1 D"]) -> Tensor:
        """Take one step and give the output after it."""
        self.state = self.cell(self.embedding(x_1D), self.state)
        return self.state[0]


def make_linear(weight_ED: Float[Tensor, "E D"], bias_E: Float[Tensor, " E"]) -> nn.Linear:
    """Give torch's linear map with these weights."""
    linear = nn.Linear(weight_ED.shape[1], weight_ED.shape[0])
    linear.load_state_dict({"weight": weight_ED, "bias": bias_E})
    return linear


def make_lstm(weight_GI: Float[Tensor, "G I"], weight_GH: Float[Tensor, "G H"], bias_G: Float[Tensor, " G"]) -> nn.LSTM:
    """Give torch's LSTM with these weights; its second bias is zero."""
    lstm = nn.LSTM(weight_GI.shape[1], weight_GH.shape[1])
    biases = {"bias_ih_l0": bias_G, "bias_hh_l0": torch.zeros_like(bias_G)}
    lstm.load_state_dict({"weight_ih_l0": weight_GI, "weight_hh_l0": weight_GH} | biases)
    return lstm


def make_cell(weights: Weights) -> nn.LSTMCell:
    """Give torch's LSTM cell with these weights; its second bias is zero."""
    cell = nn.LSTMCell(weights.weight_GE.shape[1], weights.weight_GH.shape[1])
    biases = {"bias_ih": weights.bias_G, "bias_hh": torch.zeros_like(weights.bias_G)}
    cell.load_state_dict({"weight_ih": weights.weight_GE, "weight_hh": weights.weight_GH} | biases)
    return cell


def run_lstm(lstm: nn.LSTM, x_TBI: Float[Tensor, "T B I"]) -> Float[Tensor, "B H"]:
    """Give the last outputs; without a graph the LSTM is told that it need not keep anything for one."""
    lstm.train(torch.is_grad_enabled())
    _, (h_1BH, _) = lstm(x_TBI)
    last_BH: Tensor = h_1BH[0]
    return last_BH


def _go_back(read: Callable[[], Tensor], pull_BH: Float[Tensor, "B H"], modules: Sequence[nn.Module]) -> None:
    """Set the gradients of the modules that read, dropping those of the time before."""
    for module in modules:
        module.zero_grad(set_to_none=True)
    read().backward(pull_BH)  # type: ignore[no-untyped-call]  # torch leaves it untyped
