# SPDX-License-Identifier: Apache-2.0
"""Passes over loop programs: what they write, and that it computes the same."""

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
