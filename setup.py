"""Compiles the kernel, once for each instruction set. What cannot be compiled is left out: torch does its work.

Everything else about the package stands in pyproject.toml.
"""

import platform
from pathlib import Path

from setuptools import Extension, setup

# Vector-extension code needs -O3 to unroll; -ffp-contract=fast lets products and sums fuse, also in ISO mode.
FLAGS = ["-std=c++17", "-O3", "-g0", "-ffp-contract=fast", "-pthread"]
X86_BUILDS = {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mfma", "-mprefer-vector-width=512"]}


def list_builds() -> dict[str, list[str]]:
    """Give the flags of each build for this machine's architecture."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return {"portable": [], **(X86_BUILDS if is_x86 else {})}


setup(
    ext_modules=[
        Extension(
            f"auxrnn.kernels._gated_{name}",
            sources=["src/auxrnn/kernels/gated.cpp", "src/auxrnn/kernels/scan.cpp"],
            depends=sorted(str(path) for path in Path("src/auxrnn/kernels").rglob("*.h")),
            extra_compile_args=[*FLAGS, *flags],
            extra_link_args=["-pthread"],
            language="c++",
            optional=True,
        )
        for name, flags in list_builds().items()
    ]
)
