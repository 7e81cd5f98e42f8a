# SPDX-License-Identifier: Apache-2.0
"""Passes as programs of Relay 0.8 call them, one by one, and what they leave."""

import numpy as np

import baton as tvm
from baton import relay
from baton.ir import IRModule
from baton.relay import transform
from baton.relay.analysis import free_vars, post_order_visit, search_fc_transpose
from baton.relay.testing import run_infer_type, run_opt_pass
from baton.relay.transform import (
    AlterOpLayout,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    EtaExpand,
    FakeQuantizationToInteger,
    FuseOps,
    InferType,
    Inline,
    LazyGradientInit,
    MergeComposite,
    PartialEvaluate,
    PartitionGraph,
    RemoveUnusedFunctions,
    SplitArgs,
    ToANormalForm,
    ToGraphNormalForm,
    gradient,
)


def nodes(f, kind=object):
    found = []
    post_order_visit(f, lambda e: found.append(e) if isinstance(e, kind) else None)
    return found


def same(a, b):
    tvm.ir.assert_structural_equal(a, run_infer_type(b), map_free_vars=True)


def X(*shape, n="x", d="float32"):
    return relay.var(n, shape=shape, dtype=d)


def opt(e, *passes, level=3):
    with tvm.transform.PassContext(opt_level=level):
        mod = tvm.transform.Sequential(passes)(IRModule.from_expr(e))
    return mod["main"] if isinstance(e, relay.Function) else mod["main"].body


def test_fuse_tuple_root():
    d = X(1, 16, 64, 64)
    p = relay.nn.max_pool2d(d, pool_size=(2, 2), strides=(2, 2))
    u = relay.nn.upsampling(p, scale_h=2, scale_w=2, layout="NCHW")
    out = relay.Tuple((u, d))
    f = relay.Function(free_vars(out), out)
    g2 = run_opt_pass(f, FuseOps(fuse_opt_level=2))
    assert isinstance(g2.body, relay.Tuple)


def test_fuse_take():
    x = X(10, 1)
    y = X(2, 3, n="y", d="int32")
    t = relay.op.take(x, y, axis=0)
    f = relay.Function([x, y], relay.op.squeeze(t))
    g = run_opt_pass(f, FuseOps())
    assert len([n for n in nodes(g, relay.Function) if n.attrs and "Primitive" in n.attrs.keys()]) == 1


def test_fuse_bcast_reduce():
    x = X(10, 20)
    s = relay.sum(relay.exp(x), axis=1)
    g = run_opt_pass(relay.Function([x], relay.sqrt(s)), FuseOps())
    fs = [n for n in nodes(g, relay.Function) if n.attrs and "Primitive" in n.attrs.keys()]
    assert len(fs) in (1, 2)


def test_anf_order():
    z, y, x = (X(n=n) for n in "zyx")
    f = relay.Function([x, y, z], x + y * z)
    g = run_opt_pass(f, ToANormalForm())
    b = g.body
    assert isinstance(b, relay.Let) and b.value.op.name == "multiply" and b.body.value.op.name == "add" and b.body.body == b.body.var


def test_anf_if():
    c = relay.const(True)
    x = relay.If(c, relay.const(2), relay.const(3))
    g = run_opt_pass(x, ToANormalForm())
    assert isinstance(g, relay.Let) and isinstance(g.value, relay.If)


def test_gnf_roundtrip():
    x = relay.const(1)
    y = x + x
    z = relay.add(y, y)
    f = relay.Function([], z + z)
    h = run_opt_pass(run_opt_pass(f, ToANormalForm()), ToGraphNormalForm())
    assert tvm.ir.structural_equal(h.body, f.body) and "let" not in h.astext() and relay.create_executor("debug").evaluate(h)().numpy() == 8


def test_cse_fskip_pass():
    x = X(1, 16)
    y = relay.Tuple([relay.exp(x), relay.exp(x)])
    g = run_opt_pass(relay.Function([x], y), EliminateCommonSubexpr())
    assert g.body[0].same_as(g.body[1])


def test_dce_used():
    a = X(n="a")
    v = relay.var("v")
    f = relay.Function([a], relay.Let(v, relay.exp(a), v + v))
    g = run_opt_pass(f, DeadCodeElimination())
    assert isinstance(g.body, relay.Let)
    g = run_opt_pass(relay.Function([a], relay.Let(v, relay.exp(a), a)), DeadCodeElimination())
    assert g.body == g.params[0]


def test_dce_recursion():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @f(%n: int32, %data: float32) -> float32 { if (%n == 0) { %data } else { @f(%n - 1, log(%data)) } }
def @main() { @f(2, 10000.0f) }
""")
    m = InferType()(m)
    h = DeadCodeElimination()(m)
    tvm.ir.assert_structural_equal(InferType()(h), m)


def test_pe_tuple():
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    body = relay.TupleGetItem(relay.Tuple([relay.const(4.0), x]), 1)
    f = relay.Function([x], body, t, [t])
    e = run_opt_pass(f, PartialEvaluate())
    e = run_opt_pass(e, DeadCodeElimination(inline_once=True))
    assert tvm.ir.structural_equal(e, run_infer_type(relay.Function([x], x, t, [t])))


def test_pe_const_inline():
    d = X(n="d")
    c = relay.const(1.0)
    f = relay.Function([d], d + c)
    o = run_opt_pass(relay.Function([], f(relay.const(2.0))), PartialEvaluate())
    o = run_opt_pass(o, DeadCodeElimination(inline_once=True))
    assert isinstance(o.body, relay.Constant) or o.body.op.name == "add"


def test_pe_ref():
    d = X(n="d")
    r = relay.Var("r")
    x = relay.Var("x")
    body = relay.Let(r, relay.RefCreate(d), relay.Let(x, relay.RefRead(r), relay.multiply(x, d)))
    f = relay.Function([d], body)
    e = run_opt_pass(f, PartialEvaluate())
    e = run_opt_pass(e, DeadCodeElimination(inline_once=True))
    assert e.body.op.name == "multiply" and e.body.args[0] == e.params[0]


def test_pe_if():
    relay.Var("x")
    f = relay.Function([], relay.If(relay.const(True), relay.const(1), relay.const(2)))
    e = run_opt_pass(f, PartialEvaluate())
    e = run_opt_pass(e, DeadCodeElimination(inline_once=True))
    assert e.body.data.numpy() == 1


def test_inline_globals():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @a(%x: Tensor[(2), float32], Inline=1) -> Tensor[(2), float32] { exp(%x) }
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { log(@a(%x)) }
""")
    m2 = Inline()(m)
    assert "@a(" not in str(m2["main"]) and [v.name_hint for v in m2.get_global_vars()] == ["main"]


def test_alter_none():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    x, w = X(1, 4, 8, 8), X(8, 4, 3, 3, n="w")
    f = relay.Function([x, w], relay.nn.conv2d(x, w, channels=8, kernel_size=(3, 3)))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", lambda a, i, t, o: None):
        same(run_opt_pass(f, AlterOpLayout()), f)


def test_temp_op_attr_restores():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    op = relay.op.get("exp")
    a = op.get_attr("FTVMLegalize")
    with TempOpAttr("exp", "FTVMLegalize", lambda *a: None):
        assert op.get_attr("FTVMLegalize") is not None
    assert (op.get_attr("FTVMLegalize") is None) == (a is None)


def test_partition_modname():
    x = X(2)
    x2 = relay.annotation.compiler_begin(x, "q5")
    y = relay.annotation.compiler_end(relay.exp(x2), "q5")
    m = IRModule.from_expr(relay.Function([x], y))
    m = PartitionGraph(mod_name="net")(InferType()(m))
    assert any("tvmgen_net_q5" in v.name_hint for v in m.get_global_vars())


def test_extern_ext_codegen_attrs():
    x = X(2)
    f = relay.Function([x], relay.exp(x)).with_attr("Primitive", tvm.tir.IntImm("int32", 1)).with_attr("Compiler", "ccompiler").with_attr("global_symbol", "g0")
    assert f.attrs.Compiler == "ccompiler" and f.attrs.get_str("global_symbol") == "g0" and f.attrs.Primitive == 1


def test_first_order_ops():
    for op, ref in [
        (relay.exp, np.exp),
        (relay.tanh, lambda x: 1 - np.tanh(x) ** 2),
        (relay.sigmoid, lambda x: (1 / (1 + np.exp(-x))) * (1 - 1 / (1 + np.exp(-x)))),
        (relay.log, lambda x: 1 / x),
        (relay.sqrt, lambda x: 0.5 / np.sqrt(x)),
    ]:
        x = X(5)
        f = run_infer_type(relay.Function([x], op(x)))
        g = run_infer_type(gradient(f, mode="first_order"))
        v = np.random.rand(5).astype("float32") + 0.5
        _, (d,) = relay.create_executor("graph").evaluate(g)(v)
        np.testing.assert_allclose(d.numpy(), ref(v), rtol=1e-4)


def test_reverse_ad_identity():
    x = X(10, 10)
    f = run_infer_type(relay.Function([x], x))
    b = run_infer_type(gradient(f))
    assert b.checked_type == relay.FuncType(
        [relay.TensorType((10, 10))], relay.TupleType([relay.TensorType((10, 10)), relay.TupleType([relay.TensorType((10, 10))])])
    )
    e = relay.create_executor("debug").evaluate(b)(np.zeros((10, 10), "float32"))
    assert (e[1][0].numpy() == 1).all()


def test_lazy_gradient_init():
    m = IRModule()
    x, y = X(10, 10), X(10, 10, n="y")
    m["main"] = relay.Function([x, y], relay.add(x, y))
    m = LazyGradientInit()(InferType()(m))
    r = relay.create_executor("debug", mod=m).evaluate(m["main"])(np.ones((10, 10), "float32"), np.ones((10, 10), "float32"))
    assert (r.numpy() == 2).all()


def test_eta_global():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @aux(%x: Tensor[(1), float32]) -> Tensor[(1), float32] { %x }
def @main(%a: Tensor[(1), float32]) { let %f = @aux; %f(%a) }
""")
    m = EtaExpand(expand_global_var=True)(m)
    assert "fn (" in str(m["main"])


def test_merge_composite_order():
    from baton.relay.dataflow_pattern import is_op, wildcard

    x = X(4, 4)
    w = X(4, 4, n="w")
    b = X(4, n="b")
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b))
    d = is_op("nn.dense")(wildcard(), wildcard())
    db = is_op("nn.bias_add")(d, wildcard())
    dbr = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), wildcard()), wildcard()))
    g = run_opt_pass(relay.Function([x, w, b], y), MergeComposite([("dbr", dbr), ("db", db)]))
    assert g.body.op.attrs.Composite == "dbr" and len(g.body.op.params) == 3

    def check(e):
        assert e.op.name == "nn.bias_add"
        return e.args[0].op.name == "nn.dense"

    g = run_opt_pass(relay.Function([x, w, b], y), MergeComposite([("db", db, check)]))
    assert [f.attrs.Composite for f in nodes(g, relay.Function) if f.attrs and "Composite" in f.attrs.keys()] == ["db"]


def test_simplify_fc_transpose():
    x, _w = X(32, 28 * 28), X(32, 28 * 28, n="w")
    y = relay.nn.dense(x, relay.transpose(relay.var("wt", shape=(28 * 28, 32)), [1, 0]))
    z = relay.nn.relu(y)
    f = run_infer_type(relay.Function(free_vars(z), z))
    n = search_fc_transpose(f)
    assert list(n) == ["wt"]
    from baton.relay.data_dep_optimization import simplify_fc_transpose as s

    nf, p = s.convert(f, {"wt": tvm.nd.array(np.zeros((784, 32), "float32"))})
    assert p["wt.T"].shape == (32, 784)


def test_fake_quant():
    x = X(1, 3, 8, 8, d="int8")
    w = X(4, 3, 2, 2, n="w", d="int8")
    z = relay.const(0)
    op = relay.op.nn.conv2d(relay.qnn.op.dequantize(x, relay.const(2.0), z), relay.qnn.op.dequantize(w, relay.const(0.5), z), kernel_size=[2, 2])
    op = relay.qnn.op.quantize(op, relay.const(1.0), z, out_dtype="int8")
    m = InferType()(IRModule.from_expr(op))
    q = FakeQuantizationToInteger()(m)
    assert not tvm.ir.structural_equal(m, q) and "qnn.conv2d" in str(q)


def test_remove_unused_mutual():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @a(%x: int32) -> int32 { @b(%x) }
def @b(%x: int32) -> int32 { @a(%x) }
def @main(%x: int32) -> int32 { %x }
""")
    m = RemoveUnusedFunctions()(m)
    assert [v.name_hint for v in m.get_global_vars()] == ["main"]


def test_split_args():
    m = IRModule.from_expr(relay.Function([], relay.concatenate([relay.const(np.ones((1, 2), "float32")) for _ in range(50)], 0)))
    m2 = SplitArgs(20)(InferType()(m))
    cs = [n for n in nodes(m2["main"], relay.Call) if getattr(n.op, "name", "") == "concatenate"]
    assert len(cs) >= 3 if len(cs) > 1 else True


def test_module_pass_order():
    log = []

    @tvm.transform.module_pass(opt_level=0, name="A")
    def A(m, c):
        log.append("A")
        return m

    @tvm.transform.module_pass(opt_level=0, name="B")
    def B(m, c):
        log.append("B")
        return m

    tvm.transform.Sequential([A, B])(IRModule())
    assert log == ["A", "B"]


def test_post_order_and_rewrite():
    class R(relay.ExprMutator):
        def visit_call(self, c):
            c = super().visit_call(c)
            return relay.Call(relay.op.get("log"), c.args) if c.op == relay.op.get("exp") else c

    x = X(2)
    f = relay.Function([x], relay.exp(relay.exp(x)))
    g = R().visit(f)
    assert "exp" not in str(g) and isinstance(g, relay.Function)


def test_function_pass_returns_types():
    @relay.transform.function_pass(opt_level=0)
    def P(f, m, c):
        return relay.Function(f.params, relay.exp(f.body), None, f.type_params, f.attrs)

    x = X(2)
    g = P(IRModule.from_expr(relay.Function([x], x)))["main"]
    assert g.checked_type is not None


def test_partial_eval_recursion():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @f(%n: int32, %d: float32) -> float32 { if (%n == 0) { %d } else { @f(%n - 1, log(%d)) } }
def @main() -> float32 { @f(2, 10000.0f) }
""")
    m = InferType()(m)
    r0 = relay.create_executor("debug", mod=m).evaluate()()
    m2 = PartialEvaluate()(m)
    r = relay.create_executor("debug", mod=InferType()(m2)).evaluate()()
    np.testing.assert_allclose(r.numpy(), r0.numpy())


def test_fold_const():
    c = np.array([1, 2, 3]).astype("float32")
    t = relay.TensorType([1, 2, 3], "float32")
    x = relay.var("x", t)
    c_ = relay.const(c)
    y = relay.add(c_, c_)
    y = relay.multiply(y, relay.const(2, "float32"))
    y = relay.add(x, y)
    z = relay.add(y, c_)
    got = opt(relay.Function([x], z), transform.FoldConstant())
    y2 = relay.add(x, relay.const((c + c) * 2))
    same(got, relay.Function([x], relay.add(y2, c_)))
