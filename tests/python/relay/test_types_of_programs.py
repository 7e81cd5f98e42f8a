# SPDX-License-Identifier: Apache-2.0
"""Types that inference finds: a row a program, with symbolic and unknown extents, functions, references; what is an error; kinds."""

import numpy as np
import pytest
from building import evaluated, function, parsed, program, tensor, typed, var

import baton as tvm
from baton import relay, te, tir
from baton.relay import FuncType, RefType, TupleType, TypeKind, TypeVar

N, C, H, W, T, D, K, M = (te.size_var(name) for name in ("n", "c", "h", "w", "t", "d", "k", "m"))
INT, FLOAT = relay.scalar_type("int32"), relay.scalar_type("float32")
nn = relay.nn


def fn(*types):
    return FuncType(list(types[:-1]), types[-1])


# A body of free variables, the type of its function, text that its form contains or does not (with a `!`).
TYPES = {
    "broadcast": (lambda: relay.add(var(10, 4), var(5, 10, 1, name="y")), fn(tensor(10, 4), tensor(5, 10, 1), tensor(5, 10, 4)), ""),
    "broadcast of a symbol": (lambda: relay.add(var(N, 5), var(1, 5, name="y")), fn(tensor(N, 5), tensor(1, 5), tensor(N, 5)), ""),
    "elementwise": (lambda: relay.log(var(1, 100)), fn(tensor(1, 100), tensor(1, 100)), ""),
    "elementwise of ints": (lambda: relay.negative(var(10, 4, dtype="int32")), fn(tensor(10, 4, dtype="int32"), tensor(10, 4, dtype="int32")), "negative(%x)"),
    "scalars": (lambda: relay.log(relay.log(var())), fn(tensor(), tensor()), ""),
    "conv2d": (lambda: nn.conv2d(var(N, 10, 224, 224), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=2),
               fn(tensor(N, 10, 224, 224), tensor(2, 10, 3, 3), tensor(N, 2, 224, 224)), ""),
    "dense": (lambda: nn.dense(var(N, C, H, W), var(2, W, name="w"), units=2), fn(tensor(N, C, H, W), tensor(2, W), tensor(N, C, H, 2)), "units=2"),
    "batch_matmul": (lambda: nn.batch_matmul(var(N, M, K), var(N, D, K, name="y")), fn(tensor(N, M, K), tensor(N, D, K), tensor(N, M, D)), ""),
    "max_pool2d": (lambda: nn.max_pool2d(var(N, 10, 224, 224), pool_size=(1, 1)), fn(tensor(N, 10, 224, 224), tensor(N, 10, 224, 224)), ""),
    "bias_add": (lambda: nn.bias_add(var(10, 2, 3, 4), relay.var("b")), fn(tensor(10, 2, 3, 4), tensor(2), tensor(10, 2, 3, 4)), "!axis="),
    "batch_norm": (lambda: nn.batch_norm(var(3, 2, 1), *[var(2, name=i) for i in "gbmv"], center=False, scale=False).astuple(),
                   fn(tensor(3, 2, 1), *[tensor(2)] * 4, TupleType([tensor(3, 2, 1), tensor(2), tensor(2)])), "center=False, scale=False"),
    "dropout": (lambda: nn.dropout(var(N, T, D), rate=0.75), fn(tensor(N, T, D), tensor(N, T, D)), "rate=0.75"),
    "lrn": (lambda: nn.lrn(var(N, C, H, W), size=10, axis=2, bias=0.5, alpha=1e-05, beta=0.75), fn(tensor(N, C, H, W), tensor(N, C, H, W)), "alpha="),
    "yolo_reorg": (lambda: relay.vision.yolo_reorg(var(N, 20, 4, 4), stride=2), fn(tensor(N, 20, 4, 4), tensor(N, 80, 2, 2)), "stride=2"),
    "resize2d": (lambda: relay.image.resize2d(var(N, C, H, W, dtype="int8"), (8, 8)),
                 fn(tensor(N, C, H, W, dtype="int8"), tensor(N, C, 8, 8, dtype="int8")), ""),
    "reshape": (lambda: relay.reshape(var(N, 2, 3), (0, 6)), fn(tensor(N, 2, 3), tensor(N, 6)), ""),
    "split": (lambda: relay.split(var(N, 6), 3, 1).astuple(), fn(tensor(N, 6), TupleType([tensor(N, 2)] * 3)), "indices_or_sections=3"),
    "concatenate": (lambda: relay.concatenate((var(N, T, 100), var(N, T, 100, name="y")), axis=-1),
                    fn(tensor(N, T, 100), tensor(N, T, 100), tensor(N, T, 200)), "axis=-1"),
    "concatenate of a symbol": (lambda: relay.concatenate([var(N, 2), var(3, 2, name="y")], 0), fn(tensor(N, 2), tensor(3, 2), tensor(N + 3, 2)), ""),
    "take": (lambda: relay.take(var(N, D), var(1, dtype="int32", name="i")), fn(tensor(N, D), tensor(1, dtype="int32"), tensor(1)), ""),
    "full_like": (lambda: relay.full_like(var(N, 2), var(name="f")), fn(tensor(N, 2), tensor(), tensor(N, 2)), ""),
    "layers of a network": (lambda: relay.testing.layers.dense_add_bias(nn.batch_flatten(relay.testing.layers.conv2d(
        data=var(1, 3, 8, 8), channels=4, kernel_size=(3, 3), name="c")), units=3, name="d"),
        fn(tensor(1, 3, 8, 8), tensor(4, 3, 3, 3), tensor(3, 144), tensor(3), tensor(1, 3)), ""),
    "a call": (lambda: relay.Call(relay.var("f", fn(INT, INT)), [relay.var("x", INT)]), fn(fn(INT, INT), INT, INT), "%f(%x)"),
    "a function as a result": (lambda: relay.Function([var(2, name="y")], relay.const(1)), fn(fn(tensor(2), INT)), ""),
    "ref": (lambda: relay.RefCreate(relay.var("x", FLOAT)), fn(FLOAT, RefType(FLOAT)), ""),
    "ref_read": (lambda: relay.RefRead(relay.Var("r", RefType(FLOAT))), fn(RefType(FLOAT), FLOAT), ""),
    "ref_write": (lambda: relay.RefWrite(relay.Var("r", RefType(FLOAT)), relay.var("x", FLOAT)), fn(RefType(FLOAT), FLOAT, TupleType([])), ""),
}  # fmt: skip


@pytest.mark.parametrize("make, want, text", TYPES.values(), ids=TYPES)
def test_type(make, want, text):
    func = function(make())
    found = typed(func)
    assert tvm.ir.structural_equal(found.checked_type, want), f"{found.checked_type}, where {want} is wanted"
    assert tvm.ir.structural_equal(found.ret_type, want.ret_type) and tvm.ir.structural_equal(typed(make()).checked_type, want.ret_type)
    assert (text[1:] not in func.astext()) if text.startswith("!") else text in func.astext()
    tvm.ir.assert_structural_equal(typed(found), found)


# Types in text: parameters and body, the type that is found.
TEXTS = {
    "a field": ("def @main(%x: (int32, float32)) -> float32 { %x.1 }", "fn ((int32, float32)) -> float32"),
    "lets": ("def @main(%x: float32) { let %t1 = log(%x); let %t2 = add(%t1, %x); %t2 }", "fn (float32) -> float32"),
    "a polymorphic let": ("def @main() { let %f = fn [A](%x: A) -> A { %x }; (%f(1), %f(1f)) }", "fn () -> (int32, float32)"),
    "functions of any type": ("def @main[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }", "fn [A, B](fn (A) -> B, A) -> B"),
    "recursion": ("def @main(%n: int32, %d: float32) -> float32 { if (%n == 0) { %d } else { @main(%n - 1, log(%d)) } }", "fn (int32, float32) -> float32"),
    "a function below": ("def @main(%x: int32) { @b(%x) } def @b(%x: int32) -> int32 { %x }", "fn (int32) -> int32"),
    "unknown extents": ("def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(1, 2), float32]) { (add(%x, %y), nn.softmax(%x)) }",
                        "fn (Tensor[(?, 2), float32], Tensor[(1, 2), float32]) -> (Tensor[(?, 2), float32], Tensor[(?, 2), float32])"),
    "unknown extents side by side": ("def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(1, 2), float32]) { concatenate((%x, %y)) }",
                                     "fn (Tensor[(?, 2), float32], Tensor[(1, 2), float32]) -> Tensor[(?, 2), float32]"),
}  # fmt: skip


@pytest.mark.parametrize("text, want", TEXTS.values(), ids=TEXTS)
def test_type_in_text(text, want):
    assert str(relay.transform.InferType()(parsed(text))["main"].checked_type) == want


def test_types_of_parts():
    call = typed(relay.add(var(10, 10), var(1, 10, name="y")))
    assert [str(t) for t in call.type_args] == ["Tensor[(10, 10), float32]", "Tensor[(1, 10), float32]"] and call.type_args[0].shape[0] == 10
    v = relay.var("v")
    assert typed(relay.Let(v, relay.const(1.0), v)).var.checked_type == FLOAT
    builder, f, n, d = relay.ScopeBuilder(), relay.GlobalVar("f"), relay.var("n", INT), relay.var("data", FLOAT)
    with builder.if_scope(relay.equal(n, relay.const(0, INT))):
        builder.ret(d)
    with builder.else_scope():
        builder.ret(f(relay.subtract(n, relay.const(1, INT)), relay.log(d)))
    for result in (FLOAT, None):
        mod = tvm.IRModule()
        mod[f] = relay.Function([n, d], builder.get(), result)
        mod = relay.transform.InferType()(mod)
        assert mod[f].checked_type == fn(INT, FLOAT, FLOAT) and "@f(%1, %2)" in mod.astext()


ERRORS = {
    "extents that differ": (tvm.error.DiagnosticError, lambda: typed(relay.add(var(10, 10), var(11, 10, name="y")))),
    "a missing argument": (tvm.TVMError, lambda: typed(relay.Call(relay.op.get("add"), [var(10, 10)]))),
    "branches of two dtypes": (tvm.error.DiagnosticError, lambda: typed(relay.If(var(name="c", dtype="bool"), relay.const(1), relay.const(1.0)))),
    "branches of two shapes": (tvm.error.DiagnosticError, lambda: typed(relay.If(var(name="c", dtype="bool"), var(2), var(3, name="y")))),
    "branches of two shapes, a TVMError": (tvm.TVMError, lambda: typed(relay.If(var(name="c", dtype="bool"), var(2), var(3, name="y")))),
    "extents in text": (tvm.error.DiagnosticError, lambda: relay.transform.InferType()(parsed("def @main(%x: T[2], %y: T[3]) { add(%x, %y) }"))),
    "no such attribute": ((tvm.TVMError, TypeError, ValueError), lambda: nn.conv2d(var(1, 3, 8, 8), var(4, 3, 3, 3, name="w"), nope=3)),
    "no tuple": ((tvm.TVMError, TypeError), lambda: relay.concatenate(3, 0)),
    "no such operator": ((tvm.TVMError, ValueError, AttributeError), lambda: relay.op.get("nope")),
    "no such function": (AttributeError, lambda: relay.no_such_op),
    "types that were not inferred": (ValueError, lambda: relay.exp(var(1)).checked_type),
}  # fmt: skip


@pytest.mark.parametrize("error, make", ERRORS.values(), ids=ERRORS)
def test_error(error, make):
    with pytest.raises(error):
        make()


def test_what_errors_name():
    with pytest.raises(tvm.TVMError, match="no.such"):
        relay.op.get("no.such")
    with pytest.raises(ValueError, match="InferType"):
        _ = relay.exp(var(1)).checked_type


# ---- Kinds and nodes of types

SHAPE = TypeVar("s", TypeKind.ShapeVar)
KINDS = [(tensor(1), TypeKind.Type), (SHAPE, TypeKind.ShapeVar), (TupleType([TypeVar("a")]), TypeKind.Type), (FuncType([], tensor()), TypeKind.Type),
         (TypeVar("t"), TypeKind.Type), (TupleType([SHAPE]), None), (RefType(TypeVar("a", TypeKind.Constraint)), None)]  # fmt: skip


@pytest.mark.parametrize("kind, want", KINDS, ids=str)
def test_kind(kind, want):
    for more in ((), (tvm.IRModule(),)):
        if want is not None:
            assert relay.analysis.check_kind(kind, *more) == want
        else:
            with pytest.raises(tvm.TVMError):
                relay.analysis.check_kind(kind, *more)


def test_nodes_of_types():
    made = relay.TensorType(tvm.runtime.convert([1, 2, 3]), "float32")
    assert (made.dtype, made.span, str(made)) == ("float32", None, "Tensor[(1, 2, 3), float32]")
    foo = TypeVar("foo", TypeKind.ShapeVar)
    func = FuncType([], tensor(1), [foo], [])
    assert (
        foo.kind == TypeKind.ShapeVar and func.type_params[0] == foo and list(func.type_constraints) == [] and str(func) == "fn [foo]() -> Tensor[(1), float32]"
    )
    relation = relay.TypeRelation(tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast"), [made, made], 1, tvm.ir.make_node("attrs.TestAttrs", name="attr"))
    assert relation.args[0] == made and relation.num_inputs == 1 and relation.attrs.name == "attr"
    for extent, text in ((te.var("n"), "%x: Tensor[(meta[tir.Var][0], 2), float32]"), (relay.Any(), "%x: Tensor[(?, 2), float32]")):
        func = function(var(extent, 2))
        assert text in str(func) and tvm.ir.structural_equal(tvm.parser.parse_expr(str(func)), func, map_free_vars=True)
    assert isinstance(var(relay.Any(), 2).type_annotation.shape[0], tir.Any)


def test_variables_of_types():
    a, b, q = TypeVar("a"), TypeVar("b"), TypeVar("q")
    kind, find = FuncType([a], b, [a]), relay.analysis
    for more in ((), (tvm.IRModule(),)):
        assert set(find.free_type_vars(kind, *more)) == {b} and set(find.bound_type_vars(kind, *more)) == {a} and set(find.all_type_vars(kind, *more)) == {a, b}
    func = relay.Function([relay.var("q", q)], relay.const(1), type_params=[q])
    assert len(find.free_type_vars(func)) == 0 and find.bound_type_vars(func) == [q] and find.all_type_vars(func) == [q]


def test_walks_over_types():
    class Seen(relay.TypeVisitor):
        def __init__(self):
            super().__init__()
            self.dtypes = []

        def visit_tensor_type(self, kind):
            self.dtypes.append(kind.dtype)

    class Narrow(relay.TypeMutator):
        def visit_tensor_type(self, kind):
            return relay.TensorType(kind.shape, "float16")

    kind = FuncType([tensor(2, dtype="int8")], TupleType([tensor(dtype="bool"), tensor(3)]))
    seen = Seen()
    seen.visit(kind)
    assert seen.dtypes == ["int8", "bool", "float32"]
    assert Narrow().visit(kind) == FuncType([tensor(2, dtype="float16")], TupleType([tensor(dtype="float16"), tensor(3, dtype="float16")]))


# ---- Values beside their types

VALUES = {
    "arange": (lambda: relay.arange(relay.const(1.0), relay.const(5.0), relay.const(0.5)), np.arange(1, 5, 0.5)),
    "where of scalars": (lambda: relay.where(relay.const(True), relay.const(1.0), relay.const(2.0)), 1.0),
}


@pytest.mark.parametrize("make, want", VALUES.values(), ids=VALUES)
def test_value(make, want):
    func = relay.Function([], make())
    assert typed(func).ret_type.concrete_shape == np.shape(want)
    np.testing.assert_array_equal(evaluated(func, kind="graph"), want)


def test_helpers_of_importers():
    from baton.relay.frontend.common import infer_shape, infer_type, infer_value

    assert tuple(infer_shape(relay.transpose(var(2, 3)))) == (3, 2) and infer_type(var(2) + var(2)).checked_type.dtype == "float32"
    assert infer_value(relay.const(2.0) * relay.const(3.0), {}).numpy() == 6


def test_dtypes_of_a_program():
    assert set(relay.analysis.all_dtypes(typed(program("x[2]:int8", 'cast(%x, dtype="float32")')))) == {"int8", "float32"}
