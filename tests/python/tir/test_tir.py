# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs and tensor expressions from Python."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir


def test_placeholder():  # RF-003, RF-004
    for make in (tvm.placeholder, te.placeholder):
        x = make((3, 4), name="x")
        assert x.op.name == "x" and x.name == "x" and x.dtype == "float32" and [int(d) for d in x.shape] == [3, 4]
        assert x.value_index == 0 and x.ndim == 2


def test_arithmetic_folds():
    x = tir.Var("x")
    assert x.dtype == "int32" and x.name == "x"
    assert (x + 0).same_as(x) and int(tir.const(2) * 3) == 6 and (x + 1).b == 1
    assert isinstance(x + x, tir.Add) and isinstance(x // 2, tir.FloorDiv) and isinstance(x % 3, tir.FloorMod) and isinstance(x < 3, tir.LT)
    assert isinstance(1 - x, tir.Sub) and isinstance(-x, tir.PrimExpr) and isinstance(tir.min(x, 3), tir.Min)
    assert x.astype("float32").dtype == "float32" and tir.const(1.5).dtype == "float32" and tir.const(True).dtype == "bool"
    assert int(tir.const(2**62)) == 2**62
    with pytest.raises(TypeError, match="floor"):
        x / 2
    with pytest.raises(ValueError, match="no truth"):
        bool(x + 1)
    with pytest.raises(tvm.Error):
        tir.IntImm("int8", 1000)


def test_equality_of_expressions():
    x, y = tir.Var("x"), tir.Var("x")
    assert x == x and not x == y and x != y and tir.const(2) == 2 and tir.const(2) != 3 and [tir.const(1), x] == [1, x]
    assert hash(tir.const(2)) == hash(2) and len({x, y}) == 2
    assert isinstance((x == y).asobject(), tir.EQ)
    assert isinstance(tir.all(x == 1, y > 2), tir.And)
    assert tir.analysis.expr_deep_equal(x + 1, x + 1) and not tir.analysis.expr_deep_equal(x + 1, y + 1)
    tvm.testing.assert_prim_expr_equal(x + 1, x + 1)


def test_nodes():  # IR-002
    x = tir.Var("x", "float32")
    call = tir.exp(x)
    assert isinstance(call, tir.Call) and call.op.name == "tir.exp" and call.args[0].same_as(x)
    assert tir.StringImm("a").value == "a" == tir.StringImm("a")
    assert tir.Select(x > 0.0, x, 0.0).dtype == "float32"
    assert tir.Ramp(0, 1, 4).dtype == "int64x4" and tir.Broadcast(x, 8).dtype == "float32x8"
    assert float(tir.max_value("float16")) == 65504
    with pytest.raises(tvm.Error):
        tir.Add(x, tir.Var("i"))


def test_statements_and_functions():
    a, b = tir.decl_buffer((8,), "float32", "A"), tir.decl_buffer((8,), "float32", "B")
    i = tir.Var("i")
    body = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(b, a[i] * 2.0, [i]))
    f = tir.PrimFunc([a, b], body).with_attr("global_symbol", "double")
    assert isinstance(f, tir.PrimFunc) and len(f.params) == 2 and f.body.loop_var.same_as(i) and f.attrs["global_symbol"] == "double"
    seen = []
    tir.stmt_functor.post_order_visit(f.body, lambda n: seen.append(type(n).__name__))
    assert seen[-1] == "For" and "BufferStore" in seen and "Mul" in seen
    j = tir.Var("j")
    assert tir.stmt_functor.substitute(i + 1, {i: j}).a.same_as(j)
    mod = tvm.IRModule({"double": f})
    names = []

    @tir.transform.prim_func_pass(opt_level=0)
    def see(func, mod, ctx):
        names.append(func.attrs["global_symbol"])
        return func

    assert isinstance(see, tir.transform.PrimFuncPass) and see(mod)["double"].same_as(f) and names == ["double"]
    assert tir.stmt_list(tir.stmt_seq(body, body))[1].same_as(body)


def test_tensor_expressions():
    n, m = 4, 6
    a, b = te.placeholder((n, m), name="A"), te.placeholder((m,), name="B")
    c = te.compute((n, m), lambda i, j: a[i, j] + b[j], name="C")
    assert c.op.name == "C" and [int(d) for d in c.shape] == [4, 6] and len(c.op.axis) == 2
    k = te.reduce_axis((0, m), "k")
    s = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="S")
    assert s.dtype == "float32" and isinstance(s.op, te.ComputeOp)
    assert te.compute((n, m), lambda i, j: a[i][j]).dtype == "float32"
    both = te.compute((n,), lambda i: (a[i, 0], a[i, 1]))
    assert len(both) == 2
    with pytest.raises(ValueError, match="fcompute takes 1 indices, the shape has 2"):
        te.compute((n, m), lambda i: 1.0)
    with pytest.raises(TypeError, match="an index is"):
        a["x", 0]
    f = te.create_prim_func([a, b, c])
    assert isinstance(f, tir.PrimFunc) and len(f.params) == 3


@pytest.mark.parametrize("high, largest", [(2147483647.0, 2147483647), (2147483520.0, 2147483520), (100.0, 100)])
def test_clipped_vectors_become_integers_as_numbers_do(high, largest):
    """2147483647 is 2147483648 in float32, which int32 does not have: the nearest limit is given."""
    x = te.placeholder((32,), name="x")
    y = te.compute((32,), lambda i: tir.Cast("int32", tir.Min(tir.Max(x[i], tir.FloatImm("float32", -5.0)), tir.FloatImm("float32", high))), name="y")
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[0], 8)[1])
    given = np.tile(np.array([3e9, -3e9, np.nan, 7.9], "float32"), 8)
    got = tvm.nd.empty((32,), "int32")
    tvm.build(s, [x, y], "llvm")(tvm.nd.array(given), got)
    assert got.numpy()[:4].tolist() == [largest, -5, 0, 7]
