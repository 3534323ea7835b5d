import re
import subprocess
import sys
from pathlib import Path

import pytest
from markup import parse

from auxrnn.errors import RunError
from auxrnn.report.pages import write_demo_page


@pytest.fixture
def write(tmp_path, rows, facts, reconstructions):
    """Writes the page into a folder, with some of its parts changed; returns its path."""
    parts = {"rows": rows, "facts": facts, "reconstructions": reconstructions}
    return lambda **changes: write_demo_page(tmp_path, **(parts | changes))


@pytest.fixture
def text(write):
    return write().read_text(encoding="utf-8")


def test_the_page_needs_nothing_but_itself(text):
    elements = parse(text)
    assert not {"script", "link", "iframe", "object", "embed"} & set(elements.tags)
    links = [value for name, value in elements.attributes if name.split(":")[-1] in {"src", "href", "srcset", "data"}]
    assert links
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_no_two_elements_share_an_id(text):
    ids = [value for name, value in parse(text).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_the_table_tells_windows_updates_accuracy_and_time_of_each_network(text, rows):
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    found = [re.findall(r"<td[^>]*>([^<]*)", row) for row in body.split("</tr>")[:-1]]
    assert [[cell.strip() for cell in cells] for cells in found] == [
        ["all 196 steps", "0 + 40", "71.3 %", "1 min 15 s"],
        ["28 steps", "0 + 40", "40.4 %", "31 s"],
        ["28 steps", "20 + 20", "93.6 %", "44 s"],
        ["28 steps", "20 + 20", "90.9 %", "42 s"],
    ]
    assert [body.index(row.title) for row in rows] == sorted(body.index(row.title) for row in rows)


def test_the_page_says_how_its_numbers_were_made(text):
    for fact in ("1,437", "360", "<dd>17</dd>", "torch 2.13.0", "auxrnn demo --seed 17", "<code>auxrnn train digits"):
        assert fact in text


def test_the_note_gives_the_largest_standard_error_of_the_accuracies(text):
    assert "One seed" in text
    assert "&plusmn;2.6 points" in text


def test_one_sentence_compares_what_was_rebuilt_with_blank_paper_and_the_mean_digit(text):
    start = text.index("The mean squared error of a reconstructed pixel")
    sentence = text[start : text.index(".</p>", start)]
    numbers = ["0.031", "3", "0.123", "0.057", "0.042", "360", "0.131", "0.068"]
    assert re.findall(r"[\d.]*\d", sentence.replace("(0 is white, 1 black)", "")) == numbers


def test_text_from_outside_is_escaped(write, rows, facts):
    hostile = '<script>alert("&")</script>'
    rows = [row._replace(title=hostile, description=hostile) for row in rows]
    facts = facts._replace(versions=[(hostile, hostile)])
    text = write(rows=rows, facts=facts).read_text(encoding="utf-8")
    assert "script" not in parse(text).tags
    assert text.count("&lt;script&gt;alert(&#34;&amp;&#34;)&lt;/script&gt;") >= 2 * len(rows) + 2


def test_both_figures_come_wide_and_narrow_and_together_as_a_picture(text, tmp_path):
    assert text.count("<svg") == 4
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert text.count('<div class="wide"><svg') == text.count('<div class="narrow"><svg') == 2


def test_the_page_is_written_aside_and_renamed_and_the_same_each_time(write, facts, tmp_path, monkeypatch):
    path = write()
    before = path.read_bytes()
    assert write().read_bytes() == before

    def fail(*_):
        raise OSError("power cut")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(RunError, match="cannot write"):
        write(facts=facts._replace(versions=[]))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.glob("index.html*")] == ["index.html"]


def test_matplotlib_is_imported_only_when_a_picture_is_drawn():
    code = "import sys, auxrnn.report.pages, auxrnn.report.records; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
