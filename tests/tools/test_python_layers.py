# SPDX-License-Identifier: Apache-2.0
"""The rules of tools/python_layers.py trip on what they forbid in python/baton, and let pass what they allow."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402
import python_layers  # noqa: E402

TABLES = 'PACKAGES = {"baton.relay.moved": "baton.tvm.moved"}\nMODULES = {"baton.relay.vm": "baton.driver.vm"}\nNAMES = {"baton.relay": {"build": "baton.driver.relay_build:build"}}\n'


@pytest.fixture
def package(tmp_path):
    """A function that writes modules {path below python/baton: text} and returns the breaches as (path, line, rule)."""

    def write(files):
        for path, text in files.items():
            target = tmp_path / "python" / "baton" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        paths = [p.relative_to(tmp_path).as_posix() for p in sorted(tmp_path.rglob("*.py"))]
        return [(path.removeprefix("python/baton/"), line, rule) for path, line, rule, _ in python_layers.check(tmp_path, paths)]

    return write


PACKAGES = ["_ffi", "runtime", "ir", "target", "tir", "arith", "te", "relay", "driver", "guard", "cli"]


@pytest.mark.parametrize("lower, higher", list(zip(PACKAGES, PACKAGES[1:], strict=False)))
def test_each_border_lets_only_one_direction_pass(package, lower, higher):
    both = {f"{lower}/__init__.py": "", f"{higher}/__init__.py": ""}
    assert package({**both, f"{higher}/one.py": f"from ..{lower} import x\n"}) == []
    assert package({**both, f"{lower}/one.py": f"from ..{higher} import x\n"}) == [(f"{lower}/one.py", 1, "python-layer")]


@pytest.mark.parametrize(
    "text",
    [
        "import baton.relay\n",
        "import baton.relay as r\n",
        "from baton import relay\n",
        "from baton.relay import Call\n",
        "from .. import relay\n",
        "from ..relay import expr\n",
        "from ..relay.expr import Call\n",
        "name = 'baton.relay'\n",
        "name = 'baton.relay.expr:Call'\n",
    ],
)
def test_every_way_to_ask_counts_in_a_function_too(package, text):
    files = {"__init__.py": "", "ir/__init__.py": "", "relay/__init__.py": "", "relay/expr.py": ""}
    assert package({**files, "ir/one.py": text}) == [("ir/one.py", 1, "python-layer")]
    inside = f"def f():\n    if x:\n        {text}"
    assert package({**files, "ir/one.py": inside}) == [("ir/one.py", 3, "python-layer")]


def test_global_functions_count_by_name(package):
    text = 'from .._ffi import get_global_func\nget_global_func("ir.AsText")\nget_global_func("relay.build")\nget_global_func("tir.op." + name)\n'
    assert package({"_ffi/__init__.py": "", "ir/one.py": text}) == [("ir/one.py", 3, "python-layer"), ("ir/one.py", 4, "python-layer")]
    assert package({"ir/one.py": "", "driver/one.py": text, "_ffi/one.py": text}) == []


def test_what_documentation_says_does_not_count(package):
    assert package({"ir/__init__.py": '"""baton.relay"""\n\n\ndef f():\n    """baton.relay"""\n    return "see baton.relay"\n', "relay/__init__.py": ""}) == []


def test_the_top_of_the_package_is_above_all_layers_but_programs(package):
    files = {"__init__.py": "from . import _ffi\n", "_ffi/__init__.py": ""}
    assert package({**files, "cli/__init__.py": "import baton\n"}) == []
    assert package({**files, "cli/__init__.py": "", "guard/__init__.py": "import baton\n"}) == [("guard/__init__.py", 1, "python-layer")]


def test_a_folder_can_be_in_another_layer_than_its_package(package, monkeypatch):
    monkeypatch.setitem(python_layers.LAYER_OF, "baton.relay.testing", "tools")
    files = {"testing/__init__.py": "", "relay/__init__.py": "", "relay/testing/__init__.py": "from ... import testing\n"}
    assert package(files) == []
    assert package({**files, "relay/one.py": "from . import testing\n"}) == [("relay/one.py", 1, "python-layer")]


def test_a_new_package_has_to_be_given_a_layer(package):
    assert package({"news/__init__.py": ""}) == [("news/__init__.py", 0, "python-layer")]


def test_a_cycle_is_found_in_functions_too(package):
    files = {"relay/a.py": "from . import b\n", "relay/b.py": "from .c import x\n", "relay/c.py": "\n\ndef f():\n    from .a import y\n"}
    assert package(files) == [("relay/a.py", 1, "python-cycle")]
    assert package({**files, "relay/c.py": ""}) == []


def test_a_package_that_shows_its_modules_is_no_cycle(package):
    assert package({"relay/__init__.py": "from . import a, b\n", "relay/a.py": "from .b import x\n", "relay/b.py": ""}) == []
    assert package({"relay/b.py": "from .. import relay\n"}) == [("relay/__init__.py", 1, "python-cycle")]


@pytest.mark.parametrize(
    "text",
    [
        "from .. import tvm\n",
        "from ..tvm import nvcc\n",
        "import baton.tvm.nvcc\n",
        "from ..relay import vm\n",
        "import baton.relay.vm\n",
        "from ..relay.vm import compile\n",
        "from ..relay import build\n",
        "from .. import relay; relay.build()\n",
        "import baton.relay; baton.relay.build()\n",
        "from .. import relay as r; r.vm.compile\n",
        "import baton.relay.moved\n",
        "import baton.relay.moved.below\n",
        "from ..relay import moved\n",
    ],
)
def test_nothing_asks_for_old_spellings(package, text):
    files = {"__init__.py": "", "tvm/__init__.py": "", "tvm/tables.py": TABLES, "tvm/nvcc.py": "", "relay/__init__.py": "", "cli/__init__.py": ""}
    assert {rule for _, _, rule in package({**files, "cli/one.py": text})} == {"python-compat"}


def test_what_the_tables_name_may_be_used_by_its_own_name(package):
    files = {
        "__init__.py": "from . import tvm\n",
        "tvm/__init__.py": "",
        "tvm/tables.py": TABLES,
        "relay/__init__.py": "",
        "driver/relay_build.py": "def build(): pass\n",
    }
    assert package({**files, "cli/__init__.py": "from ..driver import relay_build\nrelay_build.build()\nbuild = relay_build.build\n"}) == []


def test_this_package_keeps_the_rules():
    assert list(python_layers.check(ROOT, check_layers.files_of(ROOT))) == []


def test_the_rules_are_listed_and_run_by_the_check_of_the_tree(tmp_path):
    assert {"python-layer", "python-cycle", "python-compat"} <= set(check_layers.RULES)
    (tmp_path / "python/baton/ir").mkdir(parents=True)
    (tmp_path / "python/baton/ir/one.py").write_text("# SPDX-License-Identifier: Apache-2.0\nfrom .. import relay\n")
    (tmp_path / "python/baton/relay.py").write_text("# SPDX-License-Identifier: Apache-2.0\n")
    assert [str(b) for b in check_layers.check(tmp_path) if b.rule.startswith("python-")] == [
        "python/baton/ir/one.py:2: python-layer: ir imports baton.relay of relay"
    ]
