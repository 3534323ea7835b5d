"""What the tests of the data layer share."""

from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def assert_one_sentence() -> Callable[..., None]:
    """A check that an error is one sentence, with what to do after a semicolon, and says what it must."""

    def check(error: pytest.ExceptionInfo[Exception], *parts: object) -> None:
        message = str(error.value)
        assert "\n" not in message
        assert ". " not in message
        assert not message.endswith(".")
        assert "; " in message
        for part in parts:
            assert str(part) in message

    return check


@pytest.fixture(scope="session")
def shared_mnist() -> Path:
    """The folder that holds the real MNIST, where this machine has it."""
    if not (SHARED_DATA / "mnist").is_dir():
        pytest.skip(f"the real MNIST is not at {SHARED_DATA / 'mnist'}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def shared_dbpedia() -> Path:
    """The folder that holds a real part of DBpedia, where this machine has it."""
    folder = SHARED_DATA / "dbpedia_part"
    if not folder.is_dir():
        pytest.skip(f"the real DBpedia is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def shared_fsdd() -> Path:
    """The folder of 3,000 spoken digits, where this machine has it."""
    folder = SHARED_DATA / "fsdd" / "recordings"
    if not folder.is_dir():
        pytest.skip(f"the spoken digits are not at {folder}")
    return folder
