# SPDX-License-Identifier: Apache-2.0
"""Patterns of dataflow as programs of Relay 0.8 write them: fields, a table of what matches, rewriting, partitions."""

import numpy as np
import pytest
from building import assert_same, kernels, names, program, var, visited

import baton as tvm
from baton import relay
from baton.relay import dataflow_pattern as dfp
from baton.relay.dataflow_pattern import (
    FunctionPattern,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)

X, Y, C = var(2, 2), var(2, 2, name="y"), var(name="c", dtype="bool")
ONE = relay.const(1.0)
CONV = relay.nn.conv2d(var(1, 3, 8, 8), var(4, 3, 3, 3, name="w"), kernel_size=(3, 3), data_layout="NCHW")
SUM = relay.Function([X, Y], X + Y).with_attr("Composite", "add")
any_ = wildcard


def conv():
    return is_op("nn.conv2d")(any_(), any_())


def add():
    return is_op("add")(any_(), any_())


def elementwise():
    return any_().has_attr({"TOpPattern": 0})


def twice():
    x = any_()
    return is_op("add")(x, x)


# ---- Fields of patterns

a, b, p, d = any_(), is_var("y"), is_op("add")(X_ := any_(), any_()), dfp.DominatorPattern(add(), any_(), is_op("nn.relu")(any_()))
FIELDS = [
    (p, dfp.CallPattern, {"op": p.op}),
    (p.op, dfp.ExprPattern, {"expr": relay.op.get("add")}),
    (is_expr(X), dfp.ExprPattern, {"expr": X}),
    (a, dfp.WildcardPattern, {}),
    (b, dfp.VarPattern, {"name": "y"}),
    (p | is_constant(), dfp.AltPattern, {"left": p}),
    (is_constant(), dfp.ConstantPattern, {}),
    (is_tuple([a, b]), dfp.TuplePattern, {"fields": [a, b]}),
    (is_tuple_get_item(p, 1), dfp.TupleGetItemPattern, {"index": 1, "tuple": p}),
    (p.has_attr({"TOpPattern": 0}), dfp.AttrPattern, {"pattern": p}),
    (a.has_dtype("float32"), dfp.DataTypePattern, {"dtype": "float32"}),
    (has_dtype("int8"), dfp.DataTypePattern, {"dtype": "int8"}),
    (has_shape([10, 10]), dfp.ShapePattern, {"shape": [10, 10]}),
    (a.has_shape((10, 10)), dfp.ShapePattern, {"shape": [10, 10]}),
    (a.has_type(relay.TensorType((10,))), dfp.TypePattern, {"type": relay.TensorType((10,))}),
    (is_if(a, b, p), dfp.IfPattern, {"cond": a, "true_branch": b, "false_branch": p}),
    (is_let(b, a, p), dfp.LetPattern, {"var": b, "value": a, "body": p}),
    (FunctionPattern([a, b], p), dfp.FunctionPattern, {"params": [a, b], "body": p}),
    (d, dfp.DominatorPattern, {"parent": d.parent, "path": d.path, "child": d.child}),
]


@pytest.mark.parametrize("pattern, kind, fields", FIELDS, ids=lambda v: v.__name__ if isinstance(v, type) else "")
def test_fields(pattern, kind, fields):
    assert type(pattern) is kind or isinstance(pattern, kind)
    for name, want in fields.items():
        found = getattr(pattern, name)
        assert list(found) == want if isinstance(want, list) else found == want


def test_arguments_and_attributes_of_patterns():
    assert p.args[0] == X_ and add().has_attr({"TOpPattern": 0}).attrs["TOpPattern"] == 0
    assert [q.op.expr.name for q in (a + a, a - a, a * a, a / a)] == ["add", "subtract", "multiply", "divide"]
    assert str(p) == 'is_op("add")(*, *)' and repr(a) == "*"


# ---- What matches: a pattern, expressions that it matches, expressions that it does not

RELU, EXP = relay.nn.relu, relay.exp
DIAMOND = RELU(CONV) + relay.nn.leaky_relu(RELU(CONV), alpha=0)
MATCHES = {
    "a variable by name": (is_var("x"), [X], [Y, ONE]),
    "any variable": (is_var(), [X, Y], [ONE]),
    "a constant": (is_constant(), [ONE], [X]),
    "an expression": (is_expr(X + X), [X + X], [X]),
    "one node": (is_expr(X), [X], [X + X]),
    "any call": (any_()(any_()), [EXP(X)], [X + X]),
    "a call without arguments": (any_()(), [relay.Function([], ONE)()], []),
    "either operator": ((is_op("add") | is_op("subtract"))(any_(), any_()), [X + X, X - X], [X * X]),
    "either call": (add() | is_op("subtract")(any_(), any_()), [X + Y, X - Y], [X * Y]),
    "one operand twice": (twice(), [X + X], [X + Y]),
    "operators by sign": (is_var("x") + is_constant(), [X + ONE, ONE + X], [X - ONE]),
    "a product commutes": (is_op("multiply")(is_var(), is_constant()), [X * ONE, ONE * X], [X + ONE]),
    "a difference does not": (is_op("subtract")(is_var(), is_constant()), [X - ONE], [ONE - X]),
    "a sum of names": (is_op("add")(is_var("x"), is_var("y")), [X + Y, Y + X], [X + X]),
    "any tuple": (is_tuple(None), [relay.Tuple([X, Y]), relay.Tuple([X]), relay.Tuple([])], [X]),
    "a tuple of one": (is_tuple([any_()]), [relay.Tuple([X])], [relay.Tuple([X, X])]),
    "any field": (is_tuple_get_item(any_()), [relay.TupleGetItem(relay.Tuple([X, Y]), i) for i in (0, 1)], [X]),
    "a field": (is_tuple_get_item(is_tuple([any_(), any_()]), 0), [relay.TupleGetItem(relay.Tuple([X, Y]), 0)], [relay.TupleGetItem(relay.Tuple([X, Y]), 1)]),
    "a branch": (is_if(is_op("less")(is_var("x"), is_var("y")), is_var("x"), is_var("y")), [relay.If(X < Y, X, Y)], [relay.If(X > Y, X, Y)]),
    "a branch by its condition": (is_if(is_var("c"), any_(), any_()), [relay.If(C, X, X)], [relay.If(var(name="d", dtype="bool"), X, X)]),
    "a let": (is_let(is_var("x"), is_constant(), any_()), [relay.Let(X, ONE, X)], [relay.Let(Y, ONE, Y), relay.Let(X, Y, X)]),
    "a function": (FunctionPattern([any_(), any_()], add()), [SUM], [relay.Function([X], X + X)]),
    "a function of any parameters": (FunctionPattern(None, any_()), [SUM, relay.Function([X], X)], [X]),
    "a function by its attributes": (FunctionPattern([any_(), any_()], any_()).has_attr({"Composite": "add"}), [SUM], [relay.Function([X, Y], X + Y)]),
    "a call of such a function": (FunctionPattern([any_(), any_()], any_()).has_attr({"Composite": "add"})(any_(), any_()), [relay.Call(SUM, [X, Y])], [X + Y]),
    "an attribute": (conv().has_attr({"data_layout": "NCHW"}), [CONV], [EXP(X)]),
    "a list as an attribute": (conv().has_attr({"kernel_size": [3, 3]}), [CONV], []),
    "another attribute": (conv().has_attr({"data_layout": "NHWC"}), [], [CONV]),
    "another list": (conv().has_attr({"kernel_size": [3, 1]}), [], [CONV]),
    "an int for a list": (conv().has_attr({"kernel_size": 3}), [], [CONV]),
    "no such attribute": (conv().has_attr({"RandomAttr": "x"}), [], [CONV]),
    "a type": (has_type(relay.TensorType((2, 2))), [X], [var(2, 3)]),
    "a type of any": (any_().has_type(relay.TensorType((2, 2))), [X], [var(2, 3)]),
    "a dtype": (has_dtype("float32"), [X], [var(2, 2, dtype="int8")]),
    "a dtype of an operand": (is_op("add")(any_().has_dtype("float32"), any_()), [X + X], [var(2, dtype="int8") + var(2, dtype="int8")]),
    "a shape": (has_shape((2, 2)), [X], [var(2, 10)]),
    "optional at the end": (conv().optional(is_op("nn.relu")), [CONV, RELU(CONV)], [EXP(CONV)]),
    "optional between": (is_op("nn.relu")(conv().optional(lambda x: is_op("nn.bias_add")(x, any_()))),
                         [RELU(CONV), RELU(relay.nn.bias_add(CONV, Y))], [RELU(RELU(CONV))]),
    "a dominator": (dfp.dominates(conv(), elementwise()(None), add()), [DIAMOND], [X + Y]),
    "a dominator by method": (add().dominates(conv(), elementwise()(any_())), [RELU(CONV) + EXP(CONV)], [X + Y]),
}  # fmt: skip


@pytest.mark.parametrize("pattern, matches, others", MATCHES.values(), ids=MATCHES)
def test_matches(pattern, matches, others):
    assert [pattern.match(e) for e in matches] == [True] * len(matches)
    assert [dfp.match(pattern, e) for e in others] == [False] * len(others)


# ---- Rewriting


class Rewrite(dfp.DFPatternCallback):
    """Replaces what `pattern` matches by `make(pre, post, node_map)`."""

    def __init__(self, pattern, make, **options):
        super().__init__(**options)
        self.pattern, self.make = pattern, make

    def callback(self, pre, post, node_map):
        return self.make(pre, post, node_map)


def replaced(pattern, make, expr, *mod, **options):
    return rewrite(Rewrite(pattern, make, **options), expr, *mod)


def test_rewrite_by_its_operands():
    x, y = any_(), any_()
    sums = is_op("add")(x, y)

    def difference(pre, post, found):
        assert found[sums][0].op.name == "add" and sums in found
        return found[x][0] - found[y][0]

    rule = Rewrite(sums, difference)
    for got in (rewrite(rule, X + Y + Y), rewrite([rule], X + Y + Y), rule.rewrite(X + Y + Y)):
        assert tvm.ir.structural_equal(got, X - Y - Y)


def test_rewrite_to_the_end_and_once():
    inner = any_()
    assert names(replaced(is_op("exp")(is_op("exp")(inner)), lambda pre, post, m: EXP(m[inner][0]), EXP(EXP(EXP(EXP(X)))))) == ["exp"]

    def shorter(pre, post, m):
        fields = list(post.args[0].fields)
        return relay.op.tensor.concatenate(fields[:-1], 0) if len(fields) > 1 else fields[0]

    xs = [var(2, name=n) for n in "abc"]
    joined = relay.concatenate(xs, 0)
    assert tvm.ir.structural_equal(replaced(is_op("concatenate")(None), shorter, joined, rewrite_once=True), relay.concatenate(xs[:2], 0))
    assert replaced(is_op("concatenate")(None), shorter, joined) == xs[0]


def test_rewrite_with_types():
    def zeros(pre, post, m):
        return relay.zeros(pre.checked_type.shape, pre.checked_type.dtype)

    for once in (False, True):
        assert replaced(is_op("nn.relu")(any_()), zeros, RELU(X), require_type=True, rewrite_once=once).op.name == "zeros"


def test_rewrite_in_a_module():
    mod = tvm.IRModule.from_expr(relay.Function([X], RELU(X)))
    got = rewrite([Rewrite(is_op("nn.relu")(any_()), lambda pre, post, m: post.args[0])], mod["main"], mod)
    assert got.body == got.params[0]


def test_nodes_that_a_callback_gets():
    seen, left, right = [], any_(), is_constant()
    total = is_op("add")(left, right)
    pattern = is_op("nn.relu")(total)

    def look(pre, post, found):
        seen.append((found[right][0].data.numpy(), found[left][0], {pattern, total, left, right} <= set(found.keys())))
        return found[total][0]

    assert names(replaced(pattern, look, RELU(X + relay.const(3.0)))) == ["add"]
    assert seen == [(3, X, True)]


def test_rewrite_of_a_norm():
    x, v, m, beta, gamma, eps = (any_() for _ in range(6))
    x_, v_, m_, b_, g_ = (relay.var(n) for n in "xvmbg")

    def norm(pre, post, f):
        return relay.nn.batch_norm(f[x][0], f[gamma][0], f[beta][0], f[m][0], f[v][0], epsilon=f[eps][0].data.numpy().item())[0]

    got = replaced(gamma * (x - m) / is_op("sqrt")(v + eps) + beta, norm, g_ * (x_ - m_) / relay.sqrt(v_ + relay.const(1e-5)) + b_)
    tvm.ir.assert_structural_equal(got, relay.nn.batch_norm(x_, g_, b_, m_, v_, epsilon=np.float32(1e-5).item())[0])


def norms():
    return is_op("nn.batch_norm")(*[any_() for _ in range(5)])


def test_matches_in_a_network():
    mod, _ = relay.testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32))
    found = []
    replaced(is_op("nn.relu")(is_tuple_get_item(norms(), 0)), lambda pre, post, m: found.append(pre) or post, mod["main"])
    assert len(found) == 17


# ---- Partitions: a pattern, options, an expression, names and attributes of the functions, parameters of each

RELU_ADD = is_op("nn.relu")(add())
NORM = relay.nn.batch_norm(var(1, 4, 5, 5), *[var(4, name=n) for n in "gbmv"])[0]


def layout_is(layout):
    return lambda e: e.args[0].attrs.data_layout == layout


PARTITIONS = {
    "a chain": (RELU_ADD, {}, RELU(X + Y), [("add_nn.relu_", 2)]),
    "two chains": (RELU_ADD, {}, RELU(RELU(X + X) + X), [("add_nn.relu_", 1), ("add_nn.relu_", 2)]),
    "chains that overlap": (is_op("nn.relu")(is_op("nn.relu")(any_())), {}, RELU(RELU(RELU(X))), [("nn.relu_nn.relu_", 1)]),
    "a check that holds": (is_op("nn.relu")(conv()), {"check": layout_is("NCHW")}, RELU(CONV), [("nn.conv2d_nn.relu_", 2)]),
    "a check that fails": (is_op("nn.relu")(conv()), {"check": layout_is("NHWC")}, RELU(CONV), []),
    "a constant of the pattern is part of it": (is_op("add")(any_(), is_constant()), {}, X + ONE, [("add_", 1)]),
    "another constant is an argument": (add(), {}, X + ONE, [("add_", 2)]),
    "a field of a norm": (is_tuple_get_item(norms(), 0), {}, NORM, [("nn.batch_norm_TupleGetItem0_", 5)]),
}


@pytest.mark.parametrize("pattern, options, expr, want", PARTITIONS.values(), ids=PARTITIONS)
def test_partition(pattern, options, expr, want):
    for got in (pattern.partition(expr, **options), dfp.partition(pattern, expr, **options)):
        found = [(f.attrs["PartitionedFromPattern"], len(f.params)) for f in visited(got, relay.Function)]
        assert sorted(found) == sorted(want)
        assert want or got == expr


def test_attributes_of_a_partition():
    got = RELU_ADD.partition(RELU(X + Y), {"Composite": "mine", "num": 3}, lambda e: True)
    assert (got.op.attrs["Composite"], got.op.attrs["num"]) == ("mine", 3)
    a, b, c = (relay.var(n) for n in "abc")
    x, y, z = (relay.var(n) for n in "xyz")
    func = relay.Function([a, b, c], a + b - c).with_attr("PartitionedFromPattern", "add_subtract_")
    assert tvm.ir.structural_equal(is_op("subtract")(add(), any_()).partition(x + y - z), func(x, y, z), map_free_vars=False)


def test_composites_become_a_function_of_a_compiler():
    def conv_bias():
        return is_op("nn.conv2d")(any_(), is_constant()).optional(lambda x: is_op("nn.bias_add")(x, is_constant()))

    ones = relay.const(np.ones((4, 3, 3, 3), "float32")), relay.const(np.ones(4, "float32"))
    t, x = relay.transform, var(1, 3, 8, 8)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.bias_add(relay.nn.conv2d(x, ones[0], kernel_size=(3, 3), channels=4), ones[1])))
    table = [("a.conv", conv_bias(), lambda e: True)]
    mod = tvm.transform.Sequential([t.InferType(), t.MergeComposite(table), t.AnnotateTarget("a"), t.MergeCompilerRegions(), t.PartitionGraph()])(mod)
    (name,) = [v.name_hint for v in mod.get_global_vars() if v.name_hint != "main"]
    assert mod[name].attrs["Compiler"] == "a" and mod[name].body.op.attrs["Composite"] == "a.conv"
    assert len(kernels(mod[name])) == 1
    assert_same(mod["main"].body.args[0], program("x[1,3,8,8]", "%x").body)
