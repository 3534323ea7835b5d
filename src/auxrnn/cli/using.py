"""`auxrnn predict`."""

import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from auxrnn.cli.commands import USE, Flag, Json, command, print_json, say
from auxrnn.cli.evaluating import CheckpointOption, RunFolder, WeightsOption, say_skipped, say_weights
from auxrnn.errors import UsageError
from auxrnn.files import printable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from auxrnn.data.examples import Problems
    from auxrnn.data.formats import Format
    from auxrnn.data.inputs import Inputs
    from auxrnn.saved import TrainedRun

MOST_NAMED = 12


@command(USE, words="RUN FILES...")
def predict(
    run: RunFolder,
    *files: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    weights: WeightsOption = None,
    checkpoint: CheckpointOption = None,
    text_column: str | None = None,
    stream: Flag = False,
    json: Json = False,
) -> None:
    """Show classes and probabilities of new sequences.

    Args:
        files: What to classify, of the kind that the run was trained on: images or folders of them, tables, .txt files
            with one text per line, arrays (.npy, .npz), time series (.ts), recordings (.wav, .flac, .ogg, .mp3) or
            folders of them; - is standard input: one text per line, an array, an image or a recording.
        text_column: Column of a table that holds the text (default: the one used in training, else the obvious one).
        stream: Read steps from standard input and classify the sequence so far after each of them (after every k with
            --steps-per-input k): one step per line, values as in the data (pixels from 0 to 1, ? where one is missing),
            and an empty line starts a new sequence; in texts each character is a step and each line a sequence.

    Examples:
        auxrnn predict runs/mnist14 digit.png more.npy --json
        auxrnn predict runs/reviews new.csv
        echo "What a film" | auxrnn predict runs/reviews -
        sensor | auxrnn predict runs/mnist14 - --stream     steps as they arrive
    """
    _check_files(files, is_stream=stream)
    from auxrnn import saved
    from auxrnn.data.examples import Problems
    from auxrnn.data.formats import count_unknown
    from auxrnn.data.inputs import read_inputs

    trained = saved.load_run(run, weights=weights, checkpoint=checkpoint)
    if stream:
        _predict_stream(trained, is_json=json)
        return
    say_weights(trained)
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

    say_skipped(problems)
    if unknown:
        what = "integers" if isinstance(form, SymbolFormat) else "characters"
        shown = ", ".join(f"{character!r} ({count:,})" for character, count in unknown.most_common(MOST_NAMED))
        say(f"{unknown.total():,} {what} are not in the network's alphabet: {shown}")


def _check_files(files: Sequence[Path], *, is_stream: bool) -> None:
    for path in files:
        if str(path).startswith("--"):
            raise UsageError(f"unknown option {str(path)!r}; see auxrnn predict --help")
    if not files:
        raise UsageError("no files to predict; name some, or - for standard input: auxrnn predict RUN digit.png")
    if is_stream and files != (Path("-"),):
        raise UsageError("--stream reads standard input alone: auxrnn predict RUN - --stream")


def _classify(trained: "TrainedRun", inputs: "Inputs") -> list[dict[str, Any]]:
    """Classify sequences, and return the answers in their order."""
    from auxrnn.training.evaluate import predict_split

    probability_NC = predict_split(trained.network, inputs.split).softmax(dim=1).tolist()
    rows = zip(inputs.names, probability_NC, strict=True)
    return [_answer(trained, probability_C, file=name) for name, probability_C in rows]


def _answer(trained: "TrainedRun", probability_C: list[float], **place: str | int) -> dict[str, Any]:
    probabilities = dict(zip(trained.card.class_names, probability_C, strict=True))
    return place | {"class": max(probabilities, key=probabilities.__getitem__), "probabilities": probabilities}


def _print_answer(row: dict[str, Any]) -> None:
    place = printable(str(row.get("file", row.get("step"))))
    print(f"{place}\t{printable(row['class'])}\t{max(row['probabilities'].values()):.4f}", flush=True)


def _predict_stream(trained: "TrainedRun", *, is_json: bool) -> None:
    stream, step = trained.stream(), 0
    say_weights(trained)
    for values in itertools.chain(_read_stream(trained.card.format), [None]):
        # What came between two inputs at the end of a sequence is answered there.
        probability_BC = stream.finish() if values is None else stream.step(values)
        step += values is not None
        if probability_BC is not None:
            (print_json if is_json else _print_answer)(_answer(trained, probability_BC[0].tolist(), step=step))
        step = 0 if values is None else step


def _read_stream(form: "Format") -> "Iterator[ArrayLike | None]":
    """Yield the steps on standard input, and None where a sequence ends."""
    from auxrnn.data.formats import TextFormat
    from auxrnn.streaming import read_steps

    # A picture by mistake is no text, and gets its sentence.
    lines = io.TextIOWrapper(sys.stdin.buffer, errors="replace")
    if isinstance(form, TextFormat):
        for line in lines:
            # Whole lines, since the lower case of a character may depend on its neighbors.
            yield from form.to_values(line.rstrip("\n"))[:, None, None]
            yield None
        return
    yield from read_steps(lines, form)
