# SPDX-License-Identifier: Apache-2.0
"""Old spellings (`baton.tvm`): each row of its tables is found in every way that a program may ask."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import baton
from baton import compat

ROWS = sorted((module, name) for module, names in compat.NAMES.items() for name in names)


@pytest.mark.parametrize("path", compat.MODULES)
def test_a_module_is_the_same_object_by_its_old_path(path):
    assert importlib.import_module(path) is importlib.import_module(compat.MODULES[path])


@pytest.mark.parametrize(("module", "name"), ROWS, ids=[f"{m}.{n}" for m, n in ROWS])
def test_a_name_is_found_where_older_programs_look(module, name):
    holder = importlib.import_module(module)
    assert getattr(holder, name) is compat.find(module, name)
    assert name in dir(holder)


@pytest.mark.parametrize(("module", "name"), ROWS, ids=[f"{m}.{n}" for m, n in ROWS])
def test_no_module_has_a_name_of_its_own_that_the_table_says_again(module, name):
    """Such a row would never be read."""
    path = Path(importlib.import_module(module).__file__)
    bound = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            bound.update(target.id for target in node.targets if isinstance(target, ast.Name))
    assert name not in bound


def run(text):
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "text",
    [
        "import baton as tvm; print(tvm.relay.build.__module__)",
        "from baton.relay import build; print(build.__module__)",
        "import baton.relay.build_module; print(baton.relay.build_module.build.__module__)",
        "from baton.relay.build_module import build; print(build.__module__)",
        "from baton.relay import build_module; print(build_module.build.__module__)",
    ],
)
def test_first_use_in_a_process_by_each_way(text):
    assert run(text) == ["baton.driver.relay_build"]


def test_a_module_keeps_its_own_spec():
    import baton.relay.vm  # noqa: F401

    module = sys.modules["baton.driver.vm"]
    assert (module.__name__, module.__spec__.name) == ("baton.driver.vm", "baton.driver.vm")


def test_an_unknown_name_is_the_modules_own_error():
    with pytest.raises(AttributeError, match="neither an operator nor a class of Relay"):
        baton.relay.no_such_name  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("baton.relay.no_such_module")


def test_old_spellings_cost_nothing_until_one_is_used():
    loaded = run("import sys, baton; print(*[m for m in sys.modules if m.startswith('baton.tvm.') or m in ('baton.relay', 'baton.driver')])")
    assert sorted(loaded) == ["baton.tvm.finder", "baton.tvm.tables"]


def test_only_modules_of_this_package_are_looked_at():
    finder = next(f for f in sys.meta_path if getattr(f, "__module__", "") == "baton.tvm.finder")
    assert finder.find_spec("json") is None and finder.find_spec("baton.error") is None
