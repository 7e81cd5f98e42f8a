# SPDX-License-Identifier: Apache-2.0
"""References of operators in NumPy, to compare results with. Accumulation is in float64 where that is wider."""

from ..schedules import dispatch
from ..schedules import of_target as get_broadcast_schedule
from ..schedules import of_target as get_elemwise_schedule
from ..schedules import of_target as get_injective_schedule
from ..schedules import of_target as get_reduce_schedule
from .data import (
    batch_matmul,
    batch_to_space_nd_python,
    dense,
    depth_to_space_python,
    dilate_python,
    gather_nd_python,
    gather_python,
    l2_normalize_python,
    log_softmax_python,
    lrn_python,
    matrix_set_diag,
    nll_loss,
    one_hot,
    searchsorted_ref,
    sequence_mask,
    slice_axis_python,
    softmax_python,
    space_to_batch_nd_python,
    space_to_depth_python,
    strided_set_python,
    strided_slice_python,
)
from .image import (
    affine_grid_python,
    correlation_nchw_python,
    crop_and_resize_python,
    grid_sample_nchw_python,
    reorg_python,
    resize1d_python,
    resize2d_python,
    resize3d_python,
    roi_align_nchw_python,
    roi_align_nhwc_python,
    roi_pool_nchw_python,
)
from .window import (
    adaptive_pool,
    conv1d_ncw_python,
    conv1d_transpose_ncw_python,
    conv2d_hwcn_python,
    conv2d_nchw_python,
    conv2d_nhwc_python,
    conv2d_transpose_nchw_python,
    conv2d_transpose_nhwc_python,
    conv3d_ncdhw_python,
    conv3d_ndhwc_python,
    conv3d_transpose_ncdhw_python,
    deformable_conv2d_nchw_python,
    deformable_conv2d_nhwc_python,
    depthwise_conv2d_python_nchw,
    depthwise_conv2d_python_nhwc,
    pool_grad_nchw,
    poolnd_python,
)


def get_conv2d_nchw_implement(target):
    """(what computes a convolution of (N, C, H, W), its schedule) for a target."""
    from ..nn import conv2d_nchw

    return conv2d_nchw, get_injective_schedule(target)


__all__ = [
    "adaptive_pool",
    "affine_grid_python",
    "batch_matmul",
    "batch_to_space_nd_python",
    "conv1d_ncw_python",
    "conv1d_transpose_ncw_python",
    "conv2d_hwcn_python",
    "conv2d_nchw_python",
    "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python",
    "conv2d_transpose_nhwc_python",
    "conv3d_ncdhw_python",
    "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python",
    "correlation_nchw_python",
    "crop_and_resize_python",
    "deformable_conv2d_nchw_python",
    "deformable_conv2d_nhwc_python",
    "dense",
    "depth_to_space_python",
    "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nhwc",
    "dilate_python",
    "dispatch",
    "gather_nd_python",
    "gather_python",
    "get_broadcast_schedule",
    "get_conv2d_nchw_implement",
    "get_elemwise_schedule",
    "get_injective_schedule",
    "get_reduce_schedule",
    "grid_sample_nchw_python",
    "l2_normalize_python",
    "log_softmax_python",
    "lrn_python",
    "matrix_set_diag",
    "nll_loss",
    "one_hot",
    "pool_grad_nchw",
    "poolnd_python",
    "reorg_python",
    "resize1d_python",
    "resize2d_python",
    "resize3d_python",
    "roi_align_nchw_python",
    "roi_align_nhwc_python",
    "roi_pool_nchw_python",
    "searchsorted_ref",
    "sequence_mask",
    "slice_axis_python",
    "softmax_python",
    "space_to_batch_nd_python",
    "space_to_depth_python",
    "strided_set_python",
    "strided_slice_python",
]
