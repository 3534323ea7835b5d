"""What `import auxrnn` offers, and what it costs."""

import ast
import inspect
import subprocess
import sys

import pytest

import auxrnn


def test_importing_the_package_does_not_load_torch():
    code = "import auxrnn, sys; print([name for name in ('torch', 'sklearn', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", auxrnn.__all__)
def test_every_exported_name_is_there(name):
    assert getattr(auxrnn, name) is not None


def test_type_checkers_see_the_names_that_are_exported():
    tree = ast.parse(inspect.getsource(auxrnn))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert sorted(alias.asname for statement in block.body for alias in statement.names) == auxrnn.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'RLSTN'"):
        auxrnn.RLSTN  # noqa: B018
