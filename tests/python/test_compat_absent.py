# SPDX-License-Identifier: Apache-2.0
"""Modules of Relay's time that are not there: they import, harmless uses do nothing, others say what to use instead."""

import importlib
import warnings

import numpy as np
import pytest

import baton as tvm
from baton import compat, relay
from baton.compat import absent


@pytest.fixture(autouse=True)
def said_nothing():
    absent._said.clear()


@pytest.mark.parametrize("path", compat.ABSENT)
def test_it_imports_and_says_what_to_use_instead(path):
    module = importlib.import_module(path)
    parent, _, last = path.rpartition(".")
    assert getattr(importlib.import_module(parent), last) is module and importlib.import_module(path + ".below").__name__ == path + ".below"
    with pytest.raises(tvm.error.UnsupportedError) as raised:
        module.something(1, two=2)
    assert str(raised.value) == f"{path}.something is not there: {compat.ABSENT[path]}"
    assert isinstance(raised.value, NotImplementedError) and isinstance(raised.value, tvm.TVMError)


@pytest.mark.parametrize("name", ["caffe", "caffe2", "coreml", "darknet", "keras", "mxnet", "paddle", "tensorflow", "tflite"])
def test_importers(name):
    function = getattr(relay.frontend, f"from_{name}")
    with pytest.raises(tvm.error.UnsupportedError, match="export the model to ONNX"):
        function(object(), {})


def test_tuned_kernels_of_a_log_are_nothing():
    from baton import auto_scheduler, autotvm

    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.nn.relu(x))
    with (
        pytest.warns(UserWarning, match="apply_history_best does nothing: the compiler schedules"),
        autotvm.apply_history_best(None),
        autotvm.tophub.context("llvm"),
        autotvm.FallbackContext(),
        auto_scheduler.ApplyHistoryBest(None),
    ):
        lib = relay.build(mod, "llvm")
    run = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    run.run(x=np.array([-1, 1], "float32"))
    assert run.get_output(0).numpy().tolist() == [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tvm.autotvm.apply_history_best("log.json"), autotvm.tophub.context(tvm.target.Target("llvm"), extra_files=[]):
            pass
    autotvm.GLOBAL_SCOPE.silent = False
    assert autotvm.DispatchContext.current is None


def test_names_in_headers_of_files():
    from baton import auto_scheduler
    from baton.autotvm.tuner import GATuner, XGBTuner
    from baton.script import tir as T

    class Mine(XGBTuner):
        pass

    @auto_scheduler.register_workload
    def matmul(n):
        return n

    @T.prim_func
    def loops(a):
        return a

    assert matmul(3) == 3 and not isinstance(3, GATuner) and issubclass(tvm.micro.base.SessionError, Exception)
    for use in (Mine, lambda: loops(1), lambda: tvm.autotvm.task.create("conv2d", args=(1,), target="llvm"), lambda: tvm.IRModule({"main": loops})):
        with pytest.raises((tvm.error.UnsupportedError, TypeError)):
            use()


def test_a_with_that_is_not_there():
    with pytest.raises(tvm.error.UnsupportedError, match="mtriple"):
        with tvm.contrib.rpc.connect("localhost", 9090):
            pass
