"""Runs tests on one build of the kernel, on all that this processor can run, or on torch's own recurrences."""

import contextlib

import pytest

from auxrnn.kernels.library import load_kernel
from stacks import BUILDS, GATED


@contextlib.contextmanager
def running_on(kernel):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("auxrnn.kernels.library.find_kernel", lambda: kernel)
        yield


@pytest.fixture(scope="module", params=BUILDS)
def build(request):
    """Let networks run on each build of the kernel in turn."""
    with running_on(load_kernel(request.param)):
        yield request.param


@pytest.fixture(scope="module", params=BUILDS[:1])
def best_build(request):
    """Let networks run on the best build, where what is tested has nothing to do with instruction sets."""
    with running_on(load_kernel(request.param)):
        yield request.param


@pytest.fixture(params=GATED)
def kind(request):
    """Give the class of each cell that the kernel has."""
    return request.param


@pytest.fixture
def cell(kind):
    """Give the kernel's name of each cell."""
    return kind.cell_name


@pytest.fixture
def on_torch():
    """Give a context in which networks run on torch's own recurrences."""
    return lambda: running_on(None)
