"""How the page looks: on a desk, on a phone, in the dark and on paper."""

from auxrnn.report import theme

RULES = """
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 62.5rem;
  background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 2.1rem; line-height: 1.2; letter-spacing: -0.015em; margin: 0 0 1rem; text-wrap: balance; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 0.5rem; }
p { margin: 0 0 1rem; max-width: 46rem; }
figure { margin: 1.25rem 0 0; }
svg { display: block; width: 100%; height: auto; }
svg text { font-family: inherit !important; font-variant-numeric: tabular-nums; }
.narrow { display: none; }
.small { color: var(--muted); font-size: 0.9375rem; }
.note { max-width: 46rem; border-left: 3px solid var(--mark); padding: 0.1rem 0 0.1rem 1rem; margin: 1.5rem 0; }
.note p { margin: 0; }

table { width: 100%; border-collapse: collapse; margin: 1rem 0 0.75rem; font-variant-numeric: tabular-nums; }
thead th { color: var(--muted); font-size: 0.875rem; font-weight: 500; line-height: 1.3; vertical-align: bottom; }
th, td { padding: 0.7rem 0 0.7rem 1.25rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child { padding-left: 0; text-align: left; white-space: normal; }
tr { border-bottom: 1px solid var(--rule); }
tbody th { font-weight: 600; line-height: 1.4; }
tbody th span { display: block; color: var(--muted); font-size: 0.875rem; font-weight: 400; }
tbody th i { display: inline-block; width: 0.7em; height: 0.7em; margin-right: 0.5em; border-radius: 50%; }
td.accuracy { font-weight: 600; }
td b { display: block; width: 6rem; height: 4px; margin: 0.3rem 0 0 auto; background: var(--band); }
td b i { display: block; height: 100%; }

dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.35rem 1.25rem; margin: 1rem 0; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: 0.9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }

@media screen and (max-width: 48rem) {
  body { padding-top: 1.5rem; font-size: 1rem; }
  h1 { font-size: 1.6rem; }
  .wide { display: none; }
  .narrow { display: block; max-width: 34rem; margin: 0 auto; }
  thead { display: none; }
  tbody tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0.35rem 1rem; padding: 0.8rem 0; }
  tbody th { grid-column: 1 / -1; padding: 0; }
  td { padding: 0; text-align: left; white-space: normal; }
  td::before { content: attr(data-label); display: block; color: var(--muted); font-size: 0.8125rem; font-weight: 400; }
  td b { margin-left: 0; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.6rem; }
}
@media print {
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; font-size: 1rem; }
  h2 { margin-top: 1.5rem; break-after: avoid; }
  p, .note { max-width: none; }
  th, td { padding-top: 0.35rem; padding-bottom: 0.35rem; }
  p:has(+ figure) { break-after: avoid; }
  figure, table, tr, dl, .note { break-inside: avoid; }
  i, b { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def stylesheet() -> str:
    """Give all rules of the page."""
    return theme.css_variables() + RULES
