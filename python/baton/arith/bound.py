# SPDX-License-Identifier: Apache-2.0
"""Bounds of variables from conditions."""

from .._ffi import get_global_func
from ..tir import op
from .int_set import of_int64
from .widening import in_int64


@in_int64
def deduce_bound(var, cond, hint_map, relax_map):
    """The values of `var` for which a condition (comparisons joined by `tir.all`) holds, whatever values the variables of `relax_map` have in
    their sets: an `IntervalSet`, empty (`is_nothing()`) where none is found.

    Both maps give `IntervalSet`s by variables; `hint_map` gives the signs of factors and divisors of `var`.

        a, b = tvm.te.var("a"), tvm.te.var("b")
        tvm.arith.deduce_bound(a, a * 2 + b < 10, {}, {b: tvm.arith.IntervalSet(0, 3)})    # up to 3
    """
    return get_global_func("arith.DeduceBound")(var, op.convert(cond), of_int64(hint_map), of_int64(relax_map))


@in_int64
def detect_linear_equation(expr, var_list):
    """An expression as a linear form in variables: their coefficients and the constant term, all free of them. `[]` if it is not
    linear.

        x, y = tvm.te.var("x"), tvm.te.var("y")
        tvm.arith.detect_linear_equation(x * 4 + y + 3, [x])    # [4, y + 3]
    """
    return get_global_func("arith.DetectLinearEquation")(op.convert(expr), list(var_list))


@in_int64
def detect_clip_bound(expr, var_list):
    """The least and the largest value of each variable for which a condition holds: `[min, max]` of the first, of the second and so on, None
    where there is none. `[]` unless the condition is comparisons, joined by `tir.all`, each of one variable times a number.

        x = tvm.te.var("x")
        tvm.arith.detect_clip_bound(tvm.tir.all(x * 2 < 7, x >= 1), [x])    # [1, 3]
    """
    return get_global_func("arith.DetectClipBound")(op.convert(expr), list(var_list))


__all__ = ["deduce_bound", "detect_clip_bound", "detect_linear_equation"]
