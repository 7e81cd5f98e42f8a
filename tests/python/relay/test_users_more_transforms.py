# SPDX-License-Identifier: Apache-2.0
"""Passes as programs of Relay 0.8 call them, from folding to layouts."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.ir import IRModule
from baton.relay import transform
from baton.relay.analysis import post_order_visit
from baton.relay.testing import run_infer_type, run_opt_pass


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


def test_fold_tuple_shape():
    x = relay.var("x", shape=(2, 3))
    got = opt(relay.Function([x], relay.shape_of(x)), transform.InferType(), transform.FoldConstant())
    assert isinstance(got.body, relay.Constant) and got.body.data.numpy().tolist() == [2, 3]
    got = opt(relay.Function([x], relay.concatenate([relay.const([1, 2]), relay.const([3])], 0)), transform.FoldConstant())
    assert got.body.data.numpy().tolist() == [1, 2, 3]
    got = opt(relay.Function([x], relay.ndarray_size(x)), transform.InferType(), transform.FoldConstant())
    assert isinstance(got.body, relay.Constant) and got.body.data.numpy() == 6


def test_fuse_simple():
    x = relay.var("x", shape=(10, 20))
    f = relay.Function([x], relay.squeeze(relay.exp(relay.add(x, relay.const(1, "float32")))))
    z = run_opt_pass(f, transform.InferType())
    zz = run_opt_pass(z, transform.FuseOps())
    p = relay.var("p", shape=(10, 20))
    inner = relay.Function([p], relay.squeeze(relay.exp(relay.add(p, relay.const(1, "float32"))))).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    q = relay.var("x", shape=(10, 20))
    same(zz, relay.Function([q], relay.Call(inner, [q])))
    assert zz.body.op.attrs["Primitive"] == 1


def test_fuse_conv():
    x = relay.var("x", shape=(1, 16, 64, 64))
    x0 = relay.add(x, relay.const(1, "float32"))
    y = relay.nn.conv2d(x0, relay.var("w1"), kernel_size=(3, 3), padding=(1, 1), channels=16)
    y1 = relay.add(relay.const(1, "float32"), y)
    y = relay.add(y, y1)
    z2 = relay.nn.conv2d(y, relay.var("w2"), kernel_size=(1, 1), padding=(0, 0), channels=16)
    z3 = relay.nn.conv2d(y, relay.var("w3"), kernel_size=(3, 3), padding=(1, 1), channels=16)
    z = relay.add(z2, z3)
    f = run_opt_pass(relay.Function(relay.analysis.free_vars(z), z), transform.InferType())
    g = run_opt_pass(f, transform.FuseOps(fuse_opt_level=2))
    n = []
    relay.analysis.post_order_visit(g, lambda e: n.append(e) if isinstance(e, relay.Function) and e.attrs and "Primitive" in e.attrs.keys() else None)
    assert len(n) == 4


def test_fuse_max_depth():
    x = relay.var("x", shape=(10, 20))
    y = x
    for _ in range(20):
        y = relay.exp(y)
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 5}):
        g = relay.transform.FuseOps()(relay.transform.InferType()(IRModule.from_expr(relay.Function([x], y))))
    n = []
    relay.analysis.post_order_visit(g["main"], lambda e: n.append(e) if isinstance(e, relay.Function) and e.attrs and "Primitive" in e.attrs.keys() else None)
    assert len(n) == 4


def test_defuse():
    x = relay.var("x", shape=(10, 20))
    f = relay.Function([x], relay.exp(relay.add(x, relay.const(1.0))))
    m = transform.InferType()(IRModule.from_expr(f))
    fused = transform.FuseOps()(m)
    d = transform.DefuseOps()(fused)
    tvm.ir.assert_structural_equal(transform.InferType()(d), m)


def test_cse():
    x = relay.var("x", shape=(1, 16))
    y1 = relay.nn.relu(x)
    y2 = relay.nn.relu(x)
    y1 = relay.add(y1, relay.const(1.0))
    y2 = relay.add(y2, relay.const(1.0))
    f = relay.Function([x], relay.add(y1, y2))
    got = run_opt_pass(f, transform.EliminateCommonSubexpr())
    y = relay.add(relay.nn.relu(x), relay.const(1.0))
    same(got, relay.Function([x], relay.add(y, y)))

    def fskip(expr):
        return isinstance(expr, relay.expr.Call) and expr.op.name == "add"

    got = run_opt_pass(f, transform.EliminateCommonSubexpr(fskip))
    y = relay.nn.relu(x)
    same(got, relay.Function([x], relay.add(relay.add(y, relay.const(1.0)), relay.add(y, relay.const(1.0)))))


def test_anf():
    x = relay.const(1)
    anf = run_opt_pass(x + x, [transform.ToANormalForm(), transform.InferType()])
    relay.var("x", relay.scalar_type("int32"))
    assert isinstance(anf, relay.Let)
    f = transform.ToANormalFormExpr(relay.add(relay.const(1), relay.const(2)))
    assert isinstance(f, relay.Let)


def test_gnf():
    d = relay.var("d", shape=(2,))
    x = relay.var("x")
    e = relay.Let(x, relay.exp(d), x + x)
    got = run_opt_pass(relay.Function([d], e), transform.ToGraphNormalForm())
    assert not any(isinstance(n, relay.Let) for n in nodes(got))


def test_bbnf():
    x = relay.var("x", shape=[], dtype="float32")
    x2 = relay.add(x, relay.const(2.0))
    cond = relay.less(x, relay.const(1.0))
    f = relay.Function([x], relay.If(cond, relay.add(x2, relay.const(1.0)), relay.multiply(x2, relay.const(1.0))))
    with pytest.raises(tvm.TVMError):
        relay.analysis.check_basic_block_normal_form(f)
    got = run_opt_pass(f, transform.ToBasicBlockNormalForm())
    assert relay.analysis.check_basic_block_normal_form(got)


def test_dce():
    x = relay.var("x")
    y = relay.var("y")
    e = relay.Let(x, relay.const(1.0), relay.Let(y, relay.const(2.0), y))
    got = opt(relay.Function([], e), transform.DeadCodeElimination())
    assert isinstance(got.body, relay.Constant) or isinstance(got.body, relay.Let)
    got = opt(relay.Function([], e), transform.DeadCodeElimination(inline_once=True))
    assert isinstance(got.body, relay.Constant) and got.body.data.numpy() == 2


def test_pe():
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    idf = relay.Function([x], x, t, [t])
    y = relay.var("y", shape=(3,))
    got = opt(relay.Function([y], relay.Call(idf, [y])), transform.InferType(), transform.PartialEvaluate(), transform.DeadCodeElimination(inline_once=True))
    assert got.body == got.params[0]


def test_lambda_lift():
    mod = IRModule()
    x = relay.var("x", shape=(2,))
    y = relay.var("y", shape=(2,))
    f = relay.Function([y], y + x)
    mod["main"] = relay.Function([x], relay.Call(f, [x]))
    m = transform.LambdaLift()(transform.InferType()(mod))
    assert len(m.functions) == 2


def test_inline():
    mod = IRModule()
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.exp(x)).with_attr("Inline", tvm.tir.IntImm("int32", 1))
    g = relay.GlobalVar("g")
    mod[g] = f
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], relay.Call(g, [y]))
    m = transform.Inline()(transform.InferType()(mod))
    assert "exp" in str(m["main"])


def test_remove_unused():
    mod = IRModule()
    x = relay.var("x", shape=(2,))
    mod["a"] = relay.Function([x], x)
    mod["b"] = relay.Function([x], x)
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], mod.get_global_var("a")(y))
    m = transform.RemoveUnusedFunctions()(mod)
    assert {v.name_hint for v in m.get_global_vars()} == {"a", "main"}
    m = transform.RemoveUnusedFunctions(["b"])(mod)
    assert {v.name_hint for v in m.get_global_vars()} == {"b"}


def test_gradient_if_let():
    x = relay.var("x", shape=(2,))
    c = relay.var("c", shape=(), dtype="bool")
    f = run_infer_type(relay.Function([c, x], relay.If(c, x, relay.multiply(x, x))))
    g = run_infer_type(transform.gradient(f, mode="higher_order"))
    out, gr = relay.create_executor("debug").evaluate(g)(np.array(False), np.array([2, 3], "float32"))
    tvm.testing.assert_allclose(gr[1].numpy(), [4, 6])


def test_first_order_pass():
    x = relay.var("x", shape=(10,))
    m = IRModule.from_expr(relay.Function([x], relay.multiply(x, x)))
    m = transform.FirstOrderGradient()(transform.InferType()(m))
    assert isinstance(transform.InferType()(m)["main"].checked_type.ret_type, relay.TupleType)


def test_canonicalize():
    x = relay.var("x", shape=(1, 4, 5, 5))
    b = relay.var("b", shape=(4,))
    got = run_opt_pass(relay.Function([x, b], relay.nn.bias_add(x, b)), transform.CanonicalizeOps())
    assert "expand_dims" in str(got) and "add(" in str(got) and "bias_add" not in str(got)
    got = run_opt_pass(relay.Function([x, b], relay.nn.bias_add(relay.cast(x, "int8"), relay.cast(b, "int8"))), transform.CanonicalizeCast())


def test_eta():
    m = tvm.parser.parse("""#[version = "0.0.5"]
def @aux(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { %x }
def @main() { @aux }
""")
    m = transform.EtaExpand(expand_global_var=True)(m)
    assert isinstance(m["main"].body, relay.Function)


def test_merge_composite():
    from baton.relay.dataflow_pattern import is_op, wildcard

    def pat():
        return is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))

    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.Function([x, y], relay.nn.relu(relay.add(x, y)))
    g = run_opt_pass(f, transform.MergeComposite([("add_relu", pat())]))
    assert (
        g.body.op.attrs["Composite"] == "add_relu"
        and "PartitionedFromPattern" in g.body.op.attrs.keys()
        and g.body.op.attrs["PartitionedFromPattern"] == "add_nn.relu_"
    )
    g = run_opt_pass(f, transform.MergeComposite([("add_relu", pat(), lambda e: False)]))
    assert "Composite" not in str(g)


def test_partition():
    @tvm.ir.register_op_attr("nn.relu", "target.n5comp")
    def _(expr):
        return True

    x = relay.var("x", shape=(2,))
    m = IRModule.from_expr(relay.Function([x], relay.exp(relay.nn.relu(relay.exp(x)))))
    m = transform.AnnotateTarget("n5comp")(m)
    assert "compiler_begin" in str(m)
    m = transform.MergeCompilerRegions()(m)
    m = transform.PartitionGraph()(m)
    names = sorted(v.name_hint for v in m.get_global_vars())
    assert len(names) == 2 and any("n5comp" in n for n in names), names
    f = [m[v] for v in m.get_global_vars() if "n5comp" in v.name_hint][0]
    assert f.attrs["Compiler"] == "n5comp" and f.attrs["Primitive"] == 1 and f.attrs["Inline"] == 1 and "n5comp" in f.attrs["global_symbol"]
    assert "tvmgen_default_n5comp" in f.attrs["global_symbol"]
    ann = relay.annotation.compiler_begin(x, "n5")
    assert ann.op.name == "annotation.compiler_begin" and ann.attrs.compiler == "n5"
    relay.annotation.compiler_end(x, "n5")
    relay.annotation.stop_fusion(x)
    relay.annotation.on_device(x, tvm.cpu())
    relay.annotation.checkpoint(x)


def test_simplify_inference():
    x = relay.var("x", shape=(1, 4, 5, 5))
    g = [relay.var(n, shape=(4,)) for n in ("g", "b", "m", "v")]
    y = relay.nn.batch_norm(x, *g)[0]
    got = run_opt_pass(relay.Function([x, *g], relay.nn.dropout(y)), transform.SimplifyInference())
    assert "batch_norm" not in str(got) and "dropout" not in str(got)
    assert "sqrt" in str(got) or "rsqrt" in str(got)
    got = run_opt_pass(relay.Function([x], relay.nn.log_softmax(relay.reshape(x, (4, 25)))), transform.SimplifyInference())


def test_simplify_expr():
    x = relay.var("x", shape=(1, 16, 4))
    y = relay.reshape(relay.reshape(x, (1, 64)), (16, 4))
    got = run_opt_pass(relay.Function([x], y), [transform.InferType(), transform.SimplifyExpr()])
    same(got, relay.Function([x], relay.reshape(x, (16, 4))))
    y = relay.transpose(relay.transpose(x, (0, 2, 1)), (0, 2, 1))
    got = run_opt_pass(relay.Function([x], y), transform.SimplifyExpr())
    assert got.body == got.params[0]
    y = relay.cast(relay.cast(x, "float32"), "float32")
    got = run_opt_pass(relay.Function([x], y), transform.SimplifyExpr())
    assert "cast" not in str(got)
    y = relay.multiply(x, relay.ones_like(x))
    got = run_opt_pass(relay.Function([x], y), transform.SimplifyExpr())
    assert got.body == got.params[0]


def test_mixed_precision():
    x = relay.var("x", shape=(2, 4))
    w = relay.var("w", shape=(3, 4))
    f = relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))
    m = transform.InferType()(IRModule.from_expr(f))
    m = transform.ToMixedPrecision("float16")(m)
    m = transform.InferType()(m)
    assert 'dtype="float16"' in str(m)
    assert tvm.ir.structural_equal(transform.ToMixedPrecision()(IRModule.from_expr(f)), transform.ToMixedPrecision("float16", 1)(IRModule.from_expr(f)))


def test_alter_op():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    x = relay.var("x", shape=(1, 64, 56, 56))
    w = relay.var("w", shape=(64, 64, 3, 3))
    f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))))

    def alter(attrs, inputs, tinfos, out_type):
        data, weight = inputs
        assert tinfos[0].shape[1] == 64
        new = {k: attrs[k] for k in attrs.keys()}
        new["data_layout"] = "NCHW16c"
        return relay.nn.conv2d(data, weight, **new)

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        with tvm.transform.PassContext(opt_level=3):
            m = transform.AlterOpLayout()(IRModule.from_expr(f))
    assert str(m).count("layout_transform(") == 2


def test_convert_layout():
    x = relay.var("x", shape=(1, 56, 56, 64))
    w = relay.var("w", shape=(3, 3, 64, 64))
    f = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")))
    m = transform.ConvertLayout({"nn.conv2d": ["NCHW", "OIHW"]})(IRModule.from_expr(f))
    t = str(m)
    assert 'src_layout="NHWC", dst_layout="NCHW"' in t and t.count("layout_transform(") == 3
    m = transform.ConvertLayout({"nn.conv2d": ["NCHW", "default"]})(IRModule.from_expr(f))
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        transform.ConvertLayout("NCHW")(IRModule.from_expr(f))


def test_legalize():
    from baton.relay.testing.temp_op_attr import TempOpAttr

    x = relay.var("x", shape=(2,))

    def legal(attrs, inputs, types):
        return relay.nn.relu(inputs[0])

    with TempOpAttr("exp", "FTVMLegalize", legal):
        m = transform.Legalize()(IRModule.from_expr(relay.Function([x], relay.exp(x))))
        assert "relu" in str(m)
    with TempOpAttr("exp", "FTVMFoo", legal):
        m = transform.Legalize("FTVMFoo")(IRModule.from_expr(relay.Function([x], relay.exp(x))))
        assert "relu" in str(m)


def test_cps():
    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.exp(x))
    f = run_infer_type(f)
    c = transform.to_cps(f)
    assert isinstance(c, relay.Function) and len(c.params) == 2
    u = transform.un_cps(run_infer_type(c))
    assert isinstance(u, relay.Function) and len(u.params) == 1


def test_feature_detect():
    from baton.relay import Feature
    from baton.relay.analysis import detect_feature

    assert detect_feature(relay.const(1)) == {Feature.fConstant}
    mod = IRModule()
    relay.prelude.Prelude(mod)
    mod["f"] = relay.Function([], relay.const(1))
    assert Feature.fConstant in detect_feature(mod["f"])
    assert Feature.fMatch in detect_feature(mod)
