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
dl.findings { grid-template-columns: minmax(0, 8.5rem) 1fr; gap: 0.6rem 1.25rem; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font: 0.9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }

a { color: var(--series-3); text-underline-offset: 0.15em; }
h3 { font-size: 1.0625rem; line-height: 1.4; margin: 2rem 0 0.25rem; }
section { border-top: 1px solid var(--rule); margin-top: 3.5rem; }
section h2 { font-size: 1.5rem; margin-top: 1.5rem; }
.scroll { overflow-x: auto; margin-top: 1.5rem; }
caption { color: var(--muted); font-size: 0.9375rem; line-height: 1.4; text-align: left; padding-bottom: 0.4rem; }
.scroll table { width: auto; min-width: min(100%, 36rem); margin-top: 0.25rem; }
.scroll thead th { padding-top: 0.3rem; padding-bottom: 0.3rem; }
.scroll thead th[scope="colgroup"] { white-space: normal; vertical-align: bottom; }
.scroll thead tr:first-child:has(+ tr) { border-bottom: 0; }
.scroll thead th[colspan] { color: var(--ink); font-weight: 600; }
.scroll td, .scroll tbody th { padding-top: 0.45rem; padding-bottom: 0.45rem; vertical-align: baseline; }
.scroll tbody th { font-weight: 500; line-height: inherit; }
.scroll .ours { padding-left: 2.5rem; }
.scroll td.ours { white-space: normal; }
.scroll td.ours span { white-space: nowrap; }
td.ours { font-weight: 600; }
td.ours span, td.paper, td.missing { color: var(--muted); font-weight: 400; }
td.missing { font-size: 0.9375rem; }

.badge {
  display: inline-block; padding: 0 0.6em; border: 1.5px solid currentColor; border-radius: 1em;
  font-size: 0.875rem; font-weight: 600; line-height: 1.6; white-space: nowrap;
}
.holds { color: var(--holds); }
.unsure { color: var(--unsure); }
.fails { color: var(--fails); }
.open { color: var(--open); border-style: dashed; }
.tally, .claims, .contents { list-style: none; padding: 0; margin: 1rem 0; }
.tally li, .claims li { display: grid; grid-template-columns: 11.5rem 1fr; gap: 0 0.75rem; align-items: start; }
.tally li { grid-template-columns: 1.5rem 11.5rem 1fr; padding: 0.4rem 0; }
.tally strong { text-align: right; }
.tally p, .claims p { margin: 0; }
.claims li { padding: 0.7rem 0; border-bottom: 1px solid var(--rule); }
.contents { max-width: 46rem; }
.contents li { display: flex; flex-wrap: wrap; gap: 0 1.25rem; justify-content: space-between; padding: 0.3rem 0; }
.contents .small { white-space: nowrap; }

details { margin: 1.25rem 0; }
summary { cursor: pointer; color: var(--muted); }
.runs { display: flex; flex-wrap: wrap; gap: 0 1.1rem; list-style: none; margin: 0; padding: 0; }
.scroll .all { text-align: left; white-space: normal; }

@media screen and (max-width: 48rem) {
  .claims li { grid-template-columns: 1fr; gap: 0.2rem; }
  .tally li { grid-template-columns: 1.5rem 1fr; gap: 0.2rem 0.75rem; }
  .tally div { grid-column: 2; }
  .contents li { display: block; }
  .scroll table { width: 100%; min-width: 0; }
  .scroll tbody th { padding: 0; }
  .scroll td, .scroll td.ours { padding: 0; overflow-wrap: anywhere; }
  td.all { grid-column: 1 / -1; }
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
  dl, dl.findings { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.6rem; }
}
@media print {
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; font-size: 1rem; }
  h2, section h2 { margin-top: 1.5rem; break-after: avoid; }
  h3 { break-after: avoid; }
  section { margin-top: 2rem; }
  details:not([open]) { display: none; }
  p, .note { max-width: none; }
  th, td { padding-top: 0.35rem; padding-bottom: 0.35rem; }
  .scroll { overflow: visible; }
  .scroll td, .scroll td.ours { padding-left: 0.6rem; white-space: normal; }
  p:has(+ figure) { break-after: avoid; }
  figure, table, tr, dl, .note, .claims li { break-inside: avoid; }
  i, b { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def stylesheet() -> str:
    """Give all rules of the page."""
    return theme.css_variables() + RULES
