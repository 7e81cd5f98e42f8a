# SPDX-License-Identifier: Apache-2.0
"""Annotations, devices, explicit memory and the virtual machine's operators."""

import numpy as np
import pytest
from cases import Case, Reject, Typed, Value, boolean, each, f16, f32, i8, i64, rejects, table, typed, u8

import baton
from baton import relay


def same(x, **kw):
    return x


ANNOTATIONS = ("annotation.stop_fusion", "annotation.checkpoint", "on_device", "device_copy")
test_annotations = table(
    *[Case(op, same, x, fold=False) for op in ANNOTATIONS for x in (f32(2, 3), i64(), boolean(0, 2), f16(3))],
    *[
        Case(op, same, x, compiler="dnnl", fold=False)
        for op in ("annotation.compiler_begin", "annotation.compiler_end")
        for x in (f32(2, 3), i64(), boolean(0, 2))
    ],
    *[Case("annotation.cast_hint", same, x, dtype="int8", fold=False) for x in (f32(2, 3), i64(), boolean(0, 2))],
    Case("on_device", same, u8(3), device_type=each(-1, 1), fold=False),
    Case("on_device", same, u8(3), device_type=1, is_fixed=True, fold=False),  # which needs a device
    Case("device_copy", same, u8(3), src_dev_type=each(-1, 1), dst_dev_type=1, fold=False),
    dynamic=True,
)

test_vm = table(
    Case("vm.reshape_tensor", lambda x, s, newshape: x.reshape(s), f32(2, 3), Value([3, 2], "int64"), newshape=each([3, 2], [-1, 2], [-1, -1]), fold=False),
    Case("vm.reshape_tensor", lambda x, s, newshape: x.reshape(s), i8(0), Value([3, 0], "int32"), newshape=[3, 0], fold=False),
    Case("vm.reshape_tensor", lambda x, s, newshape: x.reshape(()), i8(1), Value([], "int64"), newshape=[], fold=False),
    dynamic=True,
)


def primitive():
    x = relay.var("x", shape=(2, 3))
    return relay.Function([x], relay.exp(x))


def storage():
    return relay.op.memory.alloc_storage(relay.const(24, "int64"), relay.const(64, "int64"), dtype="float32")


A, N = ((2, 3), "float32"), ((), "int64")
test_types = typed(
    Typed("memory.alloc_storage", "Storage", N, N, dtype="float32"),
    Typed("memory.alloc_storage", "Storage", ((), "int32"), N, dtype="int8", device_type=1, device_id=0),
    Typed("memory.alloc_tensor", "Tensor[(2, 3), float32]", storage, N, np.array([2, 3]), dtype="float32"),
    Typed("memory.alloc_tensor", "Tensor[(?, ?), float32]", storage, N, ((2,), "int64"), dtype="float32"),
    Typed("memory.alloc_tensor", "Tensor[(2, 3), int8]", storage, N, ((2,), "int64"), dtype="int8", const_shape=[2, 3]),
    Typed("memory.alloc_tensor", "Tensor[(2, ?), int8]", storage, N, ((2,), "int64"), dtype="int8", assert_shape=[2, -1]),
    Typed("memory.kill", "()", A),
    Typed("memory.append", "Tensor[(6, 3), float32]", A, ((4, 3), "float32")),
    Typed("memory.append", "Tensor[(2, 3), float32]", A, ((0, 3), "float32")),
    Typed("vm.invoke_tvm_op", "()", primitive, [A], [A]),
    Typed("vm.shape_func", "()", primitive, [((2,), "int64")], [((2,), "int64")], is_input=[0]),
)
test_rejects = rejects(
    *[Reject("on_device", "R1", ((2,), "float32"), device_type=d, says=f"`device_type` is {d}") for d in (0, 99, -2)],
    Reject("device_copy", "R1", ((2,), "float32"), src_dev_type=99, dst_dev_type=1, says="`src_dev_type` is 99"),
    Reject("device_copy", "R1", ((2,), "float32"), src_dev_type=1, dst_dev_type=0, says="`dst_dev_type` is 0"),
    Reject("memory.append", "R1", N, N),
    Reject("memory.append", "R2", A, ((2, 4), "float32"), says="takes no rows of"),
    Reject("memory.append", "R2", A, ((2, 3, 1), "float32")),
    Reject("memory.append", "R2", A, ((2, 3), "float16")),
    Reject("memory.alloc_storage", "R1", ((), "float32"), N),
    Reject("memory.alloc_storage", "R1", N, ((1,), "int64")),
    Reject("memory.alloc_tensor", "R1", A, N, ((2,), "int64")),
    Reject("memory.alloc_tensor", "R2", storage, ((1,), "int64"), ((2,), "int64")),
    Reject("memory.alloc_tensor", "R2", storage, N, ((2,), "float32")),
    Reject("memory.alloc_tensor", "R2", storage, N, ((2, 1), "int64")),
    Reject("memory.alloc_tensor", "R3", storage, N, ((relay.Any(),), "int64")),
    Reject("memory.alloc_tensor", "R4", storage, N, ((2,), "int64"), const_shape=[2]),
    Reject("memory.alloc_tensor", "R4", storage, N, np.array([2, -3])),
    Reject("vm.reshape_tensor", "R1", A, ((2,), "float32"), newshape=[3, 2]),
    Reject("vm.reshape_tensor", "R1", A, ((2, 1), "int64"), newshape=[3, 2]),
    Reject("vm.reshape_tensor", "R1", A, ((3,), "int64"), newshape=[3, 2]),
    Reject("vm.reshape_tensor", "R2", A, ((2,), "int64"), newshape=[3, 3]),
)


@pytest.mark.parametrize("shape, newshape", [([4, 2], [-1, -1]), ([-1, -6], [-1, -1]), ([2, 3], [3, -1]), ([2**62, 2**62], [-1, -1])])
def test_reshape_tensor_to_a_wrong_shape(shape, newshape):
    x, s = relay.var("x", shape=(2, 3)), relay.var("s", shape=(2,), dtype="int64")
    func = relay.Function([x, s], relay.op.vm.reshape_tensor(x, s, newshape=newshape))
    run = relay.create_executor("debug", baton.IRModule.from_expr(func)).evaluate()
    with pytest.raises(baton.error.RuntimeError, match="vm.reshape_tensor"):
        run(np.zeros((2, 3), "float32"), np.array(shape, "int64"))
