# SPDX-License-Identifier: Apache-2.0
"""ExprVisitor, ExprMutator and their like in Python (FN, PY-022), and analysis."""

import sys

import pytest

import baton as tvm
from baton import relay
from baton.relay import ExprFunctor, ExprMutator, ExprVisitor


def _chain(n):
    e = x = relay.var("x", shape=(2,))
    for _ in range(n):
        e = relay.abs(e)
    return x, e


def _lets(n):
    x = relay.var("x", shape=(2,))
    variables = [relay.var(f"v{i}") for i in range(n)]
    e = variables[-1]
    for i in reversed(range(n)):
        e = relay.Let(variables[i], relay.abs(variables[i - 1] if i else x), e)
    return x, e


class CountCalls(ExprVisitor):
    def __init__(self):
        super().__init__()
        self.count = 0

    def visit_call(self, call):
        self.count += 1
        super().visit_call(call)


class Replace(ExprMutator):
    def __init__(self, old, new):
        super().__init__()
        self.memo_map[old] = new


def test_visitor_sees_shared_nodes_once():  # FN-013
    e = relay.var("x", shape=(2,))
    for _ in range(40):
        e = relay.add(e, e)
    count = CountCalls()
    count.visit(e)
    assert count.count == 40


def test_order():  # FN-008, FN-009
    seen = []

    class Order(ExprVisitor):
        def visit_var(self, var):
            seen.append(var.name_hint)

    a, b, c = relay.var("a"), relay.var("b"), relay.var("c")
    Order().visit(relay.If(a, b, c))
    assert seen == ["a", "b", "c"]
    del seen[:]
    Order().visit(relay.Let(b, a, c))
    assert seen == ["a", "b", "c"]


def test_bare_functor_names_the_kind():  # FN-005
    with pytest.raises(NotImplementedError, match="`relay.Var`"):
        ExprFunctor().visit(relay.var("x"))
    with pytest.raises(TypeError, match="not int"):
        ExprVisitor().visit(3)


def _everything():
    x, y, r = relay.var("x", shape=(2,)), relay.var("y"), relay.var("r")
    function = relay.Function([y], relay.add(y, relay.const([1.0, 2.0])))
    match = relay.Match(relay.Tuple([x]), [relay.Clause(relay.PatternTuple([relay.PatternVar(y)]), y), relay.Clause(relay.PatternWildcard(), x)])
    refs = relay.Let(r, relay.RefCreate(x), relay.Tuple([relay.RefWrite(r, x), relay.RefRead(r)]))
    return x, relay.Tuple(
        [
            relay.If(relay.const(True), relay.Call(function, [x]), relay.GlobalVar("g")(x)),
            match,
            refs,
            relay.TupleGetItem(relay.Tuple([x, x]), 1),
            relay.Let(r, x, relay.abs(r)),
        ]
    )


def test_nothing_changed_is_the_same_node():  # FN-016, FN-017
    _, e = _everything()
    assert ExprMutator().visit(e).same_as(e)


def test_change_goes_everywhere():  # FN-014, FN-018, FN-023
    x, e = _everything()
    z = relay.var("z", shape=(2,))
    new = Replace(x, z).visit(e)
    free = relay.analysis.free_vars(new)
    assert [v.name_hint for v in free] == ["z"]
    tvm.ir.assert_structural_equal(new, Replace(z, x).visit(new), map_free_vars=True)


def test_retyped_variable_is_one(request):  # FN-019, FN-020
    class Retype(ExprMutator):
        def visit_type(self, ty):
            return relay.TensorType(ty.shape, "float16")

    x = relay.var("x", shape=(2,))
    f = Retype().visit(relay.Function([x], relay.add(x, x)))
    assert f.params[0].type_annotation.dtype == "float16"
    assert f.body.args[0].same_as(f.params[0]) and f.body.args[1].same_as(f.params[0]) and f.params[0].vid.same_as(x.vid)


def test_types_that_are_written_down_are_visited():  # FN-019, FN-023
    a, t = relay.TypeVar("a"), relay.TensorType((2,), "float32")
    x, v, f = relay.var("x", t), relay.var("v", t), relay.GlobalVar("f")
    call = relay.Call(f, [x], None, [t])
    body = relay.Match(call, [relay.Clause(relay.PatternVar(v), v)])
    e = relay.Function([x, relay.var("y", a)], body, t, [a])

    class Seen(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.types = []

        def visit_type(self, ty):
            self.types.append(str(ty))

    seen = Seen()
    seen.visit(e)
    tensor = "Tensor[(2), float32]"
    assert seen.types == ["a", tensor, "a", tensor, tensor, tensor]  # type parameter, %x, %y, result, type argument, %v

    class Retype(ExprMutator):
        def visit_type(self, ty):
            return relay.TensorType(ty.shape, "float16") if isinstance(ty, relay.TensorType) else ty

    new = Retype().visit(e)
    assert new.ret_type.dtype == "float16" and new.type_params[0].same_as(a)
    assert new.body.data.type_args[0].dtype == "float16" and new.body.clauses[0].rhs.type_annotation.dtype == "float16"
    result = Retype().visit(relay.Function([], relay.const(1.0), t))
    assert result.ret_type.dtype == "float16"

    class Keep(ExprMutator):
        def visit_type(self, ty):
            return ty

    assert Keep().visit(e).same_as(e)


@pytest.mark.parametrize("gives", [None, 3])
def test_a_mutator_that_gives_no_expression(gives):
    class Wrong(ExprMutator):
        def visit_call(self, call):
            return gives

    for e in (relay.abs(relay.var("x")), relay.Tuple([relay.abs(relay.var("x"))])):
        with pytest.raises(TypeError, match=r"Wrong\.visit_call gave (None|int) for an expression of type `relay.Call`"):
            Wrong().visit(e)


def test_a_match_keeps_its_place():
    mod = relay.fromtext('def @main(%x: int32) { match ((%x, 1)) { (%a, _) => %a } }')
    match = mod["main"].body
    new = Replace(mod["main"].params[0], relay.var("z", shape=(), dtype="int32")).visit(match)
    assert not new.same_as(match) and match.span is not None and new.span.same_as(match.span)


def test_mutation_to_another_kind():  # FN-021, FN-022
    class IfCollapser(ExprMutator):
        def visit_if(self, if_):
            return self.visit(if_.true_branch)

    x, y = relay.var("x"), relay.var("y")
    assert IfCollapser().visit(relay.add(relay.If(relay.const(True), x, y), y)).args[0].same_as(x)


@pytest.mark.parametrize("make", [_chain, _lets])
def test_deep(make):  # FN-024
    n = 20_000
    x, e = make(n)
    count = CountCalls()
    count.visit(e)
    assert count.count == n
    limit = sys.getrecursionlimit()
    assert ExprMutator().visit(e).same_as(e)
    y = relay.var("y", shape=(2,))
    new = Replace(x, y).visit(e)
    again = CountCalls()
    again.visit(new)
    assert again.count == n and relay.analysis.free_vars(new)[0].same_as(y)
    assert sys.getrecursionlimit() == limit


def test_deep_with_a_visitor_of_ones_own():
    class Naive(ExprMutator):
        def visit_let(self, let):
            return super().visit_let(let)

    _, e = _lets(20_000)
    assert Naive().visit(e).same_as(e)


def test_endless_recursion_of_a_visitor_is_an_error():
    class Endless(ExprVisitor):
        def visit_var(self, var):
            self.visit_var(var)

    functor = sys.modules["baton.relay.expr_functor"]
    before, functor._deep.limit = functor._deep.limit, 50_000
    try:
        with pytest.raises(RecursionError):
            Endless().visit(relay.var("x"))
    finally:
        functor._deep.limit = before
    CountCalls().visit(relay.var("x"))


def test_pass_with_a_mutator():
    """The example of the documents."""

    @relay.transform.function_pass(opt_level=1, required=["InferType"])
    class DropNopReshape(ExprMutator):
        """Drops a reshape whose input already has the output's type."""

        def transform_function(self, func, mod, ctx):
            return self.visit(func)

        def visit_call(self, call):
            new = super().visit_call(call)
            if call.op != relay.op.get("reshape"):
                return new
            same = tvm.ir.structural_equal(call.args[0].checked_type, call.checked_type)
            return new.args[0] if same else new

    x = relay.var("x", shape=(2, 3))
    f = relay.Function([x], relay.reshape(relay.abs(relay.reshape(x, (2, 3))), (3, 2)))
    with tvm.transform.PassContext(opt_level=3):
        new = tvm.transform.Sequential([DropNopReshape()])(tvm.IRModule.from_expr(f))["main"]
    assert relay.analysis.list_op_freqs(new) == {"abs": 1, "reshape": 1}


def test_analysis():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.Function([x], relay.add(x, y))
    assert [v.name_hint for v in relay.analysis.free_vars(f)] == ["y"]
    assert [v.name_hint for v in relay.analysis.bound_vars(f)] == ["x"]
    assert {v.name_hint for v in relay.analysis.all_vars(f)} == {"x", "y"}
    seen = []
    relay.analysis.post_order_visit(relay.abs(relay.log(x)), lambda e: seen.append(e.op.name if isinstance(e, relay.Call) else None))
    assert [s for s in seen if s] == ["log", "abs"]
    t = relay.TypeVar("t")
    g = relay.Function([relay.var("a", t)], x, type_params=[t])
    assert relay.analysis.all_type_vars(g) == [t] and relay.analysis.bound_type_vars(g) == [t] and relay.analysis.free_type_vars(g) == []
    assert relay.analysis.free_type_vars(relay.TupleType([t])) == [t]
    assert relay.analysis.count_layers(relay.abs(relay.log(relay.abs(x))), {"abs"}) == 2


def test_exception_in_a_callback_of_cpp():
    def fails(e):
        raise LookupError("stop")

    with pytest.raises(LookupError, match="stop"):
        relay.analysis.post_order_visit(relay.abs(relay.var("x")), fails)


def test_type_functors():
    class Names(relay.TypeVisitor):
        def __init__(self):
            self.names = []

        def visit_type_var(self, tv):
            self.names.append(tv.name_hint)

    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    names = Names()
    names.visit(relay.FuncType([a, relay.TupleType([b])], relay.RefType(a)))
    assert names.names == ["a", "b", "a"]

    class Narrow(relay.TypeMutator):
        def visit_tensor_type(self, tt):
            return relay.TensorType(tt.shape, "float16")

    t = relay.TupleType([relay.TensorType((2,)), a])
    assert Narrow().visit(t) == relay.TupleType([relay.TensorType((2,), "float16"), a])
    assert relay.TypeMutator().visit(t).same_as(t)
