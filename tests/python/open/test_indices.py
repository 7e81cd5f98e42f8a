# SPDX-License-Identifier: Apache-2.0
"""Indices into axes whose length is open: one that lies outside is an IndexError that says where, and the next call works."""

import re

import numpy as np
import pytest

import baton

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

F, INT, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model(nodes, inputs, weights=(), outputs=("y",)):
    made = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    out = [helper.make_tensor_value_info(name, F, None) for name in outputs]
    stored = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in weights]
    return helper.make_model(helper.make_graph(nodes, "g", made, out, stored), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def op(kind, *inputs, **attrs):
    return helper.make_node(kind, inputs, ["y"], name="pick", **attrs)


def f32(*shape):
    return np.random.default_rng(list(shape)).standard_normal(shape).astype("float32")


def ints(*values):
    return np.array(values, "int64")


X, AT = ("x", F, ["n", "m"]), ("at", INT, ["k"])
# Nodes, inputs; arguments that fit; arguments with the index that does not, its axis and length.
CASES = {
    "Gather": (op("Gather", "x", "at", axis=0), [X, AT], [(f32(5, 3), ints(0, 4, -5)), (f32(2, 3), ints(-2, 1))],
               [(f32(5, 3), ints(0, 5), 5, 0, 5), (f32(2, 3), ints(1, 1, -3), -3, 0, 2), (f32(0, 3), ints(0), 0, 0, 0)]),
    "Gather of the second axis": (op("Gather", "x", "at", axis=1), [X, AT], [(f32(5, 3), ints(2, -3))], [(f32(5, 3), ints(3), 3, 1, 3)]),
    "Gather by a constant": (op("Gather", "x", "c", axis=0), [X], [(f32(4, 3),)], [(f32(3, 3), 3, 0, 3)]),
    "GatherElements": (op("GatherElements", "x", "at", axis=1), [X, ("at", INT, ["n", "k"])], [(f32(2, 4), ints([3, -4], [0, 1]))],
                       [(f32(2, 4), ints([3, 0], [4, 1]), 4, 1, 4)]),
    "GatherND": (op("GatherND", "x", "at"), [X, ("at", INT, ["k", 2])], [(f32(5, 3), ints([4, 2], [-5, -3]))],
                 [(f32(5, 3), ints([4, 2], [2, 4]), 4, 1, 3), (f32(5, 3), ints([-6, 2]), -6, 0, 5)]),
    "ScatterElements": (op("ScatterElements", "x", "at", "u", axis=0), [X, ("at", INT, ["k", "m"]), ("u", F, ["k", "m"])],
                        [(f32(5, 2), ints([4, -5]), f32(1, 2))], [(f32(5, 2), ints([4, 5]), f32(1, 2), 5, 0, 5)]),
    "ScatterND": (op("ScatterND", "x", "at", "u"), [X, ("at", INT, ["k", 1]), ("u", F, ["k", "m"])], [(f32(5, 2), ints([4], [0]), f32(2, 2))],
                  [(f32(5, 2), ints([5]), f32(1, 2), 5, 0, 5)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_index_outside_an_open_axis(case, tmp_path):
    node, inputs, good, bad = CASES[case]
    source = model([node], inputs, [("c", ints(3))] if case.endswith("constant") else [])
    reference = ReferenceEvaluator(source)
    made = baton.compile(source)
    made.save(tmp_path / "m.so")
    for m in (made, baton.load(tmp_path / "m.so")):
        for *args, index, axis, length in bad:
            with pytest.raises(IndexError, match=re.escape(f"index {index} lies outside axis {axis} of {length} elements")):
                m(*args)
            for feed in good:
                want = reference.run(None, dict(zip((i[0] for i in inputs), feed, strict=True)))[0]
                np.testing.assert_array_equal(m(*feed).numpy(), want)


def test_in_a_program_of_several_regions():
    """The axis' length follows from a value: rows that NonZero found."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["mask"]),
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node("Cast", ["rows"], ["data"], to=F),
        op("Gather", "data", "at", axis=0),
    ]
    m = baton.compile(model(nodes, [("x", F, ["n"]), AT], [("zero", np.float32(0))]))
    x = np.array([1, -1, 2, 3], "float32")
    np.testing.assert_array_equal(m(x, ints(2, 0)).numpy(), [[3], [0]])
    with pytest.raises(IndexError, match="index 3 lies outside axis 0 of 3 elements"):
        m(x, ints(3))
    np.testing.assert_array_equal(m(x, ints(-1)).numpy(), [[3]])
