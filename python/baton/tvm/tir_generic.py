# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of expressions as functions."""

from ..tir.op import add, floordiv, multiply, subtract
from ..tir.op import cast as _cast
from ..tir.op import div as _div


def divide(lhs, rhs, span=None):
    """The quotient, of integers that of C."""
    return _div(lhs, rhs, span)


def cast(src, dtype, span=None):
    """A value converted to a dtype."""
    return _cast(dtype, src)


__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]
