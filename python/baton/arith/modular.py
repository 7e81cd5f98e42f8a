# SPDX-License-Identifier: Apache-2.0
"""Remainders of integer expressions, from those of their parts: each part once, to any depth."""

import math
import typing

from ..tir import Add, Call, Cast, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, Select, Sub
from .walk import parts_first


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
    made, lets = {}, {}  # by handle: remainders of parts; of the variables of lets, their values

    def parts_of(e):
        if isinstance(e, Let):
            lets[e.var.handle] = e.value
        return _parts(e)

    for part in parts_first(expr, parts_of):
        if part.handle in lets:
            made[part.handle] = made[lets[part.handle].handle]
            continue
        found = _from_parts(part, lambda p: made[p.handle])
        other = known(part)
        # The larger of two divisors that hold says more, and one value says most.
        made[part.handle] = found if other is None or found.coeff == 0 or (other.coeff and other.coeff <= found.coeff) else other
    return made[expr.handle]


def _parts(e):
    if isinstance(e, (Add, Sub, Mul, Min, Max, FloorDiv, FloorMod, Mod)):
        return [e.a, e.b]
    if isinstance(e, Select):
        return [e.true_value, e.false_value]
    if isinstance(e, Let):
        return [e.value, e.body]
    if isinstance(e, Call) and str(getattr(e.op, "name", "")) == "tir.shift_right":
        return list(e.args)
    return [e.value] if isinstance(e, Cast) and e.value.dtype.startswith(("int", "uint")) and e.dtype.startswith("int") else []


def _from_parts(e, of):
    if isinstance(e, IntImm):
        return ModularSet(0, int(e.value))
    parts = [of(p) for p in _parts(e)]
    if isinstance(e, (Let, Cast)):
        return parts[-1] if parts else _ANY
    if isinstance(e, Select):
        return _union(*parts)
    if len(parts) != 2:
        return _ANY
    a, b = parts
    if isinstance(e, Add):
        return _of(math.gcd(a.coeff, b.coeff), a.base + b.base)
    if isinstance(e, Sub):
        return _of(math.gcd(a.coeff, b.coeff), a.base - b.base)
    if isinstance(e, Mul):
        return _of(math.gcd(a.coeff * b.coeff, a.coeff * b.base, b.coeff * a.base), a.base * b.base)
    if isinstance(e, (Min, Max)):
        return _union(a, b)
    if isinstance(e, Call):
        by = 1 << b.base if b.coeff == 0 and 0 <= b.base < 63 else 0
        return _of(a.coeff // by, a.base // by) if by and a.coeff % by == 0 else _ANY
    if b.coeff or b.base <= 0:
        return _ANY
    if isinstance(e, FloorDiv):
        return _of(a.coeff // b.base, a.base // b.base) if a.coeff % b.base == 0 else _ANY
    return _of(math.gcd(a.coeff, b.base), a.base) if not isinstance(e, Mod) or a.base % math.gcd(a.coeff, b.base) == 0 else _ANY


__all__ = ["ModularSet", "modular_set"]
