# SPDX-License-Identifier: Apache-2.0
"""Statements of TIR."""

import enum

from .._core import Object
from ..error import UnsupportedError
from ..ir import make_node
from . import _ffi_api, op
from .expr import BufferLoad, Var, _OnPointers, on_pointer, true_of, view_of


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

    @property
    def index(self):
        """Its place behind the buffer's pointer, in elements."""
        return self.buffer.offset_of(self.indices)

    @property
    def buffer_var(self):
        """The buffer's pointer."""
        return self.buffer.data

    @property
    def predicate(self):
        """True in each lane."""
        return true_of(self.value.dtype)


class Store(metaclass=_OnPointers):
    """`Store(buffer_var, value, index)` is the BufferStore to the flat buffer behind a pointer; instances are stores of one index."""

    _access = BufferStore

    def __new__(cls, buffer_var, value, index, predicate=None, span=None):
        value = op.convert(value)
        return BufferStore(on_pointer("Store", buffer_var, value.dtype, predicate), value, [op.convert(index)], span)


class Allocate(Stmt, key="tir.Allocate"):
    """A new buffer during `body`."""

    __slots__ = ()

    def __init__(self, buffer, *given, span=None, **named):
        """`Allocate(buffer, body)`, or `Allocate(buffer_var, dtype, extents, condition, body)` of a pointer."""
        buffer = named.pop("buffer_var", buffer) if buffer is None else buffer
        if not isinstance(buffer, Var):
            (body,) = given or (named.pop("body", None),)
        else:
            names = ["dtype", "extents", "condition", "body"]
            dtype, extents, condition, body = (*given[:4], *(named.pop(n, None) for n in names[len(given) : 4]))
            if condition is not None and getattr(condition, "value", condition) in (0, False):
                raise UnsupportedError("tir.Allocate with a condition: put tir.IfThenElse around what uses the memory")
            buffer, body = allocated(buffer, str(dtype), list(extents), body)
        super().__init__(buffer=buffer, body=body, span=span)

    @property
    def buffer_var(self):
        """The pointer."""
        return self.buffer.data

    @property
    def dtype(self):
        """The dtype of an element."""
        return self.buffer.dtype

    @property
    def extents(self):
        """The dimensions."""
        return self.buffer.shape

    @property
    def condition(self):
        """True: memory is allocated always."""
        return true_of("bool")


class For(Stmt, key="tir.For"):
    """`for loop_var in [min, min + extent)`."""

    __slots__ = ()

    def __init__(self, loop_var, min_val, extent, kind=ForKind.SERIAL, body=None, thread_binding=None, annotations=None, span=None):
        if body is None:
            raise TypeError("tir.For needs its body")
        if kind == ForKind.THREAD_BINDING:
            raise UnsupportedError("PrimFuncs have no loops over threads of a device; use ForKind.PARALLEL")
        min_val, extent = (op.const(e, loop_var.dtype) if isinstance(e, int) else e for e in (min_val, extent))
        super().__init__(loop_var=loop_var, min=min_val, extent=extent, kind=int(kind), body=body, annotations=dict(annotations or {}), span=span)

    @property
    def thread_binding(self):
        """None: loops are bound to no threads."""
        return None


class While(Stmt, key="tir.While"):
    """`while condition: body`; the condition is asked before each round, and reads what the body writes."""

    __slots__ = ()

    def __init__(self, condition, body, span=None):
        super().__init__(condition=op.convert(condition), body=body, span=span)


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
        value = op.const(value, var.dtype) if isinstance(value, (int, float)) else value
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


def allocated(pointer, dtype, extents, body):
    """(the buffer of these dimensions behind a pointer, a statement that accesses it where it accessed the pointer's flat buffer)"""
    flat = view_of(pointer, dtype)
    buffer = make_node("tir.Buffer", data=pointer, dtype=dtype, shape=extents, name=pointer.name)
    if len(extents) != 1:
        return buffer, body

    def moved(node):
        if not node.buffer.same_as(flat):
            return None
        return BufferLoad(buffer, node.indices) if isinstance(node, BufferLoad) else BufferStore(buffer, node.value, node.indices)

    return buffer, _ffi_api.IRTransform(body, None, moved, ["tir.BufferLoad", "tir.BufferStore"])


def stmt_seq(*args):
    """Statements and expressions in order; one alone stays itself."""
    return _ffi_api.SeqStmt([a if isinstance(a, Stmt) else Evaluate(a) for a in args])


def stmt_list(stmt):
    """The statements of a sequence; of another statement itself."""
    return [x for s in stmt.seq for x in stmt_list(s)] if isinstance(stmt, SeqStmt) else [stmt]
