# SPDX-License-Identifier: Apache-2.0
"""Loops, as functions that call themselves."""

from .expr import Call, Let, Tuple, var
from .function import Function
from .scope_builder import ScopeBuilder


def while_loop(cond, loop_vars, loop_bodies):
    """A function of the loop's variables that runs `loop_bodies(*variables)` while `cond(*variables)` and gives a tuple of
    their last values. `loop_vars` are variables with types."""
    builder = ScopeBuilder()
    loop = var("while_loop")
    fresh = [var(v.name_hint, v.type_annotation) for v in loop_vars]
    with builder.if_scope(cond(*fresh)):
        builder.ret(Call(loop, loop_bodies(*fresh)))
    with builder.else_scope():
        builder.ret(Tuple(fresh))
    func = Function(fresh, builder.get())
    return Let(loop, func, loop)


__all__ = ["while_loop"]
