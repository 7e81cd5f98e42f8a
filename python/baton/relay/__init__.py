# SPDX-License-Identifier: Apache-2.0
"""Relay: the functional tensor language, its operators, passes and front ends."""

import importlib

from .. import ir as _ir  # loads the compiler  # noqa: F401
from .._ffi.object import generated_class as _generated_class
from ..error import did_you_mean as _did_you_mean
from ..ir import Op, SourceName, Span
from . import adt, analysis, base, expr, expr_functor, function, op, scope_builder, transform, ty, type_functor
from .adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TypeData,
)
from .base import Id
from .expr import (
    Call,
    Constant,
    Expr,
    ExprWithOp,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    TempExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    bind,
    const,
    var,
)
from .expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from .function import Function
from .parser import fromtext, parse, parse_expr
from .scope_builder import ScopeBuilder
from .ty import (
    Any,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    RelayRefType,
    ShapeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeRelation,
    TypeVar,
    scalar_type,
)
from .type_functor import TypeFunctor, TypeMutator, TypeVisitor

_MODULES = frozenset(["backend", "dataflow_pattern", "frontend", "loops", "prelude", "qnn"])
astext = _ir.base.astext


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    value = op.find(name)
    if value is None:
        value = _generated_class("relay." + name)
    if value is None:
        near = "" if name.startswith("_") else _did_you_mean(name, {**{n.rpartition(".")[2]: n for n in op.all_names()}, **{n: n for n in __dir__()}})
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: neither an operator nor a class of Relay{near}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *op.names_in("")})


__all__ = [
    "Any",
    "Call",
    "Clause",
    "Constant",
    "Constructor",
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "ExprWithOp",
    "FuncType",
    "Function",
    "GlobalTypeVar",
    "GlobalVar",
    "Id",
    "If",
    "IncompleteType",
    "Let",
    "Match",
    "Op",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "RefCreate",
    "RefRead",
    "RefType",
    "RefWrite",
    "RelayExpr",
    "RelayRefType",
    "ShapeVar",
    "ScopeBuilder",
    "SourceName",
    "Span",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "TempExpr",
    "TupleWrapper",
    "Type",
    "TypeCall",
    "TypeData",
    "TypeFunctor",
    "TypeKind",
    "TypeMutator",
    "TypeRelation",
    "TypeVar",
    "TypeVisitor",
    "Var",
    "adt",
    "analysis",
    "astext",
    "base",
    "bind",
    "const",
    "expr",
    "expr_functor",
    "fromtext",
    "function",
    "op",
    "parse",
    "parse_expr",
    "scalar_type",
    "scope_builder",
    "transform",
    "ty",
    "type_functor",
    "var",
]
