"""How much data the benchmark of data makes up, and what it trains on it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DataSizes:
    """One benchmark of data. The defaults are the sizes of the real thing: DBpedia, and Stanford Dogs enlarged."""

    num_texts: int = 560_000
    mean_characters: int = 300
    num_text_classes: int = 14
    num_images: int = 150_000
    image_size: int = 128
    num_image_classes: int = 120
    batch_size: int = 128
    hidden_size: int = 128
    second_starts: int = 3
    """How often a second start is tried; the fastest counts."""
    num_batches: int = 30
    """Batches whose making is timed together."""

    def __post_init__(self) -> None:
        if self.num_texts < 2 * self.num_text_classes or self.num_images < 2 * self.num_image_classes:
            raise ValueError("there are too few examples; give each class at least two")

    @property
    def num_test_texts(self) -> int:
        """How many texts there are to test on."""
        return max(self.num_texts // 80, self.num_text_classes)


FULL = DataSizes()
QUICK = DataSizes(num_texts=56_000, num_images=15_000)
