# SPDX-License-Identifier: Apache-2.0
"""Pattern tables and attributes of operators that golden files under this folder name."""

from baton import relay
from baton.ir import register_op_attr
from baton.relay.dataflow_pattern import is_constant, is_op, wildcard
from baton.relay.op.contrib import register_pattern_table


@register_pattern_table("golden")
def _table():
    dense = is_op("nn.dense")(wildcard(), wildcard())
    biased = is_op("add")(dense, wildcard())
    return [
        ("golden.dense_bias_relu", is_op("nn.relu")(biased)),
        ("golden.dense_bias", biased, lambda extract: extract.checked_type.dtype == "float32"),
        ("golden.scale", is_op("multiply")(wildcard(), is_constant())),
    ]


@register_op_attr("nn.leaky_relu", "golden.legalize")
def _leaky_relu(attrs, args, types):
    """max(x, alpha * x) for slopes up to 1; others stay."""
    x = args[0]
    return relay.maximum(x, relay.const(attrs.alpha, types[0].dtype) * x) if attrs.alpha <= 1 else None


@register_op_attr("cast", "golden.legalize")
def _cast(attrs, args, types):
    """Casts to the type that a value has are left out."""
    return args[0] if types[0].dtype == types[1].dtype else None
