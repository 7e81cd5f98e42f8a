# SPDX-License-Identifier: Apache-2.0
"""Operators whose indices are data: take, gather, scatter, one_hot, sparse_to_dense, col2im."""

import itertools

import numpy as np
from cases import Case, Reject, Value, bf16, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

from baton import relay


def wrapped(i, n, mode):
    i = i.astype("int64")
    if mode == "wrap":
        return np.mod(i, max(n, 1))
    if mode == "negative":
        i = np.where(i < 0, i + n, i)
    return np.clip(i, 0, max(n - 1, 0))


def take(x, i, axis=None, batch_dims=0, mode="clip"):
    if axis is None:
        return x.reshape(-1)[wrapped(i, x.size, mode)]
    axis = axis % x.ndim
    b = batch_dims + i.ndim if batch_dims < 0 else batch_dims
    i = wrapped(i, x.shape[axis], mode)
    if b == 0:
        return np.take(x, i, axis)
    out = np.zeros(x.shape[:axis] + i.shape[b:] + x.shape[axis + 1 :], x.dtype)
    for at in itertools.product(*(range(n) for n in x.shape[:b])):
        out[at] = np.take(x[at], i[at], axis - b)
    return out


def from_end(i, n):
    i = i.astype("int64")
    return np.clip(np.where(i < 0, i + n, i), 0, max(n - 1, 0))


def gather(x, i, axis):
    axis = axis % x.ndim
    return np.take_along_axis(x[tuple(slice(0, n) if d != axis else slice(None) for d, n in enumerate(i.shape))], from_end(i, x.shape[axis]), axis)


def gather_nd(x, i, batch_dims=0, index_rank=None, index_last=False):
    i = i if index_last else np.moveaxis(i, 0, -1)
    outer, m, b = i.shape[:-1], i.shape[-1], batch_dims
    out = np.zeros(outer + x.shape[b + m :], x.dtype)
    for at in itertools.product(*(range(n) for n in outer)):
        out[at] = x[at[:b] + tuple(int(from_end(np.asarray(k), n)) for k, n in zip(i[at], x.shape[b:], strict=False))]
    return out


COMBINE = {"update": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}


def scatter_elements(x, i, v, axis=0, reduction="update"):
    out = x.copy()
    axis = axis % x.ndim
    for at in itertools.product(*(range(n) for n in i.shape)):
        k, n = int(i[at]), x.shape[axis]
        if -n <= k < n:
            to = (*at[:axis], k % n, *at[axis + 1 :])
            out[to] = COMBINE[reduction](out[to], v[at])
    return out


def scatter_nd(x, i, v, mode="update", index_last=False):
    i = i if index_last else np.moveaxis(i, 0, -1)
    out, m = x.copy(), i.shape[-1]
    for at in itertools.product(*(range(n) for n in i.shape[:-1])):
        k = tuple(int(j) for j in i[at])
        if all(-n <= j < n for j, n in zip(k, x.shape, strict=False)):
            for rest in itertools.product(*(range(n) for n in x.shape[m:])):
                out[k + rest] = COMBINE[mode](out[k + rest], v[at + rest])
    return out


def sparse_to_dense(i, v, default, output_shape):
    out = np.full(output_shape, default, v.dtype)
    rows = i.reshape(1, 1) if i.ndim == 0 else i.reshape(-1, 1) if i.ndim == 1 else i
    for k, row in enumerate(rows):
        if all(0 <= j < n for j, n in zip(row, output_shape, strict=True)):
            out[tuple(row)] = v if v.ndim == 0 else v[k]
    return out


def one_hot(i, on, off, depth, axis=-1, dtype=None):
    axis = axis + i.ndim + 1 if axis < 0 else axis
    i = np.expand_dims(i.astype("int64"), axis)
    k = np.arange(depth).reshape([depth if d == axis else 1 for d in range(i.ndim)])
    return np.where((i == k) | (i + depth == k), on.reshape(()), off.reshape(())).astype(dtype or on.dtype)


MODES = each("clip", "wrap", "fast", "negative")
test_take = table(
    Case("take", take, f32(4, 5), i64(2, 3), mode=MODES),
    Case("take", take, f32(4, 5), i32(3), axis=each(0, 1, -1, -2), mode=MODES),
    Case("take", take, boolean(4), i8(), axis=0, mode=MODES),
    Case("take", take, f16(4, 5), u8(2, 2), axis=1),
    Case("take", take, bf16(3, 2, 4), i64(3, 2), axis=each(1, 2, -1), batch_dims=each(0, 1), mode="wrap"),
    Case("take", take, i64(3, 2, 4), i64(3, 2), axis=2, batch_dims=each(2, -1, -2, 1)),
    Case("take", take, f64(), i64(3)),
    Case("take", take, f32(0), i64(0), axis=each(None, 0)),
    Case("take", take, f32(3, 0), i64(2), axis=0),
    Case("take", take, f32(4), Value([-(2**63), 2**63 - 1, -1, 3], "int64"), axis=0, mode=MODES),
    Case("take", take, f32(40, 30), i64(50), axis=0, name="large"),
    dynamic=True,
)

test_gather = table(
    Case("gather", gather, f32(3, 4), i64(3, 2).within(-4, 3), axis=each(1, -1)),
    Case("gather", gather, i8(3, 4), i32(5, 4).within(-3, 2), axis=each(0, -2)),
    Case("gather", gather, bf16(3, 4), u8(2, 6).within(0, 3), axis=1),
    Case("gather", gather, f32(3), i64(4), axis=0, name="out of range"),
    Case("gather", gather, boolean(0, 2), i64(0, 2), axis=0),
    Case("gather", gather, f32(2, 0), i64(2, 0), axis=each(0, 1)),
    Case("gather_nd", gather_nd, f32(3, 4, 2), i64(2, 5)),
    Case("gather_nd", gather_nd, f32(3, 4, 2), i32(3, 2, 2)),
    Case("gather_nd", gather_nd, f16(3, 4), i64(5, 1), index_last=True),
    Case("gather_nd", gather_nd, u8(3, 4), i64(5, 2), index_last=True),
    Case("gather_nd", gather_nd, i64(2, 3, 4), i64(2, 5, 1), batch_dims=1, index_last=True),
    Case("gather_nd", gather_nd, i64(2, 3, 4), i64(2, 2, 3), batch_dims=1),
    Case("gather_nd", gather_nd, f32(2, 3), i64(0, 4)),
    Case("gather_nd", gather_nd, f32(2, 3), i64(0), index_last=True),
    Case("gather_nd", gather_nd, f32(2, 3), i64(2)),
    Case("gather_nd", gather_nd, f32(2, 3), i64(2, 0)),
)
# The length of an index tuple has to be known: by the type or as an attribute.
test_gather_dynamic = table(
    Case("gather", gather, f32(3, 4), i64(3, 2).within(-4, 3), axis=1, dynamic=True),
    Case("gather_nd", gather_nd, f32(3, 4), i64(2, 5), index_rank=2, dynamic=True),
    Case("gather_nd", gather_nd, f32(3, 4), i64(2, 5), dynamic="R3"),
)

N = each("update", "add", "mul", "min", "max")
test_scatter = table(
    Case("scatter_elements", scatter_elements, f32(3, 4), i64(2, 4).within(-4, 4), f32(2, 4), axis=each(0, 1, -1), reduction=N),
    Case("scatter_elements", scatter_elements, i32(5), i32(8).within(-6, 6), i32(8), reduction=N),
    Case("scatter_elements", scatter_elements, u8(5), u8(4).within(0, 6), u8(4).within(0, 3), reduction=N),
    Case("scatter_elements", scatter_elements, f16(5), i64(4).within(0, 3), f16(4), reduction=each("update", "min", "max")),
    Case("scatter_elements", scatter_elements, boolean(5), i64(4).within(0, 3), boolean(4)),
    Case("scatter_elements", scatter_elements, f32(5), i64(0), f32(0), reduction=N),
    Case("scatter_elements", scatter_elements, f32(0, 2), i64(0, 2), f32(0, 2), reduction=N),
    Case("scatter_elements", scatter_elements, f32(0), i64(3), f32(3), reduction=N),
    Case("scatter", scatter_elements, f32(3, 4), i64(3, 3).within(-4, 3), f32(3, 3), axis=each(1, -1)),
    Case("scatter", scatter_elements, bf16(5), i32(3).within(-5, 5), bf16(3), axis=0),
    Case("scatter_add", lambda x, i, v, axis: scatter_elements(x, i, v, axis, "add"), f64(3, 4), i64(2, 4).within(-3, 2), f64(2, 4), axis=each(0, -2)),
    Case("scatter_add", lambda x, i, v, axis: scatter_elements(x, i, v, axis, "add"), i8(2, 2), i64(2, 9).within(-3, 2), i8(2, 9), axis=1),
    Case("scatter_nd", scatter_nd, f32(3, 4), i64(2, 5).within(-4, 4), f32(5), mode=N),
    Case("scatter_nd", scatter_nd, f32(3, 4), i64(1, 2).within(-4, 3), f32(2, 4), mode=N),
    Case("scatter_nd", scatter_nd, i64(3, 4), i32(3, 2).within(-3, 3), i64(3), mode=N, index_last=True),
    Case("scatter_nd", scatter_nd, u8(3, 4), i64(2, 2, 1).within(-3, 2), u8(2, 2, 4), index_last=True),
    Case("scatter_nd", scatter_nd, f32(3, 4), i64(2, 0), f32(0), mode=N),
    Case("scatter_nd", scatter_nd, f32(3), i64(1), f32(), mode=N),
    Case("scatter_nd", scatter_nd, f16(2, 3), i64(0, 4), f16(4, 2, 3), name="whole"),
    # Data that threads copy, in vectors with a rest.
    Case("scatter_nd", scatter_nd, f32(700, 601), i64(1, 3).within(-700, 699), f32(3, 601), mode=N),
    Case("scatter_elements", scatter_elements, u8(1300, 601), i64(2, 601).within(-1300, 1299), u8(2, 601), axis=0),
)
test_scatter_dynamic = table(
    Case("scatter_elements", scatter_elements, f32(3, 4), i64(2, 4).within(-4, 4), f32(2, 4), dynamic=True),
    Case("scatter_nd", scatter_nd, f32(3, 4), i64(2, 5).within(-3, 2), f32(5), dynamic="R4"),
)

test_unravel = table(
    Case("unravel_index", lambda i, s: np.array(np.unravel_index(i, tuple(s))).astype(i.dtype), i64(2, 3).within(0, 23), Value([2, 3, 4], "int64")),
    Case("unravel_index", lambda i, s: np.array(np.unravel_index(i, tuple(s))).astype(i.dtype), i32().within(0, 11), Value([3, 4], "int32")),
    Case("unravel_index", lambda i, s: i[None], u8(4).within(0, 9), Value([10], "int64")),
    Case("unravel_index", lambda i, s: np.zeros((2, 0), "int64"), i64(0), Value([10, 2], "int64")),
)

test_dense = table(
    Case("sparse_to_dense", sparse_to_dense, Value([[0, 1], [2, 3], [1, 1]], "int64"), f32(3), f32(), output_shape=[3, 4]),
    Case("sparse_to_dense", sparse_to_dense, Value([0, 4, 1], "int32"), i64(3), i64(), output_shape=[5]),
    Case("sparse_to_dense", sparse_to_dense, Value([0, 9, -1], "int32"), u8(3), u8(), output_shape=[5]),
    Case("sparse_to_dense", sparse_to_dense, Value([[0, 1], [2, 3]], "int64"), f16(), f16(), output_shape=[3, 4]),
    Case("sparse_to_dense", sparse_to_dense, Value(3, "int64"), boolean(), boolean(), output_shape=[5]),
    Case("sparse_to_dense", sparse_to_dense, Value(np.zeros((0, 2)), "int64"), f32(0), f32(), output_shape=[3, 2]),
    Case("sparse_to_dense", sparse_to_dense, Value([[0, 0]], "int64"), f32(1), f32(), output_shape=[0, 2]),
    Case("one_hot", one_hot, i64(3, 2).within(-5, 5), f32(), f32(), depth=each(4, 1), axis=each(-1, 0, 1, -2)),
    Case("one_hot", one_hot, i32(3).within(-5, 5), i8(1), i8(1), depth=4, dtype=each("float32", "int64", "bool")),
    Case("one_hot", one_hot, u8(3).within(0, 5), f16(), f16(), depth=4),
    Case("one_hot", one_hot, Value([255, 0, 1], "uint8"), f32(), f32(), depth=each(2, 256)),
    Case("one_hot", one_hot, i64(), f64(), f64(), depth=3),
    Case("one_hot", one_hot, i64(0, 2), boolean(), boolean(), depth=3, axis=each(0, 1)),
    Case("one_hot", one_hot, i64(2), f32(), f32(), depth=0),
)


def col2im(x, image_shape, block_shape, dilations=None, pads=None, strides=None):
    n = len(image_shape)
    dilations, strides, pads = dilations or [1] * n, strides or [1] * n, pads or [0] * 2 * n
    block = int(np.prod(block_shape))
    full = [image_shape[d] + pads[d] + pads[n + d] for d in range(n)]
    count = [(full[d] - dilations[d] * (block_shape[d] - 1) - 1) // strides[d] + 1 for d in range(n)]
    out = np.zeros((x.shape[0], x.shape[1] // block, *full), "float64" if x.dtype.kind == "f" else x.dtype)
    parts = x.reshape(x.shape[0], x.shape[1] // block, *block_shape, *count)
    for k in itertools.product(*(range(b) for b in block_shape)):
        at = tuple(slice(k[d] * dilations[d], k[d] * dilations[d] + (count[d] - 1) * strides[d] + 1, strides[d]) for d in range(n))
        out[(slice(None), slice(None), *at)] += parts[(slice(None), slice(None), *k)]
    return out[(slice(None), slice(None), *(slice(pads[d], full[d] - pads[n + d]) for d in range(n)))].astype(x.dtype)


test_col2im = table(
    Case("col2im", col2im, f32(1, 5, 5), image_shape=[5, 5], block_shape=[1, 5], rtol=1e-5),
    Case("col2im", col2im, f32(2, 8, 12), image_shape=[4, 5], block_shape=[2, 2], rtol=1e-5, atol=1e-6),
    Case("col2im", col2im, i32(1, 9, 4), image_shape=[5, 5], block_shape=[3, 3], dilations=[2, 2], pads=[1, 0, 0, 1]),
    Case("col2im", col2im, f64(1, 4, 9), image_shape=[5, 5], block_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]),
    Case("col2im", col2im, f32(2, 3, 6), image_shape=[8], block_shape=[3], rtol=1e-5, atol=1e-6),
    Case("col2im", col2im, f16(1, 8, 8), image_shape=[3, 3, 3], block_shape=[2, 2, 2], atol=5e-3),
    Case("col2im", col2im, f32(0, 4, 9), image_shape=[4, 4], block_shape=[2, 2]),
    dynamic=True,
)


def set_row(x, row, at):
    out = x.copy()
    out[at] = row
    return out


test_set_row = table(
    Case("contrib_set_row", set_row, f32(4, 3), f32(3), Value(2, "int64")),
    Case("contrib_set_row", set_row, i8(4, 3, 2), i8(3, 2), Value(0, "int32")),
    Case("contrib_set_row", set_row, f64(1), f64(), Value(0, "int64")),
    Case("contrib_set_row", set_row, f32(2, 0), f32(0), Value(1, "int64")),
)
test_check_index = table(
    *[Case("contrib_check_index", lambda i, **_: i.dtype.type(0), make(100).within(-7, 6), extents=[7], axis=each(0, 2)) for make in (i32, i64, i8)],
    Case("contrib_check_index", lambda i, **_: i.dtype.type(0), u8(3, 5).within(0, 6), extents=[7], place="node"),
    Case("contrib_check_index", lambda i, **_: i.dtype.type(0), i64().within(-1, 0), extents=[1]),
    Case("contrib_check_index", lambda i, **_: i.dtype.type(0), Value([[-3, 4], [2, -5]], "int64"), extents=[3, 5]),
    Case("contrib_check_index", lambda i, **_: i.dtype.type(0), i64(0, 2), extents=[3, 5]),
)

A, AT = ((3, 4), "float32"), ((2,), "int64")
test_rejects = rejects(
    Reject("take", "R1", A, ((2,), "float32")),
    Reject("contrib_set_row", "R1", ((), "float32"), ((), "float32"), ((), "int64")),
    Reject("contrib_set_row", "R2", A, ((3,), "float32"), ((), "int64")),
    Reject("contrib_set_row", "R2", A, ((4,), "float64"), ((), "int64")),
    Reject("contrib_set_row", "R3", A, ((4,), "float32"), ((), "float32")),
    Reject("contrib_set_row", "R3", A, ((4,), "float32"), ((1,), "int64")),
    Reject("contrib_check_index", "R1", A, extents=[3]),
    Reject("contrib_check_index", "R2", AT, extents=[]),
    Reject("contrib_check_index", "R2", AT, extents=[3, 4, 5]),
    Reject("contrib_check_index", "R3", AT, extents=[-1, 4]),
    Reject("contrib_check_index", "R3", AT, ((3,), "int64"), extents=[-1, 4]),
    Reject("contrib_check_index", "R3", AT, ((2,), "float32"), extents=[-1, 4]),
    Reject("take", "R2", A, AT, mode="raise"),
    Reject("take", "R3", A, AT, axis=0, batch_dims=1),
    Reject("take", "R3", A, AT, batch_dims=1),
    Reject("take", "R3", A, AT, axis=0, batch_dims=-2),
    Reject("take", "R4", ((), "float32"), AT, axis=0),
    Reject("take", "R5", A, AT, axis=1, batch_dims=1),
    Reject("take", "R6", ((0,), "float32"), AT),
    Reject("take", "R6", ((0, 2), "float32"), AT, axis=0),
    Reject("gather", "R1", A, ((3, 4), "float32"), axis=0),
    Reject("gather", "R2", A, AT, axis=0),
    Reject("gather", "R2", A, ((4, 4), "int64"), axis=1),
    Reject("gather", "R2", ((), "float32"), ((), "int64"), axis=0),
    Reject("gather", "R3", ((0,), "float32"), AT, axis=0),
    Reject("gather_nd", "R1", A, ((2,), "float32")),
    Reject("gather_nd", "R2", A, ((), "int64")),
    Reject("gather_nd", "R3", A, ((relay.Any(),), "int64")),
    Reject("gather_nd", "R4", A, ((3, 1), "int64")),
    Reject("gather_nd", "R4", A, ((1,), "int64"), batch_dims=1),
    Reject("gather_nd", "R5", A, ((1, 2), "int64"), batch_dims=1),
    Reject("gather_nd", "R6", ((0, 2), "float32"), ((1, 3), "int64")),
    Reject("sparse_to_dense", "R1", ((2,), "float32"), ((2,), "float32"), ((), "float32"), output_shape=[4]),
    Reject("sparse_to_dense", "R2", AT, ((2,), "float32"), ((), "float16"), output_shape=[4]),
    Reject("sparse_to_dense", "R3", ((2, 1, 1), "int64"), ((2,), "float32"), ((), "float32"), output_shape=[4]),
    Reject("sparse_to_dense", "R3", AT, ((2, 1), "float32"), ((), "float32"), output_shape=[4]),
    Reject("sparse_to_dense", "R3", AT, ((2,), "float32"), ((1,), "float32"), output_shape=[4]),
    Reject("sparse_to_dense", "R4", ((2, 3), "int64"), ((2,), "float32"), ((), "float32"), output_shape=[4]),
    Reject("sparse_to_dense", "R5", AT, ((3,), "float32"), ((), "float32"), output_shape=[4]),
    Reject("unravel_index", "R1", A, AT),
    Reject("unravel_index", "R1", AT, ((2, 1), "int64")),
    Reject("unravel_index", "R2", AT, ((65,), "int64")),
    Reject("one_hot", "R1", ((2,), "float32"), ((), "float32"), ((), "float32"), depth=2),
    Reject("one_hot", "R2", AT, ((), "float32"), ((), "int32"), depth=2),
    Reject("one_hot", "R3", AT, ((2,), "float32"), ((), "float32"), depth=2),
    Reject("one_hot", "R3", AT, ((), "float32"), ((0,), "float32"), depth=2),
    Reject("col2im", "R1", ((1, 4, 9), "float32"), image_shape=[4, 4], block_shape=[2]),
    Reject("col2im", "R1", ((1, 4, 9), "float32"), image_shape=[4, 4], block_shape=[2, 2], strides=[0, 1]),
    Reject("col2im", "R1", ((1, 4, 9), "float32"), image_shape=[4, 4], block_shape=[2, 2], pads=[1]),
    Reject("col2im", "R2", ((1, 4), "float32"), image_shape=[4, 4], block_shape=[2, 2]),
    Reject("col2im", "R2", ((1, 4, 9), "bool"), image_shape=[4, 4], block_shape=[2, 2]),
    Reject("col2im", "R3", ((1, 4, 8), "float32"), image_shape=[4, 4], block_shape=[2, 2]),
    Reject("col2im", "R3", ((1, 3, 9), "float32"), image_shape=[4, 4], block_shape=[2, 2]),
    *[
        Reject(op, rule, *inputs, **({"axis": 0} if op != "scatter_elements" else {}))
        for op in ("scatter_elements", "scatter", "scatter_add")
        for rule, inputs in (
            ("R2", (A, ((2, 4), "float32"), ((2, 4), "float32"))),
            ("R3", (A, ((2, 4), "int64"), ((2, 4), "float64"))),
            ("R4", (A, AT, ((2,), "float32"))),
            ("R4", (A, ((2, 5), "int64"), ((2, 5), "float32"))),
            ("R4", (((), "float32"), ((), "int64"), ((), "float32"))),
            ("R5", (A, ((2, 4), "int64"), ((2, 3), "float32"))),
        )
    ],
    Reject("scatter_elements", "R1", A, ((2, 4), "int64"), ((2, 4), "float32"), reduction="replace"),
    Reject("scatter_elements", "R1", ((3,), "bool"), AT, ((2,), "bool"), reduction="add"),
    Reject("scatter_add", "R1", ((3,), "bool"), AT, ((2,), "bool"), axis=0),
    Reject("scatter_nd", "R1", A, ((2, 5), "int64"), ((5,), "float32"), mode="set"),
    Reject("scatter_nd", "R2", A, ((2, 5), "float32"), ((5,), "float32")),
    Reject("scatter_nd", "R3", A, ((2, 5), "int64"), ((5,), "int32")),
    Reject("scatter_nd", "R4", A, ((3, 5), "int64"), ((5,), "float32")),
    Reject("scatter_nd", "R4", A, ((), "int64"), ((5,), "float32")),
    Reject("scatter_nd", "R5", A, ((2, 5), "int64"), ((4,), "float32")),
)


def test_scatter_is_in_order():
    """Of two updates of one element the later wins, however many there are."""
    n = 4000
    x, i, v = np.zeros(3, "float32"), np.arange(n) % 3, np.arange(n, dtype="float32")
    from cases import call, evaluate

    expr, variables, values = call("scatter_elements", [x, i, v], {})
    for kind in ("debug", "graph"):
        np.testing.assert_array_equal(evaluate(relay.Function(variables, expr), values, kind)[0], [3999, 3997, 3998])


def run(build, *inputs):
    """The value by the interpreter and compiled, which have to agree."""
    from cases import evaluate

    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(inputs)]
    got = [evaluate(relay.Function(variables, build(*variables)), inputs, kind)[0] for kind in ("debug", "graph")]
    np.testing.assert_array_equal(*got)
    return got[0]


def test_composed_functions():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    i, j = np.array([[1], [0]]), np.array([2, -1], "int32")
    np.testing.assert_array_equal(run(lambda x, i, j: relay.adv_index([x, i, j]), x, i, j), x[i, j])
    np.testing.assert_array_equal(run(lambda x, i: relay.adv_index(relay.Tuple([x, i])), x, i), x[i])
    np.testing.assert_array_equal(run(lambda x: relay.collapse_sum_to(x, (3, 1)), x), x.sum(0).sum(1, keepdims=True))
    np.testing.assert_array_equal(run(lambda x: relay.collapse_sum_to(x, relay.const([4])), x), x.sum((0, 1)))
    np.testing.assert_array_equal(run(lambda p: relay.invert_permutation(p), np.array([2, 0, 3, 1])), [1, 3, 0, 2])
    np.testing.assert_array_equal(run(lambda x, i: relay.take(x, i, 1), x, np.array([2, 0])), x[:, [2, 0]])
    np.testing.assert_array_equal(run(lambda x, i: relay.gather(x, 0, i), x, np.zeros((1, 3, 4), "int64")), x[:1])
    d = np.arange(1, 7, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(lambda x, d: relay.matrix_set_diag(x, d), x, d)[1], [[4, 13, 14, 15], [16, 5, 18, 19], [20, 21, 6, 23]])
    ids = np.array([1, 1])
    want = np.zeros((3, 3, 4), "float32")
    np.add.at(want, ids, x)
    np.testing.assert_array_equal(run(lambda x, s: relay.segment_sum(x, s, 3), x, ids), want)


def test_segment_sum_of_as_many_as_there_are():
    from cases import evaluate

    x, ids = relay.var("x", shape=(4, 2)), relay.var("ids", shape=(4,), dtype="int32")
    (got,) = evaluate(relay.Function([x, ids], relay.segment_sum(x, ids)), [np.ones((4, 2), "float32"), np.array([0, 2, 2, 0], "int32")])
    np.testing.assert_array_equal(got, [[2, 2], [0, 0], [2, 2]])
