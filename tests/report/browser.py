"""A real browser without a screen, for what only a browser can tell of a page."""

import html
import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)
# Whatever a page would load from elsewhere is refused, and the refusal is a message of the console.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
PROBE = """<script>
onload = () => {
  const root = document.documentElement;
  const wide = [...document.querySelectorAll("body *")].filter(
    (each) => !each.closest("svg") && each.getBoundingClientRect().right > innerWidth + 1);
  const loaded = performance.getEntriesByType("resource").map((each) => each.name);
  const found = { inner: innerWidth, scroll: root.scrollWidth, wide: wide.map((each) => each.outerHTML.slice(0, 80)),
    resources: loaded.filter((name) => !name.startsWith("data:")) };
  parent.document.getElementById("found").textContent = JSON.stringify(found);
};
</script>"""


class Visit(NamedTuple):
    """What a browser found: widths in pixels, elements that reach beyond the screen, loaded addresses, messages."""

    inner: int
    scroll: int
    wide: list
    resources: list
    messages: list


def visit(path, *, width, folder):
    """Open a page, all its details unfolded, in a frame of this width; a window cannot be as narrow as a phone."""
    page = path.read_text(encoding="utf-8").replace("<details", "<details open")
    page = page.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1)
    page = page.replace("</body>", f"{PROBE}</body>", 1)
    frame = f'<iframe srcdoc="{html.escape(page)}" style="width: {width}px; height: 800px; border: 0"></iframe>'
    copy = folder / "frame.html"
    copy.write_text(f'<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre>{frame}', encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1400,900", "--dump-dom"]
    done = subprocess.run([*command, copy.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.+?)</pre>', done.stdout).group(1)))
    return Visit(messages=[line for line in done.stderr.splitlines() if ":CONSOLE:" in line], **found)
