"""An r-LSTM in a plain PyTorch training loop: texts of different lengths, some of them without a label.

Each class is a small language: the next character is usually the last one moved on by the class's own stride.
"""

import torch
from torch.nn.utils.rnn import pad_sequence

import auxrnn

NUM_CLASSES, VOCABULARY = 4, 8


def make_text(label: int, length: int) -> torch.Tensor:
    """Draw a text in the language of a class; a fifth of its characters is noise."""
    text = (torch.randint(VOCABULARY, ()) + (label + 1) * torch.arange(length)) % VOCABULARY
    return torch.where(torch.rand(length) < 0.2, torch.randint(VOCABULARY, (length,)), text)


def make_batch(num_rows: int = 64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw padded texts `[B, T]`, their classes, -1 where the label is unknown, and their lengths."""
    y, lengths = torch.randint(NUM_CLASSES, (num_rows,)), torch.randint(30, 60, (num_rows,))
    texts = [make_text(*pair) for pair in zip(y.tolist(), lengths.tolist(), strict=True)]
    return pad_sequence(texts, batch_first=True), torch.where(torch.rand(num_rows) < 0.1, -1, y), lengths


def main(num_updates: int = 200) -> None:
    """Train, then classify new texts."""
    torch.manual_seed(0)
    model = auxrnn.RLSTM(
        vocabulary_size=VOCABULARY, num_classes=NUM_CLASSES, window=8, segment_length=10, num_segments=2, hidden_size=32
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for update in range(num_updates):
        x, y, lengths = make_batch()
        loss = model.loss(x, y, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (update + 1) % 50 == 0:
            print(f"update {update + 1}  loss {loss.item():.3f}")
    x, y, lengths = make_batch()
    with torch.no_grad():
        is_correct = (model(x, lengths).argmax(dim=1) == y)[y >= 0]
    print(f"accuracy {100 * is_correct.float().mean().item():.1f} %")


if __name__ == "__main__":
    main()
