# SPDX-License-Identifier: Apache-2.0
"""Tensors made from little or nothing, and shapes as tensors."""

import numpy as np
import pytest
from cases import Case, Reject, Value, bf16, bfloat16, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

import baton
from baton import relay
from baton.relay.op.make import operator

# A call without inputs, or that only makes a tensor, is not folded: the constant would be larger than what makes it.
DTYPES = each("float32", "float64", "float16", "int64", "int8", "uint8", "bool")


def made(op, value, *inputs, **more):
    return Case(op, value, *inputs, fold=False, **more)


def value(v):
    return lambda shape, dtype="float32": np.full(shape, v).astype(bfloat16 if dtype == "bfloat16" else dtype)


test_full = table(
    *[made(op, value(v), shape=each([], [3], [2, 3], [0, 2], [2, 1, 3]), dtype=DTYPES) for op, v in (("zeros", 0), ("ones", 1))],
    *[made(op, value(v), shape=[2, 2]) for op, v in (("zeros", 0), ("ones", 1))],
    *[made(op, value(v), shape=[3], dtype="bfloat16") for op, v in (("zeros", 0), ("ones", 1)) if bfloat16 is not None],
    made("full", lambda v, shape, dtype=None: np.full(shape, v.reshape(()), dtype or v.dtype), f32(), shape=each([], [2, 3], [0, 2])),
    made("full", lambda v, shape, dtype=None: np.full(shape, v.reshape(())).astype(dtype), i64(1).within(0, 9), shape=[3], dtype=DTYPES),
    made("full", lambda v, shape: np.full(shape, v.reshape(())), boolean(1, 1), shape=[2]),
    made("full", lambda v: v, f32()),
    made(
        "full", lambda v, shape, dtype: np.full(shape, v.reshape(())).astype(dtype), Value(2.75, "float32"), shape=[2], dtype=each("int32", "float16", "bool")
    ),
    dynamic=True,
)
test_like = table(
    *[
        made(op, lambda x, v=v: np.full(x.shape, v).astype(x.dtype), x)
        for op, v in (("zeros_like", 0), ("ones_like", 1))
        for x in (f32(2, 3), i64(), boolean(0, 2), f16(3), u8(1), bf16(2))
    ],
    *[
        made("full_like", lambda x, v: np.full(x.shape, v.reshape(())).astype(x.dtype), *p)
        for p in ((f32(2, 3), f32()), (i8(3), Value([2.75], "float32")), (f64(0, 2), i64()), (boolean(2), i32(1, 1)), (f16(), f32()))
    ],
    dynamic=True,
)

test_arange = table(
    Case(
        "arange",
        lambda a, b, s, dtype=None: np.arange(a, b, s, dtype or a.dtype),
        Value(0, "int64"),
        Value(7, "int64"),
        Value(2, "int64"),
        constant=(0, 1, 2),
        dtype=each("float32", "int64"),
    ),
    Case("arange", lambda a, b, s: np.arange(a, b, s, "float32"), Value(0, "int64"), Value(7, "int64"), Value(2, "int64"), constant=(0, 1, 2)),
    Case(
        "arange",
        lambda a, b, s, dtype=None: np.arange(a, b, s).astype(dtype),
        Value(5, "int32"),
        Value(-6, "int32"),
        Value(-3, "int32"),
        constant=(0, 1, 2),
        dtype=each("float32", "int64", "int8", "float16"),
    ),
    Case("arange", lambda a, b, s: np.arange(a, b, s, a.dtype), Value(1.5, "float32"), Value(4.0, "float32"), Value(0.5, "float32"), constant=(0, 1, 2)),
    Case(
        "arange", lambda a, b, s, dtype: np.arange(a, b, s, dtype), Value(3, "int64"), Value(3, "int64"), Value(1, "int64"), constant=(0, 1, 2), dtype="int64"
    ),
    Case(
        "arange", lambda a, b, s, dtype: np.arange(a, b, s, dtype), Value(3, "int64"), Value(9, "int64"), Value(-1, "int64"), constant=(0, 1, 2), dtype="int64"
    ),
    Case(
        "arange",
        lambda a, b, s, dtype: np.arange(a[0], b[0], s[0], dtype),
        Value([3], "int64"),
        Value([2**63 - 1], "int64"),
        Value([2**62], "int64"),
        constant=(0, 1, 2),
        dtype="int64",
    ),
    # Operands that are not constants: the length is not known before they are there.
    Case("arange", lambda a, b, s, dtype: np.arange(a, b, s, dtype), Value(1, "int64"), Value(9, "int64"), Value(2, "int64"), compiled=False, dtype="int64"),
    Case(
        "arange",
        lambda a, b, s, dtype: np.arange(a, b, s).astype(dtype),
        Value(1.0, "float64"),
        Value(2.5, "float64"),
        Value(0.25, "float64"),
        compiled=False,
        dtype=each("float32", "float64"),
    ),
)
test_eye = table(
    made("eye", lambda rows, cols, k=0, dtype="float32": np.eye(rows, cols, k, dtype=dtype), rows=each(3, 0, 1), cols=each(4, 2), k=each(0, 1, -1, 9, -9)),
    made("eye", lambda rows, cols, dtype: np.eye(rows, cols, dtype=dtype), rows=3, cols=3, dtype=DTYPES),
)
INTEGERS = each("int32", "int64", "uint8", "int8")
test_shape = table(
    *[
        Case(op, lambda x, dtype="int32", f=f: np.asarray(f(x), dtype=dtype), x, dtype=INTEGERS)
        for op, f in (("shape_of", np.shape), ("ndarray_size", np.size))
        for x in (f32(2, 3), i64(), boolean(0, 2), f16(1, 7, 1))
    ],
    *[Case(op, lambda x, f=f: np.asarray(f(x), dtype="int32"), f32(2, 3)) for op, f in (("shape_of", np.shape), ("ndarray_size", np.size))],
    *[Case("vm.shape_of", lambda x, dtype="int32": np.asarray(x.shape, dtype=dtype), x, dtype=INTEGERS, fold=False) for x in (f32(2, 3), i64(), boolean(0, 2))],
    dynamic=True,
)

test_rejects = rejects(
    Reject("zeros", "R1"),
    Reject("ones", "R1"),
    Reject("full", "R1", ((2,), "float32"), shape=[2]),
    Reject("full", "R1", ((0,), "float32"), shape=[2]),
    Reject("full_like", "R1", ((2,), "float32"), ((3,), "float32")),
    Reject("arange", "R1", ((), "bool"), ((), "bool"), ((), "bool")),
    Reject("arange", "R2", ((2,), "int64"), ((), "int64"), ((), "int64")),
    Reject("arange", "R3", np.array(0, "int64"), np.array(2, "int64"), np.array(0, "int64")),
    Reject("arange", "R3", np.array(0, "float32"), np.array(2, "float32"), np.array(0, "float32")),
    Reject("arange", "R3", np.array(np.nan, "float32"), np.array(2, "float32"), np.array(1, "float32")),
    Reject("arange", "R3", np.array(0, "float64"), np.array(np.inf, "float64"), np.array(1, "float64"), says="more than memory holds"),
    Reject("shape_of", "R1", ((2,), "float32"), dtype="float32"),
    Reject("ndarray_size", "R1", ((2,), "float32"), dtype="bool"),
    Reject("vm.shape_of", "R1", ((2,), "float32"), dtype="float32"),
)


@pytest.mark.parametrize(
    "op, inputs, attrs",
    [
        ("full", [((), "float32")], {"shape": [2]}),
        ("zeros", [], {"shape": [2]}),
        ("eye", [], {"rows": 2, "cols": 2}),
        ("arange", [((), "int64")] * 3, {}),
        ("one_hot", [((2,), "int64"), ((), "float32"), ((), "float32")], {"depth": 2}),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_results_hold_numbers(op, inputs, attrs):
    variables = [relay.var(f"x{k}", relay.TensorType(*t)) for k, t in enumerate(inputs)]
    func = relay.Function(variables, operator(op)(*variables, dtype="handle", **attrs))
    with pytest.raises(baton.error.CompileError, match="holds no numbers"):
        relay.transform.InferType()(baton.IRModule.from_expr(func))
