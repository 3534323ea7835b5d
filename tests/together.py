"""Several processes that train together, made of this one, as torchrun would start them."""

import multiprocessing
import os
import socket
import traceback

import torch

from auxrnn.training import processes

# Processes that begin with what is imported here: fresh ones would take seconds to import torch.
FORK = multiprocessing.get_context("fork")
SECONDS = 120


def find_port():
    """Find a port on loopback that nobody uses."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def run_together(num_processes, function, *arguments):
    """Give what `function(processes, *arguments)` returns in each of so many processes."""
    port, pipes, children = find_port(), [], []
    for rank in range(num_processes):
        ours, theirs = FORK.Pipe()
        child = FORK.Process(target=_run, args=(theirs, (rank, num_processes, port), function, arguments))
        child.start()
        pipes.append(ours)
        children.append(child)
    try:
        answers = [pipe.recv() if pipe.poll(SECONDS) else "no answer in time" for pipe in pipes]
    finally:
        for child in children:
            child.join(10)
            child.kill()
    wrong = [answer for answer in answers if isinstance(answer, str)]
    assert not wrong, wrong[0]
    return [answer[0] for answer in answers]


def _run(pipe, place, function, arguments):
    rank, num_processes, port = place
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": num_processes, "LOCAL_WORLD_SIZE": num_processes}
    variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "test"}
    os.environ.update({name: str(value) for name, value in variables.items()})
    torch.set_num_threads(1)
    try:
        pipe.send((function(processes.join("cpu"), *arguments),))
        # The first one keeps what the others find each other by.
        processes.leave()
    except BaseException:
        pipe.send(traceback.format_exc())
