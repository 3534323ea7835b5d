"""Synthetic long-memory tasks, drawn in `tasks.py` when they are read: the class depends on one or two characters."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Source
from auxrnn.data.spec import DatasetSpec


def open_task(spec: DatasetSpec, config: DataConfig) -> Source:
    """Return a task as a source; its texts have `--length` steps."""
    from auxrnn.data.tasks import task_source  # noqa: PLC0415 - slow, and the list of datasets does without

    return task_source(spec, config)


ADDING = DatasetSpec(
    name="adding",
    title="random digits, one in each half written as a letter (a for 0); the class is their sum",
    lengths="200 or any",
    num_classes=19,
    train_examples=20_000,
    test_examples=2_000,
    license="synthetic",
    citation="after Hochreiter and Schmidhuber, Long Short-Term Memory, 1997 (experiment 4, with digits)",
    open=open_task,
)
RECALL = ADDING._replace(
    name="recall",
    title="random letters and one question mark in the first half; the class is the letter after it",
    num_classes=8,
    citation="after Graves, Wayne and Danihelka, Neural Turing Machines, arXiv:1410.5401, 2014 (associative recall)",
)
NEEDLE = ADDING._replace(
    name="needle",
    title="random letters and one capital in the first tenth; the class is the capital",
    num_classes=10,
    citation="after Hochreiter and Schmidhuber, Long Short-Term Memory, 1997 (experiment 2, with a place that varies)",
)
SYNTHETIC = (ADDING, RECALL, NEEDLE)
