# SPDX-License-Identifier: Apache-2.0
"""Classes of tensor expressions that programs ask for, by `isinstance` for the most part: making one says what to use instead."""

from ..error import UnsupportedError

_INSTEAD = "te.extern calls a function on whole tensors, and a pass of tir.transform.prim_func_pass replaces loops by a call"


class _IsScan(type):
    def __instancecheck__(cls, value):
        return type(value).__name__ == "ExternOp" and "scan_update" in value.attrs


class ScanOp(metaclass=_IsScan):
    """The operation of `te.scan`, for `isinstance`."""


class BaseComputeOp:
    """Base of computations that are not there; `te.ComputeOp` is the one there is."""

    def __init__(self, *args, **kwargs):
        raise UnsupportedError(f"te.{type(self).__name__} is not there: {_INSTEAD}")


class TensorComputeOp(BaseComputeOp):
    """Not there: a computation by an intrinsic on tensors."""


class HybridOp(BaseComputeOp):
    """Not there: a computation by a script."""


class TensorIntrinCall(BaseComputeOp):
    """Not there: a call of an intrinsic on tensors."""


__all__ = [
    "BaseComputeOp",
    "HybridOp",
    "ScanOp",
    "TensorComputeOp",
    "TensorIntrinCall",
]
