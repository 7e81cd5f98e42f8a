# SPDX-License-Identifier: Apache-2.0
"""Operators whose shape-like operands are tensors: by values known at run time, and as constants."""

import numpy as np
import pytest
from cases import (
    Case,
    Reject,
    Typed,
    Value,
    bf16,
    boolean,
    each,
    evaluate,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    rejects,
    table,
    typed,
    u8,
)
from test_algorithm import topk
from test_image import resize, upsampled
from test_index import one_hot, sparse_to_dense
from test_slice import pad, sliced

import baton
from baton import relay


def ints(*v, dtype="int64"):
    return Value(np.array(v, dtype))


def whole(*v):
    """A count: a scalar, and a list of one."""
    return Value(np.array(v[0], "int64")), Value(np.array(v, "int32"))


def both(op, value, data, *operands, **more):
    """With values known at run time, which the compiler takes for constants too."""
    at = range(len(data), len(data) + len(operands))
    more.setdefault("compiled", False)
    return [Case(op, value, *data, *operands, name="values", **more), Case(op, value, *data, *operands, constant=at, name="constants", **more)]


def reshape(x, s, allowzero=False):
    return x.reshape([x.shape[d] if n == 0 and not allowzero else n for d, n in enumerate(s)])


def expand_dims(x, axis, num_newaxis=1):
    if axis.ndim:
        return np.expand_dims(x, tuple(axis))
    axis = int(axis) + (x.ndim + 1 if axis < 0 else 0)
    return np.expand_dims(x, tuple(range(axis, axis + num_newaxis)))


test_shapes = table(
    *both("dyn.reshape", reshape, [f32(2, 3)], ints(3, 2)),
    *both("dyn.reshape", reshape, [i8(2, 3, 4)], ints(0, -1, dtype="int32")),
    *both("dyn.reshape", reshape, [bf16(1)], ints()),
    *both("dyn.reshape", reshape, [boolean(0, 3)], ints(5, 0), allowzero=True),
    *both("dyn.reshape", lambda x, s: x.reshape(2, 12), [f64(2, 3, 4)], ints(0, -3)),
    *both("dyn.broadcast_to", np.broadcast_to, [f32(3, 1)], ints(2, 3, 4)),
    *both("dyn.broadcast_to", np.broadcast_to, [u8()], ints(2, 0)),
    *both("dyn.broadcast_to", np.broadcast_to, [f16()], ints()),
    *both("dyn.broadcast_to", np.broadcast_to, [i64(0, 1)], ints(0, 4, dtype="int32")),
    *both("dyn.tile", np.tile, [f32(2, 3)], ints(2, 1)),
    *both("dyn.tile", np.tile, [i32(2, 3)], ints(2)),
    *both("dyn.tile", np.tile, [f16(2)], ints(2, 0, 3)),
    *both("dyn.tile", np.tile, [boolean()], ints(dtype="int64")),
    *[c for a in (0, 2, -1, -3) for c in both("dyn.expand_dims", expand_dims, [f32(2, 3)], Value(np.array(a, "int64")), num_newaxis=each(1, 2))],
    *both("dyn.expand_dims", expand_dims, [u8(2, 0)], ints(0, -1)),
    *both("dyn.expand_dims", expand_dims, [f32()], ints(0, dtype="int32")),
    *both("dyn.expand_dims", expand_dims, [f32(2)], ints()),
    *both("dyn.squeeze", lambda x, a: x.squeeze(tuple(np.atleast_1d(a))), [f32(1, 3, 1)], ints(0, -1)),
    *both("dyn.squeeze", lambda x, a: x.squeeze(int(a)), [i8(1, 3)], Value(np.array(0, "int32"))),
    *both("dyn.squeeze", lambda x, a: x, [f16(1, 0)], ints()),
    *both("dyn.full", lambda v, s, dtype=None: np.full(s, v.reshape(()), dtype or v.dtype), [f32()], ints(2, 3)),
    *both("dyn.full", lambda v, s, dtype: np.full(s, v[0]).astype(dtype), [i64(1)], ints(2), dtype=each("float32", "bool")),
    *both("dyn.full", lambda v, s: np.full(s, v), [u8()], ints()),
    *[
        c
        for op, v in (("dyn.zeros", 0), ("dyn.ones", 1))
        for c in (
            *both(op, lambda s, dtype="float32", v=v: np.full(s, v).astype(dtype), [], ints(2, 0, 3), dtype=each("float32", "int64", "bool")),
            *both(op, lambda s, v=v: np.full(s, v, "float32"), [], ints()),
        )
    ],
    dynamic=None,
)

BIG = 2**63 - 1
test_selects = table(
    *both("dyn.strided_slice", lambda x, b, e, slice_mode="end": sliced(x, b, e, slice_mode=slice_mode), [f32(5, 6)], ints(1, -3), ints(4, BIG)),
    *both(
        "dyn.strided_slice", lambda x, b, e, slice_mode="end": sliced(x, b, e, slice_mode=slice_mode), [f32(5, 6)], ints(1, 2), ints(2, -1), slice_mode="size"
    ),
    *both("dyn.strided_slice", sliced, [i32(5, 6)], ints(4), ints(-9), ints(-2)),
    *both("dyn.strided_slice", sliced, [bf16(5, 6)], ints(1, 0, dtype="int32"), ints(5, 6, dtype="int32"), ints(2, 3, dtype="int32")),
    *both("dyn.strided_slice", lambda x, b, e, s, a: sliced(x, b, e, s, axes=a), [u8(5, 6, 7)], ints(1, 2), ints(3, 9), ints(1, 2), ints(0, -1)),
    *both("dyn.strided_slice", sliced, [boolean(0, 3)], ints(), ints()),
    *[
        c
        for k in (*whole(3), *whole(0), *whole(-1))
        for c in both(
            "dyn.topk", lambda x, k, **kw: topk(x, int(np.ravel(k)[0]), **kw), [f32(4, 7)], k, axis=each(-1, 0), ret_type=each("both", "values", "indices")
        )
    ],
    *both("dyn.topk", lambda x, k, **kw: topk(x, int(k), **kw), [i64(7)], Value(np.array(2, "int64")), is_ascend=True, dtype="int32"),
    *[
        c
        for d in whole(4)
        for c in both(
            "dyn.one_hot",
            lambda i, on, off, d, **kw: one_hot(i, on, off, int(np.ravel(d)[0]), **kw),
            [i64(3, 2).within(-5, 5), f32(), f32()],
            d,
            axis=each(-1, 0),
            dtype=each("float32", "int8"),
        )
    ],
    *both("dyn.one_hot", lambda i, on, off, d: one_hot(i, on, off, int(d)), [i32(3), f16(), f16()], Value(np.array(0, "int64"))),
    *both("dyn.sparse_to_dense", sparse_to_dense, [Value([[0, 1], [2, 3]], "int64"), f32(2), f32()], ints(3, 4)),
    *both("dyn.sparse_to_dense", sparse_to_dense, [Value(3, "int64"), i8(), i8()], ints(5)),
    *both("dyn.nn.pad", lambda x, w, v: pad(x, v, w), [f32(3, 4)], Value(np.array([[1, 2], [0, 3]], "int64")), f32(), compiled=False),
    *both(
        "dyn.nn.pad",
        lambda x, w, pad_mode: pad(x, None, w, pad_mode),
        [u8(3, 4)],
        Value(np.array([[1, 2], [0, 3]], "int32")),
        pad_mode=each("edge", "reflect", "wrap"),
    ),
    *both("dyn.nn.pad", lambda x, w, v: pad(x, v, w), [f64()], Value(np.zeros((0, 2), "int64")), f64()),
)
test_images = table(
    *both(
        "dyn.nn.upsampling",
        lambda x, h, w, **kw: upsampled(x, float(h), float(np.ravel(w)[0]), **kw),
        [f32(1, 2, 3, 4)],
        Value(2.0, "float32"),
        Value([1.5], "float32"),
        method=each("nearest_neighbor", "bilinear"),
        align_corners=each(False, True),
        rtol=1e-5,
        atol=2e-6,
    ),
    *both("dyn.nn.upsampling", lambda x, h, w, layout: upsampled(x, 2.0, 3.0, layout), [u8(1, 3, 4, 2)], Value(2, "int32"), Value(3, "int32"), layout="NHWC"),
    *both("dyn.image.resize2d", resize("HW"), [f32(1, 2, 4, 5)], ints(7, 3), method=each("nearest_neighbor", "linear", "cubic"), rtol=1e-5, atol=2e-6),
    *both(
        "dyn.image.resize2d",
        lambda x, s, roi, **kw: resize("HW")(x, s, roi=roi, **kw),
        [f64(1, 1, 5, 7)],
        ints(3, 9),
        Value([0.2, 0.3, 0.9, 1.4], "float32"),
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.5,
        rtol=1e-6,
        atol=1e-6,
    ),
    *both("dyn.image.resize2d", resize("HW"), [i32(1, 4, 5, 2)], ints(8, 10, dtype="int32"), layout="NHWC", out_dtype="float32", rtol=1e-5),
)

X, S = ((2, 3), "float32"), ((2,), "int64")
N, F = ((), "int64"), ((), "float32")
ANY = ((relay.Any(),), "int64")
IMAGE = ((1, 2, 3, 4), "float32")
test_types = typed(
    Typed("dyn.reshape", "Tensor[(?, ?), float32]", X, S),
    Typed("dyn.broadcast_to", "Tensor[(?, 2, 3), float32]", X, ((3,), "int32")),
    Typed("dyn.tile", "Tensor[(2, ?), float32]", X, ((1,), "int64")),
    Typed("dyn.expand_dims", "Tensor[(?, ?, ?, ?), float32]", X, N, num_newaxis=2),
    Typed("dyn.expand_dims", "Tensor[(?, ?, ?, ?), float32]", X, S),
    Typed("dyn.squeeze", "float32", X, S),
    Typed("dyn.squeeze", "Tensor[(?), float32]", X, N),
    Typed("dyn.full", "Tensor[(?, ?), int8]", ((), "int8"), S),
    Typed("dyn.full", "Tensor[(?, ?), float16]", ((), "int8"), S, dtype="float16"),
    Typed("dyn.zeros", "Tensor[(?, ?), float32]", S),
    Typed("dyn.ones", "Tensor[(?, ?), bool]", S, dtype="bool"),
    Typed("dyn.strided_slice", "Tensor[(?, 3), float32]", X, ((1,), "int64"), ((1,), "int64")),
    Typed("dyn.strided_slice", "Tensor[(?, ?), float32]", X, ANY, ANY),
    Typed("dyn.strided_slice", "Tensor[(2, ?), float32]", X, ((1,), "int64"), ((1,), "int64"), ((1,), "int64"), np.array([-1])),
    Typed("dyn.topk", "(Tensor[(2, ?), float32], Tensor[(2, ?), int32])", X, N),
    Typed("dyn.topk", "Tensor[(?, 3), int32]", X, N, axis=0, ret_type="indices", dtype="int32"),
    Typed("dyn.one_hot", "Tensor[(2, ?), float32]", S, F, F, N),
    Typed("dyn.sparse_to_dense", "Tensor[(?, ?), float32]", ((4, 2), "int64"), ((4,), "float32"), F, S),
    Typed("dyn.nn.pad", "Tensor[(?, ?), float32]", X, ((2, 2), "int64"), F),
    Typed("dyn.nn.upsampling", "Tensor[(1, 2, ?, ?), float32]", IMAGE, F, F),
    Typed("dyn.image.resize2d", "Tensor[(1, 2, ?, ?), int8]", IMAGE, S, out_dtype="int8"),
)
TWO, MINUS = np.array([2, 2]), np.array([2, -1])
LONG = ((65,), "int64")
test_rejects = rejects(
    *[
        r
        for op in ("dyn.reshape", "dyn.broadcast_to", "dyn.tile", "dyn.full")
        for x in [F if op == "dyn.full" else X]
        for r in (Reject(op, "R1", x, ((2,), "float32")), Reject(op, "R1", x, ((2, 1), "int64")), Reject(op, "R2", x, ANY), Reject(op, "R2", x, LONG))
    ],
    *[Reject(op, "R3", F, MINUS) for op in ("dyn.broadcast_to", "dyn.tile", "dyn.full")],
    Reject("dyn.broadcast_to", "R4", X, ((1,), "int64")),
    Reject("dyn.full", "R4", X, S),
    *[r for op in ("dyn.zeros", "dyn.ones") for r in (Reject(op, "R1", ((2,), "float32")), Reject(op, "R2", ANY), Reject(op, "R3", MINUS))],
    Reject("dyn.expand_dims", "R1", X, F),
    Reject("dyn.expand_dims", "R1", X, ((1, 1), "int64")),
    Reject("dyn.expand_dims", "R2", X, LONG),
    Reject("dyn.expand_dims", "R2", X, ANY),
    Reject("dyn.expand_dims", "R2", X, N, num_newaxis=63),
    Reject("dyn.squeeze", "R1", X, F),
    Reject("dyn.squeeze", "R1", X, ((1, 1), "int64")),
    Reject("dyn.squeeze", "R2", X, ANY),
    Reject("dyn.squeeze", "R3", X, ((3,), "int64")),
    Reject("dyn.strided_slice", "R1", X, ((2,), "float32"), S),
    Reject("dyn.strided_slice", "R1", X, S, ((2, 1), "int64")),
    Reject("dyn.strided_slice", "R2", X, S, ((1,), "int64")),
    Reject("dyn.strided_slice", "R2", X, ((3,), "int64"), ((3,), "int64")),
    Reject("dyn.strided_slice", "R3", X),
    Reject("dyn.topk", "R1", X, F),
    Reject("dyn.topk", "R1", X, S),
    Reject("dyn.topk", "R2", F, N),
    Reject("dyn.topk", "R3", X, N, ret_type="value"),
    Reject("dyn.one_hot", "R1", S, F, F, F),
    Reject("dyn.one_hot", "R1", S, F, F, S),
    Reject("dyn.one_hot", "R2", X, F, F, N),
    Reject("dyn.one_hot", "R2", S, F, N, N),
    Reject("dyn.one_hot", "R3", S, F, F, np.array(-1)),
    Reject("dyn.sparse_to_dense", "R1", S, ((2,), "float32"), F, ((2,), "float32")),
    Reject("dyn.sparse_to_dense", "R2", S, ((2,), "float32"), F, ANY),
    Reject("dyn.sparse_to_dense", "R3", S, ((2,), "float32"), F, np.array([-1])),
    Reject("dyn.sparse_to_dense", "R4", X, ((2,), "float32"), F, S),
    Reject("dyn.sparse_to_dense", "R4", S, ((2,), "float32"), N, S),
    Reject("dyn.nn.pad", "R1", X, ((2, 2), "float32"), F),
    Reject("dyn.nn.pad", "R1", X, S, F),
    Reject("dyn.nn.pad", "R2", X, ((3, 2), "int64"), F),
    Reject("dyn.nn.pad", "R3", X, ((2, 2), "int64"), N),
    Reject("dyn.nn.upsampling", "R1", IMAGE, ((), "bool"), F),
    Reject("dyn.nn.upsampling", "R1", IMAGE, ((2,), "float32"), F),
    Reject("dyn.nn.upsampling", "R2", X, F, F),
    Reject("dyn.nn.upsampling", "R2", IMAGE, F, F, layout="NCDE"),
    Reject("dyn.image.resize2d", "R1", IMAGE, ((2,), "float32")),
    Reject("dyn.image.resize2d", "R1", IMAGE, S, ((4,), "int64")),
    Reject("dyn.image.resize2d", "R2", X, S),
    Reject("dyn.image.resize2d", "R3", IMAGE, MINUS),
    # With constants the static operator's own requirements hold.
    Reject("reshape", "R3", X, newshape=[4]),
)


def run(inputs, build, kind="debug"):
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(inputs)]
    return evaluate(relay.Function(variables, build(*variables)), inputs, kind)


X23 = np.arange(6, dtype="float32").reshape(2, 3)
SUGAR = {
    "reshape": (lambda x, s: relay.reshape(x, s), [X23, np.array([3, 2])], X23.reshape(3, 2)),
    "broadcast_to": (lambda x, s: relay.broadcast_to(x, s), [X23, np.array([2, 2, 3])], np.broadcast_to(X23, (2, 2, 3))),
    "tile": (lambda x, s: relay.tile(x, s), [X23, np.array([2, 2])], np.tile(X23, (2, 2))),
    "full": (lambda s: relay.full(7.0, s, "float32"), [np.array([2, 2])], np.full((2, 2), 7, "float32")),
    "zeros": (lambda s: relay.zeros(s, "int64"), [np.array([2])], np.zeros(2, "int64")),
    "ones": (lambda s: relay.ones(s, "float32"), [np.array([2])], np.ones(2, "float32")),
    "squeeze": (lambda x, a: relay.squeeze(x, a), [X23[None], np.array([0])], X23),
    "expand_dims": (lambda x, a: relay.expand_dims(x, a, 2), [X23, np.array(1)], X23[:, None, None]),
    "one_hot": (lambda i, d: relay.one_hot(i, 1.0, 0.0, d, -1, "float32"), [np.array([0, 2]), np.array(3)], np.eye(3, dtype="float32")[[0, 2]]),
    "topk": (lambda x, k: relay.topk(x, k, ret_type="values"), [X23, np.array(2)], X23[:, :0:-1]),
    "strided_slice": (lambda x, b, e: relay.strided_slice(x, b, e), [X23, np.array([0, 1]), np.array([1, 3])], X23[:1, 1:]),
    "strided_slice axes": (lambda x, b, e: relay.strided_slice(x, b, e, axes=[1]), [X23, np.array([1]), np.array([3])], X23[:, 1:]),
    "nn.pad": (lambda x, w: relay.nn.pad(x, w, 9.0), [X23, np.array([[0, 1], [1, 0]])], np.pad(X23, [(0, 1), (1, 0)], constant_values=9)),
    "nn.upsampling": (lambda x, h: relay.nn.upsampling(x, h, 2.0), [X23[None, None], np.float32(2).reshape(1)], X23[None, None].repeat(2, 2).repeat(2, 3)),
    "image.resize2d": (
        lambda x, s: relay.image.resize2d(x, s, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
        [X23[None, None], np.array([4, 6])],
        X23[None, None].repeat(2, 2).repeat(2, 3),
    ),
    "sparse_to_dense": (lambda i, s, v: relay.sparse_to_dense(i, s, v), [np.array([1, 3]), np.array([5]), np.float32([4, 5])], np.float32([0, 4, 0, 5, 0])),
}


@pytest.mark.parametrize("kind", ["debug", "vm"])
@pytest.mark.parametrize("name", list(SUGAR))
def test_python_functions_take_expressions(name, kind):
    build, inputs, want = SUGAR[name]
    (got,) = run(inputs, build, kind)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", list(SUGAR))
def test_constants_become_static(name):
    """DynamicToStatic, and the Python functions themselves, leave no dyn operator where values are constants."""
    build, inputs, want = SUGAR[name]
    keep = 0 if name not in ("full", "zeros", "ones") else -1
    for first in (True, False):  # constants from the start; constants that folding finds
        variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(inputs)]
        values = [relay.const(a) if k != keep else v for k, (a, v) in enumerate(zip(inputs, variables, strict=True))]
        if not first:
            values = [relay.copy(c) if isinstance(c, relay.Constant) else c for c in values]
        func = relay.Function([v for v in variables if v in values], build(*values))
        mod = relay.transform.DynamicToStatic()(baton.IRModule.from_expr(func))
        assert "dyn." not in mod.astext(), mod
        t = mod["main"].body.checked_type
        assert [int(d) for d in t.shape] == list(want.shape)


def test_chain_of_shapes_becomes_static():
    """A shape computed from a static one is folded, and so on along a chain."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(6,))
    for k in range(5):
        y = relay.reshape(y, relay.shape_of(x) if k % 2 else relay.reverse(relay.shape_of(x), 0))
    mod = relay.transform.DynamicToStatic()(baton.IRModule.from_expr(relay.Function(relay.analysis.free_vars(y), y)))
    assert "dyn." not in mod.astext()
    assert [int(d) for d in mod["main"].body.checked_type.shape] == [3, 2]


@pytest.mark.parametrize(
    "build, inputs, says",
    [
        (lambda x, s: relay.reshape(x, s), [X23, np.array([4, 2])], "reshape R3"),
        (lambda x, s: relay.broadcast_to(x, s), [X23, np.array([3, 3])], "broadcast_to R1"),
        (lambda x, s: relay.tile(x, s), [X23, np.array([-1, 2])], "dyn.tile R3"),
        (lambda s: relay.zeros(s, "float32"), [np.array([-2])], "dyn.zeros R3"),
        (lambda x, k: relay.topk(x, k, ret_type="values"), [X23, np.array(9)], "topk: k is 9"),
        (lambda x, a: relay.squeeze(x, a), [X23, np.array([0])], "squeeze R1"),
        (lambda x, a: relay.squeeze(x, a), [X23, np.array([7])], "squeeze"),
        (lambda x, w: relay.nn.pad(x, w, 9.0), [X23, np.array([[0, -9], [1, 0]])], "nn.pad R3"),
        (lambda x, s: relay.image.resize2d(x, s), [X23[None, None], np.array([4, -6])], "dyn.image.resize2d R3"),
        (lambda x, b, e, s: relay.strided_slice(x, b, e, s), [X23, np.array([0]), np.array([1]), np.array([0])], "strided_slice R4"),
    ],
    ids=lambda v: v.replace(" ", "-") if isinstance(v, str) else "",
)
def test_bad_values_at_run_time_are_errors(build, inputs, says):
    with pytest.raises(baton.error.BatonError, match=says.replace(".", r"\.")):
        run(inputs, build)
