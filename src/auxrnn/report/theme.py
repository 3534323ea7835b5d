"""The look of charts and pages: colors for light and dark screens, and matplotlib's settings in the light ones."""

from typing import Any

SHADES = {
    # On a light screen, and on a dark one.
    "paper": ("#ffffff", "#14171b"),
    "ink": ("#1b1f24", "#e4e7eb"),
    "muted": ("#59636e", "#9ba6b2"),
    "rule": ("#d8dde3", "#363d46"),
    "band": ("#eef2f6", "#20262d"),
    "outside": ("#d3d9e0", "#333a43"),
    "mark": ("#e36f00", "#ff8c1a"),
    # Of Okabe and Ito's palette for all kinds of color vision, darkened until text in it can be read on white.
    "series-1": ("#4d5761", "#b9c2cc"),
    "series-2": ("#b84a00", "#ff9350"),
    "series-3": ("#006ba8", "#5cb8f0"),
    "series-4": ("#007a58", "#3fc79b"),
    "series-5": ("#9c3587", "#e58fd3"),
    "series-6": ("#7d6200", "#d9bd3f"),
    "holds": ("#0a7040", "#5fd08c"),
    "unsure": ("#8a5a00", "#efb452"),
    "fails": ("#b3202c", "#ff8a8a"),
    "open": ("#5b6472", "#a8b2c0"),
}
NUM_SERIES = 6


def color(name: str) -> str:
    """Return a color as charts draw it."""
    return SHADES[name][0]


def series(index: int) -> str:
    """Return the name of the color of the run at this place; beyond the last they begin again."""
    return f"series-{index % NUM_SERIES + 1}"


PIXELS_PER_INCH = 72
"""At this resolution a point of a font is a pixel of a plain screen."""
STYLE: Any = {
    "figure.dpi": PIXELS_PER_INCH,
    "figure.facecolor": color("paper"),
    "figure.titlesize": "large",
    "figure.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "savefig.dpi": 2 * PIXELS_PER_INCH,
    "svg.fonttype": "none",
    "agg.path.chunksize": 10_000,
    "font.size": 13.0,
    "text.color": color("ink"),
    "text.parse_math": False,
    "axes.facecolor": "none",
    "axes.edgecolor": color("muted"),
    "axes.labelcolor": color("muted"),
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titlecolor": color("muted"),
    "axes.titlepad": 10.0,
    "grid.color": color("rule"),
    "ytick.major.size": 0,
    "lines.linewidth": 2.0,
    "errorbar.capsize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": "medium",
    "legend.handlelength": 2.2,
    "legend.borderaxespad": 0.4,
}
STYLE |= {f"axes.spines.{side}": False for side in ("left", "right", "top")}
STYLE |= {f"{axis}tick.color": color("muted") for axis in "xy"} | {f"{axis}tick.labelsize": "small" for axis in "xy"}


def follow_scheme(svg: str) -> str:
    """Return an SVG whose colors follow the page it stands in; alone, it stays light."""
    for name, (light, _) in SHADES.items():
        svg = svg.replace(light, f"var(--{name}, {light})")
    return svg
