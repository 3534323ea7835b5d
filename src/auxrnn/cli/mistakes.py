"""What cyclopts refuses, said in one sentence that names what was given, what is allowed and where to read more."""

from typing import get_args

from cyclopts import (
    App,
    Argument,
    ArgumentCollection,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from auxrnn.config import describe_type
from auxrnn.errors import nearest


def refuse_fractions(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse a fraction for a whole number, which cyclopts would round; called between reading flags and using them."""
    for argument in arguments:
        takes_int = int in (get_args(argument.hint) or (argument.hint,))
        for token in argument.tokens if takes_int else ():
            if "." in token.value:
                raise CoercionError(token=token, argument=argument, target_type=int)


def describe_mistake(error: CycloptsError) -> str:
    """Return one sentence without a frame; the message that cyclopts would print is never made."""
    said = _describe(error)
    return said if ";" in said else f"{said}; see {' '.join(['auxrnn', *(error.command_chain or ())])} --help"


def _describe(error: CycloptsError) -> str:
    match error:
        case UnknownCommandError():
            words = [*(error.command_chain or ()), (error.unused_tokens or [""])[0]]
            known = [name for name in error.app or () if not name.startswith("-")]
            said = f"unknown command {' '.join(words)!r}{nearest(words[-1], known)}"
        case UnknownOptionError():
            flag = (error.token.keyword or error.token.value).partition("=")[0]
            known = [name.removeprefix("--") for argument in error.argument_collection for name in argument.names]
            # Compared without their dashes, which would make all flags look alike.
            said = f"unknown option {flag!r}{nearest(flag.lstrip('-'), set(known) - {'*'}, prefix='--')}"
        case UnusedCliTokensError():
            said = f"unexpected word {(error.unused_tokens or [''])[0]!r}"
        case CoercionError(token=token, argument=Argument() as argument) if token is not None:
            said = f"{token.keyword or _label(argument)} is {token.value!r}; it takes {describe_type(argument.hint)}"
        case MissingArgumentError(keyword=str(keyword)):
            said = f"{keyword} needs a value"
        case MissingArgumentError(argument=Argument() as argument):
            said = f"{_label(argument)} is missing"
        case _:
            said = str(error).rstrip(".")
    return said


def _label(argument: Argument) -> str:
    """Return a word's name as the help has it."""
    required = [child for child in argument.children_recursive if child.required and not child.children]
    return (required[0] if required else argument).name.removeprefix("--").upper()
