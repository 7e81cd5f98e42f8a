# SPDX-License-Identifier: Apache-2.0
"""Operators that a program registers: type, computation, schedule, strategy by target, gradient, layouts; shapes and norms of built-in ones."""

import itertools

import numpy as np
import pytest
from building import evaluated, function, names, optimized, program, tensor, typed, var

import baton as tvm
import baton.topi.testing
from baton import relay, te, tir, topi
from baton.relay import transform
from baton.relay.testing import TempOpAttr


def registered(name, relation=True, compute=None):
    """An operator of one tensor, whose result has the type of the tensor."""
    if name not in tvm.ir.Op.list_op_names():
        relay.op.op.register(name, "An operator of a test.")
        op = relay.op.get(name)
        op.set_num_inputs(1)
        op.add_argument("data", "Tensor", "The input.")
        op.set_support_level(10)
        if relation:
            op.add_type_rel(name.replace(".", "_"), lambda types, attrs: types[0])
        if compute:
            relay.op.register_compute(name, lambda attrs, inputs, out_type: [compute(inputs[0])])
            relay.op.register_injective_schedule(name)
    return relay.op.get(name)


def test_an_operator_of_the_tutorial():
    op = registered("house.triple", compute=lambda x: topi.multiply(x, tir.const(3.0, "float32")))
    op.set_attrs_type_key("DictAttrs")
    relay.op.op.register_pattern("house.triple", relay.op.OpPattern.ELEMWISE)
    relay.op.op.register_stateful("house.triple", False)
    x = var(2)
    for kind in ("graph", "vm"):
        got = evaluated(relay.Function([x], relay.exp(relay.Call(op, [x]))), np.ones(2, "float32"), kind=kind)
        np.testing.assert_allclose(got, np.full(2, np.exp(3)), rtol=1e-5)
    assert (op.name, op.num_inputs, op.support_level, op.arguments[0].name, op.description) == ("house.triple", 1, 10, "data", "An operator of a test.")


def test_names_of_operators():
    assert "nn.relu" in tvm.ir.Op.list_op_names() and tvm.ir.Op.get("nn.relu") == relay.op.get("nn.relu") and relay.op.get("nn.conv2d").get_attr("nope") is None


def test_an_attribute_of_an_operator():
    exp, log = relay.op.get("exp"), relay.op.get("log")
    tvm.ir.register_op_attr("exp", "target.house1", lambda e: True)

    @tvm.ir.register_op_attr("log", "target.house1")
    def supported(expr):
        return True

    assert exp.get_attr("target.house1") is not None and exp.has_attr("target.house1")
    mod = transform.AnnotateTarget("house1")(transform.InferType()(tvm.IRModule.from_expr(program("x[2]", "exp(log(%x))"))))
    mod = transform.PartitionGraph()(transform.MergeCompilerRegions()(mod))
    assert [names(f) for v, f in mod.functions.items() if v.name_hint != "main"] == [["log", "exp"]]
    for op in (exp, log):
        op.reset_attr("target.house1")
        assert op.get_attr("target.house1") is None


def test_a_strategy_by_target():
    def implementation(compute, **named):
        made = relay.op.OpStrategy()
        made.add_implementation(relay.op.strategy.wrap_topi_compute(compute), relay.op.strategy.wrap_topi_schedule(topi.generic.schedule_injective), **named)
        return made

    @tvm.target.override_native_generic_func("house_strategy")
    def strategy(attrs, inputs, out_type, target):
        return implementation(topi.nn.relu, name="house.generic", plevel=5)

    @strategy.register(["cpu"])
    def on_cpu(attrs, inputs, out_type, target):
        return implementation(topi.exp, name="house.cpu", plevel=10)

    for target, name, level in (("llvm", "house.cpu", 10), ("cuda", "house.generic", 5)):
        with tvm.target.Target(target):
            (found,) = strategy(None, [te.placeholder((2,))], tensor(2), tvm.target.Target(target)).specializations
        assert [(i.name, i.plevel) for i in found.implementations] == [(name, level)] and found.condition is None


def test_a_function_by_target():
    @tvm.target.generic_func
    def f(x):
        return x + 1

    f.register("cuda")(lambda x: x + 2)
    f.register(["rocm", "gpu"])(lambda x: x + 3)
    assert f(1) == 2
    for target, want in (("cuda", 3), ("rocm", 4), ("metal", 4), ("llvm", 2)):
        with tvm.target.Target(target):
            assert f(1) == want


def test_a_legal_form():
    @relay.op.register_legalize("nn.relu", level=105)
    def legal(attrs, inputs, types):
        assert types[-1].dtype == "float32"
        return relay.maximum(inputs[0], relay.const(0.0))

    try:
        assert names(optimized(program("x[2]", "nn.relu(%x)"), transform.Legalize())) == ["maximum"]
    finally:
        relay.op.get("nn.relu").reset_attr("FTVMLegalize")
    with TempOpAttr("exp", "FTVMAlterOpLayout", lambda attrs, inputs, tinfos, out_type: relay.negative(inputs[0])):
        assert names(optimized(program("x[2]", "exp(%x)"), transform.AlterOpLayout())) == ["negative"]


def test_a_gradient():
    op = registered("house.square", compute=lambda x: topi.multiply(x, x))
    relay.op.register_gradient("house.square", lambda orig, grad: [grad * relay.const(2.0) * orig.args[0]], level=15)
    x = var(2)
    back = typed(transform.gradient(typed(relay.Function([x], relay.Call(op, [x]))), mode="first_order"))
    assert back.ret_type == relay.TupleType([tensor(2), relay.TupleType([tensor(2)])])
    assert evaluated(back, np.array([1, 3], "float32"), kind="graph")[1][0].tolist() == [2, 6]


def test_a_function_of_shapes():
    op = registered("house.double", compute=lambda x: topi.add(x, x))
    relay.op.op.register_shape_func("house.double", False, lambda attrs, inputs, out_ndims: [topi.identity(inputs[0])])
    x = var(relay.Any())
    for rows in (1, 3):
        assert evaluated(relay.Function([x], relay.Call(op, [x])), np.ones(rows, "float32"), kind="vm").tolist() == [2] * rows


def test_attributes_of_a_call():
    attrs = tvm.ir.make_node("DictAttrs", x=1, y="s", z=[1, 2])
    call = relay.Call(relay.GlobalVar("f"), [], attrs)
    assert (call.attrs.x, call.attrs["y"], list(call.attrs.z)) == (1, "s", [1, 2])
    conv = relay.nn.conv2d(relay.var("x"), relay.var("w"), channels=4, kernel_size=(3, 3))
    again = relay.Call(relay.op.get("nn.conv2d"), [relay.var("x"), relay.var("w")], conv.attrs)
    assert isinstance(again.attrs, relay.op.op_attrs.Conv2DAttrs) and (again.attrs.kernel_size[0], again.attrs.channels) == (3, 4)
    assert isinstance(relay.nn.dense(var(2, 3), var(4, 3)).attrs, relay.op.op_attrs.DenseAttrs)
    for name in ("BatchNormAttrs", "StridedSliceAttrs"):
        assert issubclass(getattr(relay.op.op_attrs, name), tvm.ir.Attrs)


def test_random_numbers():
    key = relay.random.threefry_key(0)
    drawn = evaluated(relay.Function([], relay.random.uniform(key, (3,), low=0.0, high=1.0)[1]), kind="graph")
    assert drawn.shape == (3,) and (drawn >= 0).all() and (drawn < 1).all() and len(set(drawn.tolist())) == 3
    for made, shape, dtype in ((relay.random.normal(key, (4,), mean=0.0, scale=1.0)[1], (4,), "float32"),
                               (relay.random.threefry_generate(key, (4,))[1], (4,), "uint64"),
                               (relay.random.threefry_split(key)[0], (10,), "uint64")):  # fmt: skip
        got = evaluated(relay.Function([], made), kind="graph")
        assert (got.shape, str(got.dtype)) == (shape, dtype)


# ---- Shapes of operators of `nn`

X, D, nn = var(2, 8), var(1, 4, 8, 8, name="d"), relay.nn
SHAPES = {
    "softmax": (nn.softmax(X), (2, 8)),
    "fast_softmax": (nn.fast_softmax(X), (2, 8)),
    "log_softmax": (nn.log_softmax(X), (2, 8)),
    "l2_normalize": (nn.l2_normalize(X, 1e-05, [1]), (2, 8)),
    "prelu": (nn.prelu(X, var(8, name="a"), axis=1), (2, 8)),
    "relu": (nn.relu(X), (2, 8)),
    "lrn": (nn.lrn(D), (1, 4, 8, 8)),
    "global_avg_pool2d": (nn.global_avg_pool2d(D), (1, 4, 1, 1)),
    "adaptive_max_pool2d": (nn.adaptive_max_pool2d(D, (2, 2)), (1, 4, 2, 2)),
    "upsampling": (nn.upsampling(D, 2, 2), (1, 4, 16, 16)),
    "depth_to_space": (nn.depth_to_space(D, 2), (1, 1, 16, 16)),
    "space_to_depth": (nn.space_to_depth(D, 2), (1, 16, 4, 4)),
    "pad": (nn.pad(D, ((0, 0), (0, 0), (1, 1), (1, 1))), (1, 4, 10, 10)),
    "mirror_pad": (nn.mirror_pad(D, ((0, 0), (0, 0), (1, 1), (1, 1))), (1, 4, 10, 10)),
    "space_to_batch_nd": (nn.space_to_batch_nd(D, [2, 2], [[0, 0], [0, 0]]), (4, 2, 4, 8)),
    "batch_flatten": (nn.batch_flatten(D), (1, 256)),
    "correlation": (nn.correlation(D, D, 1, 4, 1, 1, 4, True), (1, 81, 8, 8)),
    "cross_entropy": (nn.cross_entropy(X, X), ()),
    "cross_entropy_with_logits": (nn.cross_entropy_with_logits(X, X), ()),
    "nll_loss": (nn.nll_loss(X, var(2, name="t", dtype="int32"), var(8, name="w")), ()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    made, want = SHAPES[name]
    assert typed(made).checked_type.concrete_shape == want


NORMS = {
    "instance_norm": (lambda x, g, b: nn.instance_norm(x, g, b), lambda x: (x.mean(2, keepdims=True), x.var(2, keepdims=True))),
    "layer_norm": (lambda x, g, b: nn.layer_norm(x, g, b, axis=1), lambda x: (x.mean(1, keepdims=True), x.var(1, keepdims=True))),
    "group_norm": (lambda x, g, b: nn.group_norm(x, g, b, 2, axis=1),
                   lambda x: tuple(of(x.reshape(2, 2, 10), 2).repeat(2, 1)[..., None] for of in (np.mean, np.var))),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norm(name):
    make, moments = NORMS[name]
    func = function(make(var(2, 4, 5), var(4, name="g"), var(4, name="b")))
    data = np.random.default_rng(0).random((2, 4, 5), "float32")
    mean, variance = moments(data)
    got = evaluated(func, data, np.ones(4, "float32"), np.zeros(4, "float32"), kind="graph")
    np.testing.assert_allclose(got, (data - mean) / np.sqrt(variance + 1e-05), rtol=1e-3, atol=1e-4)
    assert "nn." + name not in names(optimized(func, transform.SimplifyInference()))


def test_l2_normalize_is_simplified():
    assert "nn.l2_normalize" not in names(optimized(function(nn.l2_normalize(X, 0.001, [1])), transform.SimplifyInference()))


_numbers = itertools.count()


def f32(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def evaluate(expr, *values, kind="vm"):
    func = expr if isinstance(expr, relay.Function) else relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor(kind, device=tvm.cpu(), target="llvm").evaluate(func)(*values)


def own(rank=1):
    op = relay.op.op.register(f"users.rest{next(_numbers)}", "An operator of this test.")
    op.set_num_inputs(rank)
    for i in range(rank):
        op.add_argument(f"x{i}", "Tensor", "")
    op.add_type_rel("Identity")
    return op


def injective(outs):
    return topi.generic.schedule_injective(outs)


def test_a_strategy_under_a_condition():
    op, x = own(), relay.var("x", shape=(3,))

    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(lambda a, i, o: [topi.exp(i[0])], None, name="any")
        with te.SpecializedCondition(inputs[0].shape[0] > 16):
            made.add_implementation(lambda a, i, o: [topi.tanh(i[0])], None, name="large", plevel=20)
        assert [s.condition is None for s in made.specializations] == [True, False]
        return made

    relay.op.register_strategy(op.name)(strategy)
    np.testing.assert_allclose(evaluate(relay.Call(op, [x]), f32(3)).numpy(), np.exp(f32(3)), rtol=1e-5)
    large = relay.var("x", shape=(32,))
    np.testing.assert_allclose(evaluate(relay.Call(op, [large]), f32(32)).numpy(), np.tanh(f32(32)), rtol=1e-5)
    with pytest.raises(ValueError, match="has a strategy of level 10"):
        relay.op.register_strategy(op.name, strategy)
    relay.op.register_strategy(op.name, strategy, level=11)


def test_a_schedule_of_a_program_s_operator_is_taken():
    op = own()
    relay.op.register_compute(op.name, lambda attrs, inputs, out_type: [topi.exp(inputs[0])])
    relay.op.register_schedule(op.name, lambda attrs, outs, target: injective(outs))
    np.testing.assert_allclose(evaluate(relay.Call(op, [relay.var("x", shape=(3,))]), f32(3)).numpy(), np.exp(f32(3)), rtol=1e-5)


def test_the_implementation_of_a_built_in_operator():
    data, weight = te.placeholder((2, 4), name="d"), te.placeholder((3, 4), name="w")
    attrs = relay.nn.dense(relay.var("d"), relay.var("w")).attrs
    found, outs = relay.backend.compile_engine.select_implementation(
        relay.op.get("nn.dense"), attrs, [data, weight], relay.TensorType((2, 3)), tvm.target.Target("llvm")
    )
    assert found.name == "nn.dense.generic" and [int(d) for d in outs[0].shape] == [2, 3]


def test_an_operator_of_a_program():
    op = relay.op.op.register("users.twice", "x + x")
    assert op == relay.op.get("users.twice") and op.description == "x + x"
    op.set_num_inputs(1)
    op.add_argument("x", "Tensor", "What is doubled.")
    op.set_support_level(3)
    op.add_type_rel("Identity")
    relay.op.op.register_pattern("users.twice", relay.op.OpPattern.ELEMWISE)
    x = relay.var("x", shape=(2,))
    assert typed(relay.Call(op, [x])).checked_type == x.type_annotation and typed(op(x)).checked_type == x.type_annotation
    assert (op.num_inputs, op.support_level, op.arguments[0].name) == (1, 3, "x") and op.get_attr("TOpPattern") == 0
    with pytest.raises(tvm.TVMError, match="takes 1 argument"):
        typed(op(x, x))
    with pytest.raises(ValueError, match="already"):
        relay.op.op.register("users.twice")
    with pytest.raises(ValueError, match="built in"):
        relay.op.get("add").set_num_inputs(3)
    # A pass makes something of it that runs.
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(op(x)))
    with relay.testing.TempOpAttr("users.twice", "FTVMLegalize", lambda attrs, inputs, types: inputs[0] + inputs[0]):
        mod = relay.transform.Legalize()(mod)
    assert relay.create_executor("graph", mod=mod).evaluate()(np.ones(2, "float32")).numpy().tolist() == [2, 2]


def test_an_operator_with_a_relation_of_its_own():
    op = relay.op.op.register("users.rows")
    op.add_type_rel("Rows", lambda args, attrs: relay.TensorType([args[0].shape[0]], "int32"))
    assert typed(op(relay.var("x", shape=(4, 5)))).checked_type == relay.TensorType((4,), "int32")
    wrong = relay.op.op.register("users.wrong")
    wrong.add_type_rel("Wrong", lambda args, attrs: 3)
    with pytest.raises(tvm.TVMError):
        typed(wrong(relay.var("x", shape=(4, 5))))
    none = relay.op.op.register("users.none")
    with pytest.raises(tvm.TVMError, match="without a type relation"):
        typed(none(relay.var("x", shape=(4, 5))))
    with pytest.raises(ValueError, match="there are Identity, Broadcast"):
        none.add_type_rel("Identities")


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_a_strategy_on_each_executor(kind):
    op, x = own(), relay.var("x", shape=(3,))

    @tvm.target.override_native_generic_func(f"strategy_of_{op.name}")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(lambda a, i, o: [topi.exp(i[0])], relay.op.strategy.wrap_topi_schedule(injective), name="generic")
        return made

    @strategy.register(["cpu"])
    def on_cpu(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        wrapped = relay.op.strategy.wrap_topi_compute(topi.tanh)
        made.add_implementation(wrapped, relay.op.strategy.wrap_topi_schedule(injective), name="plain", plevel=5)
        made.add_implementation(lambda a, i, o: [topi.nn.relu(i[0])], relay.op.strategy.naive_schedule, name="better", plevel=15)
        return made

    relay.op.register_strategy(op.name, strategy)
    data = f32(3)
    assert (evaluate(relay.Call(op, [x]), data, kind=kind).numpy() == data.clip(0)).all()
    tensor = te.placeholder((3,), name="t")
    found, outs = relay.backend.compile_engine.select_implementation(op, None, [tensor], relay.TensorType((3,)), tvm.target.Target("llvm"))
    assert found.name == "better" and found.plevel == 15 and len(outs) == 1
    assert found.schedule(None, outs, tvm.target.Target("llvm")) is not None
    assert len(relay.backend.compile_engine.get_valid_implementations(op, None, [tensor], relay.TensorType((3,)), tvm.target.Target("llvm"))) == 2
