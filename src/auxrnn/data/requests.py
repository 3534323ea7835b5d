"""What a user may ask of a dataset or of files."""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from auxrnn.data.texts import Tokens
from auxrnn.errors import UsageError

NAMED_PERMUTATION = "auxrnn-1"


class Request(NamedTuple):
    """The data by name or path, and how it is to be read."""

    data: str
    data_dir: Path | None = None
    image_size: int | None = None
    permutation: str = NAMED_PERMUTATION
    enlarge_to: int | None = None
    length: int | None = None
    text_column: str | None = None
    label_column: str | None = None
    tokens: Tokens = "characters"
    unlabeled: Path | None = None
    test_data: Path | None = None


OPTIONS = ("image_size", "permutation", "enlarge_to", "length", "text_column", "label_column", "tokens")


def check_options(request: Request, takes: Collection[str], *, what: str) -> None:
    """Refuse an option that means nothing for this kind of data, rather than pass over it."""
    plain = Request(request.data)
    for name in OPTIONS:
        if name not in takes and getattr(request, name) != getattr(plain, name):
            raise UsageError(f"{name} is {getattr(request, name)!r}; it means nothing for {what}, so leave it out")
