# SPDX-License-Identifier: Apache-2.0
"""What introductions to tensor expressions do: small programs as people write them first."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te, topi


def test_a_pass_of_ones_own():
    """Loops whose number of rounds is a multiple of eight become vectors of eight."""
    n = tvm.tir.const(128, "int32")
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")
    sch = te.create_schedule(c.op)
    found = []

    def find_width8(op):
        if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
            found.append(op)

    def vectorize8(op):
        if op in found:
            lo, li = te.var(op.loop_var.name + ".outer"), te.var(op.loop_var.name + ".inner")
            body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: lo * 8 + li})
            return tvm.tir.For(lo, 0, op.extent.value // 8, tvm.tir.ForKind.SERIAL, tvm.tir.For(li, 0, 8, tvm.tir.ForKind.VECTORIZED, body))
        return None

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def vectorize(f, mod, ctx):
        tvm.tir.stmt_functor.post_order_visit(f.body, find_width8)
        return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, vectorize8, ["tir.For"])) if found else f

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        text = str(tvm.lower(sch, [a, b, c]))
        made = tvm.build(sch, [a, b, c])
    assert ":8]" in text and ":8]" not in str(tvm.lower(sch, [a, b, c]))  # c[i0.outer*8:8] is eight elements from there on
    x, y = tvm.nd.array(np.arange(128, dtype="float32")), tvm.nd.empty((128,))
    made(x, x, y)
    assert (y.numpy() == 2 * x.numpy()).all()


def test_operators_on_tensors():
    a, b = te.placeholder((4, 3, 3), name="a"), te.placeholder((3, 3), name="b")
    c, d = a + b, a * b
    e = topi.elemwise_sum([c, d])
    g = topi.sum(1.0 - e / 2.0 + -c)
    s = te.create_schedule(g.op)
    x, y = np.random.default_rng(0).standard_normal((4, 3, 3)).astype("float32"), np.random.default_rng(1).standard_normal((3, 3)).astype("float32")
    out = tvm.nd.empty([int(n) for n in g.shape])
    tvm.build(s, [a, b, g])(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), np.sum(1 - (x + y + x * y) / 2 - (x + y)), rtol=1e-4)
    with pytest.raises(TypeError):
        a + "one"


def test_several_results():
    m, n = te.var("m"), te.var("n")
    first, second = te.placeholder((m, n), name="A0"), te.placeholder((m, n), name="A1")
    plus, times = te.compute((m, n), lambda i, j: (first[i, j] + 2, second[i, j] * 3), name="B")
    s = te.create_schedule(plus.op)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    out = [tvm.nd.empty((2, 3)) for _ in range(2)]
    tvm.build(s, [first, second, plus, times])(tvm.nd.array(x), tvm.nd.array(x), *out)
    assert (out[0].numpy() == x + 2).all() and (out[1].numpy() == x * 3).all()


def test_statements_and_functions_of_python_as_tensors():
    A = te.placeholder((8,), name="A")

    @tvm.register_func("test.tutorial.add_one", override=True)
    def add_one(x, y):
        tvm.nd.array(x.numpy() + 1).copyto(y)

    i = te.var("i")
    for make in (
        lambda ins, outs: tvm.tir.call_packed("test.tutorial.add_one", ins[0], outs[0]),
        lambda ins, outs: tvm.tir.For(i, 0, 8, tvm.tir.ForKind.SERIAL, tvm.tir.BufferStore(outs[0], ins[0][i] + 1.0, [i])),
    ):
        B = te.extern((8,), [A], make, name="B")
        C = te.compute((8,), lambda i, B=B: B[i] * 2.0, name="C")
        out = tvm.nd.empty((8,))
        for made in (tvm.build([A, C]), tvm.build(te.create_schedule(C.op), [A, C])):
            made(tvm.nd.array(np.arange(8, dtype="float32")), out)
            assert (out.numpy() == 2 * (np.arange(8) + 1)).all()
            out.copyfrom(np.zeros(8, "float32"))


def test_quantized_models_as_integers():
    """The way from a model with simulated quantization to one in integers, as far as its passes go."""
    x, w = relay.var("x", shape=(1, 8)), relay.const(np.random.default_rng(0).standard_normal((4, 8)).astype("float32"))
    q = relay.qnn.op
    fake = q.quantize(relay.nn.dense(q.dequantize(q.quantize(x, 0.05, 0), 0.05, 0), q.dequantize(q.quantize(w, 0.02, 0), 0.02, 0)), 0.1, 0)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(fake))
    whole = relay.transform.FakeQuantizationToInteger()(mod)
    assert relay.analysis.list_op_freqs(whole) == {"qnn.quantize": 2, "qnn.dense": 1, "qnn.requantize": 1}
    data = np.random.default_rng(1).standard_normal((1, 8)).astype("float32")
    lib = relay.build(whole, target="llvm")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.set_input("x", data)
    run.run()
    want = relay.create_executor("debug", mod).evaluate()(data).numpy()
    assert np.abs(run.get_output(0).numpy().astype("int32") - want).max() <= 1
