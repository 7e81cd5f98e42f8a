# SPDX-License-Identifier: Apache-2.0
"""Names that programs of 0.6 to 0.8 use and that mean something else here, or nothing."""

import numpy as np
import pytest

import baton as tvm
from baton import relay


@pytest.fixture
def mod():
    x = relay.var("x", shape=(2, 3))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))


def test_contexts_are_devices():
    for make in (tvm.context, tvm.runtime.context, tvm.nd.context):
        with pytest.warns(DeprecationWarning, match="is called baton.device"):
            assert make("llvm", 0) == tvm.cpu() and make("gpu", 1) == tvm.cuda(1) and make(tvm.cpu().device_type) == tvm.cpu()
    assert isinstance(tvm.cpu(), tvm.runtime.TVMContext)


def test_types_that_are_not_known_yet(mod):
    assert mod["main"].body._checked_type_ == mod["main"].ret_type
    assert relay.Call(relay.op.get("nn.relu"), [relay.var("y")])._checked_type_ is None


def test_programs_that_would_tune_compile(mod):
    autotvm, auto_scheduler = tvm.autotvm, tvm.auto_scheduler
    with pytest.warns(UserWarning, match="needs no tuning"):
        tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params={}, ops=(relay.op.get("nn.conv2d"),))
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=10))
        found, weights = auto_scheduler.extract_tasks(mod["main"], {}, "llvm")
        with autotvm.apply_history_best([]):
            relay.build(mod, "llvm")
    assert tasks == found == weights == [] and option is None
    tasks.append(1)
    assert autotvm.task.extract_from_program(mod["main"], target="llvm", params={}) == []


def test_what_is_not_there_says_what_to_use(mod):
    from baton.driver import tvmc

    with pytest.raises(tvm.error.UnsupportedError, match="baton.compile"):
        tvmc.load("model.onnx")


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_keywords_that_are_no_parameters(mod, kind):
    run = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    x = np.full((2, 3), -1, "float32")
    assert (run(x, other=3).numpy() == 0).all() and (run(x=x, other=3).numpy() == 0).all()
    with pytest.raises(TypeError, match="its parameter `x` twice"):
        run(x, x=x)
    with pytest.raises(TypeError, match="needs `x`"):
        run(other=x)


def test_inputs_by_name(mod):
    module = tvm.contrib.graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    assert module.get_input_index("x") == 0 and module.get_input_index("nothing") == -1


def test_uint1_is_bool():
    assert tvm.DataType("uint1") == "bool" and tvm.DataType("uint1x4") == "boolx4"
    assert tvm.nd.empty((2,), "uint1").dtype == tvm.te.placeholder((2,), "uint1").dtype == "bool"
    x = relay.var("x", shape=(2,), dtype="uint1")
    assert x.type_annotation == relay.TensorType((2,), "bool")
    run = relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.logical_not(x)), device=tvm.cpu(), target="llvm").evaluate()
    assert run(np.array([True, False])).numpy().tolist() == [False, True]
