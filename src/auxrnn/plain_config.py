"""A run's config as plain values by name: from TOML, to and from JSON, as the words of a command line."""

import dataclasses
import functools
import json
import re
import tomllib
import types
import typing
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar

from auxrnn.config import DEFAULT_MODEL, RunConfig
from auxrnn.errors import UsageError, nearest
from auxrnn.presets import RecipeName, find_settings

RUN_FORMAT = 2
"""Raised by one when a run folder can no longer be read by the version before."""
READABLE_FORMATS = (1, 2)

Config = TypeVar("Config")


def flatten(config: RunConfig) -> dict[str, Any]:
    """Return all fields of all groups under their own names, as plain values for JSON."""
    values: dict[str, Any] = {}
    for entry in dataclasses.fields(config):
        value = getattr(config, entry.name)
        group = value if dataclasses.is_dataclass(value) else None
        values |= {entry.name: value} if group is None else vars(group)
    return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}


def unflatten(values: dict[str, Any]) -> RunConfig:
    """Build a run's config from plain values by name; names left out keep their defaults, those of the model if named.

    Raises `UsageError` for a name that no field has (the nearest is offered) and for a value of the wrong kind.
    """
    known = field_types()
    for name in values:
        if name not in known:
            raise UsageError(f"unknown key {name!r}{nearest(name, known)}")
    values = find_settings(values.get("model")) | values
    values = {name: _convert(name, value, known[name]) for name, value in values.items()}
    try:
        return _assemble(RunConfig, values)
    except ValueError as error:
        raise UsageError(str(error)) from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a config file into values by field name, `recipe` among them; `path` may name a shipped config (`paper`)."""
    raw = _load_toml(path)
    known: dict[str, Any] = {"recipe": RecipeName} | field_types()
    for name, value in raw.items():
        if isinstance(value, dict):
            raise UsageError(f"{path}: [{name}] is a table; write all keys without tables")
        if name.replace("-", "_") not in known:
            flags = [field_name.replace("_", "-") for field_name in known]
            raise UsageError(f"{path}: unknown key {name!r}{nearest(name, flags)}")
    values = {name.replace("-", "_"): value for name, value in raw.items()}
    try:
        values = {name: _convert(name, value, known[name]) for name, value in values.items()}
        unflatten({"data": ""} | {name: value for name, value in values.items() if name != "recipe"})
    except UsageError as error:
        sentence = name_fields(str(error), like="'{}'")
        raise UsageError(f"{path}: {sentence}") from error
    return values


def _load_toml(path: Path) -> dict[str, Any]:
    configs = resources.files("auxrnn") / "configs"
    shipped = configs / f"{path}.toml"
    if not path.exists() and not shipped.is_file():
        names = sorted(entry.name.removesuffix(".toml") for entry in configs.iterdir())
        raise UsageError(f"no config file {path}; give a TOML file or one of the shipped configs: {', '.join(names)}")
    try:
        return tomllib.loads(path.read_text() if path.exists() else shipped.read_text())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give a TOML file") from error
    except ValueError as error:
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not text"
        hint = "write lines such as: supervised-window = 28"
        raise UsageError(f"{path} is not a TOML file ({reason}); {hint}") from error


def to_json(config: RunConfig) -> str:
    """Return the whole config as JSON, with the format of the run folder it stands in."""
    return json.dumps({"format": RUN_FORMAT} | flatten(config), indent=2) + "\n"


def to_flags(config: RunConfig) -> list[str]:
    """Return the words after `auxrnn train` that ask for this config: its data, and what differs from the paper's."""
    model = [] if config.model.model == DEFAULT_MODEL else ["--model", config.model.model]
    return [config.data.data, "--recipe", "paper", *model, *_list_changes(config)]


def to_data_flags(config: RunConfig) -> list[str]:
    """Return the words after `auxrnn data check` that ask for the data of this config."""
    return [config.data.data, *_list_changes(RunConfig(data=config.data))]


def _list_changes(config: RunConfig) -> list[str]:
    """List what differs from the defaults of a config's model, as flags."""
    values, model = flatten(config), config.model.model
    named = {} if model == DEFAULT_MODEL else {"model": model}
    defaults = flatten(unflatten({"data": config.data.data} | named))
    words = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words += [] if value == defaults[name] else [f"--{flag}" if value else f"--no-{flag}"]
        elif value != defaults[name]:
            words += [f"--{flag}", str(value)]
    return words


def name_fields(sentence: str, *, like: str) -> str:
    """Name the fields in a sentence as the user wrote them: `--batch-size` if `like` is `--{}`, not `batch_size`."""
    names = "|".join(name for name in field_types() if name != "data")
    field_name = rf"(?<!\S)({names})(?= is | are | and | or | has |;|$)"
    return re.sub(field_name, lambda match: like.format(match[1].replace("_", "-")), sentence)


@functools.cache
def field_types() -> dict[str, Any]:
    """Return the fields of all groups under their own names, each with its type."""
    found: dict[str, Any] = {}
    for name, kind in typing.get_type_hints(RunConfig).items():
        found |= typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) else {name: kind}
    return found


def _assemble(kind: type[Config], values: dict[str, Any]) -> Config:
    arguments: dict[str, Any] = {}
    for entry in dataclasses.fields(typing.cast(Any, kind)):
        if dataclasses.is_dataclass(entry.type):
            arguments[entry.name] = _assemble(typing.cast(type[Any], entry.type), values)
        elif entry.name in values:
            arguments[entry.name] = values[entry.name]
    return kind(**arguments)


def _convert(name: str, value: Any, hint: Any) -> Any:
    """Accept a plain value for a field, or say what the field takes."""
    for option in _options(hint):
        if typing.get_origin(option) is Literal and value in typing.get_args(option):
            return value
        if option is Path and isinstance(value, str):
            return Path(value)
        if option is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(option, type) and isinstance(value, option) and (option is bool) == isinstance(value, bool):
            return value
    raise UsageError(f"{name} is {value!r}; it takes {describe_type(hint)}")


def describe_type(hint: Any) -> str:
    """Say what a field of this type takes: a whole number, 'full' or 'auto'."""
    words = {int: "a whole number", float: "a number", bool: "true or false"}
    allowed: list[str] = []
    for option in (option for option in _options(hint) if option is not types.NoneType):
        is_choice = typing.get_origin(option) is Literal
        allowed += [repr(choice) for choice in typing.get_args(option)] if is_choice else [words.get(option, "a text")]
    return " or ".join([", ".join(allowed[:-1]), allowed[-1]] if len(allowed) > 1 else allowed)


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
