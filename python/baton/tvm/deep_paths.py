# SPDX-License-Identifier: Apache-2.0
"""Paths of files inside packages: programs write `from baton.relay.op.nn.nn import conv2d`, or `from baton.topi.nn.pad import pad`. Each is the
package itself, which has all its functions."""

import sys

from .tables import former

_OF_TARGETS = "arm_cpu bifrost cuda generic hexagon hls intel_graphics mali rocm x86"
# Files of the targets' packages, those of all of them together.
_TARGET = """argwhere batch_matmul batch_matmul_tensorcore binarize_pack binary_dense bitserial_conv2d bitserial_dense conv1d conv1d_transpose
conv1d_transpose_ncw conv2d conv2d_alter_op conv2d_avx_1x1 conv2d_avx_common conv2d_direct conv2d_gemm conv2d_hwcn conv2d_hwnc_tensorcore conv2d_int8
conv2d_nhwc conv2d_nhwc_tensorcore conv2d_spatial_pack conv2d_transpose conv2d_transpose_nchw conv3d conv3d_alter_op conv3d_direct
conv3d_ndhwc_tensorcore conv3d_transpose conv3d_transpose_ncdhw correlation cortex_m7 cortex_m7.conv2d cortex_m7.conv2d.direct
cortex_m7.conv2d.direct_simd cortex_m7.micro_kernel cortex_m7.micro_kernel.gemm default deformable_conv2d dense dense_alter_op dense_tensorcore
depthwise_conv2d extern gemm group_conv2d group_conv2d_nchw image injective math math_alter_op nms nn pooling random rcnn rcnn.proposal reduction
roi_align scan scatter search searchsorted softmax sort sparse sparse_reshape ssd ssd.multibox tensor_intrin tensorcore_alter_op transform transforms
unique upsampling utils vision"""
_TESTING = """adaptive_pool_python batch_matmul batch_norm batch_to_space_nd bilinear_resize_python common conv1d_ncw_python conv1d_transpose_ncw_python
conv2d_hwcn_python conv2d_nchw_python conv2d_nhwc_python conv2d_transpose_python conv3d_ncdhw_python conv3d_ndhwc_python
conv3d_transpose_ncdhw_python correlation_nchw_python crop_and_resize_python deformable_conv2d_python dense depth_to_space depthwise_conv2d_python
dilate_python gather_nd_python gather_python grid_sample_python l2_normalize_python lrn_python matrix_set_diag nll_loss one_hot pool3d_python
pool_grad_python pool_python poolnd_python reorg_python resize_python roi_align_python roi_pool_python searchsorted sequence_mask_python
slice_axis_python softmax_python space_to_batch_nd space_to_depth strided_slice_python tensor_intrin upsampling_python"""

# Module -> names below it -> the module that they stand for: it itself for "", else one below it.
PATHS = {
    "baton.tvm.topi_targets": {"": _TARGET},
    "baton.tvm.topi_vision": {"": "multibox proposal roi_align roi_pool"},
    "baton.tvm.op_strategy": {"": "adreno arm_cpu bifrost cuda generic hexagon hls intel_graphics mali rocm x86"},
    "baton.ir.diagnostics": {"": "_ffi_api"},
    "baton.relay": {"": "debug"},
    "baton.relay.analysis": {"": "count_layers feature"},
    "baton.tvm.data_dep_optimization": {"": "bsr_conv2d bsr_dense simplify_fc_transpose utils"},
    "baton.relay.dataflow_pattern": {"": "_ffi"},
    "baton.relay.op": {
        "": "_algorithm _math _tensor _tensor_grad _transform_grad",
        "annotation": "_make annotation",
        "dyn": "_algorithm _make _tensor _transform image image._image image._make nn nn._make nn._nn",
        "image": "_image _make image",
        "memory": "_make memory",
        "nn": "_make _nn nn utils",
        "random": "_kernel _make kernel",
        "vision": "_make _rcnn _vision _yolo multibox nms rcnn yolo",
        "vm": "_ffi_api vm",
    },
    "baton.relay.qnn.op": {"": "_make _qnn _requantize op"},
    "baton.tvm.quantize": {"": "_annotate _calibrate _partition _partition_conversions _quantize kl_divergence quantize"},
    "baton.tvm.relay_testing": {"": "config"},
    "baton.rpc": {"": "_ffi_api base client minrpc tornado_util"},
    "baton.target": {"": "_ffi_api generic_func se_scope target virtual_device"},
    "baton.te.hybrid": {"": "calls parser preprocessor runtime utils"},
    "baton.tir.analysis": {"": "_ffi_api analysis"},
    "baton.tir.transform": {"": "_ffi_api function_pass transform"},
    "baton.tvm.topi": {
        "": """argwhere cpp cpp.cuda cpp.generic cpp.impl cpp.nn cpp.rocm cpp.utils cpp.vision cpp.vision.yolo cpp.x86 einsum elemwise generic_op_impl scan
scatter scatter_add searchsorted sort sparse_fill_empty_rows sparse_reshape unique""",
    },
    "baton.tvm.topi.image": {"": "dilation2d grid_sample resize"},
    "baton.tvm.topi.nn": {
        "": """batch_matmul batch_to_space_nd bitserial_conv2d bitserial_dense bitserial_util bnn conv1d conv1d_transpose conv2d conv2d_transpose conv3d
conv3d_transpose correlation deformable_conv2d dense depth_to_space depthwise_conv2d dilate elemwise fifo_buffer flatten local_response_norm loss mapping
pad pooling softmax space_to_batch_nd space_to_depth sparse upsampling"""
    },
    "baton.tvm.topi.random": {"": "kernel"},
    "baton.tvm.topi.sparse": {"": "csrmm csrmv dense"},
    "baton.tvm.topi.testing": {"": _TESTING},
    "baton.tvm.topi.vision": {"": "nms nms_util reorg yolo"},
}
# The targets' packages are one module, by several paths.
ALSO = {
    "baton.tvm.op_strategy": ["baton.relay.op.strategy"],
    "baton.tvm.topi_targets": [f"baton.topi.{name}" for name in _OF_TARGETS.split()],
    "baton.tvm.topi_vision": ["baton.topi.vision.rcnn", "baton.topi.vision.ssd"],
}


def _homes(module, below):
    """The packages in which files of a module have paths: the module, or that below it, by all its paths."""
    return ALSO.get(module.__name__, [f"{former(module.__name__)}.{below}".rstrip(".")])


def below(module, name):
    """Returns the substitute of a path right below a module; None where there is none of that name."""
    return next((found for home in _homes(module, "") if (found := sys.modules.get(f"{home}.{name}")) is not None), None)


def enter(module):
    """Makes the paths below a module known. They are not attributes of it: what it has under such a name, as `topi.nn.conv2d`, stays."""
    if not hasattr(module, "__path__"):
        module.__path__ = []  # paths go through it
    for below, names in PATHS.get(module.__name__, {}).items():
        for home in _homes(module, below):
            for name in names.split():
                sys.modules.setdefault(f"{home}.{name}", sys.modules[home] if below else module)
