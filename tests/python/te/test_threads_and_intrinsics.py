# SPDX-License-Identifier: Apache-2.0
"""Loops that threads of a device run (`bind`), and loops that an intrinsic does (`tensorize`)."""

import numpy as np
import pytest

import baton as tvm
from baton import te


def thread(name):
    return te.thread_axis(name)


def run(s, args, *given):
    """The last array of a schedule's function in the interpreter, threads and all."""
    func = tvm.te.schedule.schedule_to_prim_func(s, args)
    mod = tvm.tir.transform.LowerThreadAllreduce()(tvm.tir.transform.ThreadSync("shared")(tvm.IRModule({"main": func})))
    arrays = [tvm.nd.array(a) for a in given] + [tvm.nd.array(np.zeros([int(d) for d in args[-1].shape], "float32"))]
    for threads in ("together", "apart"):
        tvm.get_global_func("tir.Interpret")(mod["main"] if threads == "apart" else func, arrays, threads, None)
    return arrays[-1].numpy()


def added(n=1000, factor=64):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=factor)
    s[B].bind(outer, thread("blockIdx.x"))
    s[B].bind(inner, thread("threadIdx.x"))
    return s, A, B


def test_loops_that_threads_run():
    s, A, B = added()
    text = str(tvm.lower(s, [A, B], simple_mode=True))
    assert 'attr "thread_extent" of blockIdx.x' in text and 'attr "thread_extent" of threadIdx.x' in text and "for" not in text
    x = np.random.default_rng(0).random(1000, "float32")
    np.testing.assert_array_equal(run(s, [A, B], x), x + 1)
    attr = s[B].iter_var_attrs[s[B].leaf_iter_vars[0]]
    assert attr.bind_thread.thread_tag == "blockIdx.x"
    assert "bind i.inner to threadIdx.x" in str(s)


def shared_product(n=32, tile=16, threads=4):
    """Products by blocks in shared memory, as on a GPU."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AA, BB = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    AL, BL = s.cache_read(AA, "local", [C]), s.cache_read(BB, "local", [C])
    CC = s.cache_write(C, "local")
    block_x, block_y = thread("blockIdx.x"), thread("blockIdx.y")
    thread_x, thread_y = te.thread_axis((0, threads), "threadIdx.x"), te.thread_axis((0, threads), "threadIdx.y")
    by, yi = s[C].split(C.op.axis[0], factor=tile)
    bx, xi = s[C].split(C.op.axis[1], factor=tile)
    s[C].bind(by, block_y)
    s[C].bind(bx, block_x)
    s[C].reorder(by, bx, yi, xi)
    ty, yi = s[C].split(yi, nparts=threads)
    tx, xi = s[C].split(xi, nparts=threads)
    s[C].bind(ty, thread_y)
    s[C].bind(tx, thread_x)
    s[C].reorder(ty, tx, yi, xi)
    s[CC].compute_at(s[C], tx)
    yo, xo = CC.op.axis
    ko, ki = s[CC].split(k, factor=8)
    kt, ki = s[CC].split(ki, factor=1)
    s[CC].reorder(ko, kt, ki, yo, xo)
    for cache in (AA, BB):
        s[cache].compute_at(s[CC], ko)
    for cache in (AL, BL):
        s[cache].compute_at(s[CC], kt)
    s[CC].unroll(kt)
    for cache in (AA, BB):
        ty, xi = s[cache].split(s[cache].op.axis[0], nparts=threads)
        _, xi = s[cache].split(s[cache].op.axis[1], factor=threads * 4)
        tx, xi = s[cache].split(xi, nparts=threads)
        s[cache].bind(ty, thread_y)
        s[cache].bind(tx, thread_x)
        s[cache].vectorize(xi)
        s[cache].double_buffer()
    return s, [A, B, C]


def test_products_in_shared_memory():
    s, args = shared_product()
    text = str(tvm.lower(s, args, simple_mode=True))
    assert "shared" in text
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (32, 32)).astype("float32") for _ in range(2))
    np.testing.assert_array_equal(run(s, args, a, b), a @ b)


def test_a_reduction_that_threads_share():
    n, m = 4, 64
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=2)
    s[B].bind(xo, thread("blockIdx.x"))
    s[B].bind(xi, thread("threadIdx.y"))
    tx = thread("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    a = np.random.default_rng(0).integers(-3, 4, (n, m)).astype("float32")
    np.testing.assert_array_equal(run(s, [A, B], a), a.sum(axis=1))
    assert "tvm_thread_allreduce" in str(tvm.lower(s, [A, B], simple_mode=True))


def test_a_reduction_of_tuples_that_threads_share():
    def combine(x, y):
        return tvm.tir.Select(x[1] >= y[1], x[0], y[0]), tvm.tir.Select(x[1] >= y[1], x[1], y[1])

    argmax = te.comm_reducer(combine, lambda t0, t1: (tvm.tir.const(-1, t0), te.min_value(t1)), name="argmax")
    m, n = 3, 64
    val = te.placeholder((m, n), name="val")
    k = te.reduce_axis((0, n), "k")
    B0, B1 = te.compute((m,), lambda i: argmax((tvm.tir.Cast("int32", k.var), val[i, k]), axis=k), name="B")
    s = te.create_schedule(B0.op)
    _, ki = s[B0].split(B0.op.reduce_axis[0], factor=16)
    BF0, BF1 = s.rfactor(B0, ki)
    assert BF1.op.same_as(BF0.op) and BF0.shape[0] == 16
    tx = thread("threadIdx.x")
    s[B0].bind(s[B0].op.reduce_axis[0], tx)
    s[BF0].compute_at(s[B0], s[B0].op.reduce_axis[0])
    s[B0].set_store_predicate(tx.equal(0))
    func = te.schedule.schedule_to_prim_func(s, [val, B0, B1])
    v = np.random.default_rng(0).permutation(m * n).reshape(m, n).astype("float32")
    arrays = [tvm.nd.array(v), tvm.nd.array(np.zeros(m, "int32")), tvm.nd.array(np.zeros(m, "float32"))]
    tvm.get_global_func("tir.Interpret")(func, arrays, "together", None)
    np.testing.assert_array_equal(arrays[1].numpy(), v.argmax(axis=1))
    np.testing.assert_array_equal(arrays[2].numpy(), v.max(axis=1))


def test_threads_around_a_scan():
    m, n = 5, 64
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    first = te.compute((1, n), lambda _, i: X[0, i])
    further = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    sums = te.scan(first, further, state, inputs=[X])
    assert sums.op.scan_axis.dom.extent.value == m - 1 and sums.op.init[0] == first and sums.op.update[0] == further and sums.op.state_placeholder[0] == state
    s = te.create_schedule(sums.op)
    s[sums].env_threads([te.thread_axis((0, 1), "blockIdx.x"), te.thread_axis((0, 16), "threadIdx.x")])
    for part in (first, further):
        _, inner = s[part].split(part.op.axis[1], factor=16)
        s[part].bind(inner, thread("threadIdx.x"))
    x = np.random.default_rng(0).integers(-3, 4, (m, n)).astype("float32")
    np.testing.assert_array_equal(run(s, [X, sums], x), np.cumsum(x, axis=0))
    with pytest.raises(TypeError, match="takes axes of threads of known extents"):
        s[sums].env_threads([thread("blockIdx.x")])


def test_loops_for_a_target_without_code():
    s, A, B = added()
    with tvm.target.Target("cuda"):
        assert "blockIdx.x" in str(tvm.lower(s, [A, B], simple_mode=True))


def test_virtual_threads_are_loops():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    bx, x = s[B].split(B.op.axis[0], nparts=2)
    vx, tx = s[B].split(x, nparts=2)
    s[B].bind(bx, thread("blockIdx.x"))
    s[B].bind(vx, thread("vthread"))
    s[B].bind(tx, thread("threadIdx.x"))
    x = np.arange(64, dtype="float32")
    np.testing.assert_array_equal(run(s, [A, B], x), x * 2)


@pytest.mark.parametrize("make", [added, lambda: shared_product()])
def test_kernels_of_a_device(make):
    if not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device")
    made = make()
    s, args = (made[0], list(made[1])) if len(made) == 2 else (made[0], list(made[1:]))
    rng = np.random.default_rng(0)
    given = [rng.integers(-3, 4, [int(d) for d in t.shape]).astype("float32") for t in args[:-1]]
    device = tvm.opencl(0)
    out = tvm.nd.array(np.zeros([int(d) for d in args[-1].shape], "float32"), device)
    tvm.build(s, args, "opencl")(*(tvm.nd.array(x, device) for x in given), out)
    np.testing.assert_array_equal(out.numpy(), given[0] + 1 if len(given) == 1 else given[0] @ given[1])


def test_threads_are_bound_once():
    s, _, B = added()
    outer, inner = s[B].leaf_iter_vars
    x = thread("threadIdx.x")
    s[B].bind(outer, x)
    with pytest.raises(ValueError, match=r"`i.outer` and `i.inner` of `B` cannot both be run by `threadIdx.x`"):
        s[B].bind(inner, x)
    for wrong in (None, "threadIdx.x"):
        with pytest.raises(TypeError, match="takes an axis of threads"):
            s[B].bind(inner, wrong)
    with pytest.raises(TypeError, match="takes an axis of threads"):
        s[B].bind(inner, B.op.axis[0])


def gemv(m, depth, body=None):
    a = te.placeholder((depth,), name="a")
    b = te.placeholder((m, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def sums(ins, outs, begin=True, further=True):
        ib = tvm.tir.ir_builder.create()
        aa, bb, cc = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, m, name="r") as r:
            if begin:
                cc[r] = 0.0
            if further:
                with ib.for_range(0, depth, name="q") as q:
                    cc[r] = cc[r] + aa[q] * bb[r, q]
        return ib.get()

    def statements(ins, outs):
        if body is not None:
            return body(ins, outs)
        return sums(ins, outs), sums(ins, outs, further=False), sums(ins, outs, begin=False)

    return te.decl_tensor_intrin(c.op, statements, name="gemv", binds={a: Ab, b: Bb, c: Cb})


def product(n=16, m=32, depth=24):
    A, B = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    return te.create_schedule(C.op), A, B, C


def values(s, A, B, C):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, [int(d) for d in t.shape]).astype("float32") for t in (A, B))
    out = tvm.nd.empty([int(d) for d in C.shape])
    tvm.build(s, [A, B, C], "llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
    return out.numpy(), a @ b.T


@pytest.mark.parametrize("parts", [1, 3])
def test_an_intrinsic_in_the_place_of_loops(parts):
    s, A, B, C = product()
    x, y = C.op.axis
    yo, yi = s[C].split(y, factor=8)
    if parts == 1:
        s[C].reorder(x, yo, yi, C.op.reduce_axis[0])
    else:
        ko, ki = s[C].split(C.op.reduce_axis[0], nparts=parts)
        s[C].reorder(x, yo, ko, yi, ki)
    intrin = gemv(8, 24 // parts)
    s[C].tensorize(yi, intrin)
    assert s[C].iter_var_attrs[yi].tensor_intrin.same_as(intrin) and s[C].iter_var_attrs[yi].iter_type == tvm.tir.IterVar.Tensorized
    got, wanted = values(s, A, B, C)
    np.testing.assert_array_equal(got, wanted)


def test_an_intrinsic_that_calls_a_function_of_pointers():
    def call(ins, outs):
        aa, bb, cc = ins[0], ins[1], outs[0]
        return tvm.tir.call_extern("int32", "gemv_update", cc.access_ptr("w"), aa.access_ptr("r"), bb.access_ptr("r"), 8, 24, bb.strides[0])

    s, A, B, C = product()
    yo, yi = s[C].split(C.op.axis[1], factor=8)
    s[C].tensorize(yi, gemv(8, 24, call))
    text = str(tvm.lower(s, [A, B, C], simple_mode=True))
    assert 'gemv_update' in text and text.count("for ") == 2 and "24" in text


def test_an_intrinsic_of_another_computation_says_so():
    s, A, B, C = product()
    yo, yi = s[C].split(C.op.axis[1], factor=8)
    s[C].tensorize(yi, gemv(16, 24))
    with pytest.raises(ValueError, match=r"tensorize of `C` by `gemv`: what it writes is a part of extents \(1, 8\), the intrinsic's is \(16\)"):
        tvm.lower(s, [A, B, C])

    n = 8
    x = te.placeholder((n,), name="x")
    z = te.compute((n,), lambda i: x[i] * 2.0, name="z")
    twice = te.decl_tensor_intrin(z.op, lambda ins, outs: tvm.tir.call_packed("twice", ins[0].data, outs[0].data), name="twice")
    X = te.placeholder((32,), name="X")
    Z = te.compute((32,), lambda i: X[i] + 1.0, name="Z")
    s = te.create_schedule(Z.op)
    _, xi = s[Z].split(Z.op.axis[0], factor=n)
    s[Z].tensorize(xi, twice)
    with pytest.raises(ValueError, match=r"tensorize of `Z` by `twice`: it computes x\(i\) \+ 1f, the intrinsic computes x\(i\)\*2f"):
        tvm.lower(s, [X, Z])


def test_an_intrinsic_that_cannot_reduce_further():
    s, A, B, C = product()
    yo, yi = s[C].split(C.op.axis[1], factor=8)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=8)
    s[C].reorder(C.op.axis[0], yo, ko, yi, ki)
    s[C].tensorize(yi, gemv(8, 8, lambda ins, outs: tvm.tir.call_extern("int32", "f", outs[0].access_ptr("w"))))
    with pytest.raises(ValueError, match=r"`k.outer` of the reduction is outside of it.*\(body, reset, update\)"):
        tvm.lower(s, [A, B, C])


def test_declared_intrinsics_have_fields():
    n = 16
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")

    def call(ins, outs):
        assert ins[0].shape[0].value == n
        return tvm.tir.call_packed("vadd", ins[0].data, outs[0].data, ins[0].shape[0])

    intrin = te.decl_tensor_intrin(z.op, call, default_buffer_params={"offset_factor": n})
    assert intrin.op.same_as(z.op) and intrin.reduce_init is None and tuple(intrin.inputs) == tuple(z.op.input_tensors)
    assert len(intrin.buffers) == 3 and intrin.buffers[0].shape[0].value == n
    for wrong, says in (
        (lambda: te.decl_tensor_intrin(x.op, call), "takes an operation of te.compute"),
        (lambda: te.decl_tensor_intrin(z.op, lambda ins, outs: 3), "gives statements, not int"),
    ):
        with pytest.raises(TypeError, match=says):
            wrong()
    with pytest.raises(ValueError, match=r"its function gives one statement, or \(body, reset, update\)"):
        te.decl_tensor_intrin(z.op, lambda ins, outs: (None,))
    with pytest.raises(ValueError, match="binds a buffer to `w`"):
        te.decl_tensor_intrin(z.op, call, binds={te.placeholder((n,), name="w"): tvm.tir.decl_buffer((n,))})
    with pytest.raises(TypeError, match="takes what te.decl_tensor_intrin gave"):
        te.create_schedule(z.op)[z].tensorize(z.op.axis[0], None)
