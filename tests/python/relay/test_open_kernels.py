# SPDX-License-Identifier: Apache-2.0
"""Kernels whose extents are variables: right at many sizes, with the bits of the kernels that are compiled for each size."""

import platform

import numpy as np
import pytest

import baton
from baton import relay, te
from baton._ffi import get_global_func


def _levels():
    host = set(baton.target.Target("llvm").features)
    names = [f"x86-64-v{n}" for n in (2, 3, 4)] if platform.machine() == "x86_64" else []
    return [n for n in names if set(baton.target.Target(f"llvm -mcpu={n}").features) <= host]


LEVELS = _levels()
LANES = {"x86-64-v2": 4, "x86-64-v3": 8, "x86-64-v4": 16}


def var(name, *shape):
    return relay.var(name, shape=shape)


class Kernel:
    """A fusion group, lowered and built. Generated kernels take flat tensors, those of the general schedule shaped ones."""

    def __init__(self, params, body, level):
        target = baton.target.Target(f"llvm -mcpu={level}")
        mod = relay.transform.InferType()(baton.IRModule.from_expr(relay.Function(params, body)))
        main = mod["main"]
        self.params, self.out = params, main.body.checked_type.shape
        with target:
            func = get_global_func("relay.LowerPrimitive")(main, "kernel", target).with_attr("global_symbol", "kernel")
            self.run = baton.build(func, target=target)["kernel"]
        self.text = str(func)
        self.generated = all(len(b.shape) == 1 for b in func.buffer_map.values())
        self.sizes = [p.name for p in func.params[len(params) + 1 :]]

    def __call__(self, arrays, shape, sizes=()):
        flat = (lambda x: x.reshape(-1)) if self.generated else (lambda x: x)
        out = baton.nd.array(flat(np.full(shape, np.nan, "float32")))
        self.run(*[baton.nd.array(flat(a)) for a in arrays], out, *sizes)
        return out.numpy().reshape(shape)


def check(level, make, all_sizes, reference=None, generated=None):
    """`make(sizes)` gives parameters and body, for variables and for numbers."""
    rng = np.random.default_rng(1)
    opened = Kernel(*make({name: te.var(name) for name in all_sizes[0]}), level)
    assert generated is None or opened.generated == generated
    for sizes in all_sizes:
        fixed = Kernel(*make(sizes), level)
        shapes = [[int(d) for d in p.type_annotation.shape] for p in fixed.params]
        arrays = [rng.standard_normal(s, dtype="float32") for s in shapes]
        shape = [int(d) for d in fixed.out]
        got = opened(arrays, shape, [sizes[n] for n in opened.sizes])
        np.testing.assert_array_equal(got, fixed(arrays, shape), err_msg=f"{sizes}: other bits")
        if reference is not None:
            np.testing.assert_allclose(got, reference(*arrays), rtol=2e-4, atol=2e-4, err_msg=str(sizes))


def each(name, *values):
    return [{name: v} for v in values]


def product(a, b, transpose_a=False, transpose_b=False):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    return a.astype("float64") @ (np.swapaxes(b, -1, -2) if transpose_b else b)


pytestmark = pytest.mark.parametrize("level", LEVELS)
ROWS = (0, 1, 2, 6, 7, 13, 19, 64)


@pytest.mark.parametrize("units, k, epilogue", [(100, 70, "none"), (130, 33, "gelu"), (96, 200, "residual"), (70, 384, "bias")])
def test_dense_with_packed_weights(level, units, k, epilogue):
    columns = LANES[level] * (4 if level == "x86-64-v4" else 2)

    def make(d):
        x, w = var("x", d["m"], k), var("w", -(-units // columns), k, columns)
        b, r = var("b", units), var("r", d["m"], units)
        y = relay.nn.contrib_dense_pack(x, w, weight_layout=f"NC{columns}n", units=units)
        if epilogue == "none":
            return [x, w], y
        y = relay.add(y, b)
        if epilogue == "gelu":
            return [x, w, b], y * relay.const(0.5) * (relay.erf(y * relay.const(0.70710678)) + relay.const(1.0))
        return ([x, w, b], y) if epilogue == "bias" else ([x, w, b, r], relay.nn.relu(y) + r)

    def reference(x, w):
        return product(x, w.transpose(1, 0, 2).reshape(k, -1)[:, :units])

    check(level, make, each("m", *ROWS), reference if epilogue == "none" else None, generated=True)


def test_dense_of_rows_in_two_dimensions(level):
    def make(d):
        x, w, b = var("x", d["b"], d["s"], 40), var("w", 70, 40), var("c", 70)
        return [x, w, b], relay.nn.relu(relay.add(relay.nn.dense(x, w), b))

    sizes = [{"b": b, "s": s} for b, s in [(1, 1), (2, 7), (3, 16), (0, 4)]]
    check(level, make, sizes, lambda x, w, b: np.maximum(product(x, w, transpose_b=True) + b, 0), generated=True)


@pytest.mark.parametrize("transpose_b", [False, True], ids=["values", "keys"])
def test_attention_products(level, transpose_b):
    def make(d):
        q, s = (64, d["s"]), (d["s"], d["s"])
        x, y = (var("x", 3, d["s"], q[0]), var("y", 3, d["s"], 64)) if transpose_b else (var("x", 3, *s), var("y", 3, d["s"], 64))
        return [x, y], relay.nn.batch_matmul(x, y, transpose_b=transpose_b)

    sizes = each("s", 0, 1, 7, 16, 33, 64, 130)
    check(level, make, sizes, lambda x, y: product(x, y, transpose_b=transpose_b), generated=True)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("batches", ["both", "left", "right"])
def test_products_with_all_extents_open(level, transpose_a, transpose_b, batches):
    def make(d):
        x, y = (d["k"], d["m"]) if transpose_a else (d["m"], d["k"]), (d["n"], d["k"]) if transpose_b else (d["k"], d["n"])
        x, y = var("x", 1 if batches == "right" else d["b"], *x), var("y", 1 if batches == "left" else d["b"], *y)
        return [x, y], relay.nn.batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b)

    sizes = [{"b": b, "m": m, "n": n, "k": k} for b, m, n, k in [(1, 1, 1, 1), (3, 7, 70, 130), (2, 40, 20, 300), (2, 13, 64, 7)]]
    sizes.append({"b": 2, "m": 3, "n": 5, "k": 0})
    check(level, make, sizes, lambda x, y: product(x, y, transpose_a, transpose_b), generated=True)


def test_scaled_and_masked_product(level):
    def make(d):
        q, k, m = var("q", d["b"], 4, d["s"], 32), var("k", d["b"], 4, d["t"], 32), var("m", d["b"], 1, 1, d["t"])
        return [q, k, m], relay.nn.matmul(q, k, transpose_b=True) * relay.const(0.125) + m

    sizes = [{"b": b, "s": s, "t": t} for b, s, t in [(1, 1, 1), (2, 7, 70), (3, 16, 33), (1, 64, 128)]]
    check(level, make, sizes, lambda q, k, m: product(q, k, transpose_b=True) * 0.125 + m, generated=True)


CONVS = {
    "3x3": (16, 20, 32, 3, 1, 1, 1),
    "1x1": (16, 14, 32, 1, 1, 0, 1),
    "7x7": (3, 33, 16, 7, 2, 3, 1),
    "groups": (16, 20, 16, 3, 1, 1, 4),
    "depthwise": (16, 20, 16, 3, 1, 1, 16),
}


@pytest.mark.parametrize("blocked", [False, True], ids=["plain", "blocked"])
@pytest.mark.parametrize("name", CONVS)
def test_convolutions_of_any_number_of_images(level, name, blocked):
    channels, side, units, window, step, padding, groups = CONVS[name]
    lanes = LANES[level]
    inner = channels if channels < lanes else lanes
    if blocked and groups not in (1, channels):
        pytest.skip("groups of less than a block stay plain")
    result = (side + 2 * padding - window) // step + 1

    def make(d):
        common = {"strides": (step,) * 2, "padding": (padding,) * 2, "groups": groups, "kernel_size": (window,) * 2}
        common["channels"] = units
        if not blocked:
            x, w = var("x", d["n"], channels, side, side), var("w", units, channels // groups, window, window)
            r = var("r", d["n"], units, result, result)
            return [x, w, r], relay.nn.relu(relay.nn.conv2d(x, w, **common)) + r
        x, own = var("x", d["n"], channels // inner, side, side, inner), 1 if groups > 1 else inner
        w = var("w", units // lanes, 1 if groups > 1 else channels // inner, window, window, own, lanes)
        r = var("r", d["n"], units // lanes, result, result, lanes)
        y = relay.nn.contrib_conv2d_nchwc(x, w, data_layout=f"NCHW{inner}c", kernel_layout=f"OIHW{own}i{lanes}o", out_layout=f"NCHW{lanes}c", **common)
        return [x, w, r], relay.nn.relu(y) + r

    check(level, make, each("n", 0, 1, 3), generated=True)


@pytest.mark.parametrize("name", [n for n in CONVS if n != "groups"])
def test_blocked_convolutions_of_images_of_any_size(level, name):
    channels, _, units, window, step, padding, groups = CONVS[name]
    lanes = LANES[level]
    inner = min(channels, lanes)

    def make(d):
        own = 1 if groups > 1 else inner
        x = var("x", d["n"], channels // inner, d["h"], d["w"], inner)
        w = var("k", units // lanes, 1 if groups > 1 else channels // inner, window, window, own, lanes)
        b = var("b", 1, units // lanes, 1, 1, lanes)
        y = relay.nn.contrib_conv2d_nchwc(
            x, w, strides=(step,) * 2, padding=(padding,) * 2, groups=groups, kernel_size=(window,) * 2, channels=units,
            data_layout=f"NCHW{inner}c", kernel_layout=f"OIHW{own}i{lanes}o", out_layout=f"NCHW{lanes}c",
        )  # fmt: skip
        return [x, w, b], relay.nn.relu(relay.add(y, b))

    sizes = [{"n": n, "h": h, "w": w} for n, h, w in [(1, 8, 8), (2, 5, 9), (1, 3, 3), (3, 30, 17), (0, 8, 8), (1, 2, 2)]]
    check(level, make, sizes, generated=True)


# Window, steps, padding (top, left, bottom, right), dilation.
DEPTHWISE = {
    "3x3": ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "3x3 every other": ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
    "5x5 after the end": ((5, 5), (2, 1), (0, 0, 3, 4), (1, 1)),
    "3x3 with gaps": ((3, 3), (1, 1), (2, 3, 2, 1), (2, 3)),
    "1x9": ((1, 9), (1, 3), (0, 4, 0, 4), (1, 1)),
    "more padding than window": ((2, 2), (1, 1), (3, 3, 3, 3), (1, 1)),
    "no padding": ((3, 2), (3, 2), (0, 0, 0, 0), (1, 1)),
}


def depthwise(x, w, steps, padding, dilation):
    """Of (n, blocks, h, w, lanes) by (blocks, 1, kh, kw, 1, lanes)."""
    top, left, bottom, right = padding
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0)))
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:4], dilation, strict=True)]
    taps = np.lib.stride_tricks.sliding_window_view(x, spans, (2, 3))[:, :, :: steps[0], :: steps[1], :, :: dilation[0], :: dilation[1]]
    return np.einsum("nbyxlij,bijl->nbyxl", taps, w[:, 0, :, :, 0])


@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_convolutions_copy_no_image(level, name):
    window, steps, padding, dilation = DEPTHWISE[name]
    lanes, blocks = LANES[level], 3

    def make(d):
        x, w = var("x", d["n"], blocks, d["h"], d["w"], lanes), var("k", blocks, 1, *window, 1, lanes)
        return [x, w], relay.nn.contrib_conv2d_nchwc(
            x, w, strides=steps, padding=padding, dilation=dilation, groups=blocks * lanes, kernel_size=window, channels=blocks * lanes,
            data_layout=f"NCHW{lanes}c", kernel_layout=f"OIHW1i{lanes}o", out_layout=f"NCHW{lanes}c",
        )  # fmt: skip

    sizes = [{"n": 1 + w % 2, "h": 20 - w, "w": w} for w in range(5, 20)] + [{"n": 0, "h": 8, "w": 8}, {"n": 1, "h": 9, "w": 131}]
    assert "padded" not in Kernel(*make({"n": te.var("n"), "h": te.var("h"), "w": te.var("w")}), level).text
    check(level, make, [s for s in sizes if s["h"] >= 5], lambda x, w: depthwise(x, w, steps, padding, dilation), generated=True)


# Window, steps, padding (top, left, bottom, right), dilation, whether the last window may end outside.
POOLS = {
    "5x5": ((5, 5), (1, 1), (2, 2, 2, 2), (1, 1), False),
    "3x3 every other": ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    "3x3 every other, ends outside": ((3, 3), (2, 2), (0, 0, 0, 0), (1, 1), True),
    "2x3": ((2, 3), (1, 1), (1, 0, 0, 2), (1, 1), False),
    "3x2 with gaps": ((3, 2), (2, 1), (2, 3, 3, 2), (2, 3), False),
    "1x9": ((1, 9), (1, 1), (0, 4, 0, 4), (1, 1), False),
    "no padding": ((2, 2), (1, 1), (0, 0, 0, 0), (1, 1), False),
}


def pool(x, kind, window, steps, padding, dilation, out):
    """Of (n, c, h, w, lanes), window by window."""
    found = np.empty((*x.shape[:2], *out, x.shape[4]))
    wide = np.pad(x.astype("float64"), ((0, 0), (0, 0), *[(p, p + 64) for p in padding[:2]], (0, 0)), constant_values=np.nan)
    room = [padding[d] + x.shape[2 + d] + padding[2 + d] for d in range(2)]
    for i in range(out[0]):
        for j in range(out[1]):
            rows, columns = ([at * s + k * d for k in range(n)] for at, s, d, n in zip((i, j), steps, dilation, window, strict=True))
            part = wide[:, :, rows][:, :, :, columns]
            if kind == "max":
                found[:, :, i, j] = np.nanmax(part, (2, 3))
            else:
                taps = window[0] * window[1] if kind == "mean with padding" else (~np.isnan(part[:1, :1])).sum((2, 3))
                found[:, :, i, j] = np.nansum(part, (2, 3)) / taps
    assert all((n - 1) * s < r for n, s, r in zip(out, steps, room, strict=True))
    return found


@pytest.mark.parametrize("kind", ["max", "mean", "mean with padding"])
@pytest.mark.parametrize("blocked", [False, True], ids=["plain", "blocked"])
@pytest.mark.parametrize("name", POOLS)
def test_pools(level, name, blocked, kind):
    window, steps, padding, dilation, ceil = POOLS[name]
    if ceil and kind == "mean with padding":
        pytest.skip("counts padding and not what lies behind it: the general schedule")
    lanes = LANES[level] if blocked else 1
    named = {"ceil_mode": ceil, "dilation": dilation, "layout": f"NCHW{lanes}c" if blocked else "NCHW"}
    if kind != "max":
        named["count_include_pad"] = kind == "mean with padding"

    def make(d):
        x = var("x", d["n"], 3, d["h"], d["w"], *((lanes,) if blocked else ()))
        op = relay.nn.max_pool2d if kind == "max" else relay.nn.avg_pool2d
        return [x], relay.nn.relu(op(x, pool_size=window, strides=steps, padding=padding, **named))

    def reference(x):
        x = x if blocked else x[..., None]
        n = [(s + padding[d] + padding[2 + d] - ((window[d] - 1) * dilation[d] + 1)) for d, s in enumerate(x.shape[2:4])]
        out = [-(-r // s) + 1 if ceil else r // s + 1 for r, s in zip(n, steps, strict=True)]
        out = [o - (ceil and (o - 1) * s >= x.shape[2 + d] + padding[d]) for d, (o, s) in enumerate(zip(out, steps, strict=True))]
        found = np.maximum(pool(x, kind, window, steps, padding, dilation, out), 0)
        return found if blocked else found[..., 0]

    sizes = [{"n": 1 + w % 2, "h": 25 - w, "w": w} for w in (5, 6, 7, 9, 15, 16, 17, 20)] + [{"n": 0, "h": 8, "w": 8}, {"n": 1, "h": 9, "w": 67}]
    check(level, make, sizes, reference, generated=blocked or (steps[1] == 1 and window[1] < 8))


def test_pools_hand_on_what_is_no_number(level):
    x = np.zeros((1, 1, 6, 20), "float32")
    x[0, 0, 2, 0], x[0, 0, 4, 19] = np.nan, -np.inf
    p = var("x", *x.shape)
    fixed = Kernel([p], relay.nn.max_pool2d(p, pool_size=(3, 3), padding=(1, 1)), level)
    got = fixed([x], x.shape)
    assert np.isnan(got[0, 0, 1:4, :2]).all() and np.isnan(got).sum() == 6
    assert (got[~np.isnan(got)] == 0).all()


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(x, g, b):
    centred = x - x.mean(-1, keepdims=True, dtype="float64")
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


LENGTHS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 65, 130)
PAIRS = [{"b": b, "n": n} for b, n in [(1, 1), (2, 3), (3, 16), (2, 130), (5, 33)]]
# Parameters of a body by their shapes, the body, what it means, the sizes.
GENERAL = {
    "softmax": (lambda d: [(3, d["n"])], relay.nn.softmax, softmax, each("n", *LENGTHS)),
    "masked softmax": (
        lambda d: [(d["b"], 3, d["n"], d["n"]), (d["b"], 1, 1, d["n"])],
        lambda x, m: relay.nn.softmax(relay.add(x, m)),
        lambda x, m: softmax(x + m),
        PAIRS,
    ),
    "layer norm": (lambda d: [(d["b"], d["n"], 96), (96,), (96,)], relay.nn.layer_norm, normal, PAIRS),
    "layer norm of open rows": (lambda d: [(3, d["n"]), (d["n"],), (d["n"],)], relay.nn.layer_norm, None, each("n", *LENGTHS[1:])),
    "sum of squares": (lambda d: [(3, d["n"])], lambda x: relay.sum(x * x, axis=-1), lambda x: (x * x).sum(-1), each("n", *LENGTHS)),
    "mean over a sequence": (lambda d: [(d["b"], d["n"], 96)], lambda x: relay.mean(x, axis=1), lambda x: x.mean(1), PAIRS),
    "mean over an image": (
        lambda d: [(d["b"], 5, d["n"], d["n"])],
        lambda x: relay.mean(x, axis=[2, 3]),
        lambda x: x.mean((2, 3)),
        PAIRS,
    ),
    "split heads": (
        lambda d: [(d["b"], d["n"], 384)],
        lambda x: relay.transpose(relay.reshape(x, (0, 0, 6, 64)), (0, 2, 1, 3)),
        lambda x: x.reshape(*x.shape[:2], 6, 64).transpose(0, 2, 1, 3),
        PAIRS,
    ),
    "keys to columns": (
        lambda d: [(d["b"], d["n"], 6, 64)],
        lambda x: relay.transpose(x, (0, 2, 3, 1)),
        lambda x: x.transpose(0, 2, 3, 1),
        PAIRS,
    ),
    "transpose of open sides": (
        lambda d: [(2, d["b"], d["n"])],
        lambda x: relay.transpose(x, (0, 2, 1)),
        lambda x: x.transpose(0, 2, 1),
        [*PAIRS, {"b": 40, "n": 70}],
    ),
    "bias": (lambda d: [(d["b"], d["n"], 96), (96,)], relay.add, np.add, PAIRS),
    "pool": (
        lambda d: [(d["b"], 4, d["n"], d["n"])],
        lambda x: relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1)),
        None,
        PAIRS[1:],
    ),
}


@pytest.mark.parametrize("name", GENERAL)
def test_general_schedule(level, name):
    shapes, body, reference, sizes = GENERAL[name]

    def make(d):
        params = [var(f"p{i}", *s) for i, s in enumerate(shapes(d))]
        return params, body(*params)

    check(level, make, sizes, reference)


def test_rows_do_not_depend_on_their_number(level):
    w = np.random.default_rng(2).standard_normal((2, 48, 64), dtype="float32")
    x = np.random.default_rng(3).standard_normal((40, 48), dtype="float32")
    m = te.var("m")
    a, b = var("x", m, 48), var("w", 2, 48, 64)
    kernel = Kernel([a, b], relay.nn.contrib_dense_pack(a, b, weight_layout="NC64n", units=100), level)
    whole = kernel([x, w], (40, 100), [40])
    for rows in (1, 3, 8, 17):
        np.testing.assert_array_equal(kernel([x[:rows], w], (rows, 100), [rows]), whole[:rows])
