"""Every dataset that has a name. This file imports neither numpy nor torch, so that listing them is fast."""

from pathlib import Path

from auxrnn.data.cifar10 import CIFAR10
from auxrnn.data.dbpedia import DBPEDIA
from auxrnn.data.digits import DIGITS
from auxrnn.data.mnist import FASHION_MNIST, MNIST, PMNIST
from auxrnn.data.spec import DatasetSpec, get_files
from auxrnn.data.stanford_dogs import STANFORD_DOGS
from auxrnn.data.synthetic import SYNTHETIC
from auxrnn.errors import UsageError, nearest

DATASETS: dict[str, DatasetSpec] = {
    spec.name: spec for spec in (DIGITS, MNIST, PMNIST, FASHION_MNIST, CIFAR10, STANFORD_DOGS, DBPEDIA, *SYNTHETIC)
}
"""All datasets by name, in the order in which they are listed; a new one is one more name here."""


def fetch(name: str, data_dir: Path | None = None) -> Path | None:
    """Download and verify what is missing of a dataset; return its folder, or None if it needs no files."""
    if name not in DATASETS:
        raise UsageError(f"unknown dataset {name!r}{nearest(name, DATASETS)}")
    files = get_files(DATASETS[name], data_dir)
    return files[0].parent if files else None
