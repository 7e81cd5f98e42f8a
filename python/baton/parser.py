# SPDX-License-Identifier: Apache-2.0
"""Relay text to programs: the same as `baton.relay.parse`."""

from . import ir as _ir  # noqa: F401
from .relay.parser import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]
