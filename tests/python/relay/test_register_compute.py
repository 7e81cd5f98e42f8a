# SPDX-License-Identifier: Apache-2.0
"""Operators whose computation a program says in tensor expressions."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te


def operator(name, f, inputs=1, relation="Identity", pattern=None):
    op = relay.op.op.register(name, "An operator of this test.")
    op.set_num_inputs(inputs)
    op.add_type_rel(relation) if isinstance(relation, str) else op.add_type_rel(name, relation)
    if pattern is not None:
        relay.op.op.register_pattern(name, pattern)
    relay.op.register_compute(name, f)
    return lambda *args: relay.Call(op, list(args), None)


def triple(attrs, inputs, out_type):
    x = inputs[0]
    return te.compute(x.shape, lambda *i: x(*i) * tvm.tir.const(3, x.dtype), name="triple")


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
@pytest.mark.parametrize("pattern", [None, relay.op.OpPattern.ELEMWISE])
def test_it_runs_and_fuses(kind, pattern):
    f = operator(f"test.triple_{kind}_{pattern}", triple, pattern=pattern)
    x = relay.var("x", shape=(3, 4))
    expr = relay.tanh(f(relay.exp(x)))
    a = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    got = relay.create_executor(kind, tvm.IRModule.from_expr(relay.Function([x], expr))).evaluate()(a).numpy()
    np.testing.assert_allclose(got, np.tanh(3 * np.exp(a)), rtol=1e-5)


def test_a_reduction_and_several_inputs():
    def rows(attrs, inputs, out_type):
        x, y = inputs
        k = te.reduce_axis((0, x.shape[1]), "k")
        return [te.compute((x.shape[0],), lambda i: te.sum(x[i, k] * y[i, k], axis=k))]

    f = operator("test.rows", rows, 2, lambda types, attrs: relay.TensorType([types[0].shape[0]], types[0].dtype))
    x, y = relay.var("x", shape=(5, 7)), relay.var("y", shape=(5, 7))
    a, b = np.random.default_rng(1).standard_normal((2, 5, 7)).astype("float32")
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], f(x, y))), target="llvm")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.set_input("x", a)
    run.set_input("y", b)
    run.run()
    np.testing.assert_allclose(run.get_output(0).numpy(), (a * b).sum(1), rtol=1e-5)


def test_it_folds():
    f = operator("test.folded", triple)
    folded = relay.transform.FoldConstant()(relay.transform.InferType()(tvm.IRModule.from_expr(f(relay.const([1.0, 2.0])))))
    assert folded["main"].body.data.numpy().tolist() == [3, 6]


def test_what_is_wrong_says_so():
    with pytest.raises(ValueError, match="`add` is built in"):
        relay.op.register_compute("add", triple)
    operator("test.once", triple)
    with pytest.raises(ValueError, match="says already"):
        relay.op.register_compute("test.once", triple)
    for register in (relay.op.register_strategy, relay.op.register_schedule):
        with pytest.raises(tvm.error.UnsupportedError, match="of `nn.dense`: .*register_compute"):
            register("nn.dense", None)

    def wrong(attrs, inputs, out_type):
        raise RuntimeError("no such computation")

    f = operator("test.wrong", wrong)
    with pytest.raises(RuntimeError, match="no such computation"):
        relay.create_executor("graph", tvm.IRModule.from_expr(f(relay.var("x", shape=(2,))))).evaluate()(np.ones(2, "float32"))


def test_as_a_decorator():
    op = relay.op.op.register("test.decorated", "An operator of this test.")
    op.set_num_inputs(1)
    op.add_type_rel("Identity")
    assert relay.op.register_compute("test.decorated")(triple) is triple
    x = relay.var("x", shape=(2,))
    assert relay.create_executor("graph").evaluate(relay.Function([x], relay.Call(op, [x], None)))(np.ones(2, "float32")).numpy().tolist() == [3, 3]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_nests_of_a_statement(dtype):
    """Rounds that store elements of their own may run at once; a nest that reads what it stores keeps its order."""
    n = 900_000

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, "i", dtype=dtype) as i:
            b[i] = a[i] * tvm.tir.const(2, "float32")
        with ib.for_range(0, n, "j", dtype=dtype) as j:
            b[j] = b[j] + b[0]
        return ib.get()

    f = operator(f"test.statement.{dtype}", lambda attrs, inputs, out_type: te.extern([(n,)], inputs, body, dtype="float32"))
    x = relay.var("x", shape=(n,))
    a = np.random.default_rng(2).integers(0, 100, n).astype("float32")
    a[0] = 3
    got = relay.create_executor("graph", tvm.IRModule.from_expr(relay.Function([x], f(x)))).evaluate()(a).numpy()
    np.testing.assert_array_equal(got[1:], 2 * a[1:] + 4 * a[0])
    assert got[0] == 4 * a[0]
