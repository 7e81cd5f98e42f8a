# SPDX-License-Identifier: Apache-2.0
"""Distinct elements, and how many lie between edges."""

from __future__ import annotations

import numpy as np

from ..context import END, Value
from ..registry import aten
from ..sizes import known, product
from .index import inside_of


@aten("_unique2.default")
def unique2(c, x, sorted=True, return_inverse=False, return_counts=False):  # noqa: A002
    return _unique(c, c.reshape(x, [product(x.shape)]), x.shape)


def _unique(c, flat, shape):
    found = c("unique", flat, is_sorted=True)
    counts = c.convert(c.item(found, 3), "int64", "int64")
    return [c.item(found, 0), c.reshape(c.item(found, 2), shape), counts]


@aten("histc.default")
def histc(c, x, bins=100, min=0, max=0):  # noqa: A002
    kind = c.dtype
    count = product(x.shape)
    flat = c.cast(Value(c.reshape(x, [count]), x.fake.reshape(-1)), kind)
    if min == max:
        low, high = c("min", flat), c("max", flat)
        same = c("equal", low, high)
        low, high = c.where(same, c.sub(low, c.const(1, kind)), low), c.where(same, c.add(high, c.const(1, kind)), high)
    else:
        low, high = c.const(min, kind), c.const(max, kind)
    inside = c("logical_and", c("greater_equal", flat, low), c("less_equal", flat, high))
    place = c.div(c.mul(c.sub(flat, low), c.const(bins, kind)), c.sub(high, low))
    place = c("minimum", c.convert(c.where(inside, place, c.const(0, kind)), kind, "int64"), c.const(bins - 1, "int64"))
    return c("scatter_nd", c.full(0, [bins], kind), c.expand_dims(place, 0), c.convert(inside, "bool", kind), mode="add")


@aten("unique_consecutive.default")
def unique_consecutive(c, x, return_inverse=False, return_counts=False, dim=None):
    """Elements, or slices along an axis, that differ from the one before."""
    axis, wide = 0 if dim is None else x.axis(dim), "int64"
    data = c.reshape(x, [product(x.shape)]) if dim is None else x.expr
    shape = [product(x.shape)] if dim is None else list(x.shape)
    n = shape[axis]
    c.need(known(n) and int(n), "consecutive elements of an open or no number")
    differs = c("not_equal", c.slice(data, axis, 1, END), c.slice(data, axis, 0, int(n) - 1))
    others = [a for a in range(len(shape)) if a != axis]
    if others:
        differs = c("greater", c("sum", c.convert(differs, "bool", wide), axis=others), c.const(0, wide))
    begins = c("concatenate", c.tuple([c.full(True, [1], "bool"), differs]), axis=0)
    group = c.sub(c("cumsum", c.convert(begins, "bool", wide), axis=0, dtype=wide), c.const(1, wide))
    counts = c("scatter_nd", c.full(0, [n], wide), c.expand_dims(group, 0), c.full(1, [n], wide), mode="add")
    counts = c("compress", counts, c("greater", counts, c.const(0, wide)), axis=0)
    return [c("compress", data, begins, axis=axis), c.reshape(group, x.shape) if dim is None else group, counts]


def _edges(c, line, count, bins, limits, kind):
    """The edges of `bins` equal bins between limits, or between the least and the largest of `count` elements."""
    if limits is not None:
        low, high = (c.const(v, kind) for v in limits)
    else:
        c.need(known(count), "the range of an open number of elements")
        low, high = (c("min", line), c("max", line)) if int(count) else (c.const(0, kind), c.const(0, kind))
    if limits is None or limits[0] == limits[1]:
        same, half = c("equal", low, high), c.const(0.5, kind)
        low, high = c.where(same, c.sub(low, half), low), c.where(same, c.add(high, half), high)
    steps, step = np.arange(bins + 1), c.div(c.sub(high, low), c.const(bins, kind))
    return c.where(
        c.const(steps < (bins + 1) // 2, "bool"),
        c.add(low, c.mul(step, c.const(steps, kind))),
        c.sub(high, c.mul(step, c.const(bins - steps, kind))),
    )


def _bin(c, line, edges, bins):
    """(the bin of each element, whether it lies between the edges): an element on an edge belongs to the right, on the last one to the last bin."""
    wide = "int64"
    first, last = (c.squeeze(c.slice(edges, 0, i, i + 1), [0]) for i in (0, bins))
    inside = c("logical_and", c("greater_equal", line, first), c("less_equal", line, last))
    place = c.sub(c("searchsorted", edges, line, right=True, dtype=wide), c.const(1, wide))
    return c("maximum", c("minimum", place, c.const(bins - 1, wide)), c.const(0, wide)), inside


@aten("histogram.bin_ct")
def histogram(c, x, bins=100, range=None, weight=None, density=False):  # noqa: A002
    flat, count = c.reshape(x, [product(x.shape)]), product(x.shape)
    edges = _edges(c, flat, count, int(bins), range, c.dtype)
    return [_histogram(c, [flat], [edges], [int(bins)], weight, density, c.dtype), edges]


@aten("histogram.bins_tensor")
def histogram_of_edges(c, x, bins, weight=None, density=False):
    (count,) = c.known(bins.shape[0])
    return [_histogram(c, [c.reshape(x, [product(x.shape)])], [bins.expr], [count - 1], weight, density, c.dtype), bins.expr]


def _columns(c, x):
    """The columns of a table, whose rows are along all axes but the last."""
    rows, (count,) = product(x.shape[:-1]), c.known(x.shape[-1])
    table = c.reshape(x, [rows, count])
    return [c.squeeze(c.slice(table, 1, i, i + 1), [1]) for i in range(count)]


def _edges_of_columns(c, x, bins, limits):
    lines = _columns(c, x)
    bounds = [None] * len(lines) if limits is None else [limits[2 * i : 2 * i + 2] for i in range(len(lines))]
    return [_edges(c, line, product(x.shape[:-1]), int(n), limit, x.dtype) for line, n, limit in zip(lines, bins, bounds, strict=True)]


@aten("_histogramdd_bin_edges.default")
def histogramdd_edges(c, x, bins, range=None, weight=None, density=False):  # noqa: A002
    return _edges_of_columns(c, x, bins, range)


@aten("_histogramdd_from_bin_cts.default")
def histogramdd(c, x, bins, range=None, weight=None, density=False):  # noqa: A002
    return _histogram(c, _columns(c, x), _edges_of_columns(c, x, bins, range), list(map(int, bins)), weight, density, c.dtype)


@aten("_histogramdd_from_bin_tensors.default")
def histogramdd_of_edges(c, x, bins, weight=None, density=False):
    counts = [c.known(b.shape[0])[0] - 1 for b in bins]
    return _histogram(c, _columns(c, x), [b.expr for b in bins], counts, weight, density, c.dtype)


def _histogram(c, lines, edges, counts, weight, density, kind):
    """Sums of weights between the edges of each axis."""
    place, inside = c.const(0, "int64"), None
    for line, ends, count in zip(lines, edges, counts, strict=True):
        at, within = _bin(c, line, ends, count)
        place = c.add(c.mul(place, c.const(count, "int64")), at)
        inside = within if inside is None else c("logical_and", inside, within)
    amount = c.convert(inside, "bool", kind)
    if weight is not None:
        amount = c.where(inside, c.reshape(weight, [product(weight.shape)]), c.const(0, kind))
    found = c("scatter_nd", c.full(0, [product(counts)], kind), c.expand_dims(place, 0), amount, mode="add")
    found = c.reshape(found, counts)
    if density:
        found = c.div(found, c("sum", found))
        for axis, (ends, count) in enumerate(zip(edges, counts, strict=True)):
            width = c.sub(c.slice(ends, 0, 1, END), c.slice(ends, 0, 0, count))
            found = c.div(found, c.reshape(width, [count if a == axis else 1 for a in range(len(counts))]))
    return found


@aten("bincount.default")
def bincount(c, x, weights=None, minlength=0):
    """How often each number from 0 to the largest occurs, or the sums of its weights."""
    wide, places = "int64", c.cast(x, "int64")
    most = c("max", c("concatenate", c.tuple([places, c.const([minlength - 1], wide)]), axis=0), axis=[0], keepdims=True)
    begin = c("dyn.broadcast_to", c.const([0], c.dtype), c.add(most, c.const(1, wide)))
    each = c.full(1, x.shape, c.dtype) if weights is None else c.cast(weights, c.dtype)
    return c("scatter_nd", begin, c.expand_dims(inside_of(c, places, begin, c.shape[0], 0, False), 0), each, mode="add")
