# SPDX-License-Identifier: Apache-2.0
"""Remainders of integer expressions, from those of their parts."""

import math
import typing

from ..tir import Add, Call, Cast, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, Select, Sub, Var


class ModularSet(typing.NamedTuple):
    """The values `coeff * k + base`; a `coeff` of 0 is the one value `base`."""

    coeff: int
    base: int


_ANY = ModularSet(1, 0)


def _of(coeff, base):
    return ModularSet(coeff, base % coeff if coeff else base)


def _union(a, b):
    return _of(math.gcd(a.coeff, b.coeff, abs(a.base - b.base)), a.base)


def modular_set(expr, known):
    """The remainder of an expression; `known(part)` gives what else is known of one, or None."""
    found = _from_parts(expr, known)
    other = known(expr)
    # Of two that hold the larger divisor says more, and one value says most.
    return found if other is None or found.coeff == 0 or (other.coeff and other.coeff <= found.coeff) else other


def _from_parts(e, known):
    if isinstance(e, IntImm):
        return ModularSet(0, int(e.value))
    if isinstance(e, (Add, Sub, Mul, Min, Max)):
        a, b = modular_set(e.a, known), modular_set(e.b, known)
        if isinstance(e, Add):
            return _of(math.gcd(a.coeff, b.coeff), a.base + b.base)
        if isinstance(e, Sub):
            return _of(math.gcd(a.coeff, b.coeff), a.base - b.base)
        if isinstance(e, Mul):
            return _of(math.gcd(a.coeff * b.coeff, a.coeff * b.base, b.coeff * a.base), a.base * b.base)
        return _union(a, b)
    if isinstance(e, Select):
        return _union(modular_set(e.true_value, known), modular_set(e.false_value, known))
    if isinstance(e, Let):
        return modular_set(e.body, lambda part: modular_set(e.value, known) if part.same_as(e.var) else known(part))
    if isinstance(e, (FloorDiv, FloorMod, Mod)):
        a, b = modular_set(e.a, known), modular_set(e.b, known)
        if b.coeff or b.base <= 0:
            return _ANY
        if isinstance(e, FloorDiv):
            return _of(a.coeff // b.base, a.base // b.base) if a.coeff % b.base == 0 else _ANY
        return _of(math.gcd(a.coeff, b.base), a.base) if not isinstance(e, Mod) or a.base % math.gcd(a.coeff, b.base) == 0 else _ANY
    if isinstance(e, Call) and str(getattr(e.op, "name", "")) == "tir.shift_right":
        a, b = modular_set(e.args[0], known), modular_set(e.args[1], known)
        by = 1 << b.base if b.coeff == 0 and 0 <= b.base < 63 else 0
        return _of(a.coeff // by, a.base // by) if by and a.coeff % by == 0 else _ANY
    if isinstance(e, Cast) and e.value.dtype.startswith(("int", "uint")) and e.dtype.startswith("int"):
        return modular_set(e.value, known)
    return _ANY if not isinstance(e, Var) else known(e) or _ANY


__all__ = ["ModularSet", "modular_set"]
