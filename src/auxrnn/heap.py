"""How the process holds on to memory between training steps."""

import ctypes
import os
import sys

# Numbers of the options in glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 * 2**20
TUNABLES = "GLIBC_TUNABLES"


def keep_freed_memory(num_bytes: int = 2**30) -> None:
    """Let glibc keep so many bytes that were freed, instead of giving them back to the system.

    By default it gives all but a little back after every training step and takes it anew in the next, page by page,
    which cost a fifth of a small network's training time. For a program's start: it changes the whole process. Other C
    libraries are left alone.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    mallopt(TRIM_THRESHOLD, num_bytes)
    mallopt(MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)


def restart_with_large_pages() -> None:
    """Start this program again with memory in pages of 2 MiB where the system has them, unless it already was (Linux).

    For benchmarks: our kernel asks for large pages by itself, so whatever it is compared with gets them too. glibc
    reads the variable when a program starts.
    """
    if sys.platform == "linux" and TUNABLES not in os.environ:
        environment = os.environ | {TUNABLES: "glibc.malloc.hugetlb=1"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - itself
