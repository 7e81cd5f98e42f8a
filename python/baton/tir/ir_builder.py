# SPDX-License-Identifier: Apache-2.0
"""A builder of PrimFuncs: statements in order, with Python's `with` for scopes of the program."""

from . import op
from .buffer import Buffer
from .expr import BufferLoad, PrimExpr, SizeVar, Var
from .stmt import Allocate, AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, While

_KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "vectorized": ForKind.VECTORIZED,
    "unrolled": ForKind.UNROLLED,
}


class WithScope:
    """A scope of the program: `with` gives its value, and its end closes it."""

    def __init__(self, value, close):
        self._value, self._close = value, close

    def __enter__(self):
        return self._value

    def __exit__(self, kind, value, trace):
        if kind is None:
            self._close()


class BufferVar:
    """Memory that the program reads and writes: `A[i]` reads, `A[i] = x` adds a statement that writes.

    One index of a buffer of several dimensions counts its elements in row-major order.
    """

    def __init__(self, builder, buffer):
        self._builder, self.buffer = builder, buffer

    def asobject(self):
        """Its variable of pointer type."""
        return self.buffer.data

    @property
    def dtype(self):
        """Dtype of its elements."""
        return self.buffer.dtype

    def _at(self, index):
        index = list(index) if isinstance(index, (list, tuple)) else [index]
        shape = list(self.buffer.shape)
        if len(index) == 1 and len(shape) > 1:
            (flat,), index = index, []
            for extent in reversed(shape[1:]):
                index.insert(0, op.floormod(op.convert(flat), extent))
                flat = op.floordiv(op.convert(flat), extent)
            index.insert(0, flat)
        if len(index) != len(shape):
            raise ValueError(f"`{self.buffer.name}` has {len(shape)} dimensions, got {len(index)} indices")
        return [op.convert(i) for i in index]

    def __getitem__(self, index):
        return BufferLoad(self.buffer, self._at(index))

    def __setitem__(self, index, value):
        value = op.const(value, self.dtype) if isinstance(value, (bool, int, float)) else value
        if value.dtype == "int64" and self.dtype in ("int32", "int16", "int8"):
            value = op.cast(self.dtype, value)  # loops and sizes are int64
        if value.dtype != self.dtype:
            raise ValueError(f"`{self.buffer.name}` holds {self.dtype}, the value is {value.dtype}; cast it")
        self._builder.emit(BufferStore(self.buffer, value, self._at(index)))


class IRBuilder:
    """Collects statements; `get` gives them.

    ib = tir.ir_builder.create()
    n = te.size_var("n")
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(tir.truncmod(i, 2) == 0):
            A[i] = A[i] + 1.0
        with ib.else_scope():
            A[0] = A[i] + 2.0
    func = tir.PrimFunc([A.buffer, n], ib.get())
    """

    def __init__(self):
        self._scopes = [[]]
        self._names = {}

    def _open(self):
        self._scopes.append([])

    def _close(self):
        statements = self._scopes.pop()
        # A mark or a binding holds for all statements behind it.
        body = None
        for s in reversed(statements):
            if callable(s):
                body = s(body if body is not None else Evaluate(op.const(0)))
            elif body is None:
                body = s
            else:
                rest = list(body.seq) if isinstance(body, SeqStmt) else [body]
                body = SeqStmt([s, *rest])
        return body if body is not None else Evaluate(op.const(0))

    def emit(self, stmt):
        """Adds a statement; an expression is evaluated; a function gets the statements behind it and returns the whole."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise TypeError(f"emit takes a statement, an expression or a function, not {type(stmt).__name__}")
        self._scopes[-1].append(stmt)

    def scope_attr(self, node, attr_key, value):
        """Marks all statements behind it in this scope."""
        value = op.convert(value)
        self.emit(lambda body: AttrStmt(node, attr_key, value, body))

    def for_range(self, begin, end, name="i", dtype=None, kind="serial", thread_binding=None, annotations=None):
        """A loop over `[begin, end)`, as its variable. kind: "serial", "parallel", "vectorize" or "unroll"."""
        if kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}; it is one of {', '.join(sorted(_KINDS))}")
        begin, end = op.convert(begin), op.convert(end)
        var = Var(self._fresh(name), dtype or end.dtype)
        # The operator folds literals.
        extent = end if getattr(begin, "value", None) == 0 else end - begin
        self._open()

        def close():
            self.emit(For(var, begin, extent, _KINDS[kind], self._close(), thread_binding, annotations))

        return WithScope(var, close)

    def while_loop(self, condition):
        """A scope that is repeated as long as a condition holds, which is asked before each round."""
        self._open()
        return WithScope(None, lambda: self.emit(While(op.convert(condition), self._close())))

    def if_scope(self, cond):
        """A scope that runs if a condition holds."""
        self._open()
        return WithScope(None, lambda: self.emit(IfThenElse(op.convert(cond), self._close())))

    def else_scope(self):
        """A scope that runs otherwise; it comes right behind an if_scope."""
        before = self._scopes[-1]
        if not before or not isinstance(before[-1], IfThenElse) or before[-1].else_case is not None:
            raise RuntimeError("else_scope can only come right after an if_scope")
        given = before.pop()
        self._open()
        return WithScope(None, lambda: self.emit(IfThenElse(given.condition, given.then_case, self._close())))

    def new_scope(self):
        """A separate scope for bindings and marks."""
        self._open()
        return WithScope(None, lambda: self.emit(self._close()))

    def let(self, var_name, value):
        """Binds a value to a variable for the statements behind it."""
        value = op.convert(value)
        var = Var(self._fresh(var_name), value.dtype)
        self.emit(lambda body: LetStmt(var, value, body))
        return var

    def allocate(self, dtype, shape, name="buf", axis_separators=None, scope=""):
        """New memory for the statements behind it. scope: "" or "local"."""
        if isinstance(axis_separators, str):  # the scope was in this place
            scope = axis_separators
        shape = list(shape) if isinstance(shape, (list, tuple)) or type(shape).__name__ == "Array" else [shape]
        buffer = Buffer(shape, dtype, self._fresh(name), scope or "")
        self.emit(lambda body: Allocate(buffer, body))
        return BufferVar(self, buffer)

    def pointer(self, content_type, name="ptr", scope=""):
        """External memory of unknown length; `.buffer` is a parameter of the function."""
        name = self._fresh(name)
        return BufferVar(self, Buffer([SizeVar(name + "_size", "int64")], content_type, name, scope or ""))

    def buffer_ptr(self, buf, shape=None):
        """A buffer to read and write."""
        if shape is not None and len(shape) != len(buf.shape):
            raise ValueError(f"`{buf.name}` has {len(buf.shape)} dimensions, the shape {len(shape)}")
        return BufferVar(self, buf)

    def likely(self, expr):
        """A condition that mostly holds. The hint is not used: returns the expression."""
        return expr

    def get(self):
        """All statements; every scope has to be closed."""
        if len(self._scopes) != 1:
            raise RuntimeError(f"{len(self._scopes) - 1} scopes are still open; get() comes after their `with`")
        body = self._close()
        self._scopes = [[]]
        return body

    def _fresh(self, name):
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"


def create():
    """A new IRBuilder."""
    return IRBuilder()


__all__ = ["BufferVar", "IRBuilder", "WithScope", "create"]
