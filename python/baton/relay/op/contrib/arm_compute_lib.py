# SPDX-License-Identifier: Apache-2.0
"""Parts of a program for Arm's Compute Library. The library is not there: functions that PartitionGraph makes for "arm_compute_lib" are
computed by the compiler's own kernels, unless the program registers `relay.ext.arm_compute_lib`."""

import warnings

from ....ir import register_op_attr
from ...dataflow_pattern import is_constant, is_expr, is_op, wildcard
from ...expr import const
from .dnnl import CONV
from .partition import partitioned
from .register import register_pattern_table


def is_arm_compute_runtime_enabled():
    """Whether the library computes: it does not, and a warning says so."""
    warnings.warn("is_arm_compute_runtime_enabled gives False: regions for the library are computed by the compiler's own kernels", stacklevel=2)
    return False


def partition_for_arm_compute_lib(mod, params=None, disabled_ops=("concatenate",), **opts):
    """The program with a function for each region that the library takes. `params` become constants; operators of `disabled_ops` stay."""
    return partitioned(mod, params, "arm_compute_lib", arm_compute_lib_pattern_table(disabled_ops))


def _dtypes(expr):
    return [str(a.checked_type.dtype) for a in expr.args if hasattr(a.checked_type, "dtype")]


def _conv_pattern():
    conv = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    conv = is_op(CONV)(conv, is_constant())
    return conv.optional(lambda x: is_op("nn.bias_add")(x, is_constant())).optional(is_op("nn.relu"))


def _qnn_conv_pattern():
    conv = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    conv = is_op("qnn.conv2d")(conv, is_constant(), is_constant(), is_constant(), is_constant(), is_constant())
    conv = conv.optional(lambda x: is_op("nn.bias_add")(x, is_constant())).optional(is_op("nn.relu"))
    return is_op("qnn.requantize")(conv, wildcard(), wildcard(), is_constant(), is_constant())


def _dense_pattern():
    return is_op("nn.dense")(wildcard(), is_constant()).optional(lambda x: is_op("nn.bias_add")(x, is_constant()))


def _qnn_dense_pattern():
    dense = is_op("qnn.dense")(wildcard(), is_constant(), is_constant(), is_constant(), is_constant(), is_constant())
    dense = dense.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    return is_op("qnn.requantize")(dense, wildcard(), wildcard(), is_constant(), is_constant())


def _l2_pool_pattern():
    return is_op("sqrt")(is_op("nn.avg_pool2d")(is_op("power")(wildcard(), is_expr(const(2.0)))))


def _root(expr, name):
    while expr.op.name != name:
        expr = expr.args[0]
    return expr


def _takes_conv(name):
    def check(expr):
        conv = _root(expr, name)
        if conv.attrs.data_layout != "NHWC" or conv.attrs.groups != 1 and conv.attrs.kernel_layout != "HWOI":
            return False
        return set(_dtypes(conv)[:2]) <= ({"float32"} if name == CONV else {"uint8", "int8"})

    return check


def _takes_dense(name):
    def check(expr):
        dense = _root(expr, name)
        return set(_dtypes(dense)[:2]) <= ({"float32"} if name == "nn.dense" else {"uint8", "int8"}) and dense.attrs.out_dtype in ("", "float32", "int32")

    return check


def _takes_average(expr):
    return _root(expr, "nn.avg_pool2d").attrs.layout == "NHWC"


def arm_compute_lib_pattern_table(disabled_ops=("concatenate",)):
    """Rows of composite functions: name, pattern, check."""
    average = is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))
    return [
        ("arm_compute_lib.conv2d", _conv_pattern(), _takes_conv(CONV)),
        ("arm_compute_lib.qnn_conv2d", _qnn_conv_pattern(), _takes_conv("qnn.conv2d")),
        ("arm_compute_lib.dense", _dense_pattern(), _takes_dense("nn.dense")),
        ("arm_compute_lib.qnn_dense", _qnn_dense_pattern(), _takes_dense("qnn.dense")),
        ("arm_compute_lib.avg_pool2d", average, _takes_average),
        ("arm_compute_lib.l2_pool2d", _l2_pool_pattern(), _takes_average),
    ]


register_pattern_table("arm_compute_lib", arm_compute_lib_pattern_table)

_NHWC = ("nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d")


def _takes(name):
    def check(expr):
        if name in _NHWC:
            return expr.attrs.layout == "NHWC" and _dtypes(expr)[0] in ("float32", "uint8")
        return _dtypes(expr)[0] in ("float32", "uint8", "int8")

    return check


for _name in (*_NHWC, "reshape", "add", "maximum"):
    register_op_attr(_name, "target.arm_compute_lib", _takes(_name))

__all__ = ["arm_compute_lib_pattern_table", "is_arm_compute_runtime_enabled", "partition_for_arm_compute_lib"]
