# SPDX-License-Identifier: Apache-2.0
"""Operators over shapes that are known in a call: parameters, the program, arguments, the value beside NumPy or its shape."""

import numpy as np
import pytest
from building import evaluated, parsed, program, typed, variables

import baton as tvm
from baton import relay, tir

rng = np.random.default_rng(0)


def f(*shape):
    return rng.random(shape, "float32")


def shape(*extents):
    """Stands for any value of a shape, where the value is tested elsewhere."""
    return extents


def i64(*values):
    return np.array(values, "int64")


A, B, CUBE, IMAGE = f(3, 4), f(1, 4), f(2, 3, 4), f(1, 3, 8, 8)
DENSE, BATCH, ROWS, BITS = f(5, 4), f(2, 5, 4), [f(2, i + 1) for i in range(4)], rng.random((3, 3, 3)) > 0.5
BOXES = np.array([[0, 1, 1, 8, 8], [0, 2, 2, 9, 9], [0, 0, 0, 4, 4]], "float32")
INTS, ONE_TRUE, SQUARE = np.array([0, 3, 1], "int32"), np.array([0, 1, 0], "int32"), f(4, 5)
nn, const = relay.nn, relay.const
CONV = {"kernel_size": (3, 3), "channels": 4}
ROW = "x[?,?]"
ROWS_OF = {
    "add": ("x[?,4] y[?,4]", "add(%x, %y)", [A, B], A + B),
    "less": ("x[?,4] y[?,4]", "less(%x, %y)", [B, A], B < A),
    "elementwise": (ROW, "sqrt(add(log(%x), 1f))", [A + 1], np.sqrt(np.log(A + 1) + 1)),
    "relu": (ROW, "nn.relu(%x)", [A - 0.5], np.maximum(A - 0.5, 0)),
    "zeros_like": ("x[?,3]", "zeros_like(%x)", [f(2, 3)], np.zeros((2, 3))),
    "full_like": ("x[?,3]", "full_like(%x, 2f)", [f(2, 3)], np.full((2, 3), 2)),
    "concatenate": ("x[?,4] y[1,4]", "concatenate((%x, %y), axis=0)", [A, B], np.concatenate([A, B])),
    "concatenate of four": ("a[2,?] b[2,?] c[2,?] d[2,?]", "concatenate((%a, %b, %c, %d), axis=1)", ROWS, np.concatenate(ROWS, 1)),
    "reshape to one axis": ("x[?,?,?]", "reshape(%x, newshape=[-1])", [CUBE], CUBE.ravel()),
    "reshape of the rest": ("x[?,?,?]", "reshape(%x, newshape=[0, -1])", [CUBE], CUBE.reshape(2, -1)),
    "reshape that keeps": ("x[?,?,?]", "reshape(%x, newshape=[0, -2])", [CUBE], CUBE),
    "reshape that joins": ("x[?,?,?]", "reshape(%x, newshape=[-3, 0])", [CUBE], CUBE.reshape(6, 4)),
    "one_hot": ("i[?]:int32", lambda i: relay.one_hot(i, const(1.0), const(0.0), 4, -1, "float32"), [INTS], np.eye(4)[INTS]),
    "argwhere 1": ("x[?]:bool", "argwhere(%x)", [BITS[0, 0]], np.argwhere(BITS[0, 0])),
    "argwhere 2": ("x[?,?]:bool", "argwhere(%x)", [BITS[0]], np.argwhere(BITS[0])),
    "argwhere 3": ("x[?,?,?]:bool", "argwhere(%x)", [BITS], np.argwhere(BITS)),
    "a row of argwhere": ("x[?]:int32", "take(argwhere(%x), 0, axis=0)", [ONE_TRUE], [1]),
    "take of rows": ("x[?,4] i[2]:int64", "take(%x, %i, axis=0)", [A, i64(1, 2)], A[[1, 2]]),
    "take of elements": ("x[?,4] i[2]:int64", "take(%x, %i)", [A, i64(5, 2)], A.ravel()[[5, 2]]),
    "tile": ("x[?]", "tile(%x, reps=[3, 2])", [A[0]], np.tile(A[0], (3, 2))),
    "repeat": ("x[?,4]", "repeat(%x, repeats=2, axis=0)", [A], np.repeat(A, 2, 0)),
    "shape_of": (ROW, 'shape_of(%x, dtype="int32")', [A], [3, 4]),
    "an extent": (ROW, 'take(shape_of(%x, dtype="int64"), 1i64)', [A], 4),
    "ndarray_size": (ROW, "ndarray_size(%x)", [A], 12),
    **{f"{name} of an axis": ("x[?,?,?]", f"{name}(%x, axis=[1])", [CUBE], of(CUBE, axis=1)) for name, of in
       {"sum": np.sum, "mean": np.mean, "max": np.max, "argmax": np.argmax, "prod": np.prod}.items()},
    "variance of an axis": ("x[?,?,?]", lambda x: relay.variance(x, axis=1), [CUBE], CUBE.var(1)),
    "sum of two axes": ("x[?,?,?]", "sum(%x, axis=[0, 1], keepdims=True)", [CUBE], CUBE.sum((0, 1), keepdims=True)),
    "max of all": ("x[?,?,?]", "max(%x)", [CUBE], CUBE.max()),
    "layout_transform": ("x[?,3,?,?]", 'layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")', [IMAGE], IMAGE.transpose(0, 2, 3, 1)),
    "layout_transform to blocks": ("x[?,4,?,?]", 'layout_transform(%x, src_layout="NCHW", dst_layout="NCHW2c")', [x := f(1, 4, 2, 2)],
                                   x.reshape(1, 2, 2, 2, 2).transpose(0, 1, 3, 4, 2)),
    "squeeze": ("x[?,1,?]", "squeeze(%x, axis=[1])", [CUBE[:, :1]], CUBE[:, 0]),
    "expand_dims": ("x[?,1,?]", "expand_dims(%x, axis=1, num_newaxis=2)", [CUBE[:, :1]], CUBE[:, None, None, :1].reshape(2, 1, 1, 1, 4)),
    "transpose": ("x[?,?,?]", "transpose(%x)", [CUBE], CUBE.T),
    "transpose by axes": ("x[?,?,?]", "transpose(%x, axes=[2, 0, 1])", [CUBE], CUBE.transpose(2, 0, 1)),
    "reshape_like": ("x[?,1,?] y[?,?]", "reshape_like(%x, %y)", [CUBE[:, :1], f(4, 2)], CUBE[:, 0].reshape(4, 2)),
    "conv2d": ("x[?,3,?,?] w[4,3,3,3]", lambda x, w: nn.conv2d(x, w, padding=(1, 1), **CONV), [IMAGE, f(4, 3, 3, 3)], shape(1, 4, 8, 8)),
    "conv2d NHWC": ("x[?,8,8,3] w[3,3,3,4]", lambda x, w: nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", **CONV),
                    [f(2, 8, 8, 3), f(3, 3, 3, 4)], shape(2, 6, 6, 4)),
    "conv1d": ("x[?,3,8] w[4,3,3]", lambda x, w: nn.conv1d(x, w, kernel_size=3, channels=4), [f(2, 3, 8), f(4, 3, 3)], shape(2, 4, 6)),
    "conv2d_transpose": ("x[?,3,8,8] w[3,4,3,3]", lambda x, w: nn.conv2d_transpose(x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 1), **CONV),
                         [f(2, 3, 8, 8), f(3, 4, 3, 3)], shape(2, 4, 16, 16)),
    "conv1d_transpose": ("x[?,3,8] w[3,4,3]", lambda x, w: nn.conv1d_transpose(x, w, kernel_size=3, channels=4), [f(2, 3, 8), f(3, 4, 3)], shape(2, 4, 10)),
    "max_pool2d": ("x[?,3,?,?]", "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])", [IMAGE], IMAGE.reshape(1, 3, 4, 2, 4, 2).max((3, 5))),
    "avg_pool2d": ("x[?,3,?,?]", "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2])", [IMAGE], IMAGE.reshape(1, 3, 4, 2, 4, 2).mean((3, 5))),
    "global_max_pool2d": ("x[?,3,?,?]", "nn.global_max_pool2d(%x)", [IMAGE], IMAGE.max((2, 3), keepdims=True)),
    "global_avg_pool2d": ("x[?,3,?,?]", "nn.global_avg_pool2d(%x)", [IMAGE], IMAGE.mean((2, 3), keepdims=True)),
    "split": ("x[?,4]", lambda x: relay.split(x, 2, 1).astuple(), [A], np.split(A, 2, 1)),
    "split by places": ("x[?,4]", lambda x: relay.split(x, (1, 3), 1)[1], [A], A[:, 1:3]),
    "split of an open axis": (ROW, lambda x: relay.split(x, 2, 0)[0], [SQUARE], SQUARE[:2]),
    "dense": ("x[?,4] w[?,4]", "nn.dense(%x, %w)", [A, DENSE], A @ DENSE.T),
    "dense of units": ("x[?,4] w[5,4]", "nn.dense(%x, %w, units=5)", [A, DENSE], A @ DENSE.T),
    "dense and what follows": ("x[?,4] w[5,4]", "multiply(nn.relu(nn.dense(%x, %w)), 2f)", [A, DENSE], 2 * np.maximum(A @ DENSE.T, 0)),
    "batch_matmul": ("x[?,?,?] y[?,?,?]", "nn.batch_matmul(%x, %y)", [CUBE, BATCH], CUBE @ BATCH.transpose(0, 2, 1)),
    "batch_matmul as it is": ("x[?,?,?] y[?,?,?]", "nn.batch_matmul(%x, %y, transpose_b=False)", [CUBE, CUBE.transpose(0, 2, 1).copy()],
                              CUBE @ CUBE.transpose(0, 2, 1)),
    "pad": (ROW, lambda x: nn.pad(x, ((1, 1), (2, 2)), 3.0), [A], np.pad(A, ((1, 1), (2, 2)), constant_values=3)),
    "mirror_pad": (ROW, lambda x: nn.mirror_pad(x, ((1, 1), (1, 1)), "REFLECT"), [A], np.pad(A, 1, mode="reflect")),
    "batch_flatten": ("x[?,?,?]", "nn.batch_flatten(%x)", [CUBE], CUBE.reshape(2, 12)),
    "softmax": ("x[?,?,?]", "nn.softmax(%x, axis=1)", [CUBE], np.exp(CUBE) / np.exp(CUBE).sum(1, keepdims=True)),
    "log_softmax": ("x[?,?,?]", "nn.log_softmax(%x)", [CUBE], CUBE - np.log(np.exp(CUBE).sum(-1, keepdims=True))),
    "topk": (ROW, lambda x: relay.topk(x, 2, ret_type="indices"), [SQUARE], np.argsort(-SQUARE)[:, :2]),
    "topk of k": ("x[?,?] k[]:int32", lambda x, k: relay.topk(x, k, ret_type="values"), [SQUARE, np.int32(3)], -np.sort(-SQUARE)[:, :3]),
    "argsort": (ROW, lambda x: relay.argsort(x, 1), [SQUARE], np.argsort(SQUARE, 1)),
    "sort": (ROW, lambda x: relay.sort(x, 1), [SQUARE], np.sort(SQUARE, 1)),
    "strided_slice": (ROW, lambda x: relay.strided_slice(x, [1, 0], [3, 4], [1, 2]), [SQUARE], SQUARE[1:3, 0:4:2]),
    "strided_slice of an axis": (ROW, lambda x: relay.strided_slice(x, [1], [100], axes=[1]), [SQUARE], SQUARE[:, 1:]),
    "strided_slice by values": ("x[?,?] b[2]:int64 e[2]:int64", lambda x, b, e: relay.strided_slice(x, b, e), [SQUARE, i64(0, 1), i64(4, 3)], SQUARE[0:4, 1:3]),
    "strided_slice from the end": (ROW, lambda x: relay.strided_slice(x, [-2, 0], [-1, 3], slice_mode="end"), [SQUARE], SQUARE[-2:-1, 0:3]),
    "slice_like": ("x[?,?] y[?,?]", "slice_like(%x, %y)", [SQUARE, f(2, 3)], SQUARE[:2, :3]),
    "where": ("c[?]:bool x[?] y[1]", "where(%c, %x, %y)", [BITS[0, 0], A[0, :3], B[0, :1]], np.where(BITS[0, 0], A[0, :3], B[0, :1])),
    "gather_nd": ("x[?,4] i[1,?]:int64", "gather_nd(%x, %i)", [A, i64([0, 2])], A[[0, 2]]),
    "gather": ("x[?,4] i[?,?]:int64", "gather(%x, %i, axis=1)", [A, i64([0, 2], [1, 1], [3, 0])], np.take_along_axis(A, i64([0, 2], [1, 1], [3, 0]), 1)),
    "scatter": ("x[?,?] i[?,?]:int64 u[?,?]", lambda x, i, u: relay.scatter(x, i, u, 0), [np.zeros((3, 3), "float32"), i64([0, 1, 2]), A[:1, :3]],
                np.diag(A[0, :3])),
    "adv_index": ("x[?,?] i[?]:int64", lambda x, i: relay.adv_index([x, i]), [A, i64(0, 2)], A[[0, 2]]),
    "stack": ("x[?,4] y[?,4]", "stack((%x, %y), axis=0)", [A, A + 1], np.stack([A, A + 1])),
    "roi_align": ("x[1,4,16,16] r[?,5]", lambda x, r: relay.vision.roi_align(x, r, (3, 3), 1.0, 2), [f(1, 4, 16, 16), BOXES], shape(3, 4, 3, 3)),
    "crop_and_resize": ("x[?,8,8,3] b[?,4] i[?]:int32", lambda x, b, i: relay.image.crop_and_resize(x, b, i, (4, 4), layout="NHWC"),
                        [f(1, 8, 8, 3), f(2, 4), np.zeros(2, "int32")], shape(2, 4, 4, 3)),
    "sparse_to_dense": ("i[?,?]:int64 s[2]:int64 v[?]", lambda i, s, v: relay.sparse_to_dense(i, s, v, const(0.0)),
                        [i64([0, 0], [1, 2]), i64(3, 4), np.array([5, 6], "float32")], [[5, 0, 0, 0], [0, 0, 6, 0], [0, 0, 0, 0]]),
    "arange of a size": ("x[?]:int32", lambda x: relay.arange(relay.ndarray_size(x, "int32"), dtype="int32"), [np.zeros(7, "int32")], np.arange(7)),
    "arange": ("a[] b[] c[]", lambda a, b, c: relay.arange(a, b, c, dtype="float32"), [np.float32(1), np.float32(5), np.float32(0.5)], np.arange(1, 5, 0.5)),
    "resize2d": ("x[?,3,?,?]", lambda x: relay.image.resize2d(x, (16, 16)), [IMAGE], shape(1, 3, 16, 16)),
    "resize2d by a value": ("x[?,3,?,?] s[2]:int64", relay.image.resize2d, [IMAGE, i64(6, 6)], shape(1, 3, 6, 6)),
    "upsampling": ("x[?,3,?,?]", lambda x: nn.upsampling(x, 2, 2), [IMAGE], IMAGE.repeat(2, 2).repeat(2, 3)),
    "cumsum": (ROW, lambda x: relay.cumsum(x, 1), [A], A.cumsum(1)),
    "a field of a tuple": ("x[?,4]", "%0 = (%x, exp(%x)); (%0.1, %0.0, (%0.1, %0.1))", [A], None),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["vm", "debug"])
@pytest.mark.parametrize("params, body, args, want", ROWS_OF.values(), ids=ROWS_OF)
def test_value(params, body, args, want, kind):
    ins = variables(params)
    func = program(params, body) if isinstance(body, str) else relay.Function(ins, body(*ins))
    got = evaluated(func, *args, kind=kind)
    if want is None:
        assert len(got) == 3 and len(got[2]) == 2
    elif isinstance(want, tuple):
        assert got.shape == want
    else:
        for one, right in zip(*([got], [want]) if isinstance(got, np.ndarray) else (got, want), strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)


def test_extents_that_do_not_fit():
    with pytest.raises(tvm.TVMError):
        evaluated(program("x[?] y[?]", "add(%x, %y)"), f(3), f(4), kind="vm")


def test_unique():
    (u,) = variables("u[?]:int32")
    found = evaluated(relay.Function([u], relay.unique(u)[0]), np.array([3, 1, 3, 2], "int32"), kind="vm")
    assert sorted(found.tolist()) == [1, 2, 3]


def test_boxes_that_are_kept():
    ins = variables("d[1,?,5] v[1]:int32 i[1,?]:int32 m[]:int32")
    options = {"coord_start": 1, "score_index": 0, "id_index": -1, "return_indices": True, "top_k": -1, "invalid_to_bottom": False}
    made = relay.vision.non_max_suppression(*ins, 0.5, **options).astuple()
    boxes = np.array([[[0.9, 0, 0, 1, 1], [0.8, 0, 0, 1, 1.1], [0.7, 3, 3, 4, 4]]], "float32")
    kept, count = evaluated(relay.Function(ins, made), boxes, np.array([3], "int32"), np.arange(3, dtype="int32")[None], np.int32(-1), kind="vm")
    assert count.ravel()[0] == 2 and kept[0, :2].tolist() == [0, 2]


# ---- Control flow over open shapes


@pytest.mark.parametrize("rows", [0, 1])
def test_a_loop_that_grows(rows):
    i, st = variables("i[]:int32 st[?,1]:int32")
    (start,) = variables(f"start[{rows},1]:int32")
    loop = relay.loops.while_loop(lambda i, st: i < const(3), [i, st], lambda i, st: (i + const(1), relay.concatenate([st, relay.reshape(i, (1, 1))], axis=0)))
    for kind in ("vm", "debug"):
        got = evaluated(relay.Function([start], relay.TupleGetItem(loop(const(0), start), 1)), np.zeros((rows, 1), "int32"), kind=kind)
        assert got.ravel().tolist() == [0] * rows + [0, 1, 2]


def test_a_branch_and_a_recursion():
    branch = relay.create_executor("vm", mod=tvm.IRModule.from_expr(program("c[]:bool x[?,2]", "if (%c) { concatenate((%x, %x)) } else { %x }"))).evaluate()
    assert branch(True, f(2, 2)).shape == (4, 2) and branch(False, f(2, 2)).shape == (2, 2)
    text = "def @f(%n: int32, %x: T[?,1]) -> T[?,1] { if (%n == 0) { %x } else { @f(%n - 1, concatenate((%x, ones(shape=[1, 1], dtype=\"float32\")))) } } "
    assert evaluated(parsed(text + "def @main(%x: T[1,1]) { @f(3, %x) }"), f(1, 1), kind="vm").shape == (4, 1)


def test_a_tuple_as_an_argument():
    pair = relay.var("t", relay.TupleType([relay.TensorType((relay.Any(), 2)), relay.TensorType((3,), "int32")]))
    got = evaluated(relay.Function([pair], relay.TupleGetItem(pair, 0) * const(2.0)), (np.ones((2, 2), "float32"), np.zeros(3, "int32")), kind="vm")
    assert got.tolist() == [[2, 2], [2, 2]]


def test_types_of_open_programs():
    func = typed(program("x[?,3]", "exp(%x)"))
    assert "Tensor[(?, 3), float32]" in func.astext() and isinstance(func.ret_type.shape[0], tir.Any)
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(func.astext()), func)
    assert typed(program("c[]:bool x[?,2] y[3,2]", "if (%c) { %x } else { %y }")).ret_type.shape[1] == 2


def test_a_machine_of_many_shapes():
    exe = relay.vm.compile(tvm.IRModule.from_expr(program("x[?,4]", "nn.softmax(%x)")), "llvm")
    machine = tvm.runtime.vm.VirtualMachine(exe, tvm.cpu())
    assert [machine.run(f(n, 4)).shape for n in (1, 5, 2)] == [(1, 4), (5, 4), (2, 4)]


# A shape of unknown length, which is known in a call.
UNKNOWN_LENGTH = {
    "zeros": (lambda s, x: relay.zeros(s, "float32"), lambda s, x: np.zeros(s, "float32")),
    "ones": (lambda s, x: relay.ones(s, "int32"), lambda s, x: np.ones(s, "int32")),
    "full": (lambda s, x: relay.full(const(2.0), s), lambda s, x: np.full(s, 2.0, "float32")),
    "dyn.zeros": (lambda s, x: relay.op.dyn.zeros(s, "float32"), lambda s, x: np.zeros(s, "float32")),
    "reshape": (lambda s, x: relay.reshape(x, s), lambda s, x: x.reshape(s)),
    "broadcast_to": (lambda s, x: relay.broadcast_to(relay.reshape(x, (1, 6)), s), lambda s, x: np.broadcast_to(x.reshape(1, 6), s)),
    "of a sum": (lambda s, x: relay.zeros(s + const(1, "int64"), "float32"), lambda s, x: np.zeros(np.asarray(s) + 1, "float32")),
    "what follows": (lambda s, x: nn.relu(relay.zeros(s, "float32") + const(1.0)), lambda s, x: np.ones(s, "float32")),
}


@pytest.mark.parametrize("kind", ["debug", "vm", "graph"])
@pytest.mark.parametrize("name", UNKNOWN_LENGTH)
def test_a_shape_of_unknown_length(name, kind):
    made, want = UNKNOWN_LENGTH[name]
    s, x = variables("s[?]:int64 x[2,3]")
    run = relay.create_executor(kind, mod=tvm.IRModule.from_expr(relay.Function([s, x], made(s, x))), target="llvm").evaluate()
    data = f(2, 3)
    for extents in ([3, 6], [6, 6]) if name == "broadcast_to" else ([6], [3, 2], [1, 2, 3]):
        np.testing.assert_array_equal(run(i64(*extents), data).numpy(), want(extents, data))
