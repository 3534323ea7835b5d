"""What all commands share: how they are declared, parsed, explained and refused. Importing it imports no torch.

Defaults come in layers below the flags: those of the recipe, over them the model's preset, over them a config file.
"""

import inspect
import json
import logging
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from attrs import evolve
from cyclopts import App, Argument, ArgumentCollection, Group, Parameter, Token
from cyclopts.exceptions import CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError
from cyclopts.help import DefaultFormatter, InlineText, create_parameter_help_panel

from auxrnn import config as configs
from auxrnn.cli.together import check_command, is_told_elsewhere, leave_others, take_turn
from auxrnn.config import DEFAULT_MODEL, DataConfig, describe_type, name_fields, read_file
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable
from auxrnn.heap import keep_freed_memory, restart_with_large_pages
from auxrnn.presets import AUXILIARY, DEFAULT_RECIPE, MODEL_OPTIONS, PRESETS, ModelName, RecipeName, find_recipe

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

    from auxrnn.data.datasets import Dataset

Command = TypeVar("Command", bound=Callable[..., int | None])
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
Json = Annotated[Flag, Parameter(help="Print one JSON object.")]
RecipeOption = Annotated[
    RecipeName,
    Parameter(
        help="Where the defaults of all options come from: fast (converges within minutes to an hour on one core) or"
        " paper (the published settings)."
    ),
]
ConfigOption = Annotated[
    Path | None,
    Parameter(
        help="File with defaults for these options: TOML with keys named like the flags, a shipped one (paper,"
        " mnist14), or the config.json of a run, for another run like it (on its data, unless DATA is given)."
    ),
]
PRETRAIN_LENGTHS, TRAIN_LENGTHS = {"pretrain_steps", "pretrain_epochs"}, {"train_steps", "train_epochs"}
PANELS = {
    configs.DataConfig: "Data",
    configs.ModelConfig: "Network",
    configs.BaselineConfig: "Networks that read whole sequences",
    configs.ObjectiveConfig: "Auxiliary loss",
    configs.SegmentConfig: "Segments of the auxiliary loss",
    configs.ScheduleConfig: "Training",
    configs.RunConfig: "Machine, evaluation and checkpoints",
}
for number, (kind, title) in enumerate(PANELS.items(), start=1):
    Parameter(name="*", group=Group(title, sort_key=number))(kind)
OF_DATA = {
    "Tables": {"text_column", "label_column", "series_column", "time_column", "value_columns"},
    "Few labels, and splits": {
        "unlabeled", "label_fraction", "labels_per_class", "train_examples", "test_fraction", "validation_fraction"
    },
}  # fmt: skip
"""Panels of their own for some of the options of the data."""
START = ("data", "out", "minutes", "model", "objective", "hidden_size", "supervised_window", "test_data", "seed")
"""What most trainings need: these options come first in the help, before the panels of all others."""


class Help(DefaultFormatter):
    """Cyclopts's own panels; with other values as defaults and without some options, where a model is named.

    With `starts`, one panel of these options comes before all others.
    """

    def __init__(
        self,
        defaults: Mapping[str, Any] | None = None,
        *,
        hidden: frozenset[str] = frozenset(),
        starts: ArgumentCollection | None = None,
    ) -> None:
        super().__init__()
        self.defaults, self.hidden, self.starts = defaults or {}, hidden, starts
        self.shown: set[str] = set()

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one panel, unless nothing in it has an effect or all of it was shown before."""
        if self.starts:
            first = create_parameter_help_panel(Group("Start here"), self.starts, "plaintext")
            self.starts = None
            self(console, options, first)
            self.shown = {name for entry in first.entries for name in _names(entry)}
        left_out, panels = self.hidden | self.shown, dict[str, list[Any]]()
        apart = OF_DATA if panel.title == PANELS[configs.DataConfig] else {}
        for entry in panel.entries:
            names = set(_names(entry))
            title = next((title for title, apart_names in apart.items() if names & apart_names), str(panel.title))
            if not left_out & names:
                panels.setdefault(title, []).append(self._change(entry))
        for title, entries in panels.items():
            super().__call__(console, options, panel.copy(title=title, entries=entries))

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
    help="Train recurrent networks to classify sequences: sounds, sensor series, texts, images pixel by pixel. They may"
    " be very long, have gaps and few labels (Trinh et al., 2018).",
    help_epilogue="""\
Examples:
  auxrnn demo
  auxrnn data check sounds/
  auxrnn train sounds/ --steps-per-input 16 --out runs/sounds
  auxrnn evaluate runs/sounds
  auxrnn predict runs/sounds new.wav
  auxrnn show runs/sounds

`auxrnn COMMAND --help` explains a command and its options.""",
    help_format="plaintext",
    help_formatter=Help(),
    version=lambda: metadata.version("auxrnn"),
    group_arguments=Group("Options", sort_key=0),
    group_parameters=Group("Options", sort_key=0),
    group_commands=Group("Help", sort_key=9),
    default_parameter=Parameter(allow_repeating=True),
)
IN_USE = ("train", "tune", "resume", "runs", "evaluate", "predict", "show", "compare", "board", "export")
"""The commands of the first panel, in the order in which one needs them."""
USE, PREPARE = Group("Train and use", sort_key=0), Group("Before training", sort_key=1)
PAPER, MACHINE = Group("The paper", sort_key=2), Group("This machine", sort_key=3)


def command(
    panel: Group, *, parent: App = app, words: str = "", has_layers: bool = False
) -> Callable[[Command], Command]:
    """Return a decorator that adds a function to the command line under its own name; it may return an exit code.

    The docstring is its help; what follows "Examples:" comes last, below the options. `words` are those of the usage
    line where cyclopts would say ARGS. With layers, recipe, preset and config file fill in what the flags leave open.
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
            sort_key=IN_USE.index(name) if panel is USE else len(list(parent)),
            config=(_refuse_odd_numbers, _add_layers) if has_layers else _refuse_odd_numbers,
        )
        return function

    return add


def main() -> None:
    """Run one command and end the process with its code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    _open_streams()
    take_turn()
    handler = logging.StreamHandler(sys.stderr)
    handler.format = lambda record: printable(record.getMessage())  # type: ignore[method-assign]  # names may hold anything
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    keep_freed_memory()
    if sys.argv[1:2] == ["bench"]:
        restart_with_large_pages()
    code = run(sys.argv[1:])
    if code == 0:
        leave_others()
    sys.exit(code)


def _open_streams() -> None:
    """Give a process without standard streams empty ones, and let all of them show any name."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest number that is free is the one that was closed: the next file would have taken it.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # they are the process's own


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; mistakes and failures become one sentence on stderr."""
    words = list(argv) if argv and argv[0] != "help" else [*argv[1:], "--help"]
    try:
        if any("\0" in word for word in words):
            raise UsageError("a word holds a NUL character, which no name can have; leave it out")
        check_command(words)
        code = _parse(words)()
        return (code or 0) if argv else 2
    except UsageError as error:
        _tell(error, name_fields(str(error), like="--{}"))
        return 2
    except BrokenPipeError:
        # Whoever read the results has seen enough; nothing may be left to write at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = error.filename or "a file"
        _tell(error, f"{where} cannot be read or written ({error.strerror}); check the disk and permissions")
        return 1
    except (RuntimeError, MemoryError) as error:
        _tell(error, _describe_failure(error))
        return 1
    except KeyboardInterrupt as error:
        _tell(error, "stopped")
        return 130


def _tell(error: BaseException, sentence: str) -> None:
    if not is_told_elsewhere(error):
        say(f"auxrnn: {sentence}")


def _describe_failure(error: RuntimeError | MemoryError) -> str:
    if isinstance(error, RunError):
        return str(error)
    # Torch reports that memory is used up by a RuntimeError with a long text.
    if isinstance(error, MemoryError) or re.search("out of memory|allocate memory", str(error)):
        return "out of memory; use a smaller batch, shorter windows and segments, or a smaller network"
    raise error


def _parse(words: Sequence[str]) -> Callable[[], int | None]:
    try:
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        if command == app.help_print:
            app.help_formatter = _make_help(words)
    except CycloptsError as error:
        raise UsageError(_describe_mistake(error)) from error
    except ValueError as error:
        # Config dataclasses raise it for values that are not allowed.
        raise UsageError(str(error)) from error
    return partial(command, *bound.args, **bound.kwargs)


def _describe_mistake(error: CycloptsError) -> str:
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
    words = " ".join(["auxrnn", *(error.command_chain or ())])
    return said if "Did you mean" in said else f"{said}; see {words} --help"


def _label(argument: Argument) -> str:
    """Return the name of a positional argument as the help has it."""
    required = [child for child in argument.children_recursive if child.required and not child.children]
    return (required[0] if required else argument).name.removeprefix("--").upper()


def _refuse_odd_numbers(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse numbers that only Python reads as such, and fractions for whole numbers, which cyclopts would round.

    Called between reading the flags and using them.
    """
    for argument in arguments:
        kinds = {int, float} & set(get_args(argument.hint) or (argument.hint,))
        for token in argument.tokens if kinds else ():
            is_odd = ("_" in token.value or not token.value.isascii()) and _is_number(token.value)
            if is_odd or (float not in kinds and "." in token.value):
                raise CoercionError(token=token, argument=argument, target_type=int)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _add_layers(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Set every option that no flag sets; cyclopts calls this between reading the flags and building the options."""
    leaves = {leaf.name.removeprefix("--").replace("-", "_"): leaf for leaf in arguments if not leaf.children}
    flags = {name: argument.convert() for name, argument in leaves.items() if argument.tokens}
    file = _read_file(flags)
    values = _find_values(flags, file)
    if (values | flags).get("objective") == "none" and file.get("objective", "none") != "none":
        say(f"ignoring the objective and the pretraining of {flags['config']}")
    if not (flags | values).get("data"):
        raise UsageError("DATA is missing; name a dataset, such as digits or mnist, or give the path of your own files")
    _check_effects(flags, file, values["model"])
    for name in values.keys() - flags.keys():
        leaves[name].append(Token(implicit_value=values[name], source="layers"))
    if "given" in leaves:
        leaves["given"].append(Token(implicit_value=tuple(flags), source="layers"))


def _make_help(words: Sequence[str]) -> Help:
    """Return the help for a command line: with the defaults of the recipe, model and config file that it names."""
    if words[0] not in ("train", "tune", "cost"):
        return Help()
    _, bound, *_ = _beside_help.parse_known_args(words[1:])
    flags = bound.arguments
    hidden = MODEL_OPTIONS - set(PRESETS[flags["model"]].options) if "model" in flags else frozenset()
    starts = app["train"].assemble_argument_collection(parse_docstring=True)
    order = [f"--{name.replace('_', '-')}" for name in START] if words[0] == "train" else []
    starts[:] = sorted((each for each in starts if each.name in order), key=lambda each: order.index(each.name))
    return Help(_find_values(flags, _read_file(flags)) | flags, hidden=hidden, starts=starts)


_beside_help = App(help_flags=(), version_flags=())


@_beside_help.default
def _take(*, recipe: RecipeName | None = None, model: ModelName | None = None, config: Path | None = None) -> None:
    """Take what changes the defaults of all other options."""


def _read_file(flags: dict[str, Any]) -> dict[str, Any]:
    return read_file(flags["config"], data=flags.get("data")) if flags.get("config") else {}


def _find_values(flags: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    """Return the values of recipe, model and config file, where these flags leave them open.

    The settings of a model named as a flag take the place of the file's: the file may be for another one.
    """
    recipe = flags.get("recipe", file.get("recipe", DEFAULT_RECIPE))
    model_of_file = file.get("model", DEFAULT_MODEL)
    model = flags.get("model", model_of_file)
    preset = find_recipe(recipe, model)
    values = preset | file if model == model_of_file else file | preset
    values |= {"recipe": recipe, "model": model}
    dropped = set()
    for rivals in (PRETRAIN_LENGTHS, TRAIN_LENGTHS, {"label_fraction", "labels_per_class"}):
        # What a flag says takes the place of what the file says, in whichever unit that is.
        dropped |= rivals if rivals & flags.keys() else set()
    if "minutes" in flags:
        dropped |= PRETRAIN_LENGTHS | TRAIN_LENGTHS
    if values.get("objective") == "auto" and flags.keys() & set(AUXILIARY):
        # An option of the auxiliary loss asks for the auxiliary loss.
        values["objective"] = "reconstruct"
    if (values | flags).get("objective") == "none":
        # A file's pretraining is for its own objective.
        dropped |= PRETRAIN_LENGTHS
    return {name: value for name, value in values.items() if name not in dropped and value is not None}


def _check_effects(flags: dict[str, Any], file: dict[str, Any], model: ModelName) -> None:
    """Refuse an option that has no effect on the model, rather than ignore it.

    A file for another model may have such options, a file that names the model itself may not.
    """
    named = {*flags, *(file if file.get("model") == model else ())}
    for name in sorted(named & (MODEL_OPTIONS - set(PRESETS[model].options))):
        models = ", ".join(other for other, preset in PRESETS.items() if name in preset.options)
        raise UsageError(f"--{name.replace('_', '-')} has no effect with --model {model}; it is for {models}")


def print_json(value: dict[str, Any]) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """Print a message, which is no result, to the error stream."""
    print(printable(text), file=sys.stderr)


def load_data(config: DataConfig) -> "Dataset":
    """Load the data of a run, with progress on the error stream."""
    from auxrnn.data.datasets import load
    from auxrnn.progress import show_reading

    with show_reading(Path(config.data).name) as observe:
        return load(config, observe=observe)
