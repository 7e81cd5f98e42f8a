# SPDX-License-Identifier: Apache-2.0
"""Types."""

import enum

from .._core import Object
from .base import astext, structural_equal, structural_hash


class Type(Object, key="Type"):
    """Base of all types. Equal types are structurally equal."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Type) and (self.same_as(other) or structural_equal(self, other))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return structural_hash(self)

    def astext(self, show_meta_data=True):
        """The text form."""
        return astext(self, show_meta_data)


class TypeKind(enum.IntEnum):
    """The kind of a type variable."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Shape = 3
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class PrimType(Type, key="PrimType"):
    """Type of a scalar in a PrimFunc."""

    __slots__ = ()


class PointerType(Type, key="PointerType"):
    """Pointer to elements, in a PrimFunc."""

    __slots__ = ()

    def __init__(self, element_type, storage_scope=""):
        super().__init__(element_type=element_type, storage_scope=storage_scope)


class TypeCall(Type, key="TypeCall"):
    """A data type applied to arguments, as `List[A]`."""

    __slots__ = ()

    def __init__(self, func, args, span=None):
        super().__init__(func=func, args=list(args), span=span)


class TypeVar(Type, key="TypeVar"):
    """A type parameter."""

    __slots__ = ()

    def __init__(self, name_hint, kind=TypeKind.Type):
        super().__init__(name_hint=name_hint, kind=int(kind))

    def __call__(self, *args):
        """The type applied to arguments."""
        return TypeCall(self, args)


class GlobalTypeVar(Type, key="GlobalTypeVar"):
    """Name of a data type."""

    __slots__ = ()

    def __init__(self, name_hint, kind=TypeKind.AdtHandle):
        super().__init__(name_hint=name_hint, kind=int(kind))

    def __call__(self, *args):
        """The data type applied to arguments."""
        return TypeCall(self, args)


class TupleType(Type, key="TupleType"):
    """Type of a tuple."""

    __slots__ = ()

    def __init__(self, fields=(), span=None):
        super().__init__(fields=list(fields), span=span)


class TypeConstraint(Type, key="TypeConstraint"):
    """A constraint on types."""

    __slots__ = ()


class FuncType(Type, key="FuncType"):
    """`fn<type_params>(arg_types) -> ret_type where type_constraints`. A `ret_type` of None makes a type that is not complete: it can be
    printed and saved, and no program may have it."""

    __slots__ = ()

    def __init__(self, arg_types, ret_type, type_params=None, type_constraints=None, span=None):
        super().__init__(
            type_params=list(type_params or ()), arg_types=list(arg_types), ret_type=ret_type, type_constraints=list(type_constraints or ()), span=span
        )


class IncompleteType(Type, key="IncompleteType"):
    """A type that inference fills in. Two of them are different."""

    __slots__ = ()

    def __init__(self, kind=TypeKind.Type, span=None):
        super().__init__(kind=int(kind), span=span)


class RelayRefType(Type, key="relay.RefType"):
    """Type of a reference to a value."""

    __slots__ = ()

    def __init__(self, value, span=None):
        super().__init__(value=value, span=span)
