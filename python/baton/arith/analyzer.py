# SPDX-License-Identifier: Apache-2.0
"""Analysis of integer expressions under what is known of their variables."""

import typing
from contextlib import contextmanager

from .._ffi import get_global_func
from ..ir import Range
from ..tir import EQ, And, FloorMod, IntImm, Var, op
from ..tir.stmt_functor import substitute


class ConstIntBound(typing.NamedTuple):
    """The values `min_value` to `max_value`, both included; NEG_INF and POS_INF say that nothing is known."""

    min_value: int
    max_value: int
    POS_INF = (1 << 63) - 1
    NEG_INF = -((1 << 63) - 1)


class ModularSet(typing.NamedTuple):
    """The values `coeff * k + base`; a `coeff` of 0 is the one value `base`."""

    coeff: int
    base: int


class Analyzer:
    """Simplifies and proves from the ranges of variables.

    analyzer = baton.arith.Analyzer()
    analyzer.bind(x, baton.ir.Range(0, 10))
    analyzer.const_int_bound(x * 2 + 1)     # ConstIntBound(min_value=1, max_value=19)
    analyzer.simplify(x // 10)              # 0
    """

    def __init__(self):
        self._remainders = {}  # variable -> (coeff, base, the variable k of coeff * k + base)
        self._method = get_global_func("arith.MakeAnalyzer")()
        self._bind, self._simplify, self._bound, self._modular = map(self._method, ("bind", "simplify", "const_int_bound", "modular_set"))

    def bind(self, var, expr):
        """Sets the range of a variable, or its value."""
        if isinstance(expr, Range):
            self._bind(var, expr.min, expr.extent)
        else:
            self._bind(var, op.convert(expr), op.const(1, var.dtype))

    def update(self, var, info, override=False):
        """Sets the bounds of a variable, a ConstIntBound, or its remainder, a ModularSet, in place of those known before."""
        if isinstance(info, ModularSet):
            if not override and var in self._remainders:
                raise ValueError(f"the remainder of {var} is known already; override=True replaces it")
            self._remainders[var] = (info.coeff, info.base, Var(f"{var.name}_k", var.dtype))
            return
        if not isinstance(info, ConstIntBound):
            raise TypeError(f"what is told of a variable is a ConstIntBound or a ModularSet, not {type(info).__name__}")
        if not override and self.const_int_bound(var) not in (info, ConstIntBound(ConstIntBound.NEG_INF, ConstIntBound.POS_INF)):
            raise ValueError(f"{var} has the bounds {tuple(self.const_int_bound(var))} already; override=True replaces them")
        low, high = info.min_value > ConstIntBound.NEG_INF, info.max_value < ConstIntBound.POS_INF
        if low and high:
            self._bind(var, op.const(info.min_value, var.dtype), op.const(info.max_value - info.min_value + 1, var.dtype))
        elif self.const_int_bound(var) != (ConstIntBound.NEG_INF, ConstIntBound.POS_INF):
            raise ValueError("a variable whose bounds are known gets two bounds, or is left as it is")
        elif low:
            self._method("assume")(var >= op.const(info.min_value, var.dtype))
        elif high:
            self._method("assume")(var <= op.const(info.max_value, var.dtype))

    def const_int_bound(self, expr):
        """Bounds of an expression's value."""
        return ConstIntBound(*map(int, self._bound(op.convert(expr))))

    def modular_set(self, expr):
        """The known remainder of an expression: its values are `coeff * k + base`."""
        return ModularSet(*map(int, self._modular(self._with_remainders(op.convert(expr)))))

    def _with_remainders(self, expr):
        """The expression with `coeff * k + base` for each variable whose remainder is known."""
        return substitute(expr, {v: k * coeff + base for v, (coeff, base, k) in self._remainders.items()}) if self._remainders else expr

    def int_set(self, expr, dom_map=None):
        """The values that an expression can have while the variables of `dom_map` have values in their sets (`IntervalSet`): an `IntervalSet`
        whose ends are expressions of the other variables. It is never too small."""
        return self._method("int_set")(op.convert(expr), dict(dom_map or {}))

    def simplify(self, expr, steps=2):
        """An equal expression that costs at most as much. `steps` is accepted for older programs."""
        if self._remainders:
            made = self._simplify(self._with_remainders(op.convert(expr)))
            if isinstance(made, IntImm):  # whatever the quotients are
                return made
        return self._simplify(op.convert(expr))

    def rewrite_simplify(self, expr):
        """The same as `simplify`."""
        return self.simplify(expr)

    def canonical_simplify(self, expr):
        """The same as `simplify`."""
        return self.simplify(expr)

    def can_prove(self, expr):
        """Whether a condition is proved to hold. False may also mean that it is not known."""
        return bool(self._method("can_prove")(op.convert(expr)))

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are proved to be equal. False may also mean that it is not known."""
        return bool(self._method("can_prove_equal")(op.convert(lhs), op.convert(rhs)))

    @contextmanager
    def constraint_scope(self, constraint):
        """Assumes a condition within a `with` block."""
        mark, before = self._method("assume")(op.convert(constraint)), dict(self._remainders)
        for var, coeff, base in _remainders_in(op.convert(constraint)):
            self.update(var, ModularSet(coeff, base), override=True)
        try:
            yield self
        finally:
            self._method("forget")(mark)
            self._remainders = before


def _remainders_in(condition):
    """(variable, divisor, remainder) of each `x % c == r` that a condition asks for."""
    if isinstance(condition, And):
        return [*_remainders_in(condition.a), *_remainders_in(condition.b)]
    left, right = (condition.a, condition.b) if isinstance(condition, EQ) else (None, None)
    found = isinstance(left, FloorMod) and isinstance(left.a, Var) and isinstance(left.b, IntImm) and isinstance(right, IntImm)
    return [(left.a, int(left.b), int(right))] if found and int(left.b) > 0 else []


__all__ = ["Analyzer", "ConstIntBound", "ModularSet"]
