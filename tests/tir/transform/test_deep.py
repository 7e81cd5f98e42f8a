# SPDX-License-Identifier: Apache-2.0
"""Every pass over PrimFuncs takes deep and wide ones, in time that grows with the program."""

import sys
import time
from pathlib import Path

import pytest

import baton
from baton import tir
from baton._ffi import get_global_func

sys.path.insert(0, str(Path(__file__).parent))

PASSES = sorted(str(n).removeprefix("tir.") for n in get_global_func("transform.PassNames")() if str(n).startswith("tir."))
SIZE = 100_000


def _buffer():
    return tir.Buffer([64], "float32", "A")


def deep_expression(n):
    """A[i] = A[i] + (1 + (... )): n additions in each other."""
    a, i = _buffer(), tir.Var("i")
    value = tir.BufferLoad(a, [i])
    for k in range(n):
        value = tir.Add(value, tir.BufferLoad(a, [tir.const(k % 64)])) if k % 2 else tir.Mul(tir.const(2.0), value)
    return tir.PrimFunc([a], tir.For(i, tir.const(0), tir.const(64), 0, tir.BufferStore(a, value, [i])))


def deep_index(n):
    """An index of n operations on a loop's variable."""
    a, i = _buffer(), tir.Var("i")
    index = i
    for k in range(n):
        index = tir.FloorMod(tir.Add(index, tir.const(k % 7)), tir.const(64)) if k % 2 else tir.Max(index, tir.const(0))
    return tir.PrimFunc([a], tir.For(i, tir.const(0), tir.const(64), 0, tir.BufferStore(a, tir.const(1.0), [index])))


def deep_selects(n):
    a, i = _buffer(), tir.Var("i")
    value = tir.BufferLoad(a, [i])
    for k in range(n):
        value = tir.Select(tir.LT(i, tir.const(k % 64)), value, tir.const(float(k % 5)))
    return tir.PrimFunc([a], tir.For(i, tir.const(0), tir.const(64), 0, tir.BufferStore(a, value, [i])))


def wide(n):
    """n stores behind each other."""
    a = _buffer()
    stores = [tir.BufferStore(a, tir.Add(tir.BufferLoad(a, [tir.const(k % 64)]), tir.const(1.0)), [tir.const(k * 7 % 64)]) for k in range(n)]
    return tir.PrimFunc([a], tir.SeqStmt(stores))


def wide_loops(n):
    """n loops behind each other, one in four with a condition, one in four vectorised."""
    a, m = _buffer(), tir.Var("m")
    out = []
    for k in range(n):
        i = tir.Var("i")
        store = tir.BufferStore(a, tir.Cast("float32", tir.Add(i, tir.const(k % 5))), [i])
        out.append(tir.For(i, tir.const(0), tir.const(64), 2 if k % 4 == 1 else 0, tir.IfThenElse(tir.LT(m, i), store) if k % 4 == 2 else store))
    return tir.PrimFunc([a, m], tir.SeqStmt(out))


def nested(n):
    """n loops in each other, marks and bindings between."""
    a, m = _buffer(), tir.Var("m")
    body = tir.IfThenElse(tir.LT(m, tir.const(3)), tir.BufferStore(a, tir.const(1.0), [tir.const(0)]), tir.BufferStore(a, tir.const(2.0), [tir.const(0)]))
    for k in range(n):
        var = tir.Var("i")
        if k % 3 == 0:
            body = tir.For(var, tir.const(0), m, 0, body)
        elif k % 3 == 1:
            body = tir.LetStmt(var, tir.Add(m, tir.const(k)), body)
        else:
            body = tir.AttrStmt(None, "mark", tir.const(1), body)
    return tir.PrimFunc([a, m], body)


def nested_conditions(n):
    a, m = _buffer(), tir.Var("m")
    body = tir.BufferStore(a, tir.const(1.0), [tir.const(0)])
    for k in range(n):
        body = tir.IfThenElse(tir.LT(m, tir.const(k)), body, tir.Evaluate(m) if k % 2 else None)
    return tir.PrimFunc([a, m], body)


def allocations(n):
    """n allocations behind each other within one scope."""
    a = _buffer()
    body = tir.BufferStore(a, tir.const(1.0), [tir.const(0)])
    for k in range(n):
        t = tir.Buffer([4], "float32", "t")
        body = tir.Allocate(t, tir.SeqStmt([tir.BufferStore(t, tir.const(1.0), [tir.const(k % 4)]), body]))
    return tir.PrimFunc([a], body)


def parts(n):
    """n accesses of a part of a buffer that each round allocates."""
    a, i, t = _buffer(), tir.Var("i"), tir.Buffer([64, 64], "float32", "t")
    stores = [tir.BufferStore(t, tir.BufferLoad(a, [tir.const(k % 64)]), [i, tir.const(k % 32 + 8)]) for k in range(n)]
    return tir.PrimFunc([a], tir.For(i, tir.const(0), tir.const(64), 0, tir.Allocate(t, tir.SeqStmt(stores))))


def _workspaces(n, read):
    """n allocations around as many steps; each writes one and reads another."""
    a, buffers = _buffer(), [tir.Buffer([4 + k % 5], "float32", "t") for k in range(n)]
    first = [tir.BufferStore(b, tir.const(1.0), [tir.const(0)]) for b in buffers]
    body = tir.SeqStmt(
        first[:1] + [s for k in range(1, n) for s in (first[k], tir.BufferStore(a, tir.BufferLoad(buffers[read(k)], [tir.const(0)]), [tir.const(0)]))]
    )
    for b in buffers:
        body = tir.Allocate(b, body)
    return tir.PrimFunc([a], body)


def short_workspaces(n):
    """Each lives until the next is there."""
    return _workspaces(n, lambda k: k - 1)


def long_workspaces(n):
    """Half of them live at one time."""
    return _workspaces(n, lambda k: max(0, k - n // 2))


def _kernel(params, body):
    return tir.PrimFunc(params, tir.AttrStmt(_THREAD, "thread_extent", tir.const(8), body))


_THREAD = tir.Var("threadIdx.x")


def wide_kernel(n):
    """n statements by which threads exchange values, in loops and branches."""
    a, s, m = _buffer(), tir.Buffer([8], "float32", "s", "shared"), tir.Var("m")
    out = []
    for k in range(n // 4):
        write = tir.BufferStore(s, tir.const(1.0), [_THREAD])
        read = tir.BufferStore(a, tir.BufferLoad(s, [tir.Sub(tir.const(7), _THREAD)]), [_THREAD])
        both = tir.SeqStmt([write, read])
        out.append(tir.For(tir.Var("i"), tir.const(0), m, 0, both) if k % 3 == 1 else tir.IfThenElse(tir.LT(m, tir.const(k)), both, None) if k % 3 else both)
    return _kernel([a, m], tir.Allocate(s, tir.SeqStmt(out)))


def nested_kernel(n):
    """n conditions of threads, loops, marks of the same axis and bindings in each other."""
    a, s, m = _buffer(), tir.Buffer([8], "float32", "s", "shared"), tir.Var("m")
    body = tir.BufferStore(s, tir.const(1.0), [_THREAD])
    for k in range(n):
        var = tir.Var("i")
        if k % 4 == 0:
            body = tir.IfThenElse(tir.LT(_THREAD, tir.const(k)), body, None)
        elif k % 4 == 1:
            body = tir.For(var, tir.const(0), m, 0, body)
        elif k % 4 == 2:
            body = tir.AttrStmt(tir.Var("threadIdx.x"), "thread_extent", tir.const(8), body)
        else:
            body = tir.LetStmt(var, tir.Add(m, _THREAD), body)
    return _kernel([a, m], tir.Allocate(s, body))


SHAPES = [
    deep_expression,
    deep_index,
    deep_selects,
    wide,
    wide_loops,
    nested,
    nested_conditions,
    allocations,
    parts,
    short_workspaces,
    long_workspaces,
    wide_kernel,
    nested_kernel,
]


def seconds(name, func):
    mod = baton.IRModule({"f": func.with_attr("global_symbol", "f").with_attr("target", baton.target.Target("llvm"))})
    start = time.perf_counter()
    out = getattr(tir.transform, name)()(mod)
    spent = time.perf_counter() - start
    assert len(out) >= 1
    return spent


@pytest.fixture(scope="module", params=SHAPES, ids=lambda s: s.__name__)
def programs(request):
    return request.param(SIZE), request.param(SIZE // 10)


@pytest.mark.parametrize("name", PASSES)
def test_deep_and_wide(programs, name):
    """100,000 nodes: no crash; and not the hundred times that a square would cost against 10,000."""
    large, small = programs
    spent = seconds(name, large)
    if spent > 1:
        spent = min(spent, *(seconds(name, large) for _ in range(2)))  # other work may have stood in its way
        assert spent < 30 * max(seconds(name, small), 0.01), f"{spent:.2f} s"
