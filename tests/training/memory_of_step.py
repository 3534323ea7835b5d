"""Measures one training step in a process of its own; prints JSON. Run by `test_memory.py`: T objective n l."""

import json
import sys

import torch

from auxrnn.build import InputSpec, build_network
from auxrnn.config import unflatten
from auxrnn.models.network import LossTerms
from auxrnn.structs import Draws, SequenceBatch
from auxrnn.training.cost import read_memory, reset_peak
from auxrnn.training.optimizers import RMSProp, back_propagate

BATCH_SIZE = 64


def main() -> None:
    num_steps, objective, num_segments, segment_length, window = sys.argv[1:]
    torch.set_num_threads(1)
    values = {
        "data": "noise",
        "objective": objective,
        "num_segments": int(num_segments),
        "segment_length": int(segment_length),
        "auxiliary_window": window if window == "full" else int(window),
        "supervised_window": window if window == "full" else int(window),
    }
    network = build_network(unflatten(values), InputSpec(1, None, 10, int(num_steps)))
    optimizer = RMSProp(network.parameters(), lr=1e-3)
    batch = SequenceBatch(torch.rand(BATCH_SIZE, int(num_steps), 1), torch.zeros(BATCH_SIZE, dtype=torch.long))
    task = LossTerms(True, objective != "none", values["supervised_window"])
    before = read_memory("VmRSS")
    for step in range(2):
        reset_peak()
        losses = network.losses(batch, terms=task, draws=Draws(0, "memory", step), true_probability=0.5)
        back_propagate(network, losses.combine(1.0), clip_norm=1.0)
        optimizer.step()
    input_bytes = batch.x_BT.numel() * batch.x_BT.element_size()
    sys.stdout.write(json.dumps({"peak": read_memory("VmHWM") - before, "input": input_bytes}) + "\n")


main()
