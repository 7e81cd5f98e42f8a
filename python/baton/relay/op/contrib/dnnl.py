# SPDX-License-Identifier: Apache-2.0
"""Parts of a program for oneDNN: `partition_for_dnnl`, patterns for MergeComposite, and operators for AnnotateTarget. `relay.build` gives the
functions for "dnnl" to the plug-in that comes with Baton, which loads the system's oneDNN (Debian's libdnnl2 or libdnnl3)."""

import ctypes

from ...._ffi import get_global_func
from ...._ffi.base import load_vm
from ....error import UnsupportedError
from ....ir import TensorType, register_op_attr
from ....runtime.given import load_plugin
from ....tir import IntImm
from ...dataflow_pattern import is_op, wildcard
from .partition import partitioned
from .register import register_pattern_table

CONV, DENSE = "nn.conv2d", "nn.dense"
# Operators that the plug-in has.
TAKEN = [CONV, DENSE, "nn.relu", "add", "multiply"]


def make_pattern(with_bias=True):
    """A convolution, with a bias behind it if asked, and relu."""
    conv = is_op(CONV)(wildcard(), wildcard())
    return is_op("nn.relu")(is_op("add")(conv, wildcard()) if with_bias else conv)


def _behind(name, bias, relu):
    """The operator `name` with a sum, with relu behind it."""
    out = is_op(name)(wildcard(), wildcard())
    if bias:
        out = is_op("add")(out, wildcard()) | is_op("nn.bias_add")(out, wildcard())
    return is_op("nn.relu")(out) if relu else out


@register_pattern_table("dnnl")
def pattern_table():
    """Convolutions that relu follows, those with a bias first."""
    return [("dnnl.conv2d_bias_relu", make_pattern(with_bias=True)), ("dnnl.conv2d_relu", make_pattern(with_bias=False))]


def _shape(t):
    """The shape of a float32 tensor of known extents, else None."""
    if not isinstance(t, TensorType) or str(t.dtype) != "float32" or not all(isinstance(d, (int, IntImm)) for d in t.shape):
        return None
    return [int(d) for d in t.shape]


def _fits(call):
    """Whether a match is of shapes and layouts that the plug-in has a primitive for."""
    bias = None
    while str(call.op.name) not in (CONV, DENSE):
        if str(call.op.name) != "nn.relu":
            bias, axis = call.args[1], int(call.attrs.axis) if str(call.op.name) == "nn.bias_add" else None
        call = call.args[0]
    out, shapes = _shape(call.checked_type), [_shape(a.checked_type) for a in call.args]
    if out is None or None in shapes or 0 in out:
        return False
    if str(call.op.name) == CONV:
        layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout), str(call.attrs.out_layout) or "NCHW")
        if len(out) != 4 or layouts != ("NCHW", "OIHW", "NCHW"):
            return False
    if bias is None:
        return True
    given, channels = _shape(bias.checked_type), out[1]
    if given is None:
        return False
    if axis is not None:
        return given == [channels] and axis in (1, 1 - len(out))
    ones = [1] * (len(out) - 2)
    return given in ([channels, *ones], [1, channels, *ones])


def _takes(call):
    """Whether the plug-in has a primitive for a call of an operator in TAKEN."""
    name = str(call.op.name)
    if name in (CONV, DENSE):
        return _fits(call)
    out, shapes = _shape(call.checked_type), [_shape(a.checked_type) for a in call.args]
    return out is not None and 0 not in out and 1 <= len(out) <= 5 and None not in shapes and out in shapes


for _name in TAKEN:
    register_op_attr(_name, "target.dnnl", _takes)


def _patterns():
    """Rows of MergeComposite for what the plug-in computes as one primitive, the longest first."""
    rows = []
    for name, short in ((CONV, "conv2d"), (DENSE, "dense")):
        for bias, relu in ((True, True), (True, False), (False, True)):
            rows.append((f"dnnl.{short}{'_bias' if bias else ''}{'_relu' if relu else ''}", _behind(name, bias, relu), _fits))
    return rows


def why_none():
    """Why there is no oneDNN: what is missing and how to mend it; "" where there is one."""
    load_vm()
    path = str(get_global_func("vm.ShippedPlugin")("dnnl"))
    if not path:
        return "libbaton_plugin_dnnl.so is missing beside libbaton_vm.so; build or install Baton again"
    library = ctypes.CDLL(path)
    library.baton_dnnl_why_none.restype = ctypes.c_char_p
    return library.baton_dnnl_why_none().decode()


def partition_for_dnnl(mod, params=None, **options):
    """The program with a function for each region that oneDNN computes: convolutions (NCHW), products, sums and products of elements and relu of
    float32 and known shapes, with biases and relus fused. `params` become constants. `relay.build` and the others make its code, which is saved
    with the model and loaded by the runtime alone, where oneDNN must be too. UnsupportedError where there is none."""
    if options:
        raise UnsupportedError(f"dnnl.partition_for_dnnl takes no option `{next(iter(options))}`")
    why = why_none()
    if why:
        raise UnsupportedError(f"dnnl.partition_for_dnnl: {why}")
    load_plugin(str(get_global_func("vm.ShippedPlugin")("dnnl")))
    return partitioned(mod, params, "dnnl", _patterns())


__all__ = ["TAKEN", "make_pattern", "partition_for_dnnl", "pattern_table", "why_none"]
