# SPDX-License-Identifier: Apache-2.0
"""Convolutions and their like by the layout in their name; `baton.topi.nn` has them."""

from .functions import apply, find_operator


def _relay():
    return find_operator("nn")


def _dims(x):
    return [int(d) for d in x.shape]


def _reshape(x, shape):
    return apply(find_operator("reshape"), x, shape)


def margins(padding, kernel, layout, dilation=1):
    """Padding of a convolution by the layout of its weight: of "SAME" half the window, of "VALID" none, before and behind each dimension of space;
    numbers stay. Raises ValueError for other words."""
    if not isinstance(padding, str):
        return padding
    if padding not in ("VALID", "SAME"):
        raise ValueError(f'padding is "{padding}"; it is numbers, "VALID" or "SAME"')
    window = [int(kernel.shape[layout.index(x)]) for x in "DHW" if x in layout]
    steps = [dilation] * len(window) if isinstance(dilation, int) else [int(d) for d in dilation]
    whole = [0 if padding == "VALID" else (n - 1) * d for n, d in zip(window, steps, strict=True)]
    return [(n + 1) // 2 for n in whole] + [n // 2 for n in whole]


def conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """A convolution of (N, C, W) with (O, I, W)."""
    padding = margins(padding, kernel, "OIW", dilation)
    return apply(_relay().conv1d, data, kernel, strides, padding, dilation, out_dtype=out_dtype or "")


def conv1d_nwc(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """A convolution of (N, W, C) with (W, I, O)."""
    padding = margins(padding, kernel, "WIO", dilation)
    return apply(
        _relay().conv1d,
        data,
        kernel,
        strides,
        padding,
        dilation,
        data_layout="NWC",
        kernel_layout="WIO",
        out_dtype=out_dtype or "",
    )


def conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding=(0,)):
    """A transposed convolution, (N, C, W) with (I, O, W)."""
    padding = margins(padding, kernel, "IOW")
    return apply(_relay().conv1d_transpose, data, kernel, stride, padding, output_padding=output_padding, out_dtype=out_dtype or "")


def conv2d_hwcn(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """A convolution of (H, W, C, N) with (H, W, I, O)."""
    padding = margins(padding, Filter, "HWIO", dilation)
    data = apply(find_operator("transpose"), Input, (3, 2, 0, 1))
    made = apply(_relay().conv2d, data, Filter, stride, padding, dilation, kernel_layout="HWIO", out_dtype=out_dtype or "")
    return apply(find_operator("transpose"), made, (2, 3, 1, 0))


def conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype="float32"):  # noqa: N802
    """A convolution of (N, C / c, H, W, c) with (O / o, I / i, H, W, i, o)."""
    padding = margins(padding, kernel, "OIHWio", dilation)
    split = _dims(kernel)
    return apply(
        _relay().contrib_conv2d_nchwc,
        data,
        kernel,
        stride,
        padding,
        dilation,
        data_layout=layout,
        kernel_layout=f"OIHW{split[4]}i{split[5]}o",
        out_layout=out_layout,
        out_dtype=out_dtype,
        channels=split[0] * split[5],
        kernel_size=(split[2], split[3]),
    )


def unpack_NCHWc_to_nchw(packed_out, out_dtype):  # noqa: N802
    """(N, C / c, H, W, c) as (N, C, H, W)."""
    batch, chunks, height, width, block = _dims(packed_out)
    moved = apply(find_operator("transpose"), packed_out, (0, 1, 4, 2, 3))
    return apply(find_operator("cast"), _reshape(moved, (batch, chunks * block, height, width)), out_dtype)


def group_conv2d_nhwc(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """A convolution of groups of channels, (N, H, W, C) with (H, W, I / groups, O)."""
    padding = margins(padding, Filter, "HWIO", dilation)
    return apply(_relay().conv2d, Input, Filter, stride, padding, dilation, groups=groups, data_layout="NHWC", kernel_layout="HWIO", out_dtype=out_dtype or "")


def depthwise_conv2d_nhwc(Input, Filter, stride, padding, dilation, kernel_layout="HWOI", out_dtype=None):  # noqa: N803
    """A convolution of each channel by itself, (N, H, W, C) with (H, W, C, multiplier)."""
    if kernel_layout not in ("HWOI", "HWIO"):
        raise ValueError(f"kernel_layout is {kernel_layout!r}; it is \"HWOI\"")
    height, width, channels, many = _dims(Filter)
    weight = _reshape(Filter, (height, width, 1, channels * many))
    return group_conv2d_nhwc(Input, weight, stride, padding, dilation, channels, out_dtype)


def conv3d_ndhwc(Input, Filter, stride, padding, dilation, groups=1, out_dtype="float32"):  # noqa: N803
    """A convolution of (N, D, H, W, C) with (D, H, W, I, O)."""
    padding = margins(padding, Filter, "DHWIO", dilation)
    return apply(_relay().conv3d, Input, Filter, stride, padding, dilation, groups, data_layout="NDHWC", kernel_layout="DHWIO", out_dtype=out_dtype or "")


def conv3d_transpose_ncdhw(Input, Filter, strides, padding, out_dtype, output_padding=(0, 0, 0)):  # noqa: N803
    """A transposed convolution, (N, C, D, H, W) with (I, O, D, H, W)."""
    padding = margins(padding, Filter, "IODHW")
    return apply(_relay().conv3d_transpose, Input, Filter, strides, padding, output_padding=output_padding, out_dtype=out_dtype or "")


def deformable_conv2d_nchw(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype):
    """A convolution of (N, C, H, W) whose windows' elements are moved by `offset`."""
    padding = margins(padding, kernel, "OIHW", dilation)
    return apply(_relay().deformable_conv2d, data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype=out_dtype or "")


def deformable_conv2d_nhwc(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype):
    """A convolution of (N, H, W, C) with (H, W, I, O), whose windows' elements are moved by `offset` (N, H, W, 2 * elements)."""
    padding = margins(padding, kernel, "HWIO", dilation)

    def call(x, moves, weight):
        transpose = find_operator("transpose")
        made = _relay().deformable_conv2d(
            transpose(x, (0, 3, 1, 2)),
            transpose(moves, (0, 3, 1, 2)),
            transpose(weight, (3, 2, 0, 1)),
            strides,
            padding,
            dilation,
            deformable_groups,
            groups,
            out_dtype=out_dtype or "",
        )
        return transpose(made, (0, 2, 3, 1))

    return apply(call, data, offset, kernel)


def correlation_nchw(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply):
    """How alike the patches of two images are."""
    return apply(_relay().correlation, data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply)


def pool_grad(grads, data, kernel, stride, padding, pool_type, ceil_mode=False, count_include_pad=True, layout="NCHW"):
    """The gradient of `pool2d`."""
    if pool_type not in ("max", "avg"):
        raise ValueError(f'pool_type is "{pool_type}"; it is "max" or "avg"')
    given = {"count_include_pad": count_include_pad} if pool_type == "avg" else {}
    return apply(getattr(_relay(), f"{pool_type}_pool2d_grad"), grads, data, kernel, stride, padding, layout, ceil_mode=ceil_mode, **given)


__all__ = [
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d_NCHWc",
    "conv2d_hwcn",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "correlation_nchw",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "depthwise_conv2d_nhwc",
    "group_conv2d_nhwc",
    "margins",
    "pool_grad",
    "unpack_NCHWc_to_nchw",
]
