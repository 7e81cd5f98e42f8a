# SPDX-License-Identifier: Apache-2.0
"""Integers of 2 and 4 bits that operators move: each has a byte of its own in memory, in vectors too."""

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

ROWS = {
    "expand rows": ("Expand", (1, 7), [[5, 7]], {}, lambda q: np.broadcast_to(q, (5, 7))),
    "expand a middle axis": ("Expand", (2, 1, 8), [[2, 5, 8]], {}, lambda q: np.broadcast_to(q, (2, 5, 8))),
    "slice rows": ("Slice", (6, 8), [[1], [4]], {}, lambda q: q[1:4]),
    "slice columns": ("Slice", (6, 8), [[1], [4], [1]], {}, lambda q: q[:, 1:4]),
    "transpose": ("Transpose", (6, 7), [], {}, lambda q: q.T),
    "reshape": ("Reshape", (6, 7), [[7, 6]], {}, lambda q: q.reshape(7, 6)),
    "concat": ("Concat", (3, 3), ["q"], {"axis": 0}, lambda q: np.concatenate([q, q])),
    "tile": ("Tile", (3, 5), [[2, 2]], {}, lambda q: np.tile(q, (2, 2))),
    "gather": ("Gather", (6, 16), [[4, 0, 4]], {}, lambda q: q[[4, 0, 4]]),
}


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "input"])
@pytest.mark.parametrize("kind", ["UINT4", "INT4", "UINT2", "INT2"])
@pytest.mark.parametrize("row", ROWS)
def test_moved(row, kind, constant):
    op, shape, more, attrs, want = ROWS[row]
    bits, code = int(kind[-1]), getattr(TensorProto, kind)
    low = 0 if kind.startswith("U") else -(1 << (bits - 1))
    q = np.random.default_rng(0).integers(low, low + (1 << bits), shape)
    names = [m if isinstance(m, str) else f"m{i}" for i, m in enumerate(more)]
    nodes = [] if constant else [helper.make_node("Cast", ["x"], ["q"], to=code)]
    nodes += [helper.make_node(op, ["q", *names], ["d"], **attrs), helper.make_node("Cast", ["d"], ["y"], to=TensorProto.INT32)]
    weights = [helper.make_tensor("q", code, shape, q.ravel())] if constant else []
    weights += [helper.make_tensor(n, TensorProto.INT64, [len(m)], m) for n, m in zip(names, more, strict=True) if not isinstance(m, str)]
    inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.INT32, s)] for n, s in (("x", shape), ("y", None)))
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    np.testing.assert_array_equal(baton.compile(made)(q.astype(np.int32)).numpy(), want(q))


@pytest.mark.parametrize("kind", ["UINT4", "INT4", "UINT8"])
@pytest.mark.parametrize("rows, columns, block", [(24, 7, 32), (24, 8, 16), (20, 7, 16), (32, 8, 32), (24, 7, 8)])
def test_zero_points_of_blocks(rows, columns, block, kind):
    code, rng = getattr(TensorProto, kind), np.random.default_rng(0)
    blocks = -(-rows // block)
    q, z = rng.integers(0, 8, (rows, columns)), rng.integers(0, 8, (blocks, columns))
    s = rng.random((blocks, columns)).astype(np.float32) + 0.1
    weights = [helper.make_tensor(n, k, v.shape, v.ravel()) for n, k, v in (("q", code, q), ("s", TensorProto.FLOAT, s), ("z", code, z))]
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], axis=0, block_size=block), helper.make_node("MatMul", ["x", "d"], ["y"])]
    inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, d)] for n, d in (("x", [3, rows]), ("y", None)))
    made = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, weights), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    x = rng.standard_normal((3, rows)).astype(np.float32)
    want = x @ ((q - np.repeat(z, block, 0)[:rows]) * np.repeat(s, block, 0)[:rows])
    np.testing.assert_allclose(baton.compile(made)(x).numpy(), want, rtol=1e-4, atol=1e-4)
