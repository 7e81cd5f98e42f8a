# SPDX-License-Identifier: Apache-2.0
"""Programs that once gave a wrong result or stopped with an internal error, one test each."""

import numpy as np
import pytest

import baton as tvm
from baton import relay, te

KINDS = ["debug", "graph", "aot", "vm"]


def f32(*values):
    return np.array(values, "float32")


def run(kind, func, *args):
    mod = func if isinstance(func, tvm.IRModule) else tvm.IRModule.from_expr(func)
    return relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate()(*args)


def subtraction_of_one_name():
    x, y = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    return relay.Function([x, y], x - y)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_of_one_name_have_values_of_their_own(kind):
    np.testing.assert_array_equal(run(kind, subtraction_of_one_name(), f32(3, 4), f32(1, 1)).numpy(), [2, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_of_two_parameters_binds_none(kind):
    evaluate = relay.create_executor(kind, tvm.IRModule.from_expr(subtraction_of_one_name()), tvm.cpu(), "llvm").evaluate()
    with pytest.raises(TypeError, match="2 parameters `x`"):
        evaluate(f32(1, 2), x=f32(1, 2))


def test_bind_params_by_name_refuses_a_name_of_two_parameters():
    with pytest.raises(ValueError, match="several parameters `x`"):
        relay.build_module.bind_params_by_name(subtraction_of_one_name(), {"x": f32(1, 2)})


def test_tags_tell_the_constructors_of_a_module_apart():
    mod = tvm.IRModule()
    relay.prelude.Prelude(mod)
    constructors = [c for data in mod.type_definitions.values() for c in data.constructors]
    assert len({c.tag for c in constructors}) == len(constructors) > 4
    for constructor in constructors:
        assert mod.get_constructor(constructor.tag).same_as(constructor)


def test_constructors_made_in_python_have_tags():
    mod = tvm.IRModule()
    for name in ("First", "Second"):
        data = relay.GlobalTypeVar(name)
        mod[data] = relay.TypeData(data, [], [relay.Constructor(f"{name}{i}", [], data) for i in range(2)])
    tags = [c.tag for name in ("First", "Second") for c in mod.get_type(name)[1:]]
    assert len(set(tags)) == 4 and min(tags) >= 0
    x = relay.Var("x", relay.TypeCall(mod.get_global_type_var("Second"), []))
    mod["main"] = relay.Function(
        [x], relay.Match(x, [relay.Clause(relay.PatternConstructor(c), relay.const(i)) for i, c in enumerate(mod.get_type("Second")[1:])])
    )
    mod["pick"] = relay.Function([], mod["main"](mod.get_type("Second")[2]()))
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate(mod.get_global_var("pick"))().numpy() == 1


@pytest.mark.parametrize("groups", [1, 2])
def test_multiplications_of_transposed_convolutions(groups):
    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 6 // groups, 3, 3))
    y = relay.nn.conv2d_transpose(x, w, channels=6, kernel_size=(3, 3), groups=groups)
    func = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], y)))["main"]
    assert relay.analysis.get_total_mac_number(func) == 1 * 6 * 10 * 10 * 3 * 3 * 4 // groups


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sparse_reshape_keeps_dtypes(dtype):
    indices, before, after = relay.var("i", shape=(3, 2), dtype=dtype), relay.var("p", shape=(2,), dtype="int64"), relay.var("n", shape=(2,), dtype=dtype)
    func = relay.Function([indices, before, after], relay.sparse_reshape(indices, before, after).astuple())
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"].body.checked_type
    assert [t.dtype for t in typed.fields] == [dtype, dtype]
    got = run("graph", func, np.array([[0, 1], [1, 2], [3, 0]], dtype), np.array([4, 3]), np.array([2, -1], dtype))
    np.testing.assert_array_equal(got[0].numpy(), [[0, 1], [0, 5], [1, 3]])
    np.testing.assert_array_equal(got[1].numpy(), [2, 6])


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_reverse_sequence_with_lengths_outside(kind):
    x, n = relay.var("x", shape=(4, 3)), relay.var("n", shape=(3,), dtype="int32")
    data = np.arange(12, dtype="float32").reshape(4, 3)
    got = run(kind, relay.Function([x, n], relay.reverse_sequence(x, n, 0, 1)), data, np.array([9, -3, 2], "int32")).numpy()
    np.testing.assert_array_equal(got[:, 0], data[::-1, 0])
    np.testing.assert_array_equal(got[:, 1], data[:, 1])
    np.testing.assert_array_equal(got[:, 2], [5, 2, 8, 11])


@pytest.mark.parametrize("key", ["identity", "variable", "value"])
def test_functions_whose_attributes_name_their_variables_are_equal(key):
    def make(name, other=False):
        x, y = relay.var(name, shape=(2,)), relay.var("y", shape=(2,))
        named = y if other else x
        attr = {"identity": lambda: {named.vid: 1}, "variable": lambda: {named: 1}, "value": lambda: {"of": named.vid}}[key]()
        return relay.Function([x, y], x + y).with_attr("Names", attr)

    a, b, renamed, other = make("x"), make("x"), make("z"), make("x", other=True)
    for same in (b, renamed):
        assert tvm.ir.structural_equal(a, same)
        assert tvm.ir.structural_hash(a) == tvm.ir.structural_hash(same)
    assert not tvm.ir.structural_equal(a, other)


def test_cache_write_of_a_combiner_that_uses_the_axis():
    a = te.placeholder((8, 5), name="A")
    k = te.reduce_axis((0, 5), "k")

    def weighted(i):
        total = te.comm_reducer(lambda x, y: x + y * (i + 1).astype("float32"), lambda t: tvm.tir.const(0, t))
        return total(a[i, k], axis=k)

    b = te.compute((8,), weighted, name="B")
    schedule = te.create_schedule(b.op)
    schedule.cache_write(b, "local")
    data, out = np.arange(40, dtype="float32").reshape(8, 5), tvm.nd.empty((8,))
    tvm.build(schedule, [a, b], "llvm")(tvm.nd.array(data), out)
    np.testing.assert_allclose(out.numpy(), data.sum(1) * np.arange(1, 9))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bound", [False, True], ids=["called", "bound"])
def test_primitive_functions_may_hold_arrays(kind, bound):
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    kernel = relay.Function([x], relay.exp(x + relay.const(f32(0, 1, 2))) * relay.const(f32(1, 2, 3)))
    kernel = kernel.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    if bound:
        f = relay.Var("f")
        body = relay.Let(f, kernel, relay.Call(f, [y]) + relay.Call(f, [relay.negative(y)]))
    else:
        body = relay.Call(kernel, [y])
    data = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    want = np.exp(data + f32(0, 1, 2)) * f32(1, 2, 3)
    if bound:
        want = want + np.exp(f32(0, 1, 2) - data) * f32(1, 2, 3)
    np.testing.assert_allclose(run(kind, relay.Function([y], body), data).numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("like", ["zeros_like", "ones_like"])
def test_a_constant_that_follows_a_product_is_stored(like):
    """What follows takes no operation, and is not nothing: found by the symbolic programs of the fuzzer."""
    mod = relay.transform.InferType()(
        relay.fromtext(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 3), float32], %w: Tensor[(5, 3), float32]) {{ {like}(nn.dense(%x, %w, units=5)) }}\n')
    )
    x, w = np.ones((2, 3), "float32"), np.ones((5, 3), "float32")
    got = relay.create_executor("vm", mod).evaluate()(x, w).numpy()
    np.testing.assert_array_equal(got, getattr(np, like)(got))
