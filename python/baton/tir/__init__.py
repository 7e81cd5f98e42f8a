# SPDX-License-Identifier: Apache-2.0
"""TIR: expressions, statements, functions, passes."""

from .. import ir as _ir  # noqa: F401
from .._ffi.object import attach_classes
from ..ir import PrimExpr, Range
from . import analysis, expr, function, ir_builder, op, stmt, stmt_functor, transform
from .buffer import Buffer, decl_buffer
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .expr import (
                   EQ,
                   GE,
                   GT,
                   LE,
                   LT,
                   NE,
                   Add,
                   And,
                   Any,
                   Broadcast,
                   BufferLoad,
                   Call,
                   Cast,
                   Div,
                   EqualOp,
                   FloatImm,
                   FloorDiv,
                   FloorMod,
                   IntImm,
                   IterVar,
                   Let,
                   Max,
                   Min,
                   Mod,
                   Mul,
                   Not,
                   NotEqualOp,
                   Or,
                   Ramp,
                   Select,
                   Shuffle,
                   SizeVar,
                   StringImm,
                   Sub,
                   Var,
)
from .function import PrimFunc
from .op import *  # noqa: F403
from .op import __all__ as _ops
from .stmt import (
                   Allocate,
                   AssertStmt,
                   AttrStmt,
                   BufferStore,
                   Evaluate,
                   For,
                   ForKind,
                   IfThenElse,
                   LetStmt,
                   SeqStmt,
                   Stmt,
                   stmt_list,
                   stmt_seq,
)

attach_classes(__name__, "tir.")

__all__ = ["Add", "Allocate", "And", "Any", "AssertStmt", "AttrStmt", "BijectiveLayout", "Broadcast", "Buffer", "BufferLoad", "BufferStore", "Call", "Cast", "Div", "EQ",
           "EqualOp", "Evaluate", "FloatImm", "FloorDiv", "FloorMod", "For", "ForKind", "GE", "GT", "IfThenElse", "IntImm", "IterVar", "LE", "LT",
           "Layout", "Let", "LetStmt", "Max", "Min", "Mod", "Mul", "NE", "Not", "NotEqualOp", "Or", "PrimExpr", "PrimFunc", "Ramp", "Range", "Select",
           "SeqStmt", "Shuffle", "SizeVar", "Stmt", "StringImm", "Sub", "Var", "analysis", "bijective_layout", "decl_buffer", "expr", "function", "ir_builder", "layout", "op", "stmt",
           "stmt_functor", "stmt_list", "stmt_seq", "transform", *_ops]
