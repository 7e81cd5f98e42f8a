# SPDX-License-Identifier: Apache-2.0
"""Passes over PrimFuncs: what they write, and that it computes the same."""

import numpy as np
import pytest

import baton
from baton import te, tir


def module(func):
    return baton.IRModule({"f": func.with_attr("global_symbol", "f")})


def run(mod, *args):
    arrays = [baton.nd.array(a.copy()) if isinstance(a, np.ndarray) else a for a in args]
    baton.build(mod, target="llvm")["f"](*arrays)
    return [a.numpy() for a in arrays if hasattr(a, "numpy")]


def apply(name, func, config=None):
    """The function before and after a pass."""
    with baton.transform.PassContext(config=config or {}):
        return module(func), getattr(tir.transform, name)()(module(func))


def same(before, after, *args):
    for a, b in zip(run(before, *args), run(after, *args), strict=True):
        np.testing.assert_array_equal(a, b)


def kinds(stmt):
    """Names of the statements' classes, outermost first."""
    found = []
    tir.stmt_functor.post_order_visit(stmt, lambda s: found.append(type(s).__name__))
    return [k for k in reversed(found) if k in ("For", "IfThenElse", "BufferStore", "SeqStmt")]


def test_hoist_if_then_else():
    ib = tir.ir_builder.create()
    n, m = te.size_var("n"), te.size_var("m")
    a = ib.pointer("float32", "A")
    with ib.for_range(0, n) as i, ib.for_range(0, 2, "j") as j:
        with ib.if_scope(m > 3):
            a[i] = a[i] + 1.0
        with ib.else_scope():
            a[i] = a[i] * tir.cast("float32", j)
    before, after = apply("HoistIfThenElse", tir.PrimFunc([a.buffer, n, m], ib.get()))
    body = after["f"].body
    assert isinstance(body, tir.IfThenElse) and isinstance(body.then_case, tir.For) and isinstance(body.else_case, tir.For)
    assert "IfThenElse" not in kinds(body.then_case)
    for m in (3, 4):
        same(before, after, np.arange(5, dtype="float32"), 5, m)


@pytest.mark.parametrize("reads", [True, False])
def test_conditions_that_change_stay(reads):
    """One that asks the loop's variable, or memory that the loop may write."""
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((5,), "float32", "A"))
    with ib.for_range(0, 5) as i, ib.if_scope(a[0] < 3.0 if reads else i < 3):
        a[0] = a[0] + 1.0
    before, after = apply("HoistIfThenElse", tir.PrimFunc([a.buffer], ib.get()))
    assert baton.ir.structural_equal(before, after)
    assert run(after, np.zeros(5, "float32"))[0][0] == 3


def test_loop_partition():
    """The documented use: no condition is asked in the bulk of the rounds."""
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    a = ib.pointer("int64", "A")
    with ib.for_range(0, 4, "i") as i, ib.for_range(0, 10, "j") as j, ib.if_scope(ib.likely(i * 10 + j < n)):
        a[i * 10 + j] = a[i * 10 + j] + 1
    func = tir.PrimFunc([a.buffer, n], ib.get())
    before, after = apply("LoopPartition", func)
    assert baton.ir.structural_equal(before, after)  # known lengths: only if asked for
    before, after = apply("LoopPartition", func, {"tir.LoopPartition": {"partition_const_loop": True}})
    assert "IfThenElse" not in kinds(after["f"].body)
    for n in (1, 9, 10, 25, 40):
        same(before, after, np.arange(n), n)


@pytest.mark.parametrize("compare", ["<", "<=", ">", ">=", "5 <", "5 <=", "5 >", "5 >="])
def test_loop_partition_of_unknown_length(compare):
    ib = tir.ir_builder.create()
    n, k = te.size_var("n"), tir.Var("k")
    a = ib.pointer("int64", "A")
    with ib.for_range(0, n) as i:
        by = {"<": i < k, "<=": i <= k, ">": i > k, ">=": i >= k, "5 <": 5 - i < k, "5 <=": 5 - i <= k, "5 >": 5 - i > k, "5 >=": 5 - i >= k}
        with ib.if_scope(by[compare]):
            a[i] = a[i] * 2
        with ib.else_scope():
            a[i] = a[i] - 7
    before, after = apply("LoopPartition", tir.PrimFunc([a.buffer, n, k], ib.get()))
    assert kinds(after["f"].body).count("For") == 2 and "IfThenElse" not in kinds(after["f"].body)
    for k in (-3, 0, 1, 4, 5, 6, 7, 11):
        same(before, after, np.arange(1, 7), 6, k)


def test_rewrite_unsafe_select():
    ib = tir.ir_builder.create()
    a, b = (ib.buffer_ptr(tir.decl_buffer((4,), "int64", name)) for name in "AB")
    with ib.for_range(0, 4) as i:
        a[i] = tir.Select(i > 0, b[i - 1], tir.const(-1)) + tir.Select(i > 2, tir.const(10), tir.const(20))
    before, after = apply("RewriteUnsafeSelect", tir.PrimFunc([a.buffer, b.buffer], ib.get()))
    seen = []
    tir.stmt_functor.post_order_visit(after["f"].body, lambda e: seen.append(e))
    selects = [e for e in seen if isinstance(e, tir.Select)]
    assert len(selects) == 1 and selects[0].true_value.value == 10
    assert any(isinstance(e, tir.Call) and e.op.name == "tir.if_then_else" for e in seen)
    same(before, after, np.zeros(4, "int64"), np.arange(4))
    assert run(after, np.zeros(4, "int64"), np.arange(5, 9))[0].tolist() == [19, 25, 26, 17]


def scaled(shape=("n",)):
    """A[i] = A[i] * 2 over a size that is no parameter."""
    n = te.size_var("n")
    a = tir.decl_buffer((n,), "float32", "A")
    i = tir.Var("i")
    return tir.PrimFunc([a], tir.For(i, 0, n, 0, tir.BufferStore(a, a[i] * 2.0, [i])))


def test_make_packed_api():
    before, after = apply("MakePackedAPI", scaled())
    assert sorted(v.name_hint for v in after.get_global_vars()) == ["baton_call_f", "f"]
    assert after["baton_call_f"].attrs["calling_conv"] == 1 and len(after["f"].params) == 2
    same(before, after, np.arange(5, dtype="float32"))
    again = tir.transform.MakePackedAPI()(after)
    assert again.same_as(after)
    with pytest.raises(baton.error.UnsupportedError, match="num_unpacked_params is 2; all parameters are packed"):
        tir.transform.MakePackedAPI(2)


def test_make_unpacked_api():
    func = scaled().with_attr("target", baton.target.Target("llvm"))
    _, after = apply("MakeUnpackedAPI", func.with_attr("global_symbol", "f"))
    made = after["f"]
    assert [(p.name, str(p.dtype)) for p in made.params] == [("arg0", "handle"), ("arg1", "int32")] and len(made.buffer_map) == 0
    marks = made.body, made.body.body
    assert [(m.node.value, m.attr_key, m.value.value) for m in marks] == [("default", "device_id", 0), ("default", "device_type", 1)]
    assert tir.analysis.verify_well_formed(made)
    for without, name in ((func, "global_symbol"), (scaled().with_attr("global_symbol", "f"), "target")):
        with pytest.raises(baton.error.CompileError, match=f"the {name} attribute"):
            tir.transform.MakeUnpackedAPI()(baton.IRModule({"f": without}))


def test_verify_memory():
    """Of a device's function only what is in parallel loops touches memory."""
    device = baton.target.Target("opencl")
    for kind, legal in ((0, False), (1, True)):
        a, i = tir.decl_buffer((4,), "float32", "A"), tir.Var("i")
        func = tir.PrimFunc([a], tir.For(i, 0, 4, kind, tir.BufferStore(a, a[i] * 2.0, [i])))
        assert tir.analysis.verify_memory(func)
        on_device = func.with_attr("target", device)
        assert tir.analysis.verify_memory(on_device) == legal
        with device:
            assert tir.analysis.verify_memory(func) == legal
        assert tir.analysis.verify_memory(on_device.with_attr("calling_conv", 2)), "a kernel already"
        if not legal:
            with pytest.raises(baton.error.CompileError, match="`f`: buffer `A` is (read|written) outside of parallel loops; mark a loop"):
                tir.transform.VerifyMemory()(module(on_device))
        else:
            mod = module(on_device)
            assert tir.transform.VerifyMemory()(mod).same_as(mod)


def test_verify_ssa():
    a, i = tir.decl_buffer((4,), "float32", "A"), tir.Var("i")
    loop = tir.For(i, 0, 4, 0, tir.BufferStore(a, a[i] * 2.0, [i]))
    assert tir.analysis.verify_ssa(tir.PrimFunc([a], loop))
    twice = tir.PrimFunc([a], tir.SeqStmt([loop, loop]))
    assert not tir.analysis.verify_ssa(twice) and tir.analysis.verify_well_formed(twice)
    k = tir.Var("k")
    assert not tir.analysis.verify_ssa(tir.PrimFunc([a], tir.SeqStmt([tir.LetStmt(k, tir.const(1), loop), tir.LetStmt(k, tir.const(2), tir.Evaluate(k))])))


def test_instrument_bound_checkers():
    a, i, n = tir.decl_buffer((4,), "float32", "A"), tir.Var("i"), tir.Var("n")
    func = tir.PrimFunc([a, n], tir.For(i, 0, n, 0, tir.BufferStore(a, a[i] * 2.0, [i])))
    before, after = apply("InstrumentBoundCheckers", func)
    same(before, after, np.arange(4, dtype="float32"), 4)
    with pytest.raises(baton.TVMError, match="an index leaves buffer `A`"):
        run(after, np.arange(4, dtype="float32"), 5)
    asserts = []
    tir.stmt_functor.post_order_visit(tir.transform.SkipAssert()(after)["f"].body, lambda s: asserts.append(isinstance(s, tir.AssertStmt)))
    assert not any(asserts)


def test_filter():
    mod = baton.IRModule({"f": scaled().with_attr("global_symbol", "f"), "g": scaled().with_attr("global_symbol", "g")})
    out = tir.transform.Filter(lambda func: func.attrs["global_symbol"] == "g")(mod)
    assert [v.name_hint for v in out.get_global_vars()] == ["g"] and len(mod) == 2


def test_double_buffers_compile():
    """The documented use: built by tir.ir_builder, filled under the mark, used behind it."""
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    a, c = ib.pointer("float32", "A"), ib.pointer("float32", "C")
    with ib.for_range(0, n) as i:
        b = ib.allocate("float32", 4, name="B")
        with ib.new_scope():
            ib.scope_attr(b.asobject(), "double_buffer_scope", 1)
            with ib.for_range(0, 4) as j:
                b[j] = a[i * 4 + j]
        with ib.for_range(0, 4) as j:
            c[i * 4 + j] = b[j] + 1.0
    func = tir.PrimFunc([a.buffer, c.buffer, n], ib.get())
    for split in (1, 2, 3):
        before, after = apply("InjectDoubleBuffer", func, {"tir.InjectDoubleBuffer": {"split_loop": split}})
        body = after["f"].body
        assert isinstance(body, tir.Allocate) and int(body.buffer.shape[0]) == 8
        for rounds in (0, 1, 2, 5):
            same(before, after, np.arange(20, dtype="float32"), np.zeros(20, "float32"), rounds)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tir.transform.NarrowDataType(24), "target_bits is 24; it is 16, 32 or 64"),
        (lambda: tir.transform.HoistIfThenElse("all"), 'variant is "all"; it is "basic", or nothing'),
        (lambda: tir.transform.StorageFlatten(48), "cache_line_size is 48; it is a power of 2 up to 64"),
        (lambda: tir.transform.InjectCopyIntrin("memcpy", lambda *a: None), "copies are loops"),
        (lambda: baton.transform.PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": -1}}), "split_loop"),
    ],
)
def test_options_that_cannot_be(make, message):
    with pytest.raises(baton.TVMError, match=message):
        make()


def test_narrow_data_type_compiles():
    a, b = (tir.decl_buffer((64,), "float32", name) for name in "AB")
    i, j = tir.Var("i", "int64"), tir.Var("j", "int64")
    index = i * 8 + j
    func = tir.PrimFunc(
        [a, b], tir.For(i, 0, 8, 0, tir.For(j, 0, 8, 0, tir.IfThenElse(index < 60, tir.BufferStore(b, a[tir.floormod(index * 5, 64)], [index]))))
    )
    for bits in (16, 32):
        before = module(func)
        after = tir.transform.NarrowDataType(bits)(before)
        nodes = []
        tir.stmt_functor.post_order_visit(after["f"].body, nodes.append)
        seen = [(type(e).__name__, str(getattr(e, "dtype", ""))) for e in nodes]
        assert ("Mul", f"int{bits}") in seen and ("Mul", "int64") not in seen
        same(before, after, np.arange(64, dtype="float32"), np.zeros(64, "float32"))
    assert tir.transform.NarrowDataType(64)(before).same_as(before)
