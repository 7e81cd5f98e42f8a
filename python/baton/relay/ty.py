# SPDX-License-Identifier: Apache-2.0
"""Types of Relay."""

from ..ir import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from ..tir.expr import Any

RefType = RelayRefType


def ShapeVar(name):
    """A type parameter that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype):
    """Type of a tensor of rank 0."""
    return TensorType((), dtype)


def type_has_any(tensor_type):
    """Whether a dimension of the tensor type is not known."""
    return any(isinstance(dim, Any) for dim in tensor_type.shape)


def is_dynamic(t):
    """Whether a dimension anywhere in the type is not known."""
    if isinstance(t, TensorType):
        return any(not hasattr(dim, "value") for dim in t.shape)
    if isinstance(t, TupleType):
        return any(is_dynamic(f) for f in t.fields)
    return False


__all__ = [
    "Any",
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "RefType",
    "RelayRefType",
    "ShapeVar",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
    "type_has_any",
]
