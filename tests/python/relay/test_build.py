# SPDX-License-Identifier: Apache-2.0
"""Building and running Relay programs the way Relay's users do."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.contrib import graph_executor


@pytest.fixture(scope="module")
def program():
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(3, 8))
    out = relay.nn.relu(relay.nn.dense(x, w))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.subtract(out, relay.const(1.0))))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, 8)).astype("float32"), rng.standard_normal((3, 8)).astype("float32")
    return mod, x, w, np.maximum(x @ w.T, 0) - 1


def test_graph_executor(program, tmp_path):
    mod, x, w, want = program
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params={"w": w})
    dev = tvm.cpu()
    model = graph_executor.GraphModule(lib["default"](dev))
    model.set_input("x", x)
    model.run()
    first = model.get_output(0)
    tvm.testing.assert_allclose(first.numpy(), want, rtol=1e-5, atol=1e-6)
    model.run(x=tvm.nd.array(x * 0))
    tvm.testing.assert_allclose(model.get_output(0).numpy(), want * 0 - 1)
    tvm.testing.assert_allclose(first.numpy(), want, rtol=1e-5, atol=1e-6)
    out = tvm.nd.empty(want.shape)
    assert model.get_output(0, out).same_as(out) and out.numpy().max() == -1
    assert (model.get_num_inputs(), model.get_num_outputs(), model.get_input_names()) == (1, 1, ["x"])
    assert model.get_input_info() == ({"x": (4, 8)}, {"x": "float32"})
    tvm.testing.assert_allclose(model.get_input("x").numpy(), x * 0)
    assert model.benchmark(dev, repeat=2, number=2).mean > 0 and model.benchmark(dev, end_to_end=True, x=x).min > 0
    with pytest.raises(tvm.Error, match="nothing"):
        model.set_input("nothing", x)
    with pytest.raises(tvm.Error, match="shape|Tensor|4, 8|\\[4"):
        model.set_input("x", x[:2])
    with pytest.raises(AttributeError, match="no function `nothing`"):
        model["nothing"]
    with pytest.raises(TypeError, match="GraphModule takes"):
        graph_executor.GraphModule(3)
    path = tmp_path / "model.so"
    lib.export_library(str(path))
    again = graph_executor.create(None, tvm.runtime.load_module(str(path)), dev)
    again.run(x=x)
    tvm.testing.assert_allclose(again.get_output(0).numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["debug", "graph", "aot", "vm"])
def test_executors(program, kind):
    mod, x, w, want = program
    run = relay.create_executor(kind, mod, tvm.cpu(), "llvm").evaluate()
    # A keyword that no parameter has is ignored.
    for out in (run(x, w), run(x, w=w), run(tvm.nd.array(x), w), run(x, w, v=w)):
        tvm.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="needs `w`"):
        run(x)
    with pytest.raises(TypeError, match="needs `w`"):
        run(x, v=w)
    with pytest.raises(TypeError, match="takes 2"):
        run(x, w, w)


def test_evaluate_expressions():
    ex = relay.create_executor("debug")
    assert ex.evaluate(relay.add(relay.const(1.0), relay.const(2.0))).numpy() == 3
    pair = ex.evaluate(relay.Tuple([relay.const(1), relay.const(2)]))
    assert [v.item() for v in pair] == [1, 2]
    x = relay.var("x", shape=())
    assert ex.evaluate(relay.add(x, x), {x: relay.const(2.0)}).item() == 4
    with pytest.raises(ValueError, match="free variables: x"):
        ex.evaluate(x)
    with pytest.raises(ValueError, match="no executor is called `magic`"):
        relay.create_executor("magic")


def test_without_a_target_it_is_the_one_in_use_or_this_machine(program):
    mod, x, w, want = program
    for scope in (tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3)):
        with scope:
            lib = relay.build(mod, params={"w": w})
            optimized, _ = relay.optimize(mod)
        model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        model.run(x=x)
        tvm.testing.assert_allclose(model.get_output(0).numpy(), want, rtol=1e-5, atol=1e-6)
        assert "main" in optimized


def test_optimize_and_parameters(program):
    mod, x, w, want = program
    optimized, params = relay.optimize(mod, "llvm", {"w": w})
    assert params == {} and [p.name_hint for p in optimized["main"].params] == ["x"]
    assert len(mod["main"].params) == 2, "what was given stays"
    data = relay.save_param_dict({"w": w, "b": tvm.nd.array([1, 2])})
    back = relay.load_param_dict(data)
    assert set(back) == {"w", "b"} and (back["w"].numpy() == w).all() and back["b"].dtype == "int64"
    for broken in (b"", data[:-3], b"x" * 100):
        with pytest.raises(tvm.Error):
            relay.load_param_dict(broken)


def test_compile_and_call(program):
    mod, x, w, want = program
    model = tvm.compile(mod)
    tvm.testing.assert_allclose(model(x, w).numpy(), want, rtol=1e-5, atol=1e-6)


def test_workload():
    mod, params = relay.testing.mlp.get_workload(1)
    assert "fc1_weight" in params and params["fc1_weight"].shape == (128, 784)
    x = np.random.default_rng(0).random((1, 1, 28, 28)).astype("float32")
    lib = relay.build(mod, "llvm", params=params)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    model.run(data=x)
    h = x.reshape(1, -1)
    for fc, act in (("fc1", True), ("fc2", True), ("fc3", False)):
        h = h @ params[fc + "_weight"].numpy().T + params[fc + "_bias"].numpy()
        h = np.maximum(h, 0) if act else h
    want = np.exp(h - h.max()) / np.exp(h - h.max()).sum()
    tvm.testing.assert_allclose(model.get_output(0).numpy(), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "name, options, count",
    [
        ("resnet", {"num_layers": 18, "image_shape": (3, 32, 32), "num_classes": 10}, 11_000_000),
        ("mobilenet", {"image_shape": (3, 32, 32), "alpha": 0.25}, 400_000),
        ("squeezenet", {"version": "1.1", "image_shape": (3, 64, 64)}, 1_200_000),
    ],
)
def test_networks(name, options, count):
    mod, params = getattr(relay.testing, name).get_workload(**options)
    assert sum(p.size for p in params.values()) > count
    assert relay.analysis.get_total_mac_number(mod["main"]) > 1_000_000
    out = mod["main"].body.checked_type
    assert out.concrete_shape == (1, options.get("num_classes", 1000))


def test_virtual_machine(program):
    mod, x, w, want = program
    exe = relay.vm.compile(mod, "llvm", params={"w": w})
    vm = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu())
    for out in (vm.invoke("main", x), vm.run(x), vm.invoke("main", x=x)):
        tvm.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-6)
    assert len(vm.get_outputs()) == 1 and vm.benchmark(tvm.cpu(), x, repeat=1).mean > 0
    with pytest.raises(AttributeError, match="no function `other`"):
        vm.invoke("other", x)


def test_while_loop():
    i = relay.var("i", shape=(), dtype="int32")
    total = relay.var("total", shape=(), dtype="int32")
    loop = relay.loops.while_loop(lambda i, t: relay.less(i, relay.const(5)), [i, total], lambda i, t: (relay.add(i, relay.const(1)), relay.add(t, i)))
    out = relay.create_executor("debug").evaluate(relay.Call(loop, [relay.const(0), relay.const(0)]))
    assert [v.item() for v in out] == [5, 10]


def test_detect_feature():
    feature = relay.analysis.Feature
    x = relay.var("x", shape=(2,))
    assert relay.analysis.detect_feature(relay.Let(x, relay.const(1), x)) == {feature.fLet, feature.fVar, feature.fConstant}
