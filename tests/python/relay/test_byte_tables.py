# SPDX-License-Identifier: Apache-2.0
"""Functions between quantized values are tables of 256 results: the same bytes as the program computes step by step, on every processor, also
where a convolution writes them and where values are read twice.
"""

import numpy as np
import pytest
from test_integer_products import on

import baton
from baton import relay

# Permutations of bytes; vectors of 16 without them, of 8, of 4.
PROCESSORS = ["icelake-server", "znver4", "cascadelake", "x86-64-v3", "x86-64-v2"]
ALL = np.arange(256, dtype="uint8")


def restore(x, scale, zero):
    return relay.qnn.op.dequantize(x, relay.const(scale), relay.const(zero, "int32"))


def quantize(x, scale, zero, dtype):
    return relay.qnn.op.quantize(x, relay.const(scale), relay.const(zero, "int32"), out_dtype=dtype)


def steps(x, dtype):
    """x * sigmoid(x), both quantized between."""
    gate = quantize(relay.sigmoid(restore(x, 0.04, 11)), 1 / 256, 0 if dtype == "uint8" else -128, dtype)
    return quantize(relay.multiply(restore(x, 0.04, 11), restore(gate, 1 / 256, 0 if dtype == "uint8" else -128)), 0.021, 13, dtype)


FUNCTIONS = {
    "sigmoid": relay.sigmoid,
    "tanh": relay.tanh,
    "exp": relay.exp,
    "hard_swish": lambda x: relay.multiply(x, relay.clip(relay.divide(relay.add(x, relay.const(3.0)), relay.const(6.0)), 0, 1)),
    "leaky_relu": lambda x: relay.nn.leaky_relu(x, 0.1),
    "erf": lambda x: relay.multiply(x, relay.add(relay.erf(relay.multiply(x, relay.const(0.70710678))), relay.const(1.0))),
    "log": relay.log,  # NaN for numbers below 0
}


def compiled(params, body, arrays, target, level=3):
    with baton.transform.PassContext(opt_level=level):
        return baton.compile(baton.IRModule.from_expr(relay.Function(params, body)), target=target)(*arrays).numpy()


def tables_in(params, body, target):
    with target:
        mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body)))
        return baton.transform.GetPass("IntegerProducts")(mod).astext(show_meta_data=False).count("qnn.table(")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_byte(name, dtype):
    target, x = on("znver4"), relay.var("x", shape=(256,), dtype=dtype)
    body = quantize(FUNCTIONS[name](restore(x, 0.04, 11)), 0.021, 13, dtype)
    assert tables_in([x], body, target) == 1
    plain = baton.target.Target("llvm")
    want = compiled([x], body, [ALL.view(dtype)], plain, level=0)
    np.testing.assert_array_equal(compiled([x], body, [ALL.view(dtype)], target), want)
    assert len(np.unique(want)) > 20


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_values_between_are_part_of_the_table(cpu, dtype):
    target, x = on(cpu), relay.var("x", shape=(3, 97), dtype=dtype)
    array = np.random.default_rng(0).integers(0, 256, (3, 97)).astype("uint8").view(dtype)
    want = compiled([x], steps(x, dtype), [array], baton.target.Target("llvm"), level=0)
    got = compiled([x], steps(x, dtype), [array], target)
    if tables_in([x], steps(x, dtype), target):  # of the first bytes to the last
        np.testing.assert_array_equal(got, want)
    else:
        assert cpu not in ("icelake-server", "znver4")
        assert abs(got.astype(int) - want).max() <= 1  # products of reciprocals


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("channels, out, side, groups", [(16, 32, 9, 1), (12, 20, 7, 1), (32, 32, 11, 32), (8, 5, 6, 1)])
def test_behind_a_convolution(cpu, dtype, channels, out, side, groups):
    """Edges of tiles too: lanes that have no place in the output read a table all the same."""
    target, rng = on(cpu), np.random.default_rng(1)
    x = relay.var("x", shape=(1, channels, side, side), dtype=dtype)
    w = relay.const(rng.integers(-127, 128, (out, channels // groups, 3, 3)).astype("int8"))
    made = relay.nn.conv2d(restore(x, 0.02, 7), restore(w, 0.01, 0), padding=(1, 1), groups=groups, channels=out, kernel_size=(3, 3))
    body = steps(quantize(made, 0.04, 11, dtype), dtype)
    array = rng.integers(0, 256, (1, channels, side, side)).astype("uint8").view(dtype)
    want = compiled([x], body, [array], baton.target.Target("llvm"), level=0).astype(int)
    got = compiled([x], body, [array], target).astype(int)
    assert abs(got - want).max() <= 2 and (got != want).mean() < 0.01  # sums are exact here, and rounded there
    assert len(np.unique(got)) > 20


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_gate_reads_bytes_twice(dtype):
    """The mean of a value and its product with a gate: both read bytes."""
    target, rng = on("znver4"), np.random.default_rng(2)
    x = relay.var("x", shape=(1, 32, 8, 8), dtype="float32")
    w = relay.const(rng.integers(-127, 128, (32, 32, 1, 1)).astype("int8"))
    low = 0 if dtype == "uint8" else -128
    made = relay.nn.conv2d(restore(quantize(x, 0.02, 5, dtype), 0.02, 5), restore(w, 0.005, 0), channels=32, kernel_size=(1, 1))
    value = restore(steps(quantize(made, 0.04, 11, dtype), dtype), 0.021, 13)
    gate = quantize(relay.sigmoid(restore(quantize(relay.nn.global_avg_pool2d(value), 0.01, 3, dtype), 0.01, 3)), 1 / 256, low, dtype)
    body = quantize(relay.multiply(value, restore(gate, 1 / 256, low)), 0.02, 9, dtype)
    array = rng.standard_normal((1, 32, 8, 8)).astype("float32")
    want = compiled([x], body, [array], baton.target.Target("llvm"), level=0).astype(int)
    got = compiled([x], body, [array], target).astype(int)
    assert abs(got - want).max() <= 2 and (got != want).mean() < 0.02
    with target, baton.transform.PassContext(opt_level=3):
        mod = baton.get_global_func("driver.DefaultPipeline")()(baton.IRModule.from_expr(relay.Function([x], body)))
    kernels = []
    relay.analysis.post_order_visit(
        mod["main"], lambda e: kernels.append(e.checked_type) if isinstance(e, relay.Call) and isinstance(e.op, relay.Function) else None
    )
    wide = [t for t in kernels if t.dtype == "float32" and np.prod([int(d) for d in t.shape]) == 32 * 8 * 8]
    assert not wide, kernels


def test_two_values_are_no_function_of_a_byte():
    target = on("znver4")
    x, y = relay.var("x", shape=(4,), dtype="uint8"), relay.var("y", shape=(4,), dtype="uint8")
    both = quantize(relay.sigmoid(relay.add(restore(x, 0.04, 11), restore(y, 0.04, 11))), 1 / 256, 0, "uint8")
    assert tables_in([x, y], both, target) == 0
    scales = relay.const(np.array([0.1, 0.2, 0.3, 0.4], "float32"))
    by_place = quantize(relay.sigmoid(relay.multiply(restore(x, 0.04, 11), scales)), 1 / 256, 0, "uint8")
    assert tables_in([x], by_place, target) == 0
    # Another scale of the same numbers is no function.
    assert tables_in([x], quantize(restore(x, 0.04, 11), 0.021, 13, "uint8"), target) == 0
