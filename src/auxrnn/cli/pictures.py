"""From a dataset to the examples that a picture of it shows."""

import numpy as np

from auxrnn import runs
from auxrnn.data.datasets import Dataset, make_splits
from auxrnn.data.formats import Format
from auxrnn.data.images import ImageFormat, permutation_order
from auxrnn.data.sequences import NO_LABEL, Split
from auxrnn.data.texts import TextFormat
from auxrnn.report.data_pictures import Shown, draw_images, draw_series, draw_texts


def draw(name: str, dataset: Dataset, prepared: runs.Prepared, *, num_shown: int) -> bytes:
    """Draw some training examples of as many classes as there is room for; gives a PNG."""
    form = prepared.card.format
    train = make_splits(dataset, prepared.division, form).train
    chosen = _choose(train, num_shown)
    shown = [_show(chosen.select(np.array([row])), dataset, form) for row in range(chosen.num_examples)]
    title = f"{name}: {dataset.description}"
    if isinstance(form, ImageFormat):
        order_T = None if form.permutation is None else permutation_order(form.permutation, form.num_steps)
        return draw_images(shown, size=form.size, order_T=order_T, title=title)
    if isinstance(form, TextFormat):
        return draw_texts(shown, title=title, unknown=None if form.alphabet is None else len(form.alphabet))
    return draw_series(shown, title=title)


def _choose(train: Split, num_shown: int) -> Split:
    """Take the first example of each class, then the second, and so on."""
    rank_N = np.zeros(train.num_examples, dtype=np.int64)
    for label in np.unique(train.label_N):
        rows = np.flatnonzero(train.label_N == label)
        rank_N[rows] = np.arange(len(rows))
    return train.select(np.lexsort((train.label_N, rank_N))[:num_shown])


def _show(one: Split, dataset: Dataset, form: Format) -> Shown:
    value_NT, _ = one.align()
    label = int(one.label_N[0])
    text = None
    if isinstance(form, TextFormat):
        kept = np.concatenate(list(one.values()))
        is_bytes = form.tokens == "bytes"
        text = kept.tobytes().decode(errors="replace") if is_bytes else "".join(map(chr, kept.tolist()))
        text = text[::-1] if form.is_backward else text
    return Shown("no label" if label == NO_LABEL else dataset.class_names[label], value_NT[0], text)
