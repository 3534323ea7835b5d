"""`auxrnn evaluate` and `auxrnn predict`."""

import io
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from auxrnn.cli.commands import USE, Flag, Json, command, print_json, say
from auxrnn.config import SplitName, Weights
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable

if TYPE_CHECKING:
    from auxrnn.data.examples import Problems
    from auxrnn.data.formats import Format
    from auxrnn.data.inputs import Inputs
    from auxrnn.runs import TrainedRun
    from auxrnn.training.evaluate import Evaluation

FinishedRun = Annotated[Path, Parameter(help="Run folder of a finished run.")]
WeightsOption = Annotated[
    Weights | None,
    Parameter(help="The final weights, or the best on the validation split (default: the best, if the run has one)."),
]
MOST_COLUMNS, BATCH_SIZE = 12, 64


@command(USE)
def evaluate(
    run: FinishedRun,
    *,
    split: SplitName = "test",
    weights: WeightsOption = None,
    data_dir: Path | None = None,
    json: Json = False,
) -> None:
    """Show accuracy, confusion and recall of a finished run.

    Args:
        split: Split of the dataset to classify.
        data_dir: Folder that holds the dataset's files, if they have moved since the training.

    Examples:
        auxrnn evaluate runs/mnist14 --json
    """
    from auxrnn import runs
    from auxrnn.data.sequences import by_length, in_order
    from auxrnn.training.evaluate import evaluate as evaluate_on

    trained = runs.load_run(run, weights=weights)
    examples = runs.load_split(run, split, data_dir=data_dir)
    evaluation = evaluate_on(trained.network, in_order(examples.select(by_length(examples)), BATCH_SIZE))
    if not math.isfinite(evaluation.loss):
        raise RunError(
            "the loss on this split is not a finite number; look for numbers far beyond those of the training data"
        )
    if json:
        scores = {name: getattr(evaluation, name) for name in ("accuracy", "balanced_accuracy", "macro_f1", "loss")}
        recall = dict(zip(trained.card.class_names, evaluation.recall, strict=True))
        counts = {"examples": evaluation.num_examples, "confusion": evaluation.confusion_CC.tolist(), "recall": recall}
        print_json({"weights": trained.weights} | scores | counts)
        return
    _say_weights(trained)
    accuracies = f"accuracy {evaluation.accuracy:.2f} %   balanced {evaluation.balanced_accuracy:.2f} %"
    others = f"macro F1 {evaluation.macro_f1:.2f} %   loss {evaluation.loss:.4f}"
    print(f"{accuracies}   {others}   {evaluation.num_examples} examples")
    _print_confusion(trained.card.class_names, evaluation)


@command(USE, words="RUN FILES...")
def predict(
    run: FinishedRun,
    *files: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    weights: WeightsOption = None,
    text_column: str | None = None,
    stream: Flag = False,
    json: Json = False,
) -> None:
    """Show classes and probabilities of new sequences.

    Args:
        files: What to classify, of the kind that the run was trained on: images or folders of them, tables, .txt files
            with one text per line, arrays (.npy, .npz), time series (.ts); - is standard input: one text per line, an
            array or an image.
        text_column: Column of a table that holds the text (default: the one used in training, else the obvious one).
        stream: Read steps from standard input and classify the sequence so far after each of them: one step per line,
            values as in the data (pixels from 0 to 1), and an empty line starts a new sequence; in texts each character
            is a step and each line a sequence.

    Examples:
        auxrnn predict runs/mnist14 digit.png more.npy --json
        auxrnn predict runs/reviews new.csv
        echo "What a film" | auxrnn predict runs/reviews -
        sensor | auxrnn predict runs/mnist14 - --stream     steps as they arrive
    """
    _check_files(files, is_stream=stream)
    from auxrnn import runs
    from auxrnn.data.examples import Problems
    from auxrnn.data.formats import count_unknown
    from auxrnn.data.inputs import read_inputs

    trained = runs.load_run(run, weights=weights)
    if stream:
        _predict_stream(trained, is_json=json)
        return
    _say_weights(trained)
    problems, unknown = Problems(), Counter[str]()
    rows: list[dict[str, Any]] = []
    answer = rows.append if json else _print_answer
    for path in files:
        for inputs in read_inputs(path, trained.card.format, text_column=text_column, problems=problems):
            unknown += count_unknown(inputs.split, trained.card.format)
            for row in _classify(trained, inputs):
                answer(row)
    _report_inputs(problems, unknown, trained.card.format)
    if json:
        print_json({"predictions": rows, "skipped": problems.num_skipped, "unknown_characters": unknown.total()})


def _report_inputs(problems: "Problems", unknown: Counter[str], form: "Format") -> None:
    """Say what was left out, and which characters the network has never seen."""
    from auxrnn.data.formats import SymbolFormat

    for sentence in problems.skipped[:MOST_COLUMNS]:
        say(f"left out: {sentence}")
    if problems.num_skipped > MOST_COLUMNS:
        say(f"left out: {problems.num_skipped - MOST_COLUMNS:,} more")
    if unknown:
        what = "integers" if isinstance(form, SymbolFormat) else "characters"
        shown = ", ".join(f"{character!r} ({count:,})" for character, count in unknown.most_common(MOST_COLUMNS))
        say(f"{unknown.total():,} {what} are not in the network's alphabet: {shown}")


def _check_files(files: Sequence[Path], *, is_stream: bool) -> None:
    for path in files:
        if str(path).startswith("--"):
            raise UsageError(f"unknown option {str(path)!r}; see auxrnn predict --help")
    if not files:
        raise UsageError("no files to predict; name some, or - for standard input: auxrnn predict RUN digit.png")
    if is_stream and files != (Path("-"),):
        raise UsageError("--stream reads standard input alone: auxrnn predict RUN - --stream")


def _say_weights(trained: "TrainedRun") -> None:
    """Say which weights are used, where a run has two kinds."""
    if trained.weights == "best":
        say("with the best weights on the validation split; --weights final takes those of the last update")


def _classify(trained: "TrainedRun", inputs: "Inputs") -> list[dict[str, Any]]:
    """Classify sequences in the order that is fastest, and return the answers in their own."""
    import numpy as np

    from auxrnn.data.sequences import by_length, in_order
    from auxrnn.training.evaluate import predict_probabilities

    order = by_length(inputs.split)
    batches = in_order(inputs.split.select(order), BATCH_SIZE)
    probability_NC = predict_probabilities(trained.network, batches)[np.argsort(order)].tolist()
    rows = zip(inputs.names, probability_NC, strict=True)
    return [_answer(trained, probability_C, file=name) for name, probability_C in rows]


def _answer(trained: "TrainedRun", probability_C: list[float], **place: str | int) -> dict[str, Any]:
    probabilities = dict(zip(trained.card.class_names, probability_C, strict=True))
    return place | {"class": max(probabilities, key=probabilities.__getitem__), "probabilities": probabilities}


def _print_answer(row: dict[str, Any]) -> None:
    place = printable(str(row.get("file", row.get("step"))))
    print(f"{place}\t{printable(row['class'])}\t{max(row['probabilities'].values()):.4f}", flush=True)


def _predict_stream(trained: "TrainedRun", *, is_json: bool) -> None:
    from auxrnn.streaming import Stream

    form = trained.card.format
    stream, step, longest = Stream(trained.network), 0, getattr(form, "max_length", None)
    _say_weights(trained)
    for values in _read_stream(form):
        if values is None:
            stream.restart()
            step = 0
            continue
        step += 1
        # What comes after --max-length was not read in training either: the answer stays.
        if longest is None or step <= longest:
            probability_C = stream.step([values])[0].tolist()
        (print_json if is_json else _print_answer)(_answer(trained, probability_C, step=step))


def _read_stream(form: "Format") -> Iterator[Sequence[float] | int | None]:
    """Yield the steps on standard input as the network reads them, and None where a sequence ends."""
    import numpy as np

    from auxrnn.data.formats import SeriesFormat, SymbolFormat, TextFormat, make_encoding, step_sizes
    from auxrnn.streaming import read_steps

    encode = make_encoding(form).encode
    # A picture by mistake is no text, and gets its sentence.
    lines = io.TextIOWrapper(sys.stdin.buffer, errors="replace")
    if isinstance(form, TextFormat):
        if form.is_backward:
            raise UsageError("this network reads texts from their end, which a stream does not have; remove --stream")
        for line in lines:
            yield from encode(form.to_values(line.rstrip("\n"))).tolist()
            yield None
        return
    for values in read_steps(lines, step_sizes(form)[0]):
        if values is not None and isinstance(form, SymbolFormat):
            if not values[0].is_integer():
                raise RunError(f"{values[0]} is no whole number; give one symbol a line, as in the training data")
            yield int(encode(np.array(values))[0])
            continue
        is_raw = values is not None and isinstance(form, SeriesFormat)
        yield encode(np.array([values], dtype=np.float32))[0].tolist() if is_raw else values


def _print_confusion(names: Sequence[str], evaluation: "Evaluation") -> None:
    """Print counts of true classes in rows and answers in columns; of many classes, the commonest mistake instead."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    has_all = len(names) <= MOST_COLUMNS
    columns = [str(number) for number in range(len(names))] if has_all else ["most often taken for"]
    table = Table("class", *columns, "recall %", box=SIMPLE, padding=(0, 1, 0, 0))
    rows = zip(names, evaluation.confusion_CC.tolist(), evaluation.recall, strict=True)
    for number, (name, counts, recall) in enumerate(rows):
        mistakes = [0 if other == number else count for other, count in enumerate(counts)]
        mistake = f"{names[mistakes.index(max(mistakes))]} ({max(mistakes)})" if any(mistakes) else "-"
        cells = [str(count) for count in counts] if has_all else [mistake]
        title = name if name == str(number) else f"{number} {name}"
        table.add_row(*(Text(printable(text)) for text in (title, *cells)), "-" if recall is None else f"{recall:.1f}")
    Console().print(table)
