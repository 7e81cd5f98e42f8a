# SPDX-License-Identifier: Apache-2.0
"""Pattern tables that golden files under this folder name."""

from baton.relay.dataflow_pattern import is_constant, is_op, wildcard
from baton.relay.op.contrib import register_pattern_table


@register_pattern_table("golden")
def _table():
    dense = is_op("nn.dense")(wildcard(), wildcard())
    biased = is_op("add")(dense, wildcard())
    return [("golden.dense_bias_relu", is_op("nn.relu")(biased)),
            ("golden.dense_bias", biased, lambda extract: extract.checked_type.dtype == "float32"),
            ("golden.scale", is_op("multiply")(wildcard(), is_constant()))]
