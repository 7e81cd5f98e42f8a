# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions, the loops that they become, and the values that those compute."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir, topi
from baton.ir import IRModule


def B(f, args, *arrays):
    module = tvm.build(te.create_schedule(f.op), args, "llvm")
    values = [tvm.nd.array(x) for x in arrays]
    module(*values)
    return values[-1].numpy()


def run(s, args, *arrays):
    values = [tvm.nd.array(a) for a in arrays]
    tvm.build(s, args, "llvm")(*values)
    return values[-1].numpy()


def test_addpragma():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], 8)
    s[C].pragma(xo, "unroll_explicit", True)
    f = tvm.build(s, [A, C], "llvm")
    a = tvm.nd.array(np.ones(19, "float32"))
    b = tvm.nd.empty((19,))
    f(a, b)
    assert b.numpy().sum() == 38


def test_varargs_compute():
    A = te.placeholder((2, 3))
    C = te.compute((2, 3), lambda *i: A(*i) * 2.0)
    assert B(C, [A, C], np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")).sum() == 12


def test_named_loops():
    A = te.placeholder((2, 3), name="A")
    C = te.compute((2, 3), lambda y, x: A[y, x] + 1.0, name="C")
    s = te.create_schedule(C.op)
    assert [a.var.name for a in C.op.axis] == ["y", "x"]
    t = str(tvm.lower(s, [A, C], simple_mode=True))
    assert "y" in t and "for" in t
    o, i = s[C].split(C.op.axis[0], 2)
    assert o.var.name == "y.outer" and i.var.name == "y.inner"
    f = s[C].fuse(o, i)
    assert f.var.name == "y.outer.y.inner.fused" or "fused" in f.var.name


def test_index_value_int32():
    C = te.compute((4,), lambda i: i + 1)
    assert C.dtype in ("int32", "int64")


def test_cast_index():
    C = te.compute((4,), lambda i: i.astype("float32") * 2.0)
    assert B(C, [C], np.zeros(4, "float32")).tolist() == [0, 2, 4, 6]


def test_cast_index32():
    C = te.compute((4,), lambda i: i.astype("int32") * 2)
    assert C.dtype == "int32"


def test_select_ifthenelse():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: tir.if_then_else(i < 2, A[i], 0.0))
    assert B(C, [A, C], np.ones(4, "float32"), np.zeros(4, "float32")).tolist() == [1, 1, 0, 0]
    D = te.compute((4,), lambda i: tir.Select(i >= 2, A[i], tir.const(0.0, "float32")))
    assert B(D, [A, D], np.ones(4, "float32"), np.zeros(4, "float32")).tolist() == [0, 0, 1, 1]
    E = te.compute((4,), lambda i: te.if_then_else(tir.all(i > 0, i < 3), A[i], tir.const(5, "float32")))
    assert B(E, [A, E], np.ones(4, "float32"), np.zeros(4, "float32")).tolist() == [5, 1, 1, 5]


def test_te_math():
    A = te.placeholder((4,), name="A")
    for f, g in (
        (te.exp, np.exp),
        (te.log, np.log),
        (te.sqrt, np.sqrt),
        (te.tanh, np.tanh),
        (te.floor, np.floor),
        (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    ):
        C = te.compute((4,), lambda i: f(A[i]))  # noqa: B023
        a = np.random.rand(4).astype("float32") + 0.5
        np.testing.assert_allclose(B(C, [A, C], a, np.zeros(4, "float32")), g(a), rtol=1e-5)


def test_reduce_where_init():
    k = te.reduce_axis((0, 8), "k")
    A = te.placeholder((8,), name="A")
    C = te.compute((1,), lambda i: te.sum(A[k], axis=k, where=k < 4))
    assert B(C, [A, C], np.ones(8, "float32"), np.zeros(1, "float32"))[0] == 4


def test_two_reduce_axes():
    A = te.placeholder((4, 4), name="A")
    k, m = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "m")
    C = te.compute((1,), lambda i: te.sum(A[k, m], axis=[k, m]))
    assert B(C, [A, C], np.ones((4, 4), "float32"), np.zeros(1, "float32"))[0] == 16


def test_conv_te():
    n, kk = 8, 3
    A = te.placeholder((n, n), name="A")
    W = te.placeholder((kk, kk), name="W")
    ry, rx = te.reduce_axis((0, kk)), te.reduce_axis((0, kk))
    C = te.compute((n - kk + 1, n - kk + 1), lambda y, x: te.sum(A[y + ry, x + rx] * W[ry, rx], axis=[ry, rx]))
    a = np.random.rand(n, n).astype("float32")
    w = np.random.rand(kk, kk).astype("float32")
    r = B(C, [A, W, C], a, w, np.zeros((6, 6), "float32"))
    np.testing.assert_allclose(r[0, 0], (a[:3, :3] * w).sum(), rtol=1e-4)


def test_dtype_ops():
    for d in ("float64", "int32", "int64", "int8", "uint8", "float16"):
        A = te.placeholder((4,), dtype=d, name="A")
        C = te.compute((4,), lambda i: A[i] + tir.const(1, d))  # noqa: B023
        assert B(C, [A, C], np.ones(4, d), np.zeros(4, d)).tolist() == [2, 2, 2, 2]


def test_schedule_reorder_matmul():
    N = 32
    A = te.placeholder((N, N), name="A")
    W = te.placeholder((N, N), name="W")
    k = te.reduce_axis((0, N), "k")
    C = te.compute((N, N), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    s[CC].compute_at(s[C], yo)
    xc, yc = s[CC].op.axis
    (kk,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kk, factor=4)
    s[CC].reorder(ko, xc, ki, yc)
    s[CC].unroll(ki)
    s[CC].vectorize(yc)
    s[C].parallel(xo)
    f = tvm.build(s, [A, W, C], "llvm")
    a, w = np.random.rand(N, N).astype("float32"), np.random.rand(N, N).astype("float32")
    c = tvm.nd.empty((N, N))
    f(tvm.nd.array(a), tvm.nd.array(w), c)
    np.testing.assert_allclose(c.numpy(), a @ w, rtol=1e-4)


def test_wrong_args_runtime():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1.0)
    f = tvm.build(te.create_schedule(C.op), [A, C], "llvm")
    x = tvm.nd.empty((4,))
    for bad in ((x,), (x, tvm.nd.empty((5,))), (x, tvm.nd.empty((4,), "int32")), (x, tvm.nd.empty((4, 1)))):
        with pytest.raises(tvm.TVMError):
            f(*bad)


def test_scalar_args():
    n = te.var("n")
    v = te.var("v", "float32")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * v)
    f = tvm.build(te.create_schedule(C.op), [A, C, v], "llvm")
    a, c = tvm.nd.array(np.ones(3, "float32")), tvm.nd.empty((3,))
    f(a, c, 2.5)
    assert c.numpy()[0] == 2.5


def test_primfunc_build_ib():
    Ab, Cb = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="C")
    ib = tir.ir_builder.create()
    A, C = ib.buffer_ptr(Ab), ib.buffer_ptr(Cb)
    with ib.for_range(0, 8, name="i") as i:
        t = ib.allocate("float32", (1,), name="t", scope="local")
        t[0] = A[i] * 2.0
        C[i] = t[0] + 1.0
    f = tir.PrimFunc([Ab, Cb], ib.get()).with_attr("global_symbol", "k")
    m = tvm.build(IRModule({"k": f}), target="llvm")
    a, c = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,))
    m["k"](a, c)
    assert c.numpy()[7] == 3
    m2 = tvm.build(f, target="llvm")
    m2(a, c)


def test_expr_attr():
    a = te.var("a")
    x = tir.Cast("float32", a)
    y = a + 1
    assert (y.a.same_as(a), x.value.same_as(a), a.dtype) == (True, True, a.dtype)
    assert isinstance(tir.Add(a, 1), tir.Add) and tir.Add(a, tir.const(1, "int32")) is not None


def test_comparison_exprs():
    a, b = te.var("a"), te.var("b")
    assert isinstance(tir.EQ(a, b), tir.EQ) and isinstance(a.equal(b), tir.EQ)
    assert (a == a) and not (a == b) and bool(a != b)
    d = {a: 1}
    assert a in d and b not in d


def test_structural_tir():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    a, b = tvm.lower(s, [A, C]), tvm.lower(te.create_schedule(C.op), [A, C])
    tvm.ir.assert_structural_equal(a, b)
    assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(b)
    c = tvm.ir.load_json(tvm.ir.save_json(a))
    tvm.ir.assert_structural_equal(c, a)
    x, y = te.var("x"), te.var("y")
    assert (
        tvm.ir.structural_equal(x + 1, y + 1, map_free_vars=True)
        and not tvm.ir.structural_equal(x + 1, y + 1)
        and tvm.ir.structural_equal(tir.For(x, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(x)), tir.For(y, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(y)))
    )


def test_for_kinds():
    assert (tir.ForKind.SERIAL, tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED, tir.ForKind.UNROLLED, tir.ForKind.THREAD_BINDING) == (0, 1, 2, 3, 4)


def test_tir_pass_pipeline():
    A = te.placeholder((32,), name="A")
    C = te.compute((32,), lambda i: A[i] + 1.0)
    s = te.create_schedule(C.op)
    o, i = s[C].split(C.op.axis[0], 8)
    s[C].vectorize(i)
    tvm.lower(s, [A, C])
    log = []

    @tir.transform.prim_func_pass(opt_level=0)
    def look(f, mod, ctx):
        log.append(f.attrs["global_symbol"])
        return f

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, look)]}):
        tvm.lower(s, [A, C])
        tvm.build(s, [A, C], "llvm")
    assert log and log[0] == "main"


def test_from_expr_primfunc():
    f = tir.PrimFunc([te.var("x")], tir.Evaluate(0))
    m = IRModule.from_expr(f)
    assert m["main"] is not None
    m = IRModule.from_expr(f.with_attr("global_symbol", "g"))
    assert "g" in [v.name_hint for v in m.get_global_vars()]


def test_reduction_print():
    k = te.reduce_axis((0, 4), "k")
    A = te.placeholder((4,), name="A")
    C = te.compute((1,), lambda i: te.sum(A[k], axis=k))
    r = C.op.body[0]
    assert (
        isinstance(r, tir.Reduce)
        and r.combiner is not None
        and r.axis[0].var.name == "k"
        and isinstance(r.source[0], tir.ProducerLoad)
        and r.value_index == 0
        and r.condition is not None
        and isinstance(C.op.reduce_axis[0], tir.IterVar)
    )


def test_te_broadcast_any():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    C = te.compute((m, n), lambda i, j: A[j, i])
    assert B(C, [A, C], np.arange(6, dtype="float32").reshape(2, 3), np.zeros((3, 2), "float32")).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_extern_multi():
    A = te.placeholder((4,), name="A")

    def gen(i, o):
        ib = tir.ir_builder.create()
        a, x, y = ib.buffer_ptr(i[0]), ib.buffer_ptr(o[0]), ib.buffer_ptr(o[1])
        with ib.for_range(0, 4) as k:
            x[k] = a[k] + 1.0
            y[k] = a[k] * 3.0
        return ib.get()

    X, Y = te.extern([(4,), (4,)], [A], gen, dtype=["float32", "float32"], name="e")
    f = tvm.build(te.create_schedule(X.op), [A, X, Y], "llvm")
    a = tvm.nd.array(np.ones(4, "float32"))
    x, y = tvm.nd.empty((4,)), tvm.nd.empty((4,))
    f(a, x, y)
    assert x.numpy()[0] == 2 and y.numpy()[0] == 3


def test_generic_tuple_ret():
    f = tvm.get_global_func("runtime.GetDeviceAttr", True)
    assert f is None or callable(f)


def test_split_nonmultiple():
    A = te.placeholder((10,), name="A")
    C = te.compute((10,), lambda i: A[i] + 1.0)
    s = te.create_schedule(C.op)
    o, i = s[C].split(C.op.axis[0], nparts=3)
    f = tvm.build(s, [A, C], "llvm")
    a, c = tvm.nd.array(np.ones(10, "float32")), tvm.nd.empty((10,))
    f(a, c)
    assert c.numpy().sum() == 20


def test_access_ptr_extern():
    A = tir.decl_buffer((4,), name="A")
    e = tir.call_extern("int32", "foo", A.access_ptr("r"), 4)
    assert isinstance(e, tir.Call) and e.dtype == "int32"


def test_simplify_module():
    i, n = te.var("i"), te.var("n")
    Ab = tir.decl_buffer((n,), "int64", name="A")
    s = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.IfThenElse(i < n, tir.BufferStore(Ab, tir.const(1, "int64"), [i]), None))
    m = tir.transform.Simplify()(IRModule.from_expr(tir.PrimFunc([Ab, n], s)))
    assert isinstance(m["main"].body.body, tir.BufferStore)


def test_remove_no_op():
    i = te.var("i")
    m = tir.transform.RemoveNoOp()(IRModule.from_expr(tir.PrimFunc([], tir.For(i, 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0)))))
    assert isinstance(m["main"].body, (tir.Evaluate, tir.SeqStmt))


def test_verify_errors():
    x = te.var("x")
    y = te.var("y")
    assert tir.analysis.verify_ssa(tir.PrimFunc([x], tir.LetStmt(y, 1, tir.Evaluate(y))))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([], tir.SeqStmt([tir.LetStmt(y, 1, tir.Evaluate(y)), tir.LetStmt(y, 2, tir.Evaluate(y))])))


def test_const_errors():
    x = te.var("x")
    with pytest.raises(ValueError):
        if x == 2:
            pass
        if x > 2:
            pass
    with pytest.raises((ValueError, tvm.TVMError)):
        bool(x < te.var("y"))


def test_attr_node():
    x = te.var("x")
    st = tir.AttrStmt(x, "stride", 10, tir.Evaluate(1))
    assert st.attr_key == "stride" and st.value.value == 10 and st.node == x


def test_buffer_stmts():
    A = tir.decl_buffer((4,), "float32", name="A")
    st = tir.BufferStore(A, tir.const(1.0, "float32"), [0])
    ld = tir.BufferLoad(A, [0])
    assert (
        st.buffer == A
        and ld.dtype == "float32"
        and st.indices[0].value == 0
        and A.shape[0].value == 4
        and A.name == "A"
        and A.scope() == "global"
        and A.data.dtype == "handle"
    )


def test_primfunc():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    mod = tvm.lower(s, [A, B], name="add1")
    assert isinstance(mod, tvm.IRModule)
    f = mod["add1"]
    assert isinstance(f, tir.PrimFunc) and len(f.params) == 2 and len(f.buffer_map) == 2 and f.attrs["global_symbol"] == "add1"
    assert isinstance(f.body, tir.Stmt) and f.ret_type is not None
    g = f.with_attr("x", 1)
    assert g.attrs["x"] == 1
    for p in f.params:
        assert f.buffer_map[p].name in ("A", "B")
    t = str(mod)
    assert "for" in t and "add1" in t
    assert f.attrs["tir.noalias"]


def test_ir_builder_build():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")

    def gen(ins, outs):
        ib = tir.ir_builder.create()
        a, b, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, "i") as i:
            c[i] = a[i] + b[i]
        return ib.get()

    C = te.extern(A.shape, [A, B], gen, dtype="float32", name="v")
    s = te.create_schedule(C.op)
    f = tvm.build(s, [A, B, C], "llvm")
    a = tvm.nd.array(np.arange(10, dtype="float32"))
    c = tvm.nd.empty((10,))
    f(a, a, c)
    assert c.numpy()[3] == 6


def test_stmt_functor():
    x = te.var("x")
    y = te.var("y")
    e = x + y
    n = []
    tir.stmt_functor.post_order_visit(tir.Evaluate(e), lambda v: n.append(v))
    assert any(isinstance(v, tir.Add) for v in n)
    st = tir.stmt_functor.substitute(tir.Evaluate(e), {x: tir.const(3, "int32")})
    assert st.value.a.value == 3 or st.value.b.value == 3
    r = tir.stmt_functor.ir_transform(tir.Evaluate(e), None, lambda op: tir.Sub(op.a, op.b), ["tir.Add"])
    assert isinstance(r.value, tir.Sub)


def test_prim_func_pass():
    @tir.transform.prim_func_pass(opt_level=1)
    def p(f, mod, ctx):
        return f.with_attr("n5", 1)

    assert isinstance(p, tir.transform.PrimFuncPass)
    f = tir.PrimFunc([te.var("x")], tir.Evaluate(0))
    m = p(tvm.IRModule({"main": f}))
    assert m["main"].attrs["n5"] == 1
    m = tir.transform.Apply(lambda f: f.with_attr("k", "v"))(tvm.IRModule({"main": f}))
    assert m["main"].attrs["k"] == "v"


def test_unroll():
    ib = tir.ir_builder.create()
    Ab = tir.decl_buffer((8,), "int64")
    A = ib.buffer_ptr(Ab)
    with ib.for_range(0, 4, name="i", kind="unroll") as i:
        A[i] = A[i] + 1
    m = tvm.IRModule({"main": tir.PrimFunc([Ab], ib.get())})
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        r = tir.transform.UnrollLoop()(m)["main"].body
    assert not isinstance(r, tir.For)


def test_compute_binding():
    for e in (tir.IterVar((0, 10), "i", 0), te.reduce_axis((0, 10), name="k"), te.thread_axis("threadIdx.x"), te.thread_axis((0, 4), "blockIdx.x")):
        assert e.var.name
    k = te.reduce_axis((0, 10), name="k")
    assert k.dom.extent.value == 10 and k.dom.min.value == 0 and k.iter_type == tir.IterVar.CommReduce
    r = tvm.ir.Range(0, 10)
    assert r.extent.value == 10 and r.min.value == 0
    r = tvm.ir.Range.from_min_extent(2, 3)
    assert r.min.value == 2 and r.extent.value == 3
    r = tvm.ir.Range(5)
    assert r.min.value == 0 and r.extent.value == 5


def test_vector_dtype():
    with pytest.raises((tvm.TVMError, ValueError, TypeError)):
        te.var("x", "float32x4") + te.var("y", "float32x8")
    assert (te.var("x", "float32x4") * 2.0).dtype == "float32x4"
    assert (te.var("a", "int32") + te.var("b", "float32")).dtype == "float32" and (te.var("a", "int8") + te.var("b", "int32")).dtype == "int32"


def test_pointer_type():
    p = tvm.ir.PointerType(tvm.ir.PrimType("float32"))
    assert p.element_type.dtype == "float32"
    v = tir.Var("v", p)
    assert v.type_annotation.element_type.dtype == "float32" and v.dtype == "handle"


def test_call_node():
    c = tir.call_intrin("int32", "tir.shift_left", 1, 2)
    assert isinstance(c, tir.Call) and len(c.args) == 2 and c.op.name == "tir.shift_left"
    assert tir.Call("int32", tvm.ir.Op.get("tir.shift_left"), [1, 2]).dtype == "int32"


def test_tensor():
    m, n, o = te.size_var("m"), te.size_var("n"), te.size_var("o")
    A = te.placeholder((m, o), name="A")
    B = te.placeholder((n, o), name="B")
    T = te.compute((m, n, o), lambda i, j, k: A[i, k] * B[j, k])
    assert (
        tuple(T.shape) == (m, n, o)
        and isinstance(A.op, te.PlaceholderOp)
        and A == A
        and T.op.output(0) == T
        and T.op.output(0).__hash__() == T.__hash__()
        and {T.op.output(0): 1}[T] == 1
        and T[0][0][0].astype("float16").dtype == "float16"
    )
    assert (
        T.op.axis[0].var.name == "i"
        and len(T.op.axis) == 3
        and T.ndim == 3
        and T.dtype == "float32"
        and T.name == "compute"
        and T.value_index == 0
        and A.op.name == "A"
        and isinstance(T.op, te.ComputeOp)
        and T.op.num_outputs == 1
        and len(T.op.input_tensors) == 2
    )
    assert repr(T).startswith("Tensor(")
    assert str(A) == repr(A)


def test_rank_zero():
    m = te.size_var("m")
    A = te.placeholder((m,), name="A")
    s = te.placeholder((), name="s")
    k = te.reduce_axis((0, m), name="k")
    T = te.compute((), lambda: te.sum(A[k] * s(), axis=k))
    assert tuple(T.shape) == ()


def test_errors():
    A = te.placeholder((4, 4))
    with pytest.raises((ValueError, tvm.TVMError)):
        A[0, 0, 0]
    with pytest.raises((ValueError, tvm.TVMError, TypeError)):
        te.compute((4,), lambda i, j: A[i, j])
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        te.compute((4,), lambda i: "x")


def test_reduce():
    m = 8
    A = te.placeholder((m, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="B")
    a = np.random.rand(m, m).astype("float32")
    assert np.allclose(run(te.create_schedule(B.op), [A, B], a, np.zeros(m, "float32")), a.sum(1), rtol=1e-5)
    for f, g in ((te.max, np.max), (te.min, np.min)):
        C = te.compute((m,), lambda i: f(A[i, k], axis=k))  # noqa: B023
        assert np.allclose(run(te.create_schedule(C.op), [A, C], a, np.zeros(m, "float32")), g(a, 1))
    prod = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, dtype=t), name="prod")
    C = te.compute((m,), lambda i: prod(A[i, k], axis=k))
    assert np.allclose(run(te.create_schedule(C.op), [A, C], a, np.zeros(m, "float32")), a.prod(1), rtol=1e-4)


def test_argmax():
    def fc(a, b):
        return tir.Select(a[1] >= b[1], a[0], b[0]), tir.Select(a[1] >= b[1], a[1], b[1])

    def fi(t0, t1):
        return tir.const(-1, t0), te.min_value(t1)

    am = te.comm_reducer(fc, fi, name="argmax")
    m, n = te.size_var("m"), te.size_var("n")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: am((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    assert tvm.lower(s, [idx, val, T0, T1]) is not None


def test_rfactor():
    n = 64
    A = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), "k")
    B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k, factor=8)
    s.rfactor(B, ki)
    a = np.random.rand(n).astype("float32")
    assert np.allclose(run(s, [A, B], a, np.zeros(1, "float32")), a.sum(), rtol=1e-4)


def test_tuple_compute():
    A0, A1 = te.placeholder((4,)), te.placeholder((4,))
    B0, B1 = te.compute((4,), lambda i: (A0[i] + 2.0, A1[i] * 3.0), name="B")
    f = tvm.build(te.create_schedule(B0.op), [A0, A1, B0, B1], "llvm")
    a = tvm.nd.array(np.ones(4, "float32"))
    x, y = tvm.nd.empty((4,)), tvm.nd.empty((4,))
    f(a, a, x, y)
    assert x.numpy()[0] == 3 and y.numpy()[0] == 3


def test_tag_and_attrs():
    with te.tag_scope(tag="n5"):
        B = te.compute((4,), lambda i: tir.const(1.0, "float32"))
    assert B.op.tag == "n5"
    C = te.compute((4,), lambda i: B[i], name="C", tag="t", attrs={"k": 1})
    assert C.op.attrs["k"] == 1 and C.op.tag == "t"

    @te.tag_scope(tag="deco")
    def f():
        return te.compute((4,), lambda i: tir.const(1.0, "float32"))

    assert f().op.tag == "deco"


def test_debug():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s = s.normalize()
    b = te.schedule.InferBound(s)
    st = te.schedule.ScheduleOps(s, b)
    assert isinstance(st, tir.Stmt)


def test_topi_like():
    A = te.placeholder((4, 4), name="A")
    B = A + 1.0
    assert isinstance(B, te.Tensor)
    C = topi.sum(A, axis=1)
    D = A * B
    assert isinstance(D, te.Tensor) and tuple(x.value for x in C.shape) == (4,)
    E = topi.nn.relu(A)
    s = te.create_schedule([C.op, E.op])
    assert len(s.outputs) == 2
    te.create_schedule(E.op)


@pytest.mark.parametrize("where", [False, True])
@pytest.mark.parametrize(
    ("reduce", "numpy", "init"),
    [(te.sum, np.sum, 10.0), (te.max, np.max, 0.9), (te.min, np.min, 0.1), (te.prod, np.prod, 2.0)],
    ids=["sum", "max", "min", "prod"],
)
def test_a_reduction_begins_with(reduce, numpy, init, where):
    a = np.random.default_rng(0).uniform(0.2, 0.8, (4, 5)).astype("float32")
    A, I = te.placeholder((4, 5), name="A"), te.placeholder((4,), name="I")  # noqa: E741
    k = te.reduce_axis((0, 5), "k")
    condition = k.var > 0 if where else None
    of = a[:, 1:] if where else a
    for given, begin in ((init, np.full(4, init)), (I, np.arange(4))):
        B = te.compute((4,), lambda i, v=given: reduce(A[i, k], axis=k, where=condition, init=v[i] if v is I else v), name="B")
        out = tvm.nd.empty((4,))
        tvm.build(te.create_schedule(B.op), [A, I, B], "llvm")(tvm.nd.array(a), tvm.nd.array(np.arange(4, dtype="float32")), out)
        np.testing.assert_allclose(out.numpy(), numpy(np.concatenate([of, begin[:, None]], 1), axis=1), rtol=1e-5)


def test_a_reduction_of_ones_own_begins_with():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t))
    A, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), "k")
    B = te.compute((1,), lambda i: product(A[k], axis=k, init=3.0), name="B")
    out = tvm.nd.empty((1,))
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(tvm.nd.array(np.array([1, 2, 3, 4], "float32")), out)
    assert out.numpy() == 72


def test_a_stage_without_a_group_and_a_target_behind_a_module():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    assert te.create_schedule(B.op)[B].group is None
    out = tvm.nd.empty((4,))
    tvm.build(tvm.IRModule({"main": te.create_prim_func([A, B])}), "llvm")(tvm.nd.array(np.ones(4, "float32")), out)
    assert (out.numpy() == 2).all()


def test_operators_between_tensors_expressions_and_elements():
    """The tag says how elements depend on those of the operands."""
    n, a, b = te.var("n"), te.placeholder((), name="A"), te.placeholder((10, 5), name="B")
    element = b[0, 0]
    for made in (1 + b, b + 1, n + b, b - n, b * n, n / b, a + element, element + a, b + element, element * b, a * 2):
        assert isinstance(made, te.Tensor) and made.op.tag == tvm.topi.tag.ELEMWISE
    for made in (a + a, a + b, b * a, b / b):
        assert made.op.tag == tvm.topi.tag.BROADCAST
    for made in (element + 1, n * element, element + element, n + n):
        assert isinstance(made, tvm.tir.PrimExpr)
    with pytest.raises(TypeError, match="`B` has 2 dimensions"):
        _ = b[0] + b
    c = 10 / (n + b)
    x, out = np.ones((10, 5), "float32"), tvm.nd.empty((10, 5))
    tvm.build(te.create_schedule(c.op), [n, b, c], "llvm")(4, tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x * 2)


def test_a_scan_finds_what_it_reads():
    m, n = 5, 4
    x, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    doubled = te.compute((m, n), lambda i, j: x[i, j] * 2, name="D")
    made = te.scan(te.compute((1, n), lambda _, i: x[0, i]), te.compute((m, n), lambda t, i: state[t - 1, i] + doubled[t, i]), state)
    assert [t.op.name for t in made.op.input_tensors] == ["X", "D"]
    values, out = np.random.default_rng(0).standard_normal((m, n)).astype("float32"), tvm.nd.empty((m, n))
    tvm.build(te.create_schedule(made.op), [x, made], "llvm")(tvm.nd.array(values), out)
    np.testing.assert_allclose(out.numpy(), np.cumsum(np.concatenate([values[:1], 2 * values[1:]]), 0), rtol=1e-5)
