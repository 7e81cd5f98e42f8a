# SPDX-License-Identifier: Apache-2.0
"""Parts of a program for TensorRT. The library is not there: functions that PartitionGraph makes for "tensorrt" are computed by the compiler's
own kernels, unless the program registers `relay.ext.tensorrt`."""

import warnings

from ....ir import TensorType, register_op_attr
from .partition import partitioned

# Operators that the library has, on float32.
TAKEN = """
abs add atan cast ceil clip concatenate cos divide erf exp expand_dims floor image.resize2d layout_transform log max maximum mean min minimum
multiply negative nn.adaptive_avg_pool2d nn.adaptive_max_pool2d nn.avg_pool2d nn.avg_pool3d nn.batch_flatten nn.batch_matmul nn.batch_norm
nn.bias_add nn.conv1d nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.dense nn.global_avg_pool2d nn.global_max_pool2d
nn.layer_norm nn.leaky_relu nn.max_pool2d nn.max_pool3d nn.pad nn.relu nn.softmax power prod reshape sigmoid sin split sqrt squeeze
strided_slice subtract sum tanh transpose
""".split()


def is_tensorrt_runtime_enabled():
    """Whether the library computes: it does not, and a warning says so."""
    warnings.warn("is_tensorrt_runtime_enabled gives False: regions for TensorRT are computed by the compiler's own kernels", stacklevel=2)
    return False


def get_tensorrt_version():
    """The version that programs are divided for, as (major, minor, patch)."""
    return (6, 0, 1)


def partition_for_tensorrt(mod, params=None, version=None, use_implicit_batch=True, remove_no_mac_subgraphs=False, max_workspace_size=1 << 30, **options):
    """The program with a function for each region that the library takes, and the settings for
    `PassContext(config={"relay.ext.tensorrt.options": settings})`. `params` become constants."""
    settings = {
        "use_implicit_batch": use_implicit_batch,
        "max_workspace_size": max_workspace_size,
        "remove_no_mac_subgraphs": remove_no_mac_subgraphs,
        "tensorrt_version": tuple(version or get_tensorrt_version()),
    }
    return partitioned(mod, params, "tensorrt", []), settings


def _takes(expr):
    kinds = [a.checked_type for a in expr.args]
    return all(t.dtype == "float32" and len(t.shape) > 0 for t in kinds if isinstance(t, TensorType))


for _name in TAKEN:
    register_op_attr(_name, "target.tensorrt", _takes)

__all__ = ["TAKEN", "get_tensorrt_version", "is_tensorrt_runtime_enabled", "partition_for_tensorrt"]
