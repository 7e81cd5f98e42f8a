# SPDX-License-Identifier: Apache-2.0
"""FakeQuantizationToInteger: regions between dequantize and quantize in integers, near what they computed before."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.testing.temp_op_attr import TempOpAttr

qnn = relay.qnn.op
RNG = np.random.default_rng(3)


def integers(shape, dtype="int8"):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def real(name, shape, scale, zero, dtype="int8", **given):
    """A variable of integers, and the real numbers that it stands for."""
    var = relay.var(name, shape=shape, dtype=dtype)
    return var, qnn.dequantize(var, scale, zero, **given)


def converted(expr, out_scale, out_zero, variables, out_dtype="int8", **given):
    mod = tvm.IRModule.from_expr(relay.Function(variables, qnn.quantize(expr, out_scale, out_zero, out_dtype=out_dtype)))
    return relay.transform.InferType()(mod), relay.transform.FakeQuantizationToInteger(**given)(relay.transform.InferType()(mod))


def check(expr, out_scale, out_zero, variables, arrays, steps=1, out_dtype="int8"):
    """In integers, at most `steps` of the result's steps away from the program as it was."""
    before, after = converted(expr, out_scale, out_zero, variables, out_dtype)
    assert "dequantize" not in after.astext(), after.astext()
    want, got = (relay.create_executor("debug", m).evaluate()(*arrays).numpy() for m in (before, after))
    assert got.dtype == want.dtype and np.abs(got.astype("int64") - want.astype("int64")).max() <= steps
    compiled = relay.create_executor("graph", after).evaluate()(*arrays).numpy()
    assert (compiled == got).all() and len(np.unique(want)) > 1
    return after


@pytest.mark.parametrize("vector", [False, True])
def test_convolution_with_bias_and_relu(vector):
    scales = np.array([0.01, 0.02, 0.03, 0.04], "float32") if vector else np.float32(0.02)
    x, fx = real("x", (1, 3, 6, 6), 0.05, 3, "uint8")
    w, fw = real("w", (4, 3, 3, 3), relay.const(scales), relay.const(np.zeros(4 if vector else (), "int32")), axis=0)
    bias = relay.const(np.array([1.0, -2.0, 0.5, 3.0], "float32"))
    after = check(
        relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(fx, fw, padding=(1, 1)), bias)),
        0.5,
        -100,
        [x, w],
        [integers((1, 3, 6, 6), "uint8"), integers((4, 3, 3, 3))],
    )
    names = relay.analysis.list_op_freqs(after)
    assert names["qnn.conv2d"] == names["nn.bias_add"] == names["nn.relu"] == names["qnn.requantize"] == 1


def test_products():
    x, fx = real("x", (2, 8), 0.05, 3)
    w, fw = real("w", (4, 8), 0.02, 0)
    check(relay.nn.dense(fx, fw), 0.5, 0, [x, w], [integers((2, 8)), integers((4, 8))])
    x, fx = real("x", (2, 3, 8), 0.05, 3)
    w, fw = real("w", (2, 4, 8), 0.02, -5)
    check(relay.nn.batch_matmul(fx, fw), 0.5, 0, [x, w], [integers((2, 3, 8)), integers((2, 4, 8))])
    x, fx = real("x", (1, 2, 5, 5), 0.05, 3)
    w, fw = real("w", (2, 3, 3, 3), 0.02, -5)
    check(relay.nn.conv2d_transpose(fx, fw, channels=3, kernel_size=(3, 3)), 0.5, 0, [x, w], [integers((1, 2, 5, 5)), integers((2, 3, 3, 3))])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: relay.reshape(x, (4, 16)),
        lambda x: relay.transpose(x),
        lambda x: relay.expand_dims(x, 0),
        lambda x: relay.squeeze(x, [0]),
        lambda x: relay.nn.batch_flatten(x),
        lambda x: relay.nn.max_pool2d(x, (2, 2)),
        lambda x: relay.strided_slice(x, [0, 1], [1, 3]),
        lambda x: relay.nn.relu(x),
        lambda x: relay.clip(x, -1.0, 2.0),
        lambda x: relay.nn.avg_pool2d(x, (2, 2)),
        lambda x: relay.nn.avg_pool2d(x, (3, 3), padding=(1, 1), count_include_pad=True),
        lambda x: relay.nn.global_avg_pool2d(x),
        lambda x: relay.mean(x, axis=[2, 3]),
        lambda x: relay.max(x, axis=[1]),
        lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (0, 2)), 0.0),
        lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (0, 2)), 1.5),
        lambda x: relay.split(x, 2, axis=1)[1],
        lambda x: relay.broadcast_to(x, (2, 4, 4, 4)),
        lambda x: relay.add(x, relay.const(np.float32(1.7))),
        lambda x: relay.multiply(x, relay.const(np.full((4, 1, 1), -0.7, "float32"))),
        lambda x: relay.maximum(x, relay.const(0.5)),
        lambda x: relay.tanh(x),
        lambda x: relay.sigmoid(x),
        lambda x: relay.concatenate([x, relay.nn.relu(x)], 1),
        lambda x: relay.add(relay.tanh(x), x),
    ],
)
def test_operators_on_one_tensor(make):
    x, fx = real("x", (1, 4, 4, 4), 0.05, 3)
    check(make(fx), 0.05, -2, [x], [integers((1, 4, 4, 4))], steps=2)


@pytest.mark.parametrize("f", [relay.add, relay.subtract, relay.multiply, relay.maximum, relay.minimum])
def test_operators_on_two_tensors(f):
    x, fx = real("x", (3, 4), 0.05, 3)
    y, fy = real("y", (1, 4), 0.02, -7)
    check(f(fx, fy), 0.1, 2, [x, y], [integers((3, 4)), integers((1, 4))], steps=2)
    y, fy = real("y", (1, 4), 0.02, 7, "uint8")  # another dtype than the result
    check(f(fx, fy), 0.1, 2, [x, y], [integers((3, 4)), integers((1, 4), "uint8")], steps=2)


def test_a_change_of_scale_is_a_requantize():
    x, fx = real("x", (64,), 0.05, 3)
    after = check(fx, 0.1, 0, [x], [integers((64,))])
    assert relay.analysis.list_op_freqs(after) == {"qnn.requantize": 1}
    assert converted(fx, 0.05, 3, [x])[1]["main"].body.same_as(converted(fx, 0.05, 3, [x])[1]["main"].params[0]) or tvm.ir.structural_equal(
        converted(fx, 0.05, 3, [x])[1], tvm.IRModule.from_expr(relay.Function([x], x))
    )


def test_regions_without_a_rule_stay():
    x, fx = real("x", (4,), 0.05, 3)
    y = relay.var("y", shape=(4,))
    for expr, variables in ((relay.sin(fx), [x]), (fx + y, [x, y]), (relay.nn.softmax(relay.expand_dims(fx, 0)), [x])):
        before, after = converted(expr, 0.1, 0, variables)
        assert tvm.ir.structural_equal(before, after)


def test_each_region_of_several_is_converted_and_shared_parts_are_computed_once():
    x, fx = real("x", (4, 4), 0.05, 3)
    low = relay.tanh(fx)
    first, second = qnn.quantize(low, 0.01, 0), qnn.quantize(relay.nn.relu(low), 0.02, 1)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([first, second, relay.sin(low)]))))
    after = relay.transform.FakeQuantizationToInteger()(mod)
    counts = relay.analysis.list_op_freqs(after)
    assert counts["qnn.tanh"] == 1 and counts["tanh"] == 1 and counts["qnn.dequantize"] == 1
    chain = fx
    for _ in range(3):
        chain = qnn.dequantize(qnn.quantize(relay.tanh(chain), 0.01, 0), 0.01, 0)
    check(chain, 0.01, 0, [x], [integers((4, 4))], steps=2)


def test_rules_of_programs():
    x, fx = real("x", (8,), 0.05, 3)
    asked = []

    def rule(call, types):
        t = types[call.args[0]]
        asked.append((call.op.name, t.dtype, t.axis, float(types[call].scale.data.numpy())))
        return [relay.copy(call.args[0]), tvm.ir.TensorAffineType(relay.const(np.float32(0.1)), t.zero_point, t.dtype)]

    with TempOpAttr("nn.softsign", "FTVMFakeQuantizationToInteger", rule):
        _, after = converted(relay.nn.softsign(fx), 0.25, 0, [x])
    assert asked == [("nn.softsign", "int8", -1, 0.25)]
    assert relay.analysis.list_op_freqs(after) == {"copy": 1, "qnn.requantize": 1}

    def wrong(call, types):
        raise ValueError("no integers for this one")

    with TempOpAttr("nn.softsign", "FTVMFakeQuantizationToInteger", wrong):
        before, after = converted(relay.nn.softsign(fx), 0.25, 0, [x])
        assert tvm.ir.structural_equal(before, after)
        with pytest.raises(ValueError, match="no integers"):
            converted(relay.nn.softsign(fx), 0.25, 0, [x], hard_fail=True)
    with pytest.raises(tvm.error.UnsupportedError, match="use_qat"):
        relay.transform.FakeQuantizationToInteger(use_qat=True)


def test_affine_types_are_nodes():
    t = tvm.ir.TensorAffineType(relay.const(np.float32(0.1)), relay.const(1), "int8")
    pair = tvm.ir.TupleAffineType([t, t])
    assert t.axis == -1 and pair.types[1].dtype == "int8" and isinstance(pair, tvm.ir.AffineType)
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(pair)), pair)


def test_long_chains():
    x, e = real("x", (2,), 0.05, 3)
    for _ in range(20000):
        e = relay.nn.relu(e)
    _, after = converted(e, 0.05, 3, [x])
    assert "dequantize" not in relay.analysis.list_op_freqs(after)
