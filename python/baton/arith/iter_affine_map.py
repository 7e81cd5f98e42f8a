# SPDX-License-Identifier: Apache-2.0
"""Indices as independent digits of loop variables."""

from .._core import Object
from .._ffi import get_global_func
from ..tir import const, op
from .widening import in_int64


class IterMark(Object, key="arith.IterMark"):
    """An iterator that takes each value from 0 to `extent` - 1: an expression of a loop variable, or a sum of iterators."""

    __slots__ = ()

    def __init__(self, source, extent):
        super().__init__(source=source, extent=op.convert(extent))


class IterMapExpr(Object, key="arith.IterMapExpr"):
    """A term of a sum of iterators."""

    __slots__ = ()


class IterSplitExpr(IterMapExpr, key="arith.IterSplitExpr"):
    """`source // lower_factor % extent * scale`."""

    __slots__ = ()

    def __init__(self, source, lower_factor, extent, scale):
        super().__init__(source=source, lower_factor=op.convert(lower_factor), extent=op.convert(extent), scale=op.convert(scale))


class IterSumExpr(IterMapExpr, key="arith.IterSumExpr"):
    """`base` plus the splits `args`."""

    __slots__ = ()

    def __init__(self, args, base):
        super().__init__(args=list(args), base=op.convert(base))


@in_int64
def detect_iter_map(indices, input_iters, predicate=True, require_bijective=False):
    """Indices as iterators that are independent of each other: together they take each combination of their values. Each is an `IterSumExpr`
    of at most one split; `[]` unless they are such iterators.

    input_iters: the ranges of the loop variables, whose extents are numbers, as factors and divisors are. predicate: comparisons
    `sum of loop variables < number` joined by `tir.all`; where it does not hold, the loops do nothing. require_bijective: no two
    iterations have the same indices.

        x, y = tvm.te.var("x"), tvm.te.var("y")
        found = tvm.arith.detect_iter_map([(x * 8 + y) // 4, y % 4 + 2], {x: tvm.ir.Range(0, 3), y: tvm.ir.Range(0, 8)})
        # extents 6 and 4; base 0 and 2
    """
    if isinstance(predicate, bool):
        predicate = const(predicate, "bool")
    return get_global_func("arith.DetectIterMap")([op.convert(e) for e in indices], dict(input_iters), predicate, require_bijective)


@in_int64
def normalize_iter_map_to_expr(expr):
    """The expression that a sum or a split stands for."""
    return get_global_func("arith.NormalizeIterMapToExpr")(expr)


@in_int64
def estimate_region_lower_bound(region, var_dom, predicate):
    """For each dimension of a region (ranges), the interval that it covers without gaps while the variables go through their ranges and
    `predicate` holds; None if that is not known."""
    if isinstance(predicate, bool):
        predicate = const(predicate, "bool")
    found = get_global_func("arith.EstimateRegionLowerBound")(list(region), dict(var_dom), predicate)
    return list(found) if len(found) == len(region) else None


__all__ = ["IterMapExpr", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map", "estimate_region_lower_bound", "normalize_iter_map_to_expr"]
