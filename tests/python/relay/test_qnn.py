# SPDX-License-Identifier: Apache-2.0
"""Operators on quantized tensors beside their meaning in NumPy."""

import inspect

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.testing.temp_op_attr import TempOpAttr

qnn = relay.qnn.op
RNG = np.random.default_rng(0)
SIGNATURES = {
    "quantize": "data, output_scale, output_zero_point, axis=-1, out_dtype='int8'",
    "dequantize": "data, input_scale, input_zero_point, axis=-1",
    "requantize": "data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding='UPWARD', out_dtype='int8'",
    "conv2d": "data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size, channels, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, "
    "data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype='int32'",
    "conv2d_transpose": "data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, "
    "kernel_size=None, data_layout='NCHW', kernel_layout='IOHW', out_layout='', output_padding=(0, 0), out_dtype='int32'",
    "dense": "data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units, out_dtype='int32'",
    "batch_matmul": "x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32'",
    **dict.fromkeys(("add", "subtract", "mul"), "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point"),
    "concatenate": "data, input_scales, input_zero_points, output_scale, output_zero_point, axis",
    "simulated_quantize": "data, output_scale, output_zero_point, axis=-1, out_dtype='int8'",
    "simulated_dequantize": "data, input_scale, input_zero_point, axis=-1, in_dtype='int8'",
    **dict.fromkeys(("tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid"), "x, scale, zero_point, output_scale, output_zero_point"),
}


@pytest.mark.parametrize("name", list(SIGNATURES))
def test_signature(name):
    want = list(inspect.signature(eval(f"lambda {SIGNATURES[name]}: None")).parameters.values())
    got = list(inspect.signature(getattr(qnn, name)).parameters.values())[: len(want)]
    assert [(p.name, p.default) for p in got] == [(p.name, p.default) for p in want] and getattr(qnn, name).__doc__


def f32(x):
    return relay.const(np.float32(x), "float32")


def i32(x):
    return relay.const(np.int32(x), "int32")


def run(expr, *args):
    params = relay.analysis.free_vars(expr)
    found = [relay.create_executor(kind).evaluate(relay.Function(params, expr))(*args).numpy() for kind in ("debug", "graph")]
    assert found[0].dtype == found[1].dtype and (found[0] == found[1]).all()
    return found[0]


def saturated(x, dtype):
    return np.clip(x, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_quantize_and_back(dtype, axis):
    data = np.array([[-1000, -1.25, -0.75, 0.25], [0.5, 0.75, 1.25, 1000]], "float32")
    extent = 1 if axis is None else data.shape[axis]
    scale, zero = np.array([0.5, 0.25, 1, 2], "float32")[:extent], np.arange(3, 3 + extent, dtype="int32")
    along = [1, 1]
    along[axis or 0] = extent
    shape = () if axis is None else (extent,)
    given = {} if axis is None else {"axis": axis}
    q = run(qnn.quantize(relay.var("x", shape=(2, 4)), relay.const(scale.reshape(shape)), relay.const(zero.reshape(shape)), out_dtype=dtype, **given), data)
    want = saturated(np.rint(data / scale.reshape(along)) + zero.reshape(along), dtype)
    assert q.dtype == dtype and (q == want).all()
    back = run(qnn.dequantize(relay.var("q", shape=(2, 4), dtype=dtype), relay.const(scale.reshape(shape)), relay.const(zero.reshape(shape)), **given), q)
    assert back.dtype == "float32" and (back == (q.astype("float32") - zero.reshape(along)) * scale.reshape(along)).all()


@pytest.mark.parametrize(("rounding", "want"), [("UPWARD", [-2, -1, -1, 0, 0, 1, 1, 2, 2]), ("TONEAREST", [-2, -2, -1, -1, 0, 1, 1, 2, 2])])
def test_requantize_halves(rounding, want):
    data = np.arange(-4, 5, dtype="int32")
    q = run(qnn.requantize(relay.var("x", shape=(9,), dtype="int32"), f32(0.5), i32(0), f32(1), i32(0), rounding=rounding), data)
    assert q.dtype == "int8" and q.tolist() == want


def test_requantize_saturates_and_moves():
    data = np.array([[-(2**31), -7, 0], [5, 300, 2**31 - 1]], "int32")
    x = relay.var("x", shape=(2, 3), dtype="int32")
    q = run(qnn.requantize(x, relay.const(np.array([1, 0.5], "float32")), i32(5), f32(2), i32(100), axis=0, out_dtype="uint8"), data)
    want = saturated(np.floor((data.astype("int64") - 5) * np.array([[0.5], [0.25]]) + 0.5) + 100, "uint8")
    assert (q == want).all()
    for wrong in ({"rounding": "DOWN"}, {"out_dtype": "float32"}):
        with pytest.raises(ValueError):
            qnn.requantize(x, f32(1), i32(0), f32(1), i32(0), **wrong)
    for scale, axis, says in (
        (np.ones(3), 0, "2 elements are wanted, as many as the axis has"),
        (np.ones(3), 2, "axis 2"),
        (np.ones((3, 1)), 0, "scalar or a vector"),
    ):
        call = qnn.requantize(x, relay.const(scale.astype("float32")), i32(0), f32(1), i32(0), axis=axis)
        with pytest.raises(tvm.error.CompileError, match=says):
            relay.transform.InferType()(tvm.IRModule.from_expr(call))


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_conv2d(layouts):
    from baton.topi.testing import conv2d_nchw_python

    data, kernel = RNG.integers(0, 255, (1, 3, 6, 6)).astype("uint8"), RNG.integers(-127, 127, (4, 3, 3, 3)).astype("int8")
    zeros = np.array([1, -2, 3, -4], "int32")
    want = conv2d_nchw_python(data.astype("int64") - 7, kernel.astype("int64") - zeros.reshape(4, 1, 1, 1), (2, 2), (1, 1))
    turn = (lambda a, w: (a, w)) if layouts[0] == "NCHW" else (lambda a, w: (a.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)))
    data, kernel = turn(data, kernel)
    x, w = relay.var("x", shape=data.shape, dtype="uint8"), relay.var("w", shape=kernel.shape, dtype="int8")
    found = run(
        qnn.conv2d(
            x, w, i32(7), relay.const(zeros), f32(0.1), f32(0.2), (3, 3), 4, strides=(2, 2), padding=(1, 1), data_layout=layouts[0], kernel_layout=layouts[1]
        ),
        data,
        kernel,
    )
    assert found.dtype == "int32" and (found == (want if layouts[0] == "NCHW" else want.transpose(0, 2, 3, 1))).all()


def test_conv2d_transpose():
    from baton.topi.testing import conv2d_transpose_nchw_python

    data, weight = RNG.integers(0, 255, (1, 3, 4, 4)).astype("uint8"), RNG.integers(-127, 127, (3, 2, 3, 3)).astype("int8")
    want = conv2d_transpose_nchw_python(data.astype("float64") - 7, weight.astype("float64") + 3, (2, 2), (1, 1), (0, 0))
    x, w = relay.var("x", shape=data.shape, dtype="uint8"), relay.var("w", shape=weight.shape, dtype="int8")
    found = run(qnn.conv2d_transpose(x, w, i32(7), i32(-3), f32(0.1), f32(0.2), strides=(2, 2), padding=(1, 1), channels=2, kernel_size=(3, 3)), data, weight)
    assert found.dtype == "int32" and (found == want).all()


def test_products():
    a, b = RNG.integers(-128, 127, (3, 5)).astype("int8"), RNG.integers(-128, 127, (4, 5)).astype("int8")
    x, w = relay.var("x", shape=a.shape, dtype="int8"), relay.var("w", shape=b.shape, dtype="int8")
    zeros = np.array([1, 2, 3, 4], "int32")
    found = run(qnn.dense(x, w, i32(-5), relay.const(zeros), f32(1), f32(1), units=4), a, b)
    assert found.dtype == "int32" and (found == (a.astype("int32") + 5) @ (b.astype("int32") - zeros[:, None]).T).all()
    x, w = relay.var("x", shape=(1, *a.shape), dtype="int8"), relay.var("w", shape=(1, *b.shape), dtype="int8")
    found = run(qnn.batch_matmul(x, w, i32(-5), i32(2), f32(1), f32(1)), a[None], b[None])
    assert (found[0] == (a.astype("int32") + 5) @ (b.astype("int32") - 2).T).all()


@pytest.mark.parametrize(("name", "exact"), [("add", np.add), ("subtract", np.subtract), ("mul", np.multiply)])
def test_arithmetic(name, exact):
    a, b = RNG.integers(0, 255, (4, 6)).astype("uint8"), RNG.integers(0, 255, (1, 6)).astype("uint8")
    scales, zeros = (0.5, 0.25, 2.0), (120, 100, 30)
    x, y = relay.var("x", shape=a.shape, dtype="uint8"), relay.var("y", shape=b.shape, dtype="uint8")
    found = run(getattr(qnn, name)(x, y, f32(scales[0]), i32(zeros[0]), f32(scales[1]), i32(zeros[1]), f32(scales[2]), i32(zeros[2])), a, b)
    value = exact((a.astype("float64") - zeros[0]) * scales[0], (b.astype("float64") - zeros[1]) * scales[1])
    want = np.clip(value / scales[2] + zeros[2], 0, 255)
    assert found.dtype == "uint8" and np.abs(found - want).max() <= (0.5 if name == "mul" else 1)


def test_concatenate():
    a, b = np.array([[1, 2]], "uint8"), np.array([[10, 255]], "uint8")
    x, y = relay.var("x", shape=(1, 2), dtype="uint8"), relay.var("y", shape=(1, 2), dtype="uint8")
    expr = qnn.concatenate((x, y), (f32(1), f32(2)), (i32(0), i32(10)), f32(1), i32(1), axis=0)
    assert run(expr, a, b).tolist() == [[2, 3], [1, 255]]
    tvm.ir.assert_structural_equal(qnn.concatenate(relay.Tuple([x, y]), [f32(1), f32(2)], relay.Tuple([i32(0), i32(10)]), f32(1), i32(1), 0), expr)
    with pytest.raises(ValueError, match="2 tensors, 1 scales"):
        qnn.concatenate((x, y), [f32(1)], [i32(0)], f32(1), i32(1), axis=0)


def test_simulated():
    data = np.array([-100, -0.3, 0.3, 100], "float32")
    x = relay.var("x", shape=(4,))
    q = run(qnn.simulated_quantize(x, f32(0.25), i32(2)), data)
    assert q.dtype == "float32" and q.tolist() == [-128, 1, 3, 127]
    assert run(qnn.simulated_dequantize(x, f32(0.25), i32(2)), q).tolist() == [-32.5, -0.25, 0.25, 31.25]
    assert qnn.simulated_quantize(x, f32(1), i32(0), out_dtype="disable").same_as(x) and qnn.simulated_dequantize(
        x, f32(1), i32(0), in_dtype="disable"
    ).same_as(x)


@pytest.mark.parametrize(("name", "exact"), [("tanh", np.tanh), ("exp", np.exp), ("sqrt", np.sqrt), ("sigmoid", lambda v: 1 / (1 + np.exp(-v)))])
def test_functions_of_quantized(name, exact):
    q = np.arange(0, 40, dtype="uint8")
    found = run(getattr(qnn, name)(relay.var("x", shape=(40,), dtype="uint8"), f32(0.1), i32(0), f32(0.02), i32(3)), q)
    assert found.dtype == "uint8" and np.abs(found - np.clip(exact(q * 0.1) / 0.02 + 3, 0, 255)).max() <= 0.51


def test_calls_are_nodes_that_passes_and_text_see():
    x = relay.var("x", shape=(2, 3))
    q = qnn.quantize(x, 0.5, 3)
    assert q.op == relay.op.get("qnn.quantize") and q.attrs.out_dtype == "int8" and q.attrs.axis == -1
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(qnn.dequantize(qnn.requantize(q, 0.5, 3, 0.25, -1), 0.25, -1)))
    assert "qnn.requantize(" in mod.astext() and tvm.ir.structural_equal(relay.parse(mod.astext()), mod)
    plain = relay.qnn.transform.CanonicalizeOps()(mod)
    assert "qnn." not in plain.astext() and tvm.ir.structural_equal(relay.qnn.transform.CanonicalizeOps()(plain), plain)
    data = RNG.standard_normal((2, 3)).astype("float32")
    want = relay.create_executor("debug", mod).evaluate()(data).numpy()
    for kind in ("debug", "graph", "vm"):
        assert (relay.create_executor(kind, plain).evaluate()(data).numpy() == want).all()
        assert (relay.create_executor(kind, mod).evaluate()(data).numpy() == want).all()
    assert relay.dataflow_pattern.is_op("qnn.quantize")(
        relay.dataflow_pattern.wildcard(), relay.dataflow_pattern.is_constant(), relay.dataflow_pattern.is_constant()
    ).match(q)


def test_legalize_asks_the_functions_that_are_registered():
    """A target that has no requantize of its own halves: the function says what stands for the call."""
    x = relay.var("x", shape=(4,), dtype="int32")
    call = qnn.requantize(x, 0.5, 0, 1.0, 0, out_dtype="int32")
    seen = []

    def legalize(attrs, inputs, types):
        seen.append((attrs.rounding, len(inputs), str(types[0].dtype)))
        return relay.right_shift(inputs[0], relay.const(1))

    mod = tvm.IRModule.from_expr(call)
    with TempOpAttr("qnn.requantize", "FTVMQnnLegalize", legalize):
        made = relay.qnn.transform.Legalize()(mod)
    assert seen == [("UPWARD", 5, "int32")] and made["main"].body.op.name == "right_shift"
    assert "qnn.requantize" in relay.qnn.transform.Legalize()(mod).astext()


def test_gradients_are_those_of_the_definition():
    q, s = relay.var("q", shape=(3,), dtype="int8"), relay.var("s", shape=())
    mod = tvm.IRModule.from_expr(relay.Function([q, s], qnn.dequantize(q, s, 2)))
    for mode in ("first_order", "higher_order"):
        grad = relay.transform.gradient(relay.transform.InferType()(mod)["main"], mode=mode)
        _, (by_q, by_s) = relay.create_executor("debug").evaluate(grad)(np.array([1, 5, -4], "int8"), np.float32(0.5))
        assert by_s.numpy() == (1 - 2) + (5 - 2) + (-4 - 2) and not by_q.numpy().any()


def test_folding_leaves_quantized_operators_unless_asked():
    call = qnn.quantize(relay.const(np.array([1.0, -1.0], "float32")), 0.5, 1)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(call))
    assert tvm.ir.structural_equal(relay.transform.FoldConstant()(mod), mod)
    assert relay.transform.FoldConstant(fold_qnn=True)(mod)["main"].body.data.numpy().tolist() == [3, -1]


def test_a_quantized_model_is_near_the_plain_one():
    """Numbers as scales; constants fold; the result of each step is brought to 8 bits."""
    data, weight = RNG.standard_normal((1, 3, 8, 8)).astype("float32"), RNG.standard_normal((4, 3, 3, 3)).astype("float32")
    x = relay.var("x", shape=data.shape)
    q = qnn.quantize(x, 0.03, 0)
    w = qnn.quantize(relay.const(weight), 0.03, 0)
    conv = qnn.requantize(qnn.conv2d(q, w, 0, 0, 0.03, 0.03, (3, 3), 4), 0.0009, 0, 0.2, 0)
    found = run(qnn.dequantize(conv, 0.2, 0), data)
    plain = run(relay.nn.conv2d(x, relay.const(weight)), data)
    assert np.abs(found - plain).max() < 0.5 and np.abs(plain).max() > 5
