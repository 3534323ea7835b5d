"""Sanitizers find nothing in the kernel: a small program calls it over many shapes and checks what it gives."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from auxrnn.kernels import library
from stacks import BUILDS

COMPILER = shutil.which("g++")
KERNEL = Path(library.__file__).parent
SOURCES = sorted(KERNEL.glob("*.cpp"))
# Not optimized: that takes a third of the time to compile, and every access is watched all the same.
COMMON = ["-std=c++17", "-O0", "-g1", "-ffp-contract=fast", "-pthread", f"-I{KERNEL}"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
THREAD = ["-fsanitize=thread"]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no g++")


def read_flags(name):
    """Give the flags of a build as setup.py has them."""
    tree = ast.parse((Path(__file__).parents[2] / "setup.py").read_text())
    (flags,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "X86_BUILDS"
    )
    return flags.get(name, [])


def compile_with(flags, *sources, to):
    return subprocess.run(
        [COMPILER, *COMMON, *flags, *map(str, sources), "-o", str(to)], capture_output=True, text=True, check=False
    )


def run_program(program):
    """Run it; where addresses are too random for the thread sanitizer, with fixed ones."""
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    if "unexpected memory mapping" in done.stderr and shutil.which("setarch"):
        done = subprocess.run(["setarch", "-R", program], capture_output=True, text=True, check=False, timeout=120)
    return done


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Compile the program that calls the kernel, without a sanitizer: its arrays are watched all the same."""
    path = tmp_path_factory.mktemp("driver") / "driver.o"
    done = compile_with(["-c", "-O1"], Path(__file__).with_name("driver.cpp"), to=path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def skip_without(tmp_path):
    """Give a function that skips the test if programs with these flags cannot be made or run here."""

    def try_out(flags):
        source, program = tmp_path / "empty.cpp", tmp_path / "empty"
        source.write_text("int main() {}\n")
        if compile_with(flags, source, to=program).returncode or run_program(program).returncode:
            pytest.skip(f"programs with {flags[0]} cannot be made or run here")

    return try_out


def check(driver, flags, program):
    compiled = compile_with(flags, driver, *SOURCES, to=program)
    assert compiled.returncode == 0, compiled.stderr
    done = run_program(program)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", [*BUILDS[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in BUILDS[1:] or ["portable"])]
)
def test_no_access_out_of_bounds_no_leak_and_nothing_undefined(driver, skip_without, tmp_path, name):
    skip_without(ADDRESS)
    check(driver, [*ADDRESS, *read_flags(name)], tmp_path / "program")


def test_threads_share_nothing_without_a_lock(driver, skip_without, tmp_path):
    skip_without(THREAD)
    check(driver, THREAD, tmp_path / "program")


def test_the_compiler_has_nothing_to_warn_of(tmp_path):
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-fsyntax-only"]
    done = compile_with(warnings, *SOURCES, to=tmp_path / "nothing")
    assert done.returncode == 0, done.stderr
