# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: `C = te.compute((n,), lambda i: A[i] + B[i])`."""

from .. import ir as _ir  # noqa: F401
from .._ffi.object import attach_classes
from ..tir import (  # noqa: A004
                   abs,
                   acos,
                   acosh,
                   all,
                   any,
                   asin,
                   asinh,
                   atan,
                   atanh,
                   ceil,
                   const,
                   cos,
                   cosh,
                   div,
                   erf,
                   exp,
                   floor,
                   floordiv,
                   floormod,
                   fmod,
                   if_then_else,
                   indexdiv,
                   indexmod,
                   isfinite,
                   isinf,
                   isnan,
                   log,
                   log2,
                   log10,
                   max_value,
                   min_value,
                   nearbyint,
                   popcount,
                   power,
                   round,
                   rsqrt,
                   sigmoid,
                   sin,
                   sinh,
                   sqrt,
                   tan,
                   tanh,
                   trunc,
                   truncdiv,
                   truncmod,
)
from .operation import (  # noqa: A004
                   all_of,
                   any_of,
                   comm_reducer,
                   compute,
                   create_prim_func,
                   extern,
                   max,
                   min,
                   placeholder,
                   prod,
                   reduce_axis,
                   size_var,
                   sum,
                   tag_scope,
                   var,
)
from .schedule import Schedule, Stage, create_schedule, thread_axis
from .tensor import ComputeOp, Operation, PlaceholderOp, Tensor, TensorSlice

attach_classes(__name__, "te.")

__all__ = ["ComputeOp", "Operation", "PlaceholderOp", "Schedule", "Stage", "Tensor", "TensorSlice", "abs", "acos", "acosh", "all", "all_of", "any", "any_of", "asin",
           "asinh", "atan", "atanh", "ceil", "comm_reducer", "compute", "const", "cos", "cosh", "create_prim_func", "create_schedule", "div", "erf", "exp", "extern", "floor", "floordiv",
           "floormod", "fmod", "if_then_else", "indexdiv", "indexmod", "isfinite", "isinf", "isnan", "log", "log10", "log2", "max",
           "max_value", "min", "min_value", "nearbyint", "placeholder", "popcount", "power", "prod", "reduce_axis", "round", "rsqrt",
           "sigmoid", "sin", "sinh", "size_var", "sqrt", "sum", "tag_scope", "tan", "tanh", "thread_axis", "trunc", "truncdiv", "truncmod", "var"]
