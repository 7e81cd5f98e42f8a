# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions: bounds, remainders, proofs, simplification."""

from .. import ir as _ir  # noqa: F401
from .analyzer import Analyzer, ConstIntBound, ModularSet

__all__ = ["Analyzer", "ConstIntBound", "ModularSet"]
