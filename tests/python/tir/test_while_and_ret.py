# SPDX-License-Identifier: Apache-2.0
"""Loops without a bound, and functions that give a number."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir


def built(*params, body):
    return tvm.build(tvm.IRModule({"main": tir.PrimFunc(list(params), body)}), target="llvm")


def int_buffers(*names, size=50):
    return [tir.decl_buffer([size], "int32", name=n) for n in names]


def steps(n):
    """How many steps of Collatz's rule lead to 1."""
    count = 0
    while n > 1:
        n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
    return count


def collatz(kind):
    ib = tir.ir_builder.create()
    a, b = int_buffers("A", "B")
    x, y = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, 50, "i", kind=kind) as i:
        v = ib.allocate("int32", (1,), name="v", scope="local")
        v[0] = x[i]
        y[i] = 0
        with ib.if_scope(v[0] > 0):
            with ib.while_loop(v[0] > 1):
                with ib.if_scope(tir.truncmod(v[0], 2) == 0):
                    v[0] = tir.truncdiv(v[0], 2)
                with ib.else_scope():
                    v[0] = v[0] * 3 + 1
                y[i] += 1
    return [a, b], ib.get()


@pytest.mark.parametrize("kind", ["serial", "parallel", "vectorize"])
def test_while(kind):
    params, body = collatz(kind)
    given, out = np.arange(50, dtype="int32"), tvm.nd.array(np.zeros(50, "int32"))
    built(*params, body=body)(tvm.nd.array(given), out)
    assert out.numpy().tolist() == [steps(n) for n in given.tolist()]
    arrays = [tvm.nd.array(given), tvm.nd.array(np.zeros(50, "int32"))]
    tvm.get_global_func("tir.Interpret")(tir.PrimFunc(params, body), arrays, "together", None)
    assert arrays[1].numpy().tolist() == out.numpy().tolist()


def test_a_while_loop_asks_its_condition_anew():
    """Not even where a branch around it has asked the same."""
    (a,) = int_buffers("A")
    ib = tir.ir_builder.create()
    x = ib.buffer_ptr(a)
    with ib.if_scope(x[0] > 0), ib.while_loop(x[0] > 0):
        x[0] -= 1
    array = tvm.nd.array(np.full(50, 5, "int32"))
    built(a, body=ib.get())(array)
    assert array.numpy()[0] == 0


def test_a_while_loop_is_text_and_json():
    params, body = collatz("serial")
    func = tir.PrimFunc(params, body)
    assert "while (v[int32(0)] > int32(1)) {" in func.script()
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(func)), func)
    found = []
    tir.stmt_functor.post_order_visit(body, lambda e: found.append(e) if isinstance(e, tir.While) else None)
    assert len(found) == 1 and str(found[0].condition.dtype) == "bool"
    assert "break;" in tvm.build(tvm.IRModule({"main": tir.PrimFunc(*collatz("parallel"))}), target="opencl").get_source()


def test_ret_gives_a_number():
    x, y, z = te.var("x"), te.var("y"), te.var("z", "float32")
    assert built(x, y, body=tir.Evaluate(tir.ret(x + y)))(3, 4) == 7
    assert built(z, body=tir.Evaluate(tir.ret(z * 2.5)))(2.0) == 5.0
    assert built(body=tir.Evaluate(tir.ret(0)))() == 0
    assert built(x, y, body=tir.Evaluate(tir.ret(x < y)))(1, 2) == 1
    assert built(x, body=tir.Evaluate(tir.op.convert(0)))(1) is None


def test_nothing_runs_behind_ret(tmp_path):
    (a,) = int_buffers("A")
    x, n = te.var("x"), te.var("n")
    larger = tir.SeqStmt([tir.IfThenElse(x > n, tir.Evaluate(tir.ret(x)), None), tir.Evaluate(tir.ret(n))])
    module = built(x, n, body=larger)
    assert (module(3, 4), module(9, 4)) == (4, 9)
    module.export_library(tmp_path / "larger.so")
    assert tvm.runtime.load_module(tmp_path / "larger.so")["main"](9, 4) == 9

    ib = tir.ir_builder.create()
    values = ib.buffer_ptr(a)
    with ib.for_range(0, 50, "i") as i:
        with ib.if_scope(values[i] > n):
            ib.emit(tir.ret(i))
        values[i] = -1
    ib.emit(tir.ret(-1))
    array = tvm.nd.array(np.arange(50, dtype="int32"))
    find = built(a, n, body=ib.get())
    assert find(array, 7) == 8 and array.numpy().tolist() == [-1] * 8 + list(range(8, 50))
    assert find(array, 100) == -1 and set(array.numpy().tolist()) == {-1}

    ib = tir.ir_builder.create()
    values = ib.buffer_ptr(a)
    with ib.while_loop(True):
        values[0] += 1
        with ib.if_scope(values[0] == 9):
            ib.emit(tir.ret(values[0]))
    assert built(a, body=ib.get())(tvm.nd.array(np.zeros(50, "int32"))) == 9


def test_what_ret_refuses():
    x, y = te.var("x"), te.var("y")
    with pytest.raises(tvm.error.CompileError, match="int32 at one place and float32 at another"):
        built(x, y, body=tir.IfThenElse(x > y, tir.Evaluate(tir.ret(x)), tir.Evaluate(tir.ret(tir.const(1.0)))))
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4, kind="parallel") as i:
        ib.emit(tir.ret(i))
    with pytest.raises(tvm.error.UnsupportedError, match="within a parallel loop"):
        built(x, body=ib.get())
    callee = tvm.ir.GlobalVar("callee")
    mod = tvm.IRModule({callee: tir.PrimFunc([x], tir.Evaluate(tir.ret(x))), "caller": tir.PrimFunc([y], tir.Evaluate(callee(y)))})
    with pytest.raises(tvm.error.UnsupportedError, match="@caller calls @callee, which gives a value by tir.ret"):
        tvm.build(mod, target="llvm")
