"""What all commands share: how they are declared, helped, refused and printed. Importing it imports no torch."""

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from attrs import evolve
from cyclopts import (
    App,
    Argument,
    ArgumentCollection,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnusedCliTokensError,
)
from cyclopts.help import DefaultFormatter, InlineText

from auxrnn.config import Weights, describe_type

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

    from auxrnn.config import DataConfig
    from auxrnn.data.datasets import Dataset

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Json = Annotated[Flag, Parameter(help="Print one JSON object.")]
FinishedRun = Annotated[Path, Parameter(help="Run folder of a finished run.")]
WeightsOption = Annotated[
    Weights | None,
    Parameter(help="The final weights, or the best on the validation split (default: the best, if the run has one)."),
]
Command = TypeVar("Command", bound=Callable[..., int])


class Help(DefaultFormatter):
    """Cyclopts's own panels; with other values as defaults and without some options, where a model is named."""

    def __init__(self, defaults: Mapping[str, Any] | None = None, *, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.defaults, self.hidden = defaults or {}, hidden

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one panel, unless nothing in it has an effect."""
        entries = [self._change(entry) for entry in panel.entries if not self.hidden & set(_names(entry))]
        if entries:
            super().__call__(console, options, panel.copy(entries=entries))

    def _change(self, entry: "HelpEntry") -> "HelpEntry":
        # A docstring has the line ends of the source.
        text = " ".join(getattr(entry.description.primary_renderable, "plain", "").split())
        entry = evolve(entry, description=InlineText.from_format(text, format="plaintext"))
        if entry.positional_label:
            return evolve(entry, positive_names=(), metavar=None)
        if entry.metavar and "|" in entry.metavar and entry.choices:
            words = [*(word for word in entry.metavar.split("|") if word != "CHOICE"), *entry.choices]
            is_mixed = len(words) > len(entry.choices)
            entry = evolve(entry, metavar="|".join(words), choices=()) if is_mixed else evolve(entry, metavar="CHOICE")
        found = [self.defaults[name] for name in _names(entry) if name in self.defaults]
        return evolve(entry, default=str(found[0])) if found else entry


def _names(entry: "HelpEntry") -> list[str]:
    return [name.removeprefix("--").replace("-", "_") for name in entry.positive_names]


app = App(
    name="auxrnn",
    help="Classify very long sequences with recurrent networks that learn to remember through auxiliary losses, with"
    " short back-propagation (Trinh et al., 2018).",
    help_epilogue="""\
Examples:
  auxrnn demo
  auxrnn train mnist --config mnist14 --out runs/first
  auxrnn train mnist --model transformer --out runs/second
  auxrnn evaluate runs/first
  auxrnn predict runs/first digit.png
  auxrnn data check reviews.csv
  auxrnn train reviews.csv --out runs/reviews
  auxrnn reproduce table2 --scale smoke

`auxrnn COMMAND --help` explains a command and its options.""",
    help_format="plaintext",
    help_formatter=Help(),
    version=lambda: metadata.version("auxrnn"),
    group_arguments=Group("Options", sort_key=0),
    group_parameters=Group("Options", sort_key=0),
    group_commands=Group("Help", sort_key=9),
    default_parameter=Parameter(allow_repeating=True),
)
USE, PREPARE = Group("Train and use", sort_key=0), Group("Before training", sort_key=1)
PAPER, MACHINE = Group("The paper", sort_key=2), Group("This machine", sort_key=3)


def command(
    panel: Group, *, parent: App = app, words: str = "", layers: tuple[Callable[..., None], ...] = ()
) -> Callable[[Command], Command]:
    """Return a decorator that adds a function to the command line under its own name.

    The docstring is its help; what follows "Examples:" comes last, below the options. `words` are those of the usage
    line where cyclopts would say ARGS, and `layers` change what the flags leave open.
    """

    def add(function: Command) -> Command:
        name = function.__name__.removesuffix("_")
        text, *_, examples = re.split(r"\n\n(?:Args|Examples):\n", inspect.getdoc(function) or "")
        parent.command(
            function,
            name=name,
            help="\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")),
            help_epilogue=f"Examples:\n{textwrap.indent(textwrap.dedent(examples), '  ')}",
            usage=f"Usage: auxrnn {name} [OPTIONS] {words}" if words else None,
            group=panel,
            sort_key=len(list(parent)),
            config=(_refuse_fractions, *layers),
        )
        return function

    return add


def _refuse_fractions(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse a fraction for a whole number, which cyclopts would round; called between reading flags and using them."""
    for argument in arguments:
        takes_int = int in (get_args(argument.hint) or (argument.hint,))
        for token in argument.tokens if takes_int else ():
            if "." in token.value:
                raise CoercionError(token=token, argument=argument, target_type=int)


def describe_mistake(error: CycloptsError) -> str:
    """Return what cyclopts refuses in one sentence: what was given, what is allowed, or where to read more."""
    match error:
        case CoercionError(token=token, argument=Argument() as argument) if token is not None:
            return f"{token.keyword or _label(argument)} is {token.value!r}; it takes {describe_type(argument.hint)}"
        case MissingArgumentError(argument=Argument() as argument):
            said = f"{error.keyword} needs a value" if error.keyword else f"{_label(argument)} is missing"
        case UnusedCliTokensError():
            said = f"unexpected word {(error.unused_tokens or [''])[0]!r}"
        case _:
            text = str(error).partition(" Available commands")[0].removesuffix(".")
            said = text[0].lower() + text[1:]
    return (
        said if "Did you mean" in said else f"{said}; see {' '.join(['auxrnn', *(error.command_chain or ())])} --help"
    )


def _label(argument: Argument) -> str:
    """Return a word's name as the help has it."""
    required = [child for child in argument.children_recursive if child.required and not child.children]
    return (required[0] if required else argument).name.removeprefix("--").upper()


def print_json(value: dict[str, Any]) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """Tell the user something that is no result."""
    print(text, file=sys.stderr)


def load_data(config: "DataConfig") -> "Dataset":
    """Load the data of a run, with progress on the error stream."""
    from auxrnn.data.datasets import load
    from auxrnn.progress import show_reading

    with show_reading(Path(config.data).name) as observe:
        return load(config, observe=observe)
