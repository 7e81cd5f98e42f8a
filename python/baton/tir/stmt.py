# SPDX-License-Identifier: Apache-2.0
"""Statements of TIR."""

import enum

from .._core import Object
from ..error import UnsupportedError
from . import _ffi_api


class Stmt(Object, key="tir.Stmt"):
    """Base of all statements."""

    __slots__ = ()


class ForKind(enum.IntEnum):
    """How the iterations of a loop run."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


class BufferStore(Stmt, key="tir.BufferStore"):
    """`buffer[indices] = value`."""

    __slots__ = ()

    def __init__(self, buffer, value, indices, span=None):
        super().__init__(buffer=buffer, value=value, indices=list(indices), span=span)


class Allocate(Stmt, key="tir.Allocate"):
    """A new buffer during `body`."""

    __slots__ = ()

    def __init__(self, buffer, body, span=None):
        super().__init__(buffer=buffer, body=body, span=span)


class For(Stmt, key="tir.For"):
    """`for loop_var in [min, min + extent)`."""

    __slots__ = ()

    def __init__(self, loop_var, min_val, extent, kind=ForKind.SERIAL, body=None, thread_binding=None, annotations=None, span=None):
        if body is None:
            raise TypeError("tir.For needs its body")
        if kind == ForKind.THREAD_BINDING:
            raise UnsupportedError("PrimFuncs have no loops over threads of a device; use ForKind.PARALLEL")
        super().__init__(loop_var=loop_var, min=min_val, extent=extent, kind=int(kind), body=body, annotations=dict(annotations or {}), span=span)


class IfThenElse(Stmt, key="tir.IfThenElse"):
    """`if condition: then_case else: else_case`."""

    __slots__ = ()

    def __init__(self, condition, then_case, else_case=None, span=None):
        super().__init__(condition=condition, then_case=then_case, else_case=else_case, span=span)


class SeqStmt(Stmt, key="tir.SeqStmt"):
    """Statements in order."""

    __slots__ = ()

    def __init__(self, seq, span=None):
        super().__init__(seq=list(seq), span=span)

    def __getitem__(self, i):
        return self.seq[i]

    def __len__(self):
        return len(self.seq)


class Evaluate(Stmt, key="tir.Evaluate"):
    """An expression, evaluated for its effect."""

    __slots__ = ()

    def __init__(self, value, span=None):
        super().__init__(value=value, span=span)


class LetStmt(Stmt, key="tir.LetStmt"):
    """`let var = value; body`."""

    __slots__ = ()

    def __init__(self, var, value, body, span=None):
        super().__init__(var=var, value=value, body=body, span=span)


class AttrStmt(Stmt, key="tir.AttrStmt"):
    """A mark on a scope."""

    __slots__ = ()

    def __init__(self, node, attr_key, value, body, span=None):
        super().__init__(node=node, attr_key=attr_key, value=value, body=body, span=span)


class AssertStmt(Stmt, key="tir.AssertStmt"):
    """Raises an error at run time if the condition is false."""

    __slots__ = ()

    def __init__(self, condition, message, body, span=None):
        from .expr import StringImm

        super().__init__(condition=condition, message=StringImm(message) if isinstance(message, str) else message, body=body, span=span)


def stmt_seq(*args):
    """Statements and expressions in order; one alone stays itself."""
    return _ffi_api.SeqStmt([a if isinstance(a, Stmt) else Evaluate(a) for a in args])


def stmt_list(stmt):
    """The statements of a sequence; of another statement itself."""
    return [x for s in stmt.seq for x in stmt_list(s)] if isinstance(stmt, SeqStmt) else [stmt]
