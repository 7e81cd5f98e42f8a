# SPDX-License-Identifier: Apache-2.0
"""Pools over windows, and images resized and sampled."""

from __future__ import annotations

import numpy as np

from ..context import END
from ..dtypes import is_float
from ..registry import aten
from ..sizes import known, product

_LAYOUT = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _as_long(values, n):
    values = [values] if isinstance(values, int) else list(values)
    return values * n if len(values) == 1 else values


def _batched(c, x, n):
    """(the data with a batch, whether it was added)"""
    return (x.expr, False) if x.ndim == n + 2 else (c.expand_dims(x, 0), True)


def _back(c, value, added):
    return c.squeeze(value, [0]) if added else value


def _window(c, kernel, stride, padding, n):
    kernel = c.known(*_as_long(kernel, n))
    stride = c.known(*_as_long(stride, n)) if not isinstance(stride, (list, tuple)) or len(stride) else kernel
    return kernel, stride, c.known(*_as_long(padding, n))


def _average(n):
    @aten(f"avg_pool{n}d.default")
    def rule(c, x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        kernel, stride, padding = _window(c, kernel_size, stride, padding, n)
        data, added = _batched(c, x, n)
        if divisor_override is None:
            if ceil_mode and any(padding) and count_include_pad:
                return _back(c, _ceil_average(c, x, data, kernel, stride, padding, n), added)
            out = c(
                f"nn.avg_pool{n}d",
                data,
                pool_size=kernel,
                strides=stride,
                padding=padding * 2,
                layout=_LAYOUT[n],
                ceil_mode=ceil_mode,
                count_include_pad=bool(count_include_pad),
            )
            return _back(c, out, added)
        total = _sums(c, x, data, kernel, stride, padding, n)
        return _back(c, c.div(total, c.const(divisor_override, x.dtype)), added)

    if n == 1:
        return

    @aten(f"avg_pool{n}d_backward.default")
    def backward(c, grad, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        c.need(not ceil_mode and divisor_override is None and x.ndim == n + 2, "the gradient of a pool with ceil_mode or a divisor of its own")
        kernel, stride, padding = _window(c, kernel_size, stride, padding, n)
        given = {"pool_size": kernel, "strides": stride, "padding": padding * 2, "layout": _LAYOUT[n], "count_include_pad": bool(count_include_pad)}
        return c(f"nn.avg_pool{n}d_grad", grad, x, **given)


def _reach(c, x, kernel, stride, padding, n):
    """How far windows reach beyond the padded data on each axis, by PyTorch's count of windows."""
    sizes, counts = c.known(*x.shape[-n:]), c.known(*c.shape[-n:])
    return [max(0, (m - 1) * s + k - (size + 2 * p)) for size, m, k, s, p in zip(sizes, counts, kernel, stride, padding, strict=True)]


def _sums(c, x, data, kernel, stride, padding, n):
    """Sums over windows: means of data padded with zeros that is multiplied by the number of elements of a window, exact for integers."""
    more = _reach(c, x, kernel, stride, padding, n)
    widths = [[0, 0], [0, 0], *([p, p + m] for p, m in zip(padding, more, strict=True))]
    padded = c("nn.pad", data, c.const(0, x.dtype), pad_width=widths) if any(padding) or any(more) else data
    padded = c.mul(padded, c.const(product(kernel), x.dtype))
    return c(f"nn.avg_pool{n}d", padded, pool_size=kernel, strides=stride, padding=[0] * (2 * n), layout=_LAYOUT[n], count_include_pad=True)


def _ceil_average(c, x, data, kernel, stride, padding, n):
    """A window's divisor counts the padding, but not what lies beyond it."""
    sums = _sums(c, x, data, kernel, stride, padding, n)
    divisor = np.ones((), "float64")
    sizes, counts = c.known(*x.shape[-n:]), c.known(*c.shape[-n:])
    for size, m, k, s, p in zip(sizes, counts, kernel, stride, padding, strict=True):
        begin = np.arange(m) * s - p
        divisor = divisor[..., None] * (np.minimum(begin + k, size + p) - begin)
    return c.div(sums, c.const(divisor, x.dtype))


for _n in (1, 2, 3):
    _average(_n)


def _largest(n):
    @aten(f"max_pool{n}d_with_indices.default", f"max_pool{n}d.default")
    def rule(c, x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        kernel, stride, padding = _window(c, kernel_size, stride, padding, n)
        dilation = _as_long(dilation, n)
        data, added = _batched(c, x, n)
        several = isinstance(c.fake, (list, tuple))
        if not several or not c.used(1):
            given = {"pool_size": kernel, "strides": stride, "padding": padding * 2, "dilation": dilation, "ceil_mode": ceil_mode}
            out = _back(c, c(f"nn.max_pool{n}d", data, layout=_LAYOUT[n], **given), added)
            return [out, None] if several else out
        if n == 2 and _is_tiled(x, kernel, stride, padding, dilation):
            return [_back(c, v, added) for v in _tiles(c, x, data, kernel)]
        both = c("nn.max_pool_with_indices", data, pool_size=kernel, strides=stride, dilation=dilation, padding=padding * 2, ceil_mode=ceil_mode)
        # Relay counts over all of data, PyTorch within a channel's plane.
        plane = c.const(product(x.shape[-n:]), "int64")
        return [_back(c, v, added) for v in (c.item(both, 0), c("floor_mod", c.item(both, 1), plane))]

    if n == 1:
        return

    @aten(f"max_pool{n}d_with_indices_backward.default")
    def backward(c, grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
        rows = c.known(product(x.shape[:-n]))[0]
        plane, count = c.known(product(x.shape[-n:]), product(grad.shape[-n:]))
        kernel, stride, padding = _window(c, kernel_size, stride, padding, n)
        if n == 2 and _is_tiled(x, kernel, stride, padding, _as_long(dilation, n)):
            return _spread(c, grad, x, kernel, indices)
        zeros = c.full(0, [rows, plane], x.dtype)
        places = c.reshape(indices, [rows, count])
        out = c("scatter_elements", zeros, places, c.reshape(grad, [rows, count]), axis=1, reduction="add")
        return c.reshape(out, x.shape)


# Windows of more elements are loops.
_MOST_PARTS = 9


def _is_tiled(x, kernel, stride, padding, dilation) -> bool:
    """Whether windows lie side by side and cover the image."""
    if kernel != stride or any(padding) or any(d != 1 for d in dilation) or product(kernel) > _MOST_PARTS:
        return False
    return all(known(size) and int(size) and int(size) % k == 0 for size, k in zip(x.shape[-len(kernel) :], kernel, strict=True))


def _plane(x):
    """The places of an image's elements in its plane."""
    height, width = map(int, x.shape[-2:])
    return np.arange(height * width, dtype="int64").reshape(1, 1, height, width)


def _tiles(c, x, data, kernel):
    """(largest elements of windows that cover the image, their places in the plane), as choices between the windows' elements, which are vectors. The
    last NaN is the largest, else the first of equal ones."""
    rows, columns = kernel
    largest = offset = None
    for i in range(rows):
        for j in range(columns):
            part = c("strided_slice", data, begin=[i, j], end=[END, END], strides=kernel, axes=[2, 3])
            there = c.const(i * int(x.shape[-1]) + j, "int32")
            if largest is None:
                largest, offset = part, there
                continue
            greater = c("greater", part, largest)
            if is_float(x.dtype):
                greater = c("logical_or", greater, c("isnan", part))
            largest, offset = c.where(greater, part, largest), c.where(greater, there, offset)
    first = _plane(x)[:, :, ::rows, ::columns]
    shape = [*(x.shape[:2] if x.ndim == 4 else [1, x.shape[0]]), *first.shape[2:]]
    return [largest, c.add(c.const(first, "int64"), c.convert(c.broadcast(offset, shape), "int32", "int64"))]


def _spread(c, grad, x, kernel, indices):
    """The adjoint of the largest elements of such windows: each element asks whether it is its window's."""
    wide = []
    for value in (grad, indices):
        expr = value.expr
        for axis, count in zip((x.ndim - 2, x.ndim - 1), kernel, strict=True):
            expr = c("repeat", expr, repeats=count, axis=axis)
        wide.append(expr)
    plane = c.const(_plane(x).reshape(x.shape[-2:]), "int64")
    return c.where(c("equal", wide[1], plane), wide[0], c.const(0, x.dtype))


for _n in (1, 2, 3):
    _largest(_n)


def _adaptive(n):
    @aten(*(f"{name}{n}d.default" for name in ("_adaptive_avg_pool", "adaptive_avg_pool")[n == 1 :]))
    def average(c, x, output_size):
        data, added = _batched(c, x, n)
        return _back(c, c(f"nn.adaptive_avg_pool{n}d", data, output_size=c.known(*c.shape[-n:]), layout=_LAYOUT[n]), added)

    @aten(f"adaptive_max_pool{n}d.default")
    def largest(c, x, output_size):
        if c.used(1):
            return _largest_parts(c, x, n)
        data, added = _batched(c, x, n)
        return [_back(c, c(f"nn.adaptive_max_pool{n}d", data, output_size=c.known(*c.shape[-n:]), layout=_LAYOUT[n]), added), None]

    if n == 1:
        return

    @aten(f"_adaptive_avg_pool{n}d_backward.default")
    def backward(c, grad, x):
        """Each element gets, along each axis, the mean's share of the parts that it is in: a product with a matrix an axis."""
        out = grad.expr
        for axis in range(grad.ndim - n, grad.ndim):
            size, parts = c.known(x.shape[axis], grad.shape[axis])
            shares = np.zeros((size, parts))
            for i in range(parts):
                begin, end = i * size // parts, -(-(i + 1) * size // parts)
                shares[begin:end, i] = 1 / (end - begin)
            order = [a for a in range(grad.ndim) if a != axis] + [axis]
            out = c("nn.dense", c.transpose(out, order), c.const(shares, x.dtype))
            out = c.transpose(out, [order.index(a) for a in range(grad.ndim)])
        return out


def _largest_parts(c, x, n):
    """(the largest element of each part, its place in the plane): a table of the places of each part, filled up with its last one."""
    sizes, counts = c.known(*x.shape[-n:]), c.known(*c.shape[-n:])
    spans = [[(i * size // m, -(-(i + 1) * size // m)) for i in range(m)] for size, m in zip(sizes, counts, strict=True)]
    places = np.zeros((), "int64")
    for size, parts in zip(sizes, spans, strict=True):
        width = max((end - begin for begin, end in parts), default=0)
        line = np.array([[min(begin + k, end - 1) for k in range(width)] for begin, end in parts], "int64").reshape(len(parts), width)
        at = places.ndim // 2  # parts stand before what is in them
        shape = list(places.shape)
        left = places.reshape(shape[:at] + [1] + shape[at:] + [1]) * size
        places = left + line.reshape([1] * at + [len(parts)] + [1] * (len(shape) - at) + [width])
    outer = x.shape[: x.ndim - n]
    parts = places.reshape([*counts, -1])
    plane = c.reshape(x, [*outer, product(sizes)])
    table = c("take", plane, c.const(parts, "int64"), axis=len(outer))
    axis = len(outer) + n
    which = c("argmax", table, axis=[axis], keepdims=True, dtype="int64")
    given = c.broadcast(c.const(parts, "int64"), [*outer, *parts.shape])
    return [c("max", table, axis=[axis]), c.squeeze(c("gather", given, which, axis=axis), [axis])]


for _n in (1, 2, 3):
    _adaptive(_n)


def _resized(c, x, scales, method, aligned, antialias=False, **more):
    axes = list(range(2, x.ndim))
    # With aligned corners a factor follows from the extents, whatever the caller's says.
    given = {} if aligned or scales is None or any(s is None for s in scales) else {"scales": [float(s) for s in scales]}
    given["size"] = c.known(*c.shape[2:])
    mode = "align_corners" if aligned else "half_pixel"
    return c("image.resize", x, axes=axes, method=method, **{"coordinate_transformation_mode": mode, "antialias": antialias, **given, **more})


_NEAREST = {"coordinate_transformation_mode": "asymmetric", "rounding_method": "floor"}
_EXACT = {"coordinate_transformation_mode": "half_pixel", "rounding_method": "round_prefer_ceil"}


def _nearest(n):
    for prefix, how in (("upsample_nearest", _NEAREST), ("_upsample_nearest_exact", _EXACT)):

        @aten(f"{prefix}{n}d.vec")
        def by_list(c, x, output_size, scale_factors, how=how):
            return _resized(c, x, scale_factors, "nearest_neighbor", False, **how)

        @aten(f"{prefix}{n}d.default")
        def by_numbers(c, x, output_size, *scales, how=how, scales_d=None, scales_h=None, scales_w=None):
            given = scales or tuple(s for s in (scales_d, scales_h, scales_w)[3 - n :])
            return _resized(c, x, given, "nearest_neighbor", False, **how)


def _smooth(name, method):
    @aten(f"{name}.vec")
    def by_list(c, x, output_size, align_corners, scale_factors):
        return _resized(c, x, scale_factors, method, align_corners)

    @aten(f"{name}.default")
    def by_numbers(c, x, output_size, align_corners, *scales, scales_d=None, scales_h=None, scales_w=None):
        n = x.ndim - 2
        given = scales or tuple(s for s in (scales_d, scales_h, scales_w)[3 - n :])
        return _resized(c, x, given, method, align_corners)


for _n in (1, 2, 3):
    _nearest(_n)
for _name, _method in {"upsample_linear1d": "linear", "upsample_bilinear2d": "linear", "upsample_trilinear3d": "linear", "upsample_bicubic2d": "cubic"}.items():
    _smooth(_name, _method)


@aten("grid_sampler_2d.default", "grid_sampler_3d.default", "grid_sampler.default")
def grid_sampler(c, x, grid, interpolation_mode, padding_mode, align_corners):
    return c(
        "image.grid_sample",
        x,
        grid,
        method=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        layout="NCHW" if x.ndim == 4 else "NCDHW",
        align_corners=bool(align_corners),
        grid_last=True,
    )


@aten("_upsample_bilinear2d_aa.default")
def upsample_bilinear_smooth(c, x, output_size, align_corners, scales_h=None, scales_w=None):
    return _smooth(c, x, output_size, align_corners, (scales_h, scales_w), 1, lambda away: 1 - away)


@aten("_upsample_bicubic2d_aa.default")
def upsample_bicubic_smooth(c, x, output_size, align_corners, scales_h=None, scales_w=None):
    return _smooth(c, x, output_size, align_corners, (scales_h, scales_w), 2, _cubic)


def _cubic(away):
    """Keys' cubic with -1/2, as PIL has it."""
    return np.where(away < 1, (1.5 * away - 2.5) * away**2 + 1, -0.5 * ((away - 5) * away**2 + 8 * away - 4))


def _smooth(c, x, output_size, align_corners, scales, reach, curve):
    """Two products with matrices of weights: a curve that ends at `reach` pixels, or at as many steps between pixels of the result, where a step
    is more than a pixel."""
    out, wide = x.expr, "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    out = c.convert(out, x.dtype, wide)
    sizes, wanted = c.known(*x.shape[-2:]), c.known(*output_size)
    rows, columns = (_weights(*each, align_corners, reach, curve) for each in zip(sizes, wanted, scales, strict=True))
    out = c("nn.matmul", out, c.const(columns.T, wide))
    out = c("nn.matmul", c.broadcast(c.const(rows, wide), [*x.shape[:-2], *rows.shape]), out)
    return c.convert(out, wide, x.dtype)


def _weights(size, wanted, scale, align_corners, reach, curve):
    """The weights of the pixels for each pixel of the result, (wanted, size)."""
    if align_corners:
        step = (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else size / wanted
    unit = max(step, 1.0)
    weights = np.zeros((wanted, size))
    for i in range(wanted):
        center = step * (i + 0.5)
        first, last = max(int(center - reach * unit + 0.5), 0), min(int(center + reach * unit + 0.5), size)
        away = np.abs((np.arange(first, last) - center + 0.5) / unit)
        line = np.where(away < reach, curve(away), 0)
        weights[i, first:last] = line / line.sum() if line.sum() else line
    return weights


@aten("fractional_max_pool2d.default", "fractional_max_pool3d.default")
def fractional_max_pool(c, x, kernel_size, output_size, random_samples):
    """Maxima of windows of one size, which begin where the given random numbers say: [values, places in the image]."""
    dims, wide = len(output_size), "int64"
    windows = [kernel_size] * dims if isinstance(kernel_size, int) else list(kernel_size)
    windows = (windows * dims)[:dims]
    sizes, counts = c.known(*x.shape[-dims:]), c.known(*output_size)
    lead = [1] * (dims + 2 - x.ndim) + list(x.shape[:-dims])
    values, places, shape = c.reshape(x, [*lead, *sizes]), c.const(0, wide), [*lead, *sizes]
    for axis, (size, count, window) in enumerate(zip(sizes, counts, windows, strict=True)):
        which = dims - 1 - axis if dims == 2 else axis  # PyTorch gives the first number to the columns of an image, and to the frames of a volume
        begins = _begins(c, random_samples, which, size, count, window, lead)
        rows = c.reshape(c.add(c.expand_dims(begins, 3), c.const(np.arange(window), wide)), [*lead, count * window])
        rows = c.reshape(rows, [*lead, *(count * window if a == axis else 1 for a in range(dims))])
        shape[2 + axis] = count * window
        values = c("gather", values, c.broadcast(rows, shape), axis=2 + axis)
        places = c.add(c.mul(places, c.const(size, wide)), rows)
    split = [n for pair in zip(counts, windows, strict=True) for n in pair]
    order = [0, 1, *range(2, 2 + 2 * dims, 2), *range(3, 3 + 2 * dims, 2)]
    flat = [*lead, *counts, product(windows)]
    values, places = (c.reshape(c.transpose(c.reshape(c.broadcast(v, shape), [*lead, *split]), order), flat) for v in (values, places))
    best = c("argmax", values, axis=[2 + dims], keepdims=True, dtype=wide)
    return [c.reshape(c("gather", v, best, axis=2 + dims), c.shape) for v in (values, places)]


def _begins(c, samples, which, size, count, window, lead):
    """Where the windows along an axis begin, (N, C, count)."""
    wide, kind = "int64", samples.dtype
    last = c.full(size - window, [*lead, 1], wide)
    if count == 1:
        return last
    sample = c.slice(c.reshape(samples, [*lead, samples.shape[-1]]), 2, which, which + 1)
    alpha = c.const(np.dtype(kind).type(size - window) / np.dtype(kind).type(count - 1), kind)
    moved = c.convert(c.mul(c.add(c.const(np.arange(count - 1), kind), sample), alpha), kind, wide)
    first = c.sub(moved, c.convert(c.mul(sample, alpha), kind, wide))
    return c("concatenate", c.tuple([first, last]), axis=2)
