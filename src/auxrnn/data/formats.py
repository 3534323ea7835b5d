"""The formats of sequences, as plain values to keep and as what they mean for a network."""

from typing import Any, NamedTuple

from auxrnn.data.images import ImageFormat
from auxrnn.data.series import SeriesFormat
from auxrnn.data.texts import TextFormat

Format = ImageFormat | TextFormat | SeriesFormat
KINDS: dict[str, type[ImageFormat] | type[TextFormat] | type[SeriesFormat]] = {
    "images": ImageFormat,
    "texts": TextFormat,
    "series": SeriesFormat,
}


class StepKind(NamedTuple):
    """What a step is: a vector of `input_size` features, or a token of a vocabulary."""

    input_size: int
    vocabulary_size: int | None


def kind_of(form: Format) -> str:
    """Give the name of a format's kind: images, texts or series."""
    return next(kind for kind, cls in KINDS.items() if isinstance(form, cls))


def to_plain(form: Format) -> dict[str, Any]:
    """Give a format as plain values for JSON."""
    return {"kind": kind_of(form)} | form._asdict()


def from_plain(values: dict[str, Any]) -> Format:
    """Read what `to_plain` gave; raise ValueError, KeyError or TypeError where it did not."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    return KINDS[fields.pop("kind")](**fields)


def step_kind(form: Format) -> StepKind:
    """Say what a network must be able to read."""
    if isinstance(form, TextFormat):
        return StepKind(1, form.vocabulary_size)
    return StepKind(form.channels if isinstance(form, ImageFormat) else form.num_channels, None)
