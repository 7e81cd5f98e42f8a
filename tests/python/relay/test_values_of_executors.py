# SPDX-License-Identifier: Apache-2.0
"""Values that programs hand to executors, and errors that come back to them."""

import pickle

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor
from baton.relay import transform
from baton.relay.testing import TempOpAttr

KINDS = ["debug", "graph", "vm", "aot"]


def difference(dtype="float32", shape=(2, 3)):
    x, y = relay.var("x", shape=shape, dtype=dtype), relay.var("y", shape=shape, dtype=dtype)
    return tvm.IRModule.from_expr(relay.Function([x, y], x - y))


def evaluate(mod, kind, *args, **kwargs):
    return relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args, **kwargs)


# ---- Values


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("want", "give"),
    [("float32", "float64"), ("float32", "int64"), ("int32", "int64"), ("int64", "int8"), ("float16", "float32"), ("int8", "uint8"), ("float32", "bool")],
)
def test_arguments_are_converted(kind, want, give):
    ones, zeros = np.ones((2, 3), give), np.zeros((2, 3), want)
    for args in [(ones, zeros), (tvm.nd.array(ones), zeros), (ones.tolist(), zeros)]:
        out = evaluate(difference(want), kind, *args).numpy()
        assert out.dtype == want
        assert (out == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_that_lose_their_kind_are_refused(kind):
    with pytest.raises(ValueError, match="expected"):
        evaluate(difference("int32"), kind, np.full((2, 3), 0.5), np.zeros((2, 3), "int32"))
    with pytest.raises(ValueError, match="expected"):
        evaluate(difference("uint8"), kind, np.full((2, 3), -1, "int8"), np.zeros((2, 3), "uint8"))


@pytest.mark.parametrize("kind", KINDS)
def test_scalars_and_names(kind):
    scalar = difference(shape=())
    for args in [(3.0, 1.0), (3, 1), (relay.const(3.0), relay.const(1.0)), (relay.const(3), np.float64(1))]:
        assert float(evaluate(scalar, kind, *args).numpy()) == 2
    one, zero = np.ones((2, 3)), np.zeros((2, 3), "int32")
    assert (evaluate(difference(), kind, one, y=zero).numpy() == 1).all()
    assert (evaluate(difference(), kind, y=one, x=zero).numpy() == -1).all()
    assert (evaluate(difference(), kind, one, **{"y": tvm.nd.array(zero)}).numpy() == 1).all()
    with pytest.raises(tvm.TVMError):
        evaluate(difference(), kind, one)
    with pytest.raises(tvm.TVMError):
        evaluate(difference(), kind, one, zero, zero)


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_tuples_are_converted_by_field(kind):
    x = relay.var("x", relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,), "int32")]))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.TupleGetItem(x, 1), relay.TupleGetItem(x, 0)])))
    out = evaluate(mod, kind, (np.ones(2), np.ones(2, "int64")))
    assert [a.dtype for a in out] == ["int32", "float32"]


def test_set_input_converts():
    model = graph_executor.GraphModule(relay.build(difference(), "llvm")["default"](tvm.cpu()))
    model.set_input("x", np.ones((2, 3)))
    model.set_input(1, [[0, 0, 0], [0, 0, 0]])
    model.run()
    assert (model.get_output(0).numpy() == 1).all()
    model.set_input(x=np.full((2, 3), 5), y=tvm.nd.array(np.ones((2, 3))))
    model.run()
    assert (model.get_output(0).numpy() == 4).all()
    model.run(x=np.ones((2, 3), "int8"))
    assert (model.get_output(0).numpy() == 0).all()
    whole = graph_executor.GraphModule(relay.build(difference("int32"), "llvm")["default"](tvm.cpu()))
    with pytest.raises(ValueError, match="expected"):
        whole.set_input("x", np.full((2, 3), 0.5))


def test_virtual_machine_converts():
    x = relay.var("x", shape=(relay.Any(), 3))
    cond = relay.var("c", shape=(), dtype="bool")
    branches = relay.Function([cond, x], relay.If(cond, x + x, x - x))
    for mod, args in [(difference(), (np.ones((2, 3)), np.zeros((2, 3), "int64"))), (tvm.IRModule.from_expr(branches), (True, np.full((2, 3), 0.5)))]:
        machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, target="llvm"), tvm.cpu())
        assert (machine.invoke("main", *args).numpy() == 1).all()
        machine.set_input("main", *args)
        assert (machine.run().numpy() == 1).all()


def test_parameters_are_converted():
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    func = relay.Function([x, w], x * w)
    for value in [np.full(2, 3.0), np.full(2, 3), tvm.nd.array(np.full(2, 3.0)), relay.const(np.full(2, 3.0))]:
        assert len(relay.build_module.bind_params_by_name(func, {"w": value}).params) == 1
        for kind in ("graph", "vm", "aot", "debug"):
            run = relay.create_executor(kind, tvm.IRModule.from_expr(func), tvm.cpu(0), "llvm", {"w": value}).evaluate()
            assert run(np.ones(2)).numpy().tolist() == [3, 3]


# ---- Errors


class OwnError(Exception):
    """Of a program."""


def caught(wanted, function, *args):
    with pytest.raises(wanted) as info:
        function(*args)
    return info.value


@pytest.mark.parametrize(
    "kind",
    [
        OwnError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        RuntimeError,
        AssertionError,
        NotImplementedError,
        OSError,
        ZeroDivisionError,
        FileNotFoundError,
        UnicodeError,
    ],
)
def test_errors_of_callbacks(kind):
    error = kind("what went wrong")

    def callback():
        raise error

    packed = tvm.runtime.convert(callback)
    for wanted in (kind, tvm.TVMError, tvm.error.TVMError, RuntimeError):
        found = caught(wanted, packed)
        assert found is error
        assert type(found).__name__ == kind.__name__
        assert found.args == ("what went wrong",)
    try:
        packed()
    except tvm.TVMError as again:
        assert again is error
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is kind
    assert copied.args == error.args


def test_errors_that_end_work_stay():
    for kind in (KeyboardInterrupt, SystemExit, GeneratorExit):

        def callback(kind=kind):
            raise kind

        assert not isinstance(caught(kind, tvm.runtime.convert(callback)), tvm.TVMError)


def test_errors_of_passes_and_visitors():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.nn.relu(x + x))

    def wrong(*_):
        raise OwnError("wrong")

    @tvm.instrument.pass_instrument
    class Instrument:
        def run_before_pass(self, mod, info):
            raise OwnError("wrong")

    def instrumented():
        with tvm.transform.PassContext(instruments=[Instrument()]):
            transform.InferType()(mod)

    def legalized():
        with TempOpAttr("nn.relu", "FTVMLegalize", wrong):
            transform.Legalize()(mod)

    class Callback(relay.dataflow_pattern.DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = relay.dataflow_pattern.is_op("add")(relay.dataflow_pattern.wildcard(), relay.dataflow_pattern.wildcard())

        def callback(self, pre, post, node_map):
            wrong()

    doings = [
        lambda: transform.function_pass(lambda func, mod, ctx: wrong(), opt_level=0)(mod),
        lambda: tvm.transform.module_pass(lambda mod, ctx: wrong(), opt_level=0)(mod),
        lambda: relay.analysis.post_order_visit(mod["main"], wrong),
        lambda: relay.dataflow_pattern.rewrite(Callback(), mod["main"]),
        instrumented,
        legalized,
    ]
    for doing in doings:
        for wanted in (OwnError, tvm.TVMError):
            caught(wanted, doing)


def test_invalid_arguments_are_errors_of_tvm():
    x = relay.var("x", shape=(2, 3))
    for wanted, doing in [
        (TypeError, lambda: relay.add(x, None)),
        (TypeError, lambda: relay.Function([1], x)),
        (TypeError, lambda: relay.Call(1, [x])),
        (TypeError, lambda: tvm.transform.PassContext(opt_level="a")),
        (TypeError, lambda: tvm.transform.PassContext(required_pass="a")),
        (TypeError, lambda: tvm.transform.Sequential([1])),
        (TypeError, lambda: relay.nn.softmax(x, axis="a")),
        (ValueError, lambda: relay.create_executor("none")),
        (RuntimeError, lambda: relay.create_executor("none")),
        (ValueError, lambda: tvm.target.Target("none")),
        (ValueError, lambda: relay.var("x", x.type_annotation, shape=(1,))),
        (AttributeError, lambda: tvm.transform.PassContext(config={"no.such": 1})),
        (AttributeError, lambda: tvm.ir.make_node("relay.attrs.Conv2DAttrs", nothing=1)),
    ]:
        caught(wanted, doing)
        caught(tvm.TVMError, doing)
