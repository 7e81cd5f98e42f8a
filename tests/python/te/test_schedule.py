# SPDX-License-Identifier: Apache-2.0
"""Schedules of tensor expressions: whatever the loops are, the result is the same."""

import itertools

import numpy as np
import pytest

import baton as tvm
from baton import te

RNG = np.random.default_rng(5)


def run(s, tensors, *arrays, out=1):
    """The outputs of a schedule on these inputs; the last `out` tensors are outputs."""
    made = tvm.build(s, tensors, target="llvm")
    results = [tvm.nd.empty([int(d) for d in t.shape], t.dtype) for t in tensors[len(tensors) - out :]]
    made(*[tvm.nd.array(a) for a in arrays], *results)
    return results[0].numpy() if out == 1 else [r.numpy() for r in results]


def loops(func):
    """(name, rounds, kind) of the loops of a function, outermost first."""
    found = []
    tvm.tir.stmt_functor.post_order_visit(
        func.body, lambda n: found.append((str(n.loop_var.name), n.extent, int(n.kind))) if isinstance(n, tvm.tir.For) else None
    )
    return [(n, e.value if hasattr(e, "value") else e, k) for n, e, k in reversed(found)]


def vector_add(n=1000):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")


def matmul(m=37, n=29, l=23):  # noqa: E741
    k = te.reduce_axis((0, l), name="k")
    A, B = te.placeholder((m, l), name="A"), te.placeholder((l, n), name="B")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, k


def matrices(m=37, n=29, l=23):  # noqa: E741
    return RNG.integers(-4, 5, (m, l)).astype("float32"), RNG.integers(-4, 5, (l, n)).astype("float32")


def test_the_first_tutorial():
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    add = tvm.build(s, [A, B, C], "llvm", name="myadd")
    dev = tvm.cpu(0)
    for size in (1, 1024):
        a, b = (tvm.nd.array(RNG.uniform(size=size).astype(A.dtype), dev) for _ in range(2))
        c = tvm.nd.array(np.zeros(size, dtype=C.dtype), dev)
        add(a, b, c)
        tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    low = tvm.lower(s, [A, B, C], simple_mode=True)
    assert "for" in str(low)


def test_split_vectorize_unroll_in_the_loops():
    A, B, C = vector_add(1024)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=64)
    mid, vec = s[C].split(inner, factor=16)
    s[C].parallel(outer)
    s[C].unroll(mid)
    s[C].vectorize(vec)
    func = te.schedule.schedule_to_prim_func(s, [A, B, C])
    assert loops(func) == [("i0.outer", 16, 1), ("i0.inner.outer", 4, 3), ("i0.inner.inner", 16, 2)] or [x[1:] for x in loops(func)] == [
        (16, 1),
        (4, 3),
        (16, 2),
    ]
    a, b = (RNG.standard_normal(1024).astype("float32") for _ in range(2))
    assert (run(s, [A, B, C], a, b) == a + b).all()


@pytest.mark.parametrize("n", [1, 7, 64, 1000])
@pytest.mark.parametrize(
    ("first", "second"),
    [(("factor", 16), None), (("nparts", 7), None), (("factor", 30), ("factor", 7)), (("nparts", 3), ("nparts", 5)), (("factor", 5000), None)],
)
@pytest.mark.parametrize("kind", ["", "vectorize", "unroll", "parallel"])
def test_factors_that_do_not_divide(n, first, second, kind):
    A, B, C = vector_add(n)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], **dict([first]))
    if second:
        inner, last = s[C].split(inner, **dict([second]))
        s[C].reorder(last, outer, inner)
    if kind:
        getattr(s[C], kind)(inner if kind != "parallel" else outer)
    a, b = (RNG.standard_normal(n).astype("float32") for _ in range(2))
    assert (run(s, [A, B, C], a, b) == a + b).all()


def test_fuse_and_tile():
    A = te.placeholder((5, 6, 7), name="A")
    B = te.compute((5, 6, 7), lambda i, j, k: A[i, j, k] * 2.0, name="B")
    a = RNG.standard_normal((5, 6, 7)).astype("float32")
    s = te.create_schedule(B.op)
    fused = s[B].fuse(*B.op.axis)
    outer, inner = s[B].split(fused, 16)
    s[B].vectorize(inner)
    assert (run(s, [A, B], a) == a * 2).all()
    s = te.create_schedule(B.op)
    xo, yo, xi, yi = s[B].tile(B.op.axis[1], B.op.axis[2], 4, 4)
    assert [str(v.var.name) for v in s[B].leaf_iter_vars][1:] == [str(v.var.name) for v in (xo, yo, xi, yi)]
    s[B].parallel(s[B].fuse(B.op.axis[0], xo))
    assert (run(s, [A, B], a) == a * 2).all()


@pytest.mark.parametrize("bn", [8, 32])
def test_matrix_product_of_the_tutorial(bn):
    a, b = matrices()
    A, B, C, k = matmul()
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], yo)
    xc, yc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, xc, ki, yc)
    s[CC].unroll(ki)
    s[CC].vectorize(yc)
    s[C].parallel(xo)
    assert (run(s, [A, B, C], a, b) == a @ b).all()
    func = te.schedule.schedule_to_prim_func(s, [A, B, C])
    sizes = []
    tvm.tir.stmt_functor.post_order_visit(func.body, lambda n: sizes.append([int(d) for d in n.buffer.shape]) if isinstance(n, tvm.tir.Allocate) else None)
    assert sizes == [[min(bn, 37), min(bn, 29)]]


def test_packed_operand():
    a, b = matrices(32, 32, 32)
    A, B, _, _ = matmul(32, 32, 32)
    k = te.reduce_axis((0, 32), name="k")
    packed = te.compute((32 // 8, 32, 8), lambda bigN, k, littleN: B[k, bigN * 8 + littleN], name="packed")
    C = te.compute((32, 32), lambda x, y: te.sum(A[x, k] * packed[y // 8, k, tvm.tir.indexmod(y, 8)], axis=k), name="C")
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    s[C].reorder(xo, yo, k, xi, yi)
    s[C].vectorize(yi)
    x, y, z = s[packed].op.axis
    s[packed].vectorize(z)
    s[packed].parallel(x)
    assert (run(s, [A, B, C], a, b) == a @ b).all()


ORDERS = list(itertools.permutations(range(4)))[::3]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_order_of_loops_of_a_reduction(order):
    """The result begins where the first loop of the reduction does, wherever that is."""
    a, b = matrices(9, 10, 11)
    A, B, C, k = matmul(9, 10, 11)
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(k, 3)
    these = [*C.op.axis, ko, ki]
    s[C].reorder(*[these[i] for i in order])
    assert (run(s, [A, B, C], a, b) == a @ b).all()


def chain(n=40):
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, n), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((n, n), lambda i, j: C[i, j] - B[i, j], name="D")
    return A, B, C, D


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("other", ["root", "inline", 0, 2, 3])
def test_stages_within_loops(at, other):
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    tiles = s[D].tile(D.op.axis[0], D.op.axis[1], 7, 9)
    s[C].compute_at(s[D], tiles[at])
    if other == "inline":
        s[B].compute_inline()
    elif other != "root" and other <= at:
        s[B].compute_at(s[D], tiles[other])
    s[D].parallel(tiles[0])
    a = RNG.standard_normal((40, 40)).astype("float32")
    assert (run(s, [A, D], a) == (a + 1) * 2 - (a + 1)).all()


def test_a_stage_within_a_stage_within_a_loop():
    A, B, C, _ = chain()
    s = te.create_schedule(C.op)
    E = te.compute((40, 40), lambda i, j: C[i, j] + 3.0, name="E")
    s = te.create_schedule(E.op)
    io, ii = s[E].split(E.op.axis[0], 8)
    s[C].compute_at(s[E], io)
    jo, ji = s[C].split(C.op.axis[1], 16)
    s[B].compute_at(s[C], jo)
    a = RNG.standard_normal((40, 40)).astype("float32")
    assert (run(s, [A, E], a) == (a + 1) * 2 + 3).all()


def test_stencil_with_borders():
    n = 50
    A = te.placeholder((n,), name="A")
    P = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), A[i - 1], 0.0), name="P")
    B = te.compute((n,), lambda i: P[i] + P[i + 1] + P[i + 2], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 8)
    s[P].compute_at(s[B], outer)
    func = te.schedule.schedule_to_prim_func(s, [A, B])
    assert "10" in str([x[1] for x in loops(func)])  # eight and one on each side
    a = RNG.integers(0, 9, n).astype("float32")
    assert (run(s, [A, B], a) == np.convolve(a, [1, 1, 1], "same")).all()


def test_convolution():
    C_in, M, H, K = 3, 4, 9, 3
    A, W = te.placeholder((C_in, H, H), name="A"), te.placeholder((M, C_in, K, K), name="W")
    P = te.compute((C_in, H + 2, H + 2), lambda c, y, x: te.if_then_else(te.all(y >= 1, y < H + 1, x >= 1, x < H + 1), A[c, y - 1, x - 1], 0.0), name="P")
    c, ky, kx = te.reduce_axis((0, C_in)), te.reduce_axis((0, K)), te.reduce_axis((0, K))
    B = te.compute((M, H, H), lambda o, y, x: te.sum(P[c, y + ky, x + kx] * W[o, c, ky, kx], axis=[c, ky, kx]), name="B")
    R = te.compute((M, H, H), lambda o, y, x: te.max(B[o, y, x], 0.0), name="R")
    s = te.create_schedule(R.op)
    yo, xo, yi, xi = s[R].tile(R.op.axis[1], R.op.axis[2], 4, 4)
    s[B].compute_at(s[R], xo)
    s[B].reorder(c, ky, kx, *B.op.axis)
    s[P].compute_at(s[B], c)
    s[B].vectorize(B.op.axis[2])
    a, w = RNG.integers(-3, 4, (C_in, H, H)).astype("float32"), RNG.integers(-3, 4, (M, C_in, K, K)).astype("float32")
    padded = np.pad(a, ((0, 0), (1, 1), (1, 1)))
    win = np.lib.stride_tricks.sliding_window_view(padded, (K, K), axis=(1, 2))
    assert (run(s, [A, W, R], a, w) == np.maximum(np.einsum("cyxij,ocij->oyx", win, w), 0)).all()


def test_cache_read_and_cache_write():
    a, b = matrices()
    A, B, C, k = matmul()
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "local", [C])
    CC = s.cache_write(C, "local")
    xo, xi = s[C].split(C.op.axis[0], 8)
    s[CC].compute_at(s[C], xo)
    s[AA].compute_at(s[CC], s[CC].op.axis[0])
    assert (run(s, [A, B, C], a, b) == a @ b).all()


@pytest.mark.parametrize("n", [64, 61])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("factor_axis", [0, 1, -1])
def test_rfactor(n, which, factor_axis):
    k = te.reduce_axis((0, n), "k")
    A = te.placeholder((6, n), name="A")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    halves = s[B].split(k, factor=16)
    BF = s.rfactor(B, halves[which], factor_axis)
    assert len(BF.shape) == 2 and len(s[B].op.reduce_axis) == 1
    s[BF].parallel(s[BF].op.axis[0])
    a = RNG.integers(-9, 9, (6, n)).astype("float32")
    assert (run(s, [A, B], a) == a.sum(1)).all()


def test_reducers_of_programs():
    n = te.var("n")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
    k = te.reduce_axis((0, 5), "k")
    A = te.placeholder((n, 5), name="A")
    B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(k, 2)
    made = tvm.build(s, [A, B], "llvm")
    a, out = RNG.standard_normal((3, 5)).astype("float32"), tvm.nd.empty((3,))
    made(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), a.prod(1), rtol=1e-5)

    def larger(x, y):
        return tvm.tir.Select(x[1] >= y[1], x[0], y[0]), tvm.tir.Select(x[1] >= y[1], x[1], y[1])

    argmax = te.comm_reducer(larger, lambda t0, t1: (tvm.tir.const(-1, t0), tvm.te.min_value(t1)), name="argmax")
    A = te.placeholder((4, 9), name="A")
    k = te.reduce_axis((0, 9), "k")
    I, V = te.compute((4,), lambda i: argmax((k.var, A[i, k]), axis=k), name="T")  # noqa: E741
    s = te.create_schedule(I.op)
    ko, ki = s[I].split(k, 4)
    s[I].reorder(ki, I.op.axis[0])
    a = RNG.permutation(36).reshape(4, 9).astype("float32")
    index, value = run(s, [A, I, V], a, out=2)
    assert (index == a.argmax(1)).all() and (value == a.max(1)).all()


def test_softmax_of_several_stages():
    A = te.placeholder((6, 20), name="A")
    k, j = te.reduce_axis((0, 20), "k"), te.reduce_axis((0, 20), "j")
    M = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="M")
    E = te.compute((6, 20), lambda i, x: te.exp(A[i, x] - M[i]), name="E")
    S = te.compute((6,), lambda i: te.sum(E[i, j], axis=j), name="S")
    O = te.compute((6, 20), lambda i, x: E[i, x] / S[i], name="O")  # noqa: E741
    s = te.create_schedule(O.op)
    for t in (M, E, S):
        s[t].compute_at(s[O], O.op.axis[0])
    s[O].parallel(O.op.axis[0])
    a = RNG.standard_normal((6, 20)).astype("float32")
    want = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(run(s, [A, O], a), want / want.sum(1, keepdims=True), rtol=1e-5)


def test_a_scalar_and_sizes_that_are_arguments():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), "k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].split(k, 8)
    out = tvm.nd.empty((1,))
    tvm.build(s, [A, B], "llvm")(tvm.nd.array(np.arange(21, dtype="float32")), out)
    assert out.numpy() == 210


def test_ranges_of_loops():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    io, ii = s[D].split(D.op.axis[0], 7)
    s[C].compute_at(s[D], io)
    found = {str(v.var.name): r for v, r in te.schedule.InferBound(s).items() if v.var.same_as(io.var) or v.var.same_as(ii.var)}
    assert sorted(int(r.extent) for r in found.values()) == [6, 7]
    assert [int(r.extent) for v, r in te.schedule.InferBound(s).items() if v.var.same_as(C.op.axis[0].var)] == [7]


def test_what_is_not_possible_says_so():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    i, j = D.op.axis
    for call, says in (
        (lambda: s[D].split(i), "factor or nparts"),
        (lambda: s[D].split(i, 0), "1 or more"),
        (lambda: s[D].fuse(j, i), "does not stand behind"),
        (lambda: s[D].reorder(i, i), "twice"),
        (lambda: s[D].compute_inline(), "result"),
        (lambda: s[C].compute_at(s[D], C.op.axis[0]), "no loop"),
        (lambda: s[D].compute_at(s[D], i), "within itself"),
        (lambda: s[te.placeholder((1,))], "no part"),
        (lambda: s[A].compute_inline(), "input"),
        (lambda: tvm.build(s, [D]), "no argument"),
        (lambda: tvm.build(s, [A, A, D]), "twice"),
    ):
        with pytest.raises(ValueError, match=says):
            call()
    s[D].split(i, 4)
    with pytest.raises(ValueError, match="split or fused"):
        s[D].parallel(i)
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ValueError, match="read outside of it"):
        tvm.build(s, [A, D])
    with pytest.raises(tvm.error.UnsupportedError, match="rolling_buffer of `D`: use compute_at"):
        s[D].rolling_buffer()
    with pytest.raises(TypeError, match="comes with its arguments"):
        tvm.build(s)
    n = te.var("n")
    E = te.compute((n,), lambda i: 1.0, name="E")
    s = te.create_schedule(E.op)
    s[E].vectorize(E.op.axis[0])
    with pytest.raises(ValueError, match="rounds, which is not known"):
        tvm.build(s, [E])
    _, _, F, k = matmul()
    s = te.create_schedule(F.op)
    for kind in ("vectorize", "parallel"):
        with pytest.raises(ValueError, match="belongs to the reduction"):
            getattr(s[F], kind)(k)
    with pytest.raises(ValueError, match="one belongs to the reduction"):
        s[F].fuse(F.op.axis[1], k)


def test_long_chains_of_stages():
    t = A = te.placeholder((4,), name="A")
    for _ in range(400):
        t = te.compute((4,), lambda i, t=t: t[i] + 1.0)
    s = te.create_schedule(t.op)
    a = np.zeros(4, "float32")
    assert (run(s, [A, t], a) == 400).all()
    for stage in s.stages[1:-1]:
        stage.compute_inline()
    assert (run(s, [A, t], a) == 400).all()


def test_tags():
    A = te.placeholder((4,), name="A")
    with te.tag_scope("outer"):
        B = te.compute((4,), lambda i: A[i])
        C = te.compute((4,), lambda i: A[i], tag="own")
    assert (B.op.tag, C.op.tag, te.compute((4,), lambda i: A[i]).op.tag) == ("outer", "own", "")
    assert te.tag_scope("f")(lambda: te.compute((4,), lambda i: A[i]))().op.tag == "f"


@pytest.mark.parametrize(
    ("inline", "stays"), [(te.schedule.AutoInlineInjective, []), (te.schedule.AutoInlineBroadcast, ["T"]), (te.schedule.AutoInlineElemWise, ["R", "T"])]
)
def test_inlining_by_what_is_read(inline, stays):
    A, v = te.placeholder((6, 4), name="A"), te.placeholder((4,), name="v")
    E = te.compute((6, 4), lambda i, j: A[i, j] * 2.0, name="E")
    R = te.compute((6, 4), lambda i, j: E[i, j] + v[j], name="R")
    T = te.compute((4, 6), lambda i, j: R[j, i], name="T")
    O = te.compute((4, 6), lambda i, j: T[i, j] - 1.0, name="O")  # noqa: E741
    s = te.create_schedule(O.op)
    inline(s)
    func = te.schedule.schedule_to_prim_func(s, [A, v, O])
    made = []
    tvm.tir.stmt_functor.post_order_visit(func.body, lambda n: made.append(str(n.buffer.name)) if isinstance(n, tvm.tir.Allocate) else None)
    assert sorted(made) == stays
    a, b = RNG.standard_normal((6, 4)).astype("float32"), RNG.standard_normal(4).astype("float32")
    assert (run(s, [A, v, O], a, b) == (a * 2 + b).T - 1).all()


def test_the_loops_as_a_statement():
    A, B, C = vector_add(64)
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 8)
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    assert isinstance(stmt, tvm.tir.For) and int(stmt.extent) == 8
