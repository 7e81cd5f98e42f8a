# SPDX-License-Identifier: Apache-2.0
"""Other shapes of the same elements, parts of tensors, and tensors put together."""

from __future__ import annotations

from ..context import END
from ..registry import aten
from ..sizes import is_one, known, product, same


@aten("view.default", "reshape.default", "_unsafe_view.default", "view_copy.default", "_reshape_alias.default")
def view(c, x, size, stride=None):
    return c.reshape(x, c.shape)


@aten("view.dtype")
def view_dtype(c, x, dtype):
    c.need(len(c.shape) == x.ndim and all(map(same, c.shape, x.shape)), "a view under a dtype of another width")
    return c("reinterpret", x, dtype=c.dtype)


@aten("unsqueeze.default")
def unsqueeze(c, x, dim):
    return c.expand_dims(x, dim + x.ndim + 1 if dim < 0 else dim)


@aten("squeeze.dim", "squeeze.dims", "squeeze.default")
def squeeze(c, x, dim=None):
    # An axis of another extent stays; an open one does, too.
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return c.squeeze(x.expr, sorted({x.axis(d) for d in dims if x.ndim and is_one(x.shape[x.axis(d)])}))


@aten("permute.default", "permute_copy.default")
def permute(c, x, dims):
    return c.transpose(x, [x.axis(d) for d in dims])


@aten("t.default", "numpy_T.default")
def t(c, x):
    return c.transpose(x, range(x.ndim - 1, -1, -1))


@aten("transpose.int")
def transpose(c, x, dim0, dim1):
    axes = list(range(x.ndim))
    if axes:
        a, b = x.axis(dim0), x.axis(dim1)
        axes[a], axes[b] = axes[b], axes[a]
    return c.transpose(x, axes)


@aten("expand.default", "expand_copy.default")
def expand(c, x, size, implicit=False):
    return c.broadcast(x, c.shape)


@aten("repeat.default")
def repeat(c, x, repeats):
    reps = c.known(*repeats)
    value = c.reshape(x, [1] * (len(reps) - x.ndim) + list(x.shape)) if len(reps) > x.ndim else x.expr
    return c("tile", value, reps=reps) if reps else value


@aten("flip.default")
def flip(c, x, dims):
    out = x.expr
    for axis in sorted({x.axis(d) for d in dims} if x.ndim else ()):
        out = c("reverse", out, axis=axis)
    return out


@aten("cat.default", "concatenate.default")
def cat(c, tensors, dim=0):
    # PyTorch leaves out tensors of shape (0,) whatever the rank of the others.
    kept = [x for x in tensors if x.ndim == len(c.shape) and not (x.ndim == 1 and known(x.shape[0]) and int(x.shape[0]) == 0)]
    if not kept:
        return c.full(0, c.shape, c.dtype)
    values = [c.cast(x, c.dtype) for x in kept]
    return values[0] if len(values) == 1 else c("concatenate", c.tuple(values), axis=kept[0].axis(dim))


@aten("stack.default")
def stack(c, tensors, dim=0):
    values = [c.cast(x, c.dtype) for x in tensors]
    return c("stack", c.tuple(values), axis=dim + len(c.shape) if dim < 0 else dim)


@aten("select.int")
def select(c, x, dim, index):
    axis = x.axis(dim)
    begin, end = _bounds(c, x.shape[axis], index)
    return c.squeeze(c("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[axis]), [axis])


def _bounds(c, size, index):
    """(index, index + 1) from the front."""
    if known(index) and int(index) >= 0:
        return int(index), int(index) + 1
    begin = index + size if known(index) else index
    return tuple(c.extents([begin, begin + 1]))


@aten("slice.Tensor")
def slice_(c, x, dim=0, start=None, end=None, step=1):
    axis = x.axis(dim)
    size = x.shape[axis]
    start, end = 0 if start is None else start, END if end is None else end
    if same(c.shape[axis], size):
        return x.expr
    if known(size) or known(start) and known(end) and int(start) >= 0 and int(end) >= 0:
        begin, stop = start, end
        if known(size) and known(start) and known(end):
            begin, stop = (min(max(v + size if v < 0 else v, 0), size) for v in (int(start), int(end)))
            stop = max(begin, stop)
    else:
        begin = start + size if known(start) and int(start) < 0 else start
        stop = end + size if known(end) and int(end) < 0 else size if known(end) and int(end) >= 2**31 else end
    return c.slice(x, axis, begin, stop, step)


@aten("narrow.default")
def narrow(c, x, dim, start, length):
    return c.slice(x, x.axis(dim), start, start + length)


@aten("split_with_sizes.default", "split_with_sizes_copy.default")
def split_with_sizes(c, x, split_sizes, dim=0):
    axis, begin, out = x.axis(dim), 0, []
    for size in split_sizes:
        out.append(c.slice(x, axis, begin, begin + size))
        begin = begin + size
    return out


@aten("split.Tensor")
def split(c, x, split_size, dim=0):
    return split_with_sizes(c, x, [r.shape[x.axis(dim)] for r in c.results], dim)


@aten("chunk.default")
def chunk(c, x, chunks, dim=0):
    return split_with_sizes(c, x, [r.shape[x.axis(dim)] for r in c.results], dim)


@aten("unbind.int", "unbind_copy.int")
def unbind(c, x, dim=0):
    axis = x.axis(dim)
    return [c.squeeze(c.slice(x, axis, i, i + 1), [axis]) for i in range(len(c.results))]


@aten("constant_pad_nd.default")
def constant_pad(c, x, pad, value=0):
    widths = _widths(c, x, pad)
    return c("nn.pad", x, c.const(value, x.dtype), pad_width=widths, pad_mode="constant") if x.ndim else x.expr


def _widths(c, x, pad):
    pairs = [c.known(*pad[i : i + 2]) for i in range(0, len(pad), 2)]
    return [[0, 0]] * (x.ndim - len(pairs)) + pairs[::-1]


def _mirrored(name, mode):
    @aten(*(f"{name}{n}d.default" for n in (1, 2, 3)))
    def rule(c, x, padding):
        return c("nn.pad", x, c.const(0, x.dtype), pad_width=_widths(c, x, padding), pad_mode=mode)


_mirrored("reflection_pad", "reflect")
_mirrored("replication_pad", "edge")


@aten("diagonal.default", "diagonal_copy.default")
def diagonal(c, x, offset=0, dim1=0, dim2=1):
    a, b = x.axis(dim1), x.axis(dim2)
    rows, columns = c.known(x.shape[a], x.shape[b])
    (count,) = c.known(c.shape[-1])
    flat = c.transpose(x, [d for d in range(x.ndim) if d not in (a, b)] + [a, b])
    rest = [s for d, s in enumerate(x.shape) if d not in (a, b)]
    flat = c.reshape(flat, [*rest, rows * columns])
    first = offset if offset >= 0 else -offset * columns
    if not count:
        return c.full(0, c.shape, c.dtype)
    return c.slice(flat, len(rest), first, first + (count - 1) * (columns + 1) + 1, columns + 1)


@aten("as_strided.default", "as_strided_copy.default")
def as_strided(c, x, size, stride, storage_offset=None):
    fake = x.fake
    c.need(fake.is_contiguous() and not fake.storage_offset(), "as_strided of memory that is no dense tensor")
    places = _strided_places(c, size, stride, storage_offset)
    (total,) = c.known(product(x.shape))
    c.need(not places.size or int(places.max()) < total, "as_strided reaches beyond the tensor")
    return c("take", c.reshape(x, [total]), c.const(places, "int64"), axis=0)


@aten("as_strided_scatter.default")
def as_strided_scatter(c, x, source, size, stride, storage_offset=None):
    places = _strided_places(c, size, stride, storage_offset)
    c.need(_once(places), "as_strided_scatter into places that overlap")
    (total,) = c.known(product(x.shape))
    c.need(not places.size or int(places.max()) < total, "as_strided_scatter reaches beyond the tensor")
    if not places.size:
        return x.expr
    flat, update = c.reshape(x, [total]), c.reshape(c.cast(source, x.dtype), [places.size])
    return c.reshape(c("scatter_nd", flat, c.const(places.reshape(1, -1), "int64"), update, mode="update"), x.shape)


def _once(places) -> bool:
    """Whether no place occurs twice."""
    return len(set(places.ravel().tolist())) == places.size


def _strided_places(c, size, stride, storage_offset):
    """The elements of dense memory that a view with strides reads."""
    import numpy as np

    size, stride = c.known(*size), c.known(*stride)
    (offset,) = c.known(storage_offset or 0)
    places = np.full(size, offset, "int64")
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(n) * step).reshape([-1] + [1] * (len(size) - axis - 1))
    return places


@aten("unfold.default", "unfold_copy.default")
def unfold(c, x, dimension, size, step):
    import numpy as np

    if not x.ndim:
        return c.reshape(x, [1] if size else [0]) if size else c.full(0, [0], x.dtype)
    axis = x.axis(dimension)
    (windows,) = c.known(c.shape[axis])
    places = np.arange(windows)[:, None] * step + np.arange(size)[None, :]
    out = c("take", x, c.const(places, "int64"), axis=axis)  # (..., windows, size, ...)
    axes = [d for d in range(x.ndim + 1) if d != axis + 1] + [axis + 1]
    return c.transpose(out, axes)


@aten("triu.default")
def triu(c, x, diagonal=0):
    return _triangle(c, x, True, diagonal)


@aten("tril.default")
def tril(c, x, diagonal=0):
    return _triangle(c, x, False, diagonal)


def _triangle(c, x, upper, k):
    return c("trilu", x, upper=upper, k=int(k))


@aten("roll.default")
def roll(c, x, shifts, dims=()):
    shifts = [shifts] if isinstance(shifts, int) else shifts
    out = x.expr if dims else c.reshape(x, [product(x.shape)])
    for axis, shift in zip(dims or [0], shifts, strict=True):
        axis = x.axis(axis)
        (n,) = c.known(x.shape[axis] if dims else product(x.shape))
        if n and shift % n:
            cut = n - shift % n
            out = c("concatenate", c.tuple([c.slice(out, axis, cut, n), c.slice(out, axis, 0, cut)]), axis=axis)
    return out if dims else c.reshape(out, x.shape)


@aten("pixel_shuffle.default")
def pixel_shuffle(c, x, upscale_factor):
    *batch, channels, height, width = x.shape
    r = upscale_factor
    out = c.reshape(x, [*batch, channels // (r * r), r, r, height, width])
    n = len(batch)
    out = c.transpose(out, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return c.reshape(out, c.shape)


@aten("pixel_unshuffle.default")
def pixel_unshuffle(c, x, downscale_factor):
    *batch, channels, height, width = x.shape
    r = downscale_factor
    out = c.reshape(x, [*batch, channels, height // r, r, width // r, r])
    n = len(batch)
    return c.reshape(c.transpose(out, [*range(n), n, n + 2, n + 4, n + 1, n + 3]), c.shape)


@aten("repeat_interleave.self_int")
def repeat_interleave(c, x, repeats, dim=None, output_size=None):
    if dim is None:
        return c("repeat", c.reshape(x, [product(x.shape)]), repeats=int(repeats), axis=0)
    return c("repeat", x, repeats=int(repeats), axis=x.axis(dim))


@aten("repeat_interleave.Tensor")
def repeat_interleave_by(c, repeats, output_size=None):
    """Each place as often as `repeats` says."""
    ends = c("cumsum", c.cast(repeats, "int64"), axis=0, dtype="int64")
    total = c("sum", c.cast(repeats, "int64"), axis=[0]) if output_size is None else c.const(output_size, "int64")
    places = c("arange", c.const(0, "int64"), total, c.const(1, "int64"), dtype="int64")
    return c.convert(c("searchsorted", ends, places, right=True, dtype="int64"), "int64", c.dtype)


@aten("resize.default")
def resize(c, x, size, memory_format=None):
    """The first elements under another shape; PyTorch leaves open what more elements are, and they are zeros here."""
    have, want = c.known(product(x.shape), product(size))
    flat = c.reshape(x, [have])
    if want > have:
        flat = c("concatenate", c.tuple([flat, c.full(0, [want - have], x.dtype)]), axis=0)
    return c.reshape(c.slice(flat, 0, 0, want) if want < have else flat, size)
