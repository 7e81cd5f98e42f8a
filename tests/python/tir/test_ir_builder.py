# SPDX-License-Identifier: Apache-2.0
"""tir.ir_builder: statements in order, and what the programs compute."""

import numpy as np
import pytest

import baton
from baton import te, tir


def run(func, *args, name="f"):
    """The function, compiled."""
    arrays = [baton.nd.array(a) if isinstance(a, np.ndarray) else a for a in args]
    baton.build(func.with_attr("global_symbol", name), target="llvm")[name](*arrays)
    return [a.numpy() for a in arrays if hasattr(a, "numpy")]


def test_loop_with_branches():
    """The documented example: a loop, a branch and its other side."""
    ib = tir.ir_builder.create()
    n = te.size_var("n")
    a = ib.pointer("float32", name="A")
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(ib.likely(tir.truncmod(i, 2) == 0)):
            a[i] = a[i] + 1.0
        with ib.else_scope():
            a[0] = a[i] + 2.0
    body = ib.get()
    assert isinstance(body, tir.For) and body.loop_var.name == "i"
    assert isinstance(body.body, tir.IfThenElse) and isinstance(body.body.else_case, tir.BufferStore)
    x = np.arange(5, dtype="float32")
    (got,) = run(tir.PrimFunc([a.buffer, n], body), x.copy(), 5)
    for i in range(5):
        if i % 2 == 0:
            x[i] += 1
        else:
            x[0] = x[i] + 2
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("kind", ["serial", "parallel", "unroll", "vectorize"])
def test_kinds_of_loops(kind):
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((8,), "int32", "A"))
    with ib.for_range(2, 6, kind=kind) as i:
        a[i] = a[i] * 2
    (got,) = run(tir.PrimFunc([a.buffer], ib.get()), np.arange(8, dtype="int32"))
    assert got.tolist() == [0, 1, 4, 6, 8, 10, 6, 7]


def test_let_and_allocate_reach_to_the_end_of_their_scope():
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((2, 3), "float64", "A"))
    with ib.for_range(0, 2, name="i") as i:
        t = ib.allocate("float64", 3, name="t", scope="local")
        with ib.for_range(0, 3, name="j") as j:
            t[j] = a[i, j]
        s = ib.let("s", t[0] + t[1])
        a[i, 2] = s + t[2]
    x = np.arange(6.0).reshape(2, 3)
    (got,) = run(tir.PrimFunc([a.buffer], ib.get()), x.copy())
    np.testing.assert_array_equal(got, [[0, 1, 3], [3, 4, 12]])


def test_one_index_counts_elements():
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((2, 3), "int64", "A"))
    with ib.for_range(0, 6) as i:
        a[i] = a[i] + i
    (got,) = run(tir.PrimFunc([a.buffer], ib.get()), np.zeros((2, 3), "int64"))
    assert got.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_structure():
    """Statements stand in the order in which they were said; scopes nest."""
    ib = tir.ir_builder.create()
    a = ib.pointer("int32", name="A")
    with ib.new_scope():
        ib.scope_attr(a.asobject(), "mark", 1)
        a[0] = 1
        a[1] = 2
    a[2] = 3
    body = ib.get()
    assert isinstance(body, tir.SeqStmt) and len(body) == 2
    assert isinstance(body[0], tir.AttrStmt) and body[0].attr_key == "mark" and len(body[0].body) == 2
    assert isinstance(body[1], tir.BufferStore) and body[1].value.value == 3
    assert isinstance(tir.ir_builder.create().get(), tir.Evaluate)


def test_names_are_told_apart():
    ib = tir.ir_builder.create()
    with ib.for_range(0, 2, name="i") as i, ib.for_range(0, 2, name="i") as j:
        ib.emit(i + j)
    assert (i.name, j.name) == ("i", "i_1")


def test_mistakes():
    ib = tir.ir_builder.create()
    a = ib.buffer_ptr(tir.decl_buffer((2, 3, 4), "float32", "A"))
    with pytest.raises(RuntimeError, match="right after an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match="kind is 'fast'"):
        ib.for_range(0, 2, kind="fast")
    with pytest.raises(ValueError, match="has 3 dimensions, got 2 indices"):
        a[0, 1]
    with pytest.raises(ValueError, match="holds float32, the value is int64; cast it"):
        a[0, 0, 0] = tir.const(1, "int64")
    with pytest.raises(TypeError, match="emit takes a statement"):
        ib.emit("x")
    scope = ib.if_scope(True)
    with pytest.raises(RuntimeError, match="1 scopes are still open"):
        ib.get()
    with scope:
        pass
    with pytest.raises(KeyError), ib.for_range(0, 2):
        raise KeyError("an error within a scope stays the error")
