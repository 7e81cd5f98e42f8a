# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, and attention."""

from __future__ import annotations

from ..context import Value
from ..dtypes import is_float
from ..registry import aten


def _transposed_weight(x):
    """The tensor whose transpose `x` is, where a node says that; else None."""
    node = x.node
    if node is None or node.op != "call_function" or x.ndim != 2:
        return None
    name = getattr(node.target, "__name__", "")
    turned = name == "t.default" or name == "permute.default" and list(node.args[1]) == [1, 0] or name == "transpose.int"
    return node.args[0] if turned else None


def _product(c, x, y, dtype):
    """x (..., n, k) times the matrix y (k, m)."""
    if not is_float(dtype):
        return _by_sums(c, x, y, dtype)
    source = _transposed_weight(y) if isinstance(y, Value) else None
    if source is not None:
        return c("nn.dense", c.cast(x, dtype), c.convert(c.value_of(source).expr, y.dtype, dtype))
    return c("nn.matmul", c.cast(x, dtype), c.cast(y, dtype))


def _by_sums(c, x, y, dtype):
    """A product of integers or bools: sums of products."""
    x_, y_ = (c.cast(v, dtype) for v in (x, y))
    if dtype == "bool":
        return c("any", c("logical_and", c.expand_dims(x_, x.ndim), c.expand_dims(y_, y.ndim - 2)), axis=[x.ndim - 1])
    return c("sum", c.mul(c.expand_dims(x_, x.ndim), c.expand_dims(y_, y.ndim - 2)), axis=[x.ndim - 1])


@aten("mm.default")
def mm(c, x, y):
    return _product(c, x, y, c.dtype)


@aten("bmm.default")
def bmm(c, x, y):
    if not is_float(c.dtype):
        return _by_sums(c, x, y, c.dtype)
    return c("nn.batch_matmul", x, y, transpose_b=False)


@aten("addmm.default")
def addmm(c, bias, x, y, beta=1, alpha=1):
    return _plus(c, bias, _product(c, x, y, c.dtype), beta, alpha)


def _plus(c, bias, product, beta, alpha):
    if alpha != 1:
        product = c.mul(product, c.const(alpha, c.dtype)) if c.dtype != "bool" else c("logical_and", product, c.const(bool(alpha), "bool"))
    if beta == 0:
        return product
    bias = c.cast(bias, c.dtype)
    if c.dtype == "bool":
        return c("logical_or", bias, product)
    return c.add(product, bias if beta == 1 else c.mul(bias, c.const(beta, c.dtype)))


@aten("baddbmm.default")
def baddbmm(c, bias, x, y, beta=1, alpha=1):
    return _plus(c, bias, bmm(c, x, y), beta, alpha)


@aten("addbmm.default")
def addbmm(c, bias, x, y, beta=1, alpha=1):
    total = c("any" if c.dtype == "bool" else "sum", bmm(c, x, y), axis=[0])
    return _plus(c, bias, total, beta, alpha)


@aten("mv.default")
def mv(c, x, vector):
    if c.dtype == "bool":
        return c("any", c("logical_and", x, vector), axis=[1])
    return c("sum", c.mul(c.cast(x, c.dtype), c.cast(vector, c.dtype)), axis=[1])


@aten("addmv.default")
def addmv(c, bias, x, vector, beta=1, alpha=1):
    return _plus(c, bias, mv(c, x, vector), beta, alpha)


@aten("dot.default", "vdot.default")
def dot(c, x, y):
    return c("any", c("logical_and", x, y)) if c.dtype == "bool" else c("sum", c.mul(x, y))


@aten("linear.default")
def linear(c, x, weight, bias=None):
    out = c("nn.dense", x if x.ndim > 1 else c.reshape(x, [1, x.shape[0]]), weight)
    out = out if x.ndim > 1 else c.reshape(out, c.shape)
    return out if bias is None else c.add(out, bias)


@aten("matmul.default")
def matmul(c, x, y):
    if x.ndim == 1 and y.ndim == 1:
        return dot(c, x, y)
    if not is_float(c.dtype):
        c.need(x.ndim > 1 and y.ndim > 1, "a product of an integer vector")
        return _by_sums(c, x, y, c.dtype)
    a = x.expr if x.ndim > 1 else c.expand_dims(x, 0)
    b = y.expr if y.ndim > 1 else c.expand_dims(y, 1)
    rank = max(x.ndim, y.ndim, 2)
    if y.ndim <= 2:
        out = _product(c, Value(a, x.fake) if x.ndim > 1 else a, y, c.dtype) if y.ndim == 2 else c("nn.matmul", a, b)
    else:
        out = c("nn.matmul", a, b)
    if x.ndim == 1:
        out = c.squeeze(out, [rank - 2])
    return c.squeeze(out, [rank - 1 - (x.ndim == 1)]) if y.ndim == 1 else out


@aten("_trilinear.default")
def trilinear(c, x, y, z, expand1, expand2, expand3, sumdim, unroll_dim=1):
    parts = []
    for value, expand in ((x, expand1), (y, expand2), (z, expand3)):
        expr = value.expr
        for axis in sorted(expand):
            expr = c.expand_dims(expr, axis)
        parts.append(expr)
    return c("sum", c.mul(c.mul(parts[0], parts[1]), parts[2]), axis=sorted(sumdim))


@aten("transformers.grouped_mm_fallback.default")
def grouped_mm(c, x, weight, ends):
    """Rows of `x`, sorted by group, times the matrix of their group; `ends` has where each group ends. Rows behind the last are 0."""
    (groups,) = c.known(weight.shape[0])
    places = c("arange", c.const(0, "int64"), c.const(x.shape[0], "int64"), c.const(1, "int64"), dtype="int64")
    ends_, out, begin = c.cast(ends, "int64"), None, c.const([0], "int64")
    for g in range(groups):
        end = c.slice(ends_, 0, g, g + 1)
        within = c("logical_and", c("greater_equal", places, begin), c("less", places, end))
        rows = c.where(c.expand_dims(within, 1), x, c.const(0, x.dtype))
        part = c("nn.matmul", rows, c.squeeze(c.slice(weight, 0, g, g + 1), [0]))
        out, begin = part if out is None else c.add(out, part), end
    return out
