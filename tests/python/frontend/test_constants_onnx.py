# SPDX-License-Identifier: Apache-2.0
"""Nodes whose operands are small constants are computed while a model is imported, to the bits that the program would compute."""

import numpy as np
import pytest

import baton
from baton import relay
from baton.contrib import onnx_backend
from baton.relay.frontend import from_onnx

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

I64, I32 = (np.array(v) for v in ([7, -7, 5, 0], np.array([2, -3], "int32")))
F32 = np.array([[1.5, -2.25, 3], [0.1, 7, -0.0]], "float32")
M = np.arange(6).reshape(2, 3) - 2
TWO = np.array([2, 3, -2, 5])
HALF = np.array([0.1, -1.5, 65504, 2e-7], "float16")
BOOL = np.array([[True, False, True], [False, False, True]])
LONG = np.arange(300) - 150
INT8 = np.array([100, 100, -100], "int8")

ROWS = {
    "Add": [(I64, TWO), (M, M[:1]), (F32, F32[1]), (INT8, INT8), (HALF, HALF), (LONG, LONG)],
    "Sub": [(I64, TWO), (F32, F32[0]), (M, np.array(1))],
    "Mul": [(I64, TWO), (M, M), (F32, F32), (np.array([2**62]), np.array([4]))],
    "Div": [(I64, TWO), (M, np.array([[2], [-3]])), (F32, F32[1] + 3), (LONG, np.array(7))],
    "Mod": [(I64, TWO), (M, np.array([[2], [-3]]))],
    "Pow": [(F32, np.array(2, "float32"))],
    "Max": [(F32, F32[:1]), (M, M[1])],
    "Min": [(F32, F32[:1]), (M, M[1])],
    "Less": [(F32, F32[1]), (M, M[1])],
    "GreaterOrEqual": [(F32, F32[1]), (M, M[1])],
    "Equal": [(F32, F32[1]), (M, M[1]), (BOOL, BOOL[0])],
    "And": [(BOOL, BOOL[0])],
    "Or": [(BOOL, BOOL[0])],
    "Not": [(BOOL,)],
    "Where": [(BOOL, F32, F32[0]), (BOOL, M, np.array(9))],
    "Neg": [(M,), (F32,), (I64,)],
    "Abs": [(M,), (F32,), (INT8,)],
    "Sqrt": [(np.abs(F32),)],
    "Floor": [(F32,), (HALF,)],
    "Ceil": [(F32,)],
    "Erf": [(F32,)],
    "Cast to 6": [(F32,), (LONG,), (BOOL,), (HALF,)],
    "Cast to 9": [(F32,), (M,)],
    "Cast to 10": [(F32,), (M,)],
    "Cast to 3": [(np.array([300, -1, 128]),)],
    "Transpose": [(F32,), (M,)],
    "Reshape": [(M, np.array([3, 2])), (F32, np.array([-1]))],
    "Concat axis 0": [(M, M), (F32, F32[:1])],
    "Concat axis 1": [(M, M)],
    "Gather axis 0": [(M, np.array([1, -1])), (LONG, np.array([[3, -2], [5, 0]]))],
    "Gather axis 1": [(M, np.array(-1)), (F32, np.array([2]))],
    "Slice": [(LONG, np.array([250]), np.array([3]), np.array([0]), np.array([-7])), (M, np.array([1]), np.array([9]), np.array([1]))],
    "Expand": [(M[:1], np.array([4, 3])), (F32, np.array([2, 2, 3]))],
    "ReduceSum keepdims 0": [(M, np.array([1])), (F32, np.array([0])), (LONG,)],
    "ReduceProd keepdims 1": [(M, np.array([0]))],
    "ReduceMax keepdims 0": [(M, np.array([1])), (F32, np.array([1]))],
    "ReduceMin keepdims 1": [(F32, np.array([0]))],
}


def build(row, operands, constant):
    """A node over constants; else with its first operand as an input."""
    op, *words = row.split()
    attrs = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    names = [f"c{i}" for i in range(len(operands))]
    nodes = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(v)) for n, v in list(zip(names, operands, strict=True))[not constant :]]
    kind = helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    inputs = [] if constant else [helper.make_tensor_value_info("c0", kind, operands[0].shape)]
    graph = helper.make_graph([*nodes, helper.make_node(op, names, ["y"], **attrs)], "g", inputs, [helper.make_tensor_value_info("y", kind, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("row", ROWS)
def test_a_node_of_constants_is_a_constant(row):
    for operands in ROWS[row]:
        body = from_onnx(build(row, operands, constant=True))[0]["main"].body
        assert isinstance(body, relay.Constant), (operands, str(body))
        have = body.data.numpy()
        (want,) = onnx_backend.prepare(build(row, operands, constant=False)).run([operands[0]])
        assert have.dtype == want.dtype and have.shape == want.shape
        assert have.tobytes() == want.tobytes(), (operands, have, want)


@pytest.mark.parametrize("row, operands", [
    ("MatMul", (F32, F32.T.copy())), ("Softmax", (F32,)), ("Neg", (np.zeros(5000, "float32"),)),
], ids=["a layer", "a group", "many elements"])  # fmt: skip
def test_other_nodes_are_left_to_constant_folding(row, operands):
    module = from_onnx(build(row, operands, constant=True))[0]
    assert isinstance(module["main"].body, relay.Call)
    assert isinstance(relay.transform.FoldConstant()(relay.transform.InferType()(module))["main"].body, relay.Constant)


def test_a_division_by_a_constant_of_zero_is_that_of_the_program():
    operands = (np.array([[1, -4]]), np.array([0]))
    (want,) = onnx_backend.prepare(build("Div", operands, constant=False)).run([operands[0]])
    (have,) = onnx_backend.prepare(build("Div", operands, constant=True)).run([])
    np.testing.assert_array_equal(have, want)


def test_instruments_see_no_pass_of_an_evaluation():
    seen = []

    @baton.ir.instrument.pass_instrument
    class Watch:
        def run_before_pass(self, module, info):
            seen.append(info.name)

    with baton.transform.PassContext(instruments=[Watch()]):
        from_onnx(build("Sqrt", (np.abs(F32),), constant=True))
    assert seen == []
