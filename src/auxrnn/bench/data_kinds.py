"""The two kinds of data that the benchmark of data makes up, and the training that each is made for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from auxrnn.bench.data_sizes import DataSizes
from auxrnn.bench.made_data import image_space, make_images, make_texts, text_space


class Kind(NamedTuple):
    """How data is made up, how much space it takes with what is cached of it, and how a network is trained on it."""

    name: str
    make: Callable[[Path, DataSizes], None]
    space: Callable[[DataSizes], int]
    settings: Callable[[DataSizes], dict[str, Any]]

    def configure(self, folder: Path, sizes: DataSizes) -> dict[str, Any]:
        """Give the plain values of a run's config."""
        hidden = {"hidden_size": sizes.hidden_size, "embedding_size": sizes.hidden_size}
        return {"data": str(folder), "batch_size": sizes.batch_size} | hidden | self.settings(sizes)


def _text_settings(_sizes: DataSizes) -> dict[str, Any]:
    """Give what the paper trains on DBpedia (section 4.3), read as the preset reads it."""
    columns = {"text_column": "2+3", "label_column": "1", "max_length": 1014}
    return columns | {"supervised_window": 100, "segment_length": 300, "auxiliary_window": 300}


def _image_settings(sizes: DataSizes) -> dict[str, Any]:
    """Give what the paper trains on Stanford Dogs (section 4.2)."""
    windows = {"supervised_window": 300, "segment_length": 600, "auxiliary_window": 300}
    return {"image_size": sizes.image_size} | windows


KINDS = (
    Kind("texts", make_texts, text_space, _text_settings),
    Kind("images", make_images, image_space, _image_settings),
)
