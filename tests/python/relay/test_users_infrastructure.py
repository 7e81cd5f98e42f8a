# SPDX-License-Identifier: Apache-2.0
"""The pass infrastructure and patterns as programs of Relay 0.8 use them."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.ir import IRModule
from baton.ir.instrument import PassInstrument, PassTimingInstrument, pass_instrument
from baton.relay.dataflow_pattern import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPatternCallback,
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


def net():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(3, 3), channels=4))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.add(y, relay.add(relay.const(1.0), relay.const(2.0)))))


def infer(e):
    mod = relay.transform.InferType()(IRModule.from_expr(e))
    return mod["main"] if isinstance(e, relay.Function) else mod["main"].body


def test_context_defaults():
    c = tvm.transform.PassContext()
    assert c.opt_level == 2 and list(c.required_pass) == [] and list(c.disabled_pass) == []
    assert len(c.config) == 0
    assert list(c.instruments) == [] or c.instruments is None
    cur = tvm.transform.PassContext.current()
    assert cur.opt_level == 2


def test_context_nested():
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FuseOps"], config={"relay.FuseOps.max_depth": 4}):
        c = tvm.transform.PassContext.current()
        assert c.opt_level == 3 and list(c.disabled_pass) == ["FuseOps"]
        assert c.config["relay.FuseOps.max_depth"] == 4
        with tvm.transform.PassContext(opt_level=0):
            assert tvm.transform.PassContext.current().opt_level == 0
        assert tvm.transform.PassContext.current().opt_level == 3


def test_context_config_errors():
    with pytest.raises(AttributeError):
        with tvm.transform.PassContext(config={"relay.bad_key": 1}):
            pass
    with pytest.raises(tvm.TVMError):
        with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": "x"}):
            pass
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 10}}):
        assert tvm.transform.PassContext.current().config["tir.UnrollLoop"].auto_max_step == 10
    with tvm.transform.PassContext(
        config={
            "tir.disable_vectorize": True,
            "tir.instrument_bound_checkers": False,
            "tir.noalias": True,
            "tir.debug_keep_trivial_loop": False,
            "tir.detect_global_barrier": False,
        }
    ):
        pass
    with tvm.transform.PassContext(config={"relay.backend.use_auto_scheduler": False}):
        pass
    with tvm.transform.PassContext(config={"relay.backend.use_meta_schedule": False}):
        pass
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 1}):
        pass


def test_list_configs():
    f = tvm.transform.PassContext.list_configs
    c = f()
    assert "relay.FuseOps.max_depth" in c and "tir.disable_vectorize" in c
    assert c["relay.FuseOps.max_depth"]["type"] in ("IntImm", "runtime.IntImm")


def test_function_pass():
    class TestFunc:
        def __init__(self, new_func):
            self.new_func = new_func

        def transform_function(self, func, mod, ctx):
            return self.new_func

    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.nn.relu(x))
    P = relay.transform.function_pass(TestFunc, opt_level=1, name="n5_p")
    p = P(f)
    assert isinstance(p, relay.transform.FunctionPass)
    assert p.info.name == "n5_p" and p.info.opt_level == 1 and len(p.info.required) == 0
    y = relay.var("y", shape=(2,))
    out = p(tvm.IRModule({"main": relay.Function([y], relay.exp(y))}))
    assert "relu" in str(out)


def test_function_pass_decorator():
    @relay.transform.function_pass(opt_level=1)
    def transform_it(func, mod, ctx):
        assert isinstance(mod, tvm.IRModule) and ctx.opt_level == 2
        return relay.Function(func.params, relay.nn.relu(func.body))

    assert isinstance(transform_it, relay.transform.FunctionPass)
    assert transform_it.info.name == "transform_it"
    m = transform_it(net())
    assert str(m).count("nn.relu") == 2


def test_module_pass():
    @tvm.transform.module_pass(opt_level=2, name="n5m", required=["InferType"])
    def tr(mod, ctx):
        mod["g"] = relay.Function([], relay.const(1))
        return mod

    assert isinstance(tr, tvm.transform.ModulePass)
    assert list(tr.info.required) == ["InferType"]
    m = tr(net())
    assert "g" in [g.name_hint for g in m.get_global_vars()]


def test_module_pass_class():
    @relay.transform.function_pass(opt_level=1)
    class CustomPipeline:
        def __init__(self, multiplier):
            self.multiplier = multiplier

        def transform_function(self, func, mod, ctx):
            obj = self

            class R(relay.ExprMutator):
                def visit_constant(self, c):
                    return relay.multiply(obj.multiplier, c)

            return R().visit(func)

    f = CustomPipeline(multiplier=relay.const(3, "float32"))
    assert f.info.name == "CustomPipeline"
    m = f(net())
    assert "multiply" in str(m)


def test_required_disabled():
    seq = tvm.transform.Sequential([relay.transform.FoldConstant(), relay.transform.EliminateCommonSubexpr(), relay.transform.AlterOpLayout()])
    with tvm.transform.PassContext(opt_level=0, required_pass=["FoldConstant"]):
        assert "3f" in seq(net()).astext().replace("meta", "") or "3" in str(seq(net()))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldConstant"]):
        m = seq(net())
        assert m.astext(show_meta_data=False).count("add(") == 2


def test_print_ir(capfd):
    seq = tvm.transform.Sequential(
        [relay.transform.InferType(), tvm.transform.PrintIR(header="n5 header", show_meta_data=False), relay.transform.FoldConstant()]
    )
    with tvm.transform.PassContext(opt_level=3):
        seq(net())
    err = capfd.readouterr()
    assert "n5 header" in err.err + err.out and "nn.conv2d" in err.err + err.out


def test_instrument_class():
    log = []

    @tvm.instrument.pass_instrument
    class My:
        def __init__(self, tag):
            self.tag = tag

        def enter_pass_ctx(self):
            log.append("enter")

        def exit_pass_ctx(self):
            log.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            log.append(("b", info.name))

        def run_after_pass(self, mod, info):
            log.append(("a", info.name))

    with tvm.transform.PassContext(opt_level=3, instruments=[My("x")]):
        m = relay.transform.InferType()(net())
        relay.transform.FoldConstant()(m)
    assert log[0] == "enter" and log[-1] == "exit"
    assert ("b", "InferType") in log and ("b", "FoldConstant") not in log


def test_instrument_subclass():
    class Plain(PassInstrument):
        pass

    log = []

    @pass_instrument
    class A:
        def run_before_pass(self, mod, info):
            log.append(info.name)

    with tvm.transform.PassContext(instruments=[A()]):
        relay.build(net(), "llvm")
    assert "FuseOps" in log and "InferType" in log


def test_timing():
    t = PassTimingInstrument()
    assert not t.render()
    with tvm.transform.PassContext(instruments=[t]):
        m = relay.transform.InferType()(net())
        m = relay.transform.FuseOps(fuse_opt_level=2)(m)
        prof = t.render()
    assert "InferType:" in prof and "FuseOps:" in prof
    assert "us" in prof


def test_instrument_override():
    log = []

    @pass_instrument
    class A:
        def run_after_pass(self, mod, info):
            log.append(info.name)

    @pass_instrument
    class B:
        def enter_pass_ctx(self):
            raise RuntimeError("n5 enter")

    with tvm.transform.PassContext() as c:
        c.override_instruments([A()])
        relay.transform.InferType()(net())
        c.override_instruments(None)
        relay.transform.InferType()(net())
    assert log.count("InferType") == 1
    with pytest.raises((RuntimeError, tvm.TVMError)) as e:
        with tvm.transform.PassContext(instruments=[A(), B()]):
            pass
    assert "n5 enter" in str(e.value)


def test_trace_and_current():
    from baton.transform import PassContext

    assert PassContext.current() is not None
    from baton.ir.transform import PassContext


def test_build_config():
    with relay.build_config(opt_level=3, disabled_pass=["AlterOpLayout"]):
        assert tvm.transform.PassContext.current().opt_level == 3
    with relay.transform.build_config(opt_level=2, required_pass=None, disabled_pass=None, trace=None):
        pass


def test_opt_levels():
    T = relay.transform
    want = {
        "FoldConstant": 2,
        "SimplifyInference": 0,
        "FoldScaleAxis": 3,
        "CombineParallelConv2D": 4,
        "CombineParallelDense": 4,
        "AlterOpLayout": 3,
        "EliminateCommonSubexpr": 3,
        "FastMath": 4,
        "CanonicalizeCast": 3,
        "CanonicalizeOps": 3,
        "Legalize": 1,
    }
    got = {k: getattr(T, k)().info.opt_level for k in want}
    assert got == want


def test_pass_error_class():
    @tvm.transform.module_pass(opt_level=0)
    def bad(mod, ctx):
        raise KeyError("n5")

    with pytest.raises((KeyError, tvm.TVMError)):
        bad(net())
    with pytest.raises((TypeError, tvm.TVMError, AttributeError)):
        relay.transform.InferType()(3)


def test_pass_on_function_fails_nicely():
    x = relay.var("x", shape=(2,))
    with pytest.raises((TypeError, tvm.TVMError, AttributeError)):
        relay.transform.FoldConstant()(relay.Function([x], x))


def test_expr_pattern():
    ep = is_expr(relay.var("x", shape=(4, 1)))
    assert isinstance(ep, ExprPattern) and isinstance(ep.expr, relay.Var)


def test_var_pattern():
    v = is_var("x")
    assert isinstance(v, VarPattern) and v.name == "x"
    assert v.match(relay.var("x")) and not v.match(relay.var("y")) and is_var().match(relay.var("z"))


def test_constant():
    assert isinstance(is_constant(), ConstantPattern) and is_constant().match(relay.const(1)) and not is_constant().match(relay.var("x"))


def test_wildcard():
    assert isinstance(wildcard(), WildcardPattern)


def test_call():
    w1, w2 = wildcard(), wildcard()
    is_add = is_op("add")
    c = is_add(w1, w2)
    assert isinstance(c, CallPattern) and c.args[0] == w1 and c.args[1] == w2 and isinstance(is_add, ExprPattern)
    assert c.op == is_add


def test_function():
    w = wildcard()
    f = FunctionPattern([w, w], is_op("add")(w, w))
    assert isinstance(f, FunctionPattern) and f.params[0] == w and f.body is not None


def test_tuple():
    w1, w2 = wildcard(), wildcard()
    t = is_tuple([w1, w2])
    assert isinstance(t, TuplePattern) and t.fields[0] == w1
    g = is_tuple_get_item(t, 0)
    assert isinstance(g, TupleGetItemPattern) and g.tuple == t and g.index == 0
    assert is_tuple_get_item(t).match(relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 1))


def test_or():
    p = is_op("add")(wildcard(), wildcard()) | is_op("subtract")(wildcard(), wildcard())
    assert isinstance(p, AltPattern)
    assert p.left is not None and p.right is not None and p.match(relay.var("x") - relay.var("y"))


def test_type():
    t = has_type(relay.TensorType((10, 10)))
    assert isinstance(t, TypePattern) and t.type == relay.TensorType((10, 10))
    assert wildcard().has_type(relay.TensorType((10, 10))).match(relay.var("x", shape=(10, 10)))


def test_dtype_shape():
    p = has_dtype("float32")
    assert isinstance(p, DataTypePattern) and p.dtype == "float32"
    s = has_shape([10, 10])
    assert isinstance(s, ShapePattern)
    tvm.ir.assert_structural_equal(s.shape, [10, 10])
    x = relay.var("x", shape=(10, 10))
    assert wildcard().has_dtype("float32").match(x) and not wildcard().has_dtype("int8").match(x) and wildcard().has_shape((10, 10)).match(x)


def test_if_let():
    x, y = is_var("x"), is_var("y")
    p = is_if(is_op("less")(x, y), x, y)
    assert isinstance(p, IfPattern) and p.cond and p.true_branch and p.false_branch
    a, b = relay.var("x"), relay.var("y")
    assert p.match(relay.If(a < b, a, b)) and not p.match(relay.If(a > b, a, b))
    let = is_let(is_var("x"), is_constant(), wildcard())
    assert isinstance(let, LetPattern) and let.match(relay.Let(a, relay.const(1), a))
    assert let.var and let.value and let.body


def test_optional():
    p = is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda x: is_op("nn.relu")(x))
    x, w = relay.var("x"), relay.var("w")
    c = relay.nn.conv2d(x, w)
    assert p.match(c) and p.match(relay.nn.relu(c)) and not p.match(relay.exp(c))


def test_dominates2():
    is_conv = is_op("nn.conv2d")(wildcard(), wildcard())
    elem = (wildcard().has_attr({"TOpPattern": 0}))(None)
    red = is_op("add")(wildcard(), wildcard())
    diamond = dominates(is_conv, elem, red)
    i, w = relay.var("i"), relay.var("w")
    conv = relay.nn.conv2d(i, w)
    out = relay.nn.relu(conv) + relay.nn.leaky_relu(relay.nn.relu(conv), alpha=0)
    assert diamond.match(out)


def test_operators():
    x = wildcard()
    for e in (x + x, x - x, x * x, x / x):
        assert isinstance(e, CallPattern)
    assert (is_var("a") + is_constant()).match(relay.var("a") + relay.const(1.0))


def test_commutative():
    x, y = relay.var("x"), relay.var("y")
    assert is_op("add")(is_var("x"), is_var("y")).match(y + x) and not is_op("subtract")(is_var("x"), is_var("y")).match(y - x)


def test_rewrite():
    x, y = relay.var("x"), relay.var("y")

    class T(DFPatternCallback):
        def __init__(self):
            super(T, self).__init__()
            self.x, self.y = wildcard(), wildcard()
            self.pattern = is_op("add")(self.x, self.y)

        def callback(self, pre, post, node_map):
            assert node_map[self.x][0] is not None and node_map[self.pattern][0] is not None
            return relay.subtract(node_map[self.x][0], node_map[self.y][0])

    out = rewrite(T(), x + y)
    assert out.op.name == "subtract"
    out = T().rewrite(x + y)
    assert out.op.name == "subtract"
    out = rewrite([T()], x + y + y)
    assert str(out).count("subtract") == 2


def test_rewrite_kwargs():
    class T(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True, rewrite_once=True)
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre, post, node_map):
            assert pre.checked_type is not None
            return relay.tanh(post.args[0])

    x = relay.var("x", shape=(2,))
    assert rewrite(T(), relay.exp(x)).op.name == "tanh"
    m = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert "tanh" in str(rewrite(T(), m["main"], m))


def test_match_api():
    assert match(is_op("exp")(wildcard()), relay.exp(relay.var("x"))) is True and is_op("exp")(wildcard()).match(relay.exp(relay.var("x"))) is True


def test_partition():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    p = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    e = p.partition(relay.nn.relu(x + y))
    assert isinstance(e.op, relay.Function) and e.op.attrs["PartitionedFromPattern"] == "add_nn.relu_"
    e = p.partition(relay.nn.relu(x + y), {"Composite": "n5"}, lambda e: True)
    assert e.op.attrs["Composite"] == "n5"
    e = p.partition(relay.nn.relu(x + y), check=lambda e: False)
    assert e.op.name == "nn.relu"
    e = partition(p, relay.nn.relu(x + y), {"a": "b"})
    assert e.op.attrs["a"] == "b"


def test_partition_const():
    x = relay.var("x", shape=(2,))
    p = is_op("add")(wildcard(), is_constant())
    e = p.partition(x + relay.const(1.0))
    assert len(e.op.params) == 1
    p = is_op("add")(wildcard(), wildcard())
    e = p.partition(x + relay.const(1.0))
    assert len(e.op.params) == 2


def test_function_pattern_match():
    x, y, _w = relay.var("x"), relay.var("y"), wildcard()
    f = relay.Function([x, y], x + y)
    assert FunctionPattern([wildcard(), wildcard()], is_op("add")(wildcard(), wildcard())).match(f)
    assert FunctionPattern(None, wildcard()).match(f)


def test_rewrite_batchnorm():
    class B(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.x, self.var, self.mean, self.beta, self.gamma, self.eps = (wildcard() for _ in range(6))
            self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

        def callback(self, pre, post, nm):
            return relay.op.nn.batch_norm(
                nm[self.x][0], nm[self.gamma][0], nm[self.beta][0], nm[self.mean][0], nm[self.var][0], epsilon=nm[self.eps][0].data.numpy().item()
            )[0]

    x, v, m, be, g = (relay.var(n) for n in "x v m be g".split())
    out = rewrite(B(), g * (x - m) / relay.sqrt(v + relay.const(1e-5)) + be)
    tvm.ir.assert_structural_equal(out, relay.op.nn.batch_norm(x, g, be, m, v, epsilon=np.float32(1e-5).item())[0])


def test_pattern_text():
    assert "add" in str(is_op("add")(wildcard(), wildcard())) and repr(wildcard())


def test_repeated():
    x = wildcard()
    p = is_op("add")(x, x)
    a, b = relay.var("a"), relay.var("b")
    assert p.match(a + a) and not p.match(a + b)
