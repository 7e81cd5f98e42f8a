# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools."""

import itertools

import numpy as np


def _each(value, count):
    return [value] * count if isinstance(value, int) else list(value) * (count if len(value) == 1 else 1)


def _margins(padding, size, strides, extents):
    """(before, behind) of each dimension, from one number, one for each, two for each, "SAME" or "VALID"."""
    count = len(size)
    if isinstance(padding, str):
        if padding == "VALID":
            return [(0, 0)] * count
        total = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(extents, strides, size, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    padding = _each(padding, count)
    if len(padding) == count:
        return [(p, p) for p in padding]
    return list(zip(padding[:count], padding[count:], strict=True))


def _acc(dtype):
    return "float64" if np.dtype(dtype).kind == "f" else dtype


def _conv(a_np, w_np, stride, padding, dilation=1, groups=1):
    """(N, C, spatial...) by (O, C / groups, spatial...)."""
    count = a_np.ndim - 2
    strides, dilation = _each(stride, count), _each(dilation, count)
    span = [(k - 1) * d + 1 for k, d in zip(w_np.shape[2:], dilation, strict=True)]
    margins = _margins(padding, span, strides, a_np.shape[2:])
    x = np.pad(a_np, [(0, 0), (0, 0), *margins]).astype(_acc(a_np.dtype))
    w = w_np.astype(_acc(w_np.dtype))
    places = [(n - s) // t + 1 for n, s, t in zip(x.shape[2:], span, strides, strict=True)]
    out = np.zeros((len(x), len(w), *places), np.result_type(x, w))
    ci, co = x.shape[1] // groups, len(w) // groups
    for g in range(groups):
        part, weight = x[:, g * ci : (g + 1) * ci], w[g * co : (g + 1) * co]
        for at in itertools.product(*map(range, w.shape[2:])):
            taken = part[
                (slice(None), slice(None), *(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in zip(at, dilation, places, strides, strict=True)))
            ]
            out[:, g * co : (g + 1) * co] += np.einsum("nc...,oc->no...", taken, weight[(slice(None), slice(None), *at)])
    return out.astype(a_np.dtype)


def conv1d_ncw_python(a_np, w_np, stride, padding, dilation, groups=1):
    """(N, C, W) by (O, C / groups, W)."""
    return _conv(a_np, w_np, stride, padding, dilation, groups)


group_conv1d_ncw_python = conv1d_ncw_python


def conv2d_nchw_python(a_np, w_np, stride, padding, groups=1):
    """(N, C, H, W) by (O, C / groups, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups=groups)


def conv2d_nhwc_python(a_np, w_np, stride, padding, groups=1):
    """(N, H, W, C) by (H, W, C / groups, O)."""
    return np.moveaxis(_conv(np.moveaxis(a_np, -1, 1), w_np.transpose(3, 2, 0, 1), stride, padding, groups=groups), 1, -1)


def conv2d_hwcn_python(a_np, w_np, stride, padding):
    """(H, W, C, N) by (H, W, C, O)."""
    return _conv(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding).transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np, w_np, stride, padding, groups=1):
    """(N, C, D, H, W) by (O, C / groups, D, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups=groups)


def conv3d_ndhwc_python(a_np, w_np, stride, padding, groups=1):
    """(N, D, H, W, C) by (D, H, W, C / groups, O)."""
    return np.moveaxis(_conv(np.moveaxis(a_np, -1, 1), w_np.transpose(4, 3, 0, 1, 2), stride, padding, groups=groups), 1, -1)


def depthwise_conv2d_python_nchw(input_np, filter_np, stride, padding):
    """(N, C, H, W) by (C, M, H, W): each channel by itself, M results of each."""
    channels, multiplier = filter_np.shape[:2]
    return _conv(input_np, filter_np.reshape(channels * multiplier, 1, *filter_np.shape[2:]), stride, padding, groups=channels)


def depthwise_conv2d_python_nhwc(input_np, filter_np, stride, padding):
    """(N, H, W, C) by (H, W, C, M)."""
    return np.moveaxis(depthwise_conv2d_python_nchw(np.moveaxis(input_np, -1, 1), filter_np.transpose(2, 3, 0, 1), stride, padding), 1, -1)


def _conv_transpose(a_np, w_np, stride, padding, output_padding, groups=1):
    """(N, C, spatial...) by (C, O / groups, spatial...): each input adds the weight times itself to the result."""
    count = a_np.ndim - 2
    strides, extra = _each(stride, count), _each(output_padding, count)
    margins = _margins(padding, w_np.shape[2:], strides, a_np.shape[2:])
    x, w = a_np.astype(_acc(a_np.dtype)), w_np.astype(_acc(w_np.dtype))
    full = [(n - 1) * s + k + e for n, s, k, e in zip(x.shape[2:], strides, w.shape[2:], extra, strict=True)]
    ci, co = x.shape[1] // groups, w.shape[1]
    out = np.zeros((len(x), co * groups, *full), np.result_type(x, w))
    for g in range(groups):
        part, weight = x[:, g * ci : (g + 1) * ci], w[g * ci : (g + 1) * ci]
        for at in itertools.product(*map(range, w.shape[2:])):
            place = tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in zip(at, x.shape[2:], strides, strict=True))
            out[(slice(None), slice(g * co, (g + 1) * co), *place)] += np.einsum("nc...,co->no...", part, weight[(slice(None), slice(None), *at)])
    cut = tuple(slice(b, n - e) for n, (b, e) in zip(full, margins, strict=True))
    return out[(slice(None), slice(None), *cut)].astype(a_np.dtype)


def conv1d_transpose_ncw_python(a_np, w_np, stride, padding, output_padding):
    """(N, C, W) by (C, O, W), transposed."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding)


def conv2d_transpose_nchw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """(N, C, H, W) by (C, O / groups, H, W), transposed."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(a_nhwc, weight, weight_format, stride, padding, output_padding=(0, 0)):
    """(N, H, W, C), transposed; `weight_format` is the order of the weight's dimensions, with I for the result's channels as in HWIO, or
    OIHW, HWOI and IOHW."""
    order = {"HWIO": (2, 3, 0, 1), "HWOI": (3, 2, 0, 1), "OIHW": (1, 0, 2, 3), "IOHW": (0, 1, 2, 3)}
    if weight_format not in order:
        raise ValueError(f"weight_format is {weight_format!r}; there are {', '.join(order)}")
    return np.moveaxis(_conv_transpose(np.moveaxis(a_nhwc, -1, 1), weight.transpose(order[weight_format]), stride, padding, output_padding), 1, -1)


def conv3d_transpose_ncdhw_python(a_np, w_np, stride, padding, output_padding):
    """(N, C, D, H, W) by (C, O, D, H, W), transposed."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding)


def _bilinear(image, y, x):
    """The value of (C, H, W) at a place between elements; 0 outside."""
    h, w = image.shape[1:]
    y0, x0 = int(np.floor(y)), int(np.floor(x))
    out = np.zeros(len(image))
    for dy, dx in itertools.product((0, 1), (0, 1)):
        i, j = y0 + dy, x0 + dx
        if 0 <= i < h and 0 <= j < w:
            out += image[:, i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return out


def deformable_conv2d_nchw_python(a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups):
    """(N, C, H, W) by (O, C / groups, H, W), each tap moved by its (y, x) of `offset_np`."""
    strides, dilation, x = _each(stride, 2), _each(dilation, 2), a_np.astype("float64")
    (kh, kw), (oh, ow) = w_np.shape[2:], offset_np.shape[2:]
    margins = _margins(padding, [(kh - 1) * dilation[0] + 1, (kw - 1) * dilation[1] + 1], strides, a_np.shape[2:])
    part = x.shape[1] // deformable_groups
    taken = np.zeros((len(x), x.shape[1], kh, kw, oh, ow))
    for n, g, i, j, y, z in itertools.product(range(len(x)), range(deformable_groups), range(kh), range(kw), range(oh), range(ow)):
        tap = 2 * (g * kh * kw + i * kw + j)
        at_y = y * strides[0] - margins[0][0] + i * dilation[0] + float(offset_np[n, tap, y, z])
        at_x = z * strides[1] - margins[1][0] + j * dilation[1] + float(offset_np[n, tap + 1, y, z])
        channels = slice(g * part, (g + 1) * part)
        taken[n, channels, i, j, y, z] = _bilinear(x[n, channels], at_y, at_x)
    ci, co = x.shape[1] // groups, len(w_np) // groups
    parts = [np.einsum("ncijyz,ocij->noyz", taken[:, g * ci : (g + 1) * ci], w_np[g * co : (g + 1) * co].astype("float64")) for g in range(groups)]
    return np.concatenate(parts, axis=1).astype(a_np.dtype)


def deformable_conv2d_nhwc_python(a_np, offset_np, w_np, stride, padding, dilation, deformable_groups, groups):
    """(N, H, W, C) by (H, W, C / groups, O), offsets (N, H, W, taps)."""
    out = deformable_conv2d_nchw_python(
        np.moveaxis(a_np, -1, 1), np.moveaxis(offset_np, -1, 1), w_np.transpose(3, 2, 0, 1), stride, padding, dilation, deformable_groups, groups
    )
    return np.moveaxis(out, 1, -1)


def poolnd_python(np_data, kernel, strides, dilation, padding_before, padding_after, pool_type, count_include_pad=True, ceil_mode=False, dtype="float32"):
    """Pools of (N, C, spatial...): the largest element of each window, or the average."""
    count = np_data.ndim - 2
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    room = [n + b + e - s for n, b, e, s in zip(np_data.shape[2:], padding_before, padding_after, span, strict=True)]
    places = [(-(-r // t) if ceil_mode else r // t) + 1 for r, t in zip(room, strides, strict=True)]
    out = np.zeros((*np_data.shape[:2], *places), dtype)
    x = np_data.astype("float64")
    for at in itertools.product(*map(range, places)):
        taps = [[p * t - b + k * d for k in range(size)] for p, t, b, size, d in zip(at, strides, padding_before, kernel, dilation, strict=True)]
        inside = [[i for i in t if 0 <= i < n] for t, n in zip(taps, x.shape[2:], strict=True)]
        padded = [[i for i in t if i < n + e] for t, n, e in zip(taps, x.shape[2:], padding_after, strict=True)]
        values = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *inside)]
        axes = tuple(range(2, 2 + count))
        if pool_type == "max":
            out[(slice(None), slice(None), *at)] = values.max(axis=axes)
        elif pool_type == "avg":
            whole = int(np.prod([len(p) for p in (padded if count_include_pad else inside)]))
            out[(slice(None), slice(None), *at)] = values.sum(axis=axes) / max(whole, 1)
        else:
            raise ValueError(f"pool_type is {pool_type!r}; it is 'max' or 'avg'")
    return out


def pool_grad_nchw(a_np, out_grad_np, pool_size, strides, padding, pool_type, ceil_mode, count_include_pad=True):
    """The gradient of a pool of (N, C, H, W) by its input; `padding` is (top, left, bottom, right). The first of equal largest elements
    takes all."""
    top, left, bottom, right = padding
    grad = np.zeros(a_np.shape, "float64")
    h, w = a_np.shape[2:]
    for n, c, i, j in itertools.product(*map(range, out_grad_np.shape)):
        rows = [y for y in range(i * strides[0] - top, i * strides[0] - top + pool_size[0]) if 0 <= y < h]
        columns = [x for x in range(j * strides[1] - left, j * strides[1] - left + pool_size[1]) if 0 <= x < w]
        if not rows or not columns:
            continue
        if pool_type == "max":
            window = a_np[n, c][np.ix_(rows, columns)]
            y, x = np.unravel_index(np.argmax(window), window.shape)
            grad[n, c, rows[y], columns[x]] += out_grad_np[n, c, i, j]
        else:
            high = min(i * strides[0] - top + pool_size[0], h + bottom) - (i * strides[0] - top)
            wide = min(j * strides[1] - left + pool_size[1], w + right) - (j * strides[1] - left)
            count = high * wide if count_include_pad else len(rows) * len(columns)
            grad[n, c][np.ix_(rows, columns)] += out_grad_np[n, c, i, j] / count
    return grad.astype(a_np.dtype)


def adaptive_pool(np_data, out_size, pool_type, layout="NCHW"):
    """Pools to a size: window i of an extent n is [floor(i * n / m), ceil((i + 1) * n / m))."""
    last = layout[-1] == "C"
    x = np.moveaxis(np_data, -1, 1) if last else np_data
    sizes = _each(out_size, x.ndim - 2)
    sizes = [n if s is None else s for s, n in zip(sizes, x.shape[2:], strict=True)]
    out = np.zeros((*x.shape[:2], *sizes), np_data.dtype)
    reduce = np.max if pool_type == "max" else np.mean
    for at in itertools.product(*map(range, sizes)):
        window = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, x.shape[2:], sizes, strict=True))
        out[(slice(None), slice(None), *at)] = reduce(x[(slice(None), slice(None), *window)].astype("float64"), axis=tuple(range(2, x.ndim)))
    return np.moveaxis(out, 1, -1) if last else out
