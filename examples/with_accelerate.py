"""An r-LSTM pretrained without labels, then trained with them, by Accelerate (`pip install 'auxrnn[examples]'`).

In several processes gradients are averaged when the wrapped module is called: `Loss` makes that call return the loss.
"""

import accelerate
import torch
from torch.utils.data import DataLoader, TensorDataset

import auxrnn


class Loss(torch.nn.Module):
    """The loss of a model as a module of its own: pretraining without `y`."""

    def __init__(self, model: auxrnn.RLSTM) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        """Return the loss of a batch."""
        return self.model.pretrain_loss(x) if y is None else self.model.loss(x, y)


def make_loader(num_rows: int) -> DataLoader:
    """Draw noisy waves of 60 steps; the class is their frequency."""
    y = torch.randint(2, (num_rows,))
    angle = 0.2 * (1 + y[:, None]) * torch.arange(60) + 6.28 * torch.rand(num_rows, 1)
    x = angle.sin() + 0.3 * torch.randn(num_rows, 60)
    return DataLoader(TensorDataset(x[:, :, None], y), batch_size=32, shuffle=True)


def main(num_epochs: int = 4) -> None:
    """Train half of the epochs without labels, the others with them."""
    accelerate.utils.set_seed(0)
    accelerator = accelerate.Accelerator(cpu=True)
    model = auxrnn.RLSTM(input_size=1, num_classes=2, window=20, segment_length=10, hidden_size=32)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_of, optimizer, loader = accelerator.prepare(Loss(model), optimizer, make_loader(1024))
    for epoch in range(num_epochs):
        for x, y in loader:
            loss = loss_of(x) if epoch < num_epochs // 2 else loss_of(x, y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        accelerator.print(f"epoch {epoch + 1}  loss {loss.item():.3f}")
    x, y = next(iter(make_loader(256)))
    with torch.no_grad():
        accelerator.print(f"accuracy {100 * (model(x).argmax(dim=1) == y).float().mean().item():.1f} %")


if __name__ == "__main__":
    main()
