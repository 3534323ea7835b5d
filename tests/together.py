"""Several processes that train together, made of this one, as torchrun would start them."""

import multiprocessing
import os
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import torch
from torch.distributed import TCPStore

from auxrnn import planning, progress, runs  # noqa: F401 - so that each process need not import them
from auxrnn.cli import commands
from auxrnn.training import processes

# Processes that begin with what is imported here: fresh ones would take seconds to import torch.
FORK = multiprocessing.get_context("fork")
SECONDS = 120


class Crew(NamedTuple):
    """Processes that run one command together."""

    children: list
    keeper: multiprocessing.Process
    """A process of its own that keeps what they find each other by, as torchrun does."""
    said: Path
    """Where all of them write what they say."""

    def wait(self):
        """Give their exit codes; who does not end in time is ended, with the code of a kill."""
        end = time.monotonic() + SECONDS
        for child in self.children:
            child.join(max(0.0, end - time.monotonic()))
            child.kill()
            child.join()
        self.keeper.kill()
        return [child.exitcode for child in self.children]

    def sentences(self):
        """Give what they said when they failed."""
        return [line for line in self.said.read_text().splitlines() if line.startswith("auxrnn: ")]


def start_command(num_processes, said, *words, restarts=0, max_restarts=0):
    """Start a command in so many processes; what they say goes to a file."""
    more = {"TORCHELASTIC_RESTART_COUNT": restarts, "TORCHELASTIC_MAX_RESTARTS": max_restarts}
    words = [str(word) for word in words]
    return _start(num_processes, lambda rank: _command(said, words), said, more)


def run_command(num_processes, said, *words, **more):
    """Run a command to its end in so many processes, which must succeed."""
    crew = start_command(num_processes, said, *words, **more)
    assert crew.wait() == [0] * num_processes, said.read_text()
    return said.read_text()


def run_together(num_processes, function, *arguments):
    """Give what `function(processes, *arguments)` returns in each of so many processes."""
    pipes = [FORK.Pipe() for _ in range(num_processes)]
    crew = _start(num_processes, lambda rank: _answer(pipes[rank][1], function, arguments))
    try:
        answers = [ours.recv() if ours.poll(SECONDS) else "no answer in time" for ours, _ in pipes]
    finally:
        crew.wait()
    wrong = [answer for answer in answers if isinstance(answer, str)]
    assert not wrong, wrong[0]
    return [answer[0] for answer in answers]


def _start(num_processes, work, said=None, more=None):
    ours, theirs = FORK.Pipe()
    keeper = FORK.Process(target=_keep_store, args=(theirs,), daemon=True)
    keeper.start()
    common = {"WORLD_SIZE": num_processes, "LOCAL_WORLD_SIZE": num_processes, "MASTER_ADDR": "127.0.0.1"}
    common |= {"MASTER_PORT": ours.recv(), "TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    children = []
    for rank in range(num_processes):
        variables = common | {"RANK": rank, "LOCAL_RANK": rank} | (more or {})
        children.append(FORK.Process(target=_enter, args=(variables, work, rank)))
        children[-1].start()
    return Crew(children, keeper, said)


def _keep_store(pipe):
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pipe.send(store.port)
    time.sleep(3 * SECONDS)


def _enter(variables, work, rank):
    os.environ.update({name: str(value) for name, value in variables.items()})
    torch.set_num_threads(1)
    work(rank)


def _command(said, words):
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - streams
    sys.__stderr__, sys.argv = sys.stderr, ["auxrnn", *words]
    commands.main()


def _answer(pipe, function, arguments):
    try:
        pipe.send((function(processes.join("cpu"), *arguments),))
        processes.leave()
    except BaseException:
        pipe.send(traceback.format_exc())
