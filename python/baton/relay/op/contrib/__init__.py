# SPDX-License-Identifier: Apache-2.0
"""Tables of the patterns that external code generators support."""

from . import dnnl
from .register import get_pattern_table, register_pattern_table

__all__ = ["dnnl", "get_pattern_table", "register_pattern_table"]
