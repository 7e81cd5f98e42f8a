# SPDX-License-Identifier: Apache-2.0
"""Dividing a program for another compiler."""

from ...ir import IRModule
from ...ir.transform import Sequential
from ..expr import bind, const
from . import transform


def partitioned(mod, params, compiler, table):
    """The program with a function for each region that a compiler takes: composite functions of its table, and operators that carry its mark.
    `params` become constants."""
    if params:
        main = mod["main"]
        values = {p: const(params[p.name_hint]) for p in main.params if p.name_hint in params}
        mod = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
        mod["main"] = bind(main, values)
    passes = [transform.InferType(), *([transform.MergeComposite(table)] if table else [])]
    passes += [transform.AnnotateTarget(compiler, False), transform.MergeCompilerRegions(), transform.PartitionGraph(), transform.InferType()]
    return Sequential(passes)(mod)


__all__ = ["partitioned"]
