"""`auxrnn export`."""

from pathlib import Path

from auxrnn.cli.commands import USE, Json, command, print_json, say
from auxrnn.cli.evaluating import FinishedRun, WeightsOption
from auxrnn.files import printable


@command(USE)
def export(run: FinishedRun, file: Path, *, weights: WeightsOption = None, json: Json = False) -> None:
    """Write a finished recurrent run as ONNX models, for programs without auxrnn and PyTorch.

    FILE becomes a model of whole sequences, and FILE-step one that reads step by step: a step and a state go in,
    probabilities and the next state come out. Both take raw values and hold class names and alphabet or scaling. Their
    answers are compared with this program's before they are written.

    Args:
        file: The model to write, with a name that ends in .onnx.

    Examples:
        auxrnn export runs/mnist14 digits.onnx     also writes digits-step.onnx
    """
    from auxrnn.export import export as write
    from auxrnn.saved import load_run

    trained = load_run(run, weights=weights)
    written = write(run, trained, file)
    if json:
        files = [str(path) for path in written.files]
        counts = {"largest_difference": written.largest_difference, "test_sequences": written.num_compared}
        print_json({"files": files, "weights": trained.weights} | counts)
        return
    print("\n".join(printable(path) for path in written.files))
    what = f"random sequences and {written.num_compared} of the test split" if written.num_compared else "random ones"
    say(f"largest difference of a probability from auxrnn's: {written.largest_difference:.1e} ({what})")
    if len(written.files) == 1:
        say("this network reads texts from their end, so there is no model that reads step by step")
