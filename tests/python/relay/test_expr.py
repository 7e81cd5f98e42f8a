# SPDX-License-Identifier: Apache-2.0
"""Building expressions of Relay, and functions of operators."""

import inspect

import numpy as np
import pytest

import baton as tvm
from baton import relay


def test_the_names_people_type():  # IR-007, IR-008, IR-009
    x = relay.var("x", shape=(10, 20))
    assert x.type_annotation == relay.TensorType((10, 20), "float32") and x.name_hint == "x"
    assert relay.var("y").type_annotation is None and relay.var("z", "int32").type_annotation == relay.scalar_type("int32")
    assert relay.abs(x).op.name == "abs" and relay.log(x).op == relay.op.get("log") and relay.multiply(x, x).op.name == "multiply"
    f = relay.Function([x], relay.abs(x))
    assert f.params[0].same_as(x) and f.ret_type is None and f(x).op.same_as(f)
    assert relay.GlobalVar("g")(x).op.name_hint == "g"
    with pytest.raises(ValueError, match="not both"):
        relay.var("x", relay.TensorType((1,)), shape=(1,))


def test_nodes():  # IR-001
    x, y = relay.var("x", shape=(3,)), relay.var("y")
    let = relay.Let(y, relay.abs(x), y)
    assert let.var.same_as(y) and let.value.op.name == "abs" and let.body.same_as(y)
    if_ = relay.If(relay.const(True), x, y)
    assert if_.true_branch.same_as(x) and if_.false_branch.same_as(y)
    tup = relay.Tuple([x, y])
    assert tup[1].same_as(y) and len(tup) == 2 and [f.name_hint for f in tup] == ["x", "y"]
    with pytest.raises(IndexError):
        tup[2]
    item = relay.TupleGetItem(tup, 1)
    assert item.tuple_value.same_as(tup) and item.index == 1
    ref = relay.RefCreate(x)
    assert relay.RefRead(ref).ref.same_as(ref) and relay.RefWrite(ref, y).value.same_as(y)
    match = relay.Match(x, [relay.Clause(relay.PatternVar(y), y), relay.Clause(relay.PatternWildcard(), x)])
    assert match.complete and match.clauses[0].lhs.var.same_as(y)
    assert relay.Call(relay.op.get("abs"), [x]).attrs is None


@pytest.mark.parametrize(
    "value, dtype, want",
    [
        (1, None, "int32"),
        (1.5, None, "float32"),
        (True, None, "bool"),
        ([1, 2], None, "int32"),
        (1, "float16", "float16"),
        (np.zeros(2), None, "float64"),
        (np.int8(3), None, "int8"),
        (3, "bfloat16", "bfloat16"),
    ],
)
def test_const(value, dtype, want):
    c = relay.const(value, dtype)
    assert c.data.dtype == want and (np.asarray(c.data).astype("float64") == np.asarray(value, "float64")).all()
    assert c.data.shape == np.shape(value)


def test_const_that_does_not_fit():
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        relay.const(300, "int8")


def test_python_operators():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    cases = {
        "add": x + y,
        "subtract": x - y,
        "multiply": x * y,
        "divide": x / y,
        "less": x < y,
        "greater": x > y,
        "less_equal": x <= y,
        "greater_equal": x >= y,
        "negative": -x,
        "power": x**y,
        "floor_divide": x // y,
        "mod": x % y,
    }
    for name, expr in cases.items():
        assert expr.op.name == name and expr.args[0].same_as(x)
    assert (1 + x).args[0].data.dtype == "float32" and (x * 2).args[1].data.numpy() == 2
    assert (relay.abs(x) - 1.0).args[1].data.dtype == "float32"
    assert x.astype("int8").attrs.dtype == "int8"
    with pytest.raises(TypeError, match="relay.const"):
        relay.var("z") + 1


def test_functions_of_operators_say_what_they_take():
    signature = inspect.signature(relay.nn.bias_add)
    assert list(signature.parameters) == ["data", "bias", "axis"] and signature.parameters["axis"].default == 1
    assert "rank 1" in relay.nn.bias_add.__doc__ and relay.nn.bias_add.__name__ == "bias_add"
    assert "nn" in dir(relay) and "bias_add" in dir(relay.nn) and relay.op.nn.bias_add is relay.nn.bias_add
    x = relay.var("x", shape=(2, 3))
    assert relay.nn.bias_add(x, x, axis=0).attrs.axis == 0 and relay.nn.bias_add(bias=x, data=x).attrs.axis == 1
    with pytest.raises(TypeError, match="did you mean `axis`"):
        relay.nn.bias_add(x, x, axs=0)
    with pytest.raises(TypeError, match="needs its input `bias`"):
        relay.nn.bias_add(x)
    with pytest.raises(TypeError, match="at most 3"):
        relay.nn.bias_add(x, x, 1, 2)
    with pytest.raises(TypeError, match="twice"):
        relay.nn.bias_add(x, x, data=x)
    with pytest.raises(AttributeError, match="neither an operator nor a class"):
        _ = relay.no_such_thing
    with pytest.raises(AttributeError, match="no operator `nn.no_such_thing`"):
        _ = relay.nn.no_such_thing


@pytest.mark.parametrize("name", sorted(n for n in tvm.ir.Op.list_op_names() if not n.startswith("tir.")))
def test_every_operator_has_a_function(name):
    function = relay.op.find(name)
    assert callable(function) and function.__doc__
    plain = relay.op.operator(name)
    assert inspect.signature(plain) and repr(plain).startswith(f"<operator {name}")


def test_attributes_are_converted():
    x = relay.var("x", shape=(2, 3, 4))
    assert relay.sum(x, axis=1).attrs.axis == [1] and relay.sum(x, axis=(0, -1)).attrs.axis == [0, -1] and relay.sum(x).attrs.axis is None
    dims = x.type_annotation.shape
    assert relay.reshape(x, [dims[0], -1]).attrs.newshape == [2, -1], "a type's dimensions serve as numbers"
    assert relay.reshape(x, -1).attrs.newshape == [-1]
    with pytest.raises(tvm.Error, match="axis"):
        relay.sum(x, axis="rows")


def test_several_results():
    x = relay.var("x", shape=(4, 6))
    parts = relay.split(x, 3, axis=1)
    a, b, c = parts
    assert len(parts) == 3 and a.index == 0 and c.index == 2 and parts[-1].index == 2
    assert relay.testing.run_infer_type(relay.Function([x], b)).body.checked_type == relay.TensorType((4, 2))
    assert len(relay.split(x, [1, 4], axis=1)) == 3
    joined = relay.concatenate(parts, axis=1)
    assert relay.testing.run_infer_type(relay.Function([x], joined)).body.checked_type == relay.TensorType((4, 6))
    assert relay.stack([a, b], axis=0).args[0].fields[0].same_as(a)
    assert relay.Tuple([parts.astuple()]).fields[0].op.name == "split"


def test_shape_operands_may_be_expressions():
    x, shape = relay.var("x", shape=(4, 6)), relay.var("s", shape=(2,), dtype="int64")
    assert relay.reshape(x, relay.const([6, 4], "int64")).attrs.newshape == [6, 4]
    assert relay.zeros((2, 3), "float32").attrs.shape == [2, 3] and relay.ones(3, "int32").attrs.shape == [3]
    assert relay.reshape(x, shape).op.name == "dyn.reshape"


def test_types_of_parameters_follow_from_use():
    data = relay.var("data", shape=(2, 3, 8, 8))
    net = relay.nn.conv2d(data, relay.var("w"), kernel_size=3, channels=4, padding=1)
    net = relay.nn.bias_add(net, relay.var("b"))
    net = relay.nn.batch_norm(net, *(relay.var(n) for n in ("gamma", "beta", "mean", "var")))[0]
    net = relay.nn.dense(relay.nn.batch_flatten(net), relay.var("w2"), units=5)
    f = relay.testing.run_infer_type(relay.Function(relay.analysis.free_vars(net), net))
    shapes = {p.name_hint: p.checked_type.concrete_shape for p in f.params}
    assert shapes == {"data": (2, 3, 8, 8), "w": (4, 3, 3, 3), "b": (4,), "gamma": (4,), "beta": (4,), "mean": (4,), "var": (4,), "w2": (5, 256)}


def test_numbers_and_arrays_as_inputs():
    x = relay.var("x", shape=(2,))
    call = relay.add(x, np.ones(2, "float32"))
    assert isinstance(call.args[1], relay.Constant)


def test_scope_builder():
    sb = relay.ScopeBuilder()
    cond = relay.var("cond", "bool")
    with sb.if_scope(cond):
        one = sb.let("one", relay.const(1))
        sb.ret(one)
    with sb.else_scope():
        sb.ret(relay.const(2))
    body = sb.get()
    assert isinstance(body, relay.If) and isinstance(body.true_branch, relay.Let)
    f = relay.Function([cond], body)
    run = relay.create_executor("debug").evaluate(f)
    assert run(np.array(True)).item() == 1 and run(np.array(False)).item() == 2
    with pytest.raises(RuntimeError, match="no result"):
        relay.ScopeBuilder().get()


def test_bind():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    bound = relay.bind(relay.add(x, y), {x: relay.const([1.0, 2.0])})
    assert isinstance(bound.args[0], relay.Constant) and bound.args[1].same_as(y)
    f = relay.build_module.bind_params_by_name(relay.Function([x, y], relay.add(x, y)), {"y": np.ones(2, "float32"), "unused": np.ones(1)})
    assert [p.name_hint for p in f.params] == ["x"]


def test_numbers_beside_long_chains_and_casts():
    """The dtype of a number is that of the other operand, however long that took to make."""
    x = relay.var("x", shape=(2,), dtype="int32")
    for _ in range(5000):
        x = x + 1
    assert x.args[1].data.dtype == "int32"
    assert (relay.qnn.op.dequantize(relay.var("q", shape=(2,), dtype="int8"), 0.5, 0) * 2).args[1].data.dtype == "float32"
    y = relay.nn.dense(relay.var("a", shape=(2, 3), dtype="int8"), relay.var("b", shape=(2, 3), dtype="int8"), out_dtype="int32") + 1000
    assert y.args[1].data.dtype == "int32"
