# SPDX-License-Identifier: Apache-2.0
"""Operators on complex tensors, as pairs of real ones, and Fourier transforms."""

from __future__ import annotations

import math

import numpy as np

from ..complexes import Complex, Pair, by_parts, complex_aten
from ..context import Value

by_parts(
    *("view.default", "_unsafe_view.default", "reshape.default", "permute.default", "transpose.int", "t.default", "unsqueeze.default"),
    *("squeeze.default", "squeeze.dim", "squeeze.dims", "expand.default", "slice.Tensor", "select.int", "narrow.default", "flip.default", "roll.default"),
    *("clone.default", "alias.default", "detach.default", "contiguous.default", "lift_fresh_copy.default", "repeat.default", "unbind.int"),
    *("split.Tensor", "split_with_sizes.default", "chunk.default", "index.Tensor", "index_select.default", "gather.default", "diagonal.default"),
    *("sum.dim_IntList", "sum.default", "mean.dim", "mean.default", "cumsum.default", "triu.default", "tril.default", "neg.default"),
    *("as_strided.default", "unfold.default", "cat.default", "stack.default", "masked_select.default", "take.default"),
    *("slice_scatter.default", "select_scatter.default", "diagonal_scatter.default", "constant_pad_nd.default"),
)


def _parts(c, x, dtype=None):
    """(the real, the imaginary part) of a tensor or a number, as expressions of the result's dtype."""
    dtype = dtype or c.dtype
    if isinstance(x, Complex):
        return c.cast(x.re, dtype), c.cast(x.im, dtype)
    if isinstance(x, Value):
        return c.cast(x, dtype), c.const(0.0, dtype)
    x = complex(x)
    return c.const(x.real, dtype), c.const(x.imag, dtype)


def _shaped(c, *parts):
    """Parts with the shape of the result."""
    return Pair(*(c.broadcast(p, c.shape) for p in parts))


@complex_aten("complex.default")
def make(c, re, im):
    return _shaped(c, c.cast(re, c.dtype), c.cast(im, c.dtype))


@complex_aten("polar.default")
def polar(c, size, angle):
    return _shaped(c, c.mul(size, c("cos", angle)), c.mul(size, c("sin", angle)))


@complex_aten("view_as_real.default", "view_as_real_copy.default")
def view_as_real(c, x):
    return c("stack", c.tuple([x.re, x.im]), axis=x.ndim)


@complex_aten("view_as_complex.default", "view_as_complex_copy.default")
def view_as_complex(c, x):
    return Pair(*(c.squeeze(c.slice(x, x.ndim - 1, i, i + 1), [x.ndim - 1]) for i in (0, 1)))


@complex_aten("real.default")
def real(c, x):
    return x.re.expr


@complex_aten("imag.default")
def imag(c, x):
    return x.im.expr


@complex_aten("_conj.default", "_conj_physical.default", "conj_physical.default", "conj.default")
def conj(c, x):
    return Pair(x.re.expr, c("negative", x.im))


@complex_aten("resolve_conj.default", "resolve_neg.default")
def resolved(c, x):
    return Pair(x.re.expr, x.im.expr)


@complex_aten("_to_copy.default")
def to_copy(c, x, dtype=None, **given):
    if c.is_complex:
        return _shaped(c, *_parts(c, x))
    c.need(c.dtype != "bool", "a complex tensor as bools")
    return c.cast(x.re, c.dtype)


@complex_aten("add.Tensor")
def add(c, x, y, alpha=1):
    (a, b), (d, e) = _parts(c, x), _product(c, _parts(c, y), _parts(c, alpha)) if alpha != 1 else _parts(c, y)
    return _shaped(c, c.add(a, d), c.add(b, e))


@complex_aten("sub.Tensor")
def sub(c, x, y, alpha=1):
    (a, b), (d, e) = _parts(c, x), _product(c, _parts(c, y), _parts(c, alpha)) if alpha != 1 else _parts(c, y)
    return _shaped(c, c.sub(a, d), c.sub(b, e))


def _product(c, x, y, times=None):
    times = times or c.mul
    (a, b), (d, e) = x, y
    return c.sub(times(a, d), times(b, e)), c.add(times(a, e), times(b, d))


@complex_aten("mul.Tensor", "mul.Scalar")
def mul(c, x, y):
    # A real factor scales both parts: infinities times an imaginary 0 are no NaN then.
    for one, other in ((x, y), (y, x)):
        if not isinstance(one, Complex) and not isinstance(one, complex):
            factor = c.cast(one, c.dtype)
            return _shaped(c, *(c.mul(p, factor) for p in _parts(c, other)))
    return _shaped(c, *_product(c, _parts(c, x), _parts(c, y)))


@complex_aten("div.Tensor", "div.Scalar")
def div(c, x, y):
    a, b = _parts(c, x)
    if not isinstance(y, Complex) and not isinstance(y, complex):
        factor = c.cast(y, c.dtype)
        return _shaped(c, c.div(a, factor), c.div(b, factor))
    d, e = _parts(c, y)
    # Both parts of the divisor are scaled by the larger one, so that squares do not overflow.
    size = c("maximum", c("abs", d), c("abs", e))
    d, e = c.div(d, size), c.div(e, size)
    below = c.mul(c.add(c.mul(d, d), c.mul(e, e)), size)
    return _shaped(c, c.div(c.add(c.mul(a, d), c.mul(b, e)), below), c.div(c.sub(c.mul(b, d), c.mul(a, e)), below))


@complex_aten("abs.default")
def absolute(c, x):
    high, low = c("maximum", c("abs", x.re), c("abs", x.im)), c("minimum", c("abs", x.re), c("abs", x.im))
    zero = c("equal", high, c.const(0.0, c.dtype))
    ratio = c.div(low, c.where(zero, c.const(1.0, c.dtype), high))
    return c.mul(high, c("sqrt", c.add(c.mul(ratio, ratio), c.const(1.0, c.dtype))))


@complex_aten("angle.default")
def angle(c, x):
    return c("atan2", x.im, x.re)


@complex_aten("exp.default")
def exp(c, x):
    size = c("exp", x.re)
    return Pair(c.mul(size, c("cos", x.im)), c.mul(size, c("sin", x.im)))


@complex_aten("mm.default", "bmm.default", "matmul.default")
def matmul(c, x, y):
    c.need(x.ndim >= 2 and y.ndim >= 2, "a product with a vector")

    def parts(v):
        return (c.cast(v.re, c.dtype), c.cast(v.im, c.dtype)) if isinstance(v, Complex) else (c.cast(v, c.dtype), None)

    (a, b), (d, e) = parts(x), parts(y)
    times = lambda p, q: c("nn.matmul", p, q)  # noqa: E731
    if e is None:
        return Pair(times(a, d), times(b, d))
    if b is None:
        return Pair(times(a, d), times(a, e))
    return Pair(*_product(c, (a, b), (d, e), times))


@complex_aten("where.self")
def where(c, mask, x, y):
    (a, b), (d, e) = _parts(c, x), _parts(c, y)
    return _shaped(c, c.where(mask, a, d), c.where(mask, b, e))


@complex_aten("full.default", "full_like.default", "new_full.default", "zeros.default", "zeros_like.default", "ones.default", "ones_like.default")
def full(c, *args, **given):
    name = c.node.target.__name__
    value = complex(args[-1]) if "full" in name else complex("ones" in name)
    return Pair(*(c.full(v, c.shape, c.dtype) for v in (value.real, value.imag)))


@complex_aten("eq.Tensor", "eq.Scalar")
def equal(c, x, y):
    kind = next(v.dtype for v in (x, y) if isinstance(v, Complex))
    (a, b), (d, e) = _parts(c, x, kind), _parts(c, y, kind)
    return c.broadcast(c("logical_and", c("equal", a, d), c("equal", b, e)), c.shape)


@complex_aten("ne.Tensor", "ne.Scalar")
def not_equal(c, x, y):
    return c("logical_not", equal(c, x, y))


# Fourier transforms. A transform of n = a * b points is one of a, factors, and one of b (Cooley and Tukey); those of few points and
# of prime numbers of them are products with a matrix.
_SMALL, _LARGEST_PRIME = 64, 4096


def _split(n):
    """Returns the largest divisor of n up to _SMALL; n itself where that is 1."""
    if n <= _SMALL:
        return n
    best = max(a for a in range(1, _SMALL + 1) if n % a == 0)
    return best if best > 1 else n


def _waves(c, rows, columns, n, sign):
    """cos and sin of sign 2 pi j k / n as constants; the product j k is reduced first, in integers."""
    turns = 2 * math.pi / n * (np.outer(np.arange(rows, dtype="int64"), np.arange(columns, dtype="int64")) % n)
    return c.const(np.cos(turns), c.dtype), c.const(sign * np.sin(turns), c.dtype)


def _transform(c, re, im, shape, sign):
    """Both parts transformed along the last axis; im None is 0."""
    n = shape[-1]
    a = _split(n)
    if a == n:
        c.need(n <= _LARGEST_PRIME, f"a Fourier transform whose number of points has a prime factor above {_LARGEST_PRIME}")
        cosine, sine = _waves(c, n, n, n, sign)
        times = lambda p, q: c("nn.matmul", p, q)  # noqa: E731
        flat = (lambda p: c.reshape(p, [1, n])) if len(shape) == 1 else (lambda p: p)
        back = (lambda p: c.reshape(p, [n])) if len(shape) == 1 else (lambda p: p)
        if im is None:
            return tuple(back(times(flat(re), w)) for w in (cosine, sine))
        return tuple(map(back, _product(c, (flat(re), flat(im)), (cosine, sine), times)))
    b, head = n // a, list(shape[:-1])
    turn = [*range(len(head)), len(head) + 1, len(head)]
    re, im = (None if p is None else c.transpose(c.reshape(p, [*head, a, b]), turn) for p in (re, im))
    re, im = _transform(c, re, im, [*head, b, a], sign)
    re, im = _product(c, (re, im), _waves(c, b, a, n, sign))
    re, im = _transform(c, *(c.transpose(p, turn) for p in (re, im)), [*head, a, b], sign)
    return tuple(c.reshape(c.transpose(p, turn), [*head, n]) for p in (re, im))


def _along(c, re, im, shape, axis, sign):
    (n,) = c.known(shape[axis])
    c.need(n > 0, "a Fourier transform of no points")
    order = [a for a in range(len(shape)) if a != axis] + [axis]
    back = [order.index(a) for a in range(len(shape))]
    re, im = _transform(c, *(None if p is None else c.transpose(p, order) for p in (re, im)), [*(shape[a] for a in order[:-1]), n], sign)
    return c.transpose(re, back), c.transpose(im, back)


def _scaled(c, parts, shape, axes, normalization):
    if not normalization:
        return parts
    count = math.prod(c.known(*(shape[a] for a in axes)))
    factor = c.const(1 / (math.sqrt(count) if normalization == 1 else count), c.dtype)
    return tuple(c.mul(p, factor) for p in parts)


@complex_aten("_fft_c2c.default")
def c2c(c, x, dim, normalization, forward):
    parts, axes = (x.re.expr, x.im.expr), [x.axis(d) for d in dim]
    for axis in axes:
        parts = _along(c, *parts, x.shape, axis, -1 if forward else 1)
    return Pair(*_scaled(c, parts, x.shape, axes, normalization))


@complex_aten("_fft_r2c.default")
def r2c(c, x, dim, normalization, onesided):
    axes, shape = [x.axis(d) for d in dim], list(x.shape)
    parts = _along(c, x.expr, None, shape, axes[-1], -1)
    if onesided:
        half = shape[axes[-1]] // 2 + 1
        parts = tuple(c.slice(p, axes[-1], 0, half) for p in parts)
    short = list(c.shape)
    for axis in axes[:-1]:
        parts = _along(c, *parts, short, axis, -1)
    return Pair(*_scaled(c, parts, shape, axes, normalization))


@complex_aten("_fft_c2r.default")
def c2r(c, x, dim, normalization, last_dim_size):
    axes, shape = [x.axis(d) for d in dim], list(x.shape)
    parts = (x.re.expr, x.im.expr)
    for axis in axes[:-1]:
        parts = _along(c, *parts, shape, axis, 1)
    last = axes[-1]
    n, have = c.known(last_dim_size, shape[last])
    half = n // 2 + 1
    c.need(have >= half, "a transform to more real points than the half has")
    # The other half has the conjugates, from the end.
    places = c.const(np.arange(n - half, 0, -1), "int64")
    tails = [c("take", p, places, axis=last) for p in parts]
    heads = [c.slice(p, last, 0, half) for p in parts]
    tails[1] = c("negative", tails[1])
    parts = [c("concatenate", c.tuple(both), axis=last) if n > half else both[0] for both in zip(heads, tails, strict=True)]
    shape[last] = n
    re, _ = _along(c, *parts, shape, last, 1)
    return _scaled(c, (re,), shape, axes, normalization)[0]
