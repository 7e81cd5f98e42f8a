# SPDX-License-Identifier: Apache-2.0
"""Weights that are bytes around a zero point: uint8 around 121, int8 around another value than 0, and those that models
restore, transpose and view. Their products and convolutions are exact sums on bytes, whose zero points may come at run time."""

import numpy as np
import pytest
from test_integer_products import PROCESSORS, convolved, int32, on, run, some  # fmt: skip

import baton
from baton import relay

WEIGHTS = [("uint8", 121), ("uint8", 0), ("uint8", 255), ("int8", -3), ("int8", 127)]


def less_zero(array, zero):
    return relay.subtract(int32(relay.const(array)), relay.const(zero))


def bytes_summed(params, body, cpu="cascadelake"):
    """Whether the products of a function are made of bytes."""
    with baton.target.Target(f"llvm -mcpu={cpu}"), baton.transform.PassContext(opt_level=3):
        mod = baton.IRModule.from_expr(relay.Function(params, body))
        t = relay.transform
        text = baton.transform.Sequential([t.InferType(), t.FoldConstant(), t.InferType(), t.IntegerProducts()])(mod).astext(show_meta_data=False)
    return 'out_dtype="int32"' in text


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype, zero", WEIGHTS)
@pytest.mark.parametrize("data", ["uint8", "int8"])
def test_matrices(cpu, dtype, zero, data):
    target, rng = on(cpu), np.random.default_rng(0)
    for ends in (False, True):
        x, w, at = some(rng, data, (9, 64), ends), some(rng, dtype, (40, 64), ends), some(rng, data, ())
        xv, zv = relay.var("x", shape=x.shape, dtype=data), relay.var("z", shape=(), dtype=data)
        want = (x.astype(np.int64) - int(at)) @ (w.astype(np.int64) - zero).T
        fixed = relay.nn.dense(relay.subtract(int32(xv), relay.const(int(at))), less_zero(w, zero))
        np.testing.assert_array_equal(run([xv], fixed, [x], target), want)
        told = relay.nn.dense(relay.subtract(int32(xv), int32(zv)), less_zero(w, zero))
        np.testing.assert_array_equal(run([xv, zv], told, [x, at], target), want)
        assert bytes_summed([xv, zv], told)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype, zero", WEIGHTS)
@pytest.mark.parametrize("case", [(3, 32, 3, 2, 1, 1), (16, 16, 1, 1, 0, 1), (8, 24, 5, 1, 2, 1), (16, 16, 3, 1, 1, 2), (16, 16, 3, 1, 1, 16)])
@pytest.mark.parametrize("sides", [(relay.Any(), relay.Any()), (8, 7)], ids=["open", "static"])
def test_convolutions(cpu, dtype, zero, case, sides):
    channels, outputs, window, strides, padding, groups = case
    target, rng = on(cpu), np.random.default_rng(1)
    x, w, at = some(rng, "uint8", (2, channels, 8, 7)), some(rng, dtype, (outputs, channels // groups, window, window)), some(rng, "uint8", ())
    xv, zv = relay.var("x", relay.TensorType((2, channels, *sides), "uint8")), relay.var("z", shape=(), dtype="uint8")
    want = convolved(x.astype(np.int64) - int(at), w.astype(np.int64) - zero, strides, padding, groups)
    for point, params, arrays in [(relay.const(int(at)), [xv], [x]), (int32(zv), [xv, zv], [x, at])]:
        attrs = {"strides": (strides, strides), "padding": (padding, padding), "groups": groups, "channels": outputs, "kernel_size": (window, window)}
        body = relay.nn.conv2d(relay.subtract(int32(xv), point), less_zero(w, zero), **attrs)
        np.testing.assert_array_equal(run(params, body, arrays, target), want)
        assert groups > 1 or bytes_summed(params, body)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("case", [(16, 48, 3, 1, 1, 1), (4, 8, 3, 2, 1, 1), (20, 16, 1, 1, 0, 1), (16, 16, 3, 1, 1, 16), (16, 16, 3, 2, 1, 2)])
def test_open_images(cpu, case):
    """One program for images of all sides: pixels side by side, less than a tile, one pixel."""
    channels, outputs, window, strides, padding, groups = case
    target, rng = on(cpu), np.random.default_rng(3)
    w = some(rng, "int8", (outputs, channels // groups, window, window))
    xv = relay.var("x", relay.TensorType((relay.Any(), channels, relay.Any(), relay.Any()), "uint8"))
    attrs = {"strides": (strides, strides), "padding": (padding, padding), "groups": groups, "channels": outputs, "kernel_size": (window, window)}
    body = relay.nn.conv2d(relay.subtract(int32(xv), relay.const(9)), int32(relay.const(w)), **attrs)
    model = baton.compile(baton.IRModule.from_expr(relay.Function([xv], body)), target=target)
    for shape in [(1, channels, 1, 1), (2, channels, 2, 3), (3, channels, 9, 8), (1, channels, 20, 31)]:
        x = some(rng, "uint8", shape)
        want = convolved(x.astype(np.int64) - 9, w.astype(np.int64), strides, padding, groups)
        np.testing.assert_array_equal(model(x).numpy(), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype, zero", [("int8", 0), ("uint8", 128), ("uint8", 121)])
@pytest.mark.parametrize("rows", [relay.Any(), 6], ids=["open", "static"])
def test_restored_and_viewed(cpu, dtype, zero, rows):
    """Data of three dimensions by a weight whose outputs are last, a scale for each: what MatMul of a quantized model becomes."""
    target, rng = on(cpu), np.random.default_rng(2)
    x, w = some(rng, "uint8", (2, 6, 64)), some(rng, dtype, (64, 48))
    scales = rng.uniform(0.001, 0.01, 48).astype("float32")
    xv = relay.var("x", relay.TensorType((2, rows, 64), "uint8"))
    data = relay.qnn.op.dequantize(xv, relay.const(0.02, "float32"), relay.const(100))
    weight = relay.qnn.op.dequantize(relay.const(w), relay.const(scales), relay.const(np.full(48, zero, "int32")), axis=1)
    body = relay.nn.dense(relay.reshape(data, (-1, 64)), relay.transpose(weight, axes=(1, 0)))
    sums = (x.astype(np.int64).reshape(-1, 64) - 100) @ (w.astype(np.int64) - zero)
    np.testing.assert_allclose(run([xv], body, [x], target), sums * 0.02 * scales, rtol=1e-5, atol=1e-6)
    assert bytes_summed([xv], body)


@pytest.mark.parametrize("axes", [(1, 0), (-1, -2), None, (0, 1), (-2, -1)], ids=str)
def test_weights_turned_or_not(axes):
    """A transposition of two dimensions by negative axes too, and one that leaves them where they are."""
    target, rng = on("cascadelake"), np.random.default_rng(4)
    turned = axes is None or axes[0] in (1, -1)
    x, w = some(rng, "uint8", (5, 32)), some(rng, "int8", (32, 32))
    scales = rng.uniform(0.001, 0.01, 32).astype("float32")
    xv = relay.var("x", shape=x.shape, dtype="uint8")
    data = relay.qnn.op.dequantize(xv, relay.const(0.02, "float32"), relay.const(100))
    weight = relay.qnn.op.dequantize(relay.const(w), relay.const(scales), relay.const(np.zeros(32, "int32")), axis=1 if turned else 0)
    body = relay.nn.dense(data, relay.transpose(weight, axes=axes))
    sums = (x.astype(np.int64) - 100) @ (w if turned else w.T).astype(np.int64)
    np.testing.assert_allclose(run([xv], body, [x], target), sums * 0.02 * scales, rtol=1e-5, atol=1e-6)
    passes = [relay.transform.InferType(), relay.transform.IntegerProducts(), relay.transform.InferType()]
    with target:
        alone = baton.transform.Sequential(passes)(baton.IRModule.from_expr(relay.Function([xv], body)))
    got = relay.create_executor("debug", mod=alone).evaluate()(x).numpy()
    np.testing.assert_allclose(got, sums * 0.02 * scales, rtol=1e-5, atol=1e-6)
