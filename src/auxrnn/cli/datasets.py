"""`auxrnn data list` and `auxrnn data fetch`."""

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from auxrnn.cli.options import FetchOptions, ListOptions
from auxrnn.cli.output import print_json
from auxrnn.data.catalog import DATASETS, fetch
from auxrnn.data.local_files import is_at_hand
from auxrnn.files import cache_dir, describe_bytes


def list_datasets(options: ListOptions) -> int:
    """Print every dataset that has a name."""
    at_hand = {name: is_at_hand(spec, options.data_dir) for name, spec in DATASETS.items()}
    if options.json:
        print_json({name: spec.describe() | {"at_hand": at_hand[name]} for name, spec in DATASETS.items()})
        return 0
    columns = ("name", "steps", "classes", "train", "test", "download", "license")
    table = Table(*columns, box=SIMPLE, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for name, spec in DATASETS.items():
        download = "here" if at_hand[name] else describe_bytes(spec.download_bytes)
        numbers = (str(spec.num_classes), f"{spec.train_examples:,}", f"{spec.test_examples:,}")
        table.add_row(name, spec.lengths, *numbers, download, spec.license)
    Console().print(table)
    print(f"decoded data is kept in {cache_dir()}")
    return 0


def fetch_dataset(options: FetchOptions) -> int:
    """Download a dataset and verify it."""
    folder = fetch(options.name, options.data_dir)
    print(f"{options.name} needs no download" if folder is None else f"{options.name} is in {folder}")
    return 0
