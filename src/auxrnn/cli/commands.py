"""Every command with its help. Each imports what it needs when it runs, so that help and mistakes need no torch."""

import textwrap
from collections.abc import Callable
from importlib import metadata
from typing import TypeVar

from cyclopts import App, Group, Parameter

from auxrnn.cli.help_pages import Help, reflow
from auxrnn.cli.layers import add_layers
from auxrnn.cli.mistakes import refuse_fractions
from auxrnn.cli.options import (
    BenchOptions,
    CheckOptions,
    CostOptions,
    DemoOptions,
    EvaluateOptions,
    FetchOptions,
    InfoOptions,
    ListOptions,
    ModelsOptions,
    PredictOptions,
    ReportOptions,
    ReproduceOptions,
    ResumeOptions,
    ShowOptions,
    TrainOptions,
)

SUMMARY = """\
Classify very long sequences with recurrent networks that learn to remember through auxiliary losses, with short
back-propagation (Trinh et al., 2018)."""
EXAMPLES = """\
Examples:
  auxrnn demo
  auxrnn train mnist --config mnist14 --out runs/first
  auxrnn train mnist --model transformer --out runs/second
  auxrnn evaluate runs/first
  auxrnn predict runs/first digit.png
  auxrnn data check reviews.csv
  auxrnn train reviews.csv --out runs/reviews
  auxrnn reproduce table2 --scale smoke

`auxrnn COMMAND --help` explains a command and its options."""

app = App(
    name="auxrnn",
    help=reflow(SUMMARY),
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    help_formatter=Help(),
    version=lambda: metadata.version("auxrnn"),
    group_parameters=Group("Options", sort_key=0),
    group_commands=Group("Help", sort_key=9),
    default_parameter=Parameter(allow_repeating=True),
)
Command = TypeVar("Command", bound=Callable[..., int])


def command(parent: App, panel: Group, *, has_layers: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds a function to the command line under its own name.

    The docstring is its help; what follows the line "Examples:" comes last, below the options.
    """

    def add(function: Command) -> Command:
        text, _, examples = (function.__doc__ or "").partition("    Examples:\n")
        parent.command(
            function,
            name=function.__name__.removesuffix("_"),
            help=reflow(text),
            help_epilogue=f"Examples:\n{textwrap.indent(textwrap.dedent(examples), '  ')}",
            group=panel,
            sort_key=len(list(parent)),
            config=(refuse_fractions, add_layers) if has_layers else refuse_fractions,
        )
        return function

    return add


USE, PREPARE = Group("Train and use", sort_key=0), Group("Before training", sort_key=1)
PAPER, MACHINE = Group("The paper", sort_key=2), Group("This machine", sort_key=3)
DATA = Group("Subcommands")


@command(app, USE, has_layers=True)
def train(options: TrainOptions) -> int:
    """Train a network on a dataset or on your own files.

    This may be an r-LSTM, a p-LSTM, or any system the paper compares with. Without a length it plans for ten
    minutes: it compares an LSTM with an r-LSTM on a validation split, trains the better one, and keeps the weights
    that were best there.

    --recipe fast, the default, uses Adam with warm-up and cosine decay, gates initialized with memories of all lengths,
    batches of 64, and an auxiliary loss in units of the data's variance. The defaults below are its values; those that
    say auto are chosen from the data. --recipe paper uses the paper's settings, and --config paper also its length, 100
    and 1,000 epochs. --model NAME --help shows the defaults of another model.

    Ctrl-C stops the training and keeps a checkpoint; `auxrnn resume` continues from it. `auxrnn data check PATH` says
    beforehand how your files are understood and what is wrong with them.

    Examples:
      auxrnn train digits                              handwritten digits, bundled
      auxrnn train mnist --minutes 60                  also pmnist, cifar10
      auxrnn train mnist --objective reconstruct --train-epochs 8
      auxrnn train mnist --model transformer           `auxrnn models` lists all
      auxrnn train mnist --model gru --objective reconstruct
      auxrnn train stanford_dogs --image-size 40       also --enlarge-to 150000
      auxrnn train dbpedia --supervised-window 100     texts, character by character
      auxrnn train adding --length 500                 synthetic task of memory
      auxrnn train photos/ --image-size 32             images in photos/CLASS/*.jpg
      auxrnn train reviews.csv --label-column stars    also .tsv, .jsonl, .parquet
      auxrnn train reviews.csv --tokens bytes          the same, byte by byte
      auxrnn train data.npz                            x [N, T] or [N, T, D], and y
      auxrnn train Heartbeat_TRAIN.ts                  time series (UCR/UEA)
      auxrnn train a.csv --label-fraction 0.05 --unlabeled b.txt
    """
    from auxrnn.cli import training

    return training.train(options)


@command(app, USE)
def resume(options: ResumeOptions) -> int:
    """Continue an interrupted run from its newest checkpoint.

    Its weights become the same, byte for byte, as those of a run without the interruption.

    Examples:
      auxrnn resume runs/mnist14
    """
    from auxrnn.cli import training

    return training.resume(options)


@command(app, USE)
def evaluate(options: EvaluateOptions) -> int:
    """Show accuracy, confusion and recall of a finished run.

    Examples:
      auxrnn evaluate runs/mnist14 --json
    """
    from auxrnn.cli import using

    return using.evaluate_run(options)


@command(app, USE)
def predict(options: PredictOptions) -> int:
    """Show classes and probabilities of new sequences.

    Examples:
      auxrnn predict runs/mnist14 digit.png more.npy --json
      auxrnn predict runs/reviews new.csv
      echo "What a film" | auxrnn predict runs/reviews -
      sensor | auxrnn predict runs/mnist14 - --stream     steps as they arrive
    """
    from auxrnn.cli import using

    return using.predict(options)


data = App(
    name="data",
    help="List, fetch, check and show datasets and your own files.",
    help_epilogue="""\
Examples:
  auxrnn data list
  auxrnn data fetch mnist
  auxrnn data check reviews.csv --label-column stars
  auxrnn data show photos/ --image-size 32 --out photos.png

`auxrnn data COMMAND --help` explains a command and its options.""",
    group=PREPARE,
    sort_key=0,
)
app.command(data)


@command(data, DATA)
def list_(options: ListOptions = ListOptions()) -> int:
    """List every dataset by name: lengths, classes, size, license.

    Examples:
      auxrnn data list --json
    """
    from auxrnn.cli import datasets

    return datasets.list_datasets(options)


@command(data, DATA)
def fetch(options: FetchOptions) -> int:
    """Download a dataset and verify it.

    Files that are already here are only verified, and an interrupted download continues where it stopped.

    Examples:
      auxrnn data fetch cifar10 --data-dir ~/data
    """
    from auxrnn.cli import datasets

    return datasets.fetch_dataset(options)


@command(data, DATA)
def check(options: CheckOptions) -> int:
    """Say what is in a file or folder and what is wrong with it.

    Everything that is wrong is listed by file and line. The exit code is 1 if training would fail. The options are
    those of `auxrnn train`, with the same meaning.

    Examples:
      auxrnn data check reviews.csv --label-column stars
    """
    from auxrnn.cli import checking

    return checking.check_data(options)


@command(data, DATA)
def show(options: ShowOptions) -> int:
    """Draw some examples as they are and as a network reads them.

    The options are those of `auxrnn train`, with the same meaning.

    Examples:
      auxrnn data show mnist --out mnist.png
    """
    from auxrnn.cli import checking

    return checking.show_data(options)


@command(app, PREPARE)
def models(options: ModelsOptions = ModelsOptions()) -> int:
    """List every system that `auxrnn train --model` takes.

    Shows its paper, its number of weights, and what it reads. Weights are counted at the published settings, for
    MNIST's pixels and DBpedia's characters. `auxrnn train --help --model NAME` shows these settings as the defaults
    of all options.

    Examples:
      auxrnn models
    """
    from auxrnn.cli import systems

    return systems.list_models(options)


@command(app, PREPARE, has_layers=True)
def cost(options: CostOptions) -> int:
    """Estimate memory and time of a training before it begins.

    Also shows the number of weights and what fits into memory. Takes the options of `auxrnn train`. Memory is
    estimated from a few short rows, and measured in one step on the longest sequences if that fits. For attention
    it also says what a matrix of all steps by all steps would take, which
    made the paper call long sequences infeasible.

    Examples:
      auxrnn cost mnist --model transformer
      auxrnn cost needle --length 16384 --model dmca --memory 16
    """
    from auxrnn.cli import systems

    return systems.cost(options)


@command(app, PAPER)
def demo(options: DemoOptions = DemoOptions()) -> int:
    """See the method work on handwritten digits, in minutes.

    Trains four networks side by side with the same number of updates: an LSTM with full back-propagation, one whose
    gradients stop after 28 of 196 steps, and an r-LSTM and a p-LSTM with the same 28 steps. Ends with a table and a
    page with learning curves and pictures of what the r-LSTM remembers. If interrupted, call it again to continue.

    Examples:
      auxrnn demo --out runs/demo
    """
    from auxrnn.cli import showing

    return showing.demo(options)


@command(app, PAPER)
def reproduce(options: ReproduceOptions = ReproduceOptions()) -> int:
    """Reproduce tables and figures of the paper.

    Prints our numbers beside the published ones. Interrupted runs continue, finished ones are not repeated, and
    runs that several tables need are run once. Every number becomes a small record in the results folder, and each
    table a Markdown file beside them.

    Examples:
      auxrnn reproduce --list
      auxrnn reproduce table2 --scale desk --workers 2
      auxrnn reproduce all --scale smoke
    """
    from auxrnn.cli import reproducing

    return reproducing.reproduce(options)


@command(app, PAPER)
def report(options: ReportOptions = ReportOptions()) -> int:
    """Make one HTML page of all that was reproduced.

    It shows all tables and figures with our numbers beside the paper's, which claims hold, and what each cost. It
    is made from the records alone, opens offline and needs no other file.

    Examples:
      auxrnn report --scale desk
    """
    from auxrnn.cli import reproducing

    return reproducing.report(options)


@command(app, MACHINE)
def bench(options: BenchOptions = BenchOptions()) -> int:
    """Measure the speed of the LSTM beside torch's own.

    Takes half a minute. Compares a forward pass over 784 steps, a forward and backward pass over 300, and single
    steps of one sequence, with 128 sequences and 128 hidden units; the fastest of 15 rounds counts. All must give
    the same numbers before they are timed. Let nothing else run meanwhile. OMP_NUM_THREADS sets the number of
    threads.

    Other frameworks, memory and data: `python -m benchmarks --help` in a checkout of the project.

    Examples:
      auxrnn bench
    """
    from auxrnn.cli import showing

    return showing.bench(options)


@command(app, MACHINE)
def info(options: InfoOptions = InfoOptions()) -> int:
    """Show versions, threads, device, LSTM kernel and data folder.

    Examples:
      auxrnn info --json
    """
    from auxrnn.cli import showing

    return showing.info(options)


def parse_train(argv: list[str]) -> TrainOptions:
    """Return what `auxrnn train` is asked for: flags, over a config file, over the model's preset and the recipe."""
    _, bound, _ = app.parse_args(["train", *argv], exit_on_error=False, print_error=False)
    options = bound.arguments["options"]
    assert isinstance(options, TrainOptions)
    return options
