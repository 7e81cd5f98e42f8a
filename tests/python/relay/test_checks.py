# SPDX-License-Identifier: Apache-2.0
"""Checks of types and programs that raise TVMError for what is not so, and nodes that lack a part."""

import pytest

import baton as tvm
from baton import relay
from baton.relay import TypeKind, analysis, transform
from baton.relay.backend import name_transforms
from baton.relay.prelude import Prelude

SCALAR = relay.TensorType((), "float32")
SHAPE = relay.TypeVar("s", TypeKind.ShapeVar)


@pytest.fixture
def lists():
    mod = tvm.IRModule()
    Prelude(mod)
    return mod, mod.get_global_type_var("List")


def blocks(bound):
    """A value that both branches use; bound before them, or computed where it is used."""
    c, y = relay.var("c", shape=(), dtype="bool"), relay.var("y", shape=(2,))
    z = relay.Var("z") if bound else y + y
    branch = relay.If(c, z, z + z)
    return relay.Function([c, y], relay.Let(z, y + y, branch) if bound else branch)


def test_basic_blocks():
    x = relay.var("x", shape=(2,))
    assert analysis.check_basic_block_normal_form(x + x)
    assert analysis.check_basic_block_normal_form(blocks(True))
    assert analysis.check_basic_block_normal_form(tvm.IRModule.from_expr(blocks(True))["main"])
    f, g = relay.Var("f"), relay.Function([x], blocks(False))
    for wrong in (blocks(False), relay.Let(f, blocks(False), f), g):
        with pytest.raises(tvm.TVMError, match="not in basic block normal form"):
            analysis.check_basic_block_normal_form(wrong)
    y = relay.var("y", shape=(2,))
    z = y + y
    with pytest.raises(tvm.TVMError, match="not in basic block normal form"):  # a closure's body is a block
        analysis.check_basic_block_normal_form(relay.Function([y], relay.Tuple([z, relay.Function([x], x + z)])))


@pytest.mark.parametrize(
    "wrong, seen",
    [
        (relay.TupleType([SHAPE]), "a field of a tuple is a shape"),
        (relay.RefType(SHAPE), "a reference refers to is a shape"),
        (relay.FuncType([SHAPE], SCALAR), "an argument of a function is a shape"),
        (relay.FuncType([SCALAR], SHAPE), "the result of a function is a shape"),
        (relay.FuncType([SCALAR], None), "the result of a function is missing"),
        (relay.FuncType([SCALAR], SCALAR, [], [relay.TypeRelation(None, [SHAPE], 1, None)]), "an argument of a relation is a shape"),
        (relay.TypeRelation(None, [SHAPE], 1, None), "an argument of a relation is a shape"),
        (relay.TypeRelation(None, [relay.TypeRelation(None, [SCALAR], 1, None)], 1, None), "an argument of a relation is a constraint"),
        (relay.TupleType([relay.FuncType([relay.TupleType([relay.IncompleteType(TypeKind.ShapeVar)])], SCALAR)]), "a field of a tuple is a shape"),
        (relay.TypeCall(SCALAR, []), "a type that is no data type"),
        (relay.TypeCall(relay.GlobalTypeVar("g", TypeKind.Type), []), "a type that is no data type"),
        (relay.TypeData(relay.GlobalTypeVar("g"), [SHAPE], []), "a parameter of a data type is a shape"),
        (relay.TypeData(relay.GlobalTypeVar("g"), [], [relay.Constructor("c", [SHAPE], relay.GlobalTypeVar("g"))]), "a field of a constructor is a shape"),
    ],
)
def test_types_of_a_wrong_kind(wrong, seen):
    with pytest.raises(tvm.TVMError, match=seen):
        analysis.check_kind(wrong)


def test_kinds(lists):
    mod, items = lists
    assert analysis.check_kind(relay.FuncType([SCALAR], SCALAR)) == TypeKind.Type
    assert analysis.check_kind(SHAPE) == TypeKind.ShapeVar
    assert analysis.check_kind(relay.TypeRelation(None, [SCALAR], 1, None)) == TypeKind.Constraint
    assert analysis.check_kind(items, mod) == TypeKind.AdtHandle
    assert analysis.check_kind(items(SCALAR), mod) == TypeKind.Type
    assert analysis.check_kind(mod.type_definitions[items], mod) == TypeKind.TypeData


@pytest.mark.parametrize("args", [[], [SCALAR, SCALAR]])
def test_data_types_of_another_number_of_arguments(lists, args):
    mod, items = lists
    x = relay.Var("x", items(*args))
    inner = relay.Var("f", relay.FuncType([items(*args)], SCALAR))
    seen = f"`List` takes 1 arguments, got {len(args)}"
    for kind in (items(*args), inner.type_annotation, relay.TupleType([inner.type_annotation])):
        with pytest.raises(tvm.TVMError, match=seen):
            analysis.check_kind(kind, mod)
    for func in (
        relay.Function([x], relay.const(1)),
        relay.Function([inner], relay.const(1)),
        relay.Function([], relay.Let(relay.Var("g"), relay.Function([x], relay.const(1)), relay.const(2))),
        relay.Function([relay.Var("y", SCALAR)], relay.const(1), items(*args)),
    ):
        with pytest.raises(tvm.TVMError, match=seen):
            made = tvm.IRModule(dict(mod.functions), mod.type_definitions)
            made["main"] = func
            transform.InferType()(made)


def test_names_of_generated_things():
    wrong = [
        (name_transforms.to_c_function_style, ""),
        (name_transforms.to_c_function_style, "model_run"),
        (name_transforms.to_c_variable_style, "_x"),
        (name_transforms.to_c_constant_style, "tvm_x"),
        (name_transforms.prefix_name, []),
        (name_transforms.prefix_generated_name, ["a", ""]),
        (name_transforms.sanitize_name, ""),
    ]
    for function, name in wrong:
        with pytest.raises(tvm.TVMError):
            function(name)
        with pytest.raises(ValueError):
            function(name)


@pytest.mark.parametrize("shape, dtype", [("xx", "xx"), ("ab", "float32"), ((1, 2.5), "float32"), ((None,), "float32"), ((1,), "xx")])
def test_tensor_types_that_are_none(shape, dtype):
    with pytest.raises(tvm.TVMError):
        relay.TensorType(shape, dtype)
    with pytest.raises(TypeError):
        relay.TensorType(shape, dtype)


def test_spans_without_a_source_and_functions_without_a_result():
    span = relay.Span(None, 1, 2, 3, 4)
    back = tvm.ir.load_json(tvm.ir.save_json(span))
    for s in (span, back):
        assert s.source_name is None and (s.line, s.end_line, s.column, s.end_column) == (1, 2, 3, 4) and str(s)
    kind = relay.FuncType([SCALAR], None)
    assert kind.ret_type is None and "fn (float32)" in str(kind)
    back = tvm.ir.load_json(tvm.ir.save_json(kind))
    assert tvm.ir.structural_equal(back, kind) and tvm.ir.structural_hash(back) == tvm.ir.structural_hash(kind)
    x, f = relay.var("x", SCALAR, span=span), relay.Var("f", kind)
    call = relay.Call(relay.op.get("add"), [x, relay.const([1.0, 2.0])], span=span)
    assert transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], call)))["main"].ret_type == relay.TensorType((2,))
    for func in (relay.Function([f], relay.const(1)), relay.Function([x], relay.const(1), kind), relay.Function([f], f(relay.const(1.0)))):
        with pytest.raises(tvm.TVMError, match="the result of a function is missing"):
            transform.InferType()(tvm.IRModule.from_expr(func))
    bad = relay.Call(relay.op.get("add"), [relay.var("y", shape=(3,)), relay.const([1.0, 2.0])], span=span)
    with pytest.raises(tvm.TVMError, match="do not broadcast"):
        transform.InferType()(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(bad), bad)))
