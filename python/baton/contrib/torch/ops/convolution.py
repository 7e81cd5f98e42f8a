# SPDX-License-Identifier: Apache-2.0
"""Convolutions."""

from __future__ import annotations

from ..registry import aten

_LAYOUT = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}


def _as_long(values, n):
    values = [values] if isinstance(values, int) else list(values)
    return values * n if len(values) == 1 else values


def _convolve(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    n = weight.ndim - 2
    data = x.expr if x.ndim == n + 2 else c.expand_dims(x.expr, 0)
    stride, padding, dilation = (c.known(*_as_long(v, n)) for v in (stride, padding, dilation))
    layout, plain, turned = _LAYOUT[n]
    given = {
        "strides": stride,
        "padding": padding * 2,
        "dilation": dilation,
        "groups": int(groups),
        "data_layout": layout,
        "kernel_layout": turned if transposed else plain,
        "kernel_size": c.extents(weight.shape[2:]),
        "channels": c.extent(weight.shape[1] * groups if transposed else weight.shape[0]),
    }
    if transposed:
        out = c(f"nn.conv{n}d_transpose", data, weight, output_padding=c.known(*_as_long(output_padding, n)), **given)
    else:
        out = c(f"nn.conv{n}d", data, weight, **given)
    if bias is not None:
        out = c("nn.bias_add", out, bias, axis=1)
    return out if x.ndim == n + 2 else c.squeeze(out, [0])


@aten("convolution.default")
def convolution(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return _convolve(c, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _direct(n):
    @aten(f"conv{n}d.default", f"conv{n}d.padding")
    def plain(c, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if isinstance(padding, str):
            return _padded(c, x, weight, bias, stride, padding, dilation, groups)
        return _convolve(c, x, weight, bias, stride, padding, dilation, False, 0, groups)

    @aten(f"conv_transpose{n}d.{'input' if n > 1 else 'default'}")
    def turned(c, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return _convolve(c, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


for _n in (1, 2, 3):
    _direct(_n)


def _padded(c, x, weight, bias, stride, padding, dilation, groups):
    """padding="same" puts the larger half of an odd margin behind; "valid" pads nothing."""
    n = weight.ndim - 2
    if padding == "valid":
        return _convolve(c, x, weight, bias, stride, 0, dilation, False, 0, groups)
    dilation = _as_long(dilation, n)
    total = [d * (k - 1) for d, k in zip(dilation, c.known(*weight.shape[2:]), strict=True)]
    pairs = [[t // 2, t - t // 2] for t in total]
    value = c("nn.pad", x, c.const(0, x.dtype), pad_width=[[0, 0]] * (x.ndim - n) + pairs)
    return _convolve(c, _Padded(value, x), weight, bias, stride, 0, dilation, False, 0, groups)


class _Padded:
    """A padded tensor where only its rank is asked."""

    def __init__(self, expr, x):
        self.expr, self.ndim = expr, x.ndim


@aten("convolution_backward.default")
def convolution_backward(c, grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask):
    n = weight.ndim - 2
    stride, padding, dilation = (c.known(*_as_long(v, n)) for v in (stride, padding, dilation))
    groups = int(groups)
    layout, plain, turned = _LAYOUT[n]
    extents = c.known(*weight.shape[2:])
    common = {"strides": stride, "padding": padding * 2, "dilation": dilation, "groups": groups, "data_layout": layout}
    out = [None, None, None]
    if output_mask[0] and transposed:
        out[0] = c(f"nn.conv{n}d", grad, weight, **common, kernel_layout=plain, kernel_size=extents, channels=int(x.shape[1]))
    elif output_mask[0]:
        # Rows of `x` beyond the last window get nothing: the transposed convolution is as much longer.
        sizes, grads = c.known(*x.shape[2:]), c.known(*grad.shape[2:])
        more = [s - ((g - 1) * st - 2 * p + d * (k - 1) + 1) for s, g, st, p, d, k in zip(sizes, grads, stride, padding, dilation, extents, strict=True)]
        out[0] = c(f"nn.conv{n}d_transpose", grad, weight, **common, kernel_layout=turned, kernel_size=extents, channels=int(x.shape[1]), output_padding=more)
    if output_mask[1]:
        a, b = (x, grad) if transposed else (grad, x)
        count = c.known(weight.shape[0])[0]
        out[1] = c(f"nn.conv{n}d_backward_weight", a, b, **common, kernel_layout=plain, kernel_size=extents, channels=count)
    if output_mask[2]:
        out[2] = c("sum", grad, axis=[0, *range(2, n + 2)])
    return out


@aten("col2im.default")
def col2im(c, x, output_size, kernel_size, dilation, padding, stride):
    value = x.expr if x.ndim == 3 else c.expand_dims(x, 0)
    out = c(
        "col2im",
        value,
        image_shape=c.known(*output_size),
        block_shape=list(kernel_size),
        dilations=list(dilation),
        pads=list(padding) * 2,
        strides=list(stride),
    )
    return out if x.ndim == 3 else c.squeeze(out, [0])


@aten("im2col.default")
def im2col(c, x, kernel_size, dilation, padding, stride):
    import numpy as np

    value = x.expr if x.ndim == 4 else c.expand_dims(x, 0)
    batch, channels, height, width = x.shape if x.ndim == 4 else (1, *x.shape)
    height, width = c.known(height, width)
    value = c("nn.pad", value, c.const(0, x.dtype), pad_width=[[0, 0], [0, 0], [padding[0]] * 2, [padding[1]] * 2])
    counts = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, d, k, s in zip((height, width), padding, dilation, kernel_size, stride, strict=True)]
    rows, columns = (np.arange(k)[:, None] * d + np.arange(n)[None, :] * s for k, d, n, s in zip(kernel_size, dilation, counts, stride, strict=True))
    value = c("take", value, c.const(rows, "int64"), axis=2)  # (N, C, kh, oh, W)
    value = c("take", value, c.const(columns, "int64"), axis=4)  # (N, C, kh, oh, kw, ow)
    value = c.transpose(value, [0, 1, 2, 4, 3, 5])
    return c.reshape(value, c.shape)
