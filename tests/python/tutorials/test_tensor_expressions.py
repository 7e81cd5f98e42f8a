# SPDX-License-Identifier: Apache-2.0
"""Introductions to tensor expressions: first steps, reductions, statements, intrinsics, tuples, rows, products of matrices, operators."""

import shutil

import numpy as np

import baton as tvm
from baton import te, tir, topi
from baton.contrib import cblas, cc, utils
from baton.topi.utils import get_const_tuple

RNG = np.random.default_rng(2)


def f32(*shape):
    return RNG.uniform(0.1, 1, shape).astype("float32")


def test_get_started(tmp_path):
    tgt = tvm.target.Target(target="llvm", host="llvm")
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    assert type(C).__name__ == "Tensor"
    s = te.create_schedule(C.op)
    fadd = tvm.build(s, [A, B, C], tgt, name="myadd")
    dev = tvm.device(tgt.kind.name, 0)
    size = 1024
    a = tvm.nd.array(RNG.uniform(size=size).astype(A.dtype), dev)
    b = tvm.nd.array(RNG.uniform(size=size).astype(B.dtype), dev)
    c = tvm.nd.array(np.zeros(size, dtype=C.dtype), dev)
    fadd(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())

    s[C].parallel(C.op.axis[0])
    assert "parallel" in str(tvm.lower(s, [A, B, C], simple_mode=True))
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    fadd = tvm.build(s, [A, B, C], tgt, name="myadd_vector")
    evaluator = fadd.time_evaluator(fadd.entry_name, dev, number=2)
    assert evaluator(a, b, c).mean > 0
    assert "define" in fadd.get_source()

    if shutil.which("c++") or shutil.which("g++"):
        folder = utils.tempdir()
        fadd.save(folder.relpath("myadd.o"))
        cc.create_shared(folder.relpath("myadd.so"), [folder.relpath("myadd.o")])
        assert "myadd.so" in folder.listdir()
        fadd1 = tvm.runtime.load_module(folder.relpath("myadd.so"))
        fadd1(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    fadd.export_library(str(tmp_path / "pack.so"))
    tvm.runtime.load_module(str(tmp_path / "pack.so"))(a, b, c)


def test_reduction():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    tvm.lower(s, [A, B], simple_mode=True)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    s[B].split(B.op.axis[0], factor=32)
    BF = s.rfactor(B, ki)
    assert "rf" in str(tvm.lower(s, [A, B], simple_mode=True)) and s[B].op.body[0].type_key == "tir.Reduce"
    assert BF.shape[0] == 16 and ko is not None
    x, out = f32(20, 50), tvm.nd.empty((20,))
    tvm.build(s, [A, B], "llvm")(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x.sum(1), rtol=1e-4)

    n = te.var("n")
    image, weight = te.placeholder((n, n), name="Input"), te.placeholder((3, 3), name="Filter")
    di, dj = te.reduce_axis((0, 3), name="di"), te.reduce_axis((0, 3), name="dj")
    Output = te.compute((n - 2, n - 2), lambda i, j: te.sum(image[i + di, j + dj] * weight[di, dj], axis=[di, dj]), name="Output")
    s = te.create_schedule(Output.op)
    x, w, out = f32(8, 8), f32(3, 3), tvm.nd.empty((6, 6))
    tvm.build(s, [image, weight, Output])(tvm.nd.array(x), tvm.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), [[(x[i : i + 3, j : j + 3] * w).sum() for j in range(6)] for i in range(6)], rtol=1e-3, atol=1e-5)

    n, m = te.var("n"), te.var("m")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, dtype=t), name="product")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    x, out = f32(4, 5), tvm.nd.empty((4,))
    tvm.build(te.create_schedule(B.op), [A, B])(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x.prod(1), rtol=1e-4)


def test_external_functions():
    n, l, m = 64, 32, 16  # noqa: E741
    bias = te.var("bias", dtype="float32")
    A, B = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    C = te.extern((n, m), [A, B], lambda ins, outs: tir.call_packed("tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], False, False), name="C")
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    f = tvm.build(te.create_schedule(D.op), [A, B, D, bias], "llvm")
    a, b, d = f32(n, l), f32(l, m), tvm.nd.empty((n, m))
    f(tvm.nd.array(a), tvm.nd.array(b), d, 10.0)
    tvm.testing.assert_allclose(d.numpy(), np.dot(a, b) + 10, rtol=1e-4)
    C = cblas.matmul(A, B)
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    tvm.build(te.create_schedule(D.op), [A, B, D, bias], "llvm")(tvm.nd.array(a), tvm.nd.array(b), d, 1.0)
    tvm.testing.assert_allclose(d.numpy(), np.dot(a, b) + 1, rtol=1e-4)

    seen = []

    @tvm.register_func("tvm.contrib.tutorial_addone", override=True)
    def my_tvm_addone(x, y):
        seen.append(type(x))
        tvm.nd.array(x.numpy() + 1).copyto(y)

    A = te.placeholder((n,), name="A")
    B = te.extern(A.shape, [A], lambda ins, outs: tir.call_packed("tvm.contrib.tutorial_addone", ins[0], outs[0]), name="C")
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    a, b = tvm.nd.array(f32(n)), tvm.nd.empty((n,))
    f(a, b)
    tvm.testing.assert_allclose(b.numpy(), a.numpy() + 1, rtol=1e-5)
    assert seen == [tvm.nd.NDArray]


def test_intrinsics_and_math():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    x, out = np.abs(f32(16)) + 0.1, tvm.nd.empty((16,))
    for f in (lambda v: tir.call_pure_extern("float32", "expf", v), te.exp):
        B = te.compute(A.shape, lambda i, f=f: f(A[i]), name="B")
        tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="myexp")(tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), np.exp(x), rtol=1e-5)

    def mylog(x):
        """A logarithm of the program's own."""
        return tir.call_intrin(x.dtype, "tir.tutorial_log", x)

    def rule(op):
        return tir.call_pure_extern("float32", "logf", op.args[0]) if op.dtype == "float32" else op

    tvm.ir.register_op_attr("tir.tutorial_log", "TCallEffectKind", tir.CallEffectKind.Pure)
    tvm.ir.register_intrin_lowering("tir.tutorial_log", target="llvm", f=rule, level=99)
    B = te.compute(A.shape, lambda *i: mylog(A(*i)), name="B")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="mylog")(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), np.log(x), rtol=1e-5)


def test_tuple_inputs():
    n, m = te.var("m"), te.var("n")
    A0, A1 = te.placeholder((m, n), name="A0"), te.placeholder((m, n), name="A1")
    B0, B1 = te.compute((m, n), lambda i, j: (A0[i, j] + 2, A1[i, j] * 3), name="B")
    tvm.lower(te.create_schedule(B0.op), [A0, A1, B0, B1], simple_mode=True)

    def fcombine(x, y):
        return tir.Select((x[1] >= y[1]), x[0], y[0]), tir.Select((x[1] >= y[1]), x[1], y[1])

    argmax = te.comm_reducer(fcombine, lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    m, n = te.var("m"), te.var("n")
    idx, val = te.placeholder((m, n), name="idx", dtype="int32"), te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    values = RNG.integers(0, 50, (4, 6)).astype("int32")
    at, best = tvm.nd.empty((4,), "int32"), tvm.nd.empty((4,), "int32")
    tvm.build(s, [idx, val, T0, T1])(tvm.nd.array(np.tile(np.arange(6, dtype="int32"), (4, 1))), tvm.nd.array(values), at, best)
    assert (best.numpy() == values.max(1)).all() and (values[np.arange(4), at.numpy()] == values.max(1)).all()

    n = te.var("n")
    A0 = te.placeholder((n, n), name="A0")
    B0, B1 = te.compute((n, n), lambda i, j: (A0[i, j] + 2, A0[i, j] * 3), name="B")
    A1 = te.placeholder((n, n), name="A1")
    C = te.compute((n, n), lambda i, j: A1[i, j] + B0[i, j], name="C")
    s = te.create_schedule(C.op)
    s[B0].compute_at(s[C], C.op.axis[0])
    x, y, out = f32(5, 5), f32(5, 5), tvm.nd.empty((5, 5))
    tvm.build(s, [A0, A1, C])(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x + 2 + y, rtol=1e-5)


def test_rows():
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    s_scan = te.scan(s_init, s_update, s_state, inputs=[X])
    s = te.create_schedule(s_scan.op)
    a, b = f32(6, 7), tvm.nd.empty((6, 7))
    tvm.build(s, [X, s_scan], "llvm", name="myscan")(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.numpy(), np.cumsum(a, axis=0), rtol=1e-4, atol=1e-5)
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    for part in (s_init, s_update):
        xo, xi = s[part].split(part.op.axis[1], factor=256)
        s[part].bind(xo, block)
        s[part].bind(xi, thread)
    text = str(tvm.lower(s, [X, s_scan], simple_mode=True))
    assert text.count('"thread_extent" of blockIdx.x') == text.count('"thread_extent" of threadIdx.x') == 2

    s_update_s1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] * 2, name="s1")
    s_update_s2 = te.compute((m, n), lambda t, i: s_update_s1[t, i] + X[t, i], name="s2")
    s_scan = te.scan(s_init, s_update_s2, s_state, inputs=[X])
    s = te.create_schedule(s_scan.op)
    s[s_update_s1].compute_at(s[s_update_s2], s_update_s2.op.axis[0])
    tvm.lower(s, [X, s_scan], simple_mode=True)


def test_tensorize():
    n, m, depth, factor = 1024, 512, 64, 16
    A, B = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    (z,) = C.op.reduce_axis
    yo, yi = s[C].split(y, factor=factor)
    s[C].reorder(x, yo, yi, z)

    def intrin_gemv(m, depth):
        a, b = te.placeholder((depth,), name="a"), te.placeholder((m, depth), name="b")
        k = te.reduce_axis((0, depth), name="k")
        c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
        Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
        Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
        Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

        def intrin_func(ins, outs):
            aa, bb = ins
            cc = outs[0]

            def _body():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_update", cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r"), m, depth, bb.strides[0]))
                return ib.get()

            def _reduce_reset():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_reset", cc.access_ptr("w"), m))
                return ib.get()

            return _body(), _reduce_reset(), _body()

        return te.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})

    s[C].tensorize(yi, intrin_gemv(factor, depth))
    text = str(tvm.lower(s, [A, B, C], simple_mode=True))
    assert "gemv_update" in text and "gemv_reset" not in text

    s = te.create_schedule(C.op)
    yo, yi = s[C].split(y, factor=factor)
    zo, zi = s[C].split(z, factor=factor)
    s[C].reorder(x, yo, zo, yi, zi)
    s[C].tensorize(yi, intrin_gemv(factor, factor))
    text = str(tvm.lower(s, [A, B, C], simple_mode=True))
    assert text.index("gemv_reset") < text.index("gemv_update")


def test_products_by_hand():
    """Blocks, vectors, another order of loops, a packed operand, a cache for what is written, threads."""
    M = K = N = 64
    a, b = f32(M, K), f32(K, N)

    def check(s, args):
        out = tvm.nd.array(np.zeros((M, N), "float32"))
        func = tvm.build(s, args, target="llvm", name="mmult")
        func(tvm.nd.array(a), tvm.nd.array(b), out)
        tvm.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4)
        assert func.time_evaluator(func.entry_name, tvm.cpu(), number=1)(tvm.nd.array(a), tvm.nd.array(b), out).mean > 0

    k = te.reduce_axis((0, K), "k")
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * B[k, n], axis=k), name="C")
    check(te.create_schedule(C.op), [A, B, C])

    bn, kfactor = 32, 4
    s = te.create_schedule(C.op)
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    (kaxis,) = s[C].op.reduce_axis
    ko, ki = s[C].split(kaxis, factor=kfactor)
    s[C].reorder(mo, no, ko, ki, mi, ni)
    check(s, [A, B, C])
    s[C].vectorize(ni)
    check(s, [A, B, C])

    packedB = te.compute((N / bn, K, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB")
    C = te.compute((M, N), lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, tir.indexmod(n, bn)], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=kfactor)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].parallel(mo)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    check(s, [A, B, C])


def test_operators():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    tvm.lower(te.create_schedule(B.op), [A], simple_mode=True)
    C = topi.sum(A, axis=1)
    assert len(C.shape) == len(B.shape) == 1

    x, y = 100, 10
    a, b = te.placeholder((x, y, y), name="a"), te.placeholder((y, y), name="b")
    c, d = a + b, a * b
    e = topi.elemwise_sum([c, d])
    f = e / 2.0
    g = topi.sum(f)
    with tvm.target.Target("llvm"):
        sg = topi.generic.schedule_reduce(g)
        tvm.lower(sg, [a, b], simple_mode=True)
    func = tvm.build(sg, [a, b, g], "llvm")
    a_np, b_np = f32(x, y, y), f32(y, y)
    g_nd = tvm.nd.array(np.zeros(get_const_tuple(g.shape), dtype="float32"))
    func(tvm.nd.array(a_np), tvm.nd.array(b_np), g_nd)
    tvm.testing.assert_allclose(g_nd.numpy(), np.sum(np.add(a_np + b_np, a_np * b_np) / 2.0), rtol=1e-4)

    tarray = te.placeholder((512, 512), name="tarray")
    softmax_topi = topi.nn.softmax(tarray)
    with tvm.target.Target("llvm"):
        sst = topi.generic.schedule_softmax(softmax_topi)
    tvm.lower(sst, [tarray, softmax_topi], simple_mode=True)

    data, kernel = te.placeholder((1, 3, 14, 14)), te.placeholder((10, 3, 5, 5))
    with tvm.target.Target("llvm"):
        conv = topi.nn.conv2d(data, kernel, strides=1, padding=2, dilation=1)
        out = topi.nn.relu(conv)
        sconv = topi.generic.schedule_conv2d_nchw([out])
    p, q, r = f32(1, 3, 14, 14), f32(10, 3, 5, 5), tvm.nd.empty((1, 10, 14, 14))
    tvm.build(sconv, [data, kernel, out])(tvm.nd.array(p), tvm.nd.array(q), r)
    np.testing.assert_allclose(r.numpy(), topi.testing.conv2d_nchw_python(p, q, 1, 2).clip(0), rtol=1e-3, atol=1e-4)
