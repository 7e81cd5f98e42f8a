# SPDX-License-Identifier: Apache-2.0
"""Parts of a program for oneDNN: patterns for MergeComposite, and operators for AnnotateTarget. Functions that PartitionGraph makes for "dnnl"
are computed by the compiler's own kernels, unless the program registers `relay.ext.dnnl`."""

from ....error import UnsupportedError
from ....ir import register_op_attr
from ...dataflow_pattern import is_op, wildcard
from .register import register_pattern_table

CONV = "nn.conv2d"
# Operators that the library has.
TAKEN = ["nn.batch_norm", CONV, "nn.dense", "nn.relu", "add", "subtract", "multiply"]

for _name in TAKEN:
    register_op_attr(_name, "target.dnnl", lambda expr: True)


def make_pattern(with_bias=True):
    """A convolution, with a bias behind it if asked, and relu."""
    conv = is_op(CONV)(wildcard(), wildcard())
    return is_op("nn.relu")(is_op("add")(conv, wildcard()) if with_bias else conv)


@register_pattern_table("dnnl")
def pattern_table():
    """Convolutions that relu follows, those with a bias first."""
    return [("dnnl.conv2d_bias_relu", make_pattern(with_bias=True)), ("dnnl.conv2d_relu", make_pattern(with_bias=False))]


def partition_for_dnnl(mod, params=None, **options):
    """Not supported: the library is not used. Raises UnsupportedError that says how a program is divided."""
    raise UnsupportedError(
        "dnnl.partition_for_dnnl: kernels are the compiler's own, and relay.build takes the program as it is; to divide it for a compiler of yours use "
        "MergeComposite(dnnl.pattern_table()), AnnotateTarget([\"dnnl\"]) and PartitionGraph(), and register `relay.ext.dnnl`"
    )


__all__ = ["TAKEN", "make_pattern", "partition_for_dnnl", "pattern_table"]
