"""What an r-LSTM remembers: segments of test images reconstructed from its state at an anchor, fed its own output.

Adds `K`, the test images that are shown.
"""

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from auxrnn import runs, saved
from auxrnn.auxiliary import Reconstruct
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Split, in_order
from auxrnn.experiments.jobs import Folders, Job
from auxrnn.files import write_aside
from auxrnn.findings import rebuild as rebuild_segments
from auxrnn.findings import to_pictures
from auxrnn.models.network import Network
from auxrnn.report.records import MemoryErrors, Reconstructions, read_record

NUM_PICTURES = 8


def keep_best(jobs: Iterable[Job], folders: Folders, *, path: Path) -> None:
    """Keep reconstructions of the r-LSTM on MNIST with the highest training accuracy, if there are any weights here.

    Anchors go from the first that has a whole segment behind it to the end of the image.
    """
    helped = (job for job in jobs if job.config.data.data == "mnist" and job.config.loss.objective == "reconstruct")
    finished = [job.name for job in helped if saved.is_finished(folders.runs / job.name)]
    records = {folders.runs / name: read_record(folders.record(name)) for name in finished}
    scores = {folder: record.scores["train_accuracy"] for folder, record in records.items() if record}
    if scores:
        folder = max(scores, key=scores.__getitem__)
        length = saved.read_config(folder).segments.segment_length
        assert isinstance(length, int)
        anchor_K = torch.linspace(length, saved.read_card(folder).num_steps - 1, NUM_PICTURES).long()
        keep_reconstructions(folder, runs.load_split(folder, "test"), anchor_K, path=path)


def keep_reconstructions(run_folder: Path, test: Split, anchor_K: Int[Tensor, " K"], *, path: Path) -> Reconstructions:
    """Reconstruct and keep a segment of the first test image of each of K classes."""
    rows = [int(np.flatnonzero(test.label_N == label)[0]) for label in range(len(anchor_K))]
    shown = rebuild(run_folder, test.select(np.array(rows)), anchor_K)
    file = io.BytesIO()
    np.savez(file, **shown._asdict())
    write_aside(path, file.getvalue())
    return shown


def rebuild(run_folder: Path, images: Split, anchor_K: Int[Tensor, " K"]) -> Reconstructions:
    """Return what the r-LSTM of a run reconstructs of each image from its state at that image's anchor."""
    trained = saved.load_run(run_folder)
    network, form = trained.network, trained.card.format
    assert isinstance(network, Network)
    assert isinstance(network.objective, Reconstruct)
    assert isinstance(form, ImageFormat)
    (batch,) = in_order(images, len(anchor_K))
    is_reversed = network.objective.order == "reversed"
    return to_pictures(rebuild_segments(network, batch, anchor_K), batch, form.size, is_reversed=is_reversed)


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
