# SPDX-License-Identifier: Apache-2.0
"""Quantized operators beside their values, derivatives of operators beside differences, random numbers by a key, automatic quantization."""

import numpy as np
import pytest
from building import evaluated, function, tensor, typed, var

import baton as tvm
from baton import relay

q, const = relay.qnn.op, relay.const
ONE, ZERO, PER_ROW = const(1.0), const(0), const(np.array([1.0, 2.0], "float32"))


def array(dtype, values):
    return np.array(values, dtype)


QUANTIZED = {
    "quantize": (lambda x: q.quantize(x, const(0.5), const(3), out_dtype="uint8"), [array("float32", [0, 1, -10, 200])], [3, 5, 0, 255]),
    "dequantize": (lambda x: q.dequantize(x, const(0.5), const(3)), [array("uint8", [3, 5, 0, 255])], [0, 1, -1.5, 126]),
    "dequantize by rows": (lambda x: q.dequantize(x, PER_ROW, const(np.array([0, 0])), axis=1), [array("int8", [[1, 1], [2, 2]])], [[1, 2], [2, 4]]),
    "requantize": (lambda x: q.requantize(x, ONE, ZERO, const(2.0), ZERO, out_dtype="int8", rounding="UPWARD"),
                   [array("int32", [3, 5, -3, 1000])], [2, 3, -1, 127]),
    "requantize by rows": (lambda x: q.requantize(x, PER_ROW, ZERO, ONE, ZERO, axis=1, out_dtype="int8"), [array("int32", [[1, 2], [3, 4]])], [[1, 4], [3, 8]]),
    "dense": (lambda x, y: q.dense(x, y, ZERO, ZERO, ONE, ONE, 2), [array("int8", [[1, 2], [3, 4]]), array("int8", [[1, 0], [0, 1]])], [[1, 2], [3, 4]]),
    "concatenate": (lambda x, y: q.concatenate((x, y), (const(0.1), const(0.2)), (const(1), const(2)), const(0.1), const(1), axis=0),
                    [array("uint8", [[1, 2]]), array("uint8", [[2, 3]])], [[1, 2], [1, 3]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["graph", "debug"])
@pytest.mark.parametrize("make, args, want", QUANTIZED.values(), ids=QUANTIZED)
def test_quantized(make, args, want, kind):
    params = [var(*a.shape, name=f"x{i}", dtype=str(a.dtype)) for i, a in enumerate(args)]
    assert evaluated(relay.Function(params, make(*params)), *args, kind=kind).tolist() == want


def f64(name, *shape):
    return var(*shape, name=name, dtype="float64")


X, Y, IMAGE = f64("x", 2, 3), f64("y", 3), f64("i", 1, 4, 8, 8)
DERIVED = {
    "global_avg_pool2d": relay.nn.global_avg_pool2d(IMAGE),
    "batch_flatten": relay.nn.batch_flatten(IMAGE),
    "bias_add": relay.nn.bias_add(X, Y),
    "take": relay.take(X, const(np.array([0, 1])), axis=0),
    "pad": relay.nn.pad(X, ((1, 1), (0, 0))),
    "where": relay.where(const(np.array([[True, False, True]] * 2)), X, X * const(2.0, "float64")),
    "stack": relay.stack([X, X], 0),
    "split": relay.split(X, 3, 1)[1],
    "tile": relay.tile(X, (2, 1)),
    "repeat": relay.repeat(X, 2, 1),
    "squeeze": relay.squeeze(relay.expand_dims(X, 0)),
    "cast": relay.cast(X, "float64"),
    "variance": relay.variance(X, 1),
    "batch_matmul": relay.nn.batch_matmul(f64("g", 2, 3, 4), f64("h", 2, 5, 4)),
    "layout_transform": relay.layout_transform(relay.reshape(X, (1, 6, 1, 1)), "NCHW", "NHWC"),
    "broadcast_to": relay.broadcast_to(X, (4, 2, 3)),
    "atan": relay.atan(X),
    "gather_nd": relay.gather_nd(X, const(np.array([[0, 1], [1, 2]]))),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivative(name):
    relay.testing.check_grad(function(DERIVED[name]))


def test_random_numbers_by_a_key():
    key = relay.random.threefry_key(1)
    state, drawn = evaluated(relay.Function([], relay.random.threefry_generate(key, (16,)).astuple()), kind="vm")
    assert (state.shape, drawn.shape, str(drawn.dtype)) == ((10,), (16,), "uint64") and len(set(drawn.tolist())) == 16
    assert typed(relay.random.threefry_split(key).astuple()).checked_type == relay.TupleType([tensor(10, dtype="uint64")] * 2)
    assert typed(relay.random.uniform(key, (2, 2)).astuple()).checked_type == relay.TupleType([tensor(10, dtype="uint64"), tensor(2, 2)])
    with pytest.raises(tvm.TVMError):
        typed(relay.random.threefry_generate(const(np.zeros(3, "uint64")), (4,)))


@pytest.mark.parametrize(
    "options", [{"skip_conv_layers": [], "global_scale": 8.0}, {"skip_conv_layers": [], "calibrate_mode": "kl_divergence", "weight_scale": "max"}], ids=str
)
def test_automatic_quantization(options):
    data, w = var(1, 16, 8, 8, name="data"), var(16, 16, 3, 3, name="w")
    mod = tvm.IRModule.from_expr(function(relay.nn.relu(relay.nn.conv2d(data, w, kernel_size=(3, 3), padding=(1, 1), channels=16))))
    rng = np.random.default_rng(0)
    dataset = [{"data": rng.random((1, 16, 8, 8), "float32")}]
    with relay.quantize.qconfig(**options):
        assert all(getattr(relay.quantize.current_qconfig(), k) == v for k, v in options.items())
        got = relay.quantize.quantize(mod, {"w": tvm.nd.array(rng.random((16, 16, 3, 3), "float32"))}, dataset=dataset)
    assert "int8" in got.astext(False)
    model = tvm.contrib.graph_executor.GraphModule(relay.build(got, "llvm")["default"](tvm.cpu()))
    model.run(**dataset[0])
    assert model.get_output(0).shape == (1, 16, 8, 8)
