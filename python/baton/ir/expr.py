# SPDX-License-Identifier: Apache-2.0
"""Bases of expressions, global variables, ranges."""

from .._core import Object
from .._ffi import get_global_func
from .._ffi.hook import Hook
from .base import astext, structural_equal, structural_hash

# Calls are Relay's: `make_call(op, args)`; those of loop expressions are TIR's. Arithmetic on scalars and their text are those of TIR.
make_call = Hook("ir.make_call")
_make_loop_call = Hook("ir.make_loop_call")
_arithmetic = Hook("ir.arithmetic")
_text_of = Hook("ir.prim_expr_text")
_annotated_text_of = Hook("ir.prim_expr_annotated_text")


class BaseExpr(Object, key="BaseExpr"):
    """Base of all expressions."""

    __slots__ = ()

    def astext(self, show_meta_data=True, annotate=None, show_types=True):
        """The text form."""
        return astext(self, show_meta_data, annotate, show_types)


def _value(x):
    """A number, or a literal's; None for other expressions."""
    return x if isinstance(x, (bool, int, float)) else getattr(x, "value", None) if isinstance(x, PrimExpr) else None


def in_types(x):
    """A variable of narrow integers as it is in the shapes of types, which are int64."""
    is_var = isinstance(x, PrimExpr) and x.type_key in ("tir.Var", "tir.SizeVar") and x.dtype != "int64" and x.dtype.startswith("int")
    return get_global_func("ir.WideExtent")(x) if is_var else x


def _is_tensor(value):
    """Whether a value takes arithmetic with expressions itself: a tensor of tensor expressions."""
    return getattr(value, "takes_arithmetic", False)


class EqualOp:
    """`a == b` of loop expressions: an expression where one is wanted, else whether both are the same or equal literals."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def asobject(self):
        """The comparison as an expression."""
        return _arithmetic("equal", self.a, self.b)

    def __bool__(self):
        a, b = _value(self.a), _value(self.b)
        if a is not None and b is not None:
            return a == b
        if not isinstance(self.b, Object) or not isinstance(self.a, Object):
            return False
        return self.a.same_as(self.b)

    def __repr__(self):
        return repr(self.asobject())


class NotEqualOp(EqualOp):
    """`a != b` of loop expressions."""

    def asobject(self):
        return _arithmetic("not_equal", self.a, self.b)

    def __bool__(self):
        return not EqualOp.__bool__(self)


class DivisionAmbiguityError(TypeError, RuntimeError):
    """`/` of integers: which of the divisions is meant is not said."""


class PrimExpr(BaseExpr, key="PrimExpr"):
    """A scalar in a PrimFunc or a dimension of a type. Python's operators on it build expressions and fold literals."""

    __slots__ = ()

    def __str__(self):
        return _annotated_text_of(self)

    def __repr__(self):
        return _text_of(self)

    def __add__(self, other):
        return NotImplemented if _is_tensor(other) else _arithmetic("add", self, other)

    def __radd__(self, other):
        return _arithmetic("add", other, self)

    def __sub__(self, other):
        return NotImplemented if _is_tensor(other) else _arithmetic("sub", self, other)

    def __rsub__(self, other):
        return _arithmetic("sub", other, self)

    def __mul__(self, other):
        return NotImplemented if _is_tensor(other) else _arithmetic("mul", self, other)

    def __rmul__(self, other):
        return _arithmetic("mul", other, self)

    def _divide(self, a, b):
        if _is_tensor(b):
            return NotImplemented
        if self.dtype.startswith(("int", "uint")):
            raise DivisionAmbiguityError("`/` of integers: say which, as a // b (floor) or tir.truncdiv(a, b)")
        return _arithmetic("div", a, b)

    def __truediv__(self, other):
        return self._divide(self, other)

    def __rtruediv__(self, other):
        return self._divide(other, self)

    def __floordiv__(self, other):
        return _arithmetic("floordiv", self, other)

    def __rfloordiv__(self, other):
        return _arithmetic("floordiv", other, self)

    def __mod__(self, other):
        return _arithmetic("floormod", self, other)

    def __rmod__(self, other):
        return _arithmetic("floormod", other, self)

    def __pow__(self, other):
        return _arithmetic("pow", self, other)

    def __neg__(self):
        return _arithmetic("neg", self)

    def __lshift__(self, other):
        return _arithmetic("shift_left", self, other)

    def __rshift__(self, other):
        return _arithmetic("shift_right", self, other)

    def __and__(self, other):
        return _arithmetic("bitwise_and", self, other)

    def __or__(self, other):
        return _arithmetic("bitwise_or", self, other)

    def __xor__(self, other):
        return _arithmetic("bitwise_xor", self, other)

    def __invert__(self):
        return _arithmetic("bitwise_not", self)

    def __lt__(self, other):
        return _arithmetic("lt", self, other)

    def __le__(self, other):
        return _arithmetic("le", self, other)

    def __gt__(self, other):
        return _arithmetic("gt", self, other)

    def __ge__(self, other):
        return _arithmetic("ge", self, other)

    def __eq__(self, other):
        return EqualOp(self, other)

    def __ne__(self, other):
        return NotEqualOp(self, other)

    def __hash__(self):
        return Object.__hash__(self)

    def __bool__(self):
        raise ValueError("an expression has no truth value; use tir.all, tir.any and tir.if_then_else instead of and, or, not, if")

    def equal(self, other, span=None):
        """The comparison as an expression."""
        return _arithmetic("equal", self, other)

    def astype(self, dtype, span=None):
        """The value converted to a dtype."""
        return _arithmetic("cast", str(dtype), self)


class RelayExpr(BaseExpr, key="RelayExpr"):
    """Base of all expressions of Relay."""

    __slots__ = ()

    @property
    def _checked_type_(self):
        """The type that inference found; None before."""
        return self.checked_type_

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
        """A call of the function: TIR's of numbers and loop expressions, else Relay's."""
        if args and all(isinstance(a, (int, float, PrimExpr)) for a in args):
            return _make_loop_call(self, args)
        return make_call(self, args)


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

    def __str__(self):
        return f"range(min={self.min}, ext={self.extent})"

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Range) and structural_equal(self, other)

    def __hash__(self):
        return structural_hash(self)
