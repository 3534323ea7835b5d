"""What an r-LSTM remembers: segments of test images rebuilt, free-running, from its state at an anchor.

Adds `K`, the test images that are shown.
"""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from auxrnn import runs
from auxrnn.auxiliary import Reconstruct
from auxrnn.bptt import states_at
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Split, in_order
from auxrnn.experiments.jobs import Folders, Job
from auxrnn.files import write_aside
from auxrnn.models.network import Network
from auxrnn.report.records import MemoryErrors, Reconstructions, read_record
from auxrnn.structs import Segments

NUM_PICTURES = 8


def keep_best(jobs: Iterable[Job], folders: Folders, *, path: Path) -> None:
    """Keep what the best r-LSTM on gray images rebuilds, where its weights are here; the best in training, not in test.

    Anchors go from the first that has a whole segment behind it to the end of the image.
    """
    is_gray = [job for job in jobs if job.config.data.data == "mnist" and job.config.loss.objective == "reconstruct"]
    found = {job.name: read_record(folders.record(job.name)) for job in is_gray}
    scores = {
        folders.runs / name: record.scores["train_accuracy"]
        for name, record in found.items()
        if record is not None and runs.is_finished(folders.runs / name)
    }
    if scores:
        folder = max(scores, key=lambda run_folder: scores[run_folder])
        length = runs.read_config(folder).segments.segment_length
        assert isinstance(length, int)
        anchor_K = torch.linspace(length, runs.read_card(folder).num_steps - 1, NUM_PICTURES).long()
        keep_reconstructions(folder, runs.load_split(folder, "test"), anchor_K, path=path)


def keep_reconstructions(run_folder: Path, test: Split, anchor_K: Int[Tensor, " K"], *, path: Path) -> Reconstructions:
    """Let the r-LSTM of a run rebuild what it read before one anchor of the first images of K classes; keep it."""
    rows = [int(np.flatnonzero(test.label_N == label)[0]) for label in range(len(anchor_K))]
    shown = rebuild(run_folder, test.select(np.array(rows)), anchor_K)
    file = io.BytesIO()
    np.savez(file, **shown._asdict())
    write_aside(path, file.getvalue())
    return shown


@torch.inference_mode()
def rebuild(run_folder: Path, images: Split, anchor_K: Int[Tensor, " K"]) -> Reconstructions:
    """Return what the r-LSTM of a run rebuilds, free-running, of each image from its state at that image's anchor."""
    _, card, network, _ = runs.load_run(run_folder)
    assert isinstance(network, Network)
    objective = network.objective
    assert isinstance(objective, Reconstruct)
    assert isinstance(card.format, ImageFormat)
    (batch,) = in_order(images, len(anchor_K))
    length_K = torch.full_like(anchor_K, objective.geometry.segment_length)
    segments = Segments(torch.arange(len(anchor_K)), anchor_K, anchor_K - length_K, length_K)
    (state,) = states_at(network.encoder, batch.x_BT, [objective.gradient_window(batch, segments)])
    rebuilt_KSD = objective.generate(network.encoder, batch, segments, state)
    is_reversed = objective.order == "reversed"
    height, width = card.format.size
    return Reconstructions(
        image_KT=batch.x_BT[:, :, 0].numpy(),
        anchor_K=segments.anchor_M.numpy(),
        start_K=segments.start_M.numpy(),
        length_K=segments.length_M.numpy(),
        reconstruction_KS=(rebuilt_KSD.flip(1) if is_reversed else rebuilt_KSD)[:, :, 0].numpy(),
        label_K=batch.label_B.numpy(),
        is_reversed=is_reversed,
        height=height,
        width=width,
    )


def find_mean_image(train: Split) -> Float[np.ndarray, " T"]:
    """Return the mean of gray images of one size, as a sequence of pixels."""
    (batch,) = in_order(train, train.num_examples)
    mean_T: Float[np.ndarray, " T"] = batch.x_BT[:, :, 0].numpy().mean(axis=0)
    return mean_T


def measure_split(
    run_folder: Path, images: Split, anchor_K: Int[Tensor, " K"], *, mean_image_T: Float[np.ndarray, " T"]
) -> MemoryErrors:
    """Return the errors of rebuilding every image of a split from each of the anchors."""
    rebuilt = (rebuild(run_folder, images, anchor.expand(images.num_examples)) for anchor in anchor_K)
    return MemoryErrors(*np.mean([each.measure(mean_image_T) for each in rebuilt], axis=0).tolist())
