"""The pieces of an r-LSTM in a training loop of one's own, on characters.

Each class is a small language: the next character is usually the last one moved on by the class's own stride.
"""

import torch

from auxrnn import (
    LSTM,
    Decoder,
    Draws,
    Encoder,
    Geometry,
    Head,
    LossTerms,
    Network,
    Reconstruct,
    SequenceBatch,
    TokenEmbedding,
)
from auxrnn.auxiliary.losses import sum_cross_entropy
from auxrnn.models.decoder import feed_sampled

NUM_CLASSES, VOCABULARY, NUM_STEPS, HIDDEN = 4, 8, 60, 32


def make_batch(rng: torch.Generator, *, num_rows: int = 64) -> SequenceBatch:
    """Make texts in languages that differ in their stride; a fifth of the characters is noise."""
    label_B = torch.randint(NUM_CLASSES, (num_rows,), generator=rng)
    columns = [torch.randint(VOCABULARY, (num_rows,), generator=rng)]
    for _ in range(NUM_STEPS - 1):
        noise_B = torch.randint(VOCABULARY, (num_rows,), generator=rng)
        is_noise_B = torch.rand(num_rows, generator=rng) < 0.2
        columns.append(torch.where(is_noise_B, noise_B, (columns[-1] + label_B + 1) % VOCABULARY))
    return SequenceBatch(torch.stack(columns, dim=1), label_B)


def make_network() -> Network:
    """Put an r-LSTM together from its parts."""
    encoder = Encoder(
        TokenEmbedding(VOCABULARY, embedding_size=HIDDEN), cell=LSTM(HIDDEN, hidden_size=HIDDEN, num_layers=1)
    )
    decoder = Decoder(
        LSTM(HIDDEN, hidden_size=HIDDEN, num_layers=2),
        head=Head(HIDDEN, head_size=64, output_size=VOCABULARY, drop_connect=0.0),
        feedback=feed_sampled,
    )
    objective = Reconstruct(
        decoder,
        token_loss=sum_cross_entropy,
        geometry=Geometry(num_segments=2, segment_length=10),
        placement="past",
        order="reversed",
        window=20,
    )
    classifier = Head(HIDDEN, head_size=64, output_size=NUM_CLASSES, drop_connect=0.0)
    return Network(encoder, classifier=classifier, objective=objective)


def main(num_updates: int = 200) -> None:
    """Train with any optimizer; here Adam."""
    torch.manual_seed(0)
    network, rng = make_network(), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    terms = LossTerms(is_supervised=True, is_auxiliary=True, supervised_window=8)
    for step in range(num_updates):
        losses = network.losses(
            make_batch(rng),
            terms=terms,
            draws=Draws(0, "joint", step),
            true_probability=1 - step / (2 * num_updates),
        )
        optimizer.zero_grad()
        losses.combine(auxiliary_weight=1.0).backward()
        optimizer.step()
        if (step + 1) % 50 == 0 and losses.supervised is not None and losses.auxiliary is not None:
            supervised, auxiliary = losses.supervised.mean().item(), losses.auxiliary.mean().item()
            print(f"update {step + 1}  class {supervised:.3f}  character {auxiliary:.3f}")


if __name__ == "__main__":
    main()
