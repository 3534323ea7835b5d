"""`auxrnn runs`: what was trained so far."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from auxrnn.cli.commands import USE, Json, command, print_json, say
from auxrnn.files import printable

if TYPE_CHECKING:
    from auxrnn.report.listing import RunLine

ANY_WIDTH = 1000


@command(USE, words="[FOLDER]")
def runs(
    folder: Annotated[Path, Parameter(help="Folder to look in, and in all folders below it.")] = Path("runs"),
    *,
    sort: Literal["time", "accuracy", "name", "minutes"] = "time",
    json: Json = False,
) -> None:
    """List the runs in a folder: model, data, accuracy, minutes, and whether each is finished.

    A run is finished, training now, stopped (`auxrnn resume` continues it) or damaged: one of its files is missing or
    was edited.

    Args:
        sort: The last changed first, the most accurate first (on the validation split; of runs without one, on the
            test split), by name, or the longest first.

    Examples:
        auxrnn runs
        auxrnn runs runs/demo --sort accuracy
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from auxrnn.report.listing import list_runs

    lines = list_runs(folder, sort=sort)
    if json:
        print_json({"runs": [line._asdict() for line in lines]})
        return
    if not lines:
        say(f"no runs in {folder}; `auxrnn train` makes one")
        return
    numbers = (Column(title, justify="right") for title in ("validation %", "test %", "minutes"))
    table = Table(Column("run", overflow="fold"), "model", "data", *numbers, "state", "changed", box=SIMPLE)
    for line in lines:
        table.add_row(*(Text(printable(cell)) for cell in _describe(line)))
    console = Console()
    if not console.is_terminal:
        console.width = ANY_WIDTH
    console.print(table)


def _describe(line: "RunLine") -> list[str]:
    accuracies = ["-" if each is None else f"{each:.1f}" for each in (line.validation_accuracy, line.test_accuracy)]
    minutes = "-" if line.minutes is None else f"{line.minutes:.1f}"
    of = "" if line.planned_updates is None else f" of {line.planned_updates:,}"
    at = f" at {line.updates:,}{of} updates" if line.state in ("stopped", "training") else ""
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.changed))
    data = "-" if line.data is None else Path(line.data).name
    return [line.run, line.model or "-", data, *accuracies, minutes, line.state + at, changed]
