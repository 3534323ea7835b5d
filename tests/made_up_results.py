"""Outcomes of no real run: three seeds, one seed, none; every kind of chart and every verdict."""

from auxrnn.report.records import RunRecord
from auxrnn.report.results import BarChart, Cell, Claim, Grid, Line, LineChart, Outcome, Point, Score

SYSTEMS = (
    "LSTM, full BPTT",
    "LSTM, Truncate300",
    "iRNN (Le et al., 2015)",
    "uRNN (Arjovsky et al., 2016)",
    "r-LSTM, full BPTT",
    "p-LSTM, full BPTT",
    "r-LSTM, Truncate300",
    "p-LSTM, Truncate300",
)
LENGTHS = (1_600, 3_136, 6_400, 12_544, 16_384)


def make_score(mean, *, num_seeds=3, name="run"):
    """Seeds 0.5 apart around the mean, of one minute each."""
    values = tuple(mean + 0.5 * (seed - (num_seeds - 1) / 2) for seed in range(num_seeds))
    return Score(values, tuple(make_run(f"{name}-seed{seed}", seed) for seed in range(1, num_seeds + 1)))


def make_run(name, seed):
    return RunRecord(name, {"seed": seed}, {}, seconds=60.0, curve=[], facts={}, environment={})


def make_points(xs, height, *, reach=0.5):
    return tuple(Point(x, height(x), height(x) - reach, height(x) + reach) for x in xs)


def make_lines(titles=SYSTEMS[:6]):
    """Lines that end in distinct heights, the paper's 7 above ours."""
    return tuple(
        Line(
            title,
            make_points(LENGTHS, lambda x, place=place: 60 - 5 * place - x / 1_000),
            tuple((x, 67 - 5 * place - x / 1_000) for x in LENGTHS),
        )
        for place, title in enumerate(titles)
    )


ROWS = {
    system: tuple(Cell(make_score(90.0 - 5 * column, name=f"{place}-{column}"), 95.0) for column in range(3))
    for place, system in enumerate(SYSTEMS)
}
IMAGES = Grid("Accuracy on images", "test accuracy, %", ("MNIST", "pMNIST", "CIFAR10"), ROWS)
TABLE = Outcome(
    name="table2",
    title="Table 2: images, one pixel at a time",
    scale="desk",
    summary="Plain LSTMs beside LSTMs with an auxiliary loss.",
    finding="The r-LSTM names 90.0 %, the LSTM 80.0 %.",
    grids=(IMAGES,),
    charts=(),
    claims=(
        Claim("r-LSTM beats LSTM.", "holds", "90.0 against 80.0."),
        Claim("p-LSTM beats LSTM.", "within the spread", "80.4 against 80.0."),
        Claim("r-LSTM beats p-LSTM.", "does not hold", "80.0 against 80.4."),
        Claim("r-LSTM beats uRNN.", "open", "uRNN was not run."),
        Claim("r-LSTM beats LSTM by 40 points.", "does not hold", "10.0 points.", is_ours=True),
    ),
    settings=(("Hidden units", "128"),),
    num_done=72,
    num_planned=72,
    seconds=11_100.0,
)
ONE_SEED = TABLE._replace(
    name="table4",
    title="Table 4: texts",
    grids=(Grid("Errors", "test error, %", ("DBpedia",), {"LSTM": (Cell(make_score(4.125, num_seeds=1), 2.5),)}, 2),),
    claims=(Claim("r-LSTM errs less.", "open", "one seed."),),
    num_done=1,
    num_planned=9,
    seconds=60.0,
)
NOT_RUN = TABLE._replace(
    name="table5",
    title="Table 5: longer texts",
    finding="",
    grids=(Grid("Errors", "test error, %", ("DBpedia",), {"LSTM": (Cell(None, 1.4, "not run"),)}, 2),),
    claims=(),
    settings=(),
    num_done=0,
    num_planned=9,
    seconds=0.0,
)
LOG_CHART = LineChart(
    "Seconds per batch",
    "steps of a sequence",
    "seconds",
    (
        Line("LSTM", make_points(LENGTHS[:4], lambda x: x / 1_000), tuple((x, x / 2_000) for x in LENGTHS[:4])),
        Line("r-LSTM", make_points(LENGTHS, lambda x: 1 + x / 5_000, reach=0.1), ((1_600, 1.0), (16_384, 5.0))),
    ),
    is_log=True,
)
TWO_PANELS = LineChart(
    "Accuracy as images grow",
    "steps of ours",
    "test accuracy, %",
    make_lines(),
    paper_x_label="steps of the paper's",
    chance=25.0,
    level=("LSTM, all steps", Cell(make_score(41.0), 62.5)),
)
REVERSED = LineChart(
    "Accuracy as the window shrinks",
    "supervised window",
    "test accuracy, %",
    (Line("LSTM", make_points((196, 100, 50), lambda x: 30 + x / 20)), Line("r-LSTM", (), ((1, 66.0), (0, 52.0)))),
    is_reversed=True,
    chance=10.0,
)
CURVES = LineChart(
    "Test loss",
    "updates",
    "cross-entropy",
    tuple(Line(title, make_points(range(500, 20_500, 500), lambda x: 1 + 500 / x)) for title in SYSTEMS[:2]),
)
BARS = BarChart(
    "Without one ingredient",
    "test accuracy, %",
    {
        "r-LSTM, all ingredients": Cell(make_score(62.0), 72.0),
        "without scheduled sampling in its decoder": Cell(make_score(58.0), 66.0),
        "without pretraining": Cell(make_score(55.0, num_seeds=1, name="bar"), None),
        "LSTM": Cell(None, 58.0),
    },
)
CHARTS = (LOG_CHART, TWO_PANELS, REVERSED, CURVES, BARS)
FIGURE = TABLE._replace(name="figure3", title="Figure 3: long sequences", grids=(), charts=CHARTS, num_planned=80)
OUTCOMES = (TABLE, FIGURE, ONE_SEED, NOT_RUN)
