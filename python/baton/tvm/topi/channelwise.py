# SPDX-License-Identifier: Apache-2.0
"""Gradients of depthwise convolutions, and the rest of what `baton.topi.nn` has of convolutions: blocks of channels, groups, and what transposed ones are
made of."""

from ... import te, tir
from .convolutions import conv2d_NCHWc, margins
from .functions import apply, find_operator


def _relay():
    return find_operator("nn")


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(int(v) for v in value)


def _before(padding, window):
    """Rows and columns of padding before an image."""
    pads = margins(padding, _Window(window), "HW")
    pads = [pads] * 2 if isinstance(pads, int) else [int(p) for p in pads]
    return pads[0], pads[1] if len(pads) > 1 else pads[0]


class _Window:
    """A shape alone, for `margins`."""

    def __init__(self, shape):
        self.shape = shape


def _inside(row, height, column, width):
    return tir.all(row >= 0, row < height, column >= 0, column < width)


def depthwise_conv2d_backward_input_nhwc(Filter, Out_grad, oshape, ishape, stride, padding):  # noqa: N803
    """The gradient of a depthwise convolution's input. Filter: (H, W, C, multiplier); Out_grad: (N, H, W, C * multiplier), of shape `oshape`; result:
    (N, H, W, C), of shape `ishape`."""
    high, wide, _, many = (int(d) for d in Filter.shape)
    (down, right), (top, left) = _pair(stride), _before(padding, (high, wide))
    _, height, width, _ = (int(d) for d in oshape)
    dh, dw, dm = te.reduce_axis((0, high), "dh"), te.reduce_axis((0, wide), "dw"), te.reduce_axis((0, many), "dm")

    def element(b, i, j, c):
        row, column = i + top - dh, j + left - dw
        met = tir.all(tir.floormod(row, down) == 0, tir.floormod(column, right) == 0)
        row, column = tir.floordiv(row, down), tir.floordiv(column, right)
        term = Out_grad[b, row, column, c * many + dm] * Filter[dh, dw, c, dm]
        return te.sum(tir.if_then_else(tir.all(met, _inside(row, height, column, width)), term, tir.const(0, Out_grad.dtype)), axis=[dh, dw, dm])

    return te.compute(tuple(int(d) for d in ishape), element, name="in_grad", tag="depthwise_conv2d_backward_input_nhwc")


def depthwise_conv2d_backward_weight_nhwc(Input, Out_grad, oshape, fshape, stride, padding):  # noqa: N803
    """The gradient of a depthwise convolution's weight. Input: (N, H, W, C); Out_grad: (N, H, W, C * multiplier), of shape `oshape`; result: (H, W, C,
    multiplier), of shape `fshape`."""
    high, wide, _, many = (int(d) for d in fshape)
    (down, right), (top, left) = _pair(stride), _before(padding, (high, wide))
    batch, rows, columns, _ = (int(d) for d in oshape)
    _, height, width, _ = (int(d) for d in Input.shape)
    b, i, j = te.reduce_axis((0, batch), "b"), te.reduce_axis((0, rows), "i"), te.reduce_axis((0, columns), "j")

    def element(dh, dw, c, m):
        row, column = i * down + dh - top, j * right + dw - left
        term = Out_grad[b, i, j, c * many + m] * Input[b, row, column, c]
        return te.sum(tir.if_then_else(_inside(row, height, column, width), term, tir.const(0, Input.dtype)), axis=[b, i, j])

    return te.compute(tuple(int(d) for d in fshape), element, name="weight_grad", tag="depthwise_conv2d_backward_weight_nhwc")


def depthwise_conv2d_NCHWc(Input, Filter, stride, padding, dilation, layout, out_layout, out_dtype=None):  # noqa: N802, N803
    """A convolution of each channel by itself, in blocks: (N, C / c, H, W, c) with (C / c, 1, H, W, 1, c)."""
    blocks, lanes = int(Input.shape[1]), int(Input.shape[4])
    padding = margins(padding, Filter, "OIHW", dilation)
    return apply(
        _relay().conv2d,
        Input,
        Filter,
        stride,
        padding,
        dilation,
        groups=blocks * lanes,
        data_layout=layout,
        kernel_layout=f"OIHW1i{int(Filter.shape[5])}o",
        out_layout=out_layout,
        out_dtype=out_dtype or "",
    )


def conv2d_NCHWc_int8(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype="int32"):  # noqa: N802
    """`conv2d_NCHWc` of bytes, whose weight has four input channels behind each output's: (O / o, I / i, H, W, i / 4, o, 4)."""
    if len(kernel.shape) == 7:
        blocks, inputs, high, wide, fours, lanes, _ = (int(d) for d in kernel.shape)
        turned = apply(find_operator("transpose"), kernel, (0, 1, 2, 3, 4, 6, 5))
        kernel = apply(find_operator("reshape"), turned, (blocks, inputs, high, wide, fours * 4, lanes))
    return conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype)


def group_conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding, groups):
    """A transposed convolution of groups of channels, (N, C, W) with (I, O / groups, W)."""
    padding = margins(padding, kernel, "IOW")
    return apply(_relay().conv1d_transpose, data, kernel, stride, padding, output_padding=output_padding, groups=groups, out_dtype=out_dtype or "")


def conv(inp, filt, stride, padding, dilation, groups, order, out_dtype=None):
    """A convolution over one to three dimensions. order: the dimensions of `inp`, as "NCHW" or "NHWC"; `filt` is (O, I, ...) where C comes second, and
    (..., I, O) where it comes last."""
    space = order.replace("N", "").replace("C", "")
    if len(space) not in (1, 2, 3) or sorted(order) != sorted("NC" + space):
        raise ValueError(f'order is "{order}"; it is N, C and one to three dimensions, as "NCHW"')
    kernel = "OI" + space if order[1] == "C" else space + "IO"
    padding = margins(padding, filt, kernel, dilation)
    call = getattr(_relay(), f"conv{len(space)}d")
    return apply(call, inp, filt, stride, padding, dilation, groups=groups, data_layout=order, kernel_layout=kernel, out_dtype=out_dtype or "")


def _preprocess(data, kernel, strides, padding, output_padding):
    """Data with zeros between and around its elements, and the kernel turned around, whose plain convolution is the transposed one."""
    space = len(data.shape) - 2
    steps = [strides] * space if isinstance(strides, int) else [int(s) for s in strides]
    more = [output_padding] * space if isinstance(output_padding, int) else [int(p) for p in output_padding]
    letters = "DHW"[-space:]
    pads = margins(padding, kernel, "IO" + letters)
    pads = [pads] * space if isinstance(pads, int) else [int(p) for p in pads]
    before, after = pads[:space], pads[space:] or pads[:space]
    window = [int(d) for d in kernel.shape][2:]
    for extra, step in zip(more, steps, strict=True):
        if extra >= step:
            raise ValueError(f"output_padding has {extra}, which must be below the stride of {step}")
    around = [(0, 0), (0, 0)] + [(n - 1 - b, n - 1 - a + m) for n, b, a, m in zip(window, before, after, more, strict=True)]

    def stretched(x):
        return _relay().pad(_relay().dilate(x, [1, 1, *steps]), around)

    def turned(w):
        for axis in range(2, 2 + space):
            w = find_operator("reverse")(w, axis)
        return find_operator("transpose")(w, [1, 0, *range(2, 2 + space)])

    return apply(stretched, data), apply(turned, kernel)


def conv2d_transpose_nchw_preprocess(data, kernel, strides, padding, out_dtype, output_padding):
    """Returns (data, kernel) whose plain convolution is the transposed one."""
    return _preprocess(data, kernel, strides, padding, output_padding)


def conv3d_transpose_ncdhw_preprocess(data, kernel, strides, padding, out_dtype, output_padding):
    """Returns (data, kernel) whose plain convolution over volumes is the transposed one."""
    return _preprocess(data, kernel, strides, padding, output_padding)


__all__ = [
    "conv",
    "conv2d_NCHWc_int8",
    "conv2d_transpose_nchw_preprocess",
    "conv3d_transpose_ncdhw_preprocess",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "group_conv1d_transpose_ncw",
]
