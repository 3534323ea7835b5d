"""The demo's page: one HTML file that needs no other file, no script and no network."""

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.config import Window
from auxrnn.files import write_aside
from auxrnn.report import theme
from auxrnn.report.canvas import MemoryErrors, SegmentCanvas, lay_out_all
from auxrnn.report.document import CITATION, MAX_EXAMPLES, html_document, html_figure, memory_section
from auxrnn.report.durations import describe_duration
from auxrnn.report.figures import NARROW, accuracy_figure, to_svg
from auxrnn.report.records import Curve, read_curve, read_reconstructions


class DemoRow(NamedTuple):
    """One network of the demo; its run lies in the folder `name`. `accuracy` is in percent of the test split."""

    name: str
    title: str
    description: str
    window: Window
    pretrain_steps: int
    train_steps: int
    accuracy: float
    seconds: float


class DemoFacts(NamedTuple):
    """How the numbers of the demo were made; `versions` are pairs of a name and a version."""

    title: str
    dataset: str
    train_examples: int
    test_examples: int
    num_classes: int
    sequence_length: int
    seed: int
    versions: Sequence[tuple[str, str]]
    command: str
    run_commands: Sequence[str]

    @property
    def chance(self) -> float:
        """Accuracy of guessing, in percent."""
        return 100 / self.num_classes


class DemoErrors(NamedTuple):
    """How well r-LSTM rebuilds the digits that are shown, and all test digits from the same anchors."""

    shown: MemoryErrors
    test: MemoryErrors


class DemoRecords(NamedTuple):
    """What the demo's figures show; no canvases if no reconstructions were kept."""

    curves: list[Curve]
    canvases: list[SegmentCanvas]


def read_demo(folder: Path, *, rows: Sequence[DemoRow]) -> DemoRecords:
    """Read the curves of all rows and the reconstructions from the folder of the demo."""
    curves = [read_curve(folder / row.name, title=row.title) for row in rows]
    reconstructions = read_reconstructions(folder / "reconstructions.npz")
    canvases = [] if reconstructions is None else lay_out_all(reconstructions, most=MAX_EXAMPLES)
    return DemoRecords(curves, canvases)


def write_demo_page(folder: Path, *, rows: Sequence[DemoRow], facts: DemoFacts, errors: DemoErrors) -> Path:
    """Write `index.html` into the folder of the demo and give its path; a figure without records is left out."""
    records = read_demo(folder, rows=rows)
    sections = [_introduction(facts), _results(rows, facts), _note(rows, facts)]
    if any(curve.steps for curve in records.curves):
        sections.append(_curves(records.curves, facts))
    if records.canvases:
        sections.append(_memory(records.canvases, facts, errors))
    sections.append(_making(facts))
    path = folder / "index.html"
    write_aside(path, html_document(facts.title, sections))
    return path


def _introduction(facts: DemoFacts) -> str:
    return f"""<h1>{html.escape(facts.title)}</h1>
<p>A recurrent network reads a handwritten digit one pixel at a time, {facts.sequence_length} steps in all, and names it
after the last. To learn from a mistake, it is corrected backwards through the steps it took. Going all the way back
costs memory and time for every step, and the correction fades on the way; stopping after a few steps is cheap, but
then nothing tells the network to hold on to what it read early.</p>
<p>The remedy tried here (Trinh et al., 2018) is a second task that needs no labels. At a random point of the sequence,
the anchor, a small decoder starts from what the network holds in its state and must rebuild a stretch of pixels read
before (r-LSTM) or predict the pixels that follow (p-LSTM). Its corrections are short too, but they arrive everywhere
along the sequence, so the network learns to remember before it learns to classify.</p>
"""


def _results(rows: Sequence[DemoRow], facts: DemoFacts) -> str:
    body = "".join(_result_row(row, theme.series(index), facts) for index, row in enumerate(rows))
    return f"""<h2>Results</h2>
<table>
<thead><tr><th>Network</th><th>Back-propagation<br>through</th><th>Updates<br>(pretraining + training)</th>
<th>Test accuracy</th><th>Time</th></tr></thead>
<tbody>
{body}</tbody>
</table>
"""


def _result_row(row: DemoRow, color: str, facts: DemoFacts) -> str:
    window = f"all {facts.sequence_length} steps" if row.window == "full" else f"{row.window} steps"
    return f"""<tr><th scope="row"><i style="background: var(--{color})"></i>{html.escape(row.title)}
<span>{html.escape(row.description)}</span></th>
<td data-label="Back-propagation">{window}</td>
<td data-label="Updates">{row.pretrain_steps:,} + {row.train_steps:,}</td>
<td data-label="Test accuracy" class="accuracy">{row.accuracy:.1f} %
<b><i style="width: {row.accuracy:.1f}%; background: var(--{color})"></i></b></td>
<td data-label="Time">{describe_duration(row.seconds)}</td></tr>
"""


def _note(rows: Sequence[DemoRow], facts: DemoFacts) -> str:
    error = max(100 * _standard_error(row.accuracy / 100, facts.test_examples) for row in rows)
    return f"""<div class="note"><p>One seed, small images, few updates: an illustration, not a measurement.
With {facts.test_examples:,} test digits, the choice of digits alone moves an accuracy by up to
&plusmn;{error:.1f} points (one standard error), and another seed moves it again.</p></div>
"""


def _standard_error(share: float, count: int) -> float:
    return math.sqrt(share * (1 - share) / count)


def _curves(curves: Sequence[Curve], facts: DemoFacts) -> str:
    wide = to_svg(accuracy_figure(curves, chance=facts.chance), name="curves-wide")
    narrow = to_svg(accuracy_figure(curves, chance=facts.chance, width=NARROW), name="curves-narrow")
    ends = ", ".join(f"{curve.title} {curve.accuracies[-1]:.1f} %" for curve in curves if curve.steps)
    return f"""<h2>Accuracy while training</h2>
<p>Every update counts, pretraining too: r-LSTM and p-LSTM spend the first part of theirs without seeing a single
label.</p>
{html_figure(wide, narrow, f"Test accuracy against updates, at the end: {ends}")}"""


def _memory(canvases: Sequence[SegmentCanvas], facts: DemoFacts, errors: DemoErrors) -> str:
    shown, test = errors
    rows = [canvas.anchor[1] + 1 for canvas in canvases]
    text = f"""The anchors lie in rows {min(rows)} to {max(rows)} of {len(canvases[0].image_YX)}, where the digit is
being read or was read just before.</p>
<p>The mean squared error of a rebuilt pixel (0 is white, 1 black) is {shown.rebuilt:.3f} over these {len(canvases)}
segments, where blank paper has {shown.blank:.3f} and the mean training digit {shown.mean_image:.3f}, and
{test.rebuilt:.3f} over all {facts.test_examples:,} test digits from the same anchors, where blank paper has
{test.blank:.3f} and the mean training digit {test.mean_image:.3f}."""
    return memory_section(canvases, heading="<h2>What r-LSTM remembers</h2>", errors=text)


def _making(facts: DemoFacts) -> str:
    entries = {
        "Data": facts.dataset,
        "Split": f"{facts.train_examples:,} digits to train on, {facts.test_examples:,} to test on",
        "Sequence": f"{facts.sequence_length:,} steps, one pixel each; {facts.num_classes} classes",
        "Seed": str(facts.seed),
        "Versions": ", ".join(f"{name} {version}" for name, version in facts.versions),
    }
    commands = "<br>".join(f"<code>{html.escape(command)}</code>" for command in facts.run_commands)
    items = "".join(f"<dt>{name}</dt><dd>{html.escape(value)}</dd>\n" for name, value in entries.items())
    return f"""<h2>How these numbers were made</h2>
<dl>
{items}<dt>Command</dt><dd><code>{html.escape(facts.command)}</code>, which runs<br>{commands}</dd>
</dl>
{CITATION}"""
