# SPDX-License-Identifier: Apache-2.0
"""Operators of networks on tensors of tensor expressions. All others are those of `baton.relay.nn`."""

import re

from .channelwise import (
    conv,
    conv2d_NCHWc_int8,
    conv2d_transpose_nchw_preprocess,
    conv3d_transpose_ncdhw_preprocess,
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
    depthwise_conv2d_NCHWc,
    group_conv1d_transpose_ncw,
)
from .convolutions import (
    conv1d_ncw,
    conv1d_nwc,
    conv1d_transpose_ncw,
    conv2d_hwcn,
    conv2d_NCHWc,
    conv3d_ndhwc,
    conv3d_transpose_ncdhw,
    correlation_nchw,
    deformable_conv2d_nchw,
    deformable_conv2d_nhwc,
    depthwise_conv2d_nhwc,
    group_conv2d_nhwc,
    margins,
    pool_grad,
    unpack_NCHWc_to_nchw,
)
from .functions import apply, find_operator, operators
from .layouts import (
    batch_matmul_legalize,
    conv2d_alter_layout,
    conv2d_legalize,
    conv2d_transpose_legalize,
    conv3d_alter_layout,
    dense_alter_layout,
    dense_legalize,
)


def _relay():
    return find_operator("nn")


def _dims(x):
    return [int(d) for d in x.shape]


def _channels(weight, layout):
    return int(weight.shape[layout.index("O")])


def conv2d(input, filter, strides, padding, dilation, data_layout="NCHW", kernel_layout="", out_dtype=None, layout=None):  # noqa: A002
    """A convolution of an image with a weight. padding: numbers, "VALID" or "SAME". `layout`: another name of `data_layout`."""
    data_layout = layout or data_layout
    if re.match(r"(u?int|b?float)\d", kernel_layout):
        kernel_layout, out_dtype = "", kernel_layout  # (..., data_layout, out_dtype)
    kernel_layout = kernel_layout or {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}.get(data_layout, "OIHW")
    padding = margins(padding, filter, kernel_layout, dilation)
    return apply(_relay().conv2d, input, filter, strides, padding, dilation, data_layout=data_layout, kernel_layout=kernel_layout, out_dtype=out_dtype or "")


def conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """A convolution of (N, C, H, W) with (O, I, H, W)."""
    return conv2d(Input, Filter, stride, padding, dilation, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype="float32"):  # noqa: N803
    """A convolution of (N, H, W, C) with (H, W, I, O)."""
    return conv2d(Input, Filter, stride, padding, dilation, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """A convolution of groups of channels, (N, C, H, W) with (O, I / groups, H, W)."""
    padding = margins(padding, Filter, "OIHW", dilation)
    return apply(_relay().conv2d, Input, Filter, stride, padding, dilation, groups=groups, out_dtype=out_dtype or "")


def depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """A convolution of each channel by itself, (N, C, H, W) with (C, multiplier, H, W)."""
    channels, many, *window = _dims(Filter)
    weight = apply(_flat, Filter, (channels * many, 1, *window))
    return group_conv2d_nchw(Input, weight, stride, padding, dilation, channels, out_dtype)


def _flat(x, shape):
    return find_operator("reshape")(x, shape)


def conv2d_transpose_nchw(Input, Filter, strides, padding, out_dtype, output_padding=(0, 0)):  # noqa: N803
    """A transposed convolution, (N, C, H, W) with (I, O, H, W)."""
    padding = margins(padding, Filter, "IOHW")
    return apply(_relay().conv2d_transpose, Input, Filter, strides, padding, output_padding=output_padding, out_dtype=out_dtype or "")


def conv1d(data, kernel, strides=1, padding="VALID", dilation=1, data_layout="NCW", kernel_layout="", out_dtype=None):
    """A convolution of (N, C, W) with (O, I, W), or of (N, W, C) with (W, I, O). `padding`: numbers, "VALID" or "SAME"."""
    kernel_layout = kernel_layout or ("OIW" if data_layout == "NCW" else "WIO")
    padding = margins(padding, kernel, kernel_layout, dilation)
    return apply(
        _relay().conv1d,
        data,
        kernel,
        strides,
        padding,
        dilation,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_dtype=out_dtype or "",
    )


def conv3d_ncdhw(Input, Filter, stride, padding, dilation, groups=1, out_dtype=None):  # noqa: N803
    """A convolution of (N, C, D, H, W) with (O, I, D, H, W)."""
    padding = margins(padding, Filter, "OIDHW", dilation)
    return apply(_relay().conv3d, Input, Filter, stride, padding, dilation, groups, out_dtype=out_dtype or "")


def _pool(spatial, kind):
    if kind not in ("max", "avg"):
        raise ValueError(f'pool_type is "{kind}"; it is "max" or "avg"')
    return getattr(_relay(), f"{kind}_pool{spatial}d")


def pool1d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCW", count_include_pad=True):
    """The largest or the mean element ("max", "avg") of windows along a length."""
    return _pooled(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW", count_include_pad=True):
    """The largest or the mean element ("max", "avg") of windows of an image."""
    return _pooled(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCDHW", count_include_pad=True):
    """The largest or the mean element ("max", "avg") of windows of a volume."""
    return _pooled(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def _pooled(spatial, data, kernel, stride, dilation, padding, kind, ceil_mode, layout, count_include_pad):
    given = {"count_include_pad": count_include_pad} if kind == "avg" else {}
    return apply(_pool(spatial, kind), data, kernel, stride, dilation, padding, layout, ceil_mode=ceil_mode, **given)


def global_pool(data, pool_type, layout="NCHW"):
    """The largest or the mean element ("max", "avg") of each image and channel."""
    _pool(2, pool_type)
    return apply(getattr(_relay(), f"global_{pool_type}_pool2d"), data, layout=layout)


def adaptive_pool(data, output_size, pool_type, layout="NCHW"):
    """The largest or the mean element ("max", "avg") of `output_size` windows."""
    _pool(2, pool_type)
    return apply(getattr(_relay(), f"adaptive_{pool_type}_pool2d"), data, output_size, layout=layout)


def adaptive_pool1d(data, output_size, pool_type, layout="NCW"):
    """The largest or the mean element ("max", "avg") of `output_size` windows along a length."""
    _pool(1, pool_type)
    return apply(getattr(_relay(), f"adaptive_{pool_type}_pool1d"), data, output_size, layout=layout)


def adaptive_pool3d(data, output_size, pool_type, layout="NCDHW"):
    """The largest or the mean element ("max", "avg") of `output_size` windows of a volume."""
    _pool(3, pool_type)
    return apply(getattr(_relay(), f"adaptive_{pool_type}_pool3d"), data, output_size, layout=layout)


def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput"):
    """Elements before and after each dimension; the same after as before if not given."""
    after = pad_before if pad_after is None else pad_after
    return apply(_relay().pad, data, list(zip(pad_before, after, strict=True)), pad_value)


def mirror_pad(data, pad_before, pad_after=None, mode="SYMMETRIC", name="MirrorPadInput"):
    """Elements before and after each dimension, mirrored at its ends."""
    after = pad_before if pad_after is None else pad_after
    return apply(_relay().mirror_pad, data, list(zip(pad_before, after, strict=True)), mode)


def flatten(data):
    """(N, everything else)."""
    return apply(_relay().batch_flatten, data)


def dense(data, weight, bias=None, out_dtype=None, auto_scheduler_rewritten_layout=""):
    """`data` times the transpose of `weight`, plus a bias if there is one."""
    product = apply(_relay().dense, data, weight, out_dtype=out_dtype or "")
    return product if bias is None else apply(_relay().bias_add, product, bias, axis=-1)


def batch_matmul(tensor_a, tensor_b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True):
    """The products of the matrices of two tensors. `oshape` follows from theirs."""
    return apply(_relay().batch_matmul, tensor_a, tensor_b, out_dtype or "", transpose_a, transpose_b)


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False):
    """The product of two matrices, plus a bias if there is one."""
    product = apply(_relay().matmul, tensor_a, tensor_b, out_dtype=out_dtype or "", transpose_a=transpose_a, transpose_b=transpose_b)
    return product if bias is None else apply(_relay().bias_add, product, bias, axis=-1)


def lrn(data, size, axis=1, alpha=0.0001, beta=0.75, bias=2):
    """Each element by a power of the sum of squares around it."""
    return apply(_relay().lrn, data, size, axis, bias, alpha, beta)


def scale_shift_nchw(Input, Scale, Shift):  # noqa: N803
    """Each channel of (N, C, H, W) times a number, plus a number."""
    return apply(_scale_shift, Input, Scale, Shift, (-1, 1, 1))


def scale_shift_nhwc(Input, Scale, Shift):  # noqa: N803
    """Each channel of (N, H, W, C) times a number, plus a number."""
    return apply(_scale_shift, Input, Scale, Shift, (-1,))


def _scale_shift(x, scale, shift, shape):
    return find_operator("add")(find_operator("multiply")(x, _flat(scale, shape)), _flat(shift, shape))


def scale_shift_nchwc(Input, Scale, Shift):  # noqa: N803
    """Each channel of (N, C / c, H, W, c) times a number, plus a number; both are (C / c, c)."""
    shape = (_dims(Scale)[0], 1, 1, _dims(Scale)[1])
    return apply(_scale_shift, Input, Scale, Shift, shape)


def batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list):
    """Images of a batch as blocks of larger ones, without some elements at their ends."""
    return apply(_relay().batch_to_space_nd, data, block_shape, list(zip(crop_begin_list, crop_end_list, strict=True)))


def space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value=0.0):
    """Places within blocks of images as a batch, after padding."""
    return apply(_relay().space_to_batch_nd, data, block_shape, list(zip(pad_before, pad_after, strict=True)), pad_value)


def sparse_dense(dense_data, sparse_data, sparse_indices, sparse_indptr, sparse_lhs=False):
    """`nn.dense` where one operand is sparse, in compressed rows."""
    return apply(_relay().sparse_dense, dense_data, (sparse_data, sparse_indices, sparse_indptr), sparse_lhs=sparse_lhs)


def sparse_dense_sp_rhs(data, weight_data, weight_indices, weight_indptr):
    """`dense` of a sparse weight in compressed rows."""
    return sparse_dense(data, weight_data, weight_indices, weight_indptr)


def sparse_dense_sp_lhs(data_data, data_indices, data_indptr, weight):
    """`dense` of sparse data in compressed rows."""
    return sparse_dense(weight, data_data, data_indices, data_indptr, sparse_lhs=True)


def sparse_transpose(sparse_data, sparse_indices, sparse_indptr):
    """The transpose of a sparse square matrix in compressed rows."""
    return apply(_relay().sparse_transpose, (sparse_data, sparse_indices, sparse_indptr))


def sparse_add(dense_data, sparse_data, sparse_indices, sparse_indptr):
    """The sum of a matrix and a sparse one in compressed rows."""
    return apply(_relay().sparse_add, dense_data, (sparse_data, sparse_indices, sparse_indptr))


def bitserial_dense(data, weight, data_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True):
    """`dense` of numbers of few bits; with `unipolar` a bit of a weight is -1 or 1."""
    return apply(_relay().bitserial_dense, data, weight, None, data_bits, weight_bits, pack_dtype, out_dtype, unipolar)


def _bitserial(data, kernel, stride, padding, activation_bits, weight_bits, layout, kernel_layout, pack_dtype, out_dtype, unipolar):
    window = [_dims(kernel)[kernel_layout.index(letter)] for letter in "HW"]
    bits = {"activation_bits": activation_bits, "weight_bits": weight_bits, "pack_dtype": pack_dtype, "unipolar": unipolar}
    return apply(
        _relay().bitserial_conv2d,
        data,
        kernel,
        stride,
        margins(padding, kernel, kernel_layout),
        _channels(kernel, kernel_layout),
        window,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_dtype=out_dtype,
        **bits,
    )


def bitserial_conv2d_nchw(data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True):
    """`conv2d_nchw` of numbers of few bits; with `unipolar` a bit of a weight is -1 or 1."""
    return _bitserial(data, kernel, stride, padding, activation_bits, weight_bits, "NCHW", "OIHW", pack_dtype, out_dtype, unipolar)


def bitserial_conv2d_nhwc(data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True):
    """`conv2d_nhwc` of numbers of few bits, weights (H, W, I, O); with `unipolar` a bit of a weight is -1 or 1."""
    return _bitserial(data, kernel, stride, padding, activation_bits, weight_bits, "NHWC", "HWIO", pack_dtype, out_dtype, unipolar)


def binarize_pack(data, axis=None, name="PackedInput"):
    """Signs along an axis (the last), 32 in a uint32: 1 for what is not negative."""

    def pack(x):
        signs = find_operator("cast")(find_operator("greater_equal")(x, find_operator("zeros_like")(x)), "uint32")
        at = len(data.shape) - 1 if axis is None else axis
        return find_operator("squeeze")(_relay().bitpack(signs, 1, at, at + 1, "uint32"), [at + 1])

    return apply(pack, data)


def binary_dense(data, weight):
    """`dense` of packed signs (`binarize_pack`): how many agree less how many differ."""
    from ... import te
    from ...tir import popcount

    rows, words = _dims(data)
    units, _ = _dims(weight)
    k = te.reduce_axis((0, words), name="k")
    differ = te.compute((rows, units), lambda i, j: te.sum(popcount(data[i, k] ^ weight[j, k]).astype("int32"), axis=k), tag="binary_dense")
    return te.compute((rows, units), lambda i, j: 32 * words - 2 * differ(i, j), tag="elemwise")


def softmax_common(x, axis=-1, use_fast_exp=False):
    """Exponentials that sum to 1 along an axis."""
    return apply(_relay().fast_softmax if use_fast_exp else _relay().softmax, x, axis)


__all__ = [
    "conv",
    "conv2d_NCHWc_int8",
    "conv2d_transpose_nchw_preprocess",
    "conv3d_transpose_ncdhw_preprocess",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "group_conv1d_transpose_ncw",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "batch_matmul",
    "batch_matmul_legalize",
    "batch_to_space_nd",
    "binarize_pack",
    "binary_dense",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_alter_layout",
    "conv2d_hwcn",
    "conv2d_legalize",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_legalize",
    "conv2d_transpose_nchw",
    "conv3d_alter_layout",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "correlation_nchw",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "dense",
    "dense_alter_layout",
    "dense_legalize",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "flatten",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "lrn",
    "matmul",
    "mirror_pad",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "softmax_common",
    "space_to_batch_nd",
    "sparse_add",
    "sparse_dense",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
    "unpack_NCHWc_to_nchw",
]

__getattr__, __dir__ = operators("nn.", __name__, globals())
