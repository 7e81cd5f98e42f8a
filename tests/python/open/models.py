# SPDX-License-Identifier: Apache-2.0
"""Models with open shapes whose values NumPy tells: what test_messages.py and the generated calls (calls.py) use."""

import numpy as np

import baton
from baton import Dim

HEAD = '#[version = "0.0.5"]\n'


def f32(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def mlp(x, w):
    y = np.maximum(x @ w.T, 0)
    return y, y.sum(1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def topk(x, k):
    order = np.argsort(-x, axis=-1, kind="stable")[..., : int(k) if k > 0 else None]
    return np.take_along_axis(x, order, -1), order


def reshaped(x, s):
    """0 copies an extent; -1 is what is left, and 0 where nothing is."""
    shape = [x.shape[i] if n == 0 else n for i, n in enumerate(s)]
    if x.size == 0 and 0 in shape:
        shape = [0 if n == -1 else n for n in shape]
    return np.maximum(x, 0).reshape(shape)


def conv(x, w):
    n, _, h, width = x.shape
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    out = np.zeros((n, w.shape[0], h, width), "float32")
    for i in range(3):
        for j in range(3):
            out += np.einsum("nchw,oc->nohw", padded[:, :, i : i + h, j : j + width], w[:, :, i, j])
    pooled = out[:, :, : h // 2 * 2, : width // 2 * 2].reshape(n, -1, h // 2, 2, width // 2, 2)
    return pooled.max((3, 5))


# Name -> text, bounds, what NumPy says.
MODELS = {
    "mlp": (
        "def @main(%x: Tensor[(n, 6), float32], %w: Tensor[(4, 6), float32]) {\n"
        "  let %y = nn.relu(nn.dense(%x, %w, units=4)); (%y, sum(%y, axis=[1])) }",
        {"x": (Dim("n", 0, 64), 6)},
        mlp,
    ),
    "halves": (
        "def @main(%x: Tensor[(n, 4), float32]) { reshape(negative(%x), newshape=[-1, 8]) }",
        {"x": (Dim("n", 2, 40, multiple=2), 4)},
        lambda x: (-x).reshape(-1, 8),
    ),
    "masked": (
        "def @main(%x: Tensor[(b, n, 5), float32], %mask: Tensor[(b, n), float32]) { multiply(%x, expand_dims(%mask, axis=2)) }",
        {"x": (Dim("b", 1, 8), Dim("n", 1, 32), 5)},
        lambda x, mask: x * mask[..., None],
    ),
    "scores": (
        "def @main(%q: Tensor[(b, s, 8), float32], %k: Tensor[(b, t, 8), float32], %m: Tensor[(m, 1, t), float32]) {\n"
        "  nn.softmax(add(nn.batch_matmul(%q, %k), %m)) }",
        None,
        lambda q, k, m: softmax(q @ k.transpose(0, 2, 1) + m),
    ),
    "cache": (
        "def @main(%past: Tensor[(1, p, 4), float32], %x: Tensor[(1, n, 4), float32], %bias: Tensor[(1, p + n, 1), float32]) {\n"
        "  let %all = concatenate((%past, %x), axis=1); (%all, add(%all, %bias)) }",
        {"past": (1, Dim("p", 0, 48), 4), "x": (1, Dim("n", 1, 16), 4)},
        lambda past, x, bias: (np.concatenate([past, x], 1), np.concatenate([past, x], 1) + bias),
    ),
    "reshaped": (
        "def @main(%x: Tensor[(n, 6), float32], %s: Tensor[(2), int64]) { nn.relu(dyn.reshape(%x, %s)) }",
        None,
        reshaped,
    ),
    "window": (
        "def @main(%x: Tensor[(n, 3), float32], %from: Tensor[(1), int64], %to: Tensor[(1), int64]) {\n"
        "  exp(dyn.strided_slice(%x, %from, %to)) }",
        None,
        lambda x, a, b: np.exp(x[int(a[0]) : int(b[0])]),
    ),
    "best": (
        "def @main(%x: Tensor[(n, 7), float32], %k: Tensor[(), int64]) { dyn.topk(%x, %k, dtype=\"int64\") }",
        None,
        topk,
    ),
    "filled": (
        "def @main(%v: Tensor[(), float32], %s: Tensor[(2), int64]) { add(dyn.full(%v, %s, dtype=\"float32\"), 1f) }",
        None,
        lambda v, s: np.full(s, v + np.float32(1), "float32"),
    ),
    "places": (
        "def @main(%x: Tensor[(n, 3), float32]) { add(argwhere(greater(%x, 0f)), 1i64) }",
        None,
        lambda x: np.argwhere(x > 0) + 1,
    ),
    "image": (
        "def @main(%x: Tensor[(n, 3, h, w), float32], %f: Tensor[(4, 3, 3, 3), float32]) {\n"
        "  nn.max_pool2d(nn.conv2d(%x, %f, padding=[1, 1], channels=4, kernel_size=[3, 3]), pool_size=[2, 2], strides=[2, 2]) }",
        {"x": (Dim("n", 1, 4), 3, Dim("h", 2, 40), Dim("w", 2, 40))},
        conv,
    ),
    "tiled": (
        "def @main(%x: Tensor[(n, 2), float32], %s: Tensor[(2), int64]) { sqrt(abs(dyn.tile(%x, %s))) }",
        None,
        lambda x, s: np.sqrt(np.abs(np.tile(x, s))),
    ),
}  # fmt: skip


def _of(*values):
    return np.array(values, "int64")


def _pick(r, *values):
    return int(r.choice(values))


def _reshaped(r):
    n = _pick(r, 0, 1, 2, 4, 9)
    return f32(n, 6), _of(*[(3, n * 2), (-1, 2), (n * 6, 1), (0, 6)][_pick(r, 0, 2, 3) if n else 3])


# Name -> arguments that a model takes, by a generator of numbers.
TAKES = {
    "mlp": lambda r: (f32(_pick(r, 0, 1, 2, 7, 33, 64), 6), f32(4, 6)),
    "halves": lambda r: (f32(_pick(r, 2, 4, 6, 38, 40), 4),),
    "masked": lambda r: (lambda b, n: (f32(b, n, 5), f32(b, n)))(_pick(r, 1, 3, 8), _pick(r, 1, 2, 31, 32)),
    "scores": lambda r: (lambda b, s, t, m: (f32(b, s, 8), f32(b, t, 8), f32(m, 1, t)))(b := _pick(r, 1, 2, 5), _pick(r, 1, 3, 17), _pick(r, 1, 4, 9), _pick(r, 1, b)),
    "cache": lambda r: (lambda p, n: (f32(1, p, 4), f32(1, n, 4), f32(1, p + n, 1)))(_pick(r, 0, 1, 5, 48), _pick(r, 1, 2, 16)),
    "reshaped": _reshaped,
    "window": lambda r: (f32(_pick(r, 0, 1, 4, 11), 3), _of(_pick(r, -3, 0, 1, 5)), _of(_pick(r, -1, 0, 3, 2**63 - 1))),
    "best": lambda r: (f32(_pick(r, 0, 1, 6), 7), np.array(_pick(r, 1, 2, 7), "int64")),
    "filled": lambda r: (f32(), _of(_pick(r, 0, 1, 5), _pick(r, 0, 2, 40))),
    "places": lambda r: (f32(_pick(r, 0, 1, 9, 50), 3),),
    "image": lambda r: (f32(_pick(r, 1, 4), 3, _pick(r, 2, 3, 8, 39), _pick(r, 2, 7, 40)), f32(4, 3, 3, 3)),
    "tiled": lambda r: (f32(_pick(r, 0, 1, 4), 2), _of(_pick(r, 0, 1, 3), _pick(r, 1, 2, 5))),
}  # fmt: skip


def compiled(name):
    text, shape, _ = MODELS[name]
    return baton.compile(HEAD + text, shape=shape)


def arrays(result):
    return [v.numpy() for v in result] if isinstance(result, tuple) else [result.numpy()]


def agree(name, result, args):
    """Whether a result is what NumPy says."""
    want = MODELS[name][2](*args)
    want = list(want) if isinstance(want, tuple) else [want]
    got = arrays(result)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape, (g.shape, w.shape)
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
