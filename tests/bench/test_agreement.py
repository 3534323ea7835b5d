import numpy as np
import pytest

from auxrnn.bench.agreement import check_agreement
from auxrnn.errors import RunError


def test_answers_that_differ_by_rounding_agree():
    check_agreement({"ours": [1.0, -100.0], "theirs": [1.005, -100.005]}, of="the outputs")


@pytest.mark.parametrize("theirs", [[1.0, -100.1], [np.nan, -100.0]])
def test_answers_that_differ_by_more_are_refused_in_one_sentence(theirs):
    with pytest.raises(RunError, match=r"^theirs and ours differ by .* in the outputs, .*compared; please report"):
        check_agreement({"ours": [1.0, -100.0], "theirs": theirs}, of="the outputs")
