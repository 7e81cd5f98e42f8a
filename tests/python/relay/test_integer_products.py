# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions of bytes by constant bytes are exact sums on every processor, at the ends of the dtypes too:
equal to NumPy's in int64. They run on instructions that add four products of bytes (vpdpbusd, of VNNI) or two of 16 bits (pmaddwd).
"""

import numpy as np
import pytest

import baton
from baton import relay

ENDS = {"int8": (-128, 127), "uint8": (0, 255)}
# Vectors of 16 and of 8, with VNNI and without it; no AVX2.
PROCESSORS = ["cascadelake", "alderlake", "skylake-avx512", "x86-64-v3", "x86-64-v2"]


def on(cpu):
    target = baton.target.Target(f"llvm -mcpu={cpu}")
    try:
        baton.compile(baton.IRModule.from_expr(relay.Function([], relay.const(1.0))), target=target)()
    except baton.error.BatonError as e:  # this machine lacks an instruction of it
        pytest.skip(str(e).splitlines()[0])
    return target


def some(rng, dtype, shape, ends=False):
    low, high = ENDS[dtype]
    return rng.choice([low, high], shape).astype(dtype) if ends else rng.integers(low, high + 1, shape).astype(dtype)


def run(params, body, arrays, target):
    with baton.transform.PassContext(opt_level=3):
        return baton.compile(baton.IRModule.from_expr(relay.Function(params, body)), target=target)(*arrays).numpy()


def int32(x):
    return relay.cast(x, "int32")


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("ends", [False, True], ids=["some", "ends"])
def test_dense(cpu, dtype, ends):
    target, rng = on(cpu), np.random.default_rng(0)
    for m, n, k, zero in [(1, 1, 4, 0), (3, 17, 8, 5), (8, 64, 64, 100), (33, 100, 260, 3), (70, 48, 2048, 0), (5, 9, 6, 1)]:
        x, w = some(rng, dtype, (m, k), ends), some(rng, "int8", (n, k), ends)
        xv = relay.var("x", shape=x.shape, dtype=dtype)
        body = relay.nn.dense(relay.subtract(int32(xv), relay.const(zero)), int32(relay.const(w)))
        want = (x.astype(np.int64) - zero) @ w.astype(np.int64).T
        np.testing.assert_array_equal(run([xv], body, [x], target), want)


@pytest.mark.parametrize("dtype, zero", [("int8", 0), ("int8", 3), ("uint8", 128), ("uint8", 7)])
def test_weights_are_taken_as_bytes(dtype, zero):
    """Widened, moved and transposed bytes of a file are not folded into four times their memory first."""
    rng = np.random.default_rng(2)
    x, w = some(rng, "uint8", (8, 64)), some(rng, dtype, (64, 48), ends=True)
    xv = relay.var("x", shape=x.shape, dtype="uint8")
    weight = int32(relay.const(w))
    weight = relay.subtract(weight, int32(relay.const(np.array(zero, dtype)))) if zero else weight
    body = relay.nn.dense(relay.subtract(int32(xv), relay.const(5)), relay.transpose(weight, axes=[1, 0]))
    with baton.target.Target("llvm -mcpu=cascadelake"):
        mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([xv], body)))
        mod = relay.transform.InferType()(baton.transform.GetPass("IntegerProducts")(mod))
    text = mod.astext(show_meta_data=False)
    assert "transpose" not in text, text
    types = []
    relay.analysis.post_order_visit(mod["main"], lambda e: types.append(e.data) if isinstance(e, relay.Constant) else None)
    assert {str(t.dtype) for t in types if t.shape == (48, 64)} == {"int8"}
    want = (x.astype(np.int64) - 5) @ (w.astype(np.int64) - zero)
    np.testing.assert_array_equal(run([xv], body, [x], baton.target.Target("llvm")), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
def test_dense_of_open_rows(cpu):
    target, rng = on(cpu), np.random.default_rng(1)
    w = some(rng, "int8", (50, 36))
    xv = relay.var("x", relay.TensorType((relay.Any(), 36), "uint8"))
    model = baton.compile(baton.IRModule.from_expr(relay.Function([xv], relay.nn.dense(int32(xv), int32(relay.const(w))))), target=target)
    for m in (1, 2, 7, 64, 129):
        x = some(rng, "uint8", (m, 36), ends=m == 7)
        np.testing.assert_array_equal(model(x).numpy(), x.astype(np.int64) @ w.astype(np.int64).T)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_zero_point_of_run_time(cpu, dtype):
    target, rng = on(cpu), np.random.default_rng(2)
    x, w, zero = some(rng, dtype, (9, 32)), some(rng, "int8", (32, 40)), some(rng, dtype, ())
    xv, zv = relay.var("x", shape=x.shape, dtype=dtype), relay.var("z", shape=(), dtype=dtype)
    body = relay.nn.matmul(relay.subtract(int32(xv), int32(zv)), int32(relay.const(w)))
    want = (x.astype(np.int64) - int(zero)) @ w.astype(np.int64)
    np.testing.assert_array_equal(run([xv, zv], body, [x, zero], target), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("rows", [relay.Any(), 5], ids=["open", "static"])
def test_products_of_three_dimensions(cpu, dtype, rows):
    """As MatMulInteger comes in: the product takes a view of the widened bytes, and its result has one more."""
    target, rng = on(cpu), np.random.default_rng(5)
    x, w, zero = some(rng, dtype, (2, 5, 32)), some(rng, "int8", (40, 32)), some(rng, dtype, ())
    xv, zv = relay.var("x", relay.TensorType((2, rows, 32), dtype)), relay.var("z", shape=(), dtype=dtype)
    for point, params, arrays in ((relay.const(7), [xv], [x]), (int32(zv), [xv, zv], [x, zero])):
        flat = relay.reshape(relay.subtract(int32(xv), point), (-1, 32))
        body = relay.reshape(relay.nn.dense(flat, int32(relay.const(w))), (2, -1, 40))
        less = 7 if len(arrays) == 1 else int(zero)
        np.testing.assert_array_equal(run(params, body, arrays, target), (x.astype(np.int64) - less) @ w.astype(np.int64).T)


def convolved(x, w, strides, padding, groups):
    """NumPy's sums in int64 of data that is padded with 0."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::strides, ::strides]
    parts = np.split(windows, groups, axis=1), np.split(w, groups, axis=0)
    return np.concatenate([np.einsum("nchwij,ocij->nohw", a, b) for a, b in zip(*parts, strict=True)], axis=1)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    "case",
    [
        *[(1, 16, 16, 7, 3, 1, 1, 1), (2, 3, 32, 9, 3, 2, 1, 1), (1, 8, 4, 5, 1, 1, 0, 1), (1, 32, 32, 6, 3, 1, 0, 2), (1, 20, 48, 8, 5, 1, 2, 1)],
        *[(1, 32, 32, 7, 3, 1, 1, 32), (2, 16, 16, 9, 5, 2, 2, 16), (1, 24, 24, 13, 3, 2, 1, 24), (1, 4, 4, 5, 3, 1, 0, 4), (1, 6, 6, 5, 3, 1, 1, 6)],
    ],
)
def test_convolution(cpu, dtype, case):
    batch, channels, outputs, side, window, strides, padding, groups = case
    target, rng = on(cpu), np.random.default_rng(3)
    for zero in (0, 11):
        x, w = some(rng, dtype, (batch, channels, side, side), zero == 0), some(rng, "int8", (outputs, channels // groups, window, window), zero == 0)
        xv = relay.var("x", shape=x.shape, dtype=dtype)
        body = relay.nn.conv2d(
            relay.subtract(int32(xv), relay.const(zero)),
            int32(relay.const(w)),
            strides=(strides, strides),
            padding=(padding, padding),
            groups=groups,
            channels=outputs,
            kernel_size=(window, window),
        )
        want = convolved(x.astype(np.int64) - zero, w.astype(np.int64), strides, padding, groups)
        np.testing.assert_array_equal(run([xv], body, [x], target), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_layers_between_quantized_values(cpu, dtype):
    """dequantize, convolution, bias, relu, quantize: within a step of the same arithmetic in float64."""
    target, rng = on(cpu), np.random.default_rng(4)
    zero = {"uint8": 120, "int8": -8}[dtype]
    x, w = some(rng, dtype, (1, 16, 6, 6)), some(rng, "int8", (32, 16, 3, 3))
    scales, bias = rng.uniform(0.001, 0.01, 32).astype("float32"), rng.standard_normal(32).astype("float32")
    xv = relay.var("x", shape=x.shape, dtype=dtype)
    data = relay.qnn.op.dequantize(xv, relay.const(0.02, "float32"), relay.const(zero))
    weight = relay.qnn.op.dequantize(relay.const(w), relay.const(scales), relay.const(np.zeros(32, "int32")), axis=0)
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, weight, padding=(1, 1), channels=32, kernel_size=(3, 3)), relay.const(bias)))
    got = run([xv], relay.qnn.op.quantize(y, relay.const(0.05, "float32"), relay.const(zero), out_dtype=dtype), [x], target)
    sums = convolved(x.astype(np.int64) - zero, w.astype(np.int64), 1, 1, 1)
    exact = np.maximum(sums * (0.02 * scales.astype("float64"))[:, None, None] + bias[:, None, None], 0) / 0.05
    want = np.clip(np.round(exact) + zero, *ENDS[dtype])
    assert np.abs(got.astype(int) - want).max() <= 1
    assert (got != want).mean() < 0.01


def quantized(y, scale, zero, dtype):
    return relay.qnn.op.quantize(y, relay.const(scale, "float32"), relay.const(zero), out_dtype=dtype)


def restored(x, scale, zero, axis=-1):
    return relay.qnn.op.dequantize(x, relay.const(scale, "float32"), relay.const(zero), axis=axis)


def block_of_bytes(dtype):
    """Branches of convolutions that are added, joined and pooled, each of another scale: all values between layers are quantized."""
    rng, zero = np.random.default_rng(6), {"uint8": 120, "int8": -8}[dtype]
    xv = relay.var("x", shape=(1, 16, 9, 9), dtype=dtype)

    def layer(x, outputs, window):
        w = some(rng, "int8", (outputs, 16, window, window))
        weight = restored(relay.const(w), rng.uniform(0.001, 0.01, outputs).astype("float32"), np.zeros(outputs, "int32"), axis=0)
        y = relay.nn.conv2d(x, weight, padding=(window // 2, window // 2), channels=outputs, kernel_size=(window, window))
        return relay.nn.bias_add(y, relay.const(rng.standard_normal(outputs).astype("float32")))

    x = restored(xv, 0.02, zero)
    left = restored(quantized(layer(x, 32, 3), 0.1, zero, dtype), 0.1, zero)
    right = restored(quantized(layer(x, 32, 1), 0.07, zero + 3, dtype), 0.07, zero + 3)
    both = restored(quantized(relay.nn.relu(relay.add(left, right)), 0.09, zero, dtype), 0.09, zero)
    same = relay.add(restored(quantized(layer(x, 16, 3), 0.1, zero, dtype), 0.1, zero), x)
    same = restored(quantized(same, 0.11, zero - 2, dtype), 0.11, zero - 2)
    pooled = relay.nn.max_pool2d(relay.concatenate([both, same], axis=1), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    return xv, quantized(pooled, 0.11, zero - 2, dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_blocks_of_bytes_have_the_same_bits_everywhere(dtype):
    xv, y = block_of_bytes(dtype)
    func = relay.Function([xv], y)
    x = some(np.random.default_rng(7), dtype, (1, 16, 9, 9))
    want = relay.create_executor("debug", mod=baton.IRModule.from_expr(func)).evaluate()(x).numpy()
    first = None
    for cpu in PROCESSORS:
        try:
            target = on(cpu)
        except pytest.skip.Exception:
            continue
        got = run([xv], y, [x], target)
        first = got if first is None else first
        np.testing.assert_array_equal(got, first, err_msg=cpu)
    assert np.abs(first.astype(int) - want).max() <= 2
    assert (first != want).mean() < 0.02


def test_no_floats_are_kept_between_quantized_layers():
    xv, y = block_of_bytes("uint8")
    mod = baton.IRModule.from_expr(relay.Function([xv], y))
    with baton.target.Target("llvm -mcpu=cascadelake"), baton.transform.PassContext(opt_level=3):
        mod = baton.get_global_func("driver.DefaultPipeline")()(mod)
    kernels = []

    def add(e):
        if isinstance(e, relay.Call) and isinstance(e.op, relay.Function):
            kernels.append(e)

    relay.analysis.post_order_visit(mod["main"], add)
    assert [str(k.checked_type.dtype) for k in kernels] == ["uint8"] * len(kernels)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("depth, columns", [(6, 5), (1030, 7)])
def test_products_without_a_kernel_on_bytes_are_exact_too(cpu, dtype, depth, columns):
    target, rng, zero = on(cpu), np.random.default_rng(8), 3
    x, w = some(rng, dtype, (5, depth)), some(rng, "int8", (columns, depth))
    xv = relay.var("x", shape=x.shape, dtype=dtype)
    body = relay.nn.dense(restored(xv, 0.5, zero), restored(relay.const(w), 0.25, 0))
    want = ((x.astype(np.int64) - zero) @ w.astype(np.int64).T).astype("float32") * np.float32(0.125)
    np.testing.assert_array_equal(run([xv], body, [x], target), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_a_bias_in_steps_of_the_sum_is_added_to_it(cpu, dtype, kind):
    """As tools write it: int32 at the product of both scales. Then one factor is left, as ONNX Runtime multiplies: bits are its."""
    target, rng, zero = on(cpu), np.random.default_rng(12), {"uint8": 120, "int8": -8}[dtype]
    w = some(rng, "int8", (32, 16, 3, 3) if kind == "conv" else (32, 16))
    x = some(rng, dtype, (1, 16, 6, 6) if kind == "conv" else (5, 16))
    scales, steps = rng.uniform(0.001, 0.01, 32).astype("float32"), rng.integers(-4000, 4000, 32).astype("int32")
    factors = np.float32(0.02) * scales
    xv, weight = relay.var("x", shape=x.shape, dtype=dtype), restored(relay.const(w), scales, np.zeros(32, "int32"), axis=0)
    bias = relay.multiply(relay.cast(relay.const(steps), "float32"), relay.const(factors))
    data = restored(xv, 0.02, zero)
    if kind == "conv":
        y = relay.nn.bias_add(relay.nn.conv2d(data, weight, padding=(1, 1), channels=32, kernel_size=(3, 3)), bias)
        sums = convolved(x.astype(np.int64) - zero, w.astype(np.int64), 1, 1, 1) + steps[:, None, None]
    else:
        y = relay.add(relay.nn.dense(data, weight), bias)
        sums = (x.astype(np.int64) - zero) @ w.astype(np.int64).T + steps
    factor = factors / np.float32(0.05)
    want = np.round(sums.astype("float32") * (factor[:, None, None] if kind == "conv" else factor)) + np.float32(zero)
    got = run([xv], quantized(y, 0.05, zero, dtype), [x], target)
    np.testing.assert_array_equal(got, np.clip(want, *ENDS[dtype]).astype(dtype))


def test_a_bias_of_other_steps_stays_a_float():
    rng = np.random.default_rng(13)
    xv = relay.var("x", shape=(5, 16), dtype="uint8")
    product = relay.nn.dense(restored(xv, 0.02, 7), restored(relay.const(some(rng, "int8", (32, 16))), 0.5, 0))
    for bias in (rng.standard_normal(32).astype("float32"), np.full(32, np.nan, "float32"), np.full(32, 1e12, "float32")):
        func = relay.Function([xv], quantized(relay.add(product, relay.const(bias)), 0.05, 3, "uint8"))
        x = some(rng, "uint8", (5, 16))
        want = relay.create_executor("debug", mod=baton.IRModule.from_expr(func)).evaluate()(x).numpy()
        assert np.abs(run([xv], func.body, [x], on("x86-64-v3")).astype(int) - want).max() <= 1


def test_scales_whose_product_is_no_number_of_float32():
    """0 times infinity would make NaN of a sum that is 0."""
    xv = relay.var("x", shape=(2, 8), dtype="uint8")
    body = relay.nn.dense(restored(xv, 1e30, 3), restored(relay.const(np.ones((3, 8), "int8")), 1e30, 0))
    x = np.full((2, 8), 3, "uint8")
    np.testing.assert_array_equal(run([xv], body, [x], on("x86-64-v3")), np.zeros((2, 3), "float32"))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_what_is_not_a_number_stays_what_quantize_makes_of_it(dtype):
    """Signed bytes are moved to unsigned ones, and stand for the same numbers there."""
    rng = np.random.default_rng(9)
    xv = relay.var("x", shape=(3, 8), dtype="float32")
    weight = restored(relay.const(some(rng, "int8", (16, 8))), 0.25, 0)
    func = relay.Function([xv], relay.nn.dense(restored(quantized(xv, 0.5, -5 if dtype == "int8" else 7, dtype), 0.5, -5 if dtype == "int8" else 7), weight))
    x = rng.standard_normal((3, 8)).astype("float32")
    x[0, 1], x[1, 2], x[2, 3] = np.nan, np.inf, -np.inf
    want = relay.create_executor("debug", mod=baton.IRModule.from_expr(func)).evaluate()(x).numpy()
    np.testing.assert_array_equal(run([xv], func.body, [x], on("x86-64-v3")), want)


@pytest.mark.parametrize("cpu", PROCESSORS)
@pytest.mark.parametrize("dtype, low, high", [("uint8", 0, 255), ("int8", -128, 127), ("int16", -300, 300), ("int32", -5, 1e6)])
def test_clipped_results_of_a_kernel_become_integers(cpu, dtype, low, high):
    """Also where NaN and infinities come out of the product."""
    target, rng = on(cpu), np.random.default_rng(11)
    x = rng.uniform(-400, 400, (6, 16)).astype("float32")
    x[0, 0], x[1, 1], x[2, 2], x[3, 3] = np.nan, np.inf, -np.inf, -0.0
    xv = relay.var("x", shape=x.shape, dtype="float32")
    product = relay.nn.dense(xv, relay.const(np.ones((32, 16), "float32")))
    got = run([xv], relay.cast(relay.clip(relay.round(product), low, high), dtype), [x], target)
    want = np.clip(np.round(x @ np.ones((16, 32), "float32")), low, high)
    np.testing.assert_array_equal(got, np.nan_to_num(want, nan=0).astype(dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_the_guard_compares_the_pass(dtype):
    xv, y = block_of_bytes(dtype)
    rng = np.random.default_rng(10)
    fv = relay.var("f", shape=(4, 8), dtype="float32")
    layer = relay.nn.dense(restored(quantized(fv, 0.5, 1, dtype), 0.5, 1), restored(relay.const(some(rng, "int8", (16, 8))), 0.25, 0))
    for params, body in (([xv], y), ([fv], layer)):
        guard = baton.instrument.SemanticGuard(sample="all")
        with baton.target.Target("llvm -mcpu=cascadelake"), baton.transform.PassContext(opt_level=3, instruments=[guard]):
            mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body)))
            made = relay.transform.IntegerProducts()(mod)
        assert not baton.ir.structural_equal(made, mod)
        assert guard.checked["IntegerProducts"] == 1


def test_code_adds_four_products_by_one_instruction():
    xv = relay.var("x", shape=(4, 64), dtype="uint8")
    body = relay.nn.dense(int32(xv), int32(relay.const(np.ones((32, 64), "int8"))))
    with baton.transform.PassContext(opt_level=3):
        lib = relay.build(baton.IRModule.from_expr(relay.Function([xv], body)), target="llvm -mcpu=cascadelake")
    assert "vpdpbusd" in lib.get_lib().get_source("asm")


INSTRUCTIONS = {"cascadelake": ["vpdpbusd"], "skylake-avx512": ["pmaddwd"], "core-avx2": ["pmaddwd"], "x86-64-v2": ["pmaddwd"]}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("ic, oc", [(16, 16), (1, 16), (4, 16), (6, 16), (16, 4), (16, 20)])
@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO")], ids=["NCHW", "NHWC"])
def test_instructions_of_convolutions_that_sum_bytes_in_int32(dtype, ic, oc, layouts):
    sizes = {"N": 1, "C": ic, "O": oc, "I": ic}
    shape = [sizes.get(d, 10) for d in layouts[0]]
    weight = [sizes.get(d, 3) for d in layouts[1]]
    x, w = relay.var("x", shape=shape, dtype=dtype), relay.var("w", shape=weight, dtype="int8")
    conv = relay.nn.conv2d(x, w, channels=oc, kernel_size=(3, 3), data_layout=layouts[0], kernel_layout=layouts[1], out_dtype="int32")
    given = {"w": some(np.random.default_rng(0), "int8", weight)}
    for cpu, wanted in INSTRUCTIONS.items():
        with baton.transform.PassContext(opt_level=3):
            lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], conv)), target=f"llvm -mcpu={cpu}", params=given)
        asm = lib.get_lib().get_source("asm")
        assert [i for i in wanted if i not in asm] == [], cpu


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(4, 64), (2, 2, 64)], ids=["matrix", "three dimensions"])
def test_instructions_of_dense_layers_that_sum_bytes_in_int32(dtype, shape):
    x, w = relay.var("x", shape=shape, dtype=dtype), relay.var("w", shape=(32, 64), dtype="int8")
    given = {"w": some(np.random.default_rng(0), "int8", (32, 64))}
    dense = (
        relay.nn.dense(x, w, out_dtype="int32")
        if len(shape) == 2
        else relay.nn.dense(relay.reshape(relay.subtract(int32(x), relay.const(3)), (-1, 64)), int32(w))
    )
    for cpu, wanted in INSTRUCTIONS.items():
        with baton.transform.PassContext(opt_level=3):
            lib = relay.build(baton.IRModule.from_expr(relay.Function([x, w], dense)), target=f"llvm -mcpu={cpu}", params=given)
        asm = lib.get_lib().get_source("asm")
        assert [i for i in wanted if i not in asm] == [], cpu
