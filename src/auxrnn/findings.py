"""What finished runs have learned, as plain numbers for their pages: answers, when they come, and what is remembered.

Adds `N`, the sequences that are looked at, `P`, places along each of them, and `K`, the segments that are rebuilt.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from auxrnn import environment, pretraining, runs, saved
from auxrnn.auxiliary import Reconstruct, find_targets, gather_tokens
from auxrnn.bptt import CHUNK, states_at
from auxrnn.build import count_weights
from auxrnn.config import SplitName
from auxrnn.data.formats import Format, SymbolFormat, TextFormat, count_values, steps_per_input
from auxrnn.data.images import ImageFormat
from auxrnn.data.sequences import Split, by_length, in_order
from auxrnn.files import damaged, digest
from auxrnn.models.network import Network
from auxrnn.report.comparisons import Compared
from auxrnn.report.records import Reconstructions, read_events
from auxrnn.report.run_pages import Answers, Course, Events, Findings, Remembered, ShownSegment, find_settings
from auxrnn.structs import RNNState, Segments, SequenceBatch
from auxrnn.training.calibration import expected_calibration_error, measure_reliability
from auxrnn.training.evaluate import count_answers, predict_split

NUM_PLACES, NUM_SHOWN, BATCH_SIZE = 16, 8, 64
MOST_SEQUENCES, MOST_STEPS, FEWEST_SEQUENCES, MOST_REBUILT = 2000, 3_000_000, 50, 200
"""How much of a split is read for a page, so that it takes seconds to a minute."""


def look_at(
    folder: Path, split: SplitName = "test", *, data: Path | None = None, data_dir: Path | None = None
) -> Findings:
    """Return what a finished run shows on one of its splits: of a large one, on sequences spread evenly over it.

    `data` and `data_dir` are where its data is, if it has moved.
    """
    trained, whole = saved.load_run(folder), runs.load_split(folder, split, data=data, data_dir=data_dir)
    network, events = trained.network, _read_progress(folder)
    examples = _spread(whole, MOST_SEQUENCES)
    course = remembered = None
    if isinstance(network, Network):
        examples = examples.select(by_length(examples))
        share_P = torch.linspace(1 / NUM_PLACES, 1, NUM_PLACES, dtype=torch.float64)
        logits_NPC = torch.cat([read_along(network, batch, share_P) for batch in in_order(examples, BATCH_SIZE)])
        logits_NC, course = logits_NPC[:, -1], _find_course(logits_NPC, examples, share_P)
        remembered = rebuild_some(network, trained.card, whole)
    else:
        logits_NC = predict_split(network, examples, batch_size=BATCH_SIZE)
    answers = _find_answers(logits_NC, torch.from_numpy(examples.label_N), trained)
    made = str(folder), trained.config, count_weights(network), events, environment.read_environment(folder)
    return Findings(*made, split, whole.num_examples, answers, course, remembered)


def read_answers(
    folder: Path, split: SplitName = "test", *, data: Path | None = None, data_dir: Path | None = None
) -> Compared:
    """Return which sequences of a split a finished run classifies correctly, and what it may be compared by."""
    trained, examples = saved.load_run(folder), runs.load_split(folder, split, data=data, data_dir=data_dir)
    network, config, events = trained.network, trained.config, _read_progress(folder)
    answer_N = predict_split(network, examples, batch_size=BATCH_SIZE).argmax(dim=1).numpy()
    settings = {name: value for name, value in find_settings(config).items() if name not in pretraining.WITHOUT_EFFECT}
    # Data that has changed since a run began is refused, so the same place means the same data.
    place = f"{config.data.data} {config.data.test_data} {config.data.length} {trained.card.class_names}"
    examples_digest = digest(place.encode() + examples.row_N.tobytes() + examples.label_N.tobytes())
    is_right = (answer_N == examples.label_N).tolist()
    return Compared(str(folder), settings, count_weights(network), events, examples_digest, is_right)


def _read_progress(folder: Path) -> Events:
    """Return the events of a finished run, among which there are evaluations."""
    events = read_events(folder)
    if not any(event["event"] == "evaluation" for event in events):
        raise damaged(folder / saved.METRICS)
    return events


def _spread(split: Split, most: int) -> Split:
    """Return at most so many examples, fewer if they are long, evenly spread: files are often sorted by class."""
    most = min(most, max(FEWEST_SEQUENCES, int(MOST_STEPS / split.length_N.mean())))
    return split.select(np.unique(np.linspace(0, split.num_examples - 1, most).astype(np.int64)))


def _find_answers(logits_NC: Float[Tensor, "N C"], label_N: Int[Tensor, " N"], trained: saved.TrainedRun) -> Answers:
    # The logits are divided by the temperature already; without it comes first.
    factors = (trained.temperature, 1.0) if trained.temperature != 1 else (1.0,)
    probabilities = [(factor * logits_NC).softmax(dim=1) for factor in factors]
    return Answers(
        trained.card.class_names,
        count_answers(logits_NC, label_N).confusion_CC.tolist(),
        [measure_reliability(each, label_N) for each in probabilities],
        [expected_calibration_error(each, label_N) for each in probabilities],
        trained.temperature,
    )


def _find_course(logits_NPC: Float[Tensor, "N P C"], examples: Split, share_P: Float[Tensor, " P"]) -> Course:
    is_right_NP = logits_NPC.argmax(dim=2) == torch.from_numpy(examples.label_N)[:, None]
    accuracy_P = 100 * is_right_NP.double().mean(dim=0)
    x_P, num_steps = 100 * share_P, int(examples.num_steps_N[0])
    is_equal = bool((examples.num_steps_N == num_steps).all())
    if is_equal:
        inputs_P = find_steps(torch.from_numpy(examples.length_N[:1]), share_P)[0]
        x_P = (inputs_P * examples.encoding.steps_per_input).clamp(max=num_steps)
    points = dict(zip(x_P.tolist(), accuracy_P.tolist(), strict=True))
    return Course(points, num_steps if is_equal else None)


def find_steps(length_B: Int[Tensor, " B"], share_P: Float[Tensor, " P"]) -> Int[Tensor, "B P"]:
    """Return how many steps each share of a sequence is, at least one."""
    return (length_B[:, None] * share_P - 1e-9).ceil().long().clamp(min=1)


@torch.inference_mode()
def read_along(network: Network, batch: SequenceBatch, share_P: Float[Tensor, " P"]) -> Float[Tensor, "B P C"]:
    """Return the logits after each share of the steps of each sequence, from one pass over them."""
    (num_rows, num_columns), steps_BP = batch.x_BT.shape[:2], find_steps(batch.length_B, share_P)
    first_B = torch.zeros(num_rows, dtype=torch.long) if batch.first_B is None else batch.first_B
    column_BP, state = first_B[:, None] + steps_BP - 1, network.encoder.initial_state(num_rows)
    hidden_size = state.h_LBH.shape[2]
    last_BPH = state.h_LBH.new_zeros(*steps_BP.shape, hidden_size)
    total_BPH, total_BH = last_BPH.clone(), last_BPH[:, 0].clone()
    for start in range(0, num_columns, CHUNK):
        part_BS = batch.x_BT[:, start : start + CHUNK]
        begin_B = (first_B - start).clamp(0, part_BS.shape[1])
        h_BSH, state = network.encoder(part_BS, state, begin_B=begin_B)
        is_read_BS = torch.arange(part_BS.shape[1]) >= begin_B[:, None]
        total_BSH = total_BH[:, None] + torch.where(is_read_BS[:, :, None], h_BSH, 0.0).cumsum(dim=1)
        total_BH = total_BSH[:, -1]
        row_M, place_M = ((column_BP >= start) & (column_BP < start + CHUNK)).nonzero(as_tuple=True)
        column_M = column_BP[row_M, place_M] - start
        last_BPH[row_M, place_M] = h_BSH[row_M, column_M]
        total_BPH[row_M, place_M] = total_BSH[row_M, column_M]
    last_1MH, mean_MH = last_BPH.reshape(1, -1, hidden_size), (total_BPH / steps_BP[:, :, None]).flatten(0, 1)
    logits_MC = network.classify(RNNState(last_1MH, last_1MH), mean_BH=mean_MH if network.readout == "mean" else None)
    return logits_MC.reshape(*steps_BP.shape, -1)


class Rebuilt(NamedTuple):
    """Segments that an r-LSTM rebuilt from its state at their last step, in the order in which they were read."""

    segments: Segments
    true: list[Shaped[np.ndarray, "S *D"]]
    rebuilt: list[Shaped[np.ndarray, "S *D"]]


@torch.inference_mode()
def rebuild(network: Network, batch: SequenceBatch, anchor_K: Int[Tensor, " K"]) -> Rebuilt:
    """Rebuild the segment before an anchor of each sequence; of the true segment, what had to be predicted."""
    objective = network.objective
    assert isinstance(objective, Reconstruct)
    length_K = (batch.length_B - 1).clamp(max=objective.geometry.segment_length)
    segments = Segments(torch.arange(len(anchor_K)), anchor_K, anchor_K - length_K, length_K)
    (state,) = states_at(
        network.encoder, batch.x_BT, [objective.gradient_window(batch, segments)], first_B=batch.first_B
    )
    rebuilt_KS = objective.generate(network.encoder, batch, segments, state)
    _, target_KS, is_there_KSD = gather_tokens(batch, segments, order=objective.order)
    if target_KS.dim() == 3:
        # A mask is no target, nor is a value that is missing.
        num_values = objective.decoder.head.output.out_features
        target_KS, rebuilt_KS = target_KS[:, :, :num_values], rebuilt_KS[:, :, :num_values]
    if is_there_KSD is not None:
        target_KS = torch.where(is_there_KSD, target_KS, torch.nan)
    is_target_KS, step = find_targets(segments), -1 if objective.order == "reversed" else 1
    true, rebuilt = (
        [row_S[is_in_S].numpy()[::step] for row_S, is_in_S in zip(each_KS, is_target_KS, strict=True)]
        for each_KS in (target_KS, rebuilt_KS)
    )
    return Rebuilt(segments, true, rebuilt)


def to_pictures(found: Rebuilt, batch: SequenceBatch, size: tuple[int, int], *, is_reversed: bool) -> Reconstructions:
    """Return rebuilt segments of the first gray images of a batch, of a height and width, as parts of these."""
    rebuilt_KS = np.stack(found.rebuilt)[:, :, 0]
    image_KT, anchor_K = (each[: len(rebuilt_KS)].numpy() for each in (batch.x_BT[:, :, 0], found.segments.anchor_M))
    return Reconstructions(image_KT, anchor_K, rebuilt_KS, is_reversed, *size)


def rebuild_some(network: Network, card: saved.ModelCard, whole: Split) -> Remembered | None:
    """Return segments that an r-LSTM rebuilds, those of different classes first; None of any other network.

    Anchors go from the first with a whole segment behind it to the end of the sequence, again and again.
    """
    examples = whole.select(np.flatnonzero(whole.length_N > 1))
    if not isinstance(network.objective, Reconstruct) or not examples.num_examples:
        return None
    examples = _by_turns(_spread(examples, MOST_REBUILT))
    (batch,) = in_order(examples, examples.num_examples)
    last_K, share_K = batch.length_B - 1, torch.arange(examples.num_examples) % NUM_SHOWN / (NUM_SHOWN - 1)
    length_K = last_K.clamp(max=network.objective.geometry.segment_length)
    found = rebuild(network, batch, length_K + ((last_K - length_K) * share_K).long())
    is_reversed, form, names = network.objective.order == "reversed", card.format, card.class_names
    shown = [
        _show(found, row, names[label], form, is_reversed=is_reversed)
        for row, label in enumerate(examples.label_N[:NUM_SHOWN].tolist())
    ]
    images, tokens = None, "integers" if isinstance(form, SymbolFormat) else ""
    if isinstance(form, TextFormat):
        tokens = form.tokens
    elif isinstance(form, ImageFormat) and form.permutation is None and form.channels == form.steps_per_input == 1:
        few = found._replace(rebuilt=found.rebuilt[:NUM_SHOWN])
        images = to_pictures(few, batch, form.size, is_reversed=is_reversed)
    return Remembered(shown, images, tokens, _score(found), examples.num_examples, is_reversed)


def _by_turns(split: Split) -> Split:
    """Return the same examples, one of each class first."""
    _, first = np.unique(split.label_N, return_index=True)
    rest = np.setdiff1d(np.arange(split.num_examples), first)
    return split.select(np.concatenate([first, rest]).astype(np.int64))


def _score(found: Rebuilt) -> tuple[float, float]:
    """Return how good rebuilt segments are, and the best constant: percent of right tokens, or mean squared errors."""
    true, rebuilt = np.concatenate(found.true), np.concatenate(found.rebuilt)
    if np.issubdtype(true.dtype, np.integer):
        return 100 * float((rebuilt == true).mean()), 100 * float((true == np.bincount(true).argmax()).mean())
    true = np.ma.masked_invalid(true)
    return float(np.square(rebuilt - true).mean()), float(np.square(true.mean(axis=0) - true).mean())


def _show(found: Rebuilt, row: int, title: str, form: Format, *, is_reversed: bool) -> ShownSegment:
    # The one input that was given is not shown: the last one, or the first.
    first, anchor = (int(steps_M[row]) for steps_M in (found.segments.start_M, found.segments.anchor_M))
    width, is_token = steps_per_input(form), isinstance(form, TextFormat | SymbolFormat)
    true, rebuilt = (
        _spell(part[row], form) if is_token else part[row].reshape(-1, count_values(form))
        for part in (found.true, found.rebuilt)
    )
    return ShownSegment(title, width * (first + (0 if is_reversed else 1)) + 1, width * (anchor + 1), true, rebuilt)


def _spell(token_S: Int[np.ndarray, " S"], form: Format) -> tuple[str, ...]:
    """Return tokens as people read them, in that order and equally wide; a box stands for those without a name."""
    names: Sequence[str] = "".join(map(chr, range(128)))
    if isinstance(form, SymbolFormat):
        words = [f"{symbol:.0f}" for symbol in form.symbols or ()]
        names = [word.rjust(max(map(len, words))) for word in words]
    elif isinstance(form, TextFormat) and form.alphabet is not None:
        names = form.alphabet
    found = [names[token] if token < len(names) else "\u25a1".rjust(len(names[0])) for token in token_S.tolist()]
    return tuple(found[::-1] if isinstance(form, TextFormat) and form.is_backward else found)
