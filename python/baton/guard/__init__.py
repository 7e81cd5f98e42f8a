# SPDX-License-Identifier: Apache-2.0
"""The semantic guard: notices that a pass changed what a program computes, finds which, and shrinks the program that shows it."""

from .bisect import BisectResult, bisect
from .checker import Checker, Finding, compare_modules
from .compare import EXACT, REASSOCIATING, Difference, Tolerance, differences
from .instrument import SemanticGuard, SemanticGuardError
from .reduce import count_calls, reduce
from .sample import KINDS, CannotSample, Sampler

__all__ = [
    "BisectResult",
    "CannotSample",
    "Checker",
    "Difference",
    "EXACT",
    "Finding",
    "KINDS",
    "REASSOCIATING",
    "Sampler",
    "SemanticGuard",
    "SemanticGuardError",
    "Tolerance",
    "bisect",
    "compare_modules",
    "count_calls",
    "differences",
    "reduce",
]
