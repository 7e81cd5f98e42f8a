# SPDX-License-Identifier: Apache-2.0
"""Natural numbers as a data type: Z and S(n). `prelude.mod.import_from_std("nat.rly")` brings it."""

from ...relay.backend.interpreter import ConstructorValue
from ...relay.expr import Call


def _parts(prelude):
    """(nat, z, s) of a prelude's module."""
    return prelude.mod.get_type("nat")


def count(prelude, n):
    """The number that a value or an expression of `nat` stands for."""
    _, z, s = _parts(prelude)
    found = 0
    while True:
        constructor, fields = (n.constructor, n.fields) if isinstance(n, ConstructorValue) else (n.op, n.args) if isinstance(n, Call) else (None, ())
        if constructor is not None and constructor.name_hint == z.name_hint:
            return found
        if constructor is None or constructor.name_hint != s.name_hint:
            raise ValueError(f"no value of nat: {n}")
        n, found = fields[0], found + 1


def _check(n):
    if n < 0:
        raise ValueError(f"a natural number is not negative, {n} is")


def make_nat_value(prelude, n):
    """The value of a number."""
    _check(n)
    _, z, s = _parts(prelude)
    value = ConstructorValue(z.tag, [], z)
    for _ in range(n):
        value = ConstructorValue(s.tag, [value], s)
    return value


def make_nat_expr(prelude, n):
    """The expression of a number."""
    _check(n)
    _, z, s = _parts(prelude)
    expr = z()
    for _ in range(n):
        expr = s(expr)
    return expr


def add_nat_definitions(prelude):
    """Adds `nat` and its functions to a prelude, which then has `nat`, `z`, `s`, `double` and `add`."""
    prelude.mod.import_from_std("nat.rly")
    prelude.nat, prelude.z, prelude.s = _parts(prelude)
    prelude.double, prelude.add = prelude.mod.get_global_var("nat_double"), prelude.mod.get_global_var("nat_add")


__all__ = ["add_nat_definitions", "count", "make_nat_expr", "make_nat_value"]
