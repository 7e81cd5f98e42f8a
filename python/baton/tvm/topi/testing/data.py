# SPDX-License-Identifier: Apache-2.0
"""Operators that move, select and normalise elements."""

import numpy as np


def _wide(x):
    return np.asarray(x).astype("float64") if np.asarray(x).dtype.kind == "f" else np.asarray(x)


def batch_matmul(x, y, out_dtype=None, trans_x=False, trans_y=True):
    """Products of matrices, batch by batch; a batch of 1 serves all."""
    a = np.swapaxes(x, 1, 2) if trans_x else x
    b = np.swapaxes(y, 1, 2) if trans_y else y
    dtype = out_dtype or x.dtype
    return np.matmul(_wide(a) if out_dtype is None else a.astype(dtype), _wide(b) if out_dtype is None else b.astype(dtype)).astype(dtype)


def softmax_python(a_np, axis=1):
    """exp(x) over its sum along an axis."""
    e = np.exp(_wide(a_np) - np.amax(_wide(a_np), axis=axis, keepdims=True))
    return (e / np.sum(e, axis=axis, keepdims=True)).astype(a_np.dtype)


def log_softmax_python(a_np, axis=1):
    """The logarithm of softmax along an axis."""
    shifted = _wide(a_np) - np.amax(_wide(a_np), axis=axis, keepdims=True)
    return (shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))).astype(a_np.dtype)


def l2_normalize_python(a_np, eps, axis=None):
    """x / sqrt(max(sum of squares over axes, eps))."""
    axis = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    total = np.sum(_wide(a_np) ** 2, axis=axis, keepdims=True)
    return (_wide(a_np) / np.sqrt(np.maximum(total, eps))).astype(a_np.dtype)


def lrn_python(a_np, size, axis, bias, alpha, beta):
    """x / (bias + alpha / size * sum of squares of `size` neighbours along an axis) ** beta."""
    squares = np.moveaxis(_wide(a_np) ** 2, axis, 0)
    half = size // 2
    sums = np.stack([squares[max(0, i - half) : i + half + 1].sum(axis=0) for i in range(len(squares))])
    return (_wide(a_np) / (bias + alpha / size * np.moveaxis(sums, 0, axis)) ** beta).astype(a_np.dtype)


def nll_loss(predictions, targets, weights, reduction="mean", ignore_index=-100):
    """The negative log-likelihood: -weights[t] * predictions[n, t, ...], and its sum or weighted mean."""
    there = targets != ignore_index
    safe = np.where(there, targets, 0)
    picked = np.take_along_axis(predictions, np.expand_dims(safe, 1), axis=1).squeeze(1)
    weight = np.where(there, weights[safe], 0).astype(predictions.dtype)
    loss = -picked * weight
    if reduction == "none":
        return loss
    return np.sum(loss) / np.sum(weight) if reduction == "mean" else np.sum(loss)


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """`on_value` at each index along a new axis, `off_value` elsewhere."""
    axis = axis if axis >= 0 else indices.ndim + axis + 1
    places = np.expand_dims(indices, axis)
    range_ = np.arange(depth).reshape([depth if d == axis else 1 for d in range(indices.ndim + 1)])
    return np.where(places == range_, on_value, off_value).astype(dtype)


def sequence_mask(data, valid_length, mask_value, axis):
    """`data` of (time, batch, ...) or (batch, time, ...) with elements behind each valid length replaced; `axis` is that of time."""
    steps = np.arange(data.shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
    lengths = np.reshape(valid_length, (1, -1) if axis == 0 else (-1, 1))
    inside = (steps < lengths).reshape(data.shape[:2] + (1,) * (data.ndim - 2))
    return np.where(inside, data, np.asarray(mask_value, data.dtype))


def searchsorted_ref(sorted_sequence, values, right, out_dtype):
    """Where values would go in sorted rows; one row serves all values."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side=side).astype(out_dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    wanted = values.reshape(-1, values.shape[-1])
    return np.stack([np.searchsorted(r, v, side=side) for r, v in zip(rows, wanted, strict=True)]).reshape(values.shape).astype(out_dtype)


def gather_python(data, axis, indices):
    """Elements of `data` at `indices` along an axis."""
    return np.take_along_axis(data, indices.astype("int64"), axis)


def gather_nd_python(a_np, indices_np):
    """Elements, or slices, at the indices along the first dimension."""
    return a_np[tuple(indices_np.astype("int64"))]


def slice_axis_python(data, axis, begin, end=None):
    """`data[begin:end]` along an axis."""
    at = [slice(None)] * data.ndim
    at[axis] = slice(begin, end)
    return data[tuple(at)]


def _slices(data, begin, end, strides, slice_mode, axes):
    strides = [] if strides is None else [strides] if isinstance(strides, int) else list(strides)
    axes = range(data.ndim) if axes is None else [a % data.ndim for a in axes]
    at = [slice(None)] * data.ndim
    for k, axis in enumerate(axes):
        first = begin[k] if k < len(begin) else None
        last = end[k] if k < len(end) else None
        step = 1 if slice_mode == "size" else strides[k] if k < len(strides) else strides[0] if len(strides) == 1 and k < len(begin) else 1
        if slice_mode == "size" and last is not None:
            first = first or 0
            last = None if last < 0 else first + last
        at[axis] = slice(first, last, step)
    return tuple(at)


def strided_slice_python(data, begin, end, strides, slice_mode="end", axes=None):
    """`data[begin:end:strides]`; with slice_mode="size" `end` has extents, -1 for all that remain."""
    return data[_slices(data, begin, end, strides, slice_mode, axes)]


def strided_set_python(data, v, begin, end, strides):
    """`data` with `data[begin:end:strides]` replaced by `v`."""
    out = np.array(data)
    out[_slices(data, begin, end, strides, "end", None)] = v
    return out


def matrix_set_diag(input_np, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with the diagonals `k`, a number or the lowest and highest, replaced; `align` says to which end the shorter ones above,
    and below, the main one are padded."""
    out = np.array(input_np)
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    rows, columns = out.shape[-2:]
    above, below = align.split("_")
    many = low != high
    longest = min(rows + min(high, 0), columns - max(low, 0))
    for d in range(low, high + 1):
        length = min(rows + min(d, 0), columns - max(d, 0))
        values = diagonal[..., high - d, :] if many else diagonal
        skip = longest - length if many and (above if d >= 0 else below) == "RIGHT" else 0
        i = np.arange(length)
        out[..., i + max(-d, 0), i + max(d, 0)] = values[..., skip : skip + length]
    return out


def dilate_python(input_np, strides, dilation_value=0.0):
    """`dilation_value` between elements: strides[d] - 1 of them along each dimension."""
    out = np.full([max(0, (n - 1) * s + 1) for n, s in zip(input_np.shape, strides, strict=True)], dilation_value, input_np.dtype)
    out[tuple(slice(None, None, s) for s in strides)] = input_np
    return out


def depth_to_space_python(data, block_size, mode="DCR"):
    """(N, C, H, W) with parts of the channels as blocks of the image."""
    n, c, h, w = data.shape
    b, rest = block_size, c // block_size**2
    if mode == "DCR":
        parts = data.reshape(n, b, b, rest, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(n, rest, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, rest, h * b, w * b)


def space_to_depth_python(data, block_size):
    """(N, C, H, W) with blocks of the image as channels."""
    n, c, h, w = data.shape
    b = block_size
    return data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * b * b, h // b, w // b)


def space_to_batch_nd_python(data, block_shape, pad_before, pad_after, pad_value=0):
    """Blocks of the dimensions behind the batch, padded, as further images of the batch."""
    count = len(block_shape)
    widths = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * (data.ndim - 1 - count)]
    x = np.pad(data, widths, constant_values=pad_value)
    shape = [x.shape[0]]
    for d, b in enumerate(block_shape):
        shape += [x.shape[d + 1] // b, b]
    x = x.reshape([*shape, *x.shape[count + 1 :]])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count + 1, 2), *range(2 * count + 1, x.ndim)]
    x = x.transpose(order)
    return x.reshape([int(np.prod(x.shape[: count + 1])), *x.shape[count + 1 :]])


def batch_to_space_nd_python(data, block_shape, crop_begin_list, crop_end_list):
    """Images of the batch as blocks of the dimensions behind it, cropped."""
    count = len(block_shape)
    batch = data.shape[0] // int(np.prod(block_shape))
    x = data.reshape([*block_shape, batch, *data.shape[1:]])
    order = [count]
    for d in range(count):
        order += [count + 1 + d, d]
    x = x.transpose([*order, *range(2 * count + 1, x.ndim)])
    x = x.reshape([batch, *(data.shape[d + 1] * b for d, b in enumerate(block_shape)), *data.shape[count + 1 :]])
    at = [slice(None)] + [slice(b, x.shape[d + 1] - e) for d, (b, e) in enumerate(zip(crop_begin_list, crop_end_list, strict=True))]
    return x[tuple(at)]


def dense(x, y, bias, use_bias=False, use_relu=False, out_dtype=None):
    """x @ y.T, with a bias and cut at zero where that is asked for."""
    out = np.matmul(x.astype(out_dtype or x.dtype), y.T.astype(out_dtype or x.dtype))
    out = out + bias if use_bias else out
    return np.maximum(out, 0) if use_relu else out
