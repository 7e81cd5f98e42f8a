# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of expressions as functions."""

from ..tir.op import add, floordiv, multiply, subtract
from ..tir.op import cast as _cast
from ..tir.op import div as divide


def cast(src, dtype, span=None):
    """A value converted to a dtype."""
    return _cast(dtype, src)


__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]
