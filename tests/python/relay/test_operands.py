# SPDX-License-Identifier: Apache-2.0
"""Operands and attributes as programs of Relay 0.8 give them: whole numbers in floats, types that follow, extents that are computed."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te


def type_of(expr, params=None):
    func = relay.Function(relay.analysis.free_vars(expr) if params is None else params, expr)
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"].ret_type


def run(params, expr, *args):
    mod = tvm.IRModule.from_expr(relay.Function(params, expr))
    return relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()(*args)


X = relay.var("x", shape=(2, 3))
IMAGE = relay.var("image", shape=(1, 3, 4, 4))


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: relay.tile(X, (2.0, 1.0)), (4, 3)),
        (lambda: relay.tile(X, 2.0), (2, 6)),
        (lambda: relay.tile(X, relay.const([2.0, 1.0])), (4, 3)),
        (lambda: relay.repeat(X, 2.0, 0.0), (4, 3)),
        (lambda: relay.topk(X, 2.0, ret_type="values"), (2, 2)),
        (lambda: relay.topk(X, np.float32(2), ret_type="values"), (2, 2)),
        (lambda: relay.topk(X, relay.const(2.0), ret_type="values"), (2, 2)),
        (lambda: relay.image.resize2d(IMAGE, (8.0, 6.0)), (1, 3, 8, 6)),
        (lambda: relay.image.resize2d(IMAGE, np.array([8.0, 6.0])), (1, 3, 8, 6)),
        (lambda: relay.image.resize1d(relay.var("line", shape=(1, 3, 4)), 8.0), (1, 3, 8)),
        (lambda: relay.reshape(X, (3.0, 2.0)), (3, 2)),
        (lambda: relay.zeros((3.0,), "float32"), (3,)),
        (lambda: relay.nn.max_pool2d(IMAGE, (2.0, 2.0), strides=2.0, padding=1.0), (1, 3, 3, 3)),
    ],
)
def test_whole_numbers_in_floats(make, shape):
    assert type_of(make()).concrete_shape == shape


def test_numbers_that_are_not_whole():
    for make in (lambda: relay.tile(X, (2.5, 1)), lambda: relay.topk(X, 1.5), lambda: relay.repeat(X, float("inf"), 0)):
        with pytest.raises(TypeError, match="expected int, got float"):
            make()


def test_types_of_deformable_convolutions_follow():
    data, offset, weight = relay.var("data", shape=(1, 8, 8, 4)), relay.var("offset"), relay.var("weight")
    made = relay.nn.deformable_conv2d(data, offset, weight, kernel_size=(3, 3), channels=6, data_layout="NHWC", kernel_layout="HWIO")
    func = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([data, offset, weight], made)))["main"]
    assert [tuple(p.type_annotation.concrete_shape) for p in func.params] == [(1, 8, 8, 4), (1, 6, 6, 18), (3, 3, 4, 6)]
    assert func.ret_type.concrete_shape == (1, 6, 6, 6)


@pytest.mark.parametrize("ids", [[0, 0, 1], [2, 0, 2]])
@pytest.mark.parametrize("number", [None, 4])
def test_segments_of_the_first_rows(ids, number):
    data, given = relay.var("data", shape=(5, 2)), relay.var("ids", shape=(3,), dtype="int32")
    rows = np.arange(10, dtype="float32").reshape(5, 2)
    want = np.zeros((number or max(ids) + 1, 2), "float32")
    np.add.at(want, ids, rows[:3])
    made = relay.segment_sum(data, given, num_segments=number)
    np.testing.assert_array_equal(run([data, given], made, rows, np.array(ids, "int32")).numpy(), want)


@pytest.mark.parametrize("constant", [True, False])
def test_indices_under_the_same_shape_stay(constant):
    indices = np.array([[9, 1], [0, 0]])
    variables = [relay.var(n, shape=s, dtype="int64") for n, s in (("i", (2, 2)), ("before", (2,)), ("after", (2,)))]
    values = [indices, np.array([4, 4]), np.array([4, 4])]
    given = [relay.const(v) for v in values] if constant else variables
    made = relay.sparse_reshape(*given).astuple()
    found = run([], made) if constant else run(variables, made, *values)
    np.testing.assert_array_equal(found[0].numpy(), indices)
    if not constant:
        values[0], values[2] = np.array([[1, 1], [0, 3]]), np.array([2, -1])
        found = run(variables, made, *values)
        assert found[0].numpy().tolist() == [[0, 5], [0, 3]] and found[1].numpy().tolist() == [2, 8]


@pytest.mark.parametrize("factor", [2.0, 2.5, 1.0, 0.75])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extents_that_are_rounded_products(factor, dtype):
    n, c, h, w = (te.size_var(name) for name in "nchw")
    x = relay.var("x", relay.TensorType((n, c, h, w), "float32"))
    scale = tvm.tir.const(factor, dtype)
    rounded = [tvm.tir.Cast("int32", te.round(extent * scale)) for extent in (h, w)]
    made = type_of(relay.nn.upsampling(x, scale_h=factor, scale_w=factor, layout="NCHW", method="bilinear"))
    assert made == relay.TensorType((n, c, *rounded), "float32")
    assert made != relay.TensorType((n, c, rounded[0], w * 3), "float32")
    d = te.size_var("d")
    volume = relay.var("x", relay.TensorType((n, c, d, h, w), "float32"))
    made = type_of(relay.nn.upsampling3d(volume, scale_d=scale, scale_h=scale, scale_w=scale))
    assert made == relay.TensorType((n, c, tvm.tir.Cast("int32", te.round(d * scale)), *rounded), "float32")


def test_integers_as_conditions():
    c, a, b = relay.var("c", shape=(2,), dtype="int32"), relay.const([1.0, 2.0]), relay.const([3.0, 4.0])
    assert run([c], relay.where(c, a, b), np.array([7, 0], "int32")).numpy().tolist() == [1, 4]
