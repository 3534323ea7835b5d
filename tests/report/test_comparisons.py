from math import comb

import numpy as np
import pytest
from markup import parse

from auxrnn.report.comparisons import Compared, find_differing, make_pairs, mcnemar, write_comparison_page
from auxrnn.report.results import find_interval


def make_run(title, is_right, *, examples="same", scores=(10.0, 20.0), **settings):
    events = [
        {
            "event": "evaluation",
            "phase": "supervised",
            "total_step": step,
            "seconds": 60.0 * step,
            "test_accuracy": score,
        }
        for step, score in enumerate(scores)
    ]
    return Compared(title, settings, 1234, events, examples, is_right)


def test_mcnemar_is_the_exact_two_sided_test_of_a_fair_coin():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    # Ten heads and two tails: 2 * (1 + 12 + 66) / 4096.
    assert mcnemar(10, 2) == mcnemar(2, 10) == pytest.approx(2 * 79 / 4096)
    assert mcnemar(134, 14) == pytest.approx(2 * sum(comb(148, k) for k in range(15)) / 2**148)


def test_mcnemar_of_thousands_of_sequences_is_a_number():
    assert 0 < mcnemar(2600, 2400) < 0.01
    assert mcnemar(9000, 0) == pytest.approx(0)


def test_mcnemar_is_below_five_percent_at_most_that_often_for_equal_runs():
    heads = np.random.default_rng(0).binomial(60, 0.5, size=2000).tolist()
    assert 0.01 < sum(mcnemar(number, 60 - number) < 0.05 for number in heads) / 2000 < 0.05


def test_the_interval_is_wilsons():
    # Newcombe (1998), table I: 81 of 263 and 0 of 20.
    assert find_interval(81, 263) == pytest.approx((25.53, 36.62), abs=0.01)
    assert find_interval(0, 20) == pytest.approx((0, 16.11), abs=0.01)


def test_only_runs_on_the_same_sequences_are_paired():
    one, two = make_run("one", [True, True, False]), make_run("two", [True, False, False])
    other = make_run("other", [True], examples="others")
    (pair,) = make_pairs([one, two, other])
    assert pair[:4] == ("one", "two", 1, 0)


def test_a_setting_is_shown_only_if_runs_that_have_it_differ():
    one = make_run("one", [True], lr=1, hidden_size=4, order="reversed", segment_length=5)
    two = make_run("two", [True], lr=1, hidden_size=8)
    three = make_run("three", [True], lr=1, hidden_size=8, order="reversed", segment_length=6)
    assert find_differing([one, two, three]) == {"hidden_size": [4, 8, 8], "segment_length": [5, None, 6]}


def test_the_page_warns_of_many_comparisons_and_of_other_sequences(tmp_path):
    three = [make_run(f"<run {number}>", [True] * number + [False] * (9 - number), lr=number) for number in (2, 5, 9)]
    other = make_run("elsewhere", [True], examples="others")
    page = write_comparison_page(tmp_path / "page.html", runs=[*three, other], split="test", command="auxrnn compare")
    text = page.read_text()
    assert {"script", "link", "img"}.isdisjoint(parse(text).tags)
    assert "<run" not in text
    assert "These are 3 comparisons" in text
    assert "below 0.017 (0.05 divided" in text
    assert "other sequences than &lt;run 2&gt;: elsewhere" in text
    two = write_comparison_page(
        tmp_path / "two.html", runs=three[:2], split="test", command="auxrnn compare"
    ).read_text()
    assert "comparisons" not in two
    assert "other sequences" not in two.split("95 %")[0]
    assert '<td data-label="&lt;run 2&gt;">2</td>' in two
