"""`auxrnn evaluate`: how good the answers of a run are, on its own data or on a new labeled file.

Dimension letters: `N` sequences, `C` classes.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from auxrnn.cli.commands import USE, Json, command, print_json, say
from auxrnn.config import CheckpointName, SplitName, Weights
from auxrnn.errors import RunError, UsageError
from auxrnn.files import printable, write_aside

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from auxrnn.data.examples import Problems
    from auxrnn.data.inputs import Inputs, Labels
    from auxrnn.data.sequences import Split
    from auxrnn.saved import TrainedRun
    from auxrnn.training.evaluate import Evaluation

FinishedRun = Annotated[Path, Parameter(help="Run folder of a finished run.")]
RunFolder = Annotated[Path, Parameter(help="Run folder, of a finished run unless --checkpoint is given.")]
WeightsOption = Annotated[
    Weights | None,
    Parameter(help="The final weights, or the best on the validation split (default: the best, if the run has one)."),
]
CheckpointOption = Annotated[
    CheckpointName | None,
    Parameter(help="Take these weights, final or best, from the newest checkpoint, of a run that may be unfinished."),
]
MOST_COLUMNS, MOST_SKIPPED = 12, 12
SCREEN, TITLE_LETTERS, TEXT_LETTERS = 80, 18, 70


class Answers(NamedTuple):
    """What a run answered to labeled sequences, in their order."""

    place: list[str]
    text: list[str]
    """How each begins; empty for what is no text."""
    label_N: "Int[Tensor, ' N']"
    logits_NC: "Float[Tensor, 'N C']"


@command(USE, words="RUN [FILE]")
def evaluate(  # noqa: PLR0913 - one for each option
    run: RunFolder,
    file: Path | None = None,
    *,
    split: SplitName = "test",
    weights: WeightsOption = None,
    checkpoint: CheckpointOption = None,
    data: Path | None = None,
    data_dir: Path | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    label_pattern: str | None = None,
    worst: int = 5,
    save: Path | None = None,
    picture: Path | None = None,
    json: Json = False,
) -> None:
    """Show accuracy, calibration, confusion and the worst mistakes of a run.

    The accuracy comes with its 95 % confidence interval. The calibration error is the mean distance between the
    probabilities of the answers and how often they are right.

    Args:
        file: New labeled file or folder of the kind that the run was trained on (default: the run's own data).
        split: Split of the run's data, or of a FILE that has splits, to classify.
        data: File or folder with the run's own data, if it has moved since the training.
        data_dir: Folder that holds the files of a dataset by name, if they have moved since the training.
        text_column: Column of a table that holds the text (default: the one used in training, else the obvious one).
        label_column: Column of a table that holds the label (default: the one used in training, else the obvious one).
        label_pattern: Where the label stands in the names of audio files: '{label}_*' (default: as in training).
        worst: How many of the wrong answers to show, those with the highest probability first.
        save: CSV file to write: place, true class, answer and all probabilities of each sequence.
        picture: PNG file to write: the confusion matrix, and how often answers of each probability are right.

    Examples:
        auxrnn evaluate runs/mnist14 --json
        auxrnn evaluate runs/reviews new.csv --save predictions.csv
        auxrnn evaluate runs/reviews --picture confusion.png --worst 20
        auxrnn evaluate runs/reviews --checkpoint latest     an unfinished run
    """
    of_labels = {"label_column": label_column, "label_pattern": label_pattern}
    of_data, of_file = {"data": data, "data_dir": data_dir}, {"text_column": text_column} | of_labels
    _check_effects(file, of_data if file is not None else of_file)
    _check_results(worst=worst, save=save, picture=picture)
    from auxrnn import runs, saved
    from auxrnn.data.inputs import Inputs, Labels
    from auxrnn.training.evaluate import count_answers

    trained = saved.load_run(run, weights=weights, checkpoint=checkpoint)
    if file is None:
        examples = runs.load_split(run, split, data=data, data_dir=data_dir)
        names = tuple(f"{split}[{row}]" for row in range(examples.num_examples))
        answers = _answer(trained, iter([Inputs(examples, names)]))
    else:
        labels = Labels(trained.card.class_names, split, label_column, label_pattern, trained.config.data)
        answers = _answer_file(trained, file, labels, text_column=text_column)
    evaluation = count_answers(answers.logits_NC, answers.label_N)
    if not math.isfinite(evaluation.loss):
        raise RunError("the loss is not a finite number; look for numbers far beyond those of the training data")
    if save is not None:
        write_aside(save, _to_csv(trained, answers))
    if picture is not None:
        write_aside(picture, _draw(trained, answers, evaluation))
    found = _describe(trained, answers, evaluation, worst)
    if json:
        print_json(found)
    else:
        say_weights(trained)
        _print(found, trained.card.class_names)


def say_weights(trained: "TrainedRun") -> None:
    """Say which weights are used, where a run has two kinds."""
    if trained.weights == "best":
        say("with the best weights on the validation split; --weights final takes those of the last update")


def say_skipped(problems: "Problems") -> None:
    """Say what was left out."""
    for sentence in problems.skipped[:MOST_SKIPPED]:
        say(f"left out: {sentence}")
    if problems.num_skipped > MOST_SKIPPED:
        say(f"left out: {problems.num_skipped - MOST_SKIPPED:,} more")


def _check_effects(file: Path | None, without_effect: dict[str, Any]) -> None:
    """Refuse options that are for a FILE where there is none, and those that are for the run's own data otherwise."""
    for name, value in without_effect.items():
        if value is not None:
            what = "the run's own data; name a FILE or remove it" if file is None else "a FILE; remove one of them"
            raise UsageError(f"--{name.replace('_', '-')} has no effect on {what}")


def _check_results(*, worst: int, save: Path | None, picture: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    if worst < 0:
        raise UsageError(f"--worst is {worst}; it must be at least 0")
    if picture is not None and picture.suffix.lower() != ".png":
        raise UsageError(f"--picture is {picture}; give the name of a .png file")
    for flag, path in (("--save", save), ("--picture", picture)):
        if path is not None and path.is_dir():
            raise UsageError(f"{flag} is {path}, which is a folder; give the name of a file")


def _answer_file(trained: "TrainedRun", file: Path, labels: "Labels", *, text_column: str | None) -> Answers:
    """Classify the sequences of a new file that have a label."""
    from auxrnn.data.examples import Problems
    from auxrnn.data.inputs import read_inputs

    form, problems = trained.card.format, Problems()
    answers = _answer(trained, read_inputs(file, form, text_column=text_column, problems=problems, labels=labels))
    say_skipped(problems)
    if not answers.place:
        raise UsageError(
            f"{file} has no sequences with a label for the {labels.split} split; auxrnn predict needs no labels"
        )
    return answers


def _answer(trained: "TrainedRun", chunks: "Iterator[Inputs]") -> Answers:
    """Classify labeled sequences, a chunk at a time; only the answers, and how texts begin, are kept."""
    import torch

    from auxrnn.training.evaluate import predict_split

    places, texts = list[str](), list[str]()
    labels, logits = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, len(trained.card.class_names))]
    for split, names in chunks:
        places += names
        texts += _read_beginnings(trained, split)
        labels.append(torch.from_numpy(split.label_N))
        logits.append(predict_split(trained.network, split))
    return Answers(places, texts, torch.cat(labels), torch.cat(logits))


def _read_beginnings(trained: "TrainedRun", split: "Split") -> list[str]:
    from auxrnn.data.formats import TextFormat

    form = trained.card.format
    if not isinstance(form, TextFormat):
        return [""] * split.num_examples
    begin_N, end_N = split.flat.begin_N1[split.row_N], split.flat.begin_N1[split.row_N + 1]
    pieces = (
        split.flat.value_K[begin : min(begin + TEXT_LETTERS, end)] for begin, end in zip(begin_N, end_N, strict=True)
    )
    if form.tokens == "bytes":
        return [piece.tobytes().decode("utf-8", "replace") for piece in pieces]
    return ["".join(map(chr, piece.tolist())) for piece in pieces]


def _describe(trained: "TrainedRun", answers: Answers, evaluation: "Evaluation", num_worst: int) -> dict[str, Any]:
    from auxrnn.report.results import find_interval

    scores = {name: getattr(evaluation, name) for name in ("accuracy", "balanced_accuracy", "macro_f1", "loss")}
    interval = find_interval(int(evaluation.confusion_CC.diagonal().sum()), evaluation.num_examples)
    recall = dict(zip(trained.card.class_names, evaluation.recall, strict=True))
    counts = {"examples": evaluation.num_examples, "confusion": evaluation.confusion_CC.tolist(), "recall": recall}
    found = {"weights": trained.weights} | scores | {"accuracy_interval": interval}
    return found | _find_calibration(trained, answers) | counts | {"worst": _list_worst(trained, answers, num_worst)}


def _find_calibration(trained: "TrainedRun", answers: Answers) -> dict[str, float]:
    """Return the expected calibration error in percent, and where the run has a temperature also that without it."""
    from auxrnn.training.calibration import expected_calibration_error

    def measure(logits_NC: "Float[Tensor, 'N C']") -> float:
        return expected_calibration_error(logits_NC.double().softmax(dim=1), answers.label_N)

    found = {"calibration_error": measure(answers.logits_NC)}
    if trained.temperature == 1:
        return found
    before = measure(trained.temperature * answers.logits_NC)
    return found | {"calibration_error_before": before, "temperature": trained.temperature}


def _list_worst(trained: "TrainedRun", answers: Answers, num_worst: int) -> list[dict[str, Any]]:
    """Return the wrong answers, those first that were given the highest probability."""
    probability_N, answer_N = answers.logits_NC.double().softmax(dim=1).max(dim=1)
    wrong = (answer_N != answers.label_N).nonzero().flatten().tolist()
    names, found = trained.card.class_names, []
    for row in sorted(wrong, key=lambda row: -float(probability_N[row]))[:num_worst]:
        entry = {"place": answers.place[row], "true": names[answers.label_N[row]], "answer": names[answer_N[row]]}
        text = {"text": answers.text[row]} if answers.text[row] else {}
        found.append(entry | {"probability": float(probability_N[row])} | text)
    return found


def _print(found: dict[str, Any], names: Sequence[str]) -> None:
    low, high = found["accuracy_interval"]
    accuracy = f"accuracy {found['accuracy']:.2f} % (95 % interval {low:.2f} to {high:.2f})"
    print(f"{accuracy}   {found['examples']} examples")
    scores = f"balanced {found['balanced_accuracy']:.2f} %   macro F1 {found['macro_f1']:.2f} %"
    before = found.get("calibration_error_before")
    without = "" if before is None else f" ({before:.2f} % without the temperature of {found['temperature']:.3g})"
    print(f"{scores}   loss {found['loss']:.4f}   calibration error {found['calibration_error']:.2f} %{without}")
    _print_confusion(names, found["confusion"], list(found["recall"].values()))
    if found["worst"]:
        print("wrong answers with the highest probability:")
    for row in found["worst"]:
        place, true, answer = (printable(row[name]) for name in ("place", "true", "answer"))
        print(f"  {place}: {true}, taken for {answer} with {row['probability']:.4f}")
        if "text" in row:
            print(f"    {printable(row['text'])}")


def _print_confusion(names: Sequence[str], confusion: list[list[int]], recalls: Sequence[float | None]) -> None:
    """Print counts of true classes in rows and answers in columns; of many classes, the commonest mistake instead."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    titles, widest = [_shorten(name, TITLE_LETTERS) for name in names], len(str(max(map(max, confusion))))
    # Beside the names of the rows and the recall, and with a space between columns.
    room = (SCREEN - max(len("true class"), *map(len, titles)) - 12) // len(names) - 1
    has_all = len(names) <= MOST_COLUMNS and room >= max(widest, 3)
    columns = [_shorten(name, max(room, widest)) for name in names] if has_all else ["examples", "most often taken for"]
    print("\nrows: true classes; columns: answers" if has_all else "")
    table = Table("true class", box=SIMPLE, padding=0)
    for column in (*columns, "recall %"):
        table.add_column(Text(column), no_wrap=True, justify="right" if has_all else "left")
    rows = zip(titles, confusion, recalls, strict=True)
    for number, (title, counts, recall) in enumerate(rows):
        mistakes = [0 if other == number else count for other, count in enumerate(counts)]
        mistake = f"{titles[mistakes.index(max(mistakes))]} ({max(mistakes)})" if any(mistakes) else "-"
        cells = [str(count) for count in counts] if has_all else [str(sum(counts)), mistake]
        table.add_row(*(Text(text) for text in (title, *cells)), "-" if recall is None else f"{recall:.1f}")
    Console().print(table)


def _shorten(name: str, most: int) -> str:
    """Leave out the middle of a long name: names that begin alike often differ at the end."""
    name, half = printable(name), most // 2
    return name if len(name) <= most else f"{name[: most - half - 1]}…{name[len(name) - half :]}"


def _to_csv(trained: "TrainedRun", answers: Answers) -> str:
    names, buffer = trained.card.class_names, io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["place", "true class", "answer", *(f"probability of {printable(name)}" for name in names)])
    label_N, answer_N = answers.label_N.tolist(), answers.logits_NC.argmax(dim=1).tolist()
    rows = zip(answers.place, label_N, answer_N, answers.logits_NC.softmax(dim=1).tolist(), strict=True)
    for place, label, answer, probability_C in rows:
        shown = (printable(text) for text in (place, names[label], names[answer]))
        writer.writerow([*shown, *(f"{probability:.6g}" for probability in probability_C)])
    return buffer.getvalue()


def _draw(trained: "TrainedRun", answers: Answers, evaluation: "Evaluation") -> bytes:
    from auxrnn.report.answers import answers_figure
    from auxrnn.report.charts import to_png
    from auxrnn.training.calibration import measure_reliability

    bins = measure_reliability(answers.logits_NC.softmax(dim=1), answers.label_N)
    before = None
    if trained.temperature != 1:
        before = measure_reliability((trained.temperature * answers.logits_NC).softmax(dim=1), answers.label_N)
    figure = answers_figure(trained.card.class_names, evaluation.confusion_CC.tolist(), bins, before=before)
    return to_png(figure)
