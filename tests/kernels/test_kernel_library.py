"""Which build of the kernel is taken, what is said where there is none, and that networks run all the same."""

import ctypes
import importlib.resources
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from auxrnn.errors import RunError
from auxrnn.kernels import gated as kernel
from auxrnn.kernels import library
from auxrnn.kernels.library import CHOICE, INSTRUCTION_SETS, describe, find_kernel, load_kernel
from auxrnn.models.network import LossTerms
from auxrnn.structs import Draws
from command import call
from stacks import BUILDS
from tiny_network import make_batch, make_network

needs_kernel = pytest.mark.skipif(not BUILDS, reason="no build of the kernel is there")


@pytest.fixture
def choose(monkeypatch):
    """Give a function that lets the environment name a build; what was found before and after is forgotten."""

    def name_build(name):
        monkeypatch.setenv(CHOICE, name)
        find_kernel.cache_clear()

    monkeypatch.delenv(CHOICE, raising=False)
    find_kernel.cache_clear()
    yield name_build
    find_kernel.cache_clear()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Give the folder in which builds are looked for, which is empty."""
    monkeypatch.setattr(importlib.resources, "files", lambda _package: tmp_path)
    return tmp_path


def learn():
    """Give the gradients of one training step in single precision."""
    network, batch, draws = make_network("reconstruct").float(), make_batch(), Draws(3, "test", 7)
    batch = batch._replace(x_BT=batch.x_BT.float())
    losses = network.losses(batch, terms=LossTerms(True, True, 3), draws=draws, true_probability=0.5)
    losses.combine(1.0).backward()
    return [parameter.grad for parameter in network.parameters()]


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")
def test_every_build_that_the_processor_can_run_was_compiled():
    portable = load_kernel("portable")
    assert portable is not None
    assert [name for name in INSTRUCTION_SETS if portable.c.auxrnn_supports(name.encode())] == BUILDS


@needs_kernel
def test_the_best_build_is_taken_unless_the_environment_names_another(choose):
    assert find_kernel().name == BUILDS[0]
    for name in BUILDS:
        choose(name)
        assert find_kernel().name == name
        assert describe() == f"fused kernel ({name})"


def test_the_environment_can_turn_the_kernel_off(choose, caplog):
    choose("none")
    assert find_kernel() is None
    assert find_kernel() is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert describe() == f"torch's own LSTM ({CHOICE} is none)"
    assert all(grad.isfinite().all() for grad in learn())


def test_a_build_that_does_not_exist_is_refused_in_one_sentence(choose):
    choose("nonsense")
    with pytest.raises(ValueError, match=f"^{CHOICE} is 'nonsense'; set it to one of [a-z0-9, ]+, or unset it$"):
        find_kernel()


def test_without_any_build_networks_train_on_torch_and_one_line_says_why(choose, folder, caplog):
    grads = learn()
    assert not kernel.can_run(torch.zeros(1), torch.zeros(1))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    why = "the kernel was not compiled; install a C++ compiler, then auxrnn again"
    assert why in caplog.text
    assert describe() == f"torch's own LSTM ({why})"
    assert any(grad.any() for grad in grads)


@needs_kernel
def test_a_named_build_that_is_missing_is_said_to_be_so(choose, folder, caplog):
    (portable,) = Path(library.__file__).parent.glob("_gated_portable.*")
    shutil.copy(portable, folder)
    assert find_kernel().name == "portable"
    choose("avx2")
    assert find_kernel() is None
    why = "the avx2 build of the kernel is missing, or this processor cannot run it"
    assert why in caplog.text
    assert describe() == f"torch's own LSTM ({why})"


@needs_kernel
def test_a_build_from_another_interface_is_refused(choose, monkeypatch):
    class LongerHead(ctypes.Structure):
        _fields_ = (*library.HeadPointers._fields_, ("dropout", ctypes.c_double))

    monkeypatch.setattr(library, "HeadPointers", LongerHead)
    with pytest.raises(RunError, match="the compiled LSTM kernel is out of date; install auxrnn again"):
        find_kernel()


def test_a_new_process_listens_to_the_environment():
    command = [sys.executable, "-m", "auxrnn", "info", "--json"]
    done = subprocess.run(command, env=os.environ | {CHOICE: "none"}, capture_output=True, check=True)
    assert json.loads(done.stdout)["lstm"] == f"torch's own LSTM ({CHOICE} is none)"
    assert len(done.stderr.splitlines()) == 1


def test_the_command_line_refuses_a_build_that_does_not_exist_in_one_sentence(choose):
    choose("nonsense")
    result = call("info")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
