# SPDX-License-Identifier: Apache-2.0
"""Values for parameters and inputs of another dtype: converted where each element is kept, an error that names the first else."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor
from baton.relay.prelude import Prelude
from baton.runtime.container import ADT

KINDS = ["debug", "graph", "aot", "vm"]


def sum_of(dtype):
    x, w = relay.var("x", shape=(3,), dtype=dtype), relay.var("w", shape=(3,), dtype=dtype)
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.add(x, w)))


def by_graph(mod, x, w):
    model = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    model.set_input("x", x)
    model.set_input(w=w)
    model.run()
    return model.get_output(0)


def by_params(mod, x, w):
    model = graph_executor.GraphModule(relay.build(mod, "llvm", params={"w": w})["default"](tvm.cpu()))
    model.run(x=x)
    return model.get_output(0)


def by_machine(mod, x, w):
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    return machine.run(x, w)


def by_executor(kind):
    return lambda mod, x, w: relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate()(x, w=w)


def by_executor_params(mod, x, w):
    return relay.create_executor("graph", mod, tvm.cpu(), "llvm", params={"w": w}).evaluate()(x)


ROADS = [by_graph, by_params, by_machine, by_executor_params, *map(by_executor, KINDS)]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    "given, dtype", [("int64", "uint8"), ("int32", "uint8"), ("float64", "int64"), ("uint8", "int32"), ("int64", "float32"), ("float32", "int8")]
)
def test_values_that_the_dtype_holds_are_converted(road, given, dtype):
    values = np.array([1, 2, 100], given)
    found = road(sum_of(dtype), values[::-1].copy(), tvm.nd.array(values))
    assert found.dtype == dtype and found.numpy().tolist() == [101, 4, 101]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    "values, dtype, seen",
    [
        (np.array([1, -1, -2]), "uint8", r"int64 with -1 at \[1\]"),
        (np.array([1, 2, 300]), "uint8", r"int64 with 300 at \[2\]"),
        (np.array([1, 2, 200]), "int8", r"int64 with 200 at \[2\]"),
        (np.array([1, 2.5, 3]), "int64", r"float64 with 2.5 at \[1\]"),
        (np.array([1, np.nan, 3]), "int32", r"float64 with nan at \[1\]"),
        (np.array([1, np.inf, 3]), "int32", r"float64 with inf at \[1\]"),
        (np.array([2**63, 2, 3], "uint64"), "int64", r"uint64 with 9223372036854775808 at \[0\]"),
        (np.array([0, 1, 2]), "bool", r"int64 with 2 at \[2\]"),
    ],
)
def test_the_first_value_that_the_dtype_does_not_hold_is_named(road, values, dtype, seen):
    mod = sum_of(dtype)
    if dtype == "bool":
        x, w = mod["main"].params
        mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.logical_and(x, w)))
    with pytest.raises(ValueError, match=f"`w`: expected {dtype}, got {seen}, which {dtype} does not hold"):
        road(mod, np.array([1, 1, 1], dtype), values)


def test_numbers_in_bools():
    x, w = (relay.var(n, shape=(2,), dtype="bool") for n in "xw")
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.logical_and(x, w)))
    for road in ROADS:
        assert road(mod, np.array([1, 1]), np.array([0.0, 1.0])).numpy().tolist() == [False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_within_tuples(kind):
    inner = relay.TupleType([relay.TensorType((), "float32"), relay.TensorType((2,), "uint8")])
    t = relay.Var("t", relay.TupleType([relay.TensorType((2,), "int64"), inner]))
    first, second = relay.TupleGetItem(t, 0), relay.TupleGetItem(relay.TupleGetItem(t, 1), 1)
    mod = tvm.IRModule.from_expr(relay.Function([t], relay.Tuple([first, second])))
    run = relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate()
    found = run((np.array([1.0, 2.0]), [3.5, np.array([4, 5])]))
    assert [f.dtype for f in found] == ["int64", "uint8"] and [f.numpy().tolist() for f in found] == [[1, 2], [4, 5]]
    with pytest.raises(ValueError, match=r"`t`: expected uint8, got int64 with 256 at \[1\]"):
        run((np.array([1.0, 2.0]), [3.5, np.array([4, 256])]))
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    assert machine.run((np.array([1.0, 2.0]), [3.5, np.array([4, 5])]))[1].dtype == "uint8"


def list_module():
    mod = tvm.IRModule()
    Prelude(mod)
    items = relay.Var("l", mod.get_global_type_var("List")(relay.TensorType((), "int64")))
    mod["main"] = relay.Function([items], mod.get_global_var("sum")(mod.get_global_var("map")(cast(), items)))
    _, cons, nil = mod.get_type("List")
    return mod, cons, nil


def cast():
    x = relay.Var("x", relay.TensorType((), "int64"))
    return relay.Function([x], relay.cast(x, "int32"))


def test_within_data_types():
    mod, cons, nil = list_module()
    run = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()

    def items(*numbers):
        made = ADT(nil.tag)
        for n in reversed(numbers):
            made = ADT(cons.tag, [tvm.nd.array(n), made])
        return made

    assert int(run(items(np.array(3, "int32"), np.array(4.0), np.array(5, "uint8"))).numpy()) == 12
    with pytest.raises(ValueError, match="`l`: expected int64, got float64 with 4.5, which int64 does not hold"):
        run(items(np.array(3, "int32"), np.array(4.5)))
    assert int(run(items(*[np.array(1, "int32")] * 3000)).numpy()) == 3000


def test_within_values_of_the_interpreter():
    mod, cons, nil = list_module()
    run = relay.create_executor("debug", mod, tvm.cpu(), "llvm")
    made = run.evaluate(cons(relay.const(3, "int32"), cons(relay.const(4, "int32"), nil())))
    assert int(run.evaluate()(made).numpy()) == 7
