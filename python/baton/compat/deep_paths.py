# SPDX-License-Identifier: Apache-2.0
"""Paths of files inside packages: programs write `from baton.relay.op.nn.nn import conv2d`, or `from baton.topi.nn.pad import pad`. Each is the
package itself, which has all its functions."""

import sys

_TARGET = "batch_matmul binary_dense bitserial_conv2d bitserial_dense conv1d conv1d_transpose conv2d conv2d_alter_op conv2d_int8 conv2d_transpose conv3d \
conv3d_transpose deformable_conv2d default dense depthwise_conv2d extern group_conv2d image injective math nn pooling random reduction roi_align \
scatter search softmax sort sparse sparse_reshape tensor_intrin transform unique upsampling utils vision"

# Module -> names below it -> the module that they stand for: it itself for "", else one below it.
PATHS = {
    "baton.compat.topi_targets": {"": _TARGET},
    "baton.compat.op_strategy": {"": "adreno arm_cpu bifrost cuda generic hexagon hls intel_graphics mali rocm x86"},
    "baton.relay.analysis": {"": "count_layers feature"},
    "baton.relay.op": {
        "": "_algorithm _math _tensor _tensor_grad",
        "annotation": "_make annotation",
        "image": "_image _make image",
        "memory": "_make memory",
        "nn": "_make _nn nn utils",
        "random": "_kernel _make kernel",
        "vision": "_make _rcnn _vision _yolo multibox nms rcnn yolo",
        "vm": "_ffi_api vm",
    },
    "baton.relay.quantize": {"": "_annotate _calibrate _partition _partition_conversions _quantize kl_divergence quantize"},
    "baton.relay.testing": {"": "config"},
    "baton.rpc": {"": "base client minrpc"},
    "baton.target": {"": "generic_func target virtual_device"},
    "baton.te.hybrid": {"": "calls parser runtime utils"},
    "baton.tir.transform": {"": "function_pass transform"},
    "baton.topi": {"": "argwhere cpp einsum elemwise scan scatter scatter_add searchsorted sort sparse_fill_empty_rows sparse_reshape unique"},
    "baton.topi.image": {"": "dilation2d grid_sample resize"},
    "baton.topi.nn": {
        "": "batch_matmul batch_to_space_nd bitserial_conv2d bitserial_dense bnn conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose \
correlation deformable_conv2d dense depth_to_space depthwise_conv2d dilate elemwise fifo_buffer flatten local_response_norm loss mapping pad pooling \
softmax space_to_batch_nd space_to_depth sparse upsampling"
    },
    "baton.topi.sparse": {"": "csrmm csrmv dense"},
    "baton.topi.testing": {"": "common"},
    "baton.topi.vision": {"": "nms reorg"},
}
# The targets' packages are one module, by several paths.
ALSO = {
    "baton.compat.op_strategy": ["baton.relay.op.strategy"],
    "baton.compat.topi_targets": [f"baton.topi.{name}" for name in "arm_cpu bifrost cuda generic hexagon hls intel_graphics mali rocm x86".split()],
}


def enter(module):
    """Makes the paths below a module known. They are no attributes of it: what it has under such a name, as `topi.nn.conv2d`, stays."""
    for below, names in PATHS.get(module.__name__, {}).items():
        for home in ALSO.get(module.__name__, [f"{module.__name__}.{below}".rstrip(".")]):
            for name in names.split():
                sys.modules.setdefault(f"{home}.{name}", sys.modules[home] if below else module)
