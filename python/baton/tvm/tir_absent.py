# SPDX-License-Identifier: Apache-2.0
"""Classes of nodes that programs ask for, by `isinstance` for the most part, and that PrimFuncs here do not have: making one says what to use instead."""

from ..error import UnsupportedError

_BLOCKS = "loops and statements are written without blocks, by tir.ir_builder or te"
_PRODUCERS = "te.create_prim_func writes tensors to buffers"


def _absent(name, base, instead):
    def __init__(self, *args, **kwargs):
        raise UnsupportedError(f"tir.{name} is not there: {instead}")

    return type(name, (base,), {"__init__": __init__, "__doc__": f"Not there: {instead}.", "__module__": __name__})


class _Part:
    """Base of parts of statements that are not there."""


class _Stmt:
    """Base of statements that are not there. No Stmt: it has no node."""


Prefetch = _absent("Prefetch", _Stmt, "processors prefetch by themselves")
BufferRealize = _absent("BufferRealize", _Stmt, "tir.Allocate makes a buffer for the time of a statement")
ProducerStore = _absent("ProducerStore", _Stmt, _PRODUCERS)
ProducerRealize = _absent("ProducerRealize", _Stmt, _PRODUCERS)
Block = _absent("Block", _Stmt, _BLOCKS)
BlockRealize = _absent("BlockRealize", _Stmt, _BLOCKS)
BufferRegion = _absent("BufferRegion", _Part, _BLOCKS)
MatchBufferRegion = _absent("MatchBufferRegion", _Part, _BLOCKS)
DataProducer = _absent("DataProducer", _Part, "te.Tensor is what tensor expressions read")
Schedule = _absent("Schedule", _Part, "te.create_schedule schedules tensor expressions, relay.build whole programs")
ScheduleState = _absent("ScheduleState", _Part, "te.create_schedule schedules tensor expressions, relay.build whole programs")
StmtSRef = _absent("StmtSRef", _Part, _BLOCKS)
BlockScope = _absent("BlockScope", _Part, _BLOCKS)
TensorIntrin = _absent("TensorIntrin", _Part, "passes made by tir.transform.prim_func_pass replace loops by calls")

__all__ = [
    "Block",
    "BlockRealize",
    "BlockScope",
    "BufferRealize",
    "BufferRegion",
    "DataProducer",
    "MatchBufferRegion",
    "Prefetch",
    "ProducerRealize",
    "ProducerStore",
    "Schedule",
    "ScheduleState",
    "StmtSRef",
    "TensorIntrin",
]
