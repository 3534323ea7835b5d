"""Rules of the source that no linter knows: where gradients may be cut, who prints, what is never used."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "auxrnn"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
TREES = {name: ast.parse((SOURCE / name).read_text()) for name in FILES}

GRADIENT_NAMES = {"detach", "detach_", "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "requires_grad_"}
ALLOWED_BESIDE_BPTT = {
    "method.py": ({"detach"}, "the scale of the data, by which the auxiliary loss is divided, is a constant"),
    "models/decoder.py": ({"no_grad"}, "scheduled sampling: predictions that are fed back carry no gradient"),
    "models/cells/lstm.py": ({"detach"}, "initialization: biases are written in place before any graph exists"),
    "models/cells/gru.py": ({"detach"}, "initialization: biases are written in place before any graph exists"),
    "models/cells/ur_lstm.py": ({"detach"}, "initialization: biases are written in place before any graph exists"),
    "exact.py": (
        {"no_grad", "enable_grad", "detach"},
        "the traces carry the gradient of the past in their place; the second reading is a backward pass",
    ),
    "models/cells/legendre.py": ({"inference_mode"}, "constants made where none is needed may enter a graph later"),
    "streaming.py": ({"inference_mode", "requires_grad_"}, "a trained network that is only read with"),
    "training/evaluate.py": ({"inference_mode"}, "evaluation needs no graph"),
    "training/processes.py": (
        {"detach"},
        "what is sent to other processes are numbers; their gradients are sent beside",
    ),
    "training/calibration.py": ({"requires_grad_", "enable_grad"}, "the slope of a loss in the temperature alone"),
    "saved.py": ({"no_grad"}, "a temperature is divided into trained weights in place"),
    "training/optimizers.py": ({"no_grad", "enable_grad"}, "the update itself is not differentiated, its closure is"),
    "bench.py": ({"no_grad", "inference_mode"}, "what is timed without a graph, on all sides"),
    "findings.py": ({"inference_mode"}, "pages of finished runs need no graph"),
}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "core", "base", "manager", "handler", "tools"}
PICKLING_MODULES = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"}
PICKLING_CALLS = {"torch.save", "torch.load"}


def names_in(tree):
    """Give every name that code, not text, mentions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from (alias.name for alias in node.names)


def imported_modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called_names(tree):
    """Give the names of functions that are called by a bare name."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name)}


def test_the_source_is_found():
    assert {"bptt.py", "models/encoder.py", "models/network.py"} <= set(FILES)


def test_gradients_are_cut_in_bptt_alone_or_for_a_listed_reason():
    found = {name: GRADIENT_NAMES & set(names_in(tree)) for name, tree in TREES.items() if name != "bptt.py"}
    assert {name: names for name, names in found.items() if names} == {
        name: names for name, (names, _reason) in ALLOWED_BESIDE_BPTT.items()
    }


def test_only_the_command_line_prints():
    printing = [name for name in FILES if {"print", "pprint"} & called_names(TREES[name])]
    assert [name for name in printing if not name.startswith("cli/")] == []


def test_no_file_hides_behind_a_vague_name():
    assert [name for name in FILES if VAGUE_NAMES & set(Path(name).with_suffix("").parts)] == []


def test_every_module_says_what_lives_there():
    assert [name for name, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_annotations_stay_real_so_that_shapes_are_checked():
    assert [name for name, tree in TREES.items() if "__future__" in imported_modules(tree)] == []


def test_nothing_is_pickled():
    for tree in TREES.values():
        modules = set(imported_modules(tree))
        attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not PICKLING_MODULES & {module.split(".")[0] for module in modules}
        assert not PICKLING_CALLS & (attributes | modules)
        assert "allow_pickle=True" not in ast.unparse(tree)


def test_nothing_is_evaluated_from_text_and_nothing_imported_by_star():
    assert [name for name, tree in TREES.items() if {"exec", "eval", "quit", "exit"} & called_names(tree)] == []
    assert [name for name, tree in TREES.items() if "*" in names_in(tree)] == []
    assert [name for name in FILES if "sys.path" in ast.unparse(TREES[name])] == []


def test_test_files_have_names_of_their_own():
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_every_file_that_the_page_of_the_architecture_names_exists():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    names = re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|h|cpp|toml)|(?:[\w-]+/)+)`", page)
    assert len(names) > 100
    assert [name for name in names if not (ROOT / name).exists() and not (SOURCE / name).exists()] == []


def test_the_page_of_the_architecture_shows_the_layers_that_are_checked():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    (block,) = re.findall(r"```\n(__main__\n.*?)```", page, flags=re.DOTALL)
    shown = re.findall(
        r"(?:^|\| )([a-z_.]+)(?=$|\s)", "\n".join(line[:39].rstrip() for line in block.splitlines()), re.M
    )
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    assert shown == [name for layer in layers for name in layer.split(" | ")]


def test_the_page_of_the_architecture_shows_the_walk_to_the_first_checkpoint():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    table = page[page.index("| stage | files") : page.index("How settings come together")]
    command = [sys.executable, ROOT / "tools" / "trace_walk.py"]
    traced = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(re.findall(r"`([\w/]+\.py)`", table)) == sorted(line for line in traced if line.endswith(".py"))
