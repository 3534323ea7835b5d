"""`auxrnn evaluate` and `auxrnn predict`."""

import io
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from auxrnn import runs
from auxrnn.cli.options import EvaluateOptions, PredictOptions
from auxrnn.cli.output import print_json, say
from auxrnn.data.examples import Problems
from auxrnn.data.formats import Format, make_encoding, step_kind
from auxrnn.data.inputs import STANDARD_INPUT, Inputs, count_unknown, read_inputs
from auxrnn.data.sequences import by_length, in_order
from auxrnn.data.series import SeriesFormat
from auxrnn.data.texts import TextFormat
from auxrnn.errors import UsageError
from auxrnn.streaming import Stream, read_steps
from auxrnn.training.evaluate import Evaluation, evaluate, predict_probabilities

MOST_COLUMNS = 12
BATCH_SIZE = 64


def evaluate_run(options: EvaluateOptions) -> int:
    """Evaluate a finished run on a split of its dataset."""
    trained = runs.load_run(options.run, weights=options.weights)
    split = runs.load_split(options.run, options.split, data_dir=options.data_dir)
    batches = in_order(split.select(by_length(split)), BATCH_SIZE)
    evaluation = evaluate(trained.network, batches)
    if options.json:
        recall = dict(zip(trained.card.class_names, evaluation.recall, strict=True))
        confusion = evaluation.confusion_CC.tolist()
        print_json(
            {
                "weights": trained.weights,
                "accuracy": evaluation.accuracy,
                "balanced_accuracy": evaluation.balanced_accuracy,
                "macro_f1": evaluation.macro_f1,
                "loss": evaluation.loss,
                "examples": evaluation.num_examples,
                "confusion": confusion,
                "recall": recall,
            }
        )
        return 0
    _say_weights(trained)
    print(
        f"accuracy {evaluation.accuracy:.2f} %   balanced {evaluation.balanced_accuracy:.2f} %   macro F1"
        f" {evaluation.macro_f1:.2f} %   loss {evaluation.loss:.4f}   {evaluation.num_examples} examples"
    )
    _print_confusion(trained.card.class_names, evaluation)
    return 0


def _say_weights(trained: runs.TrainedRun) -> None:
    """Say which weights are used, where a run has two kinds."""
    if trained.weights == "best":
        say("with the best weights on the validation split; --weights final takes those of the last update")


def predict(options: PredictOptions) -> int:
    """Classify the sequences of files, or of standard input."""
    if not options.files:
        raise UsageError("no files to predict; name some, or - for standard input: auxrnn predict RUN digit.png")
    if options.stream and options.files != (STANDARD_INPUT,):
        raise UsageError("--stream reads standard input alone: auxrnn predict RUN - --stream")
    trained = runs.load_run(options.run, weights=options.weights)
    if options.stream:
        return _predict_stream(trained, is_json=options.json)
    _say_weights(trained)
    problems, unknown = Problems(), Counter[str]()
    rows: list[dict[str, Any]] = []
    for path in options.files:
        for inputs in read_inputs(path, trained.card.format, text_column=options.text_column, problems=problems):
            unknown += count_unknown(inputs.split, trained.card.format)
            classified = _classify(trained, inputs)
            rows += classified if options.json else []
            for row in [] if options.json else classified:
                print(f"{row['file']}\t{row['class']}\t{max(row['probabilities'].values()):.4f}")
    _report_inputs(problems, unknown)
    if options.json:
        print_json({"predictions": rows, "skipped": problems.num_skipped, "unknown_characters": unknown.total()})
    return 0


def _classify(trained: runs.TrainedRun, inputs: Inputs) -> list[dict[str, Any]]:
    """Classify sequences in the order that is fastest, and give the answers in their own."""
    order = by_length(inputs.split)
    batches = in_order(inputs.split.select(order), BATCH_SIZE)
    probability_NC = predict_probabilities(trained.network, batches)[np.argsort(order)].tolist()
    names = trained.card.class_names
    return [
        {"file": name, "class": names[row.index(max(row))], "probabilities": dict(zip(names, row, strict=True))}
        for name, row in zip(inputs.names, probability_NC, strict=True)
    ]


def _report_inputs(problems: Problems, unknown: Counter[str]) -> None:
    """Say what was left out, and which characters the network has never seen."""
    for sentence in problems.skipped[:MOST_COLUMNS]:
        say(f"left out: {sentence}")
    if problems.num_skipped > MOST_COLUMNS:
        say(f"left out: {problems.num_skipped - MOST_COLUMNS:,} more")
    if unknown:
        shown = ", ".join(f"{character!r} ({count:,})" for character, count in unknown.most_common(MOST_COLUMNS))
        say(f"{unknown.total():,} characters are not in the network's alphabet: {shown}")


def _predict_stream(trained: runs.TrainedRun, *, is_json: bool) -> int:
    stream, names = Stream(trained.network), trained.card.class_names
    _say_weights(trained)
    step = 0
    for values in _read_stream(trained.card.format):
        if values is None:
            stream.restart()
            step = 0
            continue
        step += 1
        row = stream.step([values])[0].tolist()
        name = names[row.index(max(row))]
        if is_json:
            print_json({"step": step, "class": name, "probabilities": dict(zip(names, row, strict=True))})
        else:
            print(f"{step}\t{name}\t{max(row):.4f}", flush=True)
    return 0


def _read_stream(form: Format) -> Iterator[Sequence[float] | int | None]:
    """Return the steps on standard input as the network reads them, and None where a sequence ends."""
    encode = make_encoding(form).encode
    # A picture by mistake is no text, and gets its sentence.
    lines = io.TextIOWrapper(sys.stdin.buffer, errors="replace")
    if isinstance(form, TextFormat):
        if form.is_backward:
            raise UsageError(
                "this network reads texts from their end, which a stream does not have; leave --stream out"
            )
        for line in lines:
            yield from encode(form.to_values(line.rstrip("\n"))).tolist()
            yield None
        return
    for values in read_steps(lines, step_kind(form).input_size):
        is_raw = values is not None and isinstance(form, SeriesFormat)
        yield encode(np.array([values], dtype=np.float32))[0].tolist() if is_raw else values


def _print_confusion(names: Sequence[str], evaluation: Evaluation) -> None:
    """Print counts of true classes in rows and answers in columns; of many classes, the commonest mistake instead."""
    has_all = len(names) <= MOST_COLUMNS
    columns = [str(number) for number in range(len(names))] if has_all else ["most often taken for"]
    table = Table("class", *columns, "recall %", box=SIMPLE, padding=(0, 1, 0, 0))
    rows = zip(names, evaluation.confusion_CC.tolist(), evaluation.recall, strict=True)
    for number, (name, counts, recall) in enumerate(rows):
        mistakes = [0 if other == number else count for other, count in enumerate(counts)]
        mistake = f"{names[mistakes.index(max(mistakes))]} ({max(mistakes)})" if any(mistakes) else "-"
        cells = [str(count) for count in counts] if has_all else [mistake]
        title = name if name == str(number) else f"{number} {name}"
        table.add_row(title, *cells, "-" if recall is None else f"{recall:.1f}")
    Console().print(table)
