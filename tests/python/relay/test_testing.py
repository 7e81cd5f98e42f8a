# SPDX-License-Identifier: Apache-2.0
"""`relay.testing`: networks, natural numbers, Relay as Python programs."""

import ast

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.testing import (
    count,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    lstm,
    make_nat_expr,
    make_nat_value,
    run_as_python,
    synthetic,
    to_python,
)


@pytest.mark.parametrize(
    "module, settings, shape, count_params",
    [
        (dqn, dict(batch_size=2), (2, 18), 10),
        (dqn, dict(batch_size=2, image_shape=(84, 84, 4), layout="NHWC"), (2, 18), 10),
        (dcgan, dict(batch_size=2, ngf=4), (2, 3, 64, 64), 18),
        (dcgan, dict(batch_size=2, ngf=4, layout="NHWC"), (2, 64, 64, 3), 18),
        (densenet, dict(batch_size=1, classes=7, image_shape=(3, 32, 32)), (1, 7), 606),
        (inception_v3, dict(num_classes=5, image_shape=(3, 139, 139)), (1, 5), 472),
        (lstm, dict(iterations=3, num_hidden=4, batch_size=2), (2, 4), 12),
        (synthetic, dict(), (1, 3, 24, 12), 9),
        (synthetic, dict(input_shape=(1, 4, 8, 6)), (1, 4, 8, 6), 9),
    ],
    ids=lambda v: v.__name__.rsplit(".", 1)[-1] if hasattr(v, "__name__") else None,
)
def test_networks(module, settings, shape, count_params):
    mod, params = module.get_workload(**settings)
    assert mod["main"].ret_type.concrete_shape == shape
    assert len(params) == count_params and {p.name_hint for p in mod["main"].params} == {"data", *params}


def test_a_known_number_of_parameters():
    """What the papers' networks have: trained weights alone."""

    def trained(params):
        return sum(p.numpy().size for n, p in params.items() if not n.endswith(("mean", "var")))

    assert trained(densenet.get_workload(image_shape=(3, 64, 64), batch_size=1)[1]) == 7978856
    assert abs(trained(inception_v3.get_workload()[1]) - 23.83e6) < 0.03e6
    with pytest.raises(ValueError, match="DenseNet-1;"):
        densenet.get_workload(1)
    with pytest.raises(ValueError, match="64 by 64"):
        dcgan.get_workload(1, oshape=(3, 32, 32))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_computes_what_it_should():
    mod, params = lstm.get_workload(iterations=2, num_hidden=3)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 3)).astype("float32")
    params = {n: tvm.nd.array(rng.standard_normal(p.shape).astype("float32")) for n, p in params.items()}
    values = [tvm.nd.array(x) if p.name_hint == "data" else params[p.name_hint] for p in mod["main"].params]
    found = relay.create_executor("debug", mod=mod).evaluate()(*values)
    hidden = memory = np.zeros((1, 3), "float32")
    for i in range(2):
        w = {n.split("_", 1)[1]: p.numpy() for n, p in params.items() if n.startswith(f"step{i}_")}
        gates = np.split(x @ w["i2h_weight"].T + w["i2h_bias"] + hidden @ w["h2h_weight"].T + w["h2h_bias"], 4, axis=1)
        memory = sigmoid(gates[1]) * memory + sigmoid(gates[0]) * np.tanh(gates[2])
        hidden = sigmoid(gates[3]) * np.tanh(memory)
    np.testing.assert_allclose(found.numpy(), hidden, rtol=1e-5, atol=1e-6)


@pytest.fixture
def prelude():
    mod = tvm.IRModule()
    p = relay.prelude.Prelude(mod)
    mod.import_from_std("nat.rly")
    mod.import_from_std("nat.rly")  # twice is once
    return p


def test_natural_numbers(prelude):
    assert count(prelude, make_nat_expr(prelude, 5)) == 5 and count(prelude, make_nat_value(prelude, 0)) == 0
    double, add = prelude.mod.get_global_var("nat_double"), prelude.mod.get_global_var("nat_add")
    expr = add(double(make_nat_expr(prelude, 3)), make_nat_expr(prelude, 4))
    prelude.mod["main"] = relay.Function([], expr)
    assert count(prelude, relay.create_executor("debug", mod=prelude.mod).evaluate()()) == 10
    assert count(prelude, make_nat_value(prelude, 7)) == 7
    with pytest.raises(ValueError, match="not negative"):
        make_nat_value(prelude, -1)
    with pytest.raises(ValueError, match="no value of nat"):
        count(prelude, relay.const(1))
    with pytest.raises(ValueError, match="prelude.rly, nat.rly, gradient.rly"):
        prelude.mod.import_from_std("tables.rly")


# ---- Relay as Python

c = relay.const
INT = relay.scalar_type("int32")


def as_python(expr, mod=None):
    return run_as_python(expr, mod)


def test_operators_tuples_branches():
    assert as_python(relay.add(c(1), relay.multiply(c(2), c(3)))).numpy() == 7
    value = as_python(relay.Tuple([c(1), relay.Tuple([c(2), relay.Tuple([])])]))
    assert value[0].numpy() == 1 and value[1][0].numpy() == 2 and len(value[1][1]) == 0
    assert as_python(relay.TupleGetItem(relay.Tuple([c(1), c(2)]), 1)).numpy() == 2
    assert as_python(relay.If(relay.less(c(2), c(1)), c(10), c(20))).numpy() == 20
    parts = as_python(relay.split(c(np.arange(6.0)), 3).astuple())
    np.testing.assert_array_equal(parts[2].numpy(), [4, 5])
    joined = as_python(relay.concatenate([c([1.0]), c([2.0])], axis=0))
    np.testing.assert_array_equal(joined.numpy(), [1, 2])


def test_only_the_taken_branch_runs():
    fails = relay.Match(c(1), [])
    assert as_python(relay.If(relay.less(c(1), c(2)), c(5), fails)).numpy() == 5


def test_what_is_shared_is_computed_once_where_it_is_known():
    calls = []
    tvm.register_func("test_testing.seen", lambda: calls.append(1), override=True)
    x = relay.var("x", "int32")
    shared = relay.add(x, c(1))
    f = relay.Function([x], relay.If(relay.less(x, c(0)), shared, relay.multiply(shared, shared)))
    assert as_python(relay.Call(f, [c(-3)])).numpy() == -2 and as_python(relay.Call(f, [c(3)])).numpy() == 16


def test_closures_and_recursion():
    n, loop = relay.var("n", "int32"), relay.var("loop", relay.FuncType([INT], INT))
    body = relay.If(relay.less(n, c(10)), relay.Call(loop, [relay.add(n, c(1))]), n)
    assert as_python(relay.Let(loop, relay.Function([n], body), relay.Call(loop, [c(0)]))).numpy() == 10
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    adder = relay.Function([x], relay.Function([y], relay.add(x, y)))
    made = as_python(relay.Call(adder, [c(2)]))
    assert made(tvm.nd.array(np.int32(40))).numpy() == 42
    # Two variables of one name are two.
    other = relay.var("x", "int32")
    assert as_python(relay.Let(x, c(1), relay.Let(other, c(2), relay.subtract(x, other)))).numpy() == -1


def test_references():
    r, u = relay.var("r"), relay.var("u")
    value = as_python(relay.Let(r, relay.RefCreate(c(1)), relay.Let(u, relay.RefWrite(r, c(5)), relay.Tuple([relay.RefRead(r), r]))))
    assert value[0].numpy() == 5
    assert isinstance(value[1], relay.backend.interpreter.RefValue) and value[1].value.numpy() == 5


def test_data_types_and_global_functions(prelude):
    p, x = prelude, relay.var("x", "int32")
    numbers = p.cons(c(1), p.cons(c(2), p.cons(c(3), p.nil())))
    value = as_python(p.map(relay.Function([x], relay.multiply(x, c(3))), numbers), p.mod)
    assert value.constructor.name_hint == "Cons" and value.fields[1].fields[0].numpy() == 6
    assert as_python(p.sum(numbers), p.mod).numpy() == 6 and as_python(p.length(numbers), p.mod).numpy() == 3
    assert count(p, as_python(p.mod.get_global_var("nat_double")(make_nat_expr(p, 4)), p.mod)) == 8
    with pytest.raises(ValueError, match="no clause"):
        as_python(
            relay.Match(p.nil(), [relay.Clause(relay.PatternConstructor(p.cons, [relay.PatternWildcard(), relay.PatternWildcard()]), c(1))], complete=False),
            p.mod,
        )


def test_the_same_as_the_interpreter(prelude):
    p, a, b = prelude, relay.var("a", "int32"), relay.var("b", "int32")
    numbers = p.cons(c(4), p.cons(c(7), p.nil()))
    for expr in (
        p.foldl(relay.Function([a, b], relay.subtract(a, b)), c(100), numbers),
        p.foldr(relay.Function([a, b], relay.subtract(a, b)), c(100), numbers),
        p.nth(numbers, c(1)),
        p.length(p.concat(numbers, numbers)),
    ):
        mod = tvm.IRModule()
        mod.update(p.mod)
        mod["main"] = relay.Function([], expr)
        assert as_python(expr, p.mod).numpy() == relay.create_executor("debug", mod=mod).evaluate()().numpy()


def test_the_program_is_python():
    program = to_python(relay.Let(relay.var("x"), c(1), c(2)))
    assert isinstance(program, ast.Module) and "def main():" in ast.unparse(program)
