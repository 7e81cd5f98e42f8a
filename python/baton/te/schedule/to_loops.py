# SPDX-License-Identifier: Apache-2.0
"""One PrimFunc of a schedule: faces of src/te/schedule, which decides what is needed where, and writes the loops."""

from ...error import TypeError
from ...tir import PrimFunc
from ...tir.buffer import Buffer
from ...tir.stmt_functor import post_order_visit
from .. import _ffi_api
from ..tensor import Tensor
from .schedule import Schedule


def schedule_to_prim_func(schedule, args, name="main", buffers=None):
    """One PrimFunc that computes as the schedule says; its parameters are `args`: tensors, variables of sizes, buffers. `buffers`: one for
    each argument, or None for a new one."""
    if not isinstance(schedule, Schedule):
        raise TypeError(f"a schedule is made by te.create_schedule, this is a {type(schedule).__name__}")
    for a in args:
        if not hasattr(a, "type_key"):
            raise TypeError(f"an argument is a tensor, a variable or a buffer, not {type(a).__name__}")
    return _ffi_api.ScheduleToPrimFunc(schedule, list(args), name, list(buffers or []))


def InferBound(schedule):
    """The range of every loop of a schedule, also of those that were split or fused: a Map by IterVar."""
    return _ffi_api.InferBound(schedule)


def ScheduleOps(schedule, bounds=None, debug_keep_trivial_loop=False):
    """The loops of a schedule as one statement, over buffers of its inputs and outputs. `bounds` is accepted for older programs."""
    inputs = [_ffi_api.OutputOf(s.op) for s in schedule.stages if s.is_input]
    outputs = [o.output(k) for o in schedule.outputs for k in range(o.num_outputs)]
    return schedule_to_prim_func(schedule, inputs + outputs).body


def SchedulePostProcToPrimFunc(arg_list, stmt, extern_buffer_map=None):
    """A function of the statement that `ScheduleOps` gave; its parameters are `arg_list`: tensors, variables, buffers."""
    buffers = {}

    def find(node):
        buffer = getattr(node, "buffer", None)
        if buffer is not None and node.type_key != "tir.Allocate":
            buffers.setdefault(buffer.name, buffer)

    post_order_visit(stmt, find)
    given = dict(extern_buffer_map or {})
    params = [given.get(a) or buffers.get(a.op.name) or Buffer(list(a.shape), str(a.dtype), a.op.name) if isinstance(a, Tensor) else a for a in arg_list]
    return PrimFunc(params, stmt)


def CreateReadGraph(ops):
    """The tensors that each operation, of these and of all before them, reads: a dictionary by operation."""
    return {operation: list(operation.input_tensors) for operation in PostDFSOrder(ops)}


def PostDFSOrder(ops, graph=None):
    """These operations and all before them, inputs first."""
    return list(_ffi_api.PostOrder(list(ops), []))


def VerifyCompactBuffer(stmt):
    """Whether the buffers of a statement are dense: they always are."""
    return True


def AutoInlineInjective(schedule):
    """Inlines all operations that read elements and are not reductions."""
    _ffi_api.AutoInline(schedule, 0)


def AutoInlineElemWise(schedule):
    """Inlines operations that read elements only at their own indices."""
    _ffi_api.AutoInline(schedule, 1)


def AutoInlineBroadcast(schedule):
    """Inlines operations that read elements at some of their axes, in order."""
    _ffi_api.AutoInline(schedule, 2)


__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateReadGraph",
    "InferBound",
    "PostDFSOrder",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "VerifyCompactBuffer",
    "schedule_to_prim_func",
]
