"""Commands that only talk start fast: they import neither torch nor numpy, matplotlib or scikit-learn."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "numpy", "matplotlib", "sklearn", "safetensors"}
CODE = """
import json, sys
from auxrnn import cli
code = cli.run(json.loads(sys.argv[1]))
print(json.dumps({"code": code, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["train", "--help"], 0),
        (["train", "--help", "--model", "transformer"], 0),
        (["data", "list"], 0),
        (["trian"], 2),
        (["train", "digits", "--hiden-size", "4"], 2),
        (["train", "digits", "--hidden-size", "many"], 2),
        (["train", "digits", "--hidden-size", "0"], 2),
        (["reproduce", "--scale", "tiny"], 2),
    ],
)
def test_help_mistakes_and_lists_import_no_framework(words, code):
    done = subprocess.run([sys.executable, "-c", CODE, json.dumps(words)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["code"] == code, done.stderr
    assert HEAVY & set(found["modules"]) == set()
