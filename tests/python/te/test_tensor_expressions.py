# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions, the loops that they become, and the values that those compute."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir, topi
from baton.ir import IRModule

rng = np.random.default_rng(0)


def run(schedule, args, *arrays):
    """The value of the last argument after a call of the schedule's code on arrays for the others."""
    out = tvm.nd.array(np.zeros([int(d) for d in arrays[-1]], str(args[-1].dtype)))
    tvm.build(schedule, args, "llvm")(*map(tvm.nd.array, arrays[:-1]), out)
    return out.numpy()


def f32(*shape):
    return rng.random(shape, "float32")


# ---- A tensor expression: the arguments, the tensor that is made of placeholders like them, its value

ONES, FOUR, GRID, SQUARE, IMAGE, FILTER = np.ones(4, "float32"), f32(4) + 0.5, f32(2, 3), f32(8, 8), f32(8, 8), f32(3, 3)
K = {n: te.reduce_axis((0, n), f"k{n}") for n in (3, 4, 8)}
K2, M4, PRODUCT = te.reduce_axis((0, 3), "l"), te.reduce_axis((0, 4), "m"), te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, dtype=t), name="prod")


def each(of):
    return lambda a: te.compute(a.shape, lambda *i: of(a(*i)))


VALUES = {
    "indices as one": ([GRID], each(lambda x: x * 2.0), GRID * 2),
    "an index": ([], lambda: te.compute((4,), lambda i: i.astype("float32") * 2.0), [0, 2, 4, 6]),
    "an index as int32": ([], lambda: te.compute((4,), lambda i: i.astype("int32") * 2), np.array([0, 2, 4, 6], "int32")),
    "if_then_else": ([ONES], lambda a: te.compute((4,), lambda i: tir.if_then_else(i < 2, a[i], 0.0)), [1, 1, 0, 0]),
    "Select": ([ONES], lambda a: te.compute((4,), lambda i: tir.Select(i >= 2, a[i], tir.const(0.0, "float32"))), [0, 0, 1, 1]),
    "all": ([ONES], lambda a: te.compute((4,), lambda i: te.if_then_else(tir.all(i > 0, i < 3), a[i], tir.const(5, "float32"))), [5, 1, 1, 5]),
    "exp": ([FOUR], each(te.exp), np.exp(FOUR)),
    "log": ([FOUR], each(te.log), np.log(FOUR)),
    "sqrt": ([FOUR], each(te.sqrt), np.sqrt(FOUR)),
    "tanh": ([FOUR], each(te.tanh), np.tanh(FOUR)),
    "floor": ([FOUR], each(te.floor), np.floor(FOUR)),
    "sigmoid": ([FOUR], each(te.sigmoid), 1 / (1 + np.exp(-FOUR))),
    "a sum where": ([SQUARE[0]], lambda a: te.compute((1,), lambda i: te.sum(a[K[8]], axis=K[8], where=K[8] < 4)), [SQUARE[0, :4].sum()]),
    "a sum of two axes": ([SQUARE[:4, :4]], lambda a: te.compute((1,), lambda i: te.sum(a[K[4], M4], axis=[K[4], M4])), [SQUARE[:4, :4].sum()]),
    "a sum without axes": ([SQUARE[0], np.float32(3)], lambda a, s: te.compute((), lambda: te.sum(a[K[8]] * s(), axis=K[8])), 3 * SQUARE[0].sum()),
    "sums of rows": ([SQUARE], lambda a: te.compute((8,), lambda i: te.sum(a[i, K[8]], axis=K[8])), SQUARE.sum(1)),
    "maxima of rows": ([SQUARE], lambda a: te.compute((8,), lambda i: te.max(a[i, K[8]], axis=K[8])), SQUARE.max(1)),
    "minima of rows": ([SQUARE], lambda a: te.compute((8,), lambda i: te.min(a[i, K[8]], axis=K[8])), SQUARE.min(1)),
    "products of rows": ([SQUARE], lambda a: te.compute((8,), lambda i: PRODUCT(a[i, K[8]], axis=K[8])), SQUARE.prod(1)),
    "a convolution": ([IMAGE, FILTER], lambda a, w: te.compute((6, 6), lambda y, x: te.sum(a[y + K[3], x + K2] * w[K[3], K2], axis=[K[3], K2])),
                      sum(IMAGE[y:y + 6, x:x + 6] * FILTER[y, x] for y in range(3) for x in range(3))),
    **{f"{d} + 1": ([np.ones(4, d)], each(lambda x, d=d: x + tir.const(1, d)), np.full(4, 2, d)) for d in ("float64", "int32", "int64", "int8", "uint8", "float16")},
    "operators of tensors": ([SQUARE], lambda a: a * (a + 1.0), SQUARE * (SQUARE + 1)),
    "topi.sum": ([SQUARE], lambda a: topi.sum(a, axis=1), SQUARE.sum(1)),
    "topi.nn.relu": ([SQUARE - 0.5], topi.nn.relu, np.maximum(SQUARE - 0.5, 0)),
}  # fmt: skip


@pytest.mark.parametrize("arrays, make, want", VALUES.values(), ids=VALUES)
def test_value(arrays, make, want):
    places = [te.placeholder(a.shape, str(a.dtype), name=f"p{i}") for i, a in enumerate(arrays)]
    made = make(*places)
    want = want if isinstance(want, np.ndarray) else np.asarray(want, made.dtype)
    assert isinstance(made, te.Tensor) and [int(d) for d in made.shape] == list(want.shape) and made.dtype == str(want.dtype)
    np.testing.assert_allclose(run(te.create_schedule(made.op), [*places, made], *arrays, want.shape), want, rtol=1e-3 if made.dtype == "float16" else 1e-4)


def test_open_extents():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    made = te.compute((m, n), lambda i, j: a[j, i])
    assert run(te.create_schedule(made.op), [a, made], GRID, (3, 2)).tolist() == GRID.T.tolist()


def test_several_results():
    a, b = te.placeholder((4,)), te.placeholder((4,))
    x, y = te.compute((4,), lambda i: (a[i] + 2.0, b[i] * 3.0), name="B")
    values = [tvm.nd.array(FOUR), tvm.nd.array(ONES), tvm.nd.empty((4,)), tvm.nd.empty((4,))]
    tvm.build(te.create_schedule(x.op), [a, b, x, y], "llvm")(*values)
    np.testing.assert_array_equal([v.numpy() for v in values[2:]], [FOUR + 2, ONES * 3])


# ---- Schedules of the same expression: its value stays


def products(s, c):
    """Tiles, a cache of results, an order of loops, parallel and vector loops."""
    cache = s.cache_write(c, "global")
    xo, yo, _, _ = s[c].tile(*c.op.axis, 8, 8)
    s[cache].compute_at(s[c], yo)
    xc, yc = s[cache].op.axis
    ko, ki = s[cache].split(s[cache].op.reduce_axis[0], factor=4)
    s[cache].reorder(ko, xc, ki, yc)
    s[cache].unroll(ki)
    s[cache].vectorize(yc)
    s[c].parallel(xo)


@pytest.mark.parametrize("change", [lambda s, c: None, products], ids=["plain", "tiled"])
def test_products(change):
    a, w, k = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="W"), te.reduce_axis((0, 32), "k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    change(s, c)
    x, y = f32(32, 32), f32(32, 32)
    np.testing.assert_allclose(run(s, [a, w, c], x, y, (32, 32)), x @ y, rtol=1e-4)


@pytest.mark.parametrize("how", [{"nparts": 3}, {"factor": 4}], ids=str)
def test_a_split_that_leaves_a_rest(how):
    a = te.placeholder((10,), name="A")
    c = te.compute((10,), lambda i: a[i] + 1.0)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], **how)
    assert run(s, [a, c], np.ones(10, "float32"), (10,)).tolist() == [2] * 10


def test_rfactor():
    a, k = te.placeholder((64,), name="A"), te.reduce_axis((0, 64), "k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s.rfactor(b, s[b].split(k, factor=8)[1])
    x = f32(64)
    np.testing.assert_allclose(run(s, [a, b], x, (1,)), [x.sum()], rtol=1e-4)


def test_bounds_and_loops_of_a_schedule():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op).normalize()
    loops = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    found = []
    tir.stmt_functor.post_order_visit(loops, lambda n: found.append(n) if isinstance(n, tir.For) else None)
    assert [int(n.extent) for n in found] == [4] and len(te.create_schedule([b.op, topi.nn.relu(a).op]).outputs) == 2


# ---- Nodes


def test_expressions_of_variables():
    a, b = te.var("a"), te.var("b")
    assert (a + 1).a.same_as(a) and tir.Cast("float32", a).value.same_as(a) and isinstance(tir.Add(a, 1), tir.Add)
    assert isinstance(tir.EQ(a, b), tir.EQ) and isinstance(a.equal(b), tir.EQ) and a == a and not a == b and bool(a != b) and a in {a: 1} and b not in {a: 1}
    call = tir.call_intrin("int32", "tir.shift_left", 1, 2)
    assert isinstance(call, tir.Call) and (len(call.args), call.op.name) == (2, "tir.shift_left")
    assert tir.Call("int32", tvm.ir.Op.get("tir.shift_left"), [1, 2]).dtype == "int32"
    buffer = tir.decl_buffer((4,), name="A")
    assert tir.call_extern("int32", "foo", buffer.access_ptr("r"), 4).dtype == "int32"
    assert (te.var("x", "float32x4") * 2.0).dtype == "float32x4" and (te.var("a", "int32") + te.var("b", "float32")).dtype == "float32"
    assert (te.var("a", "int8") + te.var("b", "int32")).dtype == "int32"
    with pytest.raises((tvm.TVMError, ValueError, TypeError)):
        te.var("x", "float32x4") + te.var("y", "float32x8")


def test_statements():
    x, a = te.var("x"), tir.decl_buffer((4,), "float32", name="A")
    mark = tir.AttrStmt(x, "stride", 10, tir.Evaluate(1))
    assert (mark.attr_key, mark.value.value, mark.node) == ("stride", 10, x)
    store, load = tir.BufferStore(a, tir.const(1.0, "float32"), [0]), tir.BufferLoad(a, [0])
    assert (store.buffer, store.indices[0].value, load.dtype) == (a, 0, "float32")
    assert (a.shape[0].value, a.name, a.scope(), a.data.dtype) == (4, "A", "global", "handle")
    kinds = tir.ForKind
    assert (kinds.SERIAL, kinds.PARALLEL, kinds.VECTORIZED, kinds.UNROLLED, kinds.THREAD_BINDING) == (0, 1, 2, 3, 4)
    pointer = tir.Var("v", tvm.ir.PointerType(tvm.ir.PrimType("float32")))
    assert pointer.type_annotation.element_type.dtype == "float32" and pointer.dtype == "handle"


def test_a_reduction():
    a, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), "k")
    c = te.compute((1,), lambda i: te.sum(a[k], axis=k))
    reduce = c.op.body[0]
    assert (
        isinstance(reduce, tir.Reduce) and len(reduce.combiner.lhs) == 1 and reduce.axis[0].var.name == "k" and isinstance(reduce.source[0], tir.ProducerLoad)
    )
    assert reduce.value_index == 0 and int(reduce.condition) == 1 and c.op.reduce_axis[0] == k


def test_axes():
    for axis, name in ((tir.IterVar((0, 10), "i", 0), "i"), (te.reduce_axis((0, 10), name="k"), "k"), (te.thread_axis("threadIdx.x"), "threadIdx.x"),
                       (te.thread_axis((0, 4), "blockIdx.x"), "blockIdx.x")):  # fmt: skip
        assert axis.var.name == name
    k = te.reduce_axis((0, 10), name="k")
    assert (k.dom.min.value, k.dom.extent.value, k.iter_type) == (0, 10, tir.IterVar.CommReduce)


# ---- Modules of functions


def test_modules_of_functions():
    f = tir.PrimFunc([te.var("x")], tir.Evaluate(0))
    assert tvm.ir.structural_equal(IRModule.from_expr(f)["main"].body, f.body)
    assert [v.name_hint for v in IRModule.from_expr(f.with_attr("global_symbol", "g")).get_global_vars()] == ["g"]


def test_passes_that_remove_loops():
    removed = tir.transform.RemoveNoOp()(IRModule.from_expr(tir.PrimFunc([], tir.For(te.var("i"), 0, 10, tir.ForKind.SERIAL, tir.Evaluate(0)))))
    assert isinstance(removed["main"].body, (tir.Evaluate, tir.SeqStmt))
    builder, buffer = tir.ir_builder.create(), tir.decl_buffer((8,), "int64")
    a = builder.buffer_ptr(buffer)
    with builder.for_range(0, 4, name="i", kind="unroll") as i:
        a[i] = a[i] + 1
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        unrolled = tir.transform.UnrollLoop()(IRModule({"main": tir.PrimFunc([buffer], builder.get())}))["main"].body
    assert isinstance(unrolled, tir.SeqStmt) and len(unrolled.seq) == 4


def test_single_assignment():
    x, y = te.var("x"), te.var("y")
    assert tir.analysis.verify_ssa(tir.PrimFunc([x], tir.LetStmt(y, 1, tir.Evaluate(y))))
    assert not tir.analysis.verify_ssa(tir.PrimFunc([], tir.SeqStmt([tir.LetStmt(y, n, tir.Evaluate(y)) for n in (1, 2)])))


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


def test_simplify_module():
    i, n = te.var("i"), te.var("n")
    Ab = tir.decl_buffer((n,), "int64", name="A")
    s = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.IfThenElse(i < n, tir.BufferStore(Ab, tir.const(1, "int64"), [i]), None))
    m = tir.transform.Simplify()(IRModule.from_expr(tir.PrimFunc([Ab, n], s)))
    assert isinstance(m["main"].body.body, tir.BufferStore)


def test_const_errors():
    x = te.var("x")
    with pytest.raises(ValueError):
        if x == 2:
            pass
        if x > 2:
            pass
    with pytest.raises((ValueError, tvm.TVMError)):
        bool(x < te.var("y"))


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


def test_errors():
    A = te.placeholder((4, 4))
    with pytest.raises((ValueError, tvm.TVMError)):
        A[0, 0, 0]
    with pytest.raises((ValueError, tvm.TVMError, TypeError)):
        te.compute((4,), lambda i, j: A[i, j])
    with pytest.raises((TypeError, ValueError, tvm.TVMError)):
        te.compute((4,), lambda i: "x")


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
