"""The page of all reproduced tables and figures: one HTML file that needs no script and no network.

Beside it lies only the folder `records`, to which its numbers link.
"""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from auxrnn.files import write_aside
from auxrnn.report.canvas import lay_out_all, mean_errors
from auxrnn.report.document import CITATION, MAX_EXAMPLES, html_document, memory_section
from auxrnn.report.durations import describe_duration
from auxrnn.report.outcome_section import badge, outcome_section, short_title
from auxrnn.report.records import Reconstructions
from auxrnn.report.results import Outcome, Verdict

TITLE = "Longer memories through auxiliary losses: the paper's results, reproduced"
SENTENCES: dict[Verdict, str] = {
    "holds": "True of every seed: the ranges of the seeds do not touch. Times were measured once each.",
    "within the spread": "True of the means only: the ranges of the seeds overlap.",
    "does not hold": "Not even true of the means.",
    "open": "Too few seeds to tell, or not run yet.",
}


class PageFacts(NamedTuple):
    """How the page was made; `versions` are pairs of a name and a version."""

    scale: str
    scale_summary: str
    """What the scale means beside the paper's: sizes of data and networks, number of updates, seeds."""
    num_done: int
    """Runs, each counted once though several tables may show it."""
    num_planned: int
    seconds: float
    versions: Sequence[tuple[str, str]]
    commit: str
    command: str


def write_results_page(
    path: Path, *, outcomes: Sequence[Outcome], reconstructions: Reconstructions | None, made: PageFacts
) -> Path:
    """Write the page and give its path; without reconstructions it has no section on what the network remembers."""
    has_memory = reconstructions is not None
    sections = [
        _introduction(),
        _scale(made),
        _findings(outcomes),
        _verdicts(outcomes),
        _contents(outcomes, has_memory=has_memory),
    ]
    sections += [outcome_section(outcome) for outcome in outcomes]
    if reconstructions is not None:
        sections.append(f'<section id="memory">\n{_memory(reconstructions)}</section>\n')
    sections.append(_making(made))
    write_aside(path, html_document(TITLE, sections))
    return path


def _memory(reconstructions: Reconstructions) -> str:
    canvases = lay_out_all(reconstructions, most=MAX_EXAMPLES)
    error, blank_error = mean_errors(canvases)
    errors = f"""The mean error of these {len(canvases)} segments is {error:.2f} a pixel, from 0 to 1; leaving them
blank would give {blank_error:.2f}."""
    return memory_section(canvases, heading="<h2>What the network remembers</h2>", errors=errors)


def _introduction() -> str:
    return f"""<h1>{html.escape(TITLE)}</h1>
<p>A recurrent network that reads thousands of steps learns badly from what came early: corrections sent back through
all steps fade and cost memory, and corrections cut short never get there. Trinh, Dai, Luong and Le (ICML 2018) add a
second task that needs no labels: at random points of the sequence, a small decoder must rebuild a stretch that was
read before (r-LSTM) or predict the one that follows (p-LSTM), so that the network learns to remember. They report good
accuracy at low cost on sequences of up to 16,000 steps, beside other recurrent networks and a Transformer of similar
size.</p>
"""


def _findings(outcomes: Sequence[Outcome]) -> str:
    """Say in plain words what was measured, before anything is judged."""
    items = "".join(
        f"<dt>{_link(outcome, short_title(outcome))}</dt><dd>{html.escape(outcome.finding)}</dd>\n"
        for outcome in outcomes
        if outcome.finding
    )
    return f'<h2>What was measured here</h2>\n<dl class="findings">\n{items}</dl>\n' if items else ""


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    num_claims = sum(not claim.is_ours for outcome in outcomes for claim in outcome.claims)
    items = "".join(_tally(verdict, outcomes) for verdict in SENTENCES)
    return f"""<h2>Does it hold here?</h2>
<p>This page looks at {num_claims} statements of the paper that its numbers can contradict:</p>
<ul class="tally">
{items}</ul>
"""


def _tally(verdict: Verdict, outcomes: Sequence[Outcome]) -> str:
    counts = [sum(claim.verdict == verdict and not claim.is_ours for claim in outcome.claims) for outcome in outcomes]
    links = ", ".join(
        f"{_link(outcome, short_title(outcome))} ({count})"
        for outcome, count in zip(outcomes, counts, strict=True)
        if count
    )
    where = f"\n<p>{links}</p>" if links else ""
    return f"""<li><strong>{sum(counts)}</strong> <span>{badge(verdict)}</span>
<div><p>{SENTENCES[verdict]}</p>{where}</div></li>
"""


def _link(outcome: Outcome, text: str) -> str:
    return f'<a href="#{html.escape(outcome.name)}">{html.escape(text)}</a>'


def _scale(made: PageFacts) -> str:
    time = describe_duration(made.seconds)
    return f"""<div class="note"><p><strong>Scale {html.escape(made.scale)}.</strong> {html.escape(made.scale_summary)}
{made.num_done:,} of {made.num_planned:,} runs are done, with {time} of training.</p></div>
"""


def _contents(outcomes: Sequence[Outcome], *, has_memory: bool) -> str:
    items = "".join(
        f"<li>{_link(outcome, outcome.title)} "
        f'<span class="small">{outcome.num_done} of {outcome.num_planned} runs</span></li>\n'
        for outcome in outcomes
    )
    if has_memory:
        items += '<li><a href="#memory">What the network remembers</a></li>\n'
    return f"""<nav aria-label="Contents"><h2>Contents</h2>
<ol class="contents">
{items}<li><a href="#making">How this page was made</a></li>
</ol></nav>
"""


def _making(made: PageFacts) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in made.versions)
    return f"""<section id="making">
<h2>How this page was made</h2>
<dl>
<dt>Command</dt><dd><code>{html.escape(made.command)}</code></dd>
<dt>Commit</dt><dd><code>{html.escape(made.commit)}</code></dd>
<dt>Versions</dt><dd>{html.escape(versions)}</dd>
</dl>
{CITATION}</section>
"""
