# SPDX-License-Identifier: Apache-2.0
"""Programs from before 0.7, whose tensor expressions are names of the package itself."""

import numpy as np
import pytest

import baton as tvm


def test_a_reduction_of_any_operation():
    n, m = tvm.var("n"), tvm.var("m")
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), name="k")
    product = tvm.comm_reducer(lambda x, y: x * y, lambda dtype: tvm.const(1, dtype=dtype))
    B = tvm.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    a = np.random.default_rng(0).random((3, 4), "float32")
    out = tvm.nd.array(np.zeros(3, "float32"))
    tvm.build(tvm.create_schedule(B.op), [A, B])(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.asnumpy(), a.prod(axis=1), rtol=1e-6)


def test_borders_by_conditions():
    A = tvm.placeholder((4, 4), name="A")
    B = tvm.compute((6, 6), lambda i, j: tvm.if_then_else(tvm.any(i < 1, i >= 5, j < 1, j >= 5), tvm.min_value("float32"), A[i - 1, j - 1]), name="B")
    a = np.arange(16, dtype="float32").reshape(4, 4)
    out = tvm.nd.array(np.zeros((6, 6), "float32"))
    tvm.build(tvm.create_schedule(B.op), [A, B])(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.asnumpy(), np.pad(a, 1, constant_values=np.finfo("float32").min))


def test_a_saved_function_loads_by_the_old_module(tmp_path):
    A = tvm.placeholder((4,), name="A")
    B = tvm.compute((4,), lambda i: tvm.exp(A[i]) + tvm.sqrt(A[i]), name="B")
    tvm.build(tvm.create_schedule(B.op), [A, B]).export_library(str(tmp_path / "f.so"))
    out = tvm.nd.array(np.zeros(4, "float32"))
    tvm.module.load(str(tmp_path / "f.so"))(tvm.nd.array(np.ones(4, "float32")), out)
    np.testing.assert_allclose(out.asnumpy(), np.full(4, np.e + 1), rtol=1e-6)


def test_a_module_of_an_expression():
    x = tvm.relay.var("x", shape=(2,))
    mod = tvm.relay.Module.from_expr(tvm.relay.Function([x], tvm.relay.nn.relu(x)))
    assert "nn.relu(%x)" in tvm.relay.pretty_print(mod["main"])


def test_a_name_that_never_was_is_an_error():
    with pytest.raises(AttributeError, match="placeholders"):
        getattr(tvm, "placeholders")  # noqa: B009 - the name is the test
