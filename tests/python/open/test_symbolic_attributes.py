# SPDX-License-Identifier: Apache-2.0
"""Tile, Pad and Split whose numbers follow from lengths, or come with a call, are parts of kernels: no function of the host runs them."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F, INT = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node
# From the lengths (n, m) of x: half of both, n and m as lists, half of m, the rest of m.
LENGTHS = [
    node("Shape", ["x"], ["s"]),
    node("Div", ["s", "two"], ["halves"]),
    node("Gather", ["s", "one"], ["m"]),
    node("Gather", ["halves", "one"], ["half"]),
    node("Sub", ["m", "half"], ["rest"]),
]
WEIGHTS = {"two": [2, 2], "zero": [0], "one": [1], "zeros": [0, 0, 0]}

# Nodes that make y; the argument `k` for x of (n, m), if there is one.
CASES = {
    "tile": ([node("Tile", ["x", "halves"], ["y"])], None),
    "tile by values": ([node("Tile", ["x", "k"], ["y"])], lambda n, m: [2, m % 3]),
    "pad": ([node("Concat", ["zeros", "half"], ["p"], axis=0), node("Pad", ["x", "p"], ["y"])], None),
    "pad reflect": ([node("Concat", ["zeros", "half"], ["p"], axis=0), node("Pad", ["x", "p"], ["y"], mode="reflect")], None),
    "pad edge": ([node("Concat", ["half", "zeros"], ["p"], axis=0), node("Pad", ["x", "p"], ["y"], mode="edge")], None),
    "pad by values": ([node("Pad", ["x", "k", "c"], ["y"])], lambda n, m: [1, -1, 0, m]),
    "pad of an axis": ([node("Pad", ["x", "k", "c", "one"], ["y"])], lambda n, m: [m, -m]),
    "split": ([node("Concat", ["half", "rest"], ["p"], axis=0), node("Split", ["x", "p"], ["a", "y"], axis=1)], None),
    "split by values": ([node("Split", ["x", "k"], ["a", "y"], axis=-1)], lambda n, m: [1, m - 1]),
    "split into equal parts": ([node("Split", ["x"], ["a", "y", "b"], axis=1, num_outputs=3)], None),
}  # fmt: skip


def model(nodes, values):
    inputs = [helper.make_tensor_value_info("x", F, ["n", "m"])]
    if values:
        inputs.append(helper.make_tensor_value_info("k", INT, [len(values(1, 1))]))
    stored = [onnx.numpy_helper.from_array(np.array(v, "int64"), name) for name, v in WEIGHTS.items()]
    stored.append(onnx.numpy_helper.from_array(np.float32(0.5), "c"))
    graph = helper.make_graph([*LENGTHS, *nodes], "g", inputs, [helper.make_tensor_value_info("y", F, None)], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def padded(x, pads):
    """What the reference says for no negative numbers, which cut."""
    pads = pads if len(pads) == 4 else [0, pads[0], 0, pads[1]]
    rows = list(zip(pads[:2], pads[2:], x.shape, strict=True))
    cut = x[tuple(slice(max(-a, 0), n + min(b, 0)) for a, b, n in rows)]
    return np.pad(cut, [(max(a, 0), max(b, 0)) for a, b, _ in rows], constant_values=0.5)


def arguments(values, n, m):
    x = np.random.default_rng([n, m]).standard_normal((n, m)).astype("float32")
    return (x, np.array(values(n, m), "int64")) if values else (x,)


@pytest.mark.parametrize("case", CASES)
def test_numbers_that_follow_from_lengths(case, tmp_path):
    nodes, values = CASES[case]
    source = model(nodes, values)
    reference, made = ReferenceEvaluator(source), baton.compile(source)
    assert made.module.type_key == "aot" or "packed" not in made.module.get_source("vm")  # no function of the host
    made.save(tmp_path / "m.so")
    loaded = baton.load(tmp_path / "m.so")
    for n, m in ((2, 6), (3, 5), (1, 3), (5, 8)):
        args = arguments(values, n, m)
        want = padded(*args) if values and case.startswith("pad") else reference.run(None, dict(zip("xk", args, strict=False)))[0]
        for run in (made, loaded):
            np.testing.assert_array_equal(run(*args).numpy(), want)


@pytest.mark.parametrize(("case", "bad"), [
    ("split by values", [1, 3]),
    ("split by values", [-1, 7]),
    ("split by values", [7, 0]),
    ("tile by values", [-1, 1]),
    ("pad by values", [-2, 0, -1, 0]),
    ("pad of an axis", [-7, 0]),
])  # fmt: skip
def test_numbers_that_do_not_fit(case, bad):
    nodes, values = CASES[case]
    made = baton.compile(model(nodes, values))
    x, good = arguments(values, 2, 6)
    with pytest.raises((ValueError, baton.error.RuntimeError)):
        made(x, np.array(bad))
    made(x, good)
