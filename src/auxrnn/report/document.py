"""What pages share: the frame of a self-contained HTML file, figures for desks and phones, and the memory section."""

import html
from collections.abc import Sequence

from auxrnn.report.canvas import SegmentCanvas
from auxrnn.report.figures import NARROW, memory_figure, to_svg
from auxrnn.report.stylesheet import stylesheet

MAX_EXAMPLES = 8
CITATION = """<p class="small">Method: T. H. Trinh, A. M. Dai, M.-T. Luong and Q. V. Le, Learning Longer-term
Dependencies in RNNs with Auxiliary Losses, ICML 2018.</p>
"""


def html_document(title: str, sections: Sequence[str]) -> str:
    """Give a whole page that needs no other file, no script and no network."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>
{stylesheet()}</style>
</head>
<body>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def html_figure(wide: str, narrow: str, description: str) -> str:
    """Give a figure of two SVGs, of which a screen shows the one that fits, described for those who see neither."""
    label = html.escape(description)
    return f"""<figure role="img" aria-label="{label}">
<div class="wide">{wide}</div>
<div class="narrow">{narrow}</div>
</figure>
"""


def memory_section(canvases: Sequence[SegmentCanvas], *, heading: str, errors: str) -> str:
    """Show digits, the segments asked for and what was rebuilt of them; heading and errors are HTML already."""
    wide = to_svg(memory_figure(canvases), name="memory-wide")
    narrow = to_svg(memory_figure(canvases, width=NARROW, columns=4), name="memory-narrow")
    return f"""{heading}
<p>Each column is one test digit. The network reads it row by row up to the anchor (the dot); paler pixels are still
ahead of it. From its state there, the decoder rebuilds the outlined segment, pixel by pixel: it is given the framed
pixel at one end and goes on from its own output. Below each digit stand the true segment, the rebuilt one and their
absolute difference; gray lies outside the segment. The number on top says how many steps before the anchor the segment
begins. {errors}</p>
{html_figure(wide, narrow, "Digits, true segments, rebuilt segments and their difference")}"""
