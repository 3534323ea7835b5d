import re
from pathlib import Path

import pytest
from browser import CHROMIUM, visit
from markup import parse

from auxrnn.experiments.catalog import PAGE_ORDER, find_outcome
from auxrnn.experiments.jobs import Folders
from auxrnn.experiments.scales import find_scale
from auxrnn.report.pages import PageFacts, write_results_page
from auxrnn.report.results import Cell, Claim, Grid, Score
from made_up_results import CHARTS, FIGURE, NOT_RUN, ONE_SEED, OUTCOMES, TABLE, make_run

RECORDS = Path(__file__).parents[2] / "results" / "desk" / "records"
MADE = PageFacts("desk", "Smaller.", 34, 60, 5400.0, [("auxrnn", "0.1.0")], "a1b2c3d")


def values_of(text, name):
    return [value for attribute, value in parse(text).attributes if attribute == name]


def plain(text):
    """The words of a piece of HTML, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def section(text, name):
    start = text.index(f'<section id="{name}">')
    return text[start : text.index("</section>", start)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "results.html"
    return write_results_page(path, outcomes=OUTCOMES, reconstructions=None, made=MADE)


@pytest.fixture(scope="module")
def text(page):
    return page.read_text(encoding="utf-8")


def write(tmp_path, *outcomes, reconstructions=None):
    path = write_results_page(tmp_path / "page.html", outcomes=outcomes, reconstructions=reconstructions, made=MADE)
    return path.read_text(encoding="utf-8")


def test_the_page_needs_no_script_and_no_other_file_but_the_records_it_links_to(text):
    elements = parse(text)
    assert not {"script", "link", "iframe", "object", "embed"} & set(elements.tags)
    assert not values_of(text, "src")
    links = values_of(text, "href") + values_of(text, "xlink:href")
    assert all(re.fullmatch(r"#.+|records/[\w-]+\.json|data:image/png;base64,.+", link, re.DOTALL) for link in links)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_no_two_elements_share_an_id_and_every_link_inside_leads_somewhere(text):
    ids = values_of(text, "id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in values_of(text, "href") if link.startswith("#")} <= set(ids)


def test_the_contents_list_every_outcome_in_order_with_its_progress(text):
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert re.findall(r'href="#([^"]+)"', contents) == ["table2", "figure3", "table4", "table5", "making"]
    assert "Table 4: texts 1 of 9 runs" in plain(contents)


def test_the_summary_counts_the_verdicts_and_links_to_where_they_were_given(text):
    tally = text[text.index('<ul class="tally">') : text.index("</ul>")]
    counts = re.findall(r"<strong>(\d+)</strong>.*?</span> ([\w ]+)</span>", tally)
    assert counts == [("2", "holds"), ("2", "within the spread"), ("2", "does not hold"), ("3", "open")]
    items = tally.split("</li>")
    assert re.findall(r'href="#(\w+)"', items[0]) == ["table2", "figure3"]
    assert re.findall(r'href="#(\w+)"', items[3]) == ["table2", "figure3", "table4"]


def test_what_the_paper_does_not_say_is_judged_apart_and_not_counted_as_the_papers(text):
    paper, ours = section(text, "table2").split("<h3>Questions of our own, beyond the paper</h3>")
    assert "r-LSTM beats LSTM by 40 points." not in paper
    assert "r-LSTM beats LSTM by 40 points." in ours
    assert "This page checks 9 claims of the paper" in plain(text)


def test_the_summary_begins_with_what_was_measured_in_words(text):
    findings = text[text.index('<dl class="findings">') : text.index("</dl>")]
    assert re.findall(r'href="#(\w+)"', findings) == ["table2", "figure3", "table4"]
    assert "Table 2 The r-LSTM names 90.0 %, the LSTM 80.0 %." in plain(findings)
    assert "Here. The r-LSTM names 90.0 %" in plain(section(text, "table2"))
    assert "Here." not in plain(section(text, "table5"))


def test_the_summary_tells_scale_and_cost(text):
    assert "Scale desk. Smaller." in plain(text)
    assert "34 of 60 runs are done, with 1 h 30 min of training." in plain(text)


def test_a_table_has_ours_beside_the_paper_s_with_labels_for_phones(text):
    row = section(text, "table2").split("<tbody>")[1].split("</tr>")[0]
    cells = [(label, plain(cell)) for label, cell in re.findall(r'data-label="([^"]+)">(.*?)</td>', row)]
    assert cells == [
        ("MNIST, ours", "90.0 ± 0.5"),
        ("MNIST, paper", "95.0"),
        ("pMNIST, ours", "85.0 ± 0.5"),
        ("pMNIST, paper", "95.0"),
        ("CIFAR10, ours", "80.0 ± 0.5"),
        ("CIFAR10, paper", "95.0"),
    ]


LOOKS = {
    "holds": ("holds", "\u2713"),
    "within the spread": ("unsure", "\u2248"),
    "does not hold": ("fails", "\u2717"),
    "open": ("open", "?"),
}


def test_each_verdict_is_a_word_a_symbol_and_a_color_beside_claim_and_numbers(text):
    claims = section(text, "table2").split('<ul class="claims">')[1].split("</ul>")[0].split("</li>")[:-1]
    for claim, item in zip([claim for claim in TABLE.claims if not claim.is_ours], claims, strict=True):
        css_class, symbol = LOOKS[claim.verdict]
        assert f'class="badge {css_class}"' in item
        assert f"{symbol} {claim.verdict} {claim.text} {claim.detail}" in plain(item)


def test_every_run_behind_a_number_stands_with_seed_value_time_and_a_link_to_its_record(text):
    details = section(text, "table2").split("<details>")[1]
    first = plain(details.split("<tbody>")[1].split("</tr>")[0])
    assert first.startswith("LSTM, full BPTT, MNIST 89.50 seed 1, 1 min 00 s 90.00 seed 2, 1 min 00 s")
    links = re.findall(r'href="([^"]+)"', details)
    assert links[:3] == ["records/0-0-seed1.json", "records/0-0-seed2.json", "records/0-0-seed3.json"]
    assert len(links) == 8 * 3 * 3
    assert "<dt>Hidden units</dt><dd>128</dd>" in details


def test_bars_link_to_their_records_and_lines_list_their_points(text):
    details = section(text, "figure3").split("<details>")[1]
    assert 'href="records/bar-seed1.json"' in details
    assert "LSTM ours: 196: 39.8 (39.3 to 40.3); 100: 35 (34.5 to 35.5); 50: 32.5 (32 to 33)" in plain(details)
    assert "r-LSTM paper: 1: 66; 0: 52" in plain(details)
    assert "Test loss" not in plain(details)


def test_one_seed_is_called_one_and_what_did_not_run_is_said_not_to_have_run(text):
    assert "4.12 (one seed)" in plain(section(text, "table4"))
    assert "Not finished: 1 of 9 runs are done" in section(text, "table4")
    assert "Not run yet" in section(text, "table5")
    assert "Not finished" not in section(text, "table2")


def test_every_chart_comes_wide_and_narrow_with_its_title_above(text):
    figure = section(text, "figure3")
    assert figure.count('<div class="wide"><svg') == figure.count('<div class="narrow"><svg') == len(CHARTS)
    assert re.findall(r"<h3>([^<]+)</h3>", figure)[: len(CHARTS)] == [chart.title for chart in CHARTS]


def test_the_page_says_how_it_was_made(text):
    making = plain(section(text, "making"))
    command = "auxrnn reproduce all --scale desk &amp;&amp; auxrnn report --scale desk"
    assert f"Command {command} Commit a1b2c3d Versions auxrnn 0.1.0" in making
    assert "auxrnn reproduce table2 --scale desk" in section(text, "table2")


def test_what_the_network_remembers_is_shown_if_it_is_known(tmp_path, reconstructions, text):
    remembered = write(tmp_path, NOT_RUN, reconstructions=reconstructions)
    assert "<h2>What the network remembers</h2>" in section(remembered, "memory")
    assert section(remembered, "memory").count("<svg") == 2
    assert '<a href="#memory">' in remembered
    assert "memory" not in values_of(text, "id")


def test_text_from_outside_is_escaped(tmp_path):
    hostile = '<script>alert("&")</script>'
    done = Cell(Score((4.0,), (make_run('"><script>', 1),)), 2.5)
    outcome = ONE_SEED._replace(
        title=hostile,
        scale=hostile,
        summary=hostile,
        finding=hostile,
        grids=(Grid(hostile, hostile, (hostile, hostile), {hostile: (done, Cell(None, 1.0, hostile))}),),
        charts=tuple(chart._replace(title=hostile) for chart in FIGURE.charts[-1:]),
        claims=(Claim(hostile, "open", hostile),),
        settings=((hostile, hostile),),
    )
    made = PageFacts(hostile, hostile, 1, 2, 3.0, [(hostile, hostile)], hostile)
    path = write_results_page(tmp_path / "page.html", outcomes=[outcome], reconstructions=None, made=made)
    text = path.read_text(encoding="utf-8")
    assert "script" not in parse(text).tags
    assert text.count("&lt;script&gt;") > 20


def test_the_same_outcomes_give_the_same_page(tmp_path):
    assert write(tmp_path, NOT_RUN, ONE_SEED) == write(tmp_path, NOT_RUN, ONE_SEED)


def test_a_page_without_outcomes_can_be_written(tmp_path):
    assert "How this page was made" in plain(write(tmp_path))


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_the_page_without_complaint_network_or_overflow(page, width, tmp_path):
    found = visit(page, width=width, folder=tmp_path)
    assert found.inner == width
    assert found.messages == []
    assert found.resources == []
    assert found.wide == []
    assert found.scroll <= width


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")
@pytest.mark.parametrize("width", [390, 1200])
def test_the_tables_of_every_experiment_fit_a_page(width, tmp_path):
    folders, desk = Folders(tmp_path, RECORDS), find_scale("desk", tmp_path)
    outcomes = [find_outcome(name, desk, folders)._replace(charts=()) for name in PAGE_ORDER]
    write(tmp_path, *outcomes)
    assert visit(tmp_path / "page.html", width=width, folder=tmp_path).wide == []


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")
def test_the_browser_s_check_can_fail(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<html><head></head><body><p style='width: 500px'>wide</p><img src='https://example.invalid/a.png'>"
        "<script>console.error('wrong')</script></body></html>"
    )
    found = visit(page, width=390, folder=tmp_path)
    assert found.scroll > found.inner
    assert "wide" in found.wide[0]
    assert any("wrong" in message for message in found.messages)
    assert any("example.invalid" in message for message in found.messages)
