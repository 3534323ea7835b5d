"""`auxrnn data`: what there is, getting it, what is in a file and what is wrong with it, and pictures of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.arguments import parse
from auxrnn.cli.output import Flag, error_console, print_json, say
from auxrnn.config import DataConfig, RunConfig
from auxrnn.data.catalog import DATASETS, fetch
from auxrnn.data.fetching.local_files import is_at_hand
from auxrnn.data.summary import Findings, check, count_lengths, measure_lengths
from auxrnn.errors import UsageError, nearest
from auxrnn.files import cache_dir, describe_bytes, write_aside
from auxrnn.progress import ReadingProgress

SUMMARY = """\
auxrnn data: datasets, and what is in your own files.

commands:
  list     every dataset by name: lengths, classes, sizes, license, whether it is here
  fetch    download a dataset (a broken download goes on where it stopped), and verify it
  check    what is in a file or folder, and everything that is wrong with it, by file and line
  show     a picture of some examples: as they are, and as the sequences that a network reads

examples:
  auxrnn data list
  auxrnn data fetch mnist
  auxrnn data check reviews.csv --label-column stars
  auxrnn data show photos/ --image-size 32 --out photos.png

`auxrnn data COMMAND --help` explains each command and its options.
"""
NUM_BINS = 10
BAR_WIDTH = 40
MOST_CLASSES = 40
MOST_PROBLEMS = 50
NUM_SHOWN = 6


def data(argv: Sequence[str]) -> int:
    """Run one of the data commands."""
    if not argv or argv[0] in ("-h", "--help"):
        print(SUMMARY, end="")
        return 0 if argv else 2
    if argv[0] not in DATA_COMMANDS:
        raise UsageError(f"unknown command 'data {argv[0]}'{nearest(argv[0], DATA_COMMANDS)}")
    return DATA_COMMANDS[argv[0]](argv[1:])


@dataclass(frozen=True, kw_only=True)
class ListArguments:
    """Options of `data list`."""

    data_dir: Path | None = None
    """Folder to look for the datasets' files in (None: $AUXRNN_DATA_DIR, else a cache)."""
    json: Flag = False
    """Print one JSON object."""


def list_datasets(argv: Sequence[str]) -> int:
    """List every dataset that `auxrnn train` knows by name.

    example:  auxrnn data list --json
    """
    arguments = parse(ListArguments, argv, "data list", description=list_datasets.__doc__ or "")
    at_hand = {name: is_at_hand(spec, arguments.data_dir) for name, spec in DATASETS.items()}
    if arguments.json:
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


@dataclass(frozen=True, kw_only=True)
class FetchArguments:
    """Options of `data fetch`."""

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    """Dataset to download, as in `auxrnn data list`."""
    data_dir: Path | None = None
    """Folder that receives it (None: $AUXRNN_DATA_DIR, else a cache)."""


def fetch_dataset(argv: Sequence[str]) -> int:
    """Download a dataset and verify it; what is already there is only verified.

    example:  auxrnn data fetch cifar10 --data-dir ~/data
    """
    arguments = parse(FetchArguments, argv, "data fetch", description=fetch_dataset.__doc__ or "")
    folder = fetch(arguments.name, arguments.data_dir)
    print(f"{arguments.name} needs no download" if folder is None else f"{arguments.name} is in {folder}")
    return 0


@dataclass(frozen=True, kw_only=True)
class CheckArguments:
    """Options of `data check`."""

    data: DataConfig
    json: Flag = False
    """Print one JSON object."""


def check_data(argv: Sequence[str]) -> int:
    """Say what is in a dataset, file or folder, and all that is wrong with it; exit code 1 if training would fail.

    The options are those of `auxrnn train`, and mean the same.

    example:  auxrnn data check reviews.csv --label-column stars
    """
    arguments = parse(CheckArguments, argv, "data check", description=check_data.__doc__ or "")
    findings = check(arguments.data)
    if arguments.json:
        print_json(_to_plain(findings))
    else:
        _print_findings(arguments.data.data, findings)
    return 0 if findings.would_train else 1


@dataclass(frozen=True, kw_only=True)
class ShowArguments:
    """Options of `data show`."""

    data: DataConfig
    out: Path = Path("data.png")
    """Picture to write."""


def show_data(argv: Sequence[str]) -> int:
    """Draw some examples: as they are, and as the sequences that a network reads.

    The options are those of `auxrnn train`, and mean the same.

    example:  auxrnn data show mnist --out mnist.png
    """
    from auxrnn.cli.pictures import draw  # noqa: PLC0415 - matplotlib is slow to import

    arguments = parse(ShowArguments, argv, "data show", description=show_data.__doc__ or "")
    config = runs.settle(RunConfig(data=arguments.data))
    with ReadingProgress(Path(config.data.data).name, error_console()) as progress:
        dataset = runs.load_dataset(config, observe=progress.observe)
    picture = draw(arguments.data.data, dataset, runs.prepare(config, dataset), num_shown=NUM_SHOWN)
    write_aside(arguments.out, picture)
    say(f"{arguments.data.data}: {dataset.description}")
    print(arguments.out)
    return 0


DATA_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "list": list_datasets,
    "fetch": fetch_dataset,
    "check": check_data,
    "show": show_data,
}


def _to_plain(findings: Findings) -> dict[str, object]:
    problems = findings.problems
    lengths = measure_lengths(findings.length_N)._asdict() if findings.has_examples else None
    return {
        "would_train": findings.would_train,
        "description": None if findings.facts is None else findings.facts.description,
        "examples": len(findings.length_N),
        "lengths": lengths,
        "classes": findings.count_classes(),
        "num_refused": problems.num_refused,
        "refused": problems.refused,
        "num_skipped": problems.num_skipped,
        "skipped": problems.skipped,
    }


def _print_findings(name: str, findings: Findings) -> None:
    if findings.facts is not None:
        print(f"{name}: {findings.facts.description}")
    if findings.has_examples:
        counts = findings.count_classes()
        num_classes = 0 if findings.facts is None else len(findings.facts.class_names)
        print(f"{len(findings.length_N):,} sequences, {num_classes} classes, {measure_lengths(findings.length_N)}")
        _print_classes(counts)
        _print_lengths(findings.length_N)
    problems = findings.problems
    for title, sentences, count in (
        ("skipped", problems.skipped, problems.num_skipped),
        ("error", problems.refused, problems.num_refused),
    ):
        for sentence in sentences[:MOST_PROBLEMS]:
            print(f"{title}: {sentence}")
        if count > MOST_PROBLEMS:
            print(f"{title}: {count - MOST_PROBLEMS:,} more")
    if findings.would_train:
        print("training would start")
    else:
        print(f"training would fail: {problems.num_refused:,} {'problem' if problems.num_refused == 1 else 'problems'}")


def _print_classes(counts: dict[str, dict[str, int]]) -> None:
    """Print how many examples each class has, as numbers for each split and as a bar."""
    names = list(dict.fromkeys(name for part in counts.values() for name in part))
    table = Table("class", *counts, "balance", box=SIMPLE)
    totals = {name: sum(part.get(name, 0) for part in counts.values()) for name in names}
    for name in names[:MOST_CLASSES]:
        cells = [f"{part.get(name, 0):,}" for part in counts.values()]
        table.add_row(name, *cells, _bar(totals[name], max(totals.values())))
    Console().print(table)
    if len(names) > MOST_CLASSES:
        print(f"and {len(names) - MOST_CLASSES} more classes")


def _print_lengths(length_N: np.ndarray) -> None:
    """Print how many sequences there are of which lengths, as bars."""
    if length_N.min() == length_N.max():
        return
    table = Table("steps", "sequences", "", box=SIMPLE)
    bins = count_lengths(length_N, NUM_BINS)
    for first, last, count in bins:
        table.add_row(f"{first:,} to {last:,}", f"{count:,}", _bar(count, max(count for _, _, count in bins)))
    Console().print(table)


def _bar(count: int, most: int) -> str:
    """Give a bar of at most `BAR_WIDTH` blocks; anything above zero shows."""
    return "\N{FULL BLOCK}" * (max(1, round(BAR_WIDTH * count / most)) if count else 0)
