# SPDX-License-Identifier: Apache-2.0
"""Options of PassContext for the lowering of loops: those that do something, and those that cannot be."""

import numpy as np
import pytest

import baton as tvm
from baton import te, tir


def scaled(n=64):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 16)
    s[B].vectorize(inner)
    return s, [A, B]


def kinds(func):
    found = []
    tir.stmt_functor.post_order_visit(func.body, lambda n: found.append(n.type_key))
    return found


def test_disable_vectorize():
    s, args = scaled()
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        plain, made = tvm.lower(s, args)["main"], tvm.build(s, args, "llvm")
    assert "tir.Ramp" not in kinds(plain) and "tir.Ramp" in kinds(tvm.lower(s, args)["main"])
    a, b = tvm.nd.array(np.arange(64, dtype="float32")), tvm.nd.empty((64,))
    made(a, b)
    assert (b.numpy() == 2 * a.numpy()).all()


@pytest.mark.parametrize("phase", range(4))
def test_passes_of_programs_in_each_phase(phase):
    """The pass of the tutorial: constants become others."""
    seen = []

    @tir.transform.prim_func_pass(opt_level=0)
    def threes(func, mod, ctx):
        seen.append(kinds(func))

        def change(node):
            return tir.FloatImm(node.dtype, 3.0) if node.value == 2.0 else None

        return tir.PrimFunc(func.params, tir.stmt_functor.ir_transform(func.body, None, change, ["FloatImm"]), buffer_map=func.buffer_map, attrs=func.attrs)

    s, args = scaled()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(phase, threes)]}):
        made = tvm.build(s, args, "llvm")
    a, b = tvm.nd.array(np.arange(64, dtype="float32")), tvm.nd.empty((64,))
    made(a, b)
    assert (b.numpy() == 3 * a.numpy()).all() and len(seen) == 1
    assert ("tir.Ramp" in seen[0]) == (phase >= 2)


def test_passes_of_programs_see_the_kernels_of_models():
    from baton import relay

    seen = []

    @tir.transform.prim_func_pass(opt_level=0)
    def look(func, mod, ctx):
        seen.append(func)
        return func

    x = relay.var("x", shape=(4, 5))
    with tvm.transform.PassContext(opt_level=3, config={"tir.add_lower_pass": [(1, look)]}):
        relay.build(tvm.IRModule.from_expr(relay.tanh(x) * relay.const(2.0)), target="llvm")
    assert seen


@pytest.mark.parametrize(("value", "says"), [([3], "no pair"), ([(1,)], "no pair"), ([(7, None)], "0 to 3"), ([(1, "Simplify")], "prim_func_pass")])
def test_wrong_passes_are_errors(value, says):
    s, args = scaled()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": value}), pytest.raises(ValueError, match=says):
        tvm.lower(s, args)


def test_disable_assert():
    a = tir.Buffer((4,), "float32", "A")
    func = tir.PrimFunc([a], tir.AssertStmt(a[0] > tir.const(0.0, "float32"), "the first is positive", tir.BufferStore(a, 1.0, [1])))
    out = tvm.nd.array(np.zeros(4, "float32"))
    with pytest.raises(tvm.TVMError, match="the first is positive"):
        tvm.build(func)["main"](out)
    with tvm.transform.PassContext(config={"tir.disable_assert": True}):
        tvm.build(func)["main"](out)
    assert out.numpy().tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("key", "fixed"),
    [
        ("tir.noalias", True),
        ("tir.instrument_bound_checkers", False),
        ("tir.detect_global_barrier", False),
        ("tir.is_entry_func", False),
        ("tir.usmp.enable", False),
        ("relay.FuseOps.link_params", True),
    ],
)
def test_options_that_cannot_be_otherwise(key, fixed):
    with tvm.transform.PassContext(config={key: fixed}):
        s, args = scaled()
        tvm.lower(s, args)
    with pytest.raises(tvm.error.UnsupportedError, match=f"`{key}` can only be {fixed}: "):
        tvm.transform.PassContext(config={key: not fixed})
