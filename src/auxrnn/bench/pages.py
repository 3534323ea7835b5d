"""Large pages for what is timed in one process."""

import os
import sys

VARIABLE = "GLIBC_TUNABLES"
LARGE_PAGES = {VARIABLE: "glibc.malloc.hugetlb=1"}


def start_with_large_pages() -> None:
    """Start this program once more, with memory in pages of 2 MiB where the system has them.

    Our kernel asks for large pages by itself, so all contenders get them. glibc reads the variable when a program
    starts, so it must be there before.
    """
    if sys.platform == "linux" and VARIABLE not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | LARGE_PAGES)  # noqa: S606 - itself
