# SPDX-License-Identifier: Apache-2.0
"""Data types, and `match` over them."""

from .._core import Object
from ..ir import RelayExpr, Type
from .expr import Call, ExprWithOp


class Pattern(Object, key="relay.Pattern"):
    """Base of the patterns of `match`."""

    __slots__ = ()


class PatternWildcard(Pattern, key="relay.PatternWildcard"):
    """Matches anything."""

    __slots__ = ()

    def __init__(self):
        super().__init__()


class PatternVar(Pattern, key="relay.PatternVar"):
    """Matches anything and binds it."""

    __slots__ = ()

    def __init__(self, var):
        super().__init__(var=var)


class PatternConstructor(Pattern, key="relay.PatternConstructor"):
    """Matches what a constructor made."""

    __slots__ = ()

    def __init__(self, constructor, patterns=None):
        super().__init__(constructor=constructor, patterns=list(patterns or ()))


class PatternTuple(Pattern, key="relay.PatternTuple"):
    """Matches a tuple."""

    __slots__ = ()

    def __init__(self, patterns=None):
        super().__init__(patterns=list(patterns or ()))


class Constructor(RelayExpr, key="relay.Constructor"):
    """A constructor of a data type; called, it makes a value."""

    __slots__ = ()

    def __init__(self, name_hint, inputs, belong_to):
        super().__init__(name_hint=name_hint, inputs=list(inputs), belong_to=belong_to)

    def __call__(self, *args):
        return Call(self, args)


class TypeData(Type, key="relay.TypeData"):
    """Definition of a data type."""

    __slots__ = ()

    def __init__(self, header, type_vars, constructors):
        super().__init__(header=header, type_vars=list(type_vars), constructors=list(constructors))


class Clause(Object, key="relay.Clause"):
    """A pattern and the value if it matches."""

    __slots__ = ()

    def __init__(self, lhs, rhs):
        super().__init__(lhs=lhs, rhs=rhs)


class Match(ExprWithOp, key="relay.Match"):
    """`match (data) { clauses }`; with `complete` the clauses must cover all values."""

    __slots__ = ()

    def __init__(self, data, clauses, complete=True, span=None):
        super().__init__(data=data, clauses=list(clauses), complete=complete, span=span)
