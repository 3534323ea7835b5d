"""Commands with flags, config files, run folders, weights, standard input and streams that are changed or made up.

Commands run in this process. Their trainings end after one update, and no networks are compared: the time that a
training takes is not what is tested here.
"""

import contextlib
import io
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin
from unittest import mock

import numpy as np
import safetensors.torch
import torch

from auxrnn import cli, planning, runs, saved
from auxrnn.cli import commands
from auxrnn.config import FIELDS, read_file
from auxrnn.errors import RunError, UsageError
from auxrnn.files import SUMS, printable
from auxrnn.presets import MODEL_OPTIONS, PRESETS, ModelName
from auxrnn.report.records import read_events
from auxrnn.streaming import Stream
from auxrnn.training import loop, record
from stress.mutations import NUMBERS, WORDS, encode_all, mutate, mutate_json
from stress.targets import MistakeError, Target, Targets, check_json, check_sentence

SEPARATOR = "\x1f"
"""Between the words of a command, which is one input."""
TINY = {
    "hidden_size": "4", "embedding_size": "4", "head_size": "8", "num_layers": "1", "num_heads": "1",
    "filter_size": "8", "pad_to": "150", "depth": "9", "train_examples": "20", "batch_size": "10",
    "segment_length": "5", "auxiliary_window": "3", "supervised_window": "3", "threads": "1",
    "validation_fraction": "0.2", "train_steps": "1", "pretrain_steps": "1",
}  # fmt: skip
RUNS = {"texts": "texts.csv", "series": "series.npz", "images": "digits"}
"""Finished runs, and the data of each."""
NEW = {"texts": "new.txt", "series": "new.npy", "images": "digit.npy"}
"""What each of them can predict."""
DATA = (*RUNS.values(), "adding")
USES = (
    ["predict", "copy", "NEW", "--json"],
    ["predict", "copy", "NEW"],
    ["evaluate", "copy", "--json"],
    ["evaluate", "copy"],
)
OTHER_COMMANDS = (
    ["predict", "run-texts", "new.txt"], ["evaluate", "run-texts"], ["resume", "run-texts"], ["models"], ["info"],
    ["data", "check", "texts.csv"], ["data", "list"], ["data", "show", "series.npz"],
    ["cost", "texts.csv", "--hidden-size", "4"],
)  # fmt: skip
ONLY_PARSED = ("reproduce", "report", "demo", "bench", "data fetch")
"""What these do takes long, so that only their flags are read."""
INTEGERS = tuple(number for number in NUMBERS if re.fullmatch("-?[0-9]+", number))
SAFE_WORDS = tuple(word for word in WORDS if "../" not in word)
"""Those that name no new folder outside of this one."""
NOT_FINITE = re.compile(r"\b(nan|inf)\b")
STREAM_TOKENS = encode_all([*NUMBERS, *WORDS, "\n", "\n\n", " ", ",", "\r\n"])
EXTREMES = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, -3.4e38, 3.4e38, float("nan"), float("inf"), -float("inf"))
NUM_FLAGS = (1, 1, 1, 2, 3)


def command_targets(folder: Path) -> Targets:
    """Return the targets; they work in a folder, in which the first that is used trains three tiny networks."""
    base = Workshop(folder)
    files = {
        "config.json": 9_000,
        "model.json": 9_000,
        "splits.json": 4_000,
        "metrics.jsonl": 4_000,
        "environment.json": 1_000,
    }
    of_run = {
        name: Target(share, partial(_make_json, base, name), partial(_use_run, base, name))
        for name, share in files.items()
    }
    return {
        "stdin": Target(6_000, partial(mutate, seeds=STREAMS, tokens=STREAM_TOKENS), partial(_use_stdin, base)),
        "steps": Target(40_000, lambda rng: rng.randbytes(8), partial(_use_stream, base)),
        "toml": Target(45_000, _make_toml, partial(_use_toml, base)),
        "flags": Target(8_000, _make_flags, partial(_use_flags, base)),
        "read json": Target(50_000, partial(_make_any_json, base), partial(_read_json, base)),
        "weights": Target(6_000, partial(_make_weights, base), partial(_use_run, base, saved.FINAL)),
        "checkpoints": Target(15_000, partial(_make_checkpoint, base), partial(_use_checkpoint, base)),
        **of_run,
    }


class Workshop:
    """The folder in which commands run, with data and finished runs that are made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "commands"
        self.is_made = False

    def enter(self) -> Path:
        """Go to the folder, and make what is in it."""
        if not self.is_made:
            self.is_made = True
            logging.disable(logging.CRITICAL)
            if not self.folder.exists():
                self._make()
            os.chdir(self.folder)
        return self.folder

    def _make(self) -> None:
        self.folder.mkdir()
        os.chdir(self.folder)
        rng = np.random.default_rng(0)
        letters = ["".join(rng.choice(list("abc "), 12)) for _ in range(40)]
        Path("texts.csv").write_text(
            "text,label\n" + "".join(f"x{text},{'pq'[row % 2]}\n" for row, text in enumerate(letters))
        )
        Path("new.txt").write_text("abc\nxyz\n")
        np.savez("series.npz", x=rng.standard_normal((40, 6, 2)), y=np.arange(40) % 3)
        np.save("new.npy", rng.standard_normal((2, 6, 2)))
        np.save("digit.npy", np.zeros((14, 14), dtype=np.uint8))
        for name, data in RUNS.items():
            code, _, err = _call(["train", data, *_tiny("lstm"), "--out", f"run-{name}"])
            assert code == 0, err
            _make_old(Path(f"run-{name}"))


def _make_old(folder: Path) -> None:
    """Let a run be of an earlier version, without checksums: otherwise nothing but these would be tested."""
    (folder / SUMS).unlink()
    config = folder / saved.CONFIG
    config.write_text(json.dumps(json.loads(config.read_bytes()) | {"format": 2}))


def _call(words: Sequence[str], stdin: bytes = b"") -> tuple[int, str, str]:
    """Run a command; return its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
    ):
        try:
            code = cli.run(words)
        finally:
            torch.set_num_threads(1)
    return code, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def _short_trainings() -> Iterator[None]:
    """End every training after its first update, and compare no networks."""

    def train(session: loop.Session, checkpoint: record.Checkpoint | None = None) -> bool:
        session.should_stop = lambda: True
        return loop.train(session, checkpoint)

    with (
        mock.patch.object(runs, "train", train),
        mock.patch.object(planning.Planner, "_try", return_value=(0.0, 0.0)),
    ):
        yield


def _check_command(words: Sequence[str], stdin: bytes = b"") -> None:
    """Run a command and check what it says; raise `RunError` where it refuses."""
    with _short_trainings():
        code, out, err = _call(words, stdin)
    if "--json" in words:
        for line in out.splitlines():
            check_json(line)
    sentences = [line for line in err.splitlines() if line.startswith("auxrnn: ")]
    if code not in (0, 1, 2, 130) or len(sentences) > 1:
        raise MistakeError(f"an end that is none: code {code}, {err!r}")
    for sentence in sentences:
        check_sentence(sentence)
    if NOT_FINITE.search(out):
        raise MistakeError(f"an answer that is not finite: {out[:200]}")
    if code in (1, 2):
        if not sentences and words[:2] != ["data", "check"]:
            raise MistakeError(f"a failure without a sentence: {words} {err!r}")
        raise RunError("refused")


STREAMS = (b"0.5\n0.25\n\n1\n", b"0.5 1.5\n2,3\n\n1e3 -4\n", b"abc abc\nxyz\n", b"\x89PNG\r\n\x1a\n")


def _use_stdin(base: Workshop, content: bytes) -> None:
    base.enter()
    rng = Random(content)  # noqa: S311 - must be repeatable
    how = rng.choice((["--stream"], ["--stream", "--json"], ["--json"]))
    _check_command(["predict", f"run-{rng.choice([*RUNS])}", "-", *how], content)


def _use_stream(base: Workshop, content: bytes) -> None:
    """Push a few steps of any shape, type and size; the library's own `ValueError`s and `IndexError`s refuse them."""
    base.enter()
    rng, name = np.random.default_rng([*content]), [*RUNS][content[0] % 3]
    stream = Stream(_load_network(name), 2)
    for _ in range(3):
        with contextlib.suppress(ValueError, IndexError):
            probability_BC = stream.step(_draw_steps(rng, name))
            if not torch.isfinite(probability_BC).all():
                raise MistakeError("a probability that is not finite: of Stream.step")


def _load_network(name: str) -> Any:
    if name not in NETWORKS:
        NETWORKS[name] = saved.load_run(f"run-{name}").network
    return NETWORKS[name]


NETWORKS: dict[str, Any] = {}


def _draw_steps(rng: np.random.Generator, name: str) -> Any:
    shape = {"texts": (2, 3), "series": (2, 3, 2), "images": (2, 3, 1)}[name]
    if rng.random() < 0.3:
        shape = tuple(rng.integers(0, 4, rng.integers(0, 4)).tolist())
    values = rng.integers(0, 6, shape).astype(np.float64) if name == "texts" else rng.standard_normal(shape)
    if rng.random() < 0.7 and values.size:
        values.flat[rng.integers(values.size)] = rng.choice(
            EXTREMES if rng.random() < 0.7 else [-1.0, 5.0, 1e9, -(2.0**63)]
        )
    with np.errstate(invalid="ignore", over="ignore"):
        steps = values.astype(rng.choice(["f8", "f4", "f2", "i8", "i4", "u1", "?"]))
    kinds: tuple[Callable[[Any], Any], ...] = (np.asarray, torch.from_numpy, lambda steps: steps.tolist())
    return kinds[rng.integers(3)](np.asarray(steps))


def _tiny(model: ModelName, *, has_length: bool = True) -> list[str]:
    """Return the flags of a tiny network that have an effect on it, with or without the length of its training."""
    values = {name: value for name, value in TINY.items() if _has_effect(name, model)}
    if not _has_effect("objective", model):
        values.pop("pretrain_steps", None)
    if not has_length:
        values = {name: value for name, value in values.items() if not name.endswith("train_steps")}
    return [
        "--recipe",
        "paper",
        "--model",
        model,
        *(word for name, value in values.items() for word in (_flag(name), value)),
    ]


def _has_effect(name: str, model: ModelName) -> bool:
    return name not in MODEL_OPTIONS or name in PRESETS[model].options


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _draw_value(rng: Random, hint: Any) -> str:
    """Draw a value for a field: mostly one of its own kind, otherwise any number or word."""
    options = get_args(hint) if get_origin(hint) is not Literal else (hint,)
    words = [str(word) for option in options or (hint,) if get_origin(option) is Literal for word in get_args(option)]
    plausible = [*words, *(INTEGERS if int in (*options, hint) else NUMBERS)]
    chance = rng.random()
    return rng.choice(plausible if chance < 0.8 else NUMBERS if chance < 0.9 else WORDS)


def _draw_flags(rng: Random, model: ModelName = "lstm") -> list[str]:
    """Draw a few flags, most of which have an effect on the model."""
    known, words = [name for name in FIELDS if _has_effect(name, model)], list[str]()
    for name in rng.choices(known if rng.random() < 0.95 else [*FIELDS], k=rng.choice(NUM_FLAGS)):
        flag, value, chance = _flag(name), _draw_value(rng, FIELDS[name]), rng.random()
        words += [f"{flag}={value}"] if chance < 0.3 else [flag, value] if chance < 0.95 else ["--no-" + flag[2:]]
    return words


def _make_flags(rng: Random) -> bytes:
    """Make a command: mostly a training with a few strange flags, otherwise any other."""
    if rng.random() < 0.75:
        model: ModelName = rng.choice([*PRESETS]) if rng.random() < 0.4 else "lstm"
        base, more = _tiny(model), _draw_flags(rng, model)
        if rng.random() < 0.1:
            base, more = _tiny(model, has_length=False), [*more, "--minutes", rng.choice(NUMBERS)]
        word = rng.choice(SAFE_WORDS)
        others: tuple[list[str], ...] = (
            [], [], [], [], [], ["--json"], ["--pretrained", "run-texts"], ["--init-from", "run-texts"],
            [rng.choice(("--out", "--config", "--pretrained")), word],
        )  # fmt: skip
        # What reads whole sequences is slow on long ones, whatever its size.
        data = rng.choice(DATA if PRESETS[model].is_recurrent else DATA[:2])
        words = ["train", data, *base, "--out", "out", *more, *rng.choice(others)]
    else:
        commands = [*OTHER_COMMANDS, *(name.split() for name in ONLY_PARSED)]
        words = [*rng.choice(commands), *rng.choices(WORDS, k=rng.randrange(2)), *_draw_flags(rng)]
    content = SEPARATOR.join(words).encode("utf-8", "surrogateescape")
    return content if rng.random() < 0.8 else mutate(rng, [content], encode_all(WORDS))


def _use_flags(base: Workshop, content: bytes) -> None:
    base.enter()
    words = content.decode("utf-8", "surrogateescape").split(SEPARATOR)
    if any(" ".join(words).startswith(name) for name in ONLY_PARSED):
        _parse(words)
        return
    try:
        _check_command(words)
    finally:
        shutil.rmtree("out", ignore_errors=True)
        shutil.rmtree("runs", ignore_errors=True)


def _parse(words: Sequence[str]) -> None:
    """Read the flags of a command without running it, as the command line does."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            commands._parse(words)
        except UsageError as error:
            raise UsageError(printable(str(error))) from error


def _make_toml(rng: Random) -> bytes:
    lines = []
    for name in rng.choices([*FIELDS, "recipe", "unknown"], k=rng.randrange(1, 6)):
        value = _draw_value(rng, FIELDS.get(name, str))
        lines.append(f"{name.replace('_', rng.choice('-_'))} = {value if rng.random() < 0.6 else json.dumps(value)}")
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    return content if rng.random() < 0.7 else mutate(rng, [content], TOML_TOKENS)


TOML_TOKENS = encode_all(
    [*NUMBERS, *WORDS, "=", "[", "]", "[a]\n", "'''", '"""', "{", "}", "1979-05-27", "#", "\n", "a.b = 1\n", "[" * 3000]
)


def _use_toml(base: Workshop, content: bytes) -> None:
    path = base.enter() / "fuzzed.toml"
    path.write_bytes(content)
    if Random(content).random() < 0.96:  # noqa: S311 - must be repeatable
        read_file(path)
        return
    try:
        _check_command(["train", "texts.csv", *_tiny("lstm")[4:], "--config", "fuzzed.toml", "--out", "out"])
    finally:
        shutil.rmtree("out", ignore_errors=True)


def _use_run(base: Workshop, name: str, content: bytes) -> None:
    """Use a copy of a run in which one file has another content; the first line of the input names the run."""
    base.enter()
    rng, (run, _, changed) = Random(content), content.partition(b"\n")  # noqa: S311 - must be repeatable
    shutil.rmtree("copy", ignore_errors=True)
    shutil.copytree(f"run-{run.decode()}", "copy")
    folder = Path("copy")
    if name == saved.FINAL:
        (folder / loop.BEST).unlink(missing_ok=True)
    (folder / name).write_bytes(changed)
    words = rng.choice(USES)
    if name != saved.FINAL and rng.random() < 0.4:
        words = ["resume", "copy", "--json"]
        if rng.random() < 0.7:
            (folder / saved.FINAL).unlink()
    _check_command([word.replace("NEW", NEW[run.decode()]) for word in words])


def _make_json(base: Workshop, name: str, rng: Random) -> bytes:
    base.enter()
    seeds = {run: path.read_bytes() for run in RUNS if (path := Path(f"run-{run}", name)).exists()}
    run = rng.choice([*seeds])
    return f"{run}\n".encode() + mutate_json(rng, [seeds[run], seeds[run], *seeds.values()])


def _make_any_json(base: Workshop, rng: Random) -> bytes:
    return _make_json(base, rng.choice(("config.json", "model.json", "metrics.jsonl")), rng).partition(b"\n")[2]


def _read_json(base: Workshop, content: bytes) -> None:
    """Read config, card and events without a command."""
    folder = base.enter() / "json"
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "model.json", "metrics.jsonl"):
        (folder / name).write_bytes(content)
    reads: tuple[Callable[[Path], object], ...] = (saved.read_config, saved.read_card, read_events)
    for read in reads:
        try:
            read(folder)
        except (RunError, UsageError) as error:
            check_sentence(str(error))


def _make_weights(base: Workshop, rng: Random) -> bytes:
    base.enter()
    run = rng.choice([*RUNS])
    content = Path(f"run-{run}", saved.FINAL).read_bytes()
    changed = mutate(rng, [content], WEIGHT_TOKENS) if rng.random() < 0.4 else _change_tensors(rng, content)
    return f"{run}\n".encode() + changed


WEIGHT_TOKENS = encode_all(
    [
        *NUMBERS,
        '"F32"',
        '"F64"',
        '"I64"',
        '"BF16"',
        '"BOOL"',
        '"shape"',
        '"data_offsets"',
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        '""',
    ]
)


def _change_tensors(rng: Random, content: bytes) -> bytes:
    """Give some weights extreme values, and now and then a tensor another type, shape or name."""
    tensors = safetensors.torch.load(content)
    name = rng.choice(list(tensors))
    tensor, chance = tensors[name].clone(), rng.random()
    if chance < 0.6:
        tensor.view(-1)[rng.randrange(tensor.numel()) :] = rng.choice(EXTREMES)
    elif chance < 0.75:
        tensor = tensor.to(rng.choice((torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool)))
    else:
        tensor = tensor.reshape(-1)[: rng.randrange(tensor.numel() + 1)].contiguous()
    tensors[name if rng.random() < 0.9 else f"{name}x"] = tensor
    return safetensors.torch.save(tensors)


def _make_checkpoint(base: Workshop, rng: Random) -> bytes:
    base.enter()
    path = rng.choice(sorted((base.folder / "run-texts" / "checkpoints").iterdir()))
    content = path.read_bytes()
    return (
        path.suffix.encode()
        + b"\n"
        + (mutate_json(rng, [content]) if path.suffix == ".json" else mutate(rng, [content], WEIGHT_TOKENS))
    )


def _use_checkpoint(base: Workshop, content: bytes) -> None:
    """Load a changed checkpoint, and now and then resume from it."""
    rng = Random(content)  # noqa: S311 - must be repeatable
    base.enter()
    suffix, _, content = content.partition(b"\n")
    copy = base.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(base.folder / "run-texts", copy)
    newest = record.newest_path(copy / "checkpoints")
    assert newest is not None
    newest.with_suffix(suffix.decode()).write_bytes(content)
    (copy / saved.FINAL).unlink()
    if rng.random() < 0.85:
        record.load_newest(copy / "checkpoints")
    else:
        _check_command(["resume", "copy"])
