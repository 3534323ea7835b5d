"""Memory that is freed and taken again stays with the process."""

import subprocess
import sys

import pytest

# Twenty times as much as glibc keeps by itself, taken and freed as training steps do, and the pages that it cost.
PROGRAM = """
import ctypes, resource, sys
from auxrnn.heap import keep_freed_memory
if "keep" in sys.argv:
    keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def step():
    blocks = [libc.malloc(4_000_000) for _ in range(20)]
    for block in blocks:
        ctypes.memset(block, 1, 4_000_000)
    for block in reversed(blocks):
        libc.free(block)
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc is told")
def test_freed_memory_is_not_given_back_between_steps():
    faults = {
        words: int(subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True).stdout)
        for words in [(), ("keep",)]
    }
    assert faults["keep",] < faults[()] / 10
