# SPDX-License-Identifier: Apache-2.0
"""Indices of Gather and Scatter that lie outside, known when the model runs alone: an IndexError that names node, index, axis and extent."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import baton

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5), "float32")


def model(op, index_shape, updates=None, index_type=TensorProto.INT64, data=(6, 5), out=None, **attrs):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, data), helper.make_tensor_value_info("i", index_type, index_shape)]
    if updates is not None:
        inputs.append(helper.make_tensor_value_info("u", TensorProto.FLOAT, updates))
    node = helper.make_node(op, [i.name for i in inputs], ["y"], name="here", **attrs)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)])
    return baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())


def refuses(made, index, axis, extent, *args):
    with pytest.raises(IndexError, match=f"`here` .*: index {index} lies outside axis {axis} of {extent} elements"):
        made(*args)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("axis", "extent"), [(0, 6), (1, 5), (-1, 5)])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_gather(dtype, axis, extent, count):
    made = model("Gather", [count], index_type=TensorProto.INT32 if dtype == "int32" else TensorProto.INT64, axis=axis)
    good = RNG.integers(-extent, extent, count).astype(dtype)
    np.testing.assert_array_equal(made(X, good).numpy(), np.take(X, good, axis))
    for bad in (extent, -extent - 1, 1 << 30, -(1 << 31)):
        for at in {0, count // 2, count - 1}:
            wrong = good.copy()
            wrong[at] = bad
            refuses(made, bad, axis % 2, extent, X, wrong)
    np.testing.assert_array_equal(made(X, good).numpy(), np.take(X, good, axis))  # the model goes on


def test_a_saved_model(tmp_path):
    model("Gather", [3]).save(tmp_path / "gather.so")
    made = baton.load(tmp_path / "gather.so")
    refuses(made, -7, 0, 6, X, np.array([1, -7, 9]))
    np.testing.assert_array_equal(made(X, np.array([1, -6, 5])).numpy(), X[[1, 0, 5]])


def test_gather_elements():
    made = model("GatherElements", [6, 5], axis=1)
    good = RNG.integers(-5, 5, (6, 5))
    np.testing.assert_array_equal(made(X, good).numpy(), np.take_along_axis(X, good % 5, 1))
    good[4, 3] = 5
    refuses(made, 5, 1, 5, X, good)


def test_gather_nd():
    made = model("GatherND", [4, 2])
    good = np.stack([RNG.integers(-6, 6, 4), RNG.integers(-5, 5, 4)], 1)
    np.testing.assert_array_equal(made(X, good).numpy(), X[good[:, 0], good[:, 1]])
    for axis, bad, extent in ((0, 6, 6), (1, -6, 5), (1, 5, 5)):
        wrong = good.copy()
        wrong[2, axis] = bad
        refuses(made, bad, axis, extent, X, wrong)


def test_scatter_elements():
    made = model("ScatterElements", [1, 5], updates=[1, 5], axis=0, out=(6, 5))
    good, u = np.array([[0, -1, 2, 3, -6]]), np.ones((1, 5), "float32")
    want = X.copy()
    np.put_along_axis(want, good % 6, u, 0)
    np.testing.assert_array_equal(made(X, good, u).numpy(), want)
    good[0, 2] = 6
    refuses(made, 6, 0, 6, X, good, u)


def test_scatter_nd():
    made = model("ScatterND", [2, 1], updates=[2, 5], out=(6, 5))
    u = np.ones((2, 5), "float32")
    want = X.copy()
    want[[1, 5]] = 1
    np.testing.assert_array_equal(made(X, np.array([[1], [-1]]), u).numpy(), want)
    refuses(made, -7, 0, 6, X, np.array([[1], [-7]]), u)


def test_an_open_batch():
    made = model("Gather", ["n"])
    np.testing.assert_array_equal(made(X, np.array([1, -1])).numpy(), X[[1, 5]])
    refuses(made, 6, 0, 6, X, np.array([1, 2, 6, 0]))


def test_a_percent_in_a_name():
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 5]), helper.make_tensor_value_info("i", TensorProto.INT64, [2])]
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "i"], ["y"], name="100%s%n")], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    )
    made = baton.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString())
    with pytest.raises(IndexError, match="100%s%n.*index 17 lies outside axis 0 of 6 elements"):
        made(X, np.array([0, 17]))
