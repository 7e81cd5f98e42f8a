# SPDX-License-Identifier: Apache-2.0
"""Compiled models and functions on the remote: as programs of Relay's time write it."""

import os

import numpy as np
import pytest

import baton as tvm
from baton import relay, rpc, te
from baton.contrib import graph_executor


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """(path of a compiled model, its weights)."""
    w = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")
    x = relay.var("x", shape=(4, 16), dtype="float32")
    out = relay.nn.relu(relay.nn.dense(x, relay.const(w)))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], out)), target="llvm")
    path = str(tmp_path_factory.mktemp("model") / "lib.so")
    lib.export_library(path)
    return path, w


@pytest.fixture(scope="module")
def compiled_function(tmp_path_factory):
    """Path of a library with a function of two inputs and an output."""
    a = te.placeholder((64,), name="a", dtype="float32")
    b = te.placeholder((64,), name="b", dtype="float32")
    c = te.compute((64,), lambda i: a[i] + b[i], name="c")
    lib = tvm.build(te.create_schedule(c.op), [a, b, c], target="llvm", name="vadd")
    path = str(tmp_path_factory.mktemp("function") / "vadd.so")
    lib.export_library(path)
    return path


def run_model(remote, path, w):
    remote.upload(path)
    rlib = remote.load_module(os.path.basename(path))
    dev = remote.cpu()
    m = graph_executor.GraphModule(rlib["default"](dev))
    x = np.random.default_rng(1).standard_normal((4, 16)).astype("float32")
    m.set_input("x", tvm.nd.array(x, dev))
    m.run()
    want = np.maximum(x @ w.T, 0)
    np.testing.assert_allclose(m.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)
    m.set_input("x", x * 2)  # an array of this side
    m.run()
    kept = m.get_output(0, tvm.nd.empty((4, 8)))
    np.testing.assert_allclose(kept.numpy(), want * 2, rtol=1e-4, atol=1e-5)
    assert m.get_num_inputs() == 1 and m.get_input_names() == ["x"] and m.get_output(0).device == dev
    times = m.benchmark(dev, repeat=3, number=2)
    assert len(times.results) == 3 and 0 < times.min <= times.mean
    times = m.module.time_evaluator("run", dev, number=3, repeat=2, min_repeat_ms=1)()
    assert len(times.results) == 2 and times.mean > 0


def test_rpc_005_compile_upload_run_compare(remote, model):  # RPC-005
    run_model(remote, *model)


def test_rpc_007_a_program_of_relays_time(model):  # RPC-007
    path, w = model
    server = rpc.Server(host="127.0.0.1", port=9090, key="")
    remote = rpc.connect("127.0.0.1", server.port)
    run_model(remote, path, w)
    assert bytes(remote.download("lib.so")) == open(path, "rb").read()
    server.terminate()


def test_rpc_003_a_server_without_python_or_compiler(model, tmp_path):  # RPC-003
    with rpc.PopenSession(model[0]) as remote:
        m = graph_executor.GraphModule(remote.system_lib()["default"](remote.cpu()))
        m.run(x=np.ones((4, 16), "float32"))
        np.testing.assert_allclose(m.get_output(0).numpy(), np.maximum(np.ones((4, 16)) @ model[1].T, 0), rtol=1e-4, atol=1e-5)
        run_model(remote, *model)


def test_rpc_006_times_of_a_function_are_the_remotes(remote, compiled_function):  # RPC-006
    remote.upload(compiled_function, "v.so")
    f = remote.load_module("v.so")
    dev = remote.cpu()
    a, b = (tvm.nd.array(np.full(64, v, "float32"), dev) for v in (1, 2))
    c = tvm.nd.empty((64,), "float32", dev)
    f["vadd"](a, b, c)
    np.testing.assert_array_equal(c.numpy(), np.full(64, 3, "float32"))
    times = f.time_evaluator("vadd", dev, number=100, repeat=3)(a, b, c)
    # Below a round trip: the network takes no part.
    assert len(times.results) == 3 and 0 < times.min < 5e-6
    with pytest.raises(ValueError, match="f_preproc"):
        f.time_evaluator("vadd", dev, f_preproc="absent")(a, b, c)


def test_an_array_of_this_side_is_no_place_for_results(remote, compiled_function):
    remote.upload(compiled_function, "v.so")
    f = remote.load_module("v.so")["vadd"]
    a = tvm.nd.array(np.ones(64, "float32"), remote.cpu())
    with pytest.raises(TypeError, match="remote.cpu"):
        f(a, a, np.empty(64, "float32"))


def test_rpc_009_what_is_no_module(remote):  # RPC-009
    remote.upload(b"garbage", "bad.so")
    with pytest.raises(rpc.RPCError, match="not a compiled model"):
        remote.load_module("bad.so")
    with pytest.raises(rpc.RPCError, match="absent.so"):
        remote.load_module("absent.so")


def test_a_module_stays_while_its_functions_do(server, model):
    remote = rpc.connect(server.url)
    remote.upload(model[0])
    run = graph_executor.GraphModule(remote.load_module("lib.so")["default"](remote.cpu()))
    del remote
    run.run(x=np.zeros((4, 16), "float32"))
    assert not run.get_output(0).numpy().any()


def test_deployed_models_are_called_as_here(remote, model):
    x = np.random.default_rng(3).standard_normal((4, 16)).astype("float32")
    for given in (model[0], tvm.load(model[0])):
        there = rpc.deploy(remote, given)
        assert [i.name for i in there.inputs] == ["x"]
        np.testing.assert_allclose(there(x).numpy(), np.maximum(x @ model[1].T, 0), rtol=1e-4, atol=1e-5)
        with pytest.raises(TypeError, match="float64"):
            there(x.astype("float64"))


@pytest.mark.parametrize("verb", ["run", "bench"])
def test_rpc_005_the_command_line(server, model, verb, capfd):  # RPC-005, RPC-006
    import json

    from baton.cli import main

    assert main([verb, model[0], "--remote", server.url, "--json", *(["--rounds", "1"] if verb == "bench" else [])]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["outputs"] if verb == "run" else 0 < answer["baton"]["min_ms"] < 100
    if verb == "bench":
        assert main([verb, model[0], "--remote", server.url, "--profile"]) == 2
        assert main(["profile", model[0], "--remote", server.url, "--json", "--rounds", "1"]) == 0
        answer = json.loads(capfd.readouterr().out)
        assert answer["steps"] and answer["peak_gflops"] is None and all(step["us"] > 0 and step["roofline"] is None for step in answer["steps"])
