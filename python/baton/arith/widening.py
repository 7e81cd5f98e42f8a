# SPDX-License-Identifier: Apache-2.0
"""Expressions of int32 as expressions of int64 and back: the analysis reasons about int64, as numbers without end."""

from ..ir import PrimExpr
from ..tir import Broadcast, Call, Cast, IntImm, Let, Not, Ramp, Select, Var
from ..tir.expr import BinaryOpExpr
from .walk import parts_first

_NARROW, _WIDE = "int32", "int64"


class Widening:
    """Widens int32 and takes back. A variable, and whatever else gives an int32, stands as a variable of int64, always the same one."""

    def __init__(self):
        self._wide, self._narrow = {}, {}  # handle -> (the expression, which it keeps alive; what stands for it)

    def wide(self, e):
        """The expression in int64."""
        return self._through(e, self._wide_part)

    def _wide_part(self, e, wide):
        dtype = str(e.dtype)
        if isinstance(e, IntImm):
            return IntImm(_WIDE, e.value) if dtype == _NARROW else e
        if isinstance(e, Var):
            return self._stands_for(e) if dtype == _NARROW else e
        made = self._rebuilt(e, wide)
        return self._stands_for(e) if made is None and dtype == _NARROW else e if made is None else made

    def _stands_for(self, e):
        key = e.handle
        if key not in self._wide:
            name = e.name if isinstance(e, Var) else "value"
            var = type(e)(name, _WIDE) if isinstance(e, Var) else Var(name, _WIDE)
            self._wide[key], self._narrow[var.handle] = (e, var), (var, e)
        return self._wide[key][1]

    def narrow(self, e):
        """What `wide` began with, after analysis."""
        return self._through(e, self._narrow_part)

    def _narrow_part(self, e, narrow):
        if isinstance(e, IntImm):
            return IntImm(_NARROW, e.value) if str(e.dtype) == _WIDE else e
        if isinstance(e, Var):
            return self._narrow.get(e.handle, (None, e))[1]
        made = self._rebuilt(e, narrow)
        return e if made is None else made

    def _through(self, e, become):
        """What an expression becomes; `become` is told of a part and of what the parts of it became."""
        if not isinstance(e, PrimExpr):
            return e
        made = {}  # by handle: the part, held so that its handle stays its own, and what it became
        for part in parts_first(e, self._parts):
            made[part.handle] = (part, become(part, lambda p: made[p.handle][1] if isinstance(p, PrimExpr) else p))
        return made[e.handle][1]

    @classmethod
    def _parts(cls, e):
        parts = []
        cls._rebuilt(e, lambda part: parts.append(part) or part)
        return [p for p in parts if isinstance(p, PrimExpr)]

    @staticmethod
    def _rebuilt(e, f):
        """The expression of other parts; None for one whose parts are left alone."""
        if isinstance(e, BinaryOpExpr):
            return type(e)(f(e.a), f(e.b))
        if isinstance(e, Not):
            return Not(f(e.a))
        if isinstance(e, Select):
            return Select(f(e.condition), f(e.true_value), f(e.false_value))
        if isinstance(e, Ramp):
            return Ramp(f(e.base), f(e.stride), e.lanes)
        if isinstance(e, Broadcast):
            return Broadcast(f(e.value), e.lanes)
        if isinstance(e, Let):
            return Let(f(e.var), f(e.value), f(e.body))
        if isinstance(e, Cast) and {str(e.dtype), str(e.value.dtype)} <= {_NARROW, _WIDE}:
            return f(e.value)
        if isinstance(e, Cast) and str(e.dtype) not in (_NARROW, _WIDE):
            return Cast(e.dtype, e.value)
        if isinstance(e, Call) and str(e.op.name) in ("tir.if_then_else", "tir.likely", "tir.abs", "tir.shift_left", "tir.shift_right"):
            args = [f(a) for a in e.args]
            return Call(str(args[-1].dtype), e.op, args)
        return None

    def is_needed(self, *exprs):
        """Whether an expression is, or is built of, int32."""
        return any(str(p.dtype).startswith(_NARROW) for e in exprs if isinstance(e, PrimExpr) for p in parts_first(e, self._parts))


__all__ = ["Widening"]
