"""How help looks: text as wide as the terminal, words without a flag named once, defaults as the recipe has them."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from cyclopts import App
from cyclopts.help import DefaultFormatter, InlineText

from auxrnn.cli.layers import find_shown_defaults
from auxrnn.presets import ModelName, RecipeName

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

RUN_COMMANDS = ("train", "cost")


class Help(DefaultFormatter):
    """Cyclopts's own panels, with other values as defaults where they are known."""

    def __init__(self, defaults: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults = defaults or {}

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one panel."""
        entries = [self._change(entry) for entry in panel.entries]
        super().__call__(console, options, panel.copy(entries=entries))

    def _change(self, entry: "HelpEntry") -> "HelpEntry":
        # A field's docstring has the line ends of the source.
        text = " ".join(getattr(entry.description.primary_renderable, "plain", "").split())
        entry = evolve(entry, description=InlineText.from_format(text, format="plaintext"))
        if entry.positional_label:
            return evolve(entry, positive_names=(), metavar=None)
        if entry.metavar and "|" in entry.metavar and entry.choices:
            numbers = [word for word in entry.metavar.split("|") if word != "CHOICE"]
            shown = (
                {"metavar": "|".join([*numbers, *entry.choices]), "choices": ()} if numbers else {"metavar": "CHOICE"}
            )
            entry = evolve(entry, **shown)
        names = [name.removeprefix("--").replace("-", "_") for name in entry.positive_names]
        found = [self.defaults[name] for name in names if name in self.defaults]
        return evolve(entry, default=str(found[0])) if found else entry


def make_help(words: Sequence[str]) -> Help:
    """Return the help for a command line: with the defaults of the recipe, model and config file that it names."""
    if words[0] not in RUN_COMMANDS:
        return Help()
    _, bound, *_ = _beside_help.parse_known_args(words[1:])
    return Help(find_shown_defaults(**bound.arguments))


_beside_help = App(help_flags=(), version_flags=())


@_beside_help.default
def _take(*, recipe: RecipeName | None = None, model: ModelName | None = None, config: Path | None = None) -> None:
    """Take what changes the defaults of all other options."""


def reflow(text: str) -> str:
    """Return a text with every paragraph on one line, for the terminal to wrap; paragraphs that are indented stay."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs)
