# SPDX-License-Identifier: Apache-2.0
"""Distinct elements, and how many lie between edges."""

from __future__ import annotations

import numpy as np

from ..context import END, Value
from ..registry import aten
from ..sizes import known, product


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


@aten("histogram.bin_ct")
def histogram(c, x, bins=100, range=None, weight=None, density=False):  # noqa: A002
    kind, flat = c.dtype, c.reshape(x, [product(x.shape)])
    if range is not None:
        low, high = (c.const(v, kind) for v in range)
    else:
        c.need(known(product(x.shape)), "the range of an open number of elements")
        low, high = (c("min", flat), c("max", flat)) if int(product(x.shape)) else (c.const(0, kind), c.const(0, kind))
    if range is None or range[0] == range[1]:
        same, half = c("equal", low, high), c.const(0.5, kind)
        low, high = c.where(same, c.sub(low, half), low), c.where(same, c.add(high, half), high)
    steps, step = np.arange(bins + 1), c.div(c.sub(high, low), c.const(bins, kind))
    edges = c.where(
        c.const(steps < (bins + 1) // 2, "bool"),
        c.add(low, c.mul(step, c.const(steps, kind))),
        c.sub(high, c.mul(step, c.const(bins - steps, kind))),
    )
    return _histogram(c, flat, edges, int(bins), weight, density, kind)


@aten("histogram.bins_tensor")
def histogram_of_edges(c, x, bins, weight=None, density=False):
    (count,) = c.known(bins.shape[0])
    return _histogram(c, c.reshape(x, [product(x.shape)]), bins.expr, count - 1, weight, density, c.dtype)


def _histogram(c, flat, edges, bins, weight, density, kind):
    """[sums of weights between edges, the edges]: an element on an edge belongs to the right, on the last one to the last bin."""
    wide = "int64"
    first, last = (c.squeeze(c.slice(edges, 0, i, i + 1), [0]) for i in (0, bins))
    inside = c("logical_and", c("greater_equal", flat, first), c("less_equal", flat, last))
    place = c.sub(c("searchsorted", edges, flat, right=True, dtype=wide), c.const(1, wide))
    place = c("maximum", c("minimum", place, c.const(bins - 1, wide)), c.const(0, wide))
    amount = c.convert(inside, "bool", kind)
    if weight is not None:
        amount = c.where(inside, c.reshape(weight, [product(weight.shape)]), c.const(0, kind))
    found = c("scatter_nd", c.full(0, [bins], kind), c.expand_dims(place, 0), amount, mode="add")
    if density:
        width = c.sub(c.slice(edges, 0, 1, END), c.slice(edges, 0, 0, bins))
        found = c.div(found, c.mul(c("sum", found), width))
    return [found, edges]
