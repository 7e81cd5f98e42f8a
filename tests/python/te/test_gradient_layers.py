# SPDX-License-Identifier: Apache-2.0
"""Derivatives of tensor expressions, beside differences."""

import numpy as np
import pytest

import baton as tvm
from baton import te, topi


def check(make, *shapes):
    inputs = [te.placeholder(s, "float64", name=f"A{k}") for k, s in enumerate(shapes)]
    out = make(*inputs)
    head = te.placeholder(out.shape, "float64", name="H")
    adjoints = te.gradient(out, inputs, head=head)
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.5, s) for s in shapes]
    weights = rng.uniform(0.5, 1.5, [int(x) for x in out.shape])
    forward = tvm.build(te.create_schedule(out.op), [*inputs, out], "llvm")
    backward = tvm.build(te.create_schedule([t.op for t in adjoints]), [*inputs, head, *adjoints], "llvm")

    def loss(*given):
        result = tvm.nd.empty(weights.shape, "float64")
        forward(*map(tvm.nd.array, given), result)
        return (result.numpy() * weights).sum()

    got = [tvm.nd.empty(s, "float64") for s in shapes]
    backward(*map(tvm.nd.array, [*values, weights]), *got)
    for k, value in enumerate(values):
        want = np.zeros_like(value)
        for i in np.ndindex(*value.shape):
            more, less = [v.copy() for v in values], [v.copy() for v in values]
            more[k][i] += 1e-5
            less[k][i] -= 1e-5
            want[i] = (loss(*more) - loss(*less)) / 2e-5
        np.testing.assert_allclose(got[k].numpy(), want, rtol=1e-4, atol=1e-6)


def product(a, b):
    k = te.reduce_axis((0, 3), "k")
    return te.compute((2, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def convolution(a, w):
    y, x = te.reduce_axis((0, 2)), te.reduce_axis((0, 2))
    return te.compute((3, 3), lambda i, j: te.sum(a[i + y, j + x] * w[y, x], axis=[y, x]))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda a: te.compute((3, 2), lambda i, j: te.exp(a[i, j]) + a[i, j] * 2.0), [(3, 2)]),
        (lambda a: te.compute((2, 3), lambda i, j: a[j, i] * a[j, i]), [(3, 2)]),
        (product, [(2, 3), (3, 4)]),
        (convolution, [(4, 4), (2, 2)]),
        (lambda a, b: te.compute((3,), lambda i: a[i] / b[i]), [(3,), (3,)]),
        (lambda a: te.compute((3,), lambda i: a[i * 2] + a[i * 2 + 1]), [(6,)]),
        (lambda a: te.compute((4,), lambda i: te.if_then_else(i < 2, a[i], a[3 - i] * 3.0)), [(4,)]),
        (lambda a: te.compute((4,), lambda i: te.max(a[i], 1.0)), [(4,)]),
        (lambda a: te.compute((3,), lambda i: te.log(a[i]) * te.tanh(a[i]) + te.sigmoid(a[i]) + te.sqrt(a[i])), [(3,)]),
        (lambda a: topi.nn.relu(topi.sum(a, axis=1)), [(3, 4)]),
        (lambda a: te.compute((3,), lambda i: a[i // 2]), [(2,)]),
        (lambda a: te.compute((3,), lambda i: te.power(a[i], 3.0)), [(3,)]),
    ],
)
def test_beside_differences(make, shapes):
    check(make, *shapes)


def test_without_head_all_derivatives_are_given():
    a = te.placeholder((3,), name="A")
    b = te.compute((3,), lambda i: a[i] * 2.0, name="B")
    (jacobian,) = te.gradient(te.compute((3,), lambda i: b[i] * b[i] + a[i]), [a])
    f = tvm.build(te.create_schedule(jacobian.op), [a, jacobian], "llvm")
    got, x = tvm.nd.empty((3, 3)), np.array([1, 2, 3], "float32")
    f(tvm.nd.array(x), got)
    np.testing.assert_allclose(got.numpy(), np.diag(8 * x + 1))


def test_what_is_not_read_has_no_derivative():
    a, b = te.placeholder((3,)), te.placeholder((2,))
    (adjoint,) = te.gradient(te.compute((3,), lambda i: a[i]), [b])
    assert [int(x) for x in adjoint.shape] == [3, 2]
