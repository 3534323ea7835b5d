"""Which options of a config apply to which kind of data."""

from collections.abc import Collection

from auxrnn.config import DataConfig
from auxrnn.errors import UsageError

OPTIONS = ("image_size", "permutation", "enlarge_to", "length", "text_column", "label_column", "tokens")


def check_options(data: DataConfig, allowed: Collection[str], *, what: str) -> None:
    """Refuse an option that has no effect on this kind of data, rather than ignore it."""
    defaults = DataConfig(data=data.data)
    for name in OPTIONS:
        if name not in allowed and getattr(data, name) != getattr(defaults, name):
            raise UsageError(f"{name} has no effect on {what}; remove it")
