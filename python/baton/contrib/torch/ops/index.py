# SPDX-License-Identifier: Apache-2.0
"""Elements by index, and tensors with elements replaced by index."""

from __future__ import annotations

import math

from ..context import Value
from ..dtypes import is_float
from ..registry import aten
from ..sizes import is_one, known, product, same


def _from_front(c, index, size):
    """Indices that may count from the end, of int64, from the front."""
    return c.where(c("less", index, c.const(0, "int64")), c.add(index, c.const(size, "int64")), index)


def _inside(c, index, x, axis, from_end=False):
    """Indices into an axis of `x` as an expression; with `from_end` they may be negative. Where one lies outside, the graph raises IndexError with
    the user's line and the operator when it runs."""
    return inside_of(c, index, x, x.shape[axis], axis, from_end)


def inside_of(c, index, x, size, axis, from_end):
    """The same into an axis of an expression, which has `size` elements."""
    operands = [index]
    if not known(size):
        operands.append(c.slice(c("shape_of", x, dtype="int64"), 0, axis, axis + 1))
    place = f"{c.span.source_name.name}, " if c.span is not None else ""
    name = c.node.target.__name__.partition(".")[0]
    check = c("contrib_check_index", *operands, extents=[int(size) if known(size) else -1], axis=axis, place=place + name.strip("_"), from_end=from_end)
    return c.add(index, check)


def _checked(c, index, x, axis):
    """The `_Indices` of a scatter, of int64: such that lie outside of an axis of `x` raise IndexError. They count from the front."""
    if any(known(s) and not int(s) for s in index.shape):
        return index
    at = c.convert(index.expr, index.dtype, "int64")
    at = inside_of(c, at if index.ndim else c.reshape(at, [1]), x, x.shape[axis] if x.ndim else 1, axis, False)
    return _Indices(at if index.ndim else c.reshape(at, []), "int64", index.shape)


class _Indices:
    """Indices of a shape, as the scatters take them."""

    def __init__(self, expr, dtype, shape):
        self.expr, self.dtype, self.shape, self.ndim, self.is_bool = expr, dtype, tuple(shape), len(shape), False


@aten("gather.default")
def gather(c, x, dim, index, sparse_grad=False):
    if not x.ndim:
        return c.broadcast(x, index.shape)
    if known(product(index.shape)) and not int(product(index.shape)):
        return c.full(0, index.shape, x.dtype)
    if not index.ndim:
        return c.reshape(c("take", x, _inside(c, c.convert(c.reshape(index, [1]), index.dtype, "int64"), x, 0), axis=0), [])
    return c("gather", x, _inside(c, c.cast(index, "int64"), x, x.axis(dim)), axis=x.axis(dim))


@aten("take_along_dim.default")
def take_along_dim(c, x, indices, dim=None):
    return gather(c, x, dim, indices)


@aten("index_select.default")
def index_select(c, x, dim, index):
    if not x.ndim:
        return c.reshape(x, c.shape)
    out = c("take", x, _inside(c, c.cast(index, "int64"), x, x.axis(dim)), axis=x.axis(dim))
    return out if index.ndim else c.reshape(out, c.shape)


@aten("embedding.default")
def embedding(c, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return c("take", weight, _inside(c, indices.expr, weight, 0), axis=0)


@aten("take.default")
def take(c, x, index):
    flat, size = c.reshape(x, [product(x.shape)]), product(x.shape)
    if any(known(s) and not int(s) for s in index.shape):
        return c.full(0, index.shape, x.dtype)
    return c("take", flat, _from_front(c, inside_of(c, c.cast(index, "int64"), flat, size, 0, True), size), axis=0)


class _Places:
    """What stands in the brackets of `x[...]`: the axes that tensors index, the tensors from the front, and the shape they broadcast to."""

    def __init__(self, c, x, indices):
        import torch

        self.axes, self.tensors, self._shapes = [], [], []
        axis = 0
        for index in indices:
            if index is None:
                axis += 1
                continue
            c.need(not index.is_bool, "an index of bools: the shape of the result depends on values")
            self.axes.append(axis)
            self._shapes.append(index.shape)
            self.tensors.append(_from_front(c, _inside(c, c.cast(index, "int64"), x, axis, from_end=True), x.shape[axis]))
            axis += 1
        self.shape = torch.broadcast_shapes(*(i.fake.shape for i in indices if i is not None))
        self.together = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes))) if self.axes else True
        self.rest = [a for a in range(x.ndim) if a not in self.axes]

    def stacked(self, c):
        """The indices as a tensor of tuples, along the first axis."""
        return c("stack", c.tuple([self._broadcast(c, *given) for given in zip(self.tensors, self._shapes, strict=True)]), axis=0)

    def _broadcast(self, c, tensor, shape):
        """A tensor of the common shape; as it is where it has it, for an extent that a value gives can be said by no shape."""
        return tensor if len(shape) == len(self.shape) and all(map(same, shape, self.shape)) else c.broadcast(tensor, self.shape)


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(c, x, indices):
    if len(indices) == 1 and indices[0] is not None and indices[0].is_bool and indices[0].ndim == x.ndim:
        return masked_select(c, x, indices[0])
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].is_bool and given[0].ndim:
        return _of_mask(c, x, given[0], next(axis for axis, i in enumerate(indices) if i is not None))
    places = _Places(c, x, indices)
    if not places.axes:
        return x.expr
    n = len(places.shape)
    if len(places.axes) == 1:
        axis = places.axes[0]
        return c("take", x, places.tensors[0], axis=axis)
    moved = c.transpose(x, [*places.axes, *places.rest])
    out = c("gather_nd", moved, places.stacked(c), index_rank=len(places.axes))
    if places.together and places.axes[0]:
        first = places.axes[0]
        out = c.transpose(out, [*range(n, n + first), *range(n), *range(n + first, n + len(places.rest))])
    return out


@aten("index_put.default", "_unsafe_index_put.default")
def index_put(c, x, indices, values, accumulate=False):
    if len(indices) == 1 and indices[0] is not None and indices[0].is_bool:
        return _put_by_mask(c, x, indices[0], values, accumulate)
    places = _Places(c, x, indices)
    if not places.axes:
        value = c.broadcast(c.cast(values, x.dtype), x.shape)
        return c.add(x, value) if accumulate else value
    order = [*places.axes, *places.rest]
    rest = [x.shape[a] for a in places.rest]
    n, first = len(places.shape), places.axes[0] if places.together else 0
    # The result of x[indices] has the axes before the first index, those of the indices, then the others.
    shape = [*rest[:first], *places.shape, *rest[first:]]
    update = c.broadcast(c.cast(values, x.dtype), shape)
    update = c.transpose(update, [*range(first, first + n), *range(first), *range(first + n, n + len(rest))])
    moved = c.transpose(x, order)
    out = _scatter_nd(c, moved, places.stacked(c), update, accumulate, x.dtype)
    return c.transpose(out, [order.index(a) for a in range(x.ndim)])


def _put_by_mask(c, x, mask, values, accumulate):
    """The k-th true place of the mask takes row k of `values`, or all take the only one."""
    mask_ = c.reshape(mask, [*mask.shape, *[1] * (x.ndim - mask.ndim)])
    rest, value = x.shape[mask.ndim :], c.cast(values, x.dtype)
    if values.ndim > len(rest) and not is_one(values.shape[0]):
        count = values.shape[0]
        if known(count) and not int(count):
            return x.expr
        rows = c.broadcast(Value(value, values.fake.to(x.fake.dtype)), [count, *rest])
        order = c("cumsum", c.reshape(c.convert(mask.expr, "bool", "int64"), [product(mask.shape)]), axis=0, dtype="int64")
        places = c("maximum", c.sub(order, c.const(1, "int64")), c.const(0, "int64"))
        value = c.reshape(c("take", rows, places, axis=0), x.shape)
    elif values.ndim > len(rest):
        value = c.broadcast(c.squeeze(value, [0]), x.shape)
    else:
        value = c.broadcast(value, x.shape)
    if accumulate:
        value = c("logical_or", x, value) if x.is_bool else c.add(x, value)
    return c.where(mask_, value, x)


@aten("embedding_renorm.default")
def embedding_renorm(c, weight, indices, max_norm, norm_type):
    """Rows that `indices` name and that are longer than `max_norm`, shortened to it."""
    from .reduce import _distance

    kind = weight.dtype
    length = c.expand_dims(_distance(c, weight.expr, norm_type, 1, kind), 1)
    count, at = product(indices.shape), _inside(c, c.cast(indices, "int64"), weight, 0)
    hit = c("scatter_nd", c.full(False, [weight.shape[0]], "bool"), c.reshape(at, [1, count]), c.full(True, [count], "bool"), mode="update")
    longer = c("logical_and", c.expand_dims(hit, 1), c("greater", length, c.const(max_norm, kind)))
    return c.where(longer, c.mul(weight, c.div(c.const(max_norm, kind), c.add(length, c.const(1e-7, kind)))), weight)


def _scatter_nd(c, data, indices, update, accumulate, dtype):
    if dtype != "bool" or not accumulate:
        return c("scatter_nd", data, indices, update, mode="add" if accumulate else "update")
    data, update = (c.convert(v, "bool", "uint8") for v in (data, update))
    return c.convert(c("scatter_nd", data, indices, update, mode="max"), "uint8", "bool")


@aten("scatter.src", "scatter.value")
def scatter(c, x, dim, index, source):
    return _scatter(c, x, dim, index, source, "update")


@aten("scatter.reduce", "scatter.value_reduce")
def scatter_with(c, x, dim, index, source, reduce):
    return _scatter(c, x, dim, index, source, {"add": "add", "multiply": "mul"}[reduce])


@aten("scatter_add.default")
def scatter_add(c, x, dim, index, source):
    return _scatter(c, x, dim, index, source, "add")


def _scatter(c, x, dim, index, source, reduction, checked=False):
    index = index if checked else _checked(c, index, x, x.axis(dim))
    if not x.ndim or not index.ndim:
        data, index_ = (c.reshape(v.expr, [1] if not v.ndim else v.shape) for v in (x, index))
        update = c.reshape(source, [1] if not source.ndim else source.shape) if isinstance(source, Value) else source
        axis = 0
    else:
        data, index_, update, axis = x.expr, index.expr, source.expr if isinstance(source, Value) else source, x.axis(dim)
    shape = index.shape or (1,)
    if isinstance(source, Value):
        update = c.convert(update, source.dtype, x.dtype)
        for a, (n, m) in enumerate(zip(shape, source.shape or (1,), strict=True)):
            if not (known(n) and known(m) and int(n) == int(m)):
                update = c.slice(update, a, 0, n)
    else:
        update = c.full(update, shape, x.dtype)
    index_ = c.convert(index_, index.dtype, "int64")
    if any(known(s) and int(s) == 0 for s in shape):
        return x.expr
    if x.is_bool:
        c.need(reduction in ("update", "add", "mul"), "a reduction of bools")
        data, update = (c.convert(v, "bool", "uint8") for v in (data, update))
        how = {"update": "update", "add": "max", "mul": "min"}[reduction]
        out = c.convert(c("scatter_elements", data, index_, update, axis=axis, reduction=how), "uint8", "bool")
    else:
        out = c("scatter_elements", data, index_, update, axis=axis, reduction=reduction)
    return out if x.ndim else c.reshape(out, [])


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@aten("scatter_reduce.two")
def scatter_reduce(c, x, dim, index, source, reduce, include_self=True):
    c.need(x.ndim and index.ndim or include_self and reduce != "mean", "scatter_reduce of a scalar")
    if include_self and reduce != "mean":
        return _scatter(c, x, dim, index, source, _REDUCTIONS[reduce])
    return _reduced_into(c, x, dim, index, source, reduce, include_self)


def _reduced_into(c, x, dim, index, source, reduce, include_self):
    """Where elements arrive, their reduction, with that of `x` or without it; elsewhere `x`."""
    axis, wide = x.axis(dim), "int64"
    zeros, index = c.full(0, x.shape, wide), _checked(c, index, x, axis)
    index_ = c.convert(index.expr, index.dtype, "int64")
    counts = c("scatter_elements", zeros, index_, c.full(1, index.shape, wide), axis=axis, reduction="add")
    hit = c("greater", counts, c.const(0, wide))
    begin = x.expr if include_self else c.where(hit, c.full(_neutral(reduce, x.dtype), x.shape, x.dtype), x)
    part = Value(begin, x.fake)
    out = _scatter(c, part, dim, index, source, _REDUCTIONS["sum" if reduce == "mean" else reduce], checked=True)
    if reduce == "mean":
        counts = c.add(counts, c.const(1, wide)) if include_self else c("maximum", counts, c.const(1, wide))
        counts = c.convert(counts, wide, x.dtype)
        mean = c.div(out, counts) if is_float(x.dtype) else c("floor_divide", out, counts)
        out = c.where(hit, mean, x)
    return out


def _neutral(reduce, dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if is_float(dtype):
        return -math.inf if reduce == "amax" else math.inf
    bits = int("".join(ch for ch in dtype if ch.isdigit()) or 8)
    low, high = (0, 2**bits - 1) if dtype[0] in "ub" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return low if reduce == "amax" else high


@aten("index_add.default")
def index_add(c, x, dim, index, source, alpha=1):
    value = source.expr
    if alpha != 1:
        value = c("logical_and", value, c.const(bool(alpha), "bool")) if x.is_bool else c.mul(value, c.const(alpha, x.dtype))
    return _along(c, x, dim, index, Value(value, source.fake), True)


@aten("index_copy.default")
def index_copy(c, x, dim, index, source):
    return _along(c, x, dim, index, source, False)


def _along(c, x, dim, index, source, accumulate):
    """Slices along an axis replaced by, or added to, those of `source`."""
    if not x.ndim:
        value = c.reshape(c.cast(source, x.dtype), [])
        return c("logical_or" if x.is_bool else "add", x, value) if accumulate else value
    axis = x.axis(dim)
    order = [axis, *(a for a in range(x.ndim) if a != axis)]
    at = _checked(c, index, x, axis)
    places = c.reshape(c.convert(at.expr, at.dtype, "int64"), [1, product(index.shape)])
    update = c.cast(source, x.dtype) if source.ndim else c.reshape(c.cast(source, x.dtype), [1] * x.ndim)
    out = _scatter_nd(c, c.transpose(x, order), places, c.transpose(update, order), accumulate, x.dtype)
    return c.transpose(out, [order.index(a) for a in range(x.ndim)])


@aten("index_reduce.default")
def index_reduce(c, x, dim, index, source, reduce, include_self=True):
    if not x.ndim or not source.ndim:
        line = Value(c.reshape(x, [1]), x.fake.reshape(1))
        row = _Indices(c.reshape(index, [1]), index.dtype, (1,))
        out = _reduced_into(c, line, 0, row, Value(c.reshape(source, [1]), source.fake.reshape(1)), reduce, include_self)
        return c.reshape(out, x.shape)
    axis = x.axis(dim)
    shape = [1] * x.ndim
    shape[axis] = index.shape[0]
    places = c.broadcast(c.reshape(index, shape), source.shape)
    return _reduced_into(c, x, dim, _Indices(places, index.dtype, source.shape), source, reduce, include_self)


@aten("select_scatter.default")
def select_scatter(c, x, source, dim, index):
    axis = x.axis(dim)
    (at,) = c.known(index if not known(index) or int(index) >= 0 else index + x.shape[axis])
    return _between(c, x, axis, at, at + 1, 1, c.expand_dims(c.cast(source, x.dtype), axis))


@aten("slice_scatter.default")
def slice_scatter(c, x, source, dim=0, start=None, end=None, step=1):
    axis = x.axis(dim)
    (size,) = c.known(x.shape[axis])
    begin, stop, _ = slice(*(None if v is None else c.known(v)[0] for v in (start, end))).indices(size)
    return _between(c, x, axis, begin, max(begin, stop), step, c.cast(source, x.dtype))


def _between(c, x, axis, begin, end, step, source):
    """`x` with `x[begin:end:step]` along an axis replaced."""
    import numpy as np

    size = x.shape[axis]
    if step == 1:
        parts = [c.slice(x, axis, 0, begin)] if begin else []
        parts += [source] if end > begin else []
        parts += [c.slice(x, axis, end, size)] if not known(size) or end < int(size) else []
        return c("concatenate", c.tuple(parts), axis=axis) if len(parts) > 1 else parts[0]
    places = np.arange(begin, end, step)
    if not len(places):
        return x.expr
    order = [axis, *(a for a in range(x.ndim) if a != axis)]
    out = c("scatter_nd", c.transpose(x, order), c.const(places[None], "int64"), c.transpose(source, order), mode="update")
    return c.transpose(out, [order.index(a) for a in range(x.ndim)])


@aten("diagonal_scatter.default")
def diagonal_scatter(c, x, source, offset=0, dim1=0, dim2=1):
    import numpy as np

    a, b = x.axis(dim1), x.axis(dim2)
    (count,) = c.known(source.shape[-1])
    order = [a, b, *(d for d in range(x.ndim) if d not in (a, b))]
    steps = np.arange(count)
    places = np.stack([steps + max(0, -offset), steps + max(0, offset)])
    update = c.transpose(c.cast(source, x.dtype), [source.ndim - 1, *range(source.ndim - 1)])
    out = c("scatter_nd", c.transpose(x, order), c.const(places, "int64"), update, mode="update") if count else c.transpose(x, order)
    return c.transpose(out, [order.index(d) for d in range(x.ndim)])


@aten("put.default")
def put(c, x, index, source, accumulate=False):
    flat = c.reshape(x, [product(x.shape)])
    count = product(index.shape)
    if known(count) and not int(count):
        return x.expr
    size = product(x.shape)
    places = c.reshape(_from_front(c, inside_of(c, c.cast(index, "int64"), flat, size, 0, True), size), [1, count])
    update = c.reshape(c.cast(source, x.dtype), [count])
    return c.reshape(_scatter_nd(c, flat, places, update, accumulate, x.dtype), x.shape)


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c, x, mask, value):
    return c.where(mask, c.cast(value, x.dtype), x)


@aten("masked_select.default")
def masked_select(c, x, mask):
    import torch

    shape = torch.broadcast_shapes(x.shape, mask.shape)
    wide = c.broadcast(x, shape), c.broadcast(mask, shape)
    values, truth = wide if len(shape) == 1 else (c.reshape(v, [product(shape)]) for v in wide)
    return c("compress", values, truth, axis=0)


def _of_mask(c, x, mask, axis):
    """The parts of `x` where a mask is true, whose first axis is this one of `x`."""
    count = product(mask.shape)
    if mask.ndim == 1:
        return c("compress", x, mask, axis=axis)
    flat = c.reshape(x, [*x.shape[:axis], count, *x.shape[axis + mask.ndim :]])
    return c("compress", flat, c.reshape(mask, [count]), axis=axis)


@aten("masked_scatter.default")
def masked_scatter(c, x, mask, source):
    """The k-th true place of the mask takes the k-th element of `source`."""
    import torch

    shape = torch.broadcast_shapes(x.shape, mask.shape)
    count = product(shape)
    if known(product(source.shape)) and not int(product(source.shape)):
        return c.broadcast(x, shape)
    flat = c.reshape(c.broadcast(mask, shape), [count])
    places = c.sub(c("cumsum", c.convert(flat, "bool", "int64"), axis=0, dtype="int64"), c.const(1, "int64"))
    taken = c("take", c.reshape(source, [product(source.shape)]), c("maximum", places, c.const(0, "int64")), axis=0)
    return c.where(c.broadcast(mask, shape), c.reshape(taken, shape), c.broadcast(x, shape))


@aten("nonzero.default")
def nonzero(c, x):
    if not x.ndim:
        rows = c("argwhere", c.reshape(c.truth(x), [1]))
        return c("strided_slice", rows, begin=[0], end=[0], strides=[1], axes=[1])
    return c("argwhere", c.truth(x))


@aten("nonzero_static.default")
def nonzero_static(c, x, size, fill_value=-1):
    if not x.ndim:
        return c.full(0, c.shape, "int64")
    (count,) = c.known(product(x.shape))
    (wanted,) = c.known(size)
    flat = c.reshape(c.truth(x), [count])
    # Places of what is true come first, in order, by a stable sort; then what fills up.
    order = c("argsort", c.convert(flat, "bool", "uint8"), axis=0, is_ascend=False, dtype="int64") if count else c.full(0, [0], "int64")
    total = c("sum", c.convert(flat, "bool", "int64")) if count else c.const(0, "int64")
    kept = c.slice(order, 0, 0, min(wanted, count))
    if wanted > count:
        kept = c("concatenate", c.tuple([kept, c.full(0, [wanted - count], "int64")]), axis=0)
    columns, step = [], 1
    for extent in reversed(c.known(*x.shape)):
        columns.append(c("floor_mod", c("floor_divide", kept, c.const(step, "int64")), c.const(max(extent, 1), "int64")))
        step *= max(extent, 1)
    table = c("stack", c.tuple(columns[::-1]), axis=1)
    rows = c("arange", c.const(0, "int64"), c.const(wanted, "int64"), c.const(1, "int64"), dtype="int64")
    return c.where(c.expand_dims(c("less", rows, total), 1), table, c.const(fill_value, "int64"))


@aten("topk.default")
def topk(c, x, k, dim=-1, largest=True, sorted=True):  # noqa: A002
    if not x.ndim:
        return [x.expr, c.const(0, "int64")]
    (count,) = c.known(k)
    value = c.cast(x, "uint8") if x.is_bool else x.expr
    both = c("topk", value, k=count, axis=x.axis(dim), ret_type="both", is_ascend=not largest, dtype="int64")
    return [c.convert(c.item(both, 0), "uint8", "bool") if x.is_bool else c.item(both, 0), c.item(both, 1)]


@aten("sort.default", "sort.stable")
def sort(c, x, dim=-1, descending=False, stable=None):
    if not x.ndim:
        return [x.expr, c.const(0, "int64")]
    value, axis = c.cast(x, "uint8") if x.is_bool else x.expr, x.axis(dim)
    places = c("argsort", value, axis=axis, is_ascend=not descending, dtype="int64")
    return [c("gather", x, places, axis=axis), places]


@aten("argsort.default", "argsort.stable")
def argsort(c, x, dim=-1, descending=False, stable=None):
    return sort(c, x, dim, descending)[1]


@aten("kthvalue.default")
def kthvalue(c, x, k, dim=-1, keepdim=False):
    if not x.ndim:
        return [x.expr, c.const(0, "int64")]
    axis = x.axis(dim)
    values, places = sort(c, x, dim)
    parts = [c.slice(v, axis, k - 1, k) for v in (values, places)]
    return parts if keepdim else [c.squeeze(p, [axis]) for p in parts]


@aten("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(c, sorted_sequence, values, out_int32=False, right=False, side=None, sorter=None):
    return _search(c, sorted_sequence, values, right or side == "right", sorter)


@aten("bucketize.Tensor", "bucketize.Scalar")
def bucketize(c, values, boundaries, out_int32=False, right=False):
    return _search(c, boundaries, values, right, None)


def _search(c, row, values, right, sorter):
    dtype = c.promoted(row, values)
    line, wanted = row.expr, c.cast(values, dtype)
    if sorter is not None:
        line = c("gather", line, sorter, axis=row.ndim - 1)
    line = c.convert(line, row.dtype, dtype)
    (n,) = c.known(row.shape[-1])
    if not n:
        return c.full(0, c.shape, c.dtype)
    if not isinstance(values, Value) or not values.ndim:
        wanted = c.reshape(wanted, [1])
    return c.reshape(c("searchsorted", line, wanted, right=bool(right), dtype=c.dtype), c.shape)


def _median(c, x, value, shape, axis, keepdim, skip_nan):
    """(the lower median along an axis, its place): NaN sorts last; one that is there is the median, unless it is skipped."""
    (n,) = c.known(shape[axis])
    order = c("argsort", value, axis=axis, is_ascend=True, dtype="int64")
    ranked = c("gather", value, order, axis=axis)
    middle = c.const((n - 1) // 2, "int64")
    if is_float(x.dtype):
        count = c("sum", c.convert(c("isnan", value), "bool", "int64"), axis=[axis], keepdims=True)
        real = c.sub(c.const(n, "int64"), count)
        if skip_nan:
            place = c("floor_divide", c("maximum", c.sub(real, c.const(1, "int64")), c.const(0, "int64")), c.const(2, "int64"))
        else:
            place = c.where(c("greater", count, c.const(0, "int64")), real, middle)
    else:
        place = c.full((n - 1) // 2, [1 if a == axis else s for a, s in enumerate(shape)], "int64")
    parts = [c("gather", v, place, axis=axis) for v in (ranked, order)]
    return parts if keepdim else [c.squeeze(p, [axis]) for p in parts]


def _median_rules(name, skip_nan):
    @aten(f"{name}.dim")
    def along(c, x, dim, keepdim=False):
        if not x.ndim:
            return [x.expr, c.const(0, "int64")]
        return _median(c, x, x.expr, x.shape, x.axis(dim), keepdim, skip_nan)

    @aten(f"{name}.default")
    def whole(c, x):
        count = product(x.shape)
        if known(count) and not int(count):
            return c.const(math.nan, x.dtype)
        return _median(c, x, c.reshape(x, [count]), [count], 0, False, skip_nan)[0]


_median_rules("median", False)
_median_rules("nanmedian", True)


@aten("narrow_copy.default")
def narrow_copy(c, x, dim, start, length):
    axis = x.axis(dim)
    start = start + x.shape[axis] if known(start) and int(start) < 0 else start
    return c.slice(x, axis, start, start + length)


@aten("embedding_dense_backward.default")
def embedding_dense_backward(c, grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    c.need(not scale_grad_by_freq, "the gradient of an embedding scaled by frequency")
    width = grad.shape[-1]
    count = product(indices.shape)
    rows, places = c.reshape(grad, [count, width]), c.reshape(c.cast(indices, "int64"), [count])
    if padding_idx >= 0:
        rows = c.where(c.expand_dims(c("equal", places, c.const(padding_idx, "int64")), 1), c.const(0, grad.dtype), rows)
    zeros = c.full(0, [num_weights, width], grad.dtype)
    return c("scatter_nd", zeros, c.expand_dims(places, 0), rows, mode="add")


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(
    c, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=-1
):
    """Sums (0), means (1) or maxima (2) of bags of rows; a bag begins where `offsets` says."""
    c.need(not any(map(c.used, (1, 2, 3))), "what embedding_bag keeps for its gradient")
    wide, kind = "int64", "float32" if weight.dtype in ("float16", "bfloat16") else weight.dtype
    bags, width = c.shape
    count = product(indices.shape)
    places, starts = _inside(c, c.cast(indices, wide), weight, 0), c.cast(offsets, wide)
    if include_last_offset:
        starts = c.slice(starts, 0, 0, bags)
    steps = c.arange(count)
    bag = c.sub(c("sum", c.convert(c("less_equal", c.expand_dims(starts, 1), c.expand_dims(steps, 0)), "bool", wide), axis=[0]), c.const(1, wide))
    bag = c("maximum", bag, c.const(0, wide))
    rows = c.convert(c("take", weight, places, axis=0), weight.dtype, kind)
    if per_sample_weights is not None:
        rows = c.mul(rows, c.expand_dims(c.cast(per_sample_weights, kind), 1))
    kept = None
    if padding_idx >= 0:
        kept = c("not_equal", places, c.const(padding_idx, wide))
        rows = c.where(c.expand_dims(kept, 1), rows, c.const(-math.inf if mode == 2 else 0, kind))
    ones = c.full(1, [count], wide) if kept is None else c.convert(kept, "bool", wide)
    begin = c.full(-math.inf if mode == 2 else 0, [bags, width], kind)
    out = c("scatter_nd", begin, c.expand_dims(bag, 0), rows, mode="max" if mode == 2 else "add")
    counts = c.expand_dims(c("scatter_nd", c.full(0, [bags], wide), c.expand_dims(bag, 0), ones, mode="add"), 1)
    if mode == 1:
        out = c.div(out, c.convert(c("maximum", counts, c.const(1, wide)), wide, kind))
    if mode == 2:
        out = c.where(c("equal", counts, c.const(0, wide)), c.const(0, kind), out)
    return [c.convert(out, kind, weight.dtype), None, None, None]
