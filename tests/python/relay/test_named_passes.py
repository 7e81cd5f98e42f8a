# SPDX-License-Identifier: Apache-2.0
"""The passes that the requirements name (AN), each by what it is for."""

import numpy as np

import baton as tvm
from baton import relay, tir
from baton.relay import transform
from baton.transform import PassContext, Sequential

HEAD = '#[version = "0.0.5"]\n'


def parse(text):
    return transform.InferType()(relay.fromtext(HEAD + text))


def run(mod, *passes, level=4, **context):
    with PassContext(opt_level=level, **context):
        return Sequential(list(passes))(mod)


def text(mod):
    return mod.astext(show_meta_data=False)


def test_an_007_dead_code_elimination():
    """AN-007: unused bindings and unused functions go, effects stay."""
    mod = parse(
        "def @helper(%x: float32) { %x }\ndef @used(%x: float32) { negative(%x) }\n"
        "def @main(%x: float32) { let %unused = exp(%x); let %r = ref(%x); let %w = ref_write(%r, @used(%x)); ref_read(%r) }"
    )
    out = run(mod, transform.DeadCodeElimination())
    assert "exp" not in text(out) and "ref_write" in text(out) and "@used" in text(out)
    assert [str(v.name_hint) for v in out.get_global_vars() if str(v.name_hint) == "helper"] == []
    assert relay.create_executor("debug", out).evaluate()(np.float32(2)).numpy() == -2


def test_an_009_eliminate_common_subexpr():
    """AN-009: equal computations are one; at the level of functions."""
    mod = parse("def @main(%x: float32) { add(exp(%x), exp(%x)) }\ndef @other(%x: float32) { exp(%x) }")
    out = run(mod, transform.EliminateCommonSubexpr())
    assert text(out).count("exp(") == 2 and isinstance(transform.EliminateCommonSubexpr(), transform.FunctionPass)
    call = out["main"].body
    assert call.args[0].same_as(call.args[1])


def test_an_010_simplify_inference():
    """AN-010: what only training needs goes: dropout, and a batch normalisation becomes its arithmetic."""
    mod = parse(
        "def @main(%x: Tensor[(1, 2, 3, 3), float32], %g: Tensor[(2), float32]) {\n  %0 = nn.batch_norm(%x, %g, %g, %g, %g);\n  %1 = nn.dropout(%0.0);\n  %1 }"
    )
    out = run(mod, transform.SimplifyInference())
    assert "batch_norm" not in text(out) and "dropout" not in text(out)
    assert isinstance(transform.SimplifyInference(), transform.FunctionPass)


def loop(kind, extent=8):
    a, b = tir.decl_buffer((extent,), "float32", "A"), tir.decl_buffer((extent,), "float32", "B")
    i = tir.Var("i")
    body = tir.For(i, 0, extent, kind, tir.BufferStore(b, a[i] * 2.0, [i]))
    return tvm.IRModule({"main": tir.PrimFunc([a, b], body)})


def test_an_011_vectorize_loop():
    """AN-011: a loop marked as vectorized becomes operations on vectors; over tir functions, Relay's stay."""
    out = Sequential([tir.transform.StorageFlatten(), tir.transform.VectorizeLoop()])(loop(tir.ForKind.VECTORIZED))["main"].astext()
    assert "B[int32(0):8] = A[int32(0):8]" in out and "for " not in out
    assert isinstance(tir.transform.VectorizeLoop(), tir.transform.PrimFuncPass)
    mod = parse("def @main(%x: float32) { exp(%x) }")
    assert tir.transform.VectorizeLoop()(mod)["main"].same_as(mod["main"])


def test_an_012_storage_flatten():
    """AN-012: accesses of buffers of several dimensions become accesses of one."""
    a = tir.decl_buffer((4, 8), "float32", "A")
    i = tir.Var("i")
    mod = tvm.IRModule({"main": tir.PrimFunc([a], tir.For(i, 0, 4, 0, tir.BufferStore(a, a[i, 3] * 2.0, [i, 5])))})
    store = tir.transform.StorageFlatten()(mod)["main"].body
    while not isinstance(store, tir.BufferStore):
        store = store.body
    assert len(store.indices) == 1 and repr(store.indices[0]) == "((i*8) + 5)"
    assert isinstance(tir.transform.StorageFlatten(), tir.transform.PrimFuncPass)


def test_an_013_unroll_loop():
    """AN-013: its options come from the context, so that changing them changes the result."""
    unrolled = tir.transform.UnrollLoop()(loop(tir.ForKind.UNROLLED, 4))["main"].astext()
    assert "for " not in unrolled and unrolled.count("] = ") == 4
    serial = loop(tir.ForKind.SERIAL, 4)
    stores = {}
    for steps in (0, 16):
        with PassContext(config={"tir.UnrollLoop": {"auto_max_step": steps}}):
            stores[steps] = tir.transform.UnrollLoop()(serial)["main"].astext().count("] = ")
    assert stores == {0: 1, 16: 4}


def test_an_014_fold_scale_axis():
    """AN-014: factors around a convolution go into its weights, from before, from behind, or both."""
    x = relay.var("x", shape=(1, 2, 4, 4))
    w, s = relay.const(np.ones((3, 2, 1, 1), "float32")), relay.const(np.full((2, 1, 1), 2, "float32"))
    t = relay.const(np.full((3, 1, 1), 3, "float32"))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.nn.conv2d(x * s, w) * t)))
    left = {}
    for one in (transform.ForwardFoldScaleAxis, transform.BackwardFoldScaleAxis, transform.FoldScaleAxis):
        out = transform.InferType()(run(mod, one(), transform.FoldConstant()))
        left[one.__name__] = text(out).count("multiply(")
        value = np.arange(32, dtype="float32").reshape(1, 2, 4, 4)
        got, want = (relay.create_executor("debug", m).evaluate()(value).numpy() for m in (out, mod))
        np.testing.assert_allclose(got, want, rtol=1e-5)
    assert left == {"ForwardFoldScaleAxis": 1, "BackwardFoldScaleAxis": 1, "FoldScaleAxis": 0}


def test_an_015_alter_op_layout_and_fuse_ops():
    """AN-015: convolutions run in the layouts of the machine, operators that follow each other in one kernel."""
    x = relay.var("x", shape=(1, 16, 8, 8))
    w = relay.const(np.ones((16, 16, 3, 3), "float32"))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.exp(relay.nn.conv2d(x, w))))))
    with tvm.target.Target("llvm -mcpu=x86-64-v3"):
        altered = run(mod, transform.AlterOpLayout())
    assert 'data_layout="NCHW8c"' in text(altered)
    fused = run(mod, transform.FuseOps())
    assert text(fused).count("Primitive=1") == 1


def test_an_017_print_ir(capfd):
    """AN-017: PrintIR is a pass; so is PlanDevices."""
    mod = parse("def @main(%x: float32) { exp(%x) }")
    said = []
    try:
        out = tvm.transform.PrintIR("here")(mod)
    finally:
        said.append("".join(capfd.readouterr()))
    assert out.same_as(mod) and "here" in said[0] and "exp(%x)" in said[0]
    assert isinstance(transform.PlanDevices(), tvm.transform.Pass) and isinstance(transform.PlanDevices()(mod), tvm.IRModule)
