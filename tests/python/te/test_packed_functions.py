# SPDX-License-Identifier: Apache-2.0
"""Functions on whole arrays that tensor expressions call by name."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir


def extern(shapes, dtypes, call, *arrays):
    """What a call writes to arrays, of buffers of others."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
    made = te.extern(shapes, tensors, lambda ins, outs: call(*ins, *outs), dtype=dtypes)
    made = made if isinstance(made, list) else [made]
    outs = [tvm.nd.empty(s, d) for s, d in zip(shapes, dtypes, strict=True)]
    tvm.build(te.create_schedule(made[0].op), [*tensors, *made], "llvm")(*map(tvm.nd.array, arrays), *outs)
    return [o.numpy() for o in outs]


X = np.array([[3, 1, 3, 0], [5, 5, 2, 9]], "float32")


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ascending", [True, False])
def test_sort_and_argsort(axis, ascending):
    (order,) = extern([X.shape], ["int32"], lambda x, out: tir.call_packed("tvm.contrib.sort.argsort", x, out, axis, ascending), X)
    (values,) = extern([X.shape], ["float32"], lambda x, out: tir.call_packed("tvm.contrib.sort.sort", x, out, axis, ascending), X)
    np.testing.assert_array_equal(order, np.argsort(X if ascending else -X, axis=axis, kind="stable"))
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, axis))


def test_argsort_of_the_first_ones():
    count = np.array([2, 3], "int32")

    def call(x, n, out):
        return tir.call_packed("tvm.contrib.sort.argsort_nms", x, n, out, 1, False)

    (order,) = extern([X.shape], ["int32"], call, X, count)
    assert order.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    (order,) = extern([X.shape], ["int32"], call, X, np.array([4, 4], "int32"))
    assert order.tolist() == [[0, 2, 1, 3], [3, 0, 1, 2]]


def test_topk():
    both = extern([(2, 2)] * 2, ["float32", "int32"], lambda x, v, i: tir.call_packed("tvm.contrib.sort.topk", x, v, i, 2, 1, "both", False), X)
    assert both[0].tolist() == [[3, 3], [9, 5]] and both[1].tolist() == [[0, 2], [3, 0]]
    (least,) = extern([(2, 4)], ["float32"], lambda x, v: tir.call_packed("tvm.contrib.sort.topk", x, v, 0, 1, "values", True), X)
    np.testing.assert_array_equal(least, np.sort(X, 1))
