# SPDX-License-Identifier: Apache-2.0
"""The same model gives the same bytes, whatever the process, its threads, addresses, locale, time zone, user and folder are,
and with no network."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

CODE = """
import sys, numpy as np
from onnx import TensorProto, helper, numpy_helper
import baton
from baton import relay

def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

rng = np.random.default_rng(0)
weights = {"w": rng.standard_normal((16, 3, 3, 3)), "d": rng.standard_normal((16, 10)), "b": rng.standard_normal(10)}
nodes = [
    helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("GlobalAveragePool", ["r"], ["g"]),
    helper.make_node("Flatten", ["g"], ["f"]),
    helper.make_node("Gemm", ["f", "d", "b"], ["y"]),
]
init = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
graph = helper.make_graph(nodes, "g", [value("x", [1, 3, 16, 16])], [value("y", [1, 10])], init)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
mod, params = relay.frontend.from_onnx(model)
lib = relay.build(mod, target="llvm -mcpu=x86-64-v2" if sys.argv[1] == "x86_64" else "llvm", params=params)
lib.export_library("m.so")
open("m.relay", "w").write(mod.astext())
"""


def works(*command):
    return shutil.which(command[0]) and subprocess.run([*command, "true"], capture_output=True).returncode == 0


OTHER = {"BATON_NUM_THREADS": "7", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/nonexistent", "USER": "nobody",
         "PYTHONHASHSEED": "77", "LANG": "de_DE.UTF-8"}  # fmt: skip


@pytest.mark.parametrize("first, count", [(0, 30), pytest.param(1000, 500, marks=pytest.mark.slow)])
def test_random_programs_give_the_same_everywhere(tmp_path, first, count):
    """Reliability figure 17: the same program twice, at 1 to 16 threads, with other addresses, locale, folder, user and time zone: the same text
    and, of every fifth, the same bytes of the artifact."""
    still = ["setarch", "-R"] if works("setarch", "-R") else []
    rows = []
    for name, env, prefix, threads in (("a", {"BATON_NUM_THREADS": "1", "PYTHONHASHSEED": "1"}, [], 1), ("of another name", OTHER, still, 2),
                                       ("c", {"BATON_NUM_THREADS": "16"}, [], 16)):  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        script = Path(__file__).with_name("determinism.py")
        done = subprocess.run([*prefix, sys.executable, script, str(first), str(count), str(threads)], cwd=folder, env={**os.environ, **env},
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        rows.append(json.loads(done.stdout))
    assert len(rows[0]) == count
    for seed, row in rows[0].items():
        once = (len(row) - 1) // 2
        assert row[1 : 1 + once] == row[1 + once :], f"program {seed}: the second time is not like the first"
        assert once == 1 + (int(seed) % 5 == 0) and not any(":" in value for value in row), f"program {seed}: {row}"
        assert row == rows[1][seed] == rows[2][seed], f"program {seed}: another process gives something else"


def test_same_bytes_everywhere(tmp_path):
    """Reliability figure 17, for a network."""
    before = (["setarch", "-R"] if works("setarch", "-R") else []) + (["unshare", "-n"] if works("unshare", "-n") else [])
    made = []
    for name, env, prefix in (("a", {"BATON_NUM_THREADS": "1"}, []), ("folder of another name", OTHER, before)):
        folder = tmp_path / name
        folder.mkdir()
        command = [*prefix, sys.executable, "-c", CODE, os.uname().machine]
        done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert sorted(p.name for p in folder.iterdir()) == ["m.relay", "m.so"]
        made.append([(folder / file).read_bytes() for file in ("m.so", "m.relay")])
    assert made[0] == made[1]
