# SPDX-License-Identifier: Apache-2.0
"""What external code generators bring: tables of the patterns that they take."""

from .register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
