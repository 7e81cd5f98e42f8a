# SPDX-License-Identifier: Apache-2.0
"""Schedules, tensors and analyzers besides loops: groups, attributes of loops, pointers, errors."""

import numpy as np
import pytest

import baton as tvm
from baton import arith, te, tir

RNG = np.random.default_rng(6)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def run(s, args, *arrays):
    out = tvm.nd.array(np.zeros([int(d) for d in args[-1].shape], str(args[-1].dtype)))
    tvm.build(s, args, "llvm")(*map(tvm.nd.array, arrays), out)
    return out.numpy()


def test_a_group_within_a_loop():
    x = te.placeholder((4, 5), name="x")
    x1 = te.compute((4, 5), lambda i, j: x[i, j] + 1, name="x1")
    x2 = te.compute((4, 5), lambda i, j: x1[i, j] * 2, name="x2")
    y = te.compute((4, 5), lambda i, j: x[i, j] * 0, name="y")
    x3 = te.compute((4, 5), lambda i, j: x2[i, j] - 1 + y[i, j], name="x3")
    s = te.create_schedule(x3.op)
    group = s.create_group(outputs=x2, inputs=x, include_inputs=True)
    assert [stage.op.name for stage in group.stages] == ["x1", "x2"]
    assert [stage.op.name for stage in s.create_group(outputs=x3, inputs=x2).stages] == ["x3"]
    group.compute_at(s[x3], x3.op.axis[0])
    data = f32(4, 5)
    np.testing.assert_allclose(run(s, [x, x3], data), (data + 1) * 2 - 1, rtol=1e-5)
    group.compute_root()
    np.testing.assert_allclose(run(s, [x, x3], data), (data + 1) * 2 - 1, rtol=1e-5)


def test_attributes_of_loops():
    m, n = te.size_var("m"), te.size_var("n")
    A = te.placeholder((m, n), name="A")
    T = te.compute((m, n), lambda i, j: A[i, j])
    s = te.create_schedule(T.op)
    xo, yo, xi, yi = s[T].tile(T.op.axis[0], T.op.axis[1], 10, 5)
    s[T].vectorize(yi)
    s[T].unroll(xi)
    s[T].parallel(xo)
    s[T].pragma(xo, "pragma1")
    s[T].pragma(xo, "pragma2", 3)
    attrs = s[T].iter_var_attrs
    assert attrs[xi].iter_type == tir.IterVar.Unrolled and attrs[yi].iter_type == tir.IterVar.Vectorized and attrs[xo].iter_type == tir.IterVar.Parallelized
    assert [k.value for k in attrs[xo].pragma_keys] == ["pragma1", "pragma2"] and attrs[xo].pragma_values[1].value == 3 and yo not in attrs


def test_a_loop_of_a_tensor_without_axes():
    A = te.compute((), lambda: tir.const(3.0))
    s = te.create_schedule(A.op)
    fused = s[A].fuse()
    assert tuple(s[A].leaf_iter_vars) == (fused,) and isinstance(s[A].relations[0], te.schedule.Singleton)
    assert run(s, [A]) == 3


def test_index_by_index():
    A = te.placeholder((2, 3, 4), name="A")
    B = te.compute((2, 3, 4), lambda i, j, k: A[i][j][k] + A[i, j][k])
    data = f32(2, 3, 4)
    np.testing.assert_allclose(run(te.create_schedule(B.op), [A, B], data), 2 * data)
    assert A[0][0][0].astype("float16").dtype == "float16"


def test_a_pointer_into_the_middle():
    A = te.placeholder((4, 4), name="A")

    def copy(ins, outs):
        return tir.Evaluate(tir.call_extern("int32", "memcpy", outs[0].access_ptr("w"), ins[0].access_ptr("r", offset=8), 32))

    B = te.extern((2, 4), [A], copy, name="B", dtype="float32")
    data = f32(4, 4)
    assert (run(te.create_schedule(B.op), [A, B], data) == data[2:]).all()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda s, T: s[T].reorder(T.op.axis[0], T.op.axis[0]),
        lambda s, T: s[T].fuse(),
        lambda s, T: s[T].split(T.op.axis[0], factor=0),
        lambda s, T: s[T].compute_inline(),
        lambda s, T: tvm.lower(s, [T]),
    ],
)
def test_mistakes_are_errors_of_the_compiler(mistake):
    A = te.placeholder((4, 4), name="A")
    T = te.compute((4, 4), lambda i, j: A[i, j])
    with pytest.raises(tvm.error.TVMError):
        mistake(te.create_schedule(T.op), T)


def test_bounds_on_one_side():
    analyzer, x, y = arith.Analyzer(), te.var("x"), te.var("y")
    analyzer.update(x, arith.ConstIntBound(-5, arith.ConstIntBound.POS_INF))
    analyzer.update(y, arith.ConstIntBound(arith.ConstIntBound.NEG_INF, 7))
    assert analyzer.const_int_bound(x).min_value == -5 and analyzer.const_int_bound(y).max_value == 7
    assert analyzer.can_prove(x + 5 >= 0) and analyzer.can_prove(y < 8) and not analyzer.can_prove(x < 100)


def test_the_steps_of_lowering():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 4)
    s[B].vectorize(inner)
    statement = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    mod = tvm.IRModule.from_expr(te.schedule.SchedulePostProcToPrimFunc([A, B], statement, None))
    for one in (tir.transform.StorageFlatten(64), tir.transform.VectorizeLoop(), tir.transform.Simplify(), tir.transform.UnrollLoop()):
        mod = one(mod)
    out = tvm.nd.empty((16,))
    tvm.build(mod, target="llvm")(tvm.nd.array(np.arange(16, dtype="float32")), out)
    assert (out.numpy() == np.arange(16) + 1).all()
    assert te.schedule.PostDFSOrder([B.op])[0].same_as(A.op) and te.schedule.CreateReadGraph([B.op])[B.op] == [A] and te.schedule.VerifyCompactBuffer(statement)


def test_random_numbers_and_other_dtypes():
    from baton import relay
    from baton.contrib import random

    for made, low, high in ((random.uniform(2, 4, (30, 30)), 2, 4), (random.randint(-3, 5, (30, 30)), -3, 5), (random.normal(100, 1, (30, 30)), 90, 110)):
        got = run(te.create_schedule(made.op), [made])
        assert low <= got.min() < got.max() < high and got.dtype == made.dtype
    x = relay.var("x", shape=(2,))
    func = relay.frontend.ChangeDatatype("float32", "float64").visit(relay.Function([x], x + relay.const(1.0)))
    assert relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"].ret_type == relay.TensorType((2,), "float64")
