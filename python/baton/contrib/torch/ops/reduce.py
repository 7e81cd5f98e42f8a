# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans along axes."""

from __future__ import annotations

import math

from ..dtypes import is_float
from ..registry import aten
from ..sizes import known, product


def _reduced(c, name, x, value, axes, keepdim):
    """A reduction over axes that are listed; a tensor without dimensions is its own."""
    return c(name, value, axis=list(axes), keepdims=keepdim) if x.ndim else value


@aten("sum.dim_IntList", "sum.default")
def sum_(c, x, dim=None, keepdim=False, dtype=None):
    return _reduced(c, "sum", x, c.cast(x, c.dtype), x.axes(dim), keepdim)


@aten("mean.dim", "mean.default")
def mean(c, x, dim=None, keepdim=False, dtype=None):
    return _reduced(c, "mean", x, c.cast(x, c.dtype), x.axes(dim), keepdim)


@aten("prod.dim_int", "prod.default")
def prod(c, x, dim=None, keepdim=False, dtype=None):
    return _reduced(c, "prod", x, c.cast(x, c.dtype), x.axes(dim), keepdim)


def _extreme(c, name, x, axes, keepdim):
    if x.is_bool:
        return _reduced(c, "any" if name == "max" else "all", x, x.expr, axes, keepdim)
    return _reduced(c, name, x, x.expr, axes, keepdim)


@aten("amax.default")
def amax(c, x, dim=(), keepdim=False):
    return _extreme(c, "max", x, x.axes(dim), keepdim)


@aten("amin.default")
def amin(c, x, dim=(), keepdim=False):
    return _extreme(c, "min", x, x.axes(dim), keepdim)


@aten("max.default")
def max_all(c, x):
    return _extreme(c, "max", x, x.axes(None), False)


@aten("min.default")
def min_all(c, x):
    return _extreme(c, "min", x, x.axes(None), False)


def _place(c, name, x, dim, keepdim):
    if not x.ndim:
        return c.const(0, "int64")
    value = c.cast(x, "uint8") if x.is_bool else x.expr
    return c(name, value, axis=None if dim is None else [x.axis(dim)], keepdims=keepdim, dtype="int64")


@aten("argmax.default")
def argmax(c, x, dim=None, keepdim=False):
    return _place(c, "argmax", x, dim, keepdim)


@aten("argmin.default")
def argmin(c, x, dim=None, keepdim=False):
    return _place(c, "argmin", x, dim, keepdim)


@aten("max.dim")
def max_dim(c, x, dim, keepdim=False):
    return [_extreme(c, "max", x, x.axes(dim), keepdim), _place(c, "argmax", x, dim, keepdim)]


@aten("min.dim")
def min_dim(c, x, dim, keepdim=False):
    return [_extreme(c, "min", x, x.axes(dim), keepdim), _place(c, "argmin", x, dim, keepdim)]


@aten("any.default", "any.dim", "any.dims")
def any_(c, x, dim=None, keepdim=False):
    return c.convert(_reduced(c, "any", x, c.truth(x), x.axes(dim), keepdim), "bool", c.dtype)


@aten("all.default", "all.dim", "all.dims")
def all_(c, x, dim=None, keepdim=False):
    return c.convert(_reduced(c, "all", x, c.truth(x), x.axes(dim), keepdim), "bool", c.dtype)


def _moments(c, x, dim, correction, keepdim):
    """(the variance over axes, the mean over them). The divisor is the number of elements less the correction, 0 at the least."""
    axes = x.axes(dim)
    count = product(x.shape[a] for a in axes)
    correction = 1 if correction is None else correction
    wide = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    value = c.convert(x.expr, x.dtype, wide)
    average = _reduced(c, "mean", x, value, axes, True)
    away = c.sub(value, average)
    total = _reduced(c, "sum", x, c.mul(away, away), axes, keepdim)
    if known(product(x.shape[a] for a in axes)):
        divisor = c.const(max(0.0, float(count) - float(correction)), wide)
    else:
        size = c.size_value(product(x.shape[a] for a in axes), wide)
        divisor = c("maximum", c.sub(size, c.const(correction, wide)), c.const(0, wide))
    mean_out = average if keepdim or not x.ndim else c.squeeze(average, axes)
    return c.convert(c.div(total, divisor), wide, x.dtype), c.convert(mean_out, wide, x.dtype)


@aten("var.correction")
def var(c, x, dim=None, correction=None, keepdim=False):
    return _moments(c, x, dim, correction, keepdim)[0]


@aten("var.dim")
def var_dim(c, x, dim, unbiased=True, keepdim=False):
    return _moments(c, x, dim, int(unbiased), keepdim)[0]


@aten("var_mean.correction")
def var_mean(c, x, dim=None, correction=None, keepdim=False):
    return list(_moments(c, x, dim, correction, keepdim))


@aten("std.correction")
def std(c, x, dim=None, correction=None, keepdim=False):
    return c("sqrt", _moments(c, x, dim, correction, keepdim)[0])


@aten("logsumexp.default")
def logsumexp(c, x, dim, keepdim=False):
    x_ = c.cast(x, c.dtype)
    return c("logsumexp", x_, axis=x.axes(dim), keepdims=keepdim) if x.ndim else x_


@aten("linalg_vector_norm.default")
def vector_norm(c, x, ord=2, dim=None, keepdim=False, dtype=None):  # noqa: A002
    axes, kind = x.axes(dim), c.dtype
    value = c("abs", c.cast(x, kind))
    if ord in (math.inf, -math.inf):
        return _reduced(c, "max" if ord > 0 else "min", x, value, axes, keepdim)
    if ord == 0:
        return _reduced(c, "sum", x, c.convert(c("not_equal", value, c.const(0, kind)), "bool", kind), axes, keepdim)
    wide = "float32" if kind in ("float16", "bfloat16") else kind
    value = c.convert(value, kind, wide)
    if ord == 1:
        out = _reduced(c, "sum", x, value, axes, keepdim)
    elif ord == 2:
        out = c("sqrt", _reduced(c, "sum", x, c.mul(value, value), axes, keepdim))
    else:
        total = _reduced(c, "sum", x, c("power", value, c.const(ord, wide)), axes, keepdim)
        out = c("power", total, c.const(1 / ord, wide))
    return c.convert(out, wide, kind)


@aten("dist.default")
def dist(c, x, y, p=2):
    a, b = c.cast(x, c.dtype), c.cast(y, c.dtype)
    away = c("abs", c.sub(a, b))
    if p == 0:
        return c("sum", c.convert(c("not_equal", away, c.const(0, c.dtype)), "bool", c.dtype))
    if math.isinf(p):
        return c("max" if p > 0 else "min", away)
    return c("power", c("sum", c("power", away, c.const(p, c.dtype))), c.const(1 / p, c.dtype))


def _scan(name):
    @aten(f"{name}.default")
    def rule(c, x, dim, dtype=None):
        value = c.cast(x, c.dtype)
        return c(name, value, axis=x.axis(dim), dtype=c.dtype) if x.ndim else value


_scan("cumsum")
_scan("cumprod")


@aten("logcumsumexp.default")
def logcumsumexp(c, x, dim):
    """A table of pairs (i, j): log(sum over j <= i of exp(x[j] - m[i])) + m[i], with m the running maximum."""
    if not x.ndim:
        return x.expr
    pairs, highest = _running(c, x, dim, "max")
    axis = x.axis(dim)
    inf = c.const(-math.inf, x.dtype)
    safe = c.where(c("equal", highest, inf), c.const(0, x.dtype), highest)
    total = c("sum", c("exp", c.sub(pairs, c.expand_dims(safe, axis + 1))), axis=[axis + 1])
    return c.add(c("log", total), safe)


def _running(c, x, dim, name):
    """(x[j] beside each i >= j along an axis, what does not count elsewhere; the running maximum or minimum of them)."""
    axis = x.axis(dim)
    (n,) = c.known(x.shape[axis])
    places = c("arange", c.const(0, "int64"), c.const(n, "int64"), c.const(1, "int64"), dtype="int64")
    shape = [1] * (x.ndim + 1)
    row = c.reshape(places, [*shape[:axis], n, 1, *shape[axis + 2 :]])
    column = c.reshape(places, [*shape[: axis + 1], n, *shape[axis + 2 :]])
    if is_float(x.dtype):
        out = -math.inf if name == "max" else math.inf
    elif x.dtype == "bool":
        out = name == "min"
    else:
        low, high = _bounds(x.dtype)
        out = low if name == "max" else high
    pairs = c.where(c("less_equal", column, row), c.expand_dims(x.expr, axis), c.const(out, x.dtype))
    return pairs, c(name, pairs, axis=[axis + 1])


def _bounds(dtype):
    bits = int("".join(ch for ch in dtype if ch.isdigit()))
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _running_extreme(c, x, dim, name):
    if not x.ndim:
        return [x.expr, c.const(0, "int64")]
    axis = x.axis(dim)
    kind = "uint8" if x.is_bool else x.dtype
    stand_in = _Typed(c.cast(x, kind), x.shape, kind)
    _, highest = _running(c, stand_in, axis, name)
    value = c.expand_dims(stand_in.expr, axis)
    beside = c.expand_dims(highest, axis + 1)
    hit = c("equal", value, beside)
    if is_float(kind):
        hit = c("logical_or", hit, c("logical_and", c("isnan", value), c("isnan", beside)))
    # The latest of equal ones, as PyTorch's scan has it.
    (n,) = c.known(x.shape[axis])
    places = c("arange", c.const(0, "int64"), c.const(n, "int64"), c.const(1, "int64"), dtype="int64")
    shape = [1] * (x.ndim + 1)
    row = c.reshape(places, [*shape[:axis], n, 1, *shape[axis + 2 :]])
    column = c.reshape(places, [*shape[: axis + 1], n, *shape[axis + 2 :]])
    hit = c("logical_and", hit, c("less_equal", column, row))
    place = c("max", c.where(hit, column, c.const(-1, "int64")), axis=[axis + 1])
    return [c.convert(highest, kind, x.dtype), place]


class _Typed:
    """An expression with its shape and dtype, as rules take a `Value`."""

    def __init__(self, expr, shape, dtype):
        self.expr, self.shape, self.dtype, self.ndim = expr, shape, dtype, len(shape)

    def axis(self, dim):
        return dim


@aten("cummax.default")
def cummax(c, x, dim):
    return _running_extreme(c, x, dim, "max")


@aten("cummin.default")
def cummin(c, x, dim):
    return _running_extreme(c, x, dim, "min")


@aten("_softmax.default", "softmax.int", "_safe_softmax.default")
def softmax(c, x, dim, half_to_float=False, dtype=None):
    value = c.cast(x, c.dtype)
    if not x.ndim:
        return c("exp", c.sub(value, value))
    out = c("nn.softmax", value, axis=x.axis(dim))
    if c.node.target.__name__.startswith("_safe"):
        none = c("all", c("equal", value, c.const(-math.inf, c.dtype)), axis=[x.axis(dim)], keepdims=True)
        out = c.where(none, c.const(0, c.dtype), out)
    return out


@aten("_log_softmax.default", "log_softmax.int")
def log_softmax(c, x, dim, half_to_float=False, dtype=None):
    value = c.cast(x, c.dtype)
    return c("nn.log_softmax", value, axis=x.axis(dim)) if x.ndim else c.sub(value, value)


@aten("mode.default")
def mode(c, x, dim=-1, keepdim=False):
    """The commonest element along an axis, the least of equally common ones; its last place."""
    if not x.ndim:
        return [x.expr, c.const(0, "int64")]
    axis = x.axis(dim)
    (n,) = c.known(x.shape[axis])
    kind = "uint8" if x.is_bool else x.dtype
    value = c.cast(x, kind)
    equal = c("equal", c.expand_dims(value, axis), c.expand_dims(value, axis + 1))
    counts = c("sum", c.convert(equal, "bool", "int64"), axis=[axis + 1])
    common = c("equal", counts, c("max", counts, axis=[axis], keepdims=True))
    high = c.const(math.inf if is_float(kind) else _bounds(kind)[1], kind)
    least = c("min", c.where(common, value, high), axis=[axis], keepdims=True)
    places = c("arange", c.const(0, "int64"), c.const(n, "int64"), c.const(1, "int64"), dtype="int64")
    line = c.reshape(places, [n if a == axis else 1 for a in range(x.ndim)])
    place = c("max", c.where(c("equal", value, least), line, c.const(-1, "int64")), axis=[axis], keepdims=True)
    parts = [c.convert(least, kind, x.dtype), place]
    return parts if keepdim else [c.squeeze(p, [axis]) for p in parts]


def _distance(c, away, p, axis, kind):
    """The p-norm of differences along an axis."""
    away = c("abs", away)
    if p == 0:
        return c("sum", c.convert(c("not_equal", away, c.const(0, kind)), "bool", kind), axis=[axis])
    if math.isinf(p):
        return c("max", away, axis=[axis])
    if p == 1:
        return c("sum", away, axis=[axis])
    if p == 2:
        return c("sqrt", c("sum", c.mul(away, away), axis=[axis]))
    return c("power", c("sum", c("power", away, c.const(p, kind)), axis=[axis]), c.const(1 / p, kind))


@aten("_cdist_forward.default")
def cdist(c, x, y, p, compute_mode=None):
    if known(x.shape[-1]) and not int(x.shape[-1]):
        return c.full(0, c.shape, c.dtype)
    away = c.sub(c.expand_dims(x, x.ndim - 1), c.expand_dims(y, y.ndim - 2))
    return _distance(c, away, p, len(c.shape), c.dtype)


@aten("_pdist_forward.default")
def pdist(c, x, p=2.0):
    import numpy as np

    (n,) = c.known(x.shape[0])
    first, second = np.triu_indices(n, 1)
    if not len(first) or known(x.shape[1]) and not int(x.shape[1]):
        return c.full(0, c.shape, c.dtype)
    away = c.sub(c("take", x, c.const(first, "int64"), axis=0), c("take", x, c.const(second, "int64"), axis=0))
    return _distance(c, away, p, 1, c.dtype)


_SEGMENTS = {"sum": ("add", 0), "mean": ("add", 0), "prod": ("mul", 1), "max": ("max", -math.inf), "min": ("min", math.inf)}


@aten("segment_reduce.default")
def segment_reduce(c, data, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reductions of runs of rows, which begin from `initial`; a mean divides that, too, as eager does."""
    c.need(
        indices is None and axis == 0 and (offsets if lengths is None else lengths).ndim == 1,
        "segments along another axis than the first, or one row of them for each batch",
    )
    kind, count, wide = data.dtype, c.shape[0], "int64"
    if lengths is not None:
        sizes = c.cast(lengths, wide)
        ends = c("cumsum", sizes, axis=0, dtype=wide)
    else:
        bounds = c.cast(offsets, wide)
        ends = c.slice(bounds, 0, 1, offsets.shape[0])
        sizes = c.sub(ends, c.slice(bounds, 0, 0, count))
    mode, neutral = _SEGMENTS[reduce]
    places = c("arange", c.const(0, wide), c.const(data.shape[0], wide), c.const(1, wide), dtype=wide)
    rows = c.reshape(c("searchsorted", ends, places, right=True, dtype=wide), [1, data.shape[0]])
    out = c("scatter_nd", c.full(neutral if initial is None else initial, c.shape, kind), rows, data, mode=mode)
    if reduce != "mean":
        return out
    sizes = c.reshape(c.convert(sizes, wide, kind), [count, *[1] * (data.ndim - 1)])
    none = c("equal", sizes, c.const(0, kind))
    return c.where(none, out if initial is not None else c.const(math.nan, kind), c.div(out, c.where(none, c.const(1, kind), sizes)))
