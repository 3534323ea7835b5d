import pytest

from made_up_bench import TINY, make_results


@pytest.fixture
def tiny():
    return TINY


@pytest.fixture
def results():
    return make_results()
