# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: `C = te.compute((n,), lambda i: A[i] + B[i])`."""

from .. import ir as _ir  # noqa: F401
from .._ffi.object import attach_classes
from ..tir import (abs, acos, acosh, all, any, asin, asinh, atan, atanh, ceil, const, cos, cosh, div, erf, exp, floor,  # noqa: A004
                   floordiv, floormod, fmod, if_then_else, indexdiv, indexmod, isfinite, isinf, isnan, log, log2, log10, max_value, min_value,
                   nearbyint, popcount, power, round, rsqrt, sigmoid, sin, sinh, sqrt, tan, tanh, trunc, truncdiv, truncmod)
from .operation import (any_of, all_of, compute, create_prim_func, max, min, placeholder, prod, reduce_axis, size_var, sum, var)  # noqa: A004
from .tensor import ComputeOp, Operation, PlaceholderOp, Tensor, TensorSlice

attach_classes(__name__, "te.")

__all__ = ["ComputeOp", "Operation", "PlaceholderOp", "Tensor", "TensorSlice", "abs", "acos", "acosh", "all", "all_of", "any", "any_of", "asin",
           "asinh", "atan", "atanh", "ceil", "compute", "const", "cos", "cosh", "create_prim_func", "div", "erf", "exp", "floor", "floordiv",
           "floormod", "fmod", "if_then_else", "indexdiv", "indexmod", "isfinite", "isinf", "isnan", "log", "log10", "log2", "max",
           "max_value", "min", "min_value", "nearbyint", "placeholder", "popcount", "power", "prod", "reduce_axis", "round", "rsqrt",
           "sigmoid", "sin", "sinh", "size_var", "sqrt", "sum", "tan", "tanh", "trunc", "truncdiv", "truncmod", "var"]
