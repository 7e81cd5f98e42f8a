# SPDX-License-Identifier: Apache-2.0
"""The pattern language of dataflow: the examples of Relay's documentation, and what goes beyond them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.dataflow_pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DFPatternCallback,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
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
    match,
    partition,
    rewrite,
    wildcard,
)
from baton.relay.op import OpPattern

ELEMWISE, BROADCAST = 0, 1


def _vars(names, shape=(4,)):
    return [relay.var(n, shape=shape) for n in names]


def _conv(x, w, **attrs):
    return relay.nn.conv2d(x, w, **attrs)


# ---- Each kind of pattern matches what it says, and nothing else.
def test_kinds_as_objects():
    x, w = is_var("x"), wildcard()
    kinds = [
        (x, VarPattern),
        (w, WildcardPattern),
        (is_constant(), ConstantPattern),
        (is_op("add"), ExprPattern),
        (x + w, CallPattern),
        (is_tuple([x]), TuplePattern),
        (is_tuple_get_item(x), TupleGetItemPattern),
        (is_if(x, x, w), IfPattern),
        (is_let(x, w, w), LetPattern),
        (FunctionPattern([x], w), FunctionPattern),
        (x | w, AltPattern),
        (has_type(relay.scalar_type("int32")), TypePattern),
        (has_dtype("int8"), DataTypePattern),
        (has_shape([1, 2]), ShapePattern),
        (has_attr({"a": 1}), AttrPattern),
        (dominates(x, w, w), DominatorPattern),
    ]
    for p, kind in kinds:
        assert isinstance(p, kind) and isinstance(p, DFPattern)
        again = tvm.ir.load_json(tvm.ir.save_json(p))
        assert tvm.ir.structural_equal(p, again) and repr(p) == repr(again)
    assert isinstance(OpPattern.ELEMWISE, int)


def test_repr():
    x = wildcard()
    assert repr(is_op("add")(x, is_constant()) | is_var("y")) == '(is_op("add")(*, is_constant()) | is_var("y"))'
    assert repr(is_op("nn.relu")(None).has_attr({"a": 1}).has_dtype("float32")) == 'is_op("nn.relu")(...).has_attr({"a": 1}).has_dtype("float32")'
    assert repr(is_tuple_get_item(is_tuple(None), 1)) == "is_tuple_get_item(is_tuple(...), 1)"
    assert repr(dominates(x, x, x)) == "dominates(*, *, *)"
    assert "has_shape" in repr(x.has_shape([1, 2])) and "fn (*) { * }" == repr(FunctionPattern([x], x))


def test_op_or_attr():
    pattern = is_op("add") | is_op("subtract")
    assert pattern.match(relay.op.get("add")) and pattern.match(relay.op.get("subtract"))
    assert not pattern.match(relay.op.get("multiply"))
    x, y = _vars("xy")
    pattern = is_op("add").has_attr({"TOpPattern": BROADCAST})(is_var("x"), is_var("y"))
    assert pattern.match(x + y)
    assert not is_op("nn.dense").has_attr({"TOpPattern": ELEMWISE}).match(relay.op.get("nn.dense"))
    assert not is_op("add").has_attr({"NoSuchAttribute": 1}).match(relay.op.get("add"))
    with pytest.raises(Exception, match="nn.conv2d"):
        is_op("nn.conv2")


def test_call_attributes():
    x, w = relay.var("x"), relay.var("w")
    conv = _conv(x, w, strides=(2, 2), data_layout="NCHW", groups=1, padding=(1, 1), kernel_size=(3, 3))
    p = is_op("nn.conv2d")(wildcard(), wildcard())
    assert p.has_attr({"data_layout": "NCHW"}).match(conv) and not p.has_attr({"data_layout": "NHWC"}).match(conv)
    assert p.has_attr({"strides": [2, 2], "groups": 1}).match(conv) and not p.has_attr({"strides": [2, 1]}).match(conv)
    assert not p.has_attr({"no_such": 1}).match(conv) and not p.has_attr({"groups": "1"}).match(conv)
    assert is_op("nn.conv2d")(wildcard(), wildcard(), kernel_size=[3, 3]).match(conv)
    assert not is_op("nn.conv2d")(wildcard(), wildcard(), kernel_size=[1, 1]).match(conv)
    cast = relay.cast(x, "int8")
    assert is_op("cast")(wildcard()).has_attr({"dtype": "int8"}).match(cast)
    assert not is_op("cast")(wildcard()).has_attr({"dtype": "int16"}).match(cast)
    assert not is_op("cast")(wildcard()).has_attr({"dtype": "no dtype"}).match(cast)
    assert not wildcard().has_attr({"a": 1}).match(x)


def test_function_attributes():
    x, y = _vars("xy")
    f = relay.Function([x, y], x + y).with_attr("Composite", "add")
    p = FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard())
    assert p.match(f) and p.has_attr({"Composite": "add"}).match(f) and not p.has_attr({"Composite": "sub"}).match(f)
    assert FunctionPattern(None, wildcard()).match(f) and not FunctionPattern([wildcard()], wildcard()).match(f)
    assert not FunctionPattern([wildcard(), wildcard()], wildcard() * wildcard()).match(f)
    a, b = is_var(), is_var()
    assert FunctionPattern([a, b], a + b).match(f) and not FunctionPattern([a, b], a + a).match(f)


def test_values():
    x, y = _vars("xy")
    assert is_var("x").match(x) and is_var().match(y) and not is_var("x").match(y) and not is_var().match(x + y)
    assert is_constant().match(relay.const(1)) and not is_constant().match(x)
    assert is_expr(x + y).match(x + y) and not is_expr(x + y).match(y + x) and ExprPattern(relay.const(2)).match(relay.const(2))
    assert not ExprPattern(relay.const(2)).match(relay.const(3))
    assert wildcard().match(x) and match(wildcard(), relay.op.get("add"))
    t = relay.Tuple([x, y])
    assert is_tuple([is_var("x"), is_var("y")]).match(t) and is_tuple(None).match(t) and is_tuple((wildcard(), wildcard())).match(t)
    assert not is_tuple([wildcard()]).match(t) and not is_tuple(None).match(x)
    get = relay.TupleGetItem(t, 1)
    assert is_tuple_get_item(is_tuple(None), 1).match(get) and is_tuple_get_item(wildcard()).match(get)
    assert not is_tuple_get_item(wildcard(), 0).match(get) and not is_tuple_get_item(is_var()).match(get)


def test_if_and_let():
    x, y = _vars("xy")
    c = relay.var("c", shape=(), dtype="bool")
    p = is_if(is_var("c"), wildcard() + wildcard(), wildcard() - wildcard())
    assert p.match(relay.If(c, x + y, x - y)) and not p.match(relay.If(c, x - y, x + y)) and not p.match(x)
    v = relay.var("v")
    p = is_let(is_var("v"), wildcard() + wildcard(), is_op("nn.relu")(wildcard()))
    assert p.match(relay.Let(v, x + y, relay.nn.relu(v))) and not p.match(relay.Let(v, x - y, relay.nn.relu(v))) and not p.match(x)


def test_types():
    x = relay.var("x", shape=(10, 10), dtype="float32")
    assert has_type(relay.TensorType((10, 10), "float32")).match(x) and not has_type(relay.TensorType((10, 10), "float64")).match(x)
    assert is_var("x").has_dtype("float32").match(x) and not is_var("x").has_dtype("int8").match(x)
    assert is_var("x").has_shape((10, 10)).match(x) and not is_var("x").has_shape((10,)).match(x)
    p = is_op("nn.relu")(wildcard()).has_shape([10, 10])
    assert p.match(relay.nn.relu(x + x)) and not p.match(relay.abs(x))
    assert not wildcard().has_shape([1]).match(relay.Tuple([x]))
    assert not wildcard().has_dtype("int8").match(relay.var("u") + relay.var("u"))  # has none
    y = relay.var("y", shape=(2,), dtype="int32")
    assert not has_shape([2]).match(x + y)  # not well typed


# ---- Structure
def test_commutes():
    x, y, z = _vars("xyz")
    p = is_var("x") + is_var("y")
    assert p.match(x + y) and p.match(y + x)
    p = is_var("x") * is_var("y")
    assert p.match(y * x)
    assert not (is_var("x") - is_var("y")).match(y - x) and not (is_var("x") / is_var("y")).match(y / x)
    # A choice that looks right at first has to be undone: both products share b, in other places.
    a, b, c = wildcard(), wildcard(), wildcard()
    p = (a * b) + (a * c)
    for e in ((x * y) + (x * z), (y * x) + (x * z), (x * y) + (z * y), (y * x) + (z * y), (z * y) + (x * y)):
        assert p.match(e), e
    assert not p.match((x * y) + (z * relay.abs(z)))


def test_products_and_quotients_regroup():
    x, y, z = _vars("xyz")
    p = is_var("x") * is_var("y") / is_var("z")
    for e in ((x * y) / z, (y * x) / z, x * (y / z), (y / z) * x, y * (x / z)):
        assert p.match(e), e
    assert not p.match((x / y) * z) and not p.match(x / (y * z))
    p = is_var("x") * (is_var("y") / is_var("z"))
    for e in (x * (y / z), (x * y) / z, (y * x) / z, (y / z) * x):
        assert p.match(e), e
    i, j, k = (relay.var(n, shape=(4,), dtype="int32") for n in "ijk")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([i, j, k], i * (j / k))))
    assert not (is_var("i") * is_var("j") / is_var("k")).match(mod["main"].body)


def test_same_pattern_same_expression():
    x, y = _vars("xy")
    w = wildcard()
    assert (w + w).match(x + x) and not (w + w).match(x + y)
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    diamond = is_op("add")(is_op("nn.relu")(conv), is_op("nn.leaky_relu")(conv))
    i, k = relay.var("i"), relay.var("k")
    c = _conv(i, k)
    assert diamond.match(relay.nn.relu(c) + relay.nn.leaky_relu(c, alpha=0.1))
    assert diamond.match(relay.nn.leaky_relu(c, alpha=0.1) + relay.nn.relu(c))
    assert not diamond.match(relay.nn.relu(c) + relay.nn.leaky_relu(_conv(k, i), alpha=0.1))


def test_any_arguments():
    x, y = _vars("xy")
    assert is_op("add")(None).match(x + y) and is_op("nn.relu")(None).match(relay.nn.relu(x)) and not is_op("add")(None).match(x - y)
    assert not is_op("add")(wildcard()).match(x + y)


def test_optional():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    p = conv.optional(lambda y: is_op("nn.bias_add")(y, wildcard())).optional(lambda y: is_op("nn.relu")(y))
    c = _conv(x, w)
    biased = relay.nn.bias_add(c, b)
    for e in (c, biased, relay.nn.relu(c), relay.nn.relu(biased)):
        assert p.match(e), e
    assert not p.match(relay.nn.bias_add(relay.nn.relu(c), b)) and not p.match(relay.nn.relu(x))


def _diamond():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    unary = wildcard().has_attr({"TOpPattern": ELEMWISE})(wildcard())
    return dominates(conv, unary, is_op("add")(wildcard(), wildcard()))


def test_dominator():
    x, w = relay.var("x"), relay.var("w")
    p = _diamond()
    c = _conv(x, w)
    relu, leaky = relay.nn.relu, lambda e: relay.nn.leaky_relu(e, alpha=0.1)
    assert p.match(relu(c) + leaky(c))
    assert p.match(relay.tanh(leaky(relu(c))) + relu(c))
    assert p.match(relu(relu(relay.tanh(c))) + leaky(c))
    # Two convolutions; a path of another kind; a branch around the convolution; no convolution.
    assert not p.match(relu(c) + leaky(_conv(x, w)))
    assert not p.match(relu(relay.nn.softmax(c)) + leaky(c))
    assert not p.match(relu(x) + leaky(c))
    assert not p.match(relu(x) + leaky(x))
    # What the parent feeds must not go past the child.
    joined = relu(c) + leaky(c)
    inner = is_op("nn.softmax")(_diamond())
    assert inner.match(relay.nn.softmax(joined))
    assert not (is_op("nn.dense")(_diamond(), wildcard())).match(relay.nn.dense(joined, c))
    # A fuzzy path with joins of its own, and the form child.dominates(parent, path).
    path = wildcard().has_attr({"TOpPattern": ELEMWISE})(wildcard()) | is_op("add")(wildcard(), wildcard())
    p = is_op("add")(wildcard(), wildcard()).dominates(is_op("nn.conv2d")(wildcard(), wildcard()), path)
    r = relu(c)
    assert p.match(relay.tanh(r + r) + leaky(c)) and not _diamond().match(relay.tanh(r + r) + leaky(c))
    assert is_op("nn.relu")(wildcard()).dominates(is_var("x")).match(relu(leaky(x)))


def test_dominator_takes_another_parent():
    # The nearest convolution does not have the attribute that the parent asks for.
    x, w = relay.var("x"), relay.var("w")
    far = _conv(x, w, groups=2)
    e = relay.nn.relu(_conv(far, w))
    parent = is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"groups": 2})
    assert is_op("nn.relu")(wildcard()).dominates(parent, is_op("nn.conv2d")(wildcard(), wildcard()) | is_var("w")).match(e)


# ---- Rewriting
class DropAbs(DFPatternCallback):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.x = wildcard()
        self.pattern = is_op("abs")(self.x)

    def callback(self, pre, post, node_map):
        assert isinstance(pre, relay.Call) and isinstance(post, relay.Call)
        return node_map[self.x][0]


def test_rewrite():
    x, y = _vars("xy")

    class AddToSubtract(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a, self.b = wildcard(), wildcard()
            self.pattern = self.a + self.b

        def callback(self, pre, post, node_map):
            return node_map[self.a][0] - node_map[self.b][0]

    out = rewrite(AddToSubtract(), relay.nn.relu((x + y) + y))
    assert tvm.ir.structural_equal(out, relay.nn.relu((x - y) - y))
    e = relay.nn.relu(x - y)
    assert AddToSubtract().rewrite(e).same_as(e)
    f = relay.Function([x, y], relay.If(relay.const(True), x + y, x))
    assert tvm.ir.structural_equal(rewrite(AddToSubtract(), f), relay.Function([x, y], relay.If(relay.const(True), x - y, x)))


def test_rewrite_batch_norm():
    """The documentation's example: batch normalisation written out becomes one operator."""
    shape = (1, 4)
    x = relay.var("x", shape=shape)
    var, mean, beta, gamma = (relay.var(n, shape=(4,)) for n in ("var", "mean", "beta", "gamma"))

    class BatchnormCallback(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x, self.var, self.mean = wildcard(), wildcard(), wildcard()
            self.beta, self.gamma, self.eps = wildcard(), wildcard(), is_constant()
            self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

        def callback(self, pre, post, node_map):
            names = "x gamma beta mean var".split()
            parts = [node_map[getattr(self, n)][0] for n in names]
            return relay.op.nn.batch_norm(*parts, epsilon=node_map[self.eps][0].data.numpy().item())[0]

    eps = relay.const(1e-5)
    want = relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=np.float32(1e-5).item())[0]
    for e in (gamma * (x - mean) / relay.sqrt(var + eps) + beta, gamma * ((x - mean) / relay.sqrt(var + eps)) + beta):
        assert tvm.ir.structural_equal(rewrite(BatchnormCallback(), e), want), e
    twice = gamma * (x - mean) / relay.sqrt(var + eps) + beta
    twice = gamma * (twice - mean) / relay.sqrt(var + eps) + beta
    inner = want
    assert tvm.ir.structural_equal(
        rewrite(BatchnormCallback(), twice), relay.op.nn.batch_norm(inner, gamma, beta, mean, var, epsilon=np.float32(1e-5).item())[0]
    )


def test_rewrite_to_the_end():
    (x,) = _vars("x")
    e = x
    for _ in range(37):
        e = relay.abs(e)
    assert rewrite(DropAbs(), e).same_as(x)
    # With an inner use outside of the match, that match is left alone.

    class TwoAbs(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("abs")(is_op("abs")(self.x))

        def callback(self, pre, post, node_map):
            return relay.abs(node_map[self.x][0])

    inner = relay.abs(x)
    e = relay.abs(inner) + inner
    assert rewrite(TwoAbs(), e).same_as(e)
    assert tvm.ir.structural_equal(rewrite(TwoAbs(), relay.abs(relay.abs(x))), relay.abs(x))


def test_rewrite_once_and_cycles():
    x, y = _vars("xy")

    class Wrap(DropAbs):
        def callback(self, pre, post, node_map):
            return relay.abs(relay.abs(node_map[self.x][0]))

    class Swap(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a, self.b = wildcard(), wildcard()
            self.pattern = self.a - self.b

        def callback(self, pre, post, node_map):
            return node_map[self.b][0] - node_map[self.a][0]

    out = rewrite(Wrap(rewrite_once=True), relay.abs(x))
    assert tvm.ir.structural_equal(out, relay.abs(relay.abs(x)))
    with pytest.raises(tvm.error.CompileError, match="without an end.*abs.*rewrite_once"):
        rewrite(Wrap(), relay.abs(x))
    with pytest.raises(tvm.error.CompileError, match="gives an earlier expression.*subtract"):
        rewrite(Swap(), x - y)

    class Same(DropAbs):
        def callback(self, pre, post, node_map):
            return relay.abs(node_map[self.x][0])

    e = relay.abs(x)
    assert rewrite(Same(), e).same_as(e)  # another object, but equal: nothing changed


def test_require_type():
    (x,) = _vars("x")
    seen = []

    class Typed(DropAbs):
        def callback(self, pre, post, node_map):
            seen.append(str(pre.checked_type.dtype))
            return node_map[self.x][0]

    out = rewrite(Typed(require_type=True), relay.abs(relay.cast(relay.abs(x), "int32")))
    assert seen == ["float32", "int32"] and tvm.ir.structural_equal(out, relay.cast(x, "int32"))


def test_several_callbacks_in_order():
    x, y = _vars("xy")

    class MulToAbs(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.a = wildcard()
            self.pattern = self.a * self.a

        def callback(self, pre, post, node_map):
            return relay.abs(node_map[self.a][0])

    assert rewrite([MulToAbs(), DropAbs()], x * x).same_as(x)
    assert rewrite([DropAbs(), MulToAbs()], x * x).same_as(x)
    assert tvm.ir.structural_equal(rewrite([DropAbs(rewrite_once=True), MulToAbs()], x * x + relay.abs(y)), relay.abs(x) + y)


def test_errors_of_callbacks():
    (x,) = _vars("x")

    class Raises(DropAbs):
        def callback(self, pre, post, node_map):
            raise KeyError("mine")

    class NoExpr(DropAbs):
        def callback(self, pre, post, node_map):
            return None

    class NoCallback(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("abs")(wildcard())

    with pytest.raises(KeyError, match="mine"):
        rewrite(Raises(), relay.abs(x))
    with pytest.raises(tvm.error.CompileError, match="gave no expression"):
        rewrite(NoExpr(), relay.abs(x))
    with pytest.raises(NotImplementedError):
        rewrite(NoCallback(), relay.abs(x))
    with pytest.raises(TypeError, match="a pattern is wanted"):
        is_op("abs")(3)


def test_dominator_lists_its_path():
    x, w = relay.var("x"), relay.var("w")
    c = _conv(x, w)
    e = relay.nn.relu(relay.tanh(c)) + relay.abs(c)
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    path = wildcard().has_attr({"TOpPattern": ELEMWISE})(wildcard())
    found = []

    class Look(DFPatternCallback):
        def __init__(self):
            super().__init__(rewrite_once=True)
            self.pattern = dominates(conv, path, is_op("add")(wildcard(), wildcard()))

        def callback(self, pre, post, node_map):
            found.append(([n.op.name for n in node_map[path]], node_map[conv][0].op.name))
            return post

    rewrite(Look(), e)
    assert found == [(["tanh", "nn.relu", "abs"], "nn.conv2d")]


# ---- Partitioning
def _partitioned(params, body, name, **attrs):
    f = relay.Function(params, body)
    for key, value in {**attrs, "PartitionedFromPattern": name}.items():
        f = f.with_attr(key, value)
    return f


def test_partition():
    x, w, b = relay.var("x"), relay.var("w"), relay.var("b")
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    p = is_op("nn.relu")(is_op("nn.bias_add")(conv, wildcard()))

    def network(x, w, b):
        return relay.nn.relu(relay.nn.bias_add(_conv(x, w), b))

    def function(**attrs):
        v = [relay.var("x1"), relay.var("w1"), relay.var("b1")]
        return _partitioned(v, network(*v), "nn.conv2d_nn.bias_add_nn.relu_", **attrs)

    assert tvm.ir.structural_equal(p.partition(network(x, w, b)), function()(x, w, b))
    twice = p.partition(network(network(x, w, b), w, b))
    assert tvm.ir.structural_equal(twice, function()(function()(x, w, b), w, b))
    out = partition(p, network(x, w, b), {"Composite": "a", "Number": 2})
    assert tvm.ir.structural_equal(out, function(Composite="a", Number=2)(x, w, b))
    seen = []
    e = network(x, w, b)
    assert p.partition(e, check=lambda m: bool(seen.append(m))).same_as(e) and seen[0].same_as(e)
    assert is_op("nn.dense")(wildcard(), wildcard()).partition(e).same_as(e)
    # A second partition leaves what the first made.
    once = p.partition(e)
    assert p.partition(once).same_as(once)


def test_partition_keeps_what_is_used_outside():
    x, w = relay.var("x"), relay.var("w")
    c = _conv(x, w)
    e = relay.nn.relu(c) + c
    assert is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard())).partition(e).same_as(e)


def test_partition_diamond():
    i, w = relay.var("i"), relay.var("w")

    def diamond(x, y):
        c = _conv(x, y)
        return relay.tanh(relay.nn.relu(c)) + relay.nn.leaky_relu(c, alpha=0.1)

    out = _diamond().partition(diamond(i * i, w * w))
    a, b = relay.var("a"), relay.var("b")
    f = _partitioned([a, b], diamond(a, b), "nn.conv2d_nn.relu_tanh_nn.leaky_relu_add_")
    assert tvm.ir.structural_equal(out, f(i * i, w * w))


def test_partition_constants_and_parts():
    (x,) = _vars("x")
    two = relay.const(np.full(4, 2, "float32"))
    v = relay.var("v")
    inside = is_op("multiply")(wildcard(), is_constant()).partition(x * two)
    assert tvm.ir.structural_equal(inside, _partitioned([v], v * two, "multiply_")(x))
    u = relay.var("u")
    outside = is_op("multiply")(wildcard(), wildcard()).partition(x * two)
    assert tvm.ir.structural_equal(outside, _partitioned([v, u], v * u, "multiply_")(x, two))
    t = relay.TupleGetItem(relay.Tuple([x, x + x]), 1)
    out = is_tuple_get_item(is_tuple(None), 1).partition(t)
    assert tvm.ir.structural_equal(out, _partitioned([v, u], relay.TupleGetItem(relay.Tuple([v, u]), 1), "Tuple_TupleGetItem1_")(x, x + x))
    out = is_op("abs")(is_op("concatenate")(None)).partition(relay.abs(relay.concatenate([x, x], 0)))
    assert tvm.ir.structural_equal(
        out, _partitioned([v], relay.abs(relay.Call(relay.op.get("concatenate"), [v], out.op.body.args[0].attrs)), "concatenate_abs_")(relay.Tuple([x, x]))
    )


def test_partition_functions_if_and_let():
    x, y = _vars("xy")
    c = relay.var("c", shape=(), dtype="bool")
    a, b, d = relay.var("a"), relay.var("b"), relay.var("d")
    f = relay.Function([a, b], a + b)
    p = FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard())(wildcard(), wildcard()) + wildcard()
    u, v, w = relay.var("u"), relay.var("v"), relay.var("w")
    assert tvm.ir.structural_equal(p.partition(f(x, y) + x), _partitioned([u, v, w], f(u, v) + w, "FunctionCall_add_")(x, y, x)) is False
    out = p.partition(f(x, y) + c)  # an argument that occurs twice is one parameter
    assert tvm.ir.structural_equal(out, _partitioned([u, v, w], f(u, v) + w, "FunctionCall_add_")(x, y, c))
    p = is_if(wildcard(), is_op("abs")(wildcard()), wildcard())
    out = p.partition(relay.If(c, relay.abs(x), y))
    assert tvm.ir.structural_equal(out, _partitioned([u, v, w], relay.If(u, relay.abs(v), w), "abs_If_")(c, x, y))
    # The body uses the variable that the match binds, so what it stands for cannot come from outside.
    let = relay.Let(d, relay.abs(x), relay.nn.relu(relay.tanh(d)))
    assert is_let(is_var(), is_op("abs")(wildcard()), is_op("nn.relu")(wildcard())).partition(let).same_as(let)
    out = is_let(is_var(), is_op("abs")(wildcard()), is_op("nn.relu")(is_op("tanh")(is_var()))).partition(let)
    assert tvm.ir.structural_equal(out, _partitioned([u], relay.Let(d, relay.abs(u), relay.nn.relu(relay.tanh(d))), "abs_tanh_nn.relu_Let_")(x))


def test_partition_runs_the_same():
    x, y = _vars("xy")
    body = relay.nn.relu(x + y) * relay.nn.relu(x - y)
    f = relay.Function([x, y], body)
    out = is_op("nn.relu")(wildcard() + wildcard()).partition(f)
    data = [np.arange(4, dtype="float32") - 2, np.ones(4, "float32")]
    want, got = (relay.create_executor("debug", tvm.IRModule.from_expr(g)).evaluate()(*data).numpy() for g in (f, out))
    assert not out.same_as(f)
    np.testing.assert_array_equal(want, got)


# ---- Size
def test_deep():
    (x,) = _vars("x")
    n = 200_000
    e = p = None
    e, p, w = x, wildcard(), wildcard()
    for _ in range(n):
        e = relay.abs(e)
        p = is_op("abs")(p)
    assert p.match(e) and not p.match(relay.abs(e).args[0].args[0])
    assert len(repr(p)) > n
    assert rewrite(DropAbs(), e).same_as(x)
    chain = is_op("abs")(is_op("abs")(w))
    out = chain.partition(e)
    assert isinstance(out.op, relay.Function)
    fuzzy = is_op("tanh")(wildcard()).dominates(is_op("exp")(wildcard()), is_op("abs")(wildcard()))
    assert not fuzzy.match(relay.tanh(e))
    e = relay.exp(x)
    for _ in range(n):
        e = relay.abs(e)
    assert fuzzy.match(relay.tanh(e))


def test_balanced_alternatives_end():
    # All orders of a balanced sum would be 2**127; parts that decide nothing outside are settled once.
    def tree(leaf, k):
        return leaf() if k == 0 else tree(leaf, k - 1) + tree(leaf, k - 1)

    (x,) = _vars("x")
    e = tree(lambda: relay.abs(x), 7)
    assert not is_op("nn.relu")(tree(wildcard, 7)).match(relay.tanh(e))
    p = tree(wildcard, 7).has_dtype("int8")
    assert not p.match(e)
