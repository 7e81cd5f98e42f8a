# SPDX-License-Identifier: Apache-2.0
"""The commands and the Python of README.md work as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (baton .*?)\s*(?:  # .*)?$", README, re.MULTILINE)
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files that the README speaks of: model.onnx, model.so, x.npy, net.relay."""
    import baton

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "net.relay").write_text('#[version = "0.0.5"]\ndef @main() -> float32 { add(1f, 2f) }\n')
    monkeypatch.chdir(tmp_path)
    baton.compile("model.onnx").save("model.so")
    return tmp_path


def test_there_is_something_to_try():
    assert len(COMMANDS) >= 6 and len(SNIPPETS) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(place, command):
    import baton

    env = {**os.environ, "PYTHONPATH": str(Path(baton.__file__).parents[1]), "BATON_CACHE_DIR": str(place / "cache")}
    run = subprocess.run([sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True, check=False, cwd=place, env=env)
    assert run.returncode == 0, run.stderr
    if command.startswith("baton opt"):
        assert "3f" in run.stdout


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_python(place, number):
    names = {"x": np.load("x.npy")}
    exec(compile(SNIPPETS[number], "README.md", "exec"), names)
    y = names["y"]
    y = y if isinstance(y, np.ndarray) else np.asarray(y[0] if isinstance(y, list | tuple) else y)
    np.testing.assert_array_equal(y, names["x"])


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"
