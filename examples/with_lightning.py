"""A p-LSTM trained by Lightning (`pip install 'auxrnn[examples]'`) to tell two noisy waves apart."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import auxrnn


class Classifier(lightning.LightningModule):
    """The model's own loss is all that Lightning needs."""

    def __init__(self) -> None:
        super().__init__()
        self.model = auxrnn.PLSTM(input_size=1, num_classes=2, window=20, segment_length=10, hidden_size=32)

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        """Return the loss of a batch."""
        return self.model.loss(*batch)

    def validation_step(self, batch: list[torch.Tensor], _index: int) -> None:
        """Log the accuracy."""
        x, y = batch
        self.log("accuracy", (self.model(x).argmax(dim=1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Train with Adam."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def make_loader(num_rows: int) -> DataLoader:
    """Draw noisy waves of 60 steps; the class is their frequency."""
    y = torch.randint(2, (num_rows,))
    angle = 0.2 * (1 + y[:, None]) * torch.arange(60) + 6.28 * torch.rand(num_rows, 1)
    x = angle.sin() + 0.3 * torch.randn(num_rows, 60)
    return DataLoader(TensorDataset(x[:, :, None], y), batch_size=32, shuffle=True)


def main(num_updates: int = 200) -> None:
    """Train, then validate."""
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        max_steps=num_updates,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    classifier = Classifier()
    trainer.fit(classifier, make_loader(1024))
    (scores,) = trainer.validate(classifier, make_loader(256), verbose=False)
    print(f"accuracy {100 * scores['accuracy']:.1f} %")


if __name__ == "__main__":
    main()
