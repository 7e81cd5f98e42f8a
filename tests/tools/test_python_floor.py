# SPDX-License-Identifier: Apache-2.0
"""The rule of tools/python_floor.py trips on what it forbids in python/baton outside the floor, and its list may only fall."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402
import python_floor  # noqa: E402

FLOOR = {"__init__.py": "from . import tvm\n", "tvm/__init__.py": "", "tvm/old.py": "", "ir/__init__.py": "", "relay/__init__.py": "", "relay/expr.py": ""}
LAZY = "def __getattr__(name):\n    return 1\n"
ANSWERS = 'from ._ffi.hook import answer as _answer\n_answer({"ir.call": "baton.relay.expr:Call"})\nfrom . import tvm\n'


@pytest.fixture
def tree(tmp_path):
    """A function that writes modules {path below python/baton: text} and returns the root and the paths of all that are there."""

    def write(files, left=""):
        for path, text in files.items():
            target = tmp_path / "python" / "baton" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        if left:
            (tmp_path / "tools").mkdir(exist_ok=True)
            (tmp_path / python_floor.LEFT).write_text(left)
        return tmp_path, [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*.py"))]

    return write


def breaches(tree):
    return [(path.removeprefix("python/baton/"), line) for path, line, rule, _ in python_floor.check(*tree) if rule == "floor"]


def test_one_line_loads_the_floor(tree):
    assert breaches(tree(FLOOR)) == []
    assert breaches(tree({"__init__.py": "from . import tvm\nfrom .tvm import old\n"})) == [("__init__.py", 2)]


@pytest.mark.parametrize("text", ["from .. import tvm\n", "from ..tvm import old\n", "import baton.tvm.old\n", 'name = "baton.tvm.old:call"\n'])
def test_no_other_module_asks_for_it(tree, text):
    assert breaches(tree({**FLOOR, "ir/one.py": text})) == [("ir/one.py", 1)]
    assert breaches(tree({"ir/one.py": f"def f():\n    {text}"})) == [("ir/one.py", 2)]
    assert breaches(tree({"ir/one.py": "", "tvm/old.py": text.replace("old", "names"), "tvm/names.py": ""})) == []


def test_the_floor_answers_no_hook(tree):
    assert set(breaches(tree({**FLOOR, "__init__.py": ANSWERS.replace("relay.expr", "tvm.old")}))) == {("__init__.py", 2)}


@pytest.mark.parametrize("text", ["import sys\nsys.meta_path.append(x)\n", "import sys\nsys.path_hooks.insert(0, x)\n"])
def test_import_hooks_belong_to_the_floor(tree, text):
    assert breaches(tree({**FLOOR, "tvm/old.py": text})) == []
    assert breaches(tree({"ir/one.py": text})) == [("ir/one.py", 2)]


def test_getattr_of_modules_is_counted_outside_the_floor(tree):
    inner = "class A:\n    def __getattr__(self, name):\n        return 1\n"
    assert breaches(tree({**FLOOR, "tvm/old.py": LAZY, "ir/inner.py": inner})) == []
    assert breaches(tree({"ir/one.py": LAZY})) == [("ir/one.py", 1)]
    assert breaches(tree({}, "1 getattr python/baton/ir/one.py\n")) == []


def test_hooks_that_reach_upward_are_counted_where_they_are_declared(tree):
    files = {**FLOOR, "__init__.py": ANSWERS, "ir/one.py": 'call = Hook("ir.call")\n', "relay/two.py": 'call = Hook("ir.call")\n'}
    assert breaches(tree(files)) == [("ir/one.py", 1)]
    assert breaches(tree({}, "1 hook python/baton/ir/one.py\n")) == []


def test_the_list_falls_with_the_tree_and_never_rises(tree):
    made = tree({**FLOOR, "ir/one.py": "", "ir/two.py": LAZY}, "1 getattr python/baton/ir/one.py\n")
    assert breaches(made) == [("tools/floor.txt", 0), ("ir/two.py", 1)]
    python_floor.lower(*made)
    assert python_floor.read_left(made[0]) == {}
    assert breaches(made) == [("ir/two.py", 1)]


def test_this_package_keeps_the_rule():
    assert "floor" in check_layers.RULES
    assert list(python_floor.check(ROOT, check_layers.files_of(ROOT))) == []
