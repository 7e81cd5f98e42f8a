# SPDX-License-Identifier: Apache-2.0
"""The common part of Relay and TIR: types, expressions' bases, modules, operators, passes, instruments."""

from .._ffi import load_compiler

load_compiler()

from .._core import Array, Map  # noqa: E402
from .._ffi.object import attach_classes  # noqa: E402
from . import diagnostics, instrument, transform  # noqa: E402
from .attrs import Attrs, DictAttrs, make_node  # noqa: E402
from .base import (  # noqa: E402
    SourceName,
    Span,
    assert_structural_equal,
    get_first_structural_mismatch,
    load_json,
    save_json,
    structural_equal,
    structural_hash,
)
from .env_func import EnvFunc  # noqa: E402
from .expr import BaseExpr, GlobalVar, PrimExpr, Range, RelayExpr  # noqa: E402
from .function import BaseFunc, CallingConv  # noqa: E402
from .module import IRModule  # noqa: E402
from .op import Op, register_intrin_lowering, register_op_attr  # noqa: E402
from .tensor_type import TensorType  # noqa: E402
from .type import (  # noqa: E402
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TupleType,
    Type,
    TypeConstraint,
    TypeKind,
    TypeVar,
)
from .type_relation import TypeCall, TypeRelation  # noqa: E402

attach_classes(__name__, "", {"TestAttrs": "attrs.TestAttrs"})

__all__ = [
    "Array",
    "Attrs",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "DictAttrs",
    "EnvFunc",
    "FuncType",
    "GlobalTypeVar",
    "GlobalVar",
    "IRModule",
    "IncompleteType",
    "Map",
    "Op",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "RelayExpr",
    "RelayRefType",
    "SourceName",
    "Span",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "assert_structural_equal",
    "diagnostics",
    "get_first_structural_mismatch",
    "instrument",
    "load_json",
    "make_node",
    "register_intrin_lowering",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]
