# SPDX-License-Identifier: Apache-2.0
"""Passes and the context that they run in: the same as `baton.ir.transform`."""

from .ir import transform as _transform
from .ir.transform import (
    ApplyPassToFunction,
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Scheduled,
    Sequential,
    explain,
    join_pipeline,
    leave_pipeline,
    list_properties,
    module_pass,
    parse_pipeline,
    pipeline_text,
    rewrite_allowed,
    sequential,
)


def __getattr__(name):
    return getattr(_transform, name)


__all__ = [
    "ApplyPassToFunction",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Scheduled",
    "Sequential",
    "explain",
    "join_pipeline",
    "leave_pipeline",
    "list_properties",
    "module_pass",
    "parse_pipeline",
    "pipeline_text",
    "rewrite_allowed",
    "sequential",
]
