# SPDX-License-Identifier: Apache-2.0
"""Products with sparse matrices in compressed rows. A sparse operand has the tensors `data`, `indices` and `indptr`, and `shape`, as
`baton.contrib.sparse.placeholder` makes it."""

from .functions import apply, find_operator


def _product(a, b, c, of):
    columns = int(a.shape[1])

    def call(data, indices, indptr, b, *c):
        product = of(find_operator("nn.sparse_to_rows")((data, indices, indptr), columns), b)
        return find_operator("add")(product, *c) if c else product

    return apply(call, a.data, a.indices, a.indptr, b, *([] if c is None else [c]))


def csrmm(a, b, c=None):
    """a @ b + c, where `a` is sparse; `c` has an element for each column."""
    return _product(a, b, c, lambda a, b: find_operator("nn.matmul")(a, b))


def csrmv(a, x, y=None):
    """a @ x + y, where `a` is sparse; `x` has the shape (columns, 1) and `y` an element."""
    return csrmm(a, x, y)


def dense(data, weight, bias=None):
    """data @ weight.T + bias, where one of data and weight is sparse."""
    if hasattr(weight, "indptr"):
        return _product(weight, data, bias, lambda w, x: find_operator("nn.dense")(x, w))
    return _product(data, weight, bias, lambda x, w: find_operator("nn.dense")(x, w))


__all__ = ["csrmm", "csrmv", "dense"]
