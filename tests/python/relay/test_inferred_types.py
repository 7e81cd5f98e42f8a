# SPDX-License-Identifier: Apache-2.0
"""What programs read after type inference, and what inference finds by itself."""

import numpy as np
import pytest
from building import tensor, typed, var

import baton as tvm
from baton import relay, te
from baton.relay import transform
from baton.relay.prelude import Prelude

INT = relay.scalar_type("int32")


def run(expr, *args, kind="debug"):
    func = expr if isinstance(expr, relay.Function) else relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor(kind, mod=tvm.IRModule.from_expr(func), device=tvm.cpu(), target="llvm").evaluate()(*args).numpy()


# ---- Types that are written down


def test_parameters_get_annotations():
    x, y = relay.var("x"), relay.var("y")
    func = typed(relay.Function([x], relay.Call(relay.Function([y], y + y), [x]), tensor(2, 3)))
    assert func.params[0].type_annotation == tensor(2, 3)
    assert func.body.op.params[0].type_annotation == tensor(2, 3)
    assert func.body.op.ret_type == tensor(2, 3)
    assert "%x: Tensor[(2, 3), float32]" in func.astext()
    tvm.ir.assert_structural_equal(func, typed(func))
    assert typed(func).same_as(func)


def test_annotated_and_inferred_parameters_are_equal():
    def program(inner):
        x = var(2, 3)
        return relay.Function([x], relay.Call(relay.Function([inner], inner + inner), [x]))

    tvm.ir.assert_structural_equal(typed(program(relay.var("y"))), typed(program(var(2, 3, name="y"))))


def test_parameter_that_a_typed_part_uses():
    x, w = relay.var("x"), relay.var("w")
    inner = relay.Function([w], relay.nn.relu(w), tensor(4))
    transform.InferTypeLocal(inner)
    func = typed(relay.Function([x], relay.Call(inner, [x])))
    assert func.body.op.params[0].type_annotation == tensor(4)
    assert relay.analysis.free_vars(func) == []
    assert run(func, -np.ones(4, "float32")).tolist() == [0] * 4


def test_variables_of_lets_and_patterns():
    mod = tvm.IRModule()
    Prelude(mod)
    _, cons, _ = mod.get_type("List")
    items, head, tail = relay.var("l", mod.get_global_type_var("List")(INT)), relay.var("h"), relay.var("t")
    first = relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternVar(tail)]), head)
    twice = relay.var("twice")
    match = relay.Match(items, [first, relay.Clause(relay.PatternWildcard(), relay.const(0))])
    mod["main"] = relay.Function([items], relay.Let(twice, match, twice + twice))
    let = transform.InferType()(mod)["main"].body
    assert let.var.type_annotation == INT
    assert let.value.clauses[0].lhs.patterns[0].var.type_annotation == INT


def test_written_and_inferred_types_of_lets_are_equal():
    def program(y):
        x = var(3)
        return typed(relay.Function([x], relay.Let(y, x + x, y * y)))

    left, right, other = program(relay.var("y")), program(var(3, name="y")), program(relay.var("z"))
    tvm.ir.assert_structural_equal(left, right)
    tvm.ir.assert_structural_equal(right, left)
    tvm.ir.assert_structural_equal(left, other)
    assert tvm.ir.structural_hash(left) == tvm.ir.structural_hash(right)


def test_type_arguments():
    mod = tvm.IRModule()
    Prelude(mod)
    _, cons, nil = mod.get_type("List")
    mod["main"] = relay.Function([], mod.get_global_var("length")(cons(relay.const(1), nil())))
    call = transform.InferType()(mod)["main"].body
    assert list(call.type_args) == [INT]
    assert list(call.args[0].type_args) == [INT]
    assert list(call.args[0].args[1].type_args) == [INT]

    t = relay.TypeVar("t")
    x, y, ident = relay.var("x", t), var(3, name="y"), relay.var("id")
    func = typed(relay.Function([y], relay.Let(ident, relay.Function([x], x, t, [t]), ident(y))))
    assert list(func.body.body.type_args) == [tensor(3)]


def test_type_arguments_of_operators():
    call = typed(relay.add(var(10, 10), var(1, 10, name="y")))
    assert [t.concrete_shape for t in call.type_args] == [(10, 10), (1, 10)]

    # A rewrite that copies them changes nothing.
    class Copy(relay.ExprMutator):
        def visit_call(self, call):
            return relay.Call(call.op, [self.visit(a) for a in call.args], call.attrs, call.type_args)

    tvm.ir.assert_structural_equal(typed(Copy().visit(call)), call, map_free_vars=True)


def test_types_after_import():
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    a, b, of = relay.TypeVar("a"), relay.TypeVar("b"), mod.get_global_type_var("List")
    want = relay.FuncType([relay.FuncType([a], b), of(a)], of(b), [a, b])
    tvm.ir.assert_structural_equal(mod[prelude.map].checked_type, want)
    assert mod.get_global_var("length").checked_type.ret_type == INT
    other = tvm.IRModule()
    other.import_from_std("prelude.rly")
    assert len(other["compose"].checked_type.type_params) == 3


def test_python_function_pass_leaves_types():
    @transform.function_pass(opt_level=0)
    class Multiply:
        def transform_function(self, func, mod, ctx):
            class Mutator(relay.ExprMutator):
                def visit_call(self, call):
                    return relay.multiply(*super().visit_call(call).args)

            return Mutator().visit(func)

    x, seen = var(2, 3), []

    @transform.function_pass(opt_level=0)
    def look(func, mod, ctx):
        seen.append(func.body.checked_type)
        return func

    mod = tvm.IRModule.from_expr(relay.Function([x], x + x))
    assert Multiply()(mod)["main"].body.checked_type == tensor(2, 3)
    assert Multiply()(mod)["main"].checked_type.ret_type == tensor(2, 3)
    tvm.transform.Sequential([Multiply(), look])(mod)
    assert seen == [tensor(2, 3)]


def test_built_in_pass_that_changes_nothing_leaves_types():
    x = var(2, 3)
    mod = transform.AlterOpLayout()(tvm.IRModule.from_expr(relay.Function([x], x + x)))
    assert mod["main"].body.checked_type == tensor(2, 3)
    assert mod["main"].ret_type == tensor(2, 3)


# ---- What inference finds


@pytest.mark.parametrize(
    "make",
    [
        lambda x: relay.nn.relu(relay.exp(x)),
        lambda x: relay.nn.softmax(relay.clip(relay.nn.leaky_relu(x), 0, 1)),
        lambda x: relay.copy(-x),
    ],
)
def test_operand_has_the_type_of_the_result(make):
    x = relay.var("x")
    func = typed(relay.Function([x], make(x), tensor(2)))
    assert func.params[0].checked_type == tensor(2)


def test_broadcast_operand_from_the_result():
    x, y = relay.var("x"), var(2, 3, name="y")
    func = typed(relay.Function([x, y], x + y, tensor(2, 3)))
    assert func.params[0].checked_type == tensor(2, 3)
    x = relay.var("x")
    func = typed(relay.Function([x, y], relay.less(y, x), tensor(2, 3, dtype="bool")))
    assert func.params[0].checked_type == tensor(2, 3)
    # What else decides comes first.
    x = relay.var("x")
    both = relay.Tuple([x + y, relay.Call(relay.Function([row := var(1, 3, name="row")], row), [x])])
    func = typed(relay.Function([x, y], both, relay.TupleType([tensor(2, 3), tensor(1, 3)])))
    assert func.params[0].checked_type == tensor(1, 3)


@pytest.mark.parametrize(
    ("shape", "flags", "weight", "out"),
    [
        ((4, 8), {}, (8, 16), (4, 16)),
        ((4, 8), {"transpose_b": True}, (16, 8), (4, 16)),
        ((8, 4), {"transpose_a": True}, (8, 16), (4, 16)),
        ((2, 4, 8), {}, (8, 16), (2, 4, 16)),
    ],
)
def test_matmul_units(shape, flags, weight, out):
    call = typed(relay.nn.matmul(var(*shape), relay.var("w"), units=16, **flags))
    assert call.args[1].checked_type == tensor(*weight)
    assert call.checked_type == tensor(*out)


def test_depthwise_weights():
    conv = relay.nn.conv2d(var(1, 16, 8, 8), relay.var("w"), kernel_size=(3, 3), padding=(1, 1), channels=32, groups=16)
    call = typed(conv)
    assert call.args[1].checked_type == tensor(16, 2, 3, 3)
    assert call.checked_type == tensor(1, 32, 8, 8)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 4, 5, 5), "float32"), rng.standard_normal((4, 3, 3, 3), "float32")

    def conv_of(shape, dtype="float32"):
        a, b = var(*x.shape, dtype=dtype), var(*shape, name="w", dtype=dtype)
        return relay.Function([a, b], relay.nn.conv2d(a, b, kernel_size=(3, 3), padding=(1, 1), channels=12, groups=4))

    want = run(conv_of((12, 1, 3, 3)), x, w.reshape(12, 1, 3, 3))
    for kind in ("debug", "graph"):
        np.testing.assert_allclose(run(conv_of(w.shape), x, w, kind=kind), want, rtol=1e-5, atol=1e-5)
    params = relay.build_module.bind_params_by_name(conv_of(w.shape), {"w": w})
    np.testing.assert_allclose(run(params, x, kind="graph"), want, rtol=1e-5, atol=1e-5)
    relay.testing.check_grad(conv_of(w.shape, "float64"), [x.astype("float64"), w.astype("float64")])


def test_minimum_and_maximum_of_bool():
    data = np.array([[True, False], [False, False]])
    for kind in ("debug", "graph"):
        assert run(relay.max(var(2, 2, dtype="bool"), axis=1), data, kind=kind).tolist() == [True, False]
        assert run(relay.min(var(2, 2, dtype="bool"), axis=1), ~data, kind=kind).tolist() == [False, True]
    assert typed(relay.max(var(2, 3, dtype="bool"), axis=1)).checked_type == tensor(2, dtype="bool")


def test_resizing_open_extents():
    n, h = te.size_var("n"), te.size_var("h")
    call = typed(relay.nn.upsampling(relay.var("x", tensor(n, 3, h, 8)), 2, 2))
    assert call.checked_type.shape[0].same_as(n)
    assert tvm.ir.structural_equal(call.checked_type.shape[2], h * 2)
    assert call.checked_type.shape[3] == 16
    open_image = tensor(relay.Any(), 3, relay.Any(), relay.Any())
    data = np.arange(60, dtype="float32").reshape(1, 3, 4, 5)
    for make, shape in [
        (lambda x: relay.nn.upsampling(x, 2, 2), (1, 3, 8, 10)),
        (lambda x: relay.nn.upsampling(x, 1.5, 2, method="bilinear"), (1, 3, 6, 10)),
        (lambda x: relay.image.resize2d(x, (10, 20)), (1, 3, 10, 20)),
    ]:
        want = run(make(var(1, 3, 4, 5)), data)
        assert want.shape == shape
        for kind in ("debug", "vm"):
            x = relay.var("x", open_image)
            np.testing.assert_allclose(run(relay.Function([x], make(x)), data, kind=kind), want, rtol=1e-6)


def test_own_operator_without_attributes():
    name = "test.users_inference"
    if name not in map(str, relay.op.list_op_names()):
        relay.op.op.register(name, "Its operand.")
        op = relay.op.get(name)
        op.set_num_inputs(1)
        op.set_attrs_type_key("DictAttrs")
        op.add_type_rel("Same", lambda types, attrs: types[0])
    op = relay.op.get(name)
    assert typed(relay.Call(op, [var(2, 3)])).checked_type == tensor(2, 3)
    assert typed(relay.Call(op, [var(2, 3)], tvm.ir.make_node("DictAttrs", a=1))).checked_type == tensor(2, 3)
    with pytest.raises(tvm.TVMError):
        typed(relay.Call(op, [var(2, 3)], relay.nn.softmax(var(2)).attrs))
