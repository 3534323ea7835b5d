"""Prints the project's files in the order in which `auxrnn train mnist` enters them, up to its first checkpoint.

    python tools/trace_walk.py [DATA] [OPTIONS OF TRAIN]

Without words it trains a tiny r-LSTM on digits, which take the same way as MNIST and need no download.
"""

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType

from auxrnn import cli

PREFIX = f"{Path(cli.__file__).parents[1]}/"
TINY = [
    "digits", "--image-size", "7", "--train-examples", "40", "--hidden-size", "4", "--embedding-size", "4",
    "--objective", "reconstruct", "--pretrain-steps", "1", "--train-steps", "1", "--threads", "1",
]  # fmt: skip
LAST = ("training/record.py", "save_checkpoint")


class Walk:
    """A tracer that keeps each file of the package the first time a function in it is called."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.is_done = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note the file of a call; nothing inside functions is traced."""
        path = frame.f_code.co_filename
        if self.is_done or event != "call" or not path.startswith(PREFIX):
            return
        name = path.removeprefix(PREFIX)
        if name not in self.files and not _is_importing(frame):
            self.files.append(name)
        self.is_done = (name, frame.f_code.co_name) == LAST


def _is_importing(frame: FrameType) -> bool:
    """Return whether a call is made while a module is imported, which is no step of the training."""
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_name == "<module>" and caller.f_code.co_filename.startswith(PREFIX):
            return True
        caller = caller.f_back
    return False


def find_walk(words: list[str]) -> list[str]:
    """Return the files that `auxrnn train` enters with these words, in their order."""
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        # Data that is in the cache already would not be read.
        os.environ["AUXRNN_CACHE_DIR"] = f"{folder}/cache"
        sys.setprofile(walk)
        try:
            code = cli.run(["train", *words, "--out", f"{folder}/run"])
        finally:
            sys.setprofile(None)
    if code or not walk.is_done:
        raise SystemExit(f"the training ended with code {code} before a checkpoint was written")
    return walk.files


def main() -> None:
    """Print one file a line, and how many there are."""
    files = find_walk(sys.argv[1:] or TINY)
    print("\n".join(files))
    print(f"{len(files)} files")


if __name__ == "__main__":
    main()
