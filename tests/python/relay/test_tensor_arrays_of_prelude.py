# SPDX-License-Identifier: Apache-2.0
"""Arrays of tensors: found in the module of the prelude by their names, and of shapes that are not known."""

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps


def run(mod, *args):
    return relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args)


def static(dtype, shape):
    mod = tvm.IRModule()
    ops = StaticTensorArrayOps(Prelude(mod), dtype, shape)
    ops.register()
    return mod, ops


def written(ops, *tensors):
    """An array of the data of variables."""
    array = ops.get_global_var("tensor_array")(relay.const(len(tensors)))
    for i, t in enumerate(tensors):
        array = ops.get_global_var("tensor_array_write")(array, relay.const(i), ops.get_ctor("tensor_constructor")(t))
    return array


def data(value):
    """The array within a value of a data type of tensors."""
    return value[0].numpy()


def test_names_are_entered_when_they_are_asked_for():
    mod = tvm.IRModule()
    p = Prelude(mod)
    before = len(mod.functions)
    assert mod.get_global_var("tensor_array_stack_float32").name_hint == "tensor_array_stack_float32"
    assert len(mod.functions) > before
    var, *constructors = mod.get_type("tensor_int32_t")
    assert var.name_hint == "tensor_int32_t" and mod.get_global_type_var("tensor_int32_t") == var and len(constructors) == 8
    assert isinstance(mod["tensor_take_uint8"], relay.Function)
    assert p.get_ctor("tensor_float32_t", "tensor1", "float32").name_hint == "tensor1_float32"
    assert p.get_ctor("tensor_t", "tensor_nil", "float32").name_hint == "tensor_nil_float32"
    for name in ("tensor_nothing_float32", "nothing"):
        with pytest.raises(ValueError, match=f"no function @{name}"):
            mod.get_global_var(name)
    with pytest.raises(ValueError, match="no function @tensor_array_float32"):
        tvm.IRModule().get_global_var("tensor_array_float32")
    ops = TensorArrayOps(p, "float16")
    ops.define_tensor_array()
    assert ops.get_global_var("tensor_array_stack").name_hint in mod


def test_stack_and_gather_of_open_shapes():
    mod, ops = static("float32", [relay.Any(), 3])
    x, y = (relay.var(n, shape=(relay.Any(), 3)) for n in "xy")
    mod["main"] = relay.Function([x, y], ops.get_global_var("tensor_array_gather")(written(ops, x, y), relay.const(np.array([1, 0, 1], "int32"))))
    a, b = np.random.rand(2, 3).astype("float32"), np.random.rand(2, 3).astype("float32")
    np.testing.assert_array_equal(data(run(mod, a, b)), np.stack([b, a, b]))
    assert ops.prelude.get_global_var_static("tensor_array_stack", "float32", [relay.Any(), 3]).name_hint == "tensor_array_stack_float32_any_3"


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_concatenate_tensors_of_an_array(dtype):
    mod, ops = static(dtype, [relay.Any(), 3])
    x, y = (relay.var(n, shape=(relay.Any(), 3), dtype=dtype) for n in "xy")
    mod["main"] = relay.Function([x, y], ops.get_global_var("tensor_array_concat")(written(ops, x, y)))
    a, b = np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(4, 3).astype(dtype)
    np.testing.assert_array_equal(data(run(mod, a, b)), np.concatenate([a, b]))


@pytest.mark.parametrize("lengths_shape", [None, [2]])
@pytest.mark.parametrize("value_shape", [None, [6, 3]])
def test_split_a_tensor_into_an_array(value_shape, lengths_shape):
    mod, ops = static("float32", [6, 3])
    if value_shape or lengths_shape:
        ops.define_tensor_array_split(value_shape, lengths_shape, True)
    any_length = StaticTensorArrayOps(ops.prelude, "float32", [relay.Any(), 3])
    any_length.register()
    first, x, lengths = (relay.var("first", shape=(relay.Any(), 3)), relay.var("x", shape=(6, 3)), relay.var("lengths", shape=(2,), dtype="int32"))
    array = ops.get_global_var("tensor_array_split")(written(any_length, first, first, first), ops.get_ctor("tensor_constructor")(x), lengths)
    mod["main"] = relay.Function([first, x, lengths], any_length.get_global_var("tensor_array_concat")(array))
    a, b = np.full((1, 3), -1, "float32"), np.random.rand(6, 3).astype("float32")
    np.testing.assert_array_equal(data(run(mod, a, b, np.array([2, 4], "int32"))), np.concatenate([b, a]))


def test_scatter_by_indices_of_a_known_shape():
    mod, ops = static("float32", [2, 3])
    ops.define_tensor_array_scatter([2], True)
    x, y = (relay.var(n, shape=(2, 3)) for n in "xy")
    indices = relay.var("indices", shape=(2,), dtype="int32")
    array = ops.get_global_var("tensor_array_scatter")(written(ops, x, x, x), indices, written(ops, y, x))
    mod["main"] = relay.Function([x, y, indices], ops.get_global_var("tensor_array_stack")(array))
    a, b = np.random.rand(2, 3).astype("float32"), np.random.rand(2, 3).astype("float32")
    np.testing.assert_array_equal(data(run(mod, a, b, np.array([2, 0], "int32"))), np.stack([a, a, b]))
