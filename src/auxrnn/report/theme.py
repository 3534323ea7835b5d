"""The colors of figures and page, once for light and once for dark screens; figures are drawn in the light ones."""

from typing import NamedTuple


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
    """Give a color as figures draw it."""
    return SHADES[name].light


def series(index: int) -> str:
    """Give the name of the color of the run at this place."""
    return SERIES[index % len(SERIES)]


def follow_scheme(svg: str) -> str:
    """Let each known color of an SVG follow the page it stands in; alone, it stays light."""
    for name, shade in SHADES.items():
        svg = svg.replace(shade.light, f"var(--{name}, {shade.light})")
    return svg


def css_variables() -> str:
    """Give the rules that define all colors; paper is always light."""
    light = " ".join(f"--{name}: {shade.light};" for name, shade in SHADES.items())
    dark = " ".join(f"--{name}: {shade.dark};" for name, shade in SHADES.items())
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
