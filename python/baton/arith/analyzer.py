# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions under what is known of their variables."""

import typing
from contextlib import contextmanager

from .._ffi import get_global_func
from ..ir import Range, structural_equal
from ..ir.expr import EqualOp
from ..tir import EQ, GE, GT, LE, LT, And, FloorMod, IntImm, Mul, SizeVar, Sub, Var, op
from ..tir.stmt_functor import substitute
from .int_set import IntervalSet, of_int64
from .modular import ModularSet, modular_set
from .rules import rewrite
from .widening import Widening


def _expr(value):
    """An expression of a number or of a comparison in Python."""
    return value.asobject() if isinstance(value, EqualOp) else op.convert(value)


class ConstIntBound(typing.NamedTuple):
    """The values `min_value` to `max_value`, both included; NEG_INF and POS_INF say that nothing is known."""

    min_value: int
    max_value: int
    POS_INF = (1 << 63) - 1
    NEG_INF = -((1 << 63) - 1)


_INT32 = ConstIntBound(-(1 << 31), (1 << 31) - 1)


class Analyzer:
    """Simplifies and proves from the ranges of variables.

    analyzer = baton.arith.Analyzer()
    analyzer.bind(x, baton.ir.Range(0, 10))
    analyzer.const_int_bound(x * 2 + 1)     # ConstIntBound(min_value=1, max_value=19)
    analyzer.simplify(x // 10)              # 0

    Arithmetic of int32 is taken as that of numbers, as indices are: it does not overflow.
    """

    def __init__(self):
        self._widening = Widening(self._of_int32)
        self._values = {}  # variable -> the expression that it is bound to
        self._remainders = {}  # variable -> (coeff, base, the variable k of coeff * k + base)
        self._method = get_global_func("arith.MakeAnalyzer")()
        self._bind, self._canonical, self._bound, self._modular = map(self._method, ("bind", "simplify", "const_int_bound", "modular_set"))

    def _of_int32(self, var):
        low = 0 if isinstance(var, SizeVar) else _INT32.min_value
        self._bind(var, op.const(low, "int64"), op.const(_INT32.max_value - low + 1, "int64"))

    def bind(self, var, expr):
        """Sets the range of a variable, or its value."""
        low, extent = (expr.min, expr.extent) if isinstance(expr, Range) else (_expr(expr), op.const(1, var.dtype))
        wide, low, extent = map(self._widening.wide, (var, low, extent))
        self._bind(wide, low, extent)
        self._values.pop(wide, None)
        if not isinstance(expr, Range):
            self._values[wide] = self._simplify(low)

    def _simplify(self, expr):
        return self._canonical(substitute(expr, self._values) if self._values else expr)

    def update(self, var, info, override=False):
        """Sets the bounds of a variable, a ConstIntBound, or its remainder, a ModularSet, in place of those known before."""
        known, given = self.const_int_bound(var), var
        if override and isinstance(info, ConstIntBound):
            var = self._widening.afresh(var)
        var = self._widening.wide(var)
        if isinstance(info, ModularSet):
            if not override and var in self._remainders:
                raise ValueError(f"the remainder of {var} is known already; override=True replaces it")
            self._remainders[var] = (info.coeff, info.base, Var(f"{var.name}_k", var.dtype))
            return
        if not isinstance(info, ConstIntBound):
            raise TypeError(f"what is told of a variable is a ConstIntBound or a ModularSet, not {type(info).__name__}")
        unknown = (ConstIntBound(ConstIntBound.NEG_INF, ConstIntBound.POS_INF), _INT32)
        if not override and known not in (info, *unknown):
            raise ValueError(f"{var} has the bounds {tuple(known)} already; override=True replaces them")
        low, high = info.min_value > ConstIntBound.NEG_INF, info.max_value < ConstIntBound.POS_INF
        if low and high:
            self._bind(var, op.const(info.min_value, var.dtype), op.const(info.max_value - info.min_value + 1, var.dtype))
        elif str(given.dtype) != "int32" and self.const_int_bound(var) != (ConstIntBound.NEG_INF, ConstIntBound.POS_INF):
            raise ValueError("a variable whose bounds are known gets two bounds, or is left as it is")
        elif low:
            self._method("assume")(var >= op.const(info.min_value, var.dtype))
        elif high:
            self._method("assume")(var <= op.const(info.max_value, var.dtype))

    def const_int_bound(self, expr):
        """Bounds of an expression's value."""
        expr = _expr(expr)
        return ConstIntBound(*map(int, self._bound(self._widening.wide(expr))))

    def modular_set(self, expr):
        """The known remainder of an expression: its values are `coeff * k + base`."""
        remainders = {v.handle: ModularSet(coeff, base) for v, (coeff, base, _) in self._remainders.items()}

        def known(part):
            linear = ModularSet(*map(int, self._modular(self._with_remainders(part)))) if str(part.dtype) == "int64" else None
            return remainders.get(part.handle, linear)

        return modular_set(self._widening.wide(_expr(expr)), known)

    def _with_remainders(self, expr):
        """The expression with `coeff * k + base` for each variable whose remainder is known."""
        return substitute(expr, {v: k * coeff + base for v, (coeff, base, k) in self._remainders.items()}) if self._remainders else expr

    def int_set(self, expr, dom_map=None):
        """The values that an expression can have while the variables of `dom_map` have values in their sets (`IntervalSet`): an `IntervalSet`
        whose ends are expressions of the other variables. It is never too small."""
        expr, wide = _expr(expr), self._widening.wide
        if not self._widening.is_needed(expr):
            return self._method("int_set")(expr, of_int64(dom_map))
        domains = {wide(v): IntervalSet(wide(s.min_value), wide(s.max_value)) for v, s in dict(dom_map or {}).items()}
        found = self._method("int_set")(wide(expr), domains)
        return IntervalSet(self._widening.narrow(found.min_value), self._widening.narrow(found.max_value))

    def simplify(self, expr, steps=2):
        """An equal expression: a canonical sum, and what the rules of `baton.arith.rules` make of it. `steps` is accepted for older
        programs. A comparison keeps its direction."""
        expr = _expr(expr)
        made = _led_by_zero(expr, self._simplified(expr, rules=True))
        turned = {(GT, LT): GT, (GE, LE): GE}.get((type(expr), type(made)))
        return made if turned is None else turned(made.b, made.a)

    def rewrite_simplify(self, expr):
        """The same as `simplify`, with `a > b` as `b < a`."""
        return _led_by_zero(_expr(expr), self._simplified(expr, rules=True))

    def canonical_simplify(self, expr):
        """An equal expression that costs at most as much, as a canonical sum."""
        return self._simplified(expr, rules=False)

    def _simplified(self, expr, rules):
        expr = _expr(expr)
        narrow = self._widening.is_needed(expr)
        made = self._widening.wide(expr) if narrow else expr
        if self._remainders:
            known = self._simplify(self._with_remainders(made))
            if isinstance(known, IntImm):  # whatever the quotients are
                return self._narrowed(known, expr) if narrow else known
        for _ in range(4):
            before = made = self._simplify(made)
            if rules:
                made = rewrite(before)
            if made.same_as(before):
                break
        return self._narrowed(made, expr) if narrow else made

    def _narrowed(self, made, expr):
        """Returns the int64 result for an expression with parts of int32; the expression where both widths are in it and cannot be told apart."""
        try:
            made = self._widening.narrow(made)
        except TypeError:
            return expr
        return made if str(made.dtype) == str(expr.dtype) else made.astype(str(expr.dtype))

    def can_prove(self, expr):
        """Whether a condition is proved to hold. False may also mean that it is not known."""
        expr = self._widening.wide(_expr(expr))
        if self._method("can_prove")(expr):
            return True
        made = self._simplify(rewrite(self._simplify(expr)))
        return isinstance(made, IntImm) and bool(made.value)

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are proved to be equal. False may also mean that it is not known."""
        lhs, rhs = (self._widening.wide(_expr(e)) for e in (lhs, rhs))
        return bool(self._method("can_prove_equal")(lhs, rhs)) or structural_equal(rewrite(self._simplify(lhs)), rewrite(self._simplify(rhs)))

    @contextmanager
    def constraint_scope(self, constraint):
        """Assumes a condition within a `with` block."""
        constraint = self._widening.wide(_expr(constraint))
        mark, before = self._method("assume")(constraint), dict(self._remainders)
        for var, coeff, base in _remainders_in(constraint):
            self.update(var, ModularSet(coeff, base), override=True)
        try:
            yield self
        finally:
            self._method("forget")(mark)
            self._remainders = before


def _led_by_zero(expr, made):
    """A difference of which only a negative term is left as `0 - term`."""
    if isinstance(expr, Sub) and isinstance(made, Mul) and isinstance(made.b, IntImm) and int(made.b) < 0:
        return Sub(IntImm(made.dtype, 0), made.a if int(made.b) == -1 else Mul(made.a, IntImm(made.dtype, -int(made.b))))
    return made


def _remainders_in(condition):
    """(variable, divisor, remainder) of each `x % c == r` that a condition asks for."""
    if isinstance(condition, And):
        return [*_remainders_in(condition.a), *_remainders_in(condition.b)]
    left, right = (condition.a, condition.b) if isinstance(condition, EQ) else (None, None)
    found = isinstance(left, FloorMod) and isinstance(left.a, Var) and isinstance(left.b, IntImm) and isinstance(right, IntImm)
    return [(left.a, int(left.b), int(right))] if found and int(left.b) > 0 else []


__all__ = ["Analyzer", "ConstIntBound", "ModularSet"]
