"""Synthetic long-memory tasks, generated when they are read: the class depends on one or two characters."""

from auxrnn.config import DataConfig
from auxrnn.data.examples import Plain, Problems, Source, Understood
from auxrnn.data.spec import DatasetSpec, check_options
from auxrnn.errors import UsageError

DEFAULT_LENGTH = 200
SHORTEST, LONGEST = 10, 1_000_000


def open_task(config: DataConfig) -> Source:
    """Return a task as a source; its texts have `--length` steps."""
    import numpy as np  # noqa: PLC0415 - slow, and the list of datasets does without

    from auxrnn.data import formats, tasks, texts  # noqa: PLC0415 - the same

    spec = next(spec for spec in SYNTHETIC if spec.name == config.data)
    check_options(config, ("length",), what=spec.name)
    length = DEFAULT_LENGTH if config.length is None else config.length
    if not SHORTEST <= length <= LONGEST:
        raise UsageError(f"length is {length}; for {spec.name} it must be from {SHORTEST} to {LONGEST:,}")
    # All characters of a task fit a byte, but those of a user's texts beside them may not.
    dtype = np.uint8 if config.unlabeled is None else np.uint32
    task = tasks.TASKS[spec.name]
    num_examples = spec.train_examples + spec.test_examples

    def understand(_problems: Problems, _like: formats.Format | None) -> Understood:
        examples = tasks.make_examples(spec.name, length, dtype)
        num_bytes = num_examples * length * np.dtype(dtype).itemsize
        class_names = {label: label for label in task.class_names}
        form = texts.TextFormat(alphabet=task.alphabet)
        return Understood(spec.title, form, examples, num_examples, num_bytes, class_names)

    options: dict[str, Plain] = {"reader": "task", "version": tasks.VERSION, "task": spec.name, "length": length}
    return Source(spec.name, [], options, understand)


ADDING = DatasetSpec(
    name="adding",
    title="random digits, one in each half written as a letter (a for 0); the class is their sum",
    lengths="200 or any",
    num_classes=19,
    train_examples=20_000,
    test_examples=2_000,
    license="synthetic",
    needs="characters",
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
