# SPDX-License-Identifier: Apache-2.0
"""Modules of functions: statements and rows within schedules, object files, names, targets, rules of intrinsics."""

import shutil

import numpy as np
import pytest

import baton as tvm
from baton import relay, te
from baton.contrib import cblas, cc, graph_executor

RNG = np.random.default_rng(3)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def run(made, *arrays, out):
    result = tvm.nd.empty(out)
    made(*[tvm.nd.array(a) if isinstance(a, np.ndarray) else a for a in arrays], result)
    return result.numpy()


def add_one(shape=(4,)):
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *i: a(*i) + 1.0, name="B")
    return te.create_schedule(b.op), [a, b]


# ---- Statements in schedules


def doubled(ins, outs):
    ib = tvm.tir.ir_builder.create()
    source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, ins[0].shape[0], name="i") as i:
        target[i] = source[i] * 2.0
    return ib.get()


def test_a_statement_between_computations():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.extern((n,), [b], doubled, name="C", dtype="float32")
    d = te.compute((n,), lambda i: c[i] - a[i], name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[d].parallel(outer)
    x = f32(10)
    np.testing.assert_allclose(run(tvm.build(s, [a, d], "llvm"), x, out=(10,)), (x + 1) * 2 - x, rtol=1e-6)
    assert isinstance(c.op, te.ExternOp) and c.op.input_tensors[0] == b and c.op.num_outputs == 1
    with pytest.raises(ValueError, match="`B` is computed|whole of `B`"):
        s[b].compute_inline()
        tvm.lower(s, [a, d])


def test_a_library_of_products():
    n, l, m = 32, 16, 8  # noqa: E741
    bias = te.var("bias", dtype="float32")
    a, b = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    c = te.extern((n, m), [a, b], lambda ins, outs: tvm.tir.call_packed("tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], False, False), name="C")
    d = te.compute(c.shape, lambda i, j: c[i, j] + bias, name="D")
    made = tvm.build(te.create_schedule(d.op), [a, b, bias, d], "llvm")
    x, y = f32(n, l), f32(l, m)
    np.testing.assert_allclose(run(made, x, y, 10.0, out=(n, m)), x @ y + 10, rtol=1e-4)
    e = cblas.matmul(a, b)
    np.testing.assert_allclose(run(tvm.build(te.create_schedule(e.op), [a, b, e]), x, y, out=(n, m)), x @ y, rtol=1e-4)


# ---- Rows


def test_scan():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    first = te.compute((1, n), lambda _, i: x[0, i])
    further = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i])
    sums = te.scan(first, further, state, inputs=[x])
    s = te.create_schedule(sums.op)
    _, inner = s[further].split(further.op.axis[1], factor=4)
    s[further].unroll(inner)
    data = f32(7, 10)
    for made in (tvm.build(s, [x, sums], "llvm"), tvm.build([x, sums], target="llvm")):
        np.testing.assert_allclose(run(made, data, out=(7, 10)), np.cumsum(data, 0), rtol=1e-4, atol=1e-5)


def test_scan_with_stages_within():
    x, state = te.placeholder((6, 5), name="X"), te.placeholder((6, 5))
    first = te.compute((1, 5), lambda _, i: x[0, i])
    one = te.compute((6, 5), lambda t, i: state[t - 1, i] * 2.0, name="one")
    further = te.compute((6, 5), lambda t, i: one[t, i] + x[t, i], name="two")
    result = te.scan(first, further, state, inputs=[x])
    after = te.compute((6, 5), lambda t, i: result[t, i] * 10.0)
    s = te.create_schedule(after.op)
    data, want = f32(6, 5), []
    for row in data:
        want.append(row if not want else want[-1] * 2 + row)
    np.testing.assert_allclose(run(tvm.build(s, [x, after]), data, out=(6, 5)), 10 * np.array(want), rtol=1e-4)


def test_scan_of_two_states():
    m, n = 6, 5
    x, y = te.placeholder((m, n), name="X"), te.placeholder((m, 3), name="Y")
    s1, s2 = te.placeholder((m, n)), te.placeholder((m, 3))
    i1, i2 = te.compute((1, n), lambda _, i: x[0, i]), te.compute((1, 3), lambda _, i: y[0, i])
    u1 = te.compute((m, n), lambda t, i: s1[t - 1, i] + x[t, i])
    u2 = te.compute((m, 3), lambda t, i: s2[t - 1, i] + s1[t - 1, 0] + y[t, i])
    r1, r2 = te.scan([i1, i2], [u1, u2], [s1, s2], inputs=[x, y])
    made = tvm.build(te.create_schedule(r1.op), [x, y, r1, r2])
    a, b = f32(m, n), f32(m, 3)
    p, q = [a[0]], [b[0]]
    for t in range(1, m):
        p, q = [*p, p[-1] + a[t]], [*q, q[-1] + p[-1][0] + b[t]]
    o1, o2 = tvm.nd.empty((m, n)), tvm.nd.empty((m, 3))
    made(tvm.nd.array(a), tvm.nd.array(b), o1, o2)
    np.testing.assert_allclose(o1.numpy(), p, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(o2.numpy(), q, rtol=1e-4, atol=1e-5)


def test_scan_says_what_is_wrong():
    x = te.placeholder((4, 2))
    with pytest.raises(ValueError, match="as many tensors"):
        te.scan([x, x], x, x)
    with pytest.raises(ValueError, match="different dtype or rank"):
        te.scan(te.compute((2,), lambda i: 0.0), te.compute((4, 2), lambda t, i: 0.0), x)


# ---- Files


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="links by the system's compiler")
def test_an_object_file(tmp_path):
    s, args = add_one()
    made = tvm.build(s, args, "llvm", name="myadd")
    made.save(str(tmp_path / "x.o"))
    cc.create_shared(str(tmp_path / "x.so"), [str(tmp_path / "x.o")])
    loaded = tvm.runtime.load_module(str(tmp_path / "x.so"))
    x = f32(4)
    for f in (loaded, loaded["myadd"], loaded.entry_func):
        assert (run(f, x, out=(4,)) == x + 1).all()
    assert loaded.entry_name == "myadd"
    made.save(str(tmp_path / "x.ll"))
    assert "define" in (tmp_path / "x.ll").read_text() and made.format == "so" and made.is_dso_exportable
    with pytest.raises(ValueError, match="one compiled object"):
        cc.create_shared(str(tmp_path / "y.so"), [str(tmp_path / "x.o"), str(shutil.copy(tmp_path / "x.o", tmp_path / "z.o"))], ["-z", "muldefs"])


def test_a_library_and_its_compiler(tmp_path):
    s, args = add_one()
    made = tvm.build(s, args, "llvm")
    for given in ((cc.create_shared,), (None, ["x"], str(tmp_path)), ()):
        made.export_library(str(tmp_path / "x.so"), *given)
        x = f32(4)
        assert (run(tvm.runtime.load_module(str(tmp_path / "x.so")), x, out=(4,)) == x + 1).all()


# ---- Names, buffers, targets


def test_what_a_function_is_called():
    s, args = add_one()
    made = tvm.build(s, args)
    x = f32(4)
    for f in (made, made["default_function"], made[made.entry_name]):
        assert (run(f, x, out=(4,)) == x + 1).all()
    assert [v.name_hint for v in tvm.lower(s, args).get_global_vars()] == ["main"]
    assert (run(tvm.build(inputs=tvm.lower(s, args, name="f"), target="llvm")["f"], x, out=(4,)) == x + 1).all()


def test_buffers_for_tensors():
    s, args = add_one()
    buffer = tvm.tir.decl_buffer((4,), "float32", name="mine")
    mod = tvm.driver.build_module.schedule_to_module(s, args, binds={args[0]: buffer})
    assert any(b.same_as(buffer) for b in mod["main"].buffer_map.values())
    assert "mine" in str(tvm.lower(s, args, binds={args[0]: buffer}))
    binds, whole = tvm.driver.build_module.get_binds(args)
    assert list(binds) == args and whole[0].same_as(binds[args[0]])


def test_targets_and_hosts():
    s, args = add_one()
    x = f32(4)
    mod = tvm.lower(s, args)
    for made in (
        tvm.build(s, args, tvm.target.Target("llvm", host="llvm")),
        tvm.build(s, args, target="llvm", target_host="llvm"),
        tvm.build({"llvm": mod}),
        tvm.build({tvm.target.Target("llvm"): mod}, target_host="llvm"),
    ):
        assert (run(made, x, out=(4,)) == x + 1).all()
    with pytest.raises(tvm.error.UnsupportedError, match="host `cuda`"):
        tvm.build(s, args, "llvm", "cuda")


def test_c_is_written():
    s, args = add_one()
    x = f32(4)
    module = tvm.build(s, args, "c")
    assert (run(module, x, out=(4,)) == x + 1).all() and "for (int64_t" in module.get_source()


# ---- Intrinsics


def test_an_intrinsic_of_a_program():
    def mylog(x):
        return tvm.tir.call_intrin(x.dtype, "tir.tests_mylog", x)

    tvm.ir.register_op_attr("tir.tests_mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
    tvm.ir.register_intrin_lowering("tir.tests_mylog", target="llvm", f=lambda op: tvm.tir.call_pure_extern("float32", "sinf", op.args[0]), level=5)

    @tvm.ir.register_intrin_lowering("tir.tests_mylog", target="default", level=20)
    def later(op):
        raise AssertionError("the rule of the target comes first")

    def rule(op):
        return tvm.tir.call_pure_extern("float32", "logf", op.args[0]) if op.dtype == "float32" else None

    tvm.ir.register_intrin_lowering("tir.tests_mylog", target="llvm", f=rule, level=99)
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: mylog(a[i]) + 1.0)
    x = np.abs(f32(4))
    np.testing.assert_allclose(run(tvm.build(te.create_schedule(b.op), [a, b], "llvm"), x, out=(4,)), np.log(x) + 1, rtol=1e-5)


# ---- Times


def test_times_of_a_model_without_inputs():
    mod, params = relay.testing.mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert model.module.time_evaluator("run", tvm.cpu(), number=1, repeat=3)().mean > 0
    assert "define" in lib.get_lib().get_source()


def test_reductions_where():
    a = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), "k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k, where=k > 3))
    c = te.compute((1,), lambda i: te.max(a[k], axis=k, where=a[k] < 1.0))
    x = np.arange(8).astype("float32") / 4
    assert run(tvm.build(te.create_schedule(b.op), [a, b]), x, out=(1,))[0] == x[4:].sum()
    assert run(tvm.build(te.create_schedule(c.op), [a, c]), x, out=(1,))[0] == 0.75
