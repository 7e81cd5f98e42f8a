# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions of small integers run through the kernels of float32 and are exact: equal to NumPy's in
int64, for random shapes and zero points, at the ends of the dtypes, and where sums are cut into parts.
"""

import numpy as np
import pytest

import baton
from baton import relay

DTYPES = {"int8": (-128, 127), "uint8": (0, 255)}


def some(rng, dtype, shape, extreme):
    low, high = DTYPES[dtype]
    if extreme:
        return rng.choice([low, high], shape).astype(dtype)
    return rng.integers(low, high + 1, shape).astype(dtype)


def run(body, params, arrays, target=None):
    mod = baton.IRModule.from_expr(relay.Function(params, body))
    return baton.compile(mod, target=target)(*arrays).numpy()


def centred(var, zero, dtype="int32"):
    return relay.subtract(relay.cast(var, dtype), relay.const(zero, dtype))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_dense(seed, constant):
    rng = np.random.default_rng(seed)
    for dtype_x, dtype_w in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
        m, n = (int(v) for v in rng.integers(1, 40, 2))
        k = int(rng.choice([1, 7, 64, 257, 259, 1000, 3000]))
        x, w = some(rng, dtype_x, (m, k), seed % 2), some(rng, dtype_w, (n, k), seed % 2)
        zx, zw = (int(rng.integers(DTYPES[d][0], DTYPES[d][1] + 1)) for d in (dtype_x, dtype_w))
        xv, wv = relay.var("x", shape=x.shape, dtype=dtype_x), relay.var("w", shape=w.shape, dtype=dtype_w)
        weight = relay.const(w) if constant else wv
        body = relay.nn.dense(centred(xv, zx), centred(weight, zw), out_dtype="int32")
        got = run(body, [xv] if constant else [xv, wv], [x] if constant else [x, w])
        want = (x.astype(np.int64) - zx) @ (w.astype(np.int64) - zw).T
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_dense_on_other_processors(cpu):
    rng = np.random.default_rng(0)
    x, w = some(rng, "uint8", (5, 700), True), some(rng, "int8", (70, 700), True)
    xv = relay.var("x", shape=x.shape, dtype="uint8")
    got = run(relay.nn.dense(centred(xv, 3), centred(relay.const(w), -2)), [xv], [x], f"llvm -mcpu={cpu}")
    np.testing.assert_array_equal(got, (x.astype(np.int64) - 3) @ (w.astype(np.int64) + 2).T)


@pytest.mark.parametrize("seed", range(4))
def test_batch_matmul(seed):
    rng = np.random.default_rng(seed)
    b, m, n = (int(v) for v in rng.integers(1, 12, 3))
    k = int(rng.choice([3, 64, 300, 1025]))
    for ta in (False, True):
        for tb in (False, True):
            x = some(rng, "uint8", (b, k, m) if ta else (b, m, k), seed % 2)
            y = some(rng, "int8", (b, n, k) if tb else (b, k, n), seed % 2)
            xv, yv = relay.var("x", shape=x.shape, dtype="uint8"), relay.var("y", shape=y.shape, dtype="int8")
            body = relay.nn.batch_matmul(centred(xv, 200), centred(yv, 1), out_dtype="int32", transpose_a=ta, transpose_b=tb)
            a, c = x.astype(np.int64) - 200, y.astype(np.int64) - 1
            want = (a.swapaxes(1, 2) if ta else a) @ (c.swapaxes(1, 2) if tb else c)
            np.testing.assert_array_equal(run(body, [xv, yv], [x, y]), want)


def conv_reference(x, w, stride, pad, groups):
    n, _, height, width = x.shape
    o, per, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh, ow = (height + 2 * pad - kh) // stride + 1, (width + 2 * pad - kw) // stride + 1
    out = np.zeros((n, o, oh, ow), np.int64)
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride]
            for g in range(groups):
                of, to = slice(g * per, (g + 1) * per), slice(g * o // groups, (g + 1) * o // groups)
                out[:, to] += np.einsum("nchw,oc->nohw", part[:, of], w[to, :, i, j])
    return out


@pytest.mark.parametrize("seed", range(8))
def test_conv2d(seed):
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 1, 4, 16]))
    channels = 16 if groups > 1 else int(rng.choice([3, 16, 48, 200]))
    outs, size, window = 32 if groups > 1 else int(rng.choice([5, 16, 32])), int(rng.integers(5, 12)), int(rng.choice([1, 3]))
    stride, pad = int(rng.integers(1, 3)), int(rng.integers(0, 2))
    x = some(rng, "uint8", (1, channels, size, size), seed % 2)
    w = some(rng, "int8", (outs, channels // groups, window, window), seed % 2)
    zx = int(rng.integers(0, 256))
    xv = relay.var("x", shape=x.shape, dtype="uint8")
    body = relay.nn.conv2d(
        centred(xv, zx),
        centred(relay.const(w), 0),
        strides=(stride, stride),
        padding=(pad, pad),
        groups=groups,
        channels=outs,
        kernel_size=(window, window),
        out_dtype="int32",
    )
    want = conv_reference(x.astype(np.int64) - zx, w.astype(np.int64), stride, pad, groups)
    np.testing.assert_array_equal(run(body, [xv], [x]), want)


def test_qnn_operators():
    rng = np.random.default_rng(0)
    x, w = some(rng, "uint8", (9, 600), False), some(rng, "int8", (20, 600), False)
    xv = relay.var("x", shape=x.shape, dtype="uint8")
    i32, f32 = (lambda v: relay.const(v, "int32")), (lambda v: relay.const(v, "float32"))
    body = relay.qnn.op.dense(xv, relay.const(w), i32(77), i32(-5), f32(0.1), f32(0.2), units=20)
    np.testing.assert_array_equal(run(body, [xv], [x]), (x.astype(np.int64) - 77) @ (w.astype(np.int64) + 5).T)


def test_wide_integers_stay_integers():
    """Values whose products are not exact in float32 are left alone, and sums wrap as int32's do."""
    x = np.full((2, 3), 2**30, np.int32)
    w = np.full((4, 3), 7, np.int32)
    xv, wv = relay.var("x", shape=x.shape, dtype="int32"), relay.var("w", shape=w.shape, dtype="int32")
    want = (x.astype(np.int64) @ w.T.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(relay.nn.dense(xv, wv), [xv, wv], [x, w]), want)


def test_products_are_in_float32():
    x, w = relay.var("x", shape=(4, 64), dtype="uint8"), relay.const(np.ones((8, 64), np.int8))
    body = relay.nn.dense(centred(x, 9), centred(w, 0))
    mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function([x], body)))
    mod = relay.transform.InferType()(relay.transform.IntegersInFloat()(relay.transform.FoldConstant()(mod)))
    products = []

    def note(e):
        if isinstance(e, relay.Call) and e.op == relay.op.get("nn.dense"):
            products.append(e.checked_type.dtype)

    relay.analysis.post_order_visit(mod["main"], note)
    assert products == ["float32"]


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", None])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_vectors_of_floats_become_integers(source, cpu):
    """Out of range the nearest limit, 0 for NaN; narrower types wrap through int32."""
    values = [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 1e20, -1e20, 2147483520.0, -2147483520.0, 0.9, -0.9, 300.7, -129.5, 0.0, -0.0, 127.0]
    data = np.array(values * 5, source)
    wide = np.array([0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2147483520, -2147483520, 0, 0, 300, -129, 0, 0, 127] * 5, np.int32)
    x = relay.var("x", shape=data.shape, dtype=source)
    for dtype in ("int32", "int16", "uint8", "int8"):
        got = run(relay.cast(x, dtype), [x], [data], f"llvm -mcpu={cpu}" if cpu else None)
        np.testing.assert_array_equal(got, wide.astype(dtype))
