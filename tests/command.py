"""The command line called in this process, as several test files do."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

from auxrnn import cli
from auxrnn.files import digest, read_sums, write_sums

TINY = [
    "--hidden-size", "4", "--embedding-size", "4", "--head-size", "8", "--train-examples", "40", "--batch-size", "20",
    "--segment-length", "10", "--auxiliary-window", "5", "--supervised-window", "5", "--threads", "1",
    "--recipe", "paper",
]  # fmt: skip
TWO_AND_TWO = ["--pretrain-steps", "2", "--train-steps", "2"]


class Result(NamedTuple):
    """What a command left: its exit code and the two streams."""

    code: int
    out: str
    err: str


def call(*words):
    """Run one command with these words."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([str(word) for word in words])
    return Result(code, out.getvalue(), err.getvalue())


def parse_train(words):
    """Give the arguments that `auxrnn train` is called with: flags, over a config file, over preset and recipe."""
    _, bound, _ = cli.app.parse_args(["train", *words], exit_on_error=False, print_error=False)
    return bound.arguments


def train(folder, *words, data="digits"):
    """Train a tiny network in a folder, to the end."""
    result = call("train", data, *TINY, *words, "--out", folder)
    assert result.code == 0, result.err
    return result


def files_below(folder):
    """Give all files and folders below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def rewrite(path, content):
    """Write a file of a run folder otherwise, with the checksum that belongs to it."""
    path.write_text(content)
    write_sums(path.parent, read_sums(path.parent) | {path.name: digest(content)})
