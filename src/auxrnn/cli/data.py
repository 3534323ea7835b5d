"""`auxrnn data list`, `fetch`, `check` and `show`: datasets by name, and the user's own files."""

from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App, Group

from auxrnn.cli.commands import PREPARE, Json, app, command, load_data, print_json, say
from auxrnn.config import DEFAULT_MODEL, DataConfig, RunConfig, unflatten
from auxrnn.files import printable
from auxrnn.presets import DEFAULT_RECIPE, find_recipe

if TYPE_CHECKING:
    from auxrnn.data.checks import Findings
    from auxrnn.data.datasets import Dataset
    from auxrnn.data.formats import Format
    from auxrnn.data.sequences import Split
    from auxrnn.planning import Outlook
    from auxrnn.report.data_pictures import ShownExample

MOST_CLASSES, MOST_PROBLEMS, NUM_SHOWN = 40, 50, 6
SUBCOMMANDS = Group("Subcommands")
data = App(
    name="data",
    help="List, fetch, check and show datasets and your own files.",
    help_epilogue="""\
Examples:
  auxrnn data list
  auxrnn data fetch mnist
  auxrnn data check reviews.csv --label-column stars
  auxrnn data show photos/ --image-size 32 --out photos.png

`auxrnn data COMMAND --help` explains a command and its options.""",
    group=PREPARE,
    sort_key=0,
)
app.command(data)


@command(SUBCOMMANDS, parent=data)
def list_(*, data_dir: Path | None = None, json: Json = False) -> None:
    """List every dataset by name: lengths, classes, size, license.

    Args:
        data_dir: Folder to look for the datasets' files in (default: $AUXRNN_DATA_DIR, else a cache).

    Examples:
        auxrnn data list --json
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Column, Table

    from auxrnn.data.catalog import DATASETS
    from auxrnn.data.spec import is_at_hand
    from auxrnn.files import cache_dir, describe_bytes

    at_hand = {name: is_at_hand(spec, data_dir) for name, spec in DATASETS.items()}
    if json:
        print_json({name: spec.describe() | {"at_hand": at_hand[name]} for name, spec in DATASETS.items()})
        return
    columns = (Column("name", no_wrap=True), "steps", "classes", "train", "test", "download", "license")
    table = Table(*columns, box=SIMPLE, padding=(0, 1, 0, 0))
    for name, spec in DATASETS.items():
        download = "here" if at_hand[name] else describe_bytes(spec.download_bytes)
        numbers = (str(spec.num_classes), f"{spec.train_examples:,}", f"{spec.test_examples:,}")
        table.add_row(name, spec.lengths, *numbers, download, spec.license)
    Console().print(table)
    print(f"decoded data is kept in {cache_dir()}")


@command(SUBCOMMANDS, parent=data)
def fetch(name: str, *, data_dir: Path | None = None) -> None:
    """Download a dataset and verify it.

    Files that are already here are only verified, and an interrupted download continues where it stopped.

    Args:
        name: Dataset to download, as in `auxrnn data list`.
        data_dir: Folder to download into (default: $AUXRNN_DATA_DIR, else a cache).

    Examples:
        auxrnn data fetch cifar10 --data-dir ~/data
    """
    from auxrnn.data import catalog

    folder = catalog.fetch(name, data_dir)
    print(f"{name} needs no download" if folder is None else f"{name} is in {folder}")


@command(SUBCOMMANDS, parent=data)
def check(config: DataConfig, *, json: Json = False) -> int:
    """Say what is in a file or folder, what is wrong with it, and how long training takes here.

    Everything that is wrong is listed by file and line. The exit code is 1 if training would fail. If it would not, a
    few updates of an LSTM are timed. Takes the data options of `auxrnn train`.

    Examples:
        auxrnn data check reviews.csv --label-column stars
    """
    from auxrnn.data import checks

    findings, outlook = checks.check(config), None
    if findings.would_train:
        # What refuses to train is a problem of the data like any other.
        with findings.problems.noting_errors():
            outlook = _foresee(config)
    if json:
        print_json(_to_plain(findings) | {"training": None if outlook is None else outlook._asdict()})
    else:
        _print_findings(config.data, findings)
        if outlook is not None:
            _print_outlook(outlook)
    return 0 if findings.would_train else 1


@command(SUBCOMMANDS, parent=data)
def show(config: DataConfig, *, out: Path = Path("data.png")) -> None:
    """Draw some examples as they are and as a network reads them.

    Takes the data options of `auxrnn train`.

    Args:
        out: Picture to write.

    Examples:
        auxrnn data show mnist --out mnist.png
    """
    from auxrnn import runs
    from auxrnn.data.splits import make_splits
    from auxrnn.files import write_aside

    settled = runs.settle(RunConfig(data=config))
    dataset = load_data(settled.data)
    prepared = runs.prepare(settled, dataset)
    train = make_splits(dataset, prepared.division, prepared.card.format).train
    say(f"{config.data}: {dataset.facts.description}")
    # Without advice to the user.
    title = f"{config.data}: {dataset.facts.description.partition('; ')[0]}"
    write_aside(out, _draw(train, dataset, prepared.card.format, title=title))
    print(out)


def _to_plain(findings: "Findings") -> dict[str, object]:
    from auxrnn.data.sequences import measure_lengths

    problems = findings.problems
    return {
        "would_train": findings.would_train,
        "description": None if findings.facts is None else findings.facts.description,
        "examples": len(findings.length_N),
        "lengths": measure_lengths(findings.length_N)._asdict() if findings.has_examples else None,
        "classes": findings.count_classes(),
        "missing_values": 0 if findings.facts is None else findings.facts.num_missing,
        "num_refused": problems.num_refused,
        "refused": problems.refused,
        "num_skipped": problems.num_skipped,
        "skipped": problems.skipped,
    }


def _print_findings(name: str, findings: "Findings") -> None:
    from auxrnn.data.sequences import measure_lengths

    facts, problems = findings.facts, findings.problems
    if facts is not None:
        print(printable(f"{name}: {facts.description}"))
    if facts is not None and findings.has_examples:
        lengths = measure_lengths(findings.length_N)
        print(f"{len(findings.length_N):,} sequences, {len(facts.class_names)} classes, {lengths}")
        _print_classes(findings.count_classes())
        if missing := facts.describe_missing():
            print(missing)
    listed = {"skipped": (problems.skipped, problems.num_skipped), "error": (problems.refused, problems.num_refused)}
    for title, (sentences, count) in listed.items():
        for sentence in sentences[:MOST_PROBLEMS]:
            print(f"{title}: {printable(sentence)}")
        if count > MOST_PROBLEMS:
            print(f"{title}: {count - MOST_PROBLEMS:,} more")
    noun = "problem" if problems.num_refused == 1 else "problems"
    fails = f"training would fail: {problems.num_refused:,} {noun}"
    print("training would start" if findings.would_train else fails)


def _foresee(config: DataConfig) -> "Outlook":
    """Time a few updates of what `auxrnn train` would try first: an LSTM without auxiliary loss."""
    from auxrnn import planning, runs
    from auxrnn.cli.training import DEFAULT_MINUTES, check_memory

    given = {name: value for name, value in vars(config).items() if value != getattr(DataConfig(config.data), name)}
    values = find_recipe(DEFAULT_RECIPE, DEFAULT_MODEL) | given | {"data": config.data, "objective": "none"}
    settled = runs.settle(unflatten(values))
    dataset = load_data(settled.data)
    settled, prepared = planning.plan(settled, dataset, minutes=None, say=say)
    session = runs.open_session(settled, dataset, prepared, None)
    check_memory(session)
    return planning.foresee(session, DEFAULT_MINUTES)


def _print_outlook(outlook: "Outlook") -> None:
    from auxrnn.cli.training import DEFAULT_MINUTES
    from auxrnn.progress import describe_seconds

    seconds = outlook.seconds_per_pass
    a_pass = "under a second" if seconds < 1 else f"about {describe_seconds(seconds)}"
    over = f"over the {outlook.sequences:,} training sequences"
    if outlook.passes < 1:
        more = f"more than the {DEFAULT_MINUTES:g} minutes that `auxrnn train` takes by default; give it more --minutes"
        print(f"one pass {over} takes {a_pass} here, {more}")
    else:
        limit = f"`auxrnn train` takes up to {DEFAULT_MINUTES:g} minutes by default (--minutes changes it)"
        print(f"{limit}: about {outlook.passes:,.0f} passes {over}, {a_pass} each")


def _print_classes(counts: dict[str, dict[str, int]]) -> None:
    """Print how many examples each class has in each split."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = list(dict.fromkeys(name for part in counts.values() for name in part))
    table = Table("class", *counts, box=SIMPLE)
    for name in names[:MOST_CLASSES]:
        table.add_row(Text(printable(name)), *(f"{part.get(name, 0):,}" for part in counts.values()))
    Console().print(table)
    if len(names) > MOST_CLASSES:
        print(f"and {len(names) - MOST_CLASSES} more classes")


def _draw(train: "Split", dataset: "Dataset", form: "Format", *, title: str) -> bytes:
    """Draw training examples as a PNG: the first of each class, then the second of each, while there is room."""
    import numpy as np

    from auxrnn.data.formats import SymbolFormat, TextFormat
    from auxrnn.data.images import ImageFormat, permutation_order
    from auxrnn.report.charts import to_png
    from auxrnn.report.data_pictures import image_figure, series_figure, text_figure

    rank_N = np.zeros(train.num_examples, dtype=np.int64)
    for label in np.unique(train.label_N):
        rows = np.flatnonzero(train.label_N == label)
        rank_N[rows] = np.arange(len(rows))
    chosen = np.lexsort((train.label_N, rank_N))[:NUM_SHOWN]
    shown = [_show(train.select(np.array([row])), dataset, form) for row in chosen]
    if isinstance(form, ImageFormat):
        order_T = None if form.permutation is None else permutation_order(form.permutation, form.num_steps)
        return to_png(image_figure(shown, size=form.size, order_T=order_T, title=title))
    if isinstance(form, TextFormat):
        return to_png(text_figure(shown, title=title, unknown=None if form.alphabet is None else len(form.alphabet)))
    if isinstance(form, SymbolFormat):
        return to_png(text_figure(shown, title=title, unknown=len(form.symbols or ()), what="integers"))
    return to_png(series_figure(shown, title=title))


def _show(one: "Split", dataset: "Dataset", form: "Format") -> "ShownExample":
    import numpy as np

    from auxrnn.data.formats import SymbolFormat, TextFormat
    from auxrnn.data.sequences import NO_LABEL
    from auxrnn.report.data_pictures import ShownExample

    # Step by step, with holes where values are missing.
    (value_NT, _) = one._replace(encoding=one.encoding._replace(steps_per_input=1)).align()
    (label,), text = one.label_N.tolist(), None
    if isinstance(form, TextFormat):
        kept = np.concatenate(list(one.values()))
        text = kept.tobytes().decode(errors="replace") if form.tokens == "bytes" else "".join(map(chr, kept.tolist()))
        text = text[::-1] if form.is_backward else text
    if isinstance(form, SymbolFormat):
        text = " ".join(map(str, np.concatenate(list(one.values())).tolist()))
    return ShownExample("no label" if label == NO_LABEL else dataset.facts.class_names[label], value_NT[0], text)
