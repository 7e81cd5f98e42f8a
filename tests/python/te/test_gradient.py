# SPDX-License-Identifier: Apache-2.0
"""Gradients of tensor expressions, beside differences of NumPy's functions."""

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing
from baton import te, tir, topi


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def differences(f, values, k, step=1e-3):
    """All derivatives of `f` by its k-th argument."""
    values = [v.astype("float64") for v in values]
    base, at = np.asarray(f(*values)), values[k]
    out = np.zeros(base.shape + at.shape)
    for place in np.ndindex(*at.shape):
        moved = []
        for sign in (1, -1):
            copies = [v.copy() for v in values]
            copies[k][place] += sign * step
            moved.append(np.asarray(f(*copies)))
        out[(..., *place)] = (moved[0] - moved[1]) / (2 * step)
    return out


def run(tensor, placeholders, values):
    out = tvm.nd.empty([int(d) for d in tensor.shape], str(tensor.dtype))
    tvm.build(te.create_schedule(tensor.op), [*placeholders, tensor], "llvm")(*map(tvm.nd.array, values), out)
    return out.numpy()


def over(extent):
    return te.reduce_axis((0, extent), "k")


def rows(reducer):
    def reduced(x):
        k = over(4)
        return te.compute((3,), lambda i: reducer(x[i, k], axis=k))

    return reduced


def softmax(x):
    k, j = over(4), over(4)
    largest = te.compute((3,), lambda i: te.max(x[i, k], axis=k))
    powers = te.compute((3, 4), lambda i, c: te.exp(x[i, c] - largest[i]))
    total = te.compute((3,), lambda i: te.sum(powers[i, j], axis=j))
    return te.compute((3, 4), lambda i, c: powers[i, c] / total[i])


def softmax_of_numpy(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def product(a, b):
    k = over(4)
    return te.compute((3, 5), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def strided(x, w):
    k = over(3)
    return te.compute((3,), lambda i: te.sum(x[i * 2 + k] * w[k], axis=[k]))


multiplied = te.comm_reducer(lambda a, b: a * b, lambda t: tir.const(1, t), name="multiplied")
ROWS = [
    ("square", lambda x: te.compute((3, 4), lambda i, j: x[i, j] * x[i, j]), lambda x: x * x, [f32(3, 4)]),
    ("functions", lambda x: te.compute((3,), lambda i: te.exp(x[i]) * te.tanh(x[i]) + te.sigmoid(x[i])), lambda x: np.exp(x) * np.tanh(x) + 1 / (1 + np.exp(-x)), [f32(3)]),
    ("powers", lambda x: te.compute((3,), lambda i: te.power(x[i], 3.0) + te.sqrt(x[i]) - te.log(x[i])), lambda x: x**3 + np.sqrt(x) - np.log(x), [f32(3) + 2]),
    ("quotient", lambda x, y: te.compute((3,), lambda i: x[i] / y[i]), lambda x, y: x / y, [f32(3), f32(3, seed=1) + 2]),
    ("transposed", lambda x: te.compute((4, 3), lambda i, j: x[j, i]), lambda x: x.T, [f32(3, 4)]),
    ("neighbours", lambda x: te.compute((3,), lambda i: x[i] * x[i + 1]), lambda x: x[:3] * x[1:4], [f32(5)]),
    ("backwards", lambda x: te.compute((3,), lambda i: x[2 - i]), lambda x: x[::-1], [f32(3)]),
    ("repeated", lambda x: te.compute((6,), lambda i: x[te.floordiv(i, 2)]), lambda x: x.repeat(2), [f32(3)]),
    ("every second", lambda x: te.compute((2,), lambda i: x[i * 2 + 1]), lambda x: x[1::2], [f32(4)]),
    ("behind a condition", lambda x: te.compute((5,), lambda i: te.if_then_else(i < 3, x[i], tir.const(0.0, "float32"))), lambda x: np.append(x, [0, 0]), [f32(3)]),
    ("sum", rows(te.sum), lambda x: x.sum(1), [f32(3, 4)]),
    ("max", rows(te.max), lambda x: x.max(1), [f32(3, 4)]),
    ("min", rows(te.min), lambda x: x.min(1), [f32(3, 4)]),
    ("prod", rows(multiplied), lambda x: x.prod(1), [abs(f32(3, 4)) + 0.5]),
    ("matrices", product, lambda a, b: a @ b, [f32(3, 4), f32(4, 5, seed=1)]),
    ("strided", strided, lambda x, w: np.array([(x[2 * i : 2 * i + 3] * w).sum() for i in range(3)]), [f32(7), f32(3, seed=1)]),
    ("softmax", softmax, softmax_of_numpy, [f32(3, 4)]),
    ("topi.nn.dense", topi.nn.dense, lambda x, w: x @ w.T, [f32(3, 4), f32(5, 4, seed=1)]),
    ("topi.nn.relu", lambda x: topi.sum(topi.nn.relu(x)), lambda x: x.clip(0).sum(), [f32(3, 4)]),
    ("topi.nn.softmax", topi.nn.softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), [f32(3, 4)]),
    ("topi.nn.conv2d", lambda x, k: topi.nn.conv2d_nchw(x, k, 1, 1, 1), lambda x, k: tvm.topi.testing.conv2d_nchw_python(x, k, 1, 1), [f32(1, 2, 4, 4), f32(2, 2, 3, 3, seed=1)]),
    ("topi.nn.pad", lambda x: topi.nn.pad(x, (1, 1)), lambda x: np.pad(x, 1), [f32(2, 3)]),
    ("topi.concatenate", lambda x: topi.concatenate([x, x], 0), lambda x: np.concatenate([x, x]), [f32(2, 3)]),
    ("topi.multiply", topi.multiply, lambda x, y: x * y, [f32(3, 4), f32(4, seed=1)]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "reference", "values"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_gradients(make, reference, values):
    placeholders = [te.placeholder(v.shape, name=f"p{i}") for i, v in enumerate(values)]
    made = te.gradient(make(*placeholders), placeholders)
    for k, gradient in enumerate(made):
        np.testing.assert_allclose(run(gradient, placeholders, values), differences(reference, values, k), rtol=3e-3, atol=2e-3)


def test_a_head():
    x, head = te.placeholder((3, 4), name="x"), te.placeholder((2, 3), name="head")
    y = te.compute((3,), lambda i: x[i, 0] * x[i, 1])
    (made,) = te.gradient(y, [x], head=head)
    values = [f32(3, 4), f32(2, 3, seed=1)]
    want = np.einsum("pi,ijk->pjk", values[1], differences(lambda v: v[:, 0] * v[:, 1], values[:1], 0))
    np.testing.assert_allclose(run(made, [x, head], values), want, rtol=2e-3, atol=2e-3)


def test_by_a_tensor_between_and_by_one_that_is_not_read():
    x, other = te.placeholder((3,), name="x"), te.placeholder((2,), name="other")
    inner = te.compute((3,), lambda i: x[i] * x[i])
    outer = te.compute((3,), lambda i: inner[i] * 3.0)
    by_inner, by_other = te.gradient(outer, [inner, other])
    assert (run(by_inner, [x], [f32(3)]) == 3 * np.eye(3)).all()
    assert [int(d) for d in by_other.shape] == [3, 2] and (run(by_other, [x], [f32(3)]) == 0).all()


def test_what_has_no_derivative_says_so():
    x = te.placeholder((3,), name="x")
    extern = te.extern((3,), [x], lambda ins, outs: tir.call_packed("no.matter", ins[0], outs[0]), dtype="float32", name="packed")
    with pytest.raises(tvm.error.UnsupportedError, match="`packed` is computed by statements"):
        te.gradient(te.compute((3,), lambda i: extern[i] * 2.0), [x])


@pytest.mark.parametrize("values", [[1, 0, 2, 3], [0, 0, 2, 3], [1, 2, -3, 4], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("where", [False, True])
def test_of_a_product_with_zeros(values, where):
    """Derivatives are the products of the other factors, also where one of them is 0, or negative."""
    a = np.array(values, "float32")
    x, k = te.placeholder((4,), name="x"), over(4)
    total = te.compute((1,), lambda i: te.prod(x[k] * x[k], axis=k, where=k.var > 0 if where else None), name="total")
    (slope,) = te.gradient(total, [x])

    def product(v):
        return np.prod((v * v)[1 if where else 0 :])[None]

    np.testing.assert_allclose(run(slope, [x], [a]), differences(product, [a], 0), rtol=1e-3, atol=1e-4)
