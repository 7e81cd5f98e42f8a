# SPDX-License-Identifier: Apache-2.0
"""Tables of the patterns that external code generators support."""

from . import arm_compute_lib, dnnl, tensorrt
from .register import get_pattern_table, register_pattern_table

__all__ = ["arm_compute_lib", "dnnl", "get_pattern_table", "register_pattern_table", "tensorrt"]
