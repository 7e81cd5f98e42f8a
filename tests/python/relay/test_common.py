# SPDX-License-Identifier: Apache-2.0
"""`relay.frontend.common`, and devices of functions."""

import numpy as np

import baton as tvm
from baton import relay
from baton.relay.frontend.common import infer_channels, infer_shape, infer_type, new_var


def test_types_of_expressions():
    x = new_var("x", shape=(2, 3))
    assert infer_type(relay.nn.softmax(x)).checked_type == relay.TensorType((2, 3))
    f = infer_type(relay.Function([x], relay.nn.relu(x)))
    assert isinstance(f, relay.Function) and f.ret_type == relay.TensorType((2, 3))
    mod = tvm.IRModule()
    double = relay.GlobalVar("double")
    mod[double] = relay.Function([x], relay.add(x, x))
    assert infer_type(relay.Call(double, [x]), mod).checked_type == relay.TensorType((2, 3)) and "main" not in mod
    assert infer_shape(relay.reshape(x, (3, 2))) == (3, 2)
    assert infer_channels(relay.const(np.zeros((8, 4, 3, 3), "float32"))) == 8
    assert infer_channels(relay.const(np.zeros((8, 4, 3, 3), "float32")), transpose=True) == 4


def test_function_on_device():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.annotation.function_on_device(relay.Function([x, y], relay.add(x, y)), [tvm.cpu(0), tvm.cuda(0)], "cuda")
    assert list(f.attrs["param_device_types"]) == [1, 2] and f.attrs["result_device_type"] == 2


def test_kinds_of_values_are_those_of_the_header():
    import re
    from pathlib import Path

    from baton._ffi.runtime_ctypes import ArgTypeCode
    from baton.config import include_dir

    text = Path(include_dir(), "baton/runtime/c_runtime_api.h").read_text(encoding="utf-8")
    numbers = {int(n) for n in re.findall(r"^  kBaton\w+ = (\d+)", text, re.MULTILINE)}
    assert numbers == {v for n, v in vars(ArgTypeCode).items() if n.isupper()} and ArgTypeCode.DLTENSOR_HANDLE == 9
