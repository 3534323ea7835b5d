"""Tiny networks in double precision that several test files build on."""

import torch

from auxrnn.models.cells.lstm import LSTM
from auxrnn.models.encoder import Encoder, VectorEmbedding


def make_encoder(*, input_size=2, embedding_size=3, hidden_size=4, num_layers=1):
    """Build a tiny encoder in double precision, with biases that are not zero so that nothing hides behind them."""
    cell = LSTM(embedding_size, hidden_size=hidden_size, num_layers=num_layers)
    encoder = Encoder(VectorEmbedding(input_size, embedding_size=embedding_size), cell=cell).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return encoder
