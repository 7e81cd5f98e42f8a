# SPDX-License-Identifier: Apache-2.0
"""Visitors, mutators and analyses as programs of Relay 0.8 write and call them, and what they read off nodes."""

import numpy as np
import pytest
from building import calls, names, parsed, program, typed, var, visited

import baton as tvm
from baton import relay
from baton.relay import ExprFunctor, ExprMutator, ExprVisitor, analysis
from baton.relay.prelude import Prelude

X, Y, ONE, TRUE = var(2), var(2, name="y"), relay.const(1), relay.const(True)
V, R = relay.var("v"), relay.RefCreate(ONE)


@pytest.fixture
def prelude():
    mod = tvm.IRModule()
    Prelude(mod)
    return mod


# ---- Walks

KINDS = {
    "function": relay.Function([V], V), "let": relay.Let(V, ONE, V), "var": V, "constant": ONE, "global_var": relay.GlobalVar("g"), "if": relay.If(TRUE, V, V),
    "tuple": relay.Tuple([]), "tuple_getitem": relay.TupleGetItem(relay.Tuple([V]), 0), "op": relay.op.get("add"), "ref_create": R, "ref_read": relay.RefRead(V),
    "ref_write": relay.RefWrite(V, V), "match": relay.Match(V, []), "call": relay.exp(V),
}  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, "constructor"])
def test_each_kind_has_its_method(kind, prelude):
    expr = KINDS[kind] if kind in KINDS else prelude.get_type("List")[2]
    functor = type("F", (ExprFunctor,), {f"visit_{kind}": lambda self, e: e})()
    assert functor.visit(expr).same_as(expr)
    with pytest.raises(NotImplementedError):
        type("Bare", (ExprFunctor,), {})().visit(expr)
    seen = []

    def visit(self, e):
        seen.append(e)
        return getattr(ExprVisitor, f"visit_{kind}")(self, e)

    type("S", (ExprVisitor,), {f"visit_{kind}": visit})().visit(relay.Tuple([expr, expr]) if kind != "tuple" else expr)
    assert [e for e in seen if e == expr] == [expr] and tvm.ir.structural_equal(ExprMutator().visit(expr), expr)


def test_a_functor_gives_values():
    class Sum(ExprFunctor):
        def visit_call(self, call):
            return sum(self.visit(a) for a in call.args)

        def visit_constant(self, c):
            return int(c.data.numpy())

    assert Sum().visit(relay.const(1) + relay.const(2) + relay.const(4)) == 7


def test_a_visitor_sees_a_node_once():
    class Count(ExprVisitor):
        def __init__(self):
            super().__init__()
            self.kinds, self.ops = {}, []

        def visit(self, e):
            kind = type(e).__name__
            self.kinds[kind] = self.kinds.get(kind, 0) + (e not in self.memo_map)
            super().visit(e)

        def visit_call(self, call):
            super().visit_call(call)
            self.ops.append(call.op.name)

    count, e = Count(), relay.exp(X)
    count.visit(relay.Function([X], relay.nn.relu(e + e)))
    assert (count.kinds["Call"], count.kinds["Var"], count.ops) == (3, 1, ["exp", "add", "nn.relu"]) and isinstance(count.memo_map, dict)
    order = []
    analysis.post_order_visit(X + Y, lambda n: order.append(type(n).__name__))
    assert sorted(order) == ["Call", "Op", "Var", "Var"] and order[-1] == "Call"


def test_a_mutator_of_calls():
    class Change(ExprMutator):
        def visit_call(self, call):
            new = super().visit_call(call)
            assert call not in self.memo_map
            return relay.Call(relay.op.get("subtract"), new.args) if call.op == relay.op.get("add") else new

    class Rebuild(ExprMutator):
        def visit_call(self, call):
            args = [self.visit(a) for a in call.args]
            return relay.tanh(*args) if call.op.name == "exp" else relay.Call(call.op, args, call.attrs)

    assert tvm.ir.structural_equal(Change().visit(X + X), X - X) and tvm.ir.structural_equal(Rebuild().visit(relay.exp(X)), relay.tanh(X))


def test_a_mutator_of_variables():
    class Rename(ExprMutator):
        def visit_var(self, v):
            return self.memo_map[v] if v in self.memo_map else relay.var(v.name_hint + "_", v.type_annotation)

    v = relay.var("v", relay.scalar_type("int32"))
    let = Rename().visit(relay.Let(v, ONE, v + v))
    assert let.var.name_hint == "v_" and let.body.args[0] == let.body.args[1] == let.var


def test_a_mutator_that_changes_nothing(prelude):
    for name in prelude.get_global_vars():
        tvm.ir.assert_structural_equal(ExprMutator().visit(prelude[name]), prelude[name])
    _, cons, nil = prelude.get_type("List")
    a, b = relay.var("a"), relay.var("b")
    first = relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(a), relay.PatternVar(b)]), b)
    for e in (
        relay.Match(nil(), [first, relay.Clause(relay.PatternWildcard(), nil())]),
        relay.If(TRUE, relay.RefRead(R), relay.const(2)),
        relay.RefWrite(R, ONE),
    ):
        assert tvm.ir.structural_equal(ExprMutator().visit(e), e)


# ---- Variables


def test_variables_of_an_expression():
    x, y = var(), var(name="y")
    assert set(analysis.free_vars(x + y)) == {x, y}
    let = relay.Let(x, y, x + x)
    assert (list(analysis.free_vars(let)), list(analysis.bound_vars(let)), set(analysis.all_vars(let))) == ([y], [x], {x, y})


@pytest.mark.parametrize("expr, want", [(relay.Let(V, ONE, V), True), (relay.Let(V, ONE, relay.Let(V, ONE, V)), False), (relay.Function([V], V), True)])
def test_well_formed(expr, want):
    assert bool(analysis.well_formed(expr)) == want


def test_bind():
    func = relay.bind(relay.Function([X, Y], X + Y), {Y: relay.const(np.ones(2, "float32"))})
    assert [p.name_hint for p in func.params] == ["x"] and isinstance(func.body.args[1], relay.Constant)
    assert isinstance(relay.bind(relay.Function([X], X + Y), {Y: relay.const(1.0)}).body.args[1], relay.Constant)
    assert tvm.ir.structural_equal(relay.bind(X + Y, {X: Y}), Y + Y)


# ---- Nodes


def test_fields_of_nodes():
    let, branch = relay.Let(V, ONE, V + V), relay.If(TRUE, X, Y)
    assert (let.var, let.value, let.body.op.name) == (V, ONE, "add") and (branch.cond, branch.true_branch, branch.false_branch) == (TRUE, X, Y)
    write = relay.RefWrite(R, relay.const(2))
    assert R.value == ONE and relay.RefRead(R).ref == R and (write.ref, write.value.data.numpy()) == (R, 2)
    call = relay.nn.dense(var(2, 3), var(4, 3, name="w"), units=4)
    assert (call.op.name, call.attrs.units, call.span) == ("nn.dense", 4, None) and call.attrs.out_dtype in ("", "float32")
    for callee in (relay.Function([X], X), relay.GlobalVar("f")):
        assert isinstance(callee(Y), relay.Call) and callee(Y).op == callee and callee(Y).args[0] == Y


SIGNS = {"cast": X.astype("int8"), "less": X < X, "greater": X > X, "greater_equal": X >= X, "less_equal": X <= X, "negative": -X, "subtract": 1 - X,
         "divide": 2 / X, "multiply": 2.0 * X}  # fmt: skip


@pytest.mark.parametrize("name", SIGNS)
def test_operators_of_python(name):
    assert SIGNS[name].op.name == name


def test_fields_of_several_results():
    both = relay.split(var(4, 6), 2, axis=1)
    assert isinstance(both, relay.TupleWrapper) and isinstance(both, relay.expr.TupleWrapper) and (both.size, len(both), both[0].index) == (2, 2, 0)
    first, second = both
    assert isinstance(first, relay.TupleGetItem) and second.index == 1 and both.astuple().op.name == both.tuple_value.op.name == "split"
    assert "split" in both.astext() and relay.Function([], both.astuple()).body.op.name == "split"
    with pytest.raises(IndexError):
        both[2]


def test_spans_of_nodes():
    span = relay.Span(relay.SourceName("f.py"), 1, 2, 3, 4)
    assert (span.line, span.end_line, span.column, span.end_column, span.source_name.name) == (1, 2, 3, 4, "f.py")
    v = relay.Var("x", relay.TensorType((2,)), span)
    assert v.span == span and relay.Call(relay.op.get("exp"), [v], span=span).span == span


def test_modules_of_expressions():
    mod = tvm.IRModule.from_expr(relay.nn.relu(X))
    assert isinstance(mod["main"], relay.Function) and list(mod["main"].params) == [X]
    mod = tvm.IRModule.from_expr(relay.Function([X], X), functions={relay.GlobalVar("g"): relay.Function([], ONE)})
    assert {g.name_hint for g in mod.get_global_vars()} == {"main", "g"}
    named = tvm.IRModule.from_expr(relay.Function([X], X).with_attr("global_symbol", "foo"))
    assert [g.name_hint for g in named.get_global_vars()] in (["foo"], ["main"])


def test_notes_in_text():
    func = typed(relay.Function([X], relay.exp(X)))
    assert "/* hello */" in func.astext(annotate=lambda e: "hello" if isinstance(e, relay.Call) else "")
    assert "exp(%x)" in relay.astext(func) and "exp(%x)" in func.astext(show_meta_data=False) and "exp(%x)" in str(func)


# ---- Counts


def test_constants():
    assert analysis.check_constant(ONE) and not analysis.check_constant(X)


MACS = {
    "conv2d": ("x[1,3,8,8] w[4,3,3,3]", "nn.conv2d(%x, %w, kernel_size=[3, 3], channels=4)", 4 * 36 * 27),
    "dense": ("x[2,3] w[4,3]", "nn.dense(%x, %w)", 24),
    "batch_matmul": ("x[2,3,4] w[2,5,4]", "nn.batch_matmul(%x, %w)", 2 * 3 * 5 * 4),
}


@pytest.mark.parametrize("params, body, want", MACS.values(), ids=MACS)
def test_multiplications(params, body, want):
    assert analysis.get_total_mac_number(typed(program(params, body))) == want


def test_operators_of_a_program():
    mod = tvm.IRModule.from_expr(program("x[2]", "add(exp(%x), exp(exp(%x)))"))
    for given in (mod, mod["main"]):
        assert set(analysis.list_op_types(given)) == {"exp", "add"} and analysis.list_op_freqs(given)["exp"] == 3
    two = "nn.conv2d(nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]), %v, channels=4, kernel_size=[3, 3])"
    assert analysis.count_layers(program("x[1,3,8,8] w[4,3,3,3] v[4,4,3,3]", two), ["nn.conv2d"]) == 2


def test_fused_functions():
    found = analysis.extract_fused_functions(relay.transform.InferType()(tvm.IRModule.from_expr(program("x[2]", "exp(log(%x))"))))
    assert [type(k) for k in found] == [int] and [names(f) for f in found.values()] == [["log", "exp"]]


def test_a_region_of_annotations():
    begin, end = (relay.op.get(f"annotation.compiler_{word}") for word in ("begin", "end"))
    x = var(10, 10)
    inner = relay.annotation.compiler_begin(x, "t")
    regions = analysis.AnnotatedRegionSet(relay.Function([x], relay.annotation.compiler_end(relay.nn.relu(inner), "t")), begin, end)
    region = regions.get_region(inner)
    assert len(regions) == 1 and (region.target, len(region.args), len(region.rets), len(region.nodes)) == ("t", 1, 1, 3)


def test_a_branch_in_basic_blocks():
    func = relay.transform.ToBasicBlockNormalForm()(tvm.IRModule.from_expr(program("x[]", "%0 = if (True) { %x } else { 1f }; add(%0, %0)")))["main"]
    assert analysis.check_basic_block_normal_form(func) and visited(func, relay.If)


# ---- Operators

PATTERNS = {"nn.relu": {0}, "add": {1}, "nn.conv2d": {4}, "transpose": {2}, "sum": {3}, "nn.dropout": {8, 0, 7}, "concatenate": {2}, "reshape": {2},
            "nn.softmax": {8, 4, 3}}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_of_an_operator(name):
    assert relay.op.get(name).get_attr("TOpPattern") in PATTERNS[name]


def test_a_gradient_of_a_program():
    built_in = relay.op.get("erf").get_attr("FPrimalGradient")
    relay.op.register_gradient("erf", lambda orig, grad: [grad * relay.const(2.0)], level=15)
    try:
        back = typed(relay.transform.gradient(typed(program("x[2]", "erf(%x)")), mode="first_order"))
        assert relay.create_executor().evaluate(back)(np.zeros(2, "float32"))[1][0].numpy()[0] == 2
    finally:
        relay.op.get("erf").reset_attr("FPrimalGradient")
        relay.op.register_gradient("erf", built_in)


def test_a_layout_of_a_program():
    asked = []

    @relay.op.register_convert_op_layout("nn.max_pool2d", level=15)
    def convert(attrs, inputs, tinfos, layouts):
        asked.append(list(layouts))
        return relay.nn.max_pool2d(*inputs, **attrs)

    try:
        relay.transform.ConvertLayout({"nn.max_pool2d": ["NHWC"]})(tvm.IRModule.from_expr(program("x[1,1,4,4]", "nn.max_pool2d(%x, pool_size=[2, 2])")))
        assert asked == [["NHWC"]]
    finally:
        relay.op.get("nn.max_pool2d").reset_attr("FTVMConvertOpLayout")


ANNOTATIONS = {
    "device_copy": (lambda: relay.device_copy(X, tvm.cpu(0), tvm.cuda(0)), {"src_dev_type": 1, "dst_dev_type": 2}),
    "annotation.cast_hint": (lambda: relay.annotation.cast_hint(X, "int8"), {"dtype": "int8"}),
    "annotation.compiler_begin": (lambda: relay.annotation.compiler_begin(X, "foo"), {"compiler": "foo"}),
    "annotation.compiler_end": (lambda: relay.annotation.compiler_end(X, "foo"), {"compiler": "foo"}),
    "on_device": (lambda: relay.annotation.on_device(X, tvm.cpu()), {"device_type": 1}),
}


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_annotations(name):
    made = ANNOTATIONS[name][0]()
    assert made.op.name == name and {k: made.attrs[k] for k in ANNOTATIONS[name][1]} == ANNOTATIONS[name][1]


def test_an_annotator_of_a_program():
    class Annotate(ExprMutator):
        def visit_call(self, call):
            if call.op.name != "add":
                return super().visit_call(call)
            args = [relay.annotation.compiler_begin(self.visit(a), "ccompiler") for a in call.args]
            return relay.annotation.compiler_end(relay.add(*args), "ccompiler")

    func = Annotate().visit(relay.Function([X, Y], relay.exp(X + Y)))
    mod = relay.transform.PartitionGraph()(relay.transform.InferType()(tvm.IRModule.from_expr(func)))
    assert len(mod.get_global_vars()) == 2 and len(calls(mod["main"], "exp")) == 1


def test_helpers_of_tests():
    testing = relay.testing
    array = np.zeros((3, 3), "float32")
    testing.init.Xavier()("w_weight", array)
    made = testing.rand("float32", 2, 3)
    assert array.any() and (made.shape, str(made.dtype), testing.ctx_list()[0][0]) == ((2, 3), "float32", "llvm") and list(testing.enabled_targets())
    net, params = testing.lstm.get_workload(iterations=2, num_hidden=4, batch_size=1)
    assert relay.transform.InferType()(net)["main"].ret_type.concrete_shape == (1, 4) and params
    assert parsed("def @main() { 1 }")["main"].body.data.numpy() == 1
