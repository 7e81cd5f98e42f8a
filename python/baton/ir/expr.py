# SPDX-License-Identifier: Apache-2.0
"""Bases of expressions, global variables, ranges."""

from .._core import Object
from .._ffi import get_global_func
from .base import astext


class BaseExpr(Object, key="BaseExpr"):
    """Base of all expressions."""

    __slots__ = ()

    def astext(self, show_meta_data=True):
        """The text form."""
        return astext(self, show_meta_data)


def _tir(name, *args):
    return get_global_func("tir.op." + name)(*args)


def _value(x):
    """A number, or a literal's; None for other expressions."""
    return x if isinstance(x, (bool, int, float)) else getattr(x, "value", None) if isinstance(x, PrimExpr) else None


class EqualOp:
    """`a == b` of loop expressions: an expression where one is wanted, else whether both are the same or equal literals."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def asobject(self):
        """The comparison as an expression."""
        return _tir("equal", self.a, self.b)

    def __bool__(self):
        a, b = _value(self.a), _value(self.b)
        if a is not None and b is not None:
            return a == b
        return isinstance(self.b, Object) and isinstance(self.a, Object) and self.a.same_as(self.b)

    def __repr__(self):
        return repr(self.asobject())


class NotEqualOp(EqualOp):
    """`a != b` of loop expressions."""

    def asobject(self):
        return _tir("not_equal", self.a, self.b)

    def __bool__(self):
        return not EqualOp.__bool__(self)


class PrimExpr(BaseExpr, key="PrimExpr"):
    """A number in a loop program or a dimension of a type. Python's operators on it build expressions and fold literals."""

    __slots__ = ()

    def __str__(self):
        return get_global_func("tir.AsText")(self)

    def __add__(self, other):
        return _tir("add", self, other)

    def __radd__(self, other):
        return _tir("add", other, self)

    def __sub__(self, other):
        return _tir("sub", self, other)

    def __rsub__(self, other):
        return _tir("sub", other, self)

    def __mul__(self, other):
        return _tir("mul", self, other)

    def __rmul__(self, other):
        return _tir("mul", other, self)

    def _divide(self, a, b):
        if self.dtype.startswith(("int", "uint")):
            raise TypeError("`/` of integers: say which, as a // b (floor) or tir.truncdiv(a, b)")
        return _tir("div", a, b)

    def __truediv__(self, other):
        return self._divide(self, other)

    def __rtruediv__(self, other):
        return self._divide(other, self)

    def __floordiv__(self, other):
        return _tir("floordiv", self, other)

    def __rfloordiv__(self, other):
        return _tir("floordiv", other, self)

    def __mod__(self, other):
        return _tir("floormod", self, other)

    def __rmod__(self, other):
        return _tir("floormod", other, self)

    def __pow__(self, other):
        return _tir("pow", self, other)

    def __neg__(self):
        return _tir("neg", self)

    def __lshift__(self, other):
        return _tir("shift_left", self, other)

    def __rshift__(self, other):
        return _tir("shift_right", self, other)

    def __and__(self, other):
        return _tir("bitwise_and", self, other)

    def __or__(self, other):
        return _tir("bitwise_or", self, other)

    def __xor__(self, other):
        return _tir("bitwise_xor", self, other)

    def __invert__(self):
        return _tir("bitwise_not", self)

    def __lt__(self, other):
        return _tir("lt", self, other)

    def __le__(self, other):
        return _tir("le", self, other)

    def __gt__(self, other):
        return _tir("gt", self, other)

    def __ge__(self, other):
        return _tir("ge", self, other)

    def __eq__(self, other):
        return EqualOp(self, other)

    def __ne__(self, other):
        return NotEqualOp(self, other)

    def __hash__(self):
        return Object.__hash__(self)

    def __bool__(self):
        raise ValueError("an expression has no truth of its own; use tir.all, tir.any and tir.if_then_else instead of and, or, not, if")

    def equal(self, other, span=None):
        """The comparison as an expression."""
        return _tir("equal", self, other)

    def astype(self, dtype, span=None):
        """The value converted to a dtype."""
        return _tir("cast", str(dtype), self)


class RelayExpr(BaseExpr, key="RelayExpr"):
    """Base of all expressions of Relay."""

    __slots__ = ()

    @property
    def checked_type(self):
        """The type that inference found. Raises ValueError before `InferType` has run."""
        found = self.checked_type_
        if found is None:
            raise ValueError(f"the type of this {type(self).__name__} is not known yet; run baton.relay.transform.InferType()")
        return found


class GlobalVar(RelayExpr, key="GlobalVar"):
    """A function of the module, by name."""

    __slots__ = ()

    def __init__(self, name_hint, type_annotation=None):
        super().__init__(name_hint=name_hint)

    def __call__(self, *args):
        """A call of the function."""
        from .. import relay
        return relay.Call(self, args)


class Range(Object, key="Range"):
    """`[min, min + extent)`. `Range(n)` is `[0, n)`, `Range(a, b)` is `[a, b)`."""

    __slots__ = ()

    def __init__(self, begin, end=None, span=None):
        if end is None:
            super().__init__(min=0, extent=begin, span=span)
        else:
            super().__init__(min=begin, extent=end - begin, span=span)

    @staticmethod
    def from_min_extent(min_value, extent, span=None):
        """The range of `extent` values from `min_value` on."""
        from .attrs import make_node
        return make_node("Range", min=min_value, extent=extent, span=span)

    def __eq__(self, other):
        from .base import structural_equal
        return isinstance(other, Range) and structural_equal(self, other)

    def __hash__(self):
        from .base import structural_hash
        return structural_hash(self)
