"""The options of every command: dataclasses whose fields are flags. Importing them imports neither torch nor numpy.

A field that is not keyword-only is a word without a flag (DATA, RUN). A group of a run's config is a panel of the help.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from auxrnn.config import (
    BaselineConfig,
    DataConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    ScaleName,
    ScheduleConfig,
    SegmentConfig,
    SplitName,
    Weights,
)
from auxrnn.presets import DEFAULT_RECIPE, RecipeName

PANELS = {
    DataConfig: "Data",
    ModelConfig: "Network",
    BaselineConfig: "Networks that read whole sequences",
    ObjectiveConfig: "Auxiliary loss",
    SegmentConfig: "Segments of the auxiliary loss",
    ScheduleConfig: "Training",
    RunConfig: "Machine, evaluation and checkpoints",
}
for number, (kind, title) in enumerate(PANELS.items(), start=1):
    Parameter(name="*", group=Group(title, sort_key=number))(kind)

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
flattened = Parameter(name="*")


@flattened
@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of `train` besides those of the run itself."""

    run: RunConfig = field(kw_only=False)
    out: Path | None = None
    """Run folder to create (default: runs/DATA-MODEL-1, or the next free number)."""
    minutes: float | None = None
    """Minutes that the run may take; its length is planned from measured updates (default: 10 with the fast recipe,
    unless a number of steps or epochs is given)."""
    recipe: RecipeName = DEFAULT_RECIPE
    """Where the defaults of all options come from: fast (converges within minutes to an hour on one core) or paper (the
    published settings)."""
    config: Path | None = None
    """TOML file with defaults for these options, keys named like the flags, or a shipped one: paper, mnist14."""
    pretrained: Path | None = None
    """Take the pretraining from this run, which has the same settings and --train-steps 0; the result is the same."""
    json: Flag = False
    """Print the result as one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Options of `resume`."""

    run: Path = field(kw_only=False)
    """Run folder made by `auxrnn train`."""
    json: Flag = False
    """Print the result as one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of `evaluate`."""

    run: Path = field(kw_only=False)
    """Run folder of a finished run."""
    split: SplitName = "test"
    """Split of the dataset to classify."""
    weights: Weights | None = None
    """The final weights, or the best on the validation split (default: the best, if the run has a validation split)."""
    data_dir: Path | None = None
    """Folder that holds the dataset's files, if they have moved since the training."""
    json: Flag = False
    """Print one JSON object: weights, accuracy, balanced accuracy and macro F1 (percent), loss, examples, confusion,
    recall."""


@flattened
@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of `predict`."""

    run: Path = field(kw_only=False)
    """Run folder of a finished run."""
    files: Annotated[tuple[Path, ...], Parameter(negative=(), allow_leading_hyphen=True)] = field(
        kw_only=False, default=()
    )
    """What to classify, of the kind that the run was trained on: images or folders of them, tables, .txt files with one
    text per line, arrays (.npy, .npz), time series (.ts); - is standard input: one text per line, an array or an
    image."""
    weights: Weights | None = None
    """The final weights, or the best on the validation split (default: the best, if the run has a validation split)."""
    text_column: str | None = None
    """Column of a table that holds the text (default: the one used in training, else the obvious one)."""
    stream: Flag = False
    """Read steps from standard input and classify the sequence so far after each of them: one step per line, values
    as in the data (pixels from 0 to 1), and an empty line starts a new sequence; in texts each character is a step and
    each line a sequence."""
    json: Flag = False
    """Print one JSON object with file, class and probabilities of each sequence; with --stream, one object per step."""

    def __post_init__(self) -> None:
        for path in self.files:
            if str(path).startswith("--"):
                raise ValueError(f"unknown option {str(path)!r}; see auxrnn predict --help")


@flattened
@dataclass(frozen=True, kw_only=True)
class ModelsOptions:
    """Options of `models`."""

    json: Flag = False
    """Print one JSON object: title, paper, steps, options and published settings of each model by name."""


@flattened
@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """Options of `cost` besides those of the run itself."""

    run: RunConfig = field(kw_only=False)
    memory: float | None = None
    """Gigabytes that a training step may use (default: what is free here)."""
    recipe: RecipeName = DEFAULT_RECIPE
    """Where the defaults of all options come from: fast or paper, as in `auxrnn train`."""
    config: Path | None = None
    """TOML file with defaults for these options, or a shipped one: paper, mnist14."""
    json: Flag = False
    """Print one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """Options of `data list`."""

    data_dir: Path | None = None
    """Folder to look for the datasets' files in (default: $AUXRNN_DATA_DIR, else a cache)."""
    json: Flag = False
    """Print one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """Options of `data fetch`."""

    name: str = field(kw_only=False)
    """Dataset to download, as in `auxrnn data list`."""
    data_dir: Path | None = None
    """Folder to download into (default: $AUXRNN_DATA_DIR, else a cache)."""


@flattened
@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Options of `data check`."""

    data: DataConfig = field(kw_only=False)
    json: Flag = False
    """Print one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Options of `data show`."""

    data: DataConfig = field(kw_only=False)
    out: Path = Path("data.png")
    """Picture to write."""


@flattened
@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of `reproduce`."""

    names: Annotated[tuple[str, ...], Parameter(negative=())] = field(kw_only=False, default=())
    """Tables and figures by name (table2, figure4), or all of them in order of importance: all."""
    scale: ScaleName = "desk"
    """How large: smoke (seconds), desk (hours on two cores), full (the paper's lengths and sizes with the fast recipe,
    days on two cores) or paper (the published settings)."""
    workers: int = 1
    """Runs at a time, with one thread each."""
    seeds: int | None = None
    """Seeds of every number (default: as the scale says)."""
    runs: Path = Path("runs/reproduce")
    """Folder for checkpoints and weights; an interrupted command continues from there."""
    results: Path = Path("results")
    """Folder for records and tables; a run that has its record in RESULTS/SCALE/records is not repeated."""
    list: Flag = False
    """Show all experiments: their runs, what is done, and the time of what is left here."""
    json: Flag = False
    """Print one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `report`."""

    scale: ScaleName = "desk"
    """Which records to show: smoke, desk, full or paper."""
    results: Path = Path("results")
    """Folder with the records made by `auxrnn reproduce`."""
    out: Path | None = None
    """File to write (default: RESULTS/SCALE/index.html)."""
    pictures: Path | None = None
    """Folder for a PNG of every chart."""
    tables: Path | None = None
    """Folder for a Markdown file of every table."""
    json: Flag = False
    """Print one JSON object."""


@flattened
@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of `demo`."""

    out: Path = Path("runs/demo")
    """Folder for the four runs and the page index.html."""
    seed: int = 0
    """Seed of every random draw."""
    smoke: Flag = False
    """Only a few updates, to see that everything works; the numbers mean nothing."""
    json: Flag = False
    """Print one JSON object: accuracies in percent on the test split, and seconds."""


@flattened
@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Options of `bench`."""

    json: Flag = False
    """Print one JSON object with all measurements, the threads and the versions."""


@flattened
@dataclass(frozen=True, kw_only=True)
class InfoOptions:
    """Options of `info`."""

    json: Flag = False
    """Print one JSON object."""
