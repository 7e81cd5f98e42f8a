# SPDX-License-Identifier: Apache-2.0
"""Operators that give elements another place: reshape, transpose, join, cut, repeat, broadcast."""

import numpy as np
from cases import Case, Reject, Value, bf16, boolean, each, f16, f32, f64, i8, i32, i64, rejects, table, u8

from baton import relay


def reshaped(*shape):
    return lambda x, **kw: x.reshape(shape)


def mesh(*xs, indexing="ij"):
    return np.meshgrid(*xs[0], indexing=indexing)


def expand(x, axis=0, num_newaxis=1, axes=None):
    return np.expand_dims(x, tuple(axes) if axes is not None else tuple((axis if axis >= 0 else axis + x.ndim + 1) + k for k in range(num_newaxis)))


test_reshape = table(
    Case("reshape", reshaped(4, 6), f32(2, 3, 4), newshape=each([4, 6], [4, -1], [-1, 6])),
    Case("reshape", reshaped(2, 12), f32(2, 3, 4), newshape=each([0, -1], [0, -3], [0, 12])),
    Case("reshape", reshaped(2, 3, 4), i64(2, 3, 4), newshape=each([-2], [0, -2], [0, 0, -2], [0, 0, 0], [-1, 3, 4], [0, 0, 4])),
    Case("reshape", reshaped(2, 3, 4, 1, 1), u8(2, 3, 4), newshape=[-2, 1, 1]),
    Case("reshape", reshaped(6, 4), f16(2, 3, 4), newshape=each([-3, -2], [-3, 0])),
    Case("reshape", reshaped(6, 20), f32(2, 3, 4, 5), newshape=[-3, -3]),
    Case("reshape", reshaped(1, 2, 3, 4), bf16(2, 3, 4), newshape=each([-4, 1, 2, -2], [-4, 1, -1, -2], [-4, -1, 2, -2])),
    Case("reshape", reshaped(2, 1, 3, 4), boolean(2, 3, 4), newshape=[2, -4, -1, 3, -2]),
    Case("reshape", reshaped(1, 1), f64(), newshape=each([1, 1], [-1, 1])),
    Case("reshape", reshaped(), i8(1, 1), newshape=[]),
    Case("reshape", reshaped(), f32(), newshape=each([], [-2])),
    Case("reshape", reshaped(0, 5), f32(0, 3), newshape=[0, 5]),
    Case("reshape", reshaped(3, 0), f32(0, 3), newshape=each([3, 0], [3, -1]), allowzero=True),
    Case("reshape", reshaped(0, 3), f32(0, 3), newshape=each([-1, 3], [0, 0])),
    Case("reshape_like", lambda a, b: a.reshape(b.shape), f32(2, 6), i32(3, 4)),
    Case("reshape_like", lambda a, b: a.reshape(b.shape), i64(0, 6), u8(3, 0)),
    Case(
        "reshape_like",
        lambda a, b, **kw: a.reshape(1, 2, 3, 4),
        f32(1, 6, 4),
        f32(2, 3, 9),
        lhs_begin=each(1, -2),
        lhs_end=each(2, -1),
        rhs_begin=0,
        rhs_end=each(2, -1),
    ),
    Case("reshape_like", lambda a, b, **kw: a.reshape(2, 2, 3, 2), f32(2, 2, 6), f32(9, 3, 2, 9), lhs_begin=2, rhs_begin=1, rhs_end=3),
    Case("reshape_like", lambda a, b: a.reshape(()), f32(1), f32()),
    Case("nn.batch_flatten", lambda x: x.reshape(2, 12), f32(2, 3, 4)),
    Case("nn.batch_flatten", lambda x: x.reshape(3, 1), i8(3)),
    Case("nn.batch_flatten", lambda x: x.reshape(2, 0), f16(2, 0, 4)),
    Case("nn.batch_flatten", lambda x: x.reshape(0, 12), f32(0, 3, 4)),
    dynamic=True,
)


def reversed_reshape(*shape):
    return lambda x, newshape: x.reshape(shape)


test_reverse_reshape = table(
    Case("reverse_reshape", reversed_reshape(50, 4), f32(10, 5, 4), newshape=each([-1, 0], [50, 4], [50, -1], [50, 0])),
    Case("reverse_reshape", reversed_reshape(10, 20), i8(10, 5, 4), newshape=each([0, -3], [-2, -3], [-1, 20])),
    Case("reverse_reshape", reversed_reshape(2, 3, 4), f16(6, 4), newshape=each([-4, 2, 3, 0], [-4, 2, -1, 0], [-4, -1, 3, 0])),
    Case("reverse_reshape", reversed_reshape(), u8(1), newshape=[]),
    Case("reverse_reshape", reversed_reshape(0, 2), f32(2, 0), newshape=[-1, 2]),
    dynamic=True,
)

test_dims = table(
    Case("expand_dims", expand, f32(2, 3), axis=each(0, 1, 2, -1, -2, -3), num_newaxis=each(0, 1, 2)),
    Case("expand_dims", expand, i64(), axis=each(0, -1), num_newaxis=each(1, 3)),
    Case("expand_dims", expand, boolean(2, 0), axes=each([0, -1], [1], [], [3, 1], [-4, -3])),
    Case("squeeze", lambda x, axis: x.squeeze(tuple(axis)), f32(1, 3, 1), axis=each([0], [-1], [0, 2], [-3, 2], [])),
    Case("squeeze", np.squeeze, f32(1, 3, 1), dynamic="R2"),
    Case("squeeze", np.squeeze, u8(1, 1), dynamic="R2"),
    Case("squeeze", np.squeeze, f32(), dynamic=True),
    Case("squeeze", np.squeeze, bf16(0, 1), dynamic="R2"),
    Case("transpose", lambda x, axes=None: np.transpose(x, axes), f32(2, 3, 4), axes=each(None, [0, 1, 2], [2, 0, 1], [-1, 0, 1], [0, -1, -2])),
    Case("transpose", lambda x, axes=None: np.transpose(x, axes), i8(2, 0, 4), axes=each(None, [2, 0, 1])),
    Case("transpose", lambda x, axes=None: np.transpose(x, axes), boolean(33, 17)),
    Case("transpose", lambda x, axes=None: np.transpose(x, axes), bf16(5, 7)),
    Case("transpose", lambda x, axes=None: np.transpose(x, axes), f64(), axes=each(None, [])),
    Case("swapaxes", lambda x, axis1, axis2: np.swapaxes(x, axis1, axis2), f16(2, 3, 4), axis1=each(0, 1, -1), axis2=each(1, -1, 2)),
    dynamic=True,
)

test_join = table(
    Case("concatenate", lambda xs, axis=0: np.concatenate(xs, axis), [f32(2, 3), f32(4, 3), f32(0, 3)]),
    Case("concatenate", lambda xs, axis: np.concatenate(xs, axis), [i64(2, 3, 4), i64(2, 1, 4)], axis=each(1, -2)),
    Case("concatenate", lambda xs, axis: np.concatenate(xs, axis), [boolean(5)], axis=each(0, -1)),
    Case("concatenate", lambda xs, axis: np.concatenate(xs, axis), [bf16(0, 3), bf16(0, 3)], axis=each(0, 1)),
    Case("concatenate", lambda xs, axis: np.concatenate(xs, axis), [u8(1, k) for k in range(1, 12)], axis=1),
    Case("stack", lambda xs, axis: np.stack(xs, axis), [f16(2, 3), f16(2, 3)], axis=each(0, 1, 2, -1, -3)),
    Case("stack", lambda xs, axis: np.stack(xs, axis), [i32(), i32(), i32()], axis=each(0, -1)),
    Case("stack", lambda xs, axis: np.stack(xs, axis), [f32(0, 3)], axis=each(0, 1, 2)),
    Case(
        "split",
        lambda x, indices_or_sections, axis=0: np.split(x, indices_or_sections, axis),
        f32(6, 4),
        indices_or_sections=each(1, 2, 3, 6, [1, 4], [], [2, 2], [0, 6], [5]),
    ),
    Case(
        "split", lambda x, indices_or_sections, axis: np.split(x, indices_or_sections, axis), i8(3, 4), indices_or_sections=each(2, [1], [4]), axis=each(1, -1)
    ),
    Case("split", lambda x, indices_or_sections, axis: np.split(x, indices_or_sections, axis), boolean(3, 0), indices_or_sections=each(2, [0]), axis=1),
    Case("meshgrid", mesh, [f32(3), f32(4)], indexing=each("ij", "xy")),
    Case("meshgrid", mesh, [i64(2), f32(3), u8(4)], indexing=each("ij", "xy")),
    Case("meshgrid", mesh, [f32()], indexing=each("ij", "xy")),
    Case("meshgrid", mesh, [i32(0), i32(3)], indexing=each("ij", "xy")),
    dynamic=True,
)

test_repeat = table(
    Case("tile", lambda x, reps: np.tile(x, reps), f32(2, 3), reps=each([2], [2, 1], [1, 3], [2, 2, 2], [1, 1], [0, 2], [])),
    Case("tile", lambda x, reps: np.tile(x, reps), i64(), reps=each([], [3], [2, 2])),
    Case("tile", lambda x, reps: np.tile(x, reps), boolean(0, 2), reps=[3, 2]),
    Case("tile", lambda x, reps: np.tile(x, reps), bf16(1, 2), reps=[3, 2]),
    Case("repeat", lambda x, repeats, axis=None: np.repeat(x, repeats, axis), f32(2, 3), repeats=each(0, 1, 3), axis=each(None, 0, 1, -1)),
    Case("repeat", lambda x, repeats, axis=None: np.repeat(x, repeats, axis), u8(), repeats=each(1, 3)),
    Case("repeat", lambda x, repeats, axis=None: np.repeat(x, repeats, axis), f16(0, 2), repeats=2, axis=each(None, 0, 1)),
    Case("reverse", lambda x, axis: np.flip(x, axis), i32(2, 3, 4), axis=each(0, 1, 2, -1, -3)),
    Case("reverse", lambda x, axis: np.flip(x, axis), f64(0, 2), axis=each(0, 1)),
    dynamic=True,
)


def reverse_sequence(x, n, seq_axis=1, batch_axis=0):
    out = x.copy()
    for b, k in enumerate(n):
        k = min(max(int(k), 0), x.shape[seq_axis])
        at = [slice(None)] * x.ndim
        at[batch_axis], at[seq_axis] = slice(b, b + 1), slice(0, k)
        out[tuple(at)] = np.flip(x[tuple(at)], seq_axis)
    return out


def collapse(x, like):
    return np.asarray(
        x.sum(
            tuple(range(x.ndim - like.ndim))
            + tuple(d + x.ndim - like.ndim for d in range(like.ndim) if like.shape[d] == 1 and x.shape[d + x.ndim - like.ndim] != 1)
        ),
        x.dtype,
    ).reshape(like.shape)


test_broadcast = table(
    Case("reverse_sequence", reverse_sequence, f32(3, 5, 2), Value([1, 5, 3], "int64")),
    Case("reverse_sequence", reverse_sequence, i8(5, 3), Value([0, 4, 2], "int32"), seq_axis=each(0, -2), batch_axis=each(1, -1)),
    Case("reverse_sequence", reverse_sequence, u8(2, 0), Value([0, 0], "int64")),
    Case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), f32(3, 1), shape=each([3, 4], [2, 3, 4], [3, 1], [2, 3, 1], [3, 0])),
    Case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), i64(), shape=each([], [2], [2, 0, 3])),
    Case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), boolean(1, 2), shape=[5, 2]),
    Case("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), bf16(0, 1), shape=[0, 3]),
    Case("broadcast_to_like", lambda x, y: np.broadcast_to(x, y.shape), f16(3, 1), i32(2, 3, 4)),
    Case("broadcast_to_like", lambda x, y: np.broadcast_to(x, y.shape), u8(), boolean(2, 0)),
    dynamic=True,
)
# What is summed depends on which extents are 1.
test_collapse = table(
    Case("collapse_sum_like", collapse, f32(2, 3, 4), f16(3, 1), rtol=1e-5, atol=1e-6),
    Case("collapse_sum_like", collapse, f32(2, 3, 4), f32(4), rtol=1e-5, atol=1e-6),
    Case("collapse_sum_like", collapse, i32(2, 3, 4), i32()),
    Case("collapse_sum_like", collapse, i64(2, 3), i64(2, 3)),
    Case("collapse_sum_like", collapse, i64(1, 2, 3), i64(2, 3)),
    Case("collapse_sum_like", collapse, f32(0, 3), f32(1, 3)),
    Case("collapse_sum_like", collapse, f32(2, 3), f32(1, 1), rtol=1e-5, atol=1e-6),
    dynamic=True,
)

A = ((2, 3), "float32")
test_rejects = rejects(
    Reject("reshape", "R1", A, newshape=[-1, -1], says="-1"),
    Reject("reshape", "R1", A, newshape=[-5, 6]),
    Reject("reshape", "R1", A, newshape=[-4, 2]),
    Reject("reshape", "R1", A, newshape=[-4, 0, 2, 3]),
    Reject("reshape", "R1", A, newshape=[-4, -1, -1, 3]),
    Reject("reshape", "R2", A, newshape=[2, 3, 0]),
    Reject("reshape", "R2", A, newshape=[2, -3]),
    Reject("reshape", "R2", ((), "int8"), newshape=[-4, 1, 1]),
    Reject("reshape", "R3", A, newshape=[5], says="6 elements"),
    Reject("reshape", "R3", A, newshape=[4, -1]),
    Reject("reshape", "R3", A, newshape=[-4, 2, 2, 3]),
    Reject("reshape", "R3", ((0, 3), "float32"), newshape=[0, -1], allowzero=True),
    Reject("reshape", "R3", ((0, 3), "float32"), newshape=[1]),
    Reject("reverse_reshape", "R1", A, newshape=[-1, -1]),
    Reject("reverse_reshape", "R1", A, newshape=[2, -4]),
    Reject("reverse_reshape", "R2", A, newshape=[0, 2, 3]),
    Reject("reverse_reshape", "R3", A, newshape=[4]),
    Reject("reshape_like", "R1", A, ((4,), "float32"), says="6 elements"),
    Reject("nn.batch_flatten", "R1", ((), "float32")),
    Reject("expand_dims", "R1", A, num_newaxis=63),
    Reject("expand_dims", "R2", A, axes=[0, -4]),
    Reject("squeeze", "R1", A, axis=[0]),
    Reject("squeeze", "R2", ((relay.Any(), 1), "float32")),
    Reject("transpose", "R1", A, axes=[0, 0]),
    Reject("transpose", "R1", A, axes=[0]),
    Reject("transpose", "R1", A, axes=[0, -2]),
    Reject("concatenate", "R1", []),
    Reject("concatenate", "R2", [((), "float32")]),
    Reject("concatenate", "R3", [A, ((2, 3), "int32")], says="int32"),
    Reject("concatenate", "R4", [A, ((2, 4), "float32")]),
    Reject("concatenate", "R4", [A, ((2,), "float32")]),
    Reject("stack", "R1", []),
    Reject("stack", "R2", [A, ((3, 2), "float32")]),
    Reject("stack", "R2", [A, ((2, 3), "float16")]),
    Reject("split", "R1", A, indices_or_sections=4),
    Reject("split", "R1", A, indices_or_sections=[2, 1]),
    Reject("split", "R1", A, indices_or_sections=0),
    Reject("split", "R1", A, indices_or_sections=[3]),
    Reject("split", "R1", A, indices_or_sections=[-1]),
    Reject("split", "R2", ((), "int32"), indices_or_sections=1),
    Reject("repeat", "R1", ((), "float32"), repeats=2, axis=0),
    Reject("reverse", "R1", ((), "float32"), axis=0),
    Reject("reverse_sequence", "R1", ((2,), "float32"), ((2,), "int64")),
    Reject("reverse_sequence", "R2", A, ((2,), "float32")),
    Reject("reverse_sequence", "R2", A, ((2, 1), "int64")),
    Reject("reverse_sequence", "R3", A, ((2,), "int64"), seq_axis=-2),
    Reject("reverse_sequence", "R4", A, ((3,), "int64")),
    Reject("broadcast_to", "R1", A, shape=[2, 4]),
    Reject("broadcast_to", "R1", A, shape=[3]),
    Reject("broadcast_to", "R1", ((0, 3), "float32"), shape=[2, 3]),
    Reject("broadcast_to", "R2", A),
    Reject("broadcast_to_like", "R1", A, ((3,), "float32")),
    Reject("broadcast_to_like", "R1", A, ((3, 3), "float32")),
    Reject("collapse_sum_like", "R1", A, ((2, 2), "float32")),
    Reject("collapse_sum_like", "R2", ((2,), "bool"), ((1,), "bool")),
    Reject("meshgrid", "R1", [((2,), "float32")], indexing="yx"),
    Reject("meshgrid", "R2", [A]),
)
