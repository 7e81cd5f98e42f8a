# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions: bounds, remainders, proofs, simplification."""

from .. import ir as _ir  # noqa: F401
from . import domain, int_set  # noqa: F401
from .analyzer import Analyzer, ConstIntBound, ModularSet
from .bound import deduce_bound, detect_clip_bound, detect_linear_equation
from .int_set import IntervalSet, IntSet
from .int_solver import IntConstraints, IntConstraintsTransform, IntGroupBounds, solve_linear_equations, solve_linear_inequalities
from .iter_affine_map import (
    IterMapExpr,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    estimate_region_lower_bound,
    normalize_iter_map_to_expr,
)

_INSTEAD = {
    "subspace_divide": "detect_iter_map says whether indices are independent",
    "inverse_affine_iter_map": "detect_iter_map gives scales, factors and extents",
    "iter_map_simplify": "Analyzer().simplify() cancels divisions and remainders",
}


def __getattr__(name):
    if name in _INSTEAD:
        raise AttributeError(f"baton.arith.{name} is not there: {_INSTEAD[name]}")
    raise AttributeError(f"module 'baton.arith' has no attribute {name!r}")


__all__ = [
    "Analyzer",
    "ConstIntBound",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "deduce_bound",
    "detect_clip_bound",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "int_set",
    "normalize_iter_map_to_expr",
    "solve_linear_equations",
    "solve_linear_inequalities",
]
