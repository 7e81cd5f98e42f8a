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
