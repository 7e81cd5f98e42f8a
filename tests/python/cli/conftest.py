# SPDX-License-Identifier: Apache-2.0
"""`baton(...)` runs the command as a person does, and holds every answer to the rules that hold for all."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]  # for onnx_files and limits


def ready(what: str = "compiler") -> bool:
    """Whether the runtime, or the compiler, is built and loads."""
    code = "import baton; baton.NDArray" + ("; import baton.driver.compiler as c; c.machine_facts()" if what == "compiler" else "")
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def compiler():
    if not ready():
        pytest.skip("the compiler is not built")


@pytest.fixture
def baton(tmp_path):
    """Runs `baton ARGS` in an empty directory. Whatever happens: no traceback, no crash, at most six lines of error."""

    def run(*args, code=0, stdin=None, env=None, cwd=None):
        done = subprocess.run(
            [sys.executable, "-m", "baton", *map(str, args)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=not isinstance(stdin, bytes),
            cwd=cwd or tmp_path,
            env={**os.environ, **(env or {})},
        )
        err = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
        assert done.returncode == code, f"exit code {done.returncode}, wanted {code}\n{err}"
        assert "Traceback" not in err
        assert "\x1b" not in err, "progress or colour in a pipe"
        if code:
            assert len(err.splitlines()) <= 6, err
            assert "internal error" not in err
            assert "error:" in err
        assert not [p for p in tmp_path.rglob("*.part")], "a partial file was left behind"
        return done

    return run


@pytest.fixture
def good(tmp_path):
    """The file of y = relu(x * w + b)."""
    pytest.importorskip("onnx")
    from onnx_files import node, write

    weights = [("w", np.ones(4, np.float32)), ("b", np.float32([0, 1, -1, 0]))]
    nodes = [node("Mul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["a"]), node("Relu", ["a"], ["y"])]
    return write(tmp_path / "good.onnx", nodes, weights)
