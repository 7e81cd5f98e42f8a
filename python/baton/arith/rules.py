# SPDX-License-Identifier: Apache-2.0
"""Identities of integer arithmetic that `Analyzer` applies beside canonical sums: a row a rule.

A row is what an expression looks like, what it becomes, and a condition. `x`, `y`, `z`, `w` stand for any expression, `b` for a condition, `c1`
and `c2` for literals. Operators that commute match both ways round.
"""

import functools

from ..ir import structural_equal
from ..tir import EQ, GE, GT, LE, LT, NE, And, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Not, Or, Select, Var, op
from ..tir.expr import Add, Div, Mod, Mul, Sub
from .walk import parts_first

_x, _y, _z, _w, _c1, _c2 = (Var(name, "int64") for name in ("x", "y", "z", "w", "c1", "c2"))
_b, _d = Var("b", "bool"), Var("d", "bool")
_NAMES = {v.handle: v.name for v in (_x, _y, _z, _w, _c1, _c2, _b, _d)}
_LITERALS = ("c1", "c2")
_COMMUTE = (Add, Mul, Min, Max, And, Or, EQ, NE)
_BINARY = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or)


def _lit(value):
    return IntImm("int64", value)


def _flip(kind):
    return Max if kind is Min else Min


def _of_extremes(k):
    """Rules of Min; those of Max are the same with both exchanged."""
    o = _flip(k)
    joined = min if k is Min else max
    return [
        (k(_x, _x), lambda m: m.x),
        (k(o(_x, _y), _x), lambda m: m.x),
        (k(k(_x, _y), _x), lambda m: k(m.x, m.y)),
        (k(k(_x, _c1), _c2), lambda m: k(m.x, _lit(joined(m.c1, m.c2)))),
        (k(o(_x, _y), o(_x, _z)), lambda m: o(k(m.y, m.z), m.x)),
        (k(_x + _y, _x + _z), lambda m: k(m.y, m.z) + m.x),
        (k(_x - _y, _x - _z), lambda m: m.x - o(m.y, m.z)),
        (k(_y - _x, _z - _x), lambda m: k(m.y, m.z) - m.x),
        (k(_x * _c1, _y * _c1), lambda m: (k if m.c1 > 0 else o)(m.x, m.y) * _lit(m.c1)),
        (k(_x // _c1, _y // _c1), lambda m: (k if m.c1 > 0 else o)(m.x, m.y) // _lit(m.c1)),
        (
            k((_x + _c1) // _c2 * _c2, _x),
            lambda m: m.x if k is Min else (m.x + m.c1) // _lit(m.c2) * m.c2,
            lambda m: m.c2 > 0 and m.c1 + 1 == m.c2,
        ),
        (k(_x // _c2 * _c2, _x), lambda m: m.x // _lit(m.c2) * m.c2 if k is Min else m.x, lambda m: m.c2 > 0),
        (k(_x + _y, _z) - _x, lambda m: k(m.y, m.z - m.x)),
        (k(_x - _y, _z) + _y, lambda m: k(m.x, m.z + m.y)),
        (k(_x * _c1, _y) // _c2, lambda m: k(m.x * (m.c1 // m.c2), m.y // _lit(m.c2)), lambda m: m.c2 > 0 and m.c1 % m.c2 == 0),
        (LT(k(_x, _y), _z), lambda m: (Or if k is Min else And)(LT(m.x, m.z), LT(m.y, m.z))),
        (LT(_z, k(_x, _y)), lambda m: (And if k is Min else Or)(LT(m.z, m.x), LT(m.z, m.y))),
    ]


@functools.cache
def _rules():
    rows = [
        *_of_extremes(Min),
        *_of_extremes(Max),
        (Min(_x, _y) + Max(_x, _y), lambda m: m.x + m.y),
        (Min(_x, _y) * Max(_x, _y), lambda m: m.x * m.y),
        (Select(_b, _x, _y) + Select(_b, _z, _w), lambda m: Select(m.b, m.x + m.z, m.y + m.w)),
        (_x - FloorMod(_x, _c1), lambda m: m.x // _lit(m.c1) * m.c1),
        (_x - _x // _c1 * _c1, lambda m: FloorMod(m.x, _lit(m.c1))),
        (Div(_x, _c1) * _c1 + Mod(_x, _c1), lambda m: m.x),
        (_x * _y + _x * _z, lambda m: m.x * (m.y + m.z)),
        (_x * _y - _x * _z, lambda m: m.x * (m.y - m.z)),
        (_x * _c1 + _c2, lambda m: _lit(m.c2) - m.x, lambda m: m.c1 == -1),
        (_x // _c1, lambda m: m.x * _lit(-1), lambda m: m.c1 == -1),
        (Div(_x * _c1, _c2), lambda m: m.x * (m.c1 // m.c2), lambda m: m.c1 % m.c2 == 0),
        (Mod(_x * _c1, _c2), lambda m: _lit(0), lambda m: m.c1 % m.c2 == 0),
        (Div(Div(_x, _c1), _c2), lambda m: Div(m.x, _lit(m.c1 * m.c2)), lambda m: m.c1 > 0 and m.c2 > 0),
        (Select(Not(_b), _x, _y), lambda m: Select(m.b, m.y, m.x)),
        (GT(_x, _y), lambda m: LT(m.y, m.x)),
        (GE(_x, _y), lambda m: LE(m.y, m.x)),
        (LT(_x // _c1, _c2), lambda m: LT(m.x, _lit(m.c1 * m.c2)), lambda m: m.c1 > 0),
        (LT(_c1, _x // _c2), lambda m: LT(_lit((m.c1 + 1) * m.c2 - 1), m.x), lambda m: m.c2 > 0),
        (EQ(_x * _y, _c1), lambda m: Or(EQ(m.x, 0), EQ(m.y, 0)), lambda m: m.c1 == 0 and not isinstance(m.y, IntImm)),
        (And(_b, _b), lambda m: m.b),
        (Or(_b, _b), lambda m: m.b),
        (Or(EQ(_x, _y), NE(_x, _y)), lambda m: op.const(True)),
        (And(EQ(_x, _y), NE(_x, _y)), lambda m: op.const(False)),
        (Or(LT(_x, _c1), LT(_c2, _x)), lambda m: op.const(True), lambda m: m.c2 < m.c1),
        (And(LT(_x, _c1), LT(_c2, _x)), lambda m: op.const(False), lambda m: m.c2 + 1 >= m.c1),
        (And(LE(_x, _c1), LT(_c2, _x)), lambda m: op.const(False), lambda m: m.c2 >= m.c1),
        (Not(Not(_b)), lambda m: m.b),
        (Not(And(_b, _d)), lambda m: Or(_not(m.b), _not(m.d))),
        (Not(Or(_b, _d)), lambda m: And(_not(m.b), _not(m.d))),
    ]
    by_kind = {}
    for row in rows:
        by_kind.setdefault(type(row[0]), []).append((*row, None)[:3])
    return by_kind


def _not(condition):
    opposite = {LT: lambda e: LE(e.b, e.a), LE: lambda e: LT(e.b, e.a), EQ: lambda e: NE(e.a, e.b), NE: lambda e: EQ(e.a, e.b)}
    opposite |= {GT: lambda e: LE(e.a, e.b), GE: lambda e: LT(e.a, e.b)}
    return opposite.get(type(condition), Not)(condition)


def _children(e):
    if isinstance(e, _BINARY):
        return [e.a, e.b]
    if isinstance(e, Not):
        return [e.a]
    return [e.condition, e.true_value, e.false_value] if isinstance(e, Select) else []


def _matches(pattern, e, found):
    """All ways in which an expression fits, as what the names stand for."""
    name = _NAMES.get(pattern.handle) if isinstance(pattern, Var) else None
    if name is not None:
        if name in _LITERALS:
            if isinstance(e, IntImm) and str(e.dtype) == "int64" and found.get(name, e.value) == e.value:
                yield {**found, name: e.value}
        elif name not in found or structural_equal(found[name], e):
            if (str(e.dtype) == "bool") == (name in ("b", "d")):
                yield {**found, name: e}
        return
    if isinstance(pattern, IntImm):
        if isinstance(e, IntImm) and e.value == pattern.value:
            yield found
        return
    if type(pattern) is not type(e):
        return
    parts, given = _children(pattern), _children(e)
    for order in (given, given[::-1])[: 2 if isinstance(e, _COMMUTE) else 1]:
        ways = [found]
        for p, g in zip(parts, order, strict=True):
            ways = [way for before in ways for way in _matches(p, g, before)]
        yield from ways


class _Found:
    def __init__(self, names):
        self.__dict__.update(names)


def _once(e):
    """An expression whose parts are simple after the first rule that fits it; itself if none does."""
    if isinstance(e, (Add, Mul, EQ, NE)) and isinstance(e.a, IntImm) and not isinstance(e.b, IntImm):
        return type(e)(e.b, e.a)  # literals are on the right
    if isinstance(e, (And, Or)):
        for this, other in ((e.a, e.b), (e.b, e.a)):
            if isinstance(this, IntImm):
                return other if bool(this.value) == isinstance(e, And) else this
    if isinstance(e, Cast) and isinstance(e.value, IntImm) and str(e.dtype).startswith(("int", "uint")):
        return op.const(e.value.value, str(e.dtype))
    if isinstance(e, Not) and isinstance(e.a, IntImm):
        return op.const(not e.a.value)
    if isinstance(e, Select) and isinstance(e.condition, IntImm):
        return e.true_value if e.condition.value else e.false_value
    for pattern, becomes, condition in _rules().get(type(e), ()):
        for names in _matches(pattern, e, {}):
            m = _Found(names)
            if condition is None or condition(m):
                return becomes(m)
    return e


def rebuilt(e, parts):
    """An expression of the kind of `e` with other parts."""
    if all(new.same_as(old) for new, old in zip(parts, _children(e), strict=True)):
        return e
    return type(e)(*parts)


def _settled(e, simple):
    """An expression whose parts are simple, after the rules that fit it."""
    for _ in range(8):
        after = _once(e)
        if after.same_as(e):
            break
        e = rebuilt(after, [_simple(p, simple) for p in _children(after)])
    simple[e.handle] = (e, e)
    return e


def _simple(e, simple):
    """The simple form of what a rule has made: a few levels above parts whose forms are known."""
    if e.handle not in simple:
        simple[e.handle] = (e, _settled(rebuilt(e, [_simple(p, simple) for p in _children(e)]), simple))
    return simple[e.handle][1]


def rewrite(e):
    """An equal expression after all rules that apply to it or to its parts, in time that grows with the number of different parts."""
    simple = {}  # by handle: an expression, held so that its handle stays its own, and its simple form
    for part in parts_first(e, _children, simple):
        _simple(part, simple)
    return simple[e.handle][1]


__all__ = ["rebuilt", "rewrite"]
