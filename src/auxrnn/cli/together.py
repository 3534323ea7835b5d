"""The command line as one of several processes that torchrun started: one talks, and each failure is told once."""

import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from auxrnn.errors import UsageError

DIVIDED = ("train", "resume")
"""The commands that divide their work between processes."""


def is_under_torchrun() -> bool:
    """Return whether torchrun started this process, perhaps as the only one."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def take_turn() -> None:
    """Silence all processes but the first one, and let torchrun end each of them with a sentence."""
    if not is_under_torchrun():
        return
    signal.signal(signal.SIGTERM, _end)
    if os.environ["RANK"] != "0":
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - a device, open to the end
        sys.excepthook = lambda *error: traceback.print_exception(*error, file=sys.__stderr__)


def leave_others() -> None:
    """End the connections to the other processes, which have all they need."""
    if is_under_torchrun():
        from auxrnn.training.processes import leave

        leave()


def check_command(words: Sequence[str]) -> None:
    """Refuse to do several times over what processes do not divide."""
    if is_under_torchrun() and os.environ["WORLD_SIZE"] != "1" and words[0] not in DIVIDED:
        alone = shlex.join(["auxrnn", *words])
        raise UsageError(f"torchrun is for `auxrnn {'` and `auxrnn '.join(DIVIDED)}`; call `{alone}` without it")


def is_told_elsewhere(error: BaseException) -> bool:
    """Return whether another process tells the user of a failure; otherwise this one is silent no longer."""
    if not is_under_torchrun():
        return False
    from auxrnn.training.processes import is_to_tell

    # It ends by itself, and soon.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stderr = sys.__stderr__
    return not is_to_tell(error)


def _end(_signum: int, _frame: object) -> NoReturn:
    from auxrnn.training.processes import LostError

    raise LostError("torchrun ended this process, as it does when another one fails")
