# SPDX-License-Identifier: Apache-2.0
"""Expressions of int32 as expressions of int64 and back: the analysis reasons about int64, as numbers without end."""

import functools

from .._core import Array, Map, Object
from ..ir import PrimExpr, make_node
from ..ir.expr import EqualOp
from ..tir import Broadcast, Call, Cast, IntImm, Let, Not, Ramp, Select, Var
from ..tir.expr import BinaryOpExpr
from .walk import parts_first

_NARROW, _WIDE = "int32", "int64"
_BITWISE = ("tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor", "tir.bitwise_not")


class Widening:
    """Widens int32 and takes back. A variable, and whatever else gives an int32, becomes a variable of int64, always the same one."""

    def __init__(self, told=None):
        """told: is called with each new variable of int64 that stands for one of int32."""
        self._told = told
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
        made = self._rebuilt(e, wide, _WIDE)
        return self._stands_for(e) if made is None and dtype == _NARROW else e if made is None else made

    def afresh(self, var):
        """Another variable of int64 that stands for this one from here on, of which nothing is known; of int64 the same variable."""
        if str(var.dtype) != _NARROW:
            return var
        self._wide.pop(var.handle, None)
        told, self._told = self._told, None
        try:
            return self._stands_for(var)
        finally:
            self._told = told

    def _stands_for(self, e):
        key = e.handle
        if key not in self._wide:
            name = e.name if isinstance(e, Var) else "value"
            var = type(e)(name, _WIDE) if isinstance(e, Var) else Var(name, _WIDE)
            self._wide[key], self._narrow[var.handle] = (e, var), (var, e)
            if self._told:
                self._told(var)
        return self._wide[key][1]

    def narrow(self, e):
        """Returns the original of `wide`, after analysis."""
        return self._through(e, self._narrow_part)

    def _narrow_part(self, e, narrow):
        if isinstance(e, IntImm):
            return IntImm(_NARROW, e.value) if str(e.dtype) == _WIDE else e
        if isinstance(e, Var):
            return self._narrow.get(e.handle, (None, e))[1]
        made = self._rebuilt(e, narrow, _NARROW)
        return e if made is None else made

    def _through(self, e, become):
        """Returns the result for an expression; `become` is told of a part and of what the parts of it became."""
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
    def _rebuilt(e, f, to=_NARROW):
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
        if isinstance(e, Cast) and str(e.value.dtype) not in (_NARROW, _WIDE) and str(e.dtype) in (_NARROW, _WIDE):
            if str(e.value.dtype).startswith(("bool", "int", "uint")) and "x" not in str(e.value.dtype):
                return Cast(to, f(e.value))
        if isinstance(e, Cast) and {str(e.dtype), str(e.value.dtype)} <= {_NARROW, _WIDE}:
            return f(e.value)
        if isinstance(e, Cast) and str(e.dtype) not in (_NARROW, _WIDE):
            return Cast(e.dtype, e.value)
        if isinstance(e, Call) and str(e.op.name) in ("tir.if_then_else", "tir.likely", "tir.abs", "tir.shift_left", "tir.shift_right", *_BITWISE):
            args = [f(a) for a in e.args]
            return Call(str(args[-1].dtype), e.op, args)
        return None

    def is_needed(self, *exprs):
        """Whether an expression is, or is built of, int32."""
        return any(str(p.dtype).startswith(_NARROW) for e in exprs if isinstance(e, PrimExpr) for p in parts_first(e, self._parts))


class _Everything:
    """Applies `Widening` to all that lists, maps, ranges, sets and iterators hold."""

    def __init__(self):
        self.widening, self.made = Widening(), {}

    def wide(self, x):
        return self._each(x, self.widening.wide)

    def narrow(self, x):
        return self._each(x, self.widening.narrow)

    def is_narrow(self, x):
        found = []
        self._each(x, lambda e: found.append(self.widening.is_needed(e)) or e)
        self.made = {}
        return any(found)

    def _each(self, x, f):
        if isinstance(x, PrimExpr):
            return f(x)
        if isinstance(x, EqualOp):
            return f(x.asobject())
        if isinstance(x, (list, tuple, Array)):
            return [self._each(e, f) for e in x]
        if isinstance(x, (dict, Map)):
            return {self._each(k, f): self._each(v, f) for k, v in x.items()}
        if not isinstance(x, Object) or x.type_key not in _FIELDS:
            return x
        if x.handle not in self.made:  # a mark that two splits share stays one
            fields = {name: self._each(x._field(name), f) for name in _FIELDS[x.type_key]}
            self.made[x.handle] = x, make_node(x.type_key, **fields)
        return self.made[x.handle][1]


_FIELDS = {
    "Range": ("min", "extent"),
    "arith.IntervalSet": ("min_value", "max_value"),
    "arith.IterMark": ("source", "extent"),
    "arith.IterSplitExpr": ("source", "lower_factor", "extent", "scale"),
    "arith.IterSumExpr": ("args", "base"),
}


def in_int64(function):
    """The function, with arguments of int32 in int64, and its result back in int32."""

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(*args, **kwargs):
        every = _Everything()
        if not every.is_narrow([list(args), kwargs]):
            return function(*args, **kwargs)
        found = function(*[every.wide(a) for a in args], **{name: every.wide(a) for name, a in kwargs.items()})
        every.made = {}
        return every.narrow(found)

    return call


__all__ = ["Widening", "in_int64"]
