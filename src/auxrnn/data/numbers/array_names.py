"""Which arrays belong together, by their names: sequences `x`, labels `y` and `lengths`, or x_train, y_train, ..."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from auxrnn.data.examples import SPLIT_NAMES, Part
from auxrnn.errors import RunError

Role = Literal["x", "y", "lengths"]
ALIASES: dict[Role, tuple[str, ...]] = {
    "x": ("x", "data", "sequences"),
    "y": ("y", "label", "labels", "target", "targets"),
    "lengths": ("lengths", "length", "len"),
}
ENDINGS: dict[str, Part | None] = {
    "": None,
    **{f"_{name}": part for name, part in SPLIT_NAMES.items()},
    "_unlabeled": "unlabeled",
}
MEANINGS: dict[str, tuple[Role, Part | None]] = {
    f"{alias}{ending}": (role, part)
    for role, aliases in ALIASES.items()
    for alias in aliases
    for ending, part in ENDINGS.items()
}
PLAIN_NAMES = {f"{role}{ending}" for role in ALIASES for ending in ENDINGS}
HOW_TO_SAVE = 'np.savez("data.npz", x=x, y=y)'


class Group(NamedTuple):
    """The names of the arrays that belong together, and the part of the data that they are."""

    part: Part | None
    x: str
    y: str | None
    lengths: str | None


def find_files(path: Path) -> dict[str, Path] | None:
    """Give the .npy files to read, by the names of their arrays: those of a folder, or one and what is beside it.

    None for an .npz, whose names are inside.
    """
    try:
        if not path.is_dir():
            return None if path.suffix.lower() == ".npz" else _find_beside(path)
        files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".npy")
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}); check that it is there and may be read") from error
    return {file.stem: file for file in files if file.stem.lower() in MEANINGS}


def names_beside(path: Path, role: Role) -> list[Path]:
    """Say where the labels or lengths of an .npy may be: y_train.npy beside x_train.npy, NAME_y.npy beside NAME.npy."""
    names = (*ALIASES[role], role.upper())
    is_plain = path.stem[:1].lower() == "x" and path.stem[1:].lower() in ENDINGS
    stems = [f"{name}{path.stem[1:]}" if is_plain else f"{path.stem}_{name}" for name in names]
    return [path.with_name(f"{stem}{path.suffix}") for stem in stems]


def group_names(place: str, names: Iterable[str]) -> list[Group]:
    """Say which arrays belong together; the only one of an unknown name is `x` where no other is."""
    known: dict[tuple[Role, Part | None], str] = {}
    unknown: list[str] = []
    # Plain names come first: beside `y`, an array called `labels` may be anything.
    for name in sorted(set(names), key=lambda name: (name not in PLAIN_NAMES, name)):
        meaning = MEANINGS.get(name.lower())
        if meaning is None:
            unknown.append(name)
            continue
        other = known.setdefault(meaning, name)
        if other != name and (other in PLAIN_NAMES) == (name in PLAIN_NAMES):
            raise RunError(f"{place} holds both {other} and {name}; keep one of them")
    parts = [part for part in dict.fromkeys(ENDINGS.values()) if ("x", part) in known]
    if not parts:
        known["x", None] = _take_the_only(place, unknown)
        parts = [None]
    if None in parts and len(parts) > 1:
        other = known["x", parts[1]]
        raise RunError(f"{place} holds both {known['x', None]} and {other}; call the first x_train")
    return [Group(part, known["x", part], known.get(("y", part)), known.get(("lengths", part))) for part in parts]


def _take_the_only(place: str, unknown: list[str]) -> str:
    if len(unknown) == 1:
        return unknown[0]
    shown = ", ".join(name if name.isprintable() else repr(name) for name in unknown[:5])
    found = f"holds {len(unknown)} arrays ({shown}) and none called x" if unknown else "holds no array called x"
    raise RunError(f"{place} {found}; save the sequences as {HOW_TO_SAVE}")


def _find_beside(path: Path) -> dict[str, Path]:
    found = {"x": path}
    roles: tuple[Role, ...] = ("y", "lengths")
    for role in roles:
        files = [file for file in names_beside(path, role) if file.is_file()]
        if files:
            found[role] = files[0]
    return found
