# SPDX-License-Identifier: Apache-2.0
"""The floor for programs written for Relay (`baton.tvm`): paths that modules had before it are kept, and the rest of the package works without it."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

# Paths of the package's modules and of its old spellings, written down before modules moved to the floor.
PATHS = (Path(__file__).parent / "module_paths.txt").read_text().split()
# Packages that some modules need and `./dev test` does not install everywhere.
OPTIONAL = {"torch", "onnx", "scipy", "tvm_ffi", "dask", "ray"}


def test_paths_are_listed_once():
    assert PATHS == sorted(set(PATHS)) and len(PATHS) > 400


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_to_a_module_and_its_parent_leads_there_too(path):
    name = "baton." + path
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name.split(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"needs {missing.name}")
    assert sys.modules[name] is module
    assert module.__name__ == name or sys.modules[module.__name__] is module, "a module is loaded twice"


def test_a_path_of_a_file_does_not_hide_the_function_of_its_name():
    text = (
        "import baton.relay.quantize.realize, baton.topi.nn.conv2d; from baton import relay, topi; assert relay.quantize.realize() and topi.nn.conv2d.__name__"
    )
    subprocess.run([sys.executable, "-c", text], check=True)


_ALONE = """
import sys, types
sys.modules["baton.tvm"] = types.ModuleType("baton.tvm")
hooks = list(sys.meta_path)
import numpy as np
import baton
from baton.driver.relay_build import build
from baton.runtime.vm import VirtualMachine
assert sys.meta_path == hooks, "an import hook"
x = baton.relay.var("x", shape=(2, 3), dtype="float32")
mod = baton.IRModule.from_expr(baton.relay.Function([x], baton.relay.nn.relu(x)))
model = baton.compile(mod)
given = np.array([[-1, 2, -3], [4, -5, 6]], "float32")
assert (np.asarray(model(given)) == np.maximum(given, 0)).all()
assert baton.relay.parse(mod.astext()) and build and VirtualMachine
loaded = [name for name in sys.modules if name.startswith(("baton.tvm", "baton.compat")) and name != "baton.tvm"]
assert not loaded, loaded
"""


def test_the_package_compiles_and_runs_without_the_floor():
    subprocess.run([sys.executable, "-c", _ALONE], check=True)


def test_the_floor_installs_one_hook():
    seen = "import sys; before = list(sys.meta_path); import baton; print(*[f.__module__ for f in sys.meta_path if f not in before])"
    assert subprocess.run([sys.executable, "-c", seen], check=True, capture_output=True, text=True).stdout.split() == ["baton.tvm.finder"]
