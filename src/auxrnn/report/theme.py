"""The look of charts and pages: colors for light and dark screens, and matplotlib's settings in the light ones."""

from typing import Any, NamedTuple


class Shade(NamedTuple):
    """One color on a light screen, and its part on a dark one."""

    light: str
    dark: str


SHADES = {
    "paper": Shade("#ffffff", "#14171b"),
    "ink": Shade("#1b1f24", "#e4e7eb"),
    "muted": Shade("#59636e", "#9ba6b2"),
    "rule": Shade("#d8dde3", "#363d46"),
    "band": Shade("#eef2f6", "#20262d"),
    "outside": Shade("#d3d9e0", "#333a43"),
    "mark": Shade("#e36f00", "#ff8c1a"),
    # Of Okabe and Ito's palette for all kinds of color vision, darkened until text in it can be read on white.
    "series-1": Shade("#4d5761", "#b9c2cc"),
    "series-2": Shade("#b84a00", "#ff9350"),
    "series-3": Shade("#006ba8", "#5cb8f0"),
    "series-4": Shade("#007a58", "#3fc79b"),
    "series-5": Shade("#9c3587", "#e58fd3"),
    "series-6": Shade("#7d6200", "#d9bd3f"),
    "holds": Shade("#0a7040", "#5fd08c"),
    "unsure": Shade("#8a5a00", "#efb452"),
    "fails": Shade("#b3202c", "#ff8a8a"),
    "open": Shade("#5b6472", "#a8b2c0"),
}
SERIES = ("series-1", "series-2", "series-3", "series-4", "series-5", "series-6")
"""One name for each run, in the order shown; further runs begin again."""


def color(name: str) -> str:
    """Return a color as charts draw it."""
    return SHADES[name].light


def series(index: int) -> str:
    """Return the name of the color of the run at this place."""
    return SERIES[index % len(SERIES)]


PIXELS_PER_INCH = 72
"""At this resolution a point of a font is a pixel of a plain screen."""
STYLE: Any = {
    "figure.dpi": PIXELS_PER_INCH,
    "figure.facecolor": color("paper"),
    "savefig.dpi": 2 * PIXELS_PER_INCH,
    "font.size": 13.0,
    "text.color": color("ink"),
    "text.parse_math": False,
    "axes.facecolor": "none",
    "axes.edgecolor": color("muted"),
    "axes.labelcolor": color("muted"),
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titlecolor": color("muted"),
    "axes.titlepad": 10.0,
    "grid.color": color("rule"),
    "xtick.color": color("muted"),
    "xtick.labelsize": "small",
    "ytick.color": color("muted"),
    "ytick.labelsize": "small",
    "ytick.major.size": 0,
    "lines.linewidth": 2.0,
    "errorbar.capsize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": "medium",
    "legend.handlelength": 2.2,
    "legend.borderaxespad": 0.4,
    "figure.titlesize": "large",
    "figure.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "svg.fonttype": "none",
}


def follow_scheme(svg: str) -> str:
    """Return an SVG whose colors follow the page it stands in; alone, it stays light."""
    for name, shade in SHADES.items():
        svg = svg.replace(shade.light, f"var(--{name}, {shade.light})")
    return svg


def css_variables() -> str:
    """Return the rules that define all colors; printed pages are always light."""
    light = " ".join(f"--{name}: {shade.light};" for name, shade in SHADES.items())
    dark = " ".join(f"--{name}: {shade.dark};" for name, shade in SHADES.items())
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
