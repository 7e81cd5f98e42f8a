# SPDX-License-Identifier: Apache-2.0
"""How tensors are computed: `s = te.create_schedule(C.op)`, then loops are split, put in order, made parallel, or joined.

    A = te.placeholder((1024,), name="A")
    B = te.compute((1024,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=64)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    add_one = baton.build(s, [A, B], target="llvm")

A schedule never changes what is computed. Loops run over all that the tensors need: those that a factor does not divide get conditions.
"""

from .loops import Fuse, Singleton, Split
from .schedule import Group, Schedule, Stage, create_schedule, thread_axis
from .to_loops import (
    AutoInlineBroadcast,
    AutoInlineElemWise,
    AutoInlineInjective,
    CreateReadGraph,
    InferBound,
    PostDFSOrder,
    ScheduleOps,
    SchedulePostProcToPrimFunc,
    VerifyCompactBuffer,
    schedule_to_prim_func,
)

__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateReadGraph",
    "Fuse",
    "Group",
    "InferBound",
    "PostDFSOrder",
    "Schedule",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "Singleton",
    "Split",
    "Stage",
    "VerifyCompactBuffer",
    "create_schedule",
    "schedule_to_prim_func",
    "thread_axis",
]
