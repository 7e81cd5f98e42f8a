# SPDX-License-Identifier: Apache-2.0
"""Weights of gigabytes are in memory once while they are imported, and while a model is compiled."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import limits  # noqa: E402

import baton  # noqa: E402

IMPORT = """
from baton.relay.frontend import from_onnx
import baton.relay

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

baton.relay.Var
before = peak()
mod, params = from_onnx("{path}", freeze_params={freeze})
print(peak() - before)
"""


def save(folder, extents, inside):
    """A chain of products; the weights beside the model, or inside."""
    rng, nodes, weights, offset, last = np.random.default_rng(0), [], [], 0, "x"
    with open(folder / "weights", "wb") as f:
        for i, (rows, columns) in enumerate(extents):
            data = rng.standard_normal((rows, columns)).astype("float32").tobytes()
            w = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[rows, columns])
            if inside:
                w.raw_data = data
            else:
                w.data_location = TensorProto.EXTERNAL
                for key, value in (("location", "weights"), ("offset", offset), ("length", len(data))):
                    w.external_data.add(key=key, value=str(value))
                f.write(data)
                offset += len(data)
            weights.append(w)
            nodes.append(helper.make_node("MatMul", [last, w.name], [f"y{i}"]))
            last = f"y{i}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, extents[0][0]])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, extents[-1][1]])
    made = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(made, str(folder / "m.onnx"))


@pytest.mark.parametrize("freeze", [True, False])
@pytest.mark.parametrize(
    ("extents", "inside"), [([(2048, 2048)] * 8, False), ([(2048, 16384)], False), ([(2048, 2048)] * 8, True)], ids=["many", "one", "inside"]
)
def test_an_import_takes_little_more_than_the_weights(tmp_path, extents, inside, freeze):
    save(tmp_path, extents, inside)
    done = limits.run(IMPORT.format(path="m.onnx", freeze=freeze), tmp_path)
    assert done.returncode == 0, done.stderr
    weights = sum(4 * rows * columns for rows, columns in extents)
    assert int(done.stdout) * 1024 < 1.3 * weights


COMPILE = """
import baton
baton.relay.Var
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
exe = baton.compile("m.onnx")
{use}
print(peak() - before)
"""


@pytest.mark.parametrize("use", ['exe.save("m.so")', 'exe(__import__("numpy").ones((1, 2048), "float32"))'], ids=["saved", "called"])
@pytest.mark.parametrize("inside", [False, True], ids=["beside", "inside"])
def test_a_compilation_takes_little_more_than_the_weights(tmp_path, inside, use):
    save(tmp_path, [(2048, 2048)] * 16, inside)
    done = limits.run(COMPILE.format(use=use), tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 1.3 * 16 * 4 * 2048 * 2048


def test_weights_that_are_read_late_are_those_of_the_import(tmp_path):
    """The answer of a model whose file is gone, or is another one, once it was compiled."""
    save(tmp_path, [(512, 512)] * 2, True)
    x = np.random.default_rng(1).standard_normal((1, 512)).astype("float32")
    exe = baton.compile(str(tmp_path / "m.onnx"))
    weights = [onnx.numpy_helper.to_array(w) for w in onnx.load(tmp_path / "m.onnx").graph.initializer]
    (tmp_path / "m.onnx").write_bytes(b"")
    np.testing.assert_allclose(exe(x).numpy(), x @ weights[0] @ weights[1], rtol=1e-3, atol=1e-3)
    exe.save(tmp_path / "m.so")
    np.testing.assert_array_equal(baton.load(tmp_path / "m.so")(x).numpy(), exe(x).numpy())
