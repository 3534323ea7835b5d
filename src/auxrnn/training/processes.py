"""Several processes that train together, one for each core or GPU, as `torchrun` starts them.

Each computes its rows of every batch (`deal` in `data/sequences.py`). What they have to agree on goes through
`Processes`: sums over all of them, and what the first one knows. Sums have the same bits in every process, so that all
do the same update. gloo carries what lies on the CPU, NCCL what lies on GPUs.
"""

import contextlib
import os
import time
import timeit
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # torch does not say that it has them

from auxrnn.errors import RunError, UsageError
from auxrnn.files import digest
from auxrnn.models.network import Losses
from auxrnn.structs import ONLY, LossSum, Share, Turn

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for another one that says nothing and is not known to have ended."""
PATIENCE = 1.0
"""Seconds in which a process that failed can say why, before another one says that it is gone."""


class LostError(RunError):
    """Another process is gone: why is said by that one, if it still can."""

    def __init__(self, what: str = "another process of this training has ended or cannot be reached") -> None:
        super().__init__(f"{what}; `auxrnn resume` under torchrun continues from the newest checkpoint")


class Processes(NamedTuple):
    """The processes that train together, seen from one of them; alone, nothing is sent to anybody."""

    turn: Turn = ONLY
    num_here: int = 1
    """How many share this machine's memory."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes the run folder."""
        return self.turn.rank == 0

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process."""
        return self.turn.num_processes == 1

    def add_up(self, value: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """Return the sum of a tensor over all processes."""
        if self.is_alone:
            return value
        total = value.clone()
        with _losing_others():
            dist.all_reduce(total)
        return total

    def agree(self, value: float) -> float:
        """Return the largest of a number that each process measured for itself."""
        if self.is_alone:
            return value
        largest = torch.tensor(value, dtype=torch.float64)
        with _losing_others():
            dist.all_reduce(largest, dist.ReduceOp.MAX)
        return largest.item()

    def time_sum(self, num_numbers: int) -> float:
        """Return the seconds that it takes to add up so many numbers over all processes."""
        if self.is_alone:
            return 0.0
        numbers = torch.zeros(num_numbers)
        self.add_up(numbers)
        return self.agree(timeit.timeit(lambda: self.add_up(numbers), number=3) / 3)

    def send_tensor(self, tensor: Tensor) -> None:
        """Give all processes the values that the first one has in a tensor."""
        if not self.is_alone:
            with _losing_others():
                dist.broadcast(tensor, 0)

    def send(self, content: bytes = b"") -> bytes:
        """Return what the first process has."""
        if self.is_alone:
            return content
        size = int(self.agree(float(len(content)) if self.is_first else 0.0))
        if not size:
            return b""
        buffer = bytearray(content if self.is_first else size)
        self.send_tensor(torch.frombuffer(buffer, dtype=torch.uint8))
        return bytes(buffer)

    def check_same(self, text: str, what: str) -> None:
        """Refuse processes that differ in something."""
        mark = float(int(digest(text)[:12], 16))
        if self.agree(mark) != -self.agree(-mark):
            raise UsageError(f"the processes of this training differ in {what}; start all of them alike")

    def interleave(self, row_N: Float[Tensor, "N ..."]) -> Float[Tensor, "M ..."]:
        """Return the rows that the processes took in turns, in their order."""
        if self.is_alone:
            return row_N
        num_rows = self.add_up(torch.tensor(len(row_N)))
        whole_M = row_N.new_zeros(int(num_rows), *row_N.shape[1:])
        whole_M[self.turn.rank :: self.turn.num_processes] = row_N
        return self.add_up(whole_M)

    def count_together(self, losses: Losses, share: Share | None, *, is_asked: bool = False) -> tuple[Losses, bool]:
        """Return losses whose sums are still those of the own rows, and whose counts are those of all processes.

        A row that is not counted keeps its graph, so that all processes have gradients of the same weights. Also return
        whether any process was asked for something.
        """
        if self.is_alone:
            return losses, is_asked
        scale = float(share is None or share.is_counted)
        parts = [losses.supervised, losses.auxiliary]
        own = [0.0 if part is None else scale * float(part.num_tokens) for part in parts]
        counts = self.add_up(torch.tensor([*own, float(is_asked)], dtype=torch.float64)).tolist()
        # Gaps make counts fractions, perhaps in the rows of other processes alone.
        supervised, auxiliary = (
            None if part is None else LossSum(scale * part.total, part.total.new_tensor(count))
            for part, count in zip(parts, counts[:2], strict=True)
        )
        right = None if losses.num_correct is None else int(scale) * losses.num_correct
        return Losses(supervised, auxiliary, right), counts[2] > 0

    def add_gradients(self, network: nn.Module, losses: Losses) -> Losses:
        """Add up the gradients and the sums of the losses over all processes, in one message."""
        if self.is_alone:
            return losses
        grads = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        sums = [part.total.detach() for part in (losses.supervised, losses.auxiliary) if part is not None]
        sums += [] if losses.num_correct is None else [losses.num_correct.to(sums[0])]
        flat = self.add_up(torch.cat([part.reshape(-1) for part in (*grads, *sums)]))
        *parts, totals = torch.split(flat, [*(grad.numel() for grad in grads), len(sums)])
        for grad, part in zip(grads, parts, strict=True):
            grad.copy_(part.view_as(grad))
        found = iter(totals)
        supervised, auxiliary = (
            part if part is None else part._replace(total=next(found)) for part in (losses.supervised, losses.auxiliary)
        )
        right = None if losses.num_correct is None else next(found).round().to(losses.num_correct.dtype)
        return Losses(supervised, auxiliary, right)


ALONE = Processes()


def find_turn() -> Turn:
    """Return which process torchrun made of this one; the only one without it."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return ONLY
    return Turn(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def count_restarts() -> int:
    """Return how often torchrun has started these processes again."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def may_restart() -> bool:
    """Return whether torchrun starts the processes again when one fails."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0


def join(device: str) -> Processes:
    """Meet the other processes that torchrun started, each with a device of its own."""
    turn = find_turn()
    if turn.num_processes == 1:
        return ALONE
    is_gpu, index = torch.device(device).type == "cuda", int(os.environ["LOCAL_RANK"])
    if is_gpu:
        if index >= torch.cuda.device_count():
            what = f"this machine has {torch.cuda.device_count()} GPUs, and torchrun starts more processes"
            raise UsageError(f"{what}; give a smaller --nproc-per-node, or --device cpu")
        torch.cuda.set_device(index)
    with _losing_others():
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if is_gpu else "gloo",
            store=_open_store(TIMEOUT),
            rank=turn.rank,
            world_size=turn.num_processes,
            timeout=TIMEOUT,
        )
    return Processes(turn, 1 if is_gpu else int(os.environ["LOCAL_WORLD_SIZE"]))


def leave() -> None:
    """End the connections to the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()


def is_to_tell(error: BaseException) -> bool:
    """Return whether this process is the one to tell the user of a failure that others may have, too.

    A sentence is told once. That another process is gone is told if that one could not say why.
    """
    with contextlib.suppress(RuntimeError, KeyError, ValueError):
        store = _open_store(timedelta(seconds=5))
        if isinstance(error, LostError):
            time.sleep(PATIENCE)
            return bool(store.add("told", 1) == 1)
        store.add("told", 1)
        return bool(store.add(f"told {digest(str(error))}", 1) == 1)
    return True


def _open_store(timeout: timedelta) -> Any:
    """Connect to where the processes find each other, which torchrun itself keeps if it can."""
    turn, host, port = find_turn(), os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    is_host = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True" and turn.rank == 0
    store = TCPStore(host, port, is_master=is_host, timeout=timeout, multi_tenant=True)
    return PrefixStore(f"auxrnn/{count_restarts()}", store)


@contextlib.contextmanager
def _losing_others() -> Iterator[None]:
    """Say of an exchange that failed that another process is gone."""
    try:
        yield
    except RuntimeError as error:
        raise LostError from error
