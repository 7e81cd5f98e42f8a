# SPDX-License-Identifier: Apache-2.0
"""`baton inspect --xray`: it says node for node what compiling then does."""

import json
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import baton  # noqa: E402
from baton.driver.xray import xray  # noqa: E402


def node(op, inputs, outputs, name="", **attributes):
    return helper.make_node(op, inputs, outputs, name=name, **attributes)


def write(path, nodes, inputs, outputs, initializers=(), opsets=(("", 17), ("my", 1)), value_info=()):
    info = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)  # noqa: E731
    graph = helper.make_graph(
        nodes, "g", [info(*i) for i in inputs], [info(*o) for o in outputs], [onnx.numpy_helper.from_array(v, k) for k, v in dict(initializers).items()],
        value_info=[info(*v) for v in value_info],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets], ir_version=9), path)
    return path


F32 = "float32"
WEIGHT = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(F32)
MODELS = {
    "a layer": dict(
        nodes=[
            node("Conv", ["x", "w"], ["c"], "conv"),
            node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], "norm"),
            node("Relu", ["n"], ["r"], "relu"),
            node("GlobalAveragePool", ["r"], ["y"], "pool"),
        ],
        inputs=[("x", [1, 3, 8, 8])],
        outputs=[("y", None)],
        initializers={"w": WEIGHT, "s": np.ones(8, F32), "b": np.ones(8, F32), "m": np.zeros(8, F32), "v": np.ones(8, F32)},
    ),
    "values that shapes depend on": dict(
        nodes=[node("Relu", ["x"], ["a"], "relu"), node("NonZero", ["a"], ["n"], "places"), node("Transpose", ["n"], ["t"]), node("Cast", ["t"], ["y"], to=1)],
        inputs=[("x", [2, 3])],
        outputs=[("y", [None, 2])],
    ),
    "shapes that are known": dict(
        nodes=[
            node("Shape", ["x"], ["s"], "shape"),
            node("Gather", ["s", "one"], ["n"], "second"),
            node("Concat", ["n", "rest"], ["to"], "to", axis=0),
            node("Reshape", ["x", "to"], ["r"], "reshape"),
            node("Exp", ["r"], ["y"], "exp"),
        ],
        inputs=[("x", [2, 6])],
        outputs=[("y", None)],
        initializers={"one": np.array([1]), "rest": np.array([-1])},
    ),
    "open lengths": dict(
        nodes=[node("MatMul", ["x", "w"], ["a"], "product"), node("Softmax", ["a"], ["p"], "softmax"), node("TopK", ["p", "k"], ["y", "i"], "top")],
        inputs=[("x", ["n", 3])],
        outputs=[("y", None), ("i", None, TensorProto.INT64)],
        initializers={"w": np.ones((3, 5), F32), "k": np.array([2])},
    ),
    "a loop": dict(
        nodes=[
            node(
                "Loop", ["count", "", "x"], ["y"], "loop",
                body=helper.make_graph(
                    [node("Add", ["state", "state"], ["next"], "twice"), node("Identity", ["more"], ["on"], "on")], "body",
                    [helper.make_tensor_value_info(*v) for v in (("i", TensorProto.INT64, []), ("more", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, [3]))],
                    [helper.make_tensor_value_info(*v) for v in (("on", TensorProto.BOOL, []), ("next", TensorProto.FLOAT, [3]))],
                ),
            ),
            node("Neg", ["y"], ["z"], "minus"),
        ],
        inputs=[("x", [3]), ("count", [], TensorProto.INT64)],
        outputs=[("z", None)],
    ),
}  # fmt: skip


def arguments(model):
    return [np.ones([d if isinstance(d, int) else 4 for d in i.shape], i.dtype) for i in model.inputs]


def check_forecast(found, model):
    """Compares with the steps of the compiled model."""
    places = {row["node"]: row["where"] for row in found.rows}
    assert set(places.values()) <= {"compiled", "host", "folded"}
    steps = model.profile(*arguments(model), rounds=1)["steps"]
    compiled = {s["source"] for s in steps if s["kernel"].startswith("fused_")} - {""}  # changes of layout are the compiler's
    host = {s["source"] for s in steps if not s["kernel"].startswith("fused_")}
    assert host == {n for n, place in places.items() if place == "host"}, steps
    assert compiled and compiled <= {n for n, place in places.items() if place == "compiled"}, steps


@pytest.mark.parametrize("name", MODELS)
def test_the_forecast_is_what_compiling_does(name, tmp_path):
    path = write(tmp_path / "m.onnx", **MODELS[name])
    check_forecast(xray(path), baton.compile(path))


def test_a_forecast_of_relay_text(tmp_path):
    (tmp_path / "m.relay").write_text("""#[version = "0.0.5"]
def @main(%x: Tensor[(4, 6), float32], %w: Tensor[(5, 6), float32]) {
  %0 = nn.dense(%x, %w);
  %1 = argsort(%0);
  (nn.relu(%0), %1)
}
""")
    found, model = xray(tmp_path / "m.relay"), baton.compile(tmp_path / "m.relay")
    steps = model.profile(*arguments(model), rounds=1)["steps"]
    assert [(r["operator"], r["where"]) for r in found.rows] == [("nn.dense", "compiled"), ("nn.relu", "compiled"), ("argsort", "host")]
    assert [s["kernel"] for s in steps if not s["kernel"].startswith("fused_")] == ["argsort"]
    assert found.rows[0]["flop"] == 2 * 4 * 5 * 6 and found.rows[0]["bytes"] == 4 * (24 + 30 + 20)


@pytest.fixture
def lacking(tmp_path):
    return write(
        tmp_path / "bad.onnx",
        [
            node("Relu", ["x"], ["a"], "relu"),
            node("Frob", ["a"], ["b"], "frob", domain="my"),
            node("Neg", ["b"], ["c"], "neg"),
            node("Relu", ["x"], ["d"], "slope", slope=1.0),
            node("Exp", ["d"], ["e"], "exp"),
            node("Add", ["c", "e"], ["y"], "add"),
        ],
        [("x", [2, 3])],
        [("y", [2, 3])],
        value_info=[("d", [2, 3])],
    )


def test_what_is_not_supported(lacking):
    found = xray(lacking)
    assert {r["node"]: r["where"] for r in found.rows} == {
        "node `relu` (Relu)": "compiled",
        "node `frob` (my.Frob)": "unsupported",
        "node `neg` (Neg)": "unknown",
        "node `slope` (Relu)": "unsupported",
        "node `exp` (Exp)": "compiled",
        "node `add` (Add)": "unknown",
    }
    with pytest.raises(baton.UnsupportedError) as raised:
        baton.compile(lacking)
    lines = str(raised.value).splitlines()[1:]
    assert len(lines) == len(found.unsupported) == 2
    for row, line in zip(found.unsupported, lines, strict=True):
        assert line.strip().startswith(row["node"]) and line.endswith(row["why"])


def test_each_missing_node_alone_fails_in_the_same_way(lacking, tmp_path):
    found = xray(lacking)
    paths = found.write_missing(tmp_path / "missing")
    assert [p.rpartition("/")[2] for p in paths] == ["00_my_Frob.onnx", "01_Relu.onnx"]
    for row, path in zip(found.unsupported, paths, strict=True):
        with pytest.raises(baton.UnsupportedError) as raised:
            baton.compile(path)
        assert row["why"] in str(raised.value)
        assert [r["why"] for r in xray(path).rows] == [row["why"]]


def run(*args):
    return subprocess.run([sys.executable, "-m", "baton", "inspect", "--xray", *map(str, args)], capture_output=True, text=True)


def test_the_command(lacking, tmp_path):
    done = run(lacking, "--html", tmp_path / "x.html", "--missing", tmp_path / "out")
    assert done.returncode == 3 and "6 nodes: 2 compiled, 2 unsupported, 2 unknown" in done.stdout, done.stderr
    assert "unsupported  my.Frob  node `frob` (my.Frob): no such operator is known" in done.stdout
    page = (tmp_path / "x.html").read_text()
    assert page.startswith("<!doctype html>") and "my.Frob" in page and "http" not in page.replace("http-equiv", "")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["00_my_Frob.onnx", "01_Relu.onnx"]
    done = run(write(tmp_path / "m.onnx", **MODELS["a layer"]), "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 0 and facts["counts"] == {"compiled": 3, "folded": 1}
    conv = facts["nodes"][0]
    assert conv["operator"] == "Conv" and conv["outputs"] == [{"name": "c", "dtype": "float32", "shape": [1, 8, 6, 6]}] and conv["flop"] == 2 * 8 * 36 * 27
    open_ = write(tmp_path / "open.onnx", **MODELS["open lengths"])
    assert json.loads(run(open_, "--json").stdout)["nodes"][0]["flop"] is None
    assert json.loads(run(open_, "--json", "--dim", "n=7").stdout)["nodes"][0]["flop"] == 2 * 7 * 3 * 5


def test_wrong_usage(tmp_path):
    path = write(tmp_path / "m.onnx", **MODELS["a layer"])
    done = subprocess.run([sys.executable, "-m", "baton", "inspect", path, "--missing", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and "--missing is of an X-ray: add --xray" in done.stderr
    (tmp_path / "bad.onnx").write_bytes(b"nothing of the kind")
    done = run(tmp_path / "bad.onnx")
    assert done.returncode == 1 and done.stderr.startswith("error:") and "Traceback" not in done.stderr
