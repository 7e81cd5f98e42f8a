# SPDX-License-Identifier: Apache-2.0
"""Operators for vision, images, open shapes, sorting, reductions and quantized tensors, as programs of 0.8 call them: rows of (call, what it gives)."""

import math

import numpy as np
import pytest

import baton as tvm
from baton import relay
from baton.relay import transform
from baton.relay.testing import check_grad, run_infer_type


def X(*shape, d="float32", n="x"):
    """A variable."""
    return relay.var(n, relay.TensorType(shape, d))


def F(*shape):
    """Numbers in [0, 1)."""
    return np.random.default_rng(len(shape)).random(shape).astype("float32")


def of_free_vars(e):
    return relay.Function(relay.analysis.free_vars(e), e)


def called(text):
    """The expression of a row, with operators and variables by the names that rows use."""
    e = eval(text, {"X": X, "relay": relay, "np": np, "x": X(2, 3, 4), "images": X(1, 3, 8, 8)})
    return e.astuple() if hasattr(e, "astuple") else e


def value(e, *inputs, k="graph"):
    """What an expression, a function or a module gives for inputs."""
    mod = e if isinstance(e, tvm.IRModule) else tvm.IRModule.from_expr(e if isinstance(e, relay.Function) else of_free_vars(e))
    r = relay.create_executor(k, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*inputs)
    return r.numpy() if hasattr(r, "numpy") else [x.numpy() for x in r]


def shape_of(kind):
    return tuple(map(shape_of, kind.fields)) if isinstance(kind, relay.TupleType) else tuple(int(d) for d in kind.shape)


# Call, and the shape of what it gives.
SHAPES = [
    ('relay.vision.yolo_reorg(X(1, 8, 4, 4), 2)', (1, 32, 2, 2)),
    ('relay.image.resize2d(images, (16, 16))', (1, 3, 16, 16)),
    ("relay.image.resize2d(images, (4, 4), layout='NCHW', method='cubic', coordinate_transformation_mode='align_corners')", (1, 3, 4, 4)),
    ("relay.image.crop_and_resize(X(1, 8, 8, 3), X(2, 4, n='b'), X(2, d='int32', n='bi'), (4, 4), layout='NHWC')", (2, 4, 4, 3)),
    ("relay.image.dilation2d(images, X(3, 3, 3, n='w'))", (1, 3, 6, 6)),
    ('relay.image.affine_grid(X(1, 2, 3), (8, 8))', (1, 2, 8, 8)),
    ("relay.image.grid_sample(images, X(1, 2, 4, 4, n='g'))", (1, 3, 4, 4)),
    ('relay.image.resize1d(X(1, 3, 8), (16,))', (1, 3, 16)),
    ('relay.image.resize3d(X(1, 3, 4, 4, 4), (8, 8, 8))', (1, 3, 8, 8, 8)),
    ('relay.strided_slice(X(4, 4), [0], [2], axes=[1])', (4, 2)),
    ("relay.gather(X(3, 3), 1, X(3, 2, d='int64', n='i'))", (3, 2)),
    ("relay.take(X(3, 4), X(2, d='int32', n='i'), axis=1, mode='clip')", (3, 2)),
    ('relay.reshape(x, (0, -1))', (2, 12)),
    ('relay.reshape(x, (-2,))', (2, 3, 4)),
    ('relay.reshape(x, (-3, 4))', (6, 4)),
    ('relay.reshape(x, (-4, 1, 2, -2))', (1, 2, 3, 4)),
    ('relay.reverse_reshape(x, (-1, 0))', (6, 4)),
    ("relay.reshape_like(x, X(6, 4, n='y'))", (6, 4)),
    ('relay.expand_dims(x, 0, 2)', (1, 1, 2, 3, 4)),
    ('relay.squeeze(X(1, 2, 1), [0])', (2, 1)),
    ('relay.transpose(x, (2, 0, 1))', (4, 2, 3)),
    ("relay.layout_transform(X(1, 16, 4, 4), 'NCHW', 'NCHW4c')", (1, 4, 4, 4, 4)),
    ('relay.stack([x, x], 1)', (2, 2, 3, 4)),
    ('relay.split(x, (1,), 1)[1]', (2, 2, 4)),
    ('relay.repeat(x, 2, 0)', (4, 3, 4)),
    ('relay.tile(x, (2,))', (2, 3, 8)),
    ('relay.reverse(x, 0)', (2, 3, 4)),
    ("relay.slice_like(x, X(1, 2, 2, n='y'))", (1, 2, 2)),
    ("relay.broadcast_to_like(X(4, n='q'), x)", (2, 3, 4)),
    ("relay.collapse_sum_like(x, X(4, n='q'))", (4,)),
    ('relay.shape_of(x)', (3,)),
    ('relay.ndarray_size(x)', ()),
    ("relay.meshgrid([X(2), X(3, n='y')])[0]", (2, 3)),
    ("relay.sequence_mask(x, X(3, n='l', d='int32'))", (2, 3, 4)),
    ("relay.matrix_set_diag(X(3, 4), X(3, n='d'))", (3, 4)),
    ("relay.adv_index([x, X(2, n='i', d='int64')])", (2, 3, 4)),
    ("relay.unravel_index(X(2, d='int64'), X(2, n='s', d='int64'))", (2, 2)),
    ("relay.invert_permutation(X(3, d='int32'))", (3,)),
    ("relay.arange(relay.const(0), relay.const(10), relay.const(2), dtype='int32')", (5,)),
    ("relay.where(X(2, 1, d='bool'), X(2, 3, n='a'), X(1, 3, n='b'))", (2, 3)),
    ("relay.einsum((X(2, 3), X(3, 4, n='y')), 'ij,jk->ik')", (2, 4)),
    ("relay.logical_and(X(2, d='bool'), X(2, d='bool', n='t'))", (2,)),
    ("relay.bitwise_not(X(3, d='int32'))", (3,)),
    ("relay.logical_not(X(2, d='bool'))", (2,)),
    ('relay.cumsum(X(3, 4), 1)', (3, 4)),
    ('relay.cumprod(X(3, 4), exclusive=True)', (12,)),
    ('relay.nn.space_to_batch_nd(X(1, 4, 4, 1), [2, 2], [[0, 0], [0, 0]])', (4, 2, 2, 1)),
    ('relay.nn.batch_to_space_nd(X(4, 2, 2, 1), [2, 2], [[0, 0], [0, 0]])', (1, 4, 4, 1)),
    ("relay.nn.sparse_dense(X(4, 16), (X(3, n='d'), X(3, n='i', d='int32'), X(9, n='p', d='int32')))", (4, 8)),
    ('relay.nn.upsampling3d(X(1, 2, 2, 2, 2), 2, 2, 2)', (1, 2, 4, 4, 4)),
    ('relay.vision.get_valid_counts(X(1, 5, 6), 0.5, 0, 1)', ((1,), (1, 5, 6), (1, 5))),
    ('relay.vision.get_valid_counts(X(1, 5, 6), relay.const(0.5), id_index=-1, score_index=0)', ((1,), (1, 5, 6), (1, 5))),
    ('relay.vision.multibox_prior(X(1, 4, 8, 8), sizes=(0.5, 0.3), ratios=(1, 2))', (1, 192, 4)),
    ("relay.vision.multibox_transform_loc(X(1, 3, 5, n='c'), X(1, 20, n='l'), X(1, 5, 4, n='a'))", ((1, 5, 6), (1,))),
    ("relay.vision.roi_align(X(1, 4, 16, 16), X(2, 5, n='r'), pooled_size=(7, 7), spatial_scale=0.5, sample_ratio=2, mode='avg', layout='NCHW')", (2, 4, 7, 7)),
    ("relay.vision.roi_pool(X(1, 4, 16, 16), X(2, 5, n='r'), (7, 7), 0.5)", (2, 4, 7, 7)),
    (
        "relay.vision.proposal(X(1, 6, 4, 4, n='c'), X(1, 12, 4, 4, n='b'), X(1, 3, n='i'), scales=(0.5,), ratios=(0.5, 1.0, 2.0), feature_stride=16, threshold=0.5, rpn_pre_nms_top_n=20, rpn_post_nms_top_n=5, rpn_min_size=4, iou_loss=False)",
        (5, 5),
    ),
    ("relay.gather_nd(X(2, 2), X(2, 2, d='int64', n='i'))", (2,)),
    ("relay.scatter_nd(X(3, 3, n='q'), X(1, 2, d='int64', n='i'), X(2, 3, n='v'), 'add')", (3, 3)),
    ("relay.nn.bitpack(X(2, 32, d='int16'), bits=1, pack_axis=1, bit_axis=2, pack_type='uint32')", (2, 1, 1)),
    ("relay.topk(X(3, 4), k=1, axis=-1, ret_type='both', is_ascend=True)", ((3, 1), (3, 1))),
]


@pytest.mark.parametrize(("call", "shape"), SHAPES, ids=[call.removeprefix("relay.") for call, _ in SHAPES])
def test_shapes(call, shape):
    assert shape_of(run_infer_type(called(call)).checked_type) == shape


ELEMENTWISE = {
    "rsqrt": lambda v: 1 / np.sqrt(v),
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "erf": np.vectorize(math.erf, otypes=["float32"]),
    "copy": lambda v: v,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
} | {
    name: getattr(np, name)
    for name in "abs ceil floor round trunc exp log log2 log10 sqrt sin cos tan sinh cosh tanh sign negative isnan isfinite isinf zeros_like ones_like".split()
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_of_one_operand(name):
    given = F(2, 3) * 0.8 + 0.1
    np.testing.assert_allclose(value(getattr(relay, name)(X(2, 3)), given), ELEMENTWISE[name](given), rtol=1e-4)


FLOATS = {"mod": np.fmod, "floor_mod": np.mod} | {
    name: getattr(np, name)
    for name in "add subtract multiply divide floor_divide power maximum minimum less less_equal greater greater_equal equal not_equal".split()
}
INTEGERS = {"trunc_divide": np.floor_divide, "trunc_mod": np.mod} | {
    name: getattr(np, name) for name in "left_shift right_shift bitwise_and bitwise_or bitwise_xor".split()
}


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_of_two_operands(name):
    given, d = (np.array([5, 6, 7], "int32"), np.array([1, 2, 3], "int32")), "int32"
    if name in FLOATS:
        given, d = (F(2, 3) + 1, F(3) + 1), "float32"
    made = getattr(relay, name)(*(X(*a.shape, d=d, n=n) for a, n in zip(given, "xy", strict=True)))
    np.testing.assert_allclose(value(made, *given), (FLOATS | INTEGERS)[name](*given), rtol=1e-4)


@pytest.mark.parametrize("name", "sum mean max min prod std variance argmax argmin".split())
def test_reductions(name):
    given = F(2, 3, 4)
    expected = getattr(np, {"variance": "var"}.get(name, name))(given, axis=1)
    np.testing.assert_allclose(value(getattr(relay, name)(X(2, 3, 4), axis=1), given), expected, rtol=1e-4)


# Call, its inputs, its value.
VALUES = [
    ("relay.clip(X(3), 0.2, 0.4)", [[0.1, 0.3, 0.7]], [0.2, 0.3, 0.4]),
    ("relay.cast_like(X(2), X(2, n='q', d='int8'))", [[1.7, -1.7], [0, 0]], [1, -1]),
    ("relay.reinterpret(X(2), 'int32')", [[1.0, -2.0]], [0x3F800000, -0x40000000]),
    ("relay.fixed_point_multiply(X(2, d='int32'), 1 << 30, 1)", [[3, -8]], [3, -8]),
    ("relay.scatter(X(5, n='d'), X(2, d='int64', n='i'), X(2, n='u'), 0)", [[0] * 5, [1, 3], [5, 6]], [0, 5, 0, 6, 0]),
    ("relay.scatter_add(X(5, n='d'), X(2, d='int64', n='i'), X(2, n='u'), 0)", [[0] * 5, [1, 1], [5, 6]], [0, 11, 0, 0, 0]),
    ("relay.take(X(3), X(2, d='int32', n='i'), axis=0, mode='clip')", [[1, 2, 3], [5, -1]], [3, 1]),
    ("relay.take(X(3), X(2, d='int32', n='i'), axis=0, mode='wrap')", [[1, 2, 3], [5, -1]], [3, 3]),
    ("relay.sort(X(2, 3), 1)", [[[3, 1, 2], [5, 6, 4]]], [[1, 2, 3], [4, 5, 6]]),
    ("relay.argsort(X(2, 3), 1, dtype='int32')", [[[3, 1, 2], [5, 6, 4]]], [[1, 2, 0], [2, 0, 1]]),
    ("relay.topk(X(2, 3), 2, ret_type='values')", [[[3, 1, 2], [5, 6, 4]]], [[3, 2], [6, 5]]),
    ("relay.searchsorted(X(4, n='s'), X(3, n='v'))", [[1, 2, 3, 4], [0, 2.5, 9]], [0, 2, 4]),
    ("relay.sparse_to_dense(X(2, 2, d='int64', n='i'), [3, 3], X(2, n='v'), relay.const(0.0))", [[[0, 0], [1, 1]], [1, 2]], np.diag([1, 2, 0])),
    ("relay.segment_sum(X(4), relay.const(np.array([0, 0, 1, 1])))", [[1, 1, 1, 1]], [2, 2]),
    ("relay.image.resize2d(images, (16, 16), method='linear', coordinate_transformation_mode='half_pixel')", [np.ones((1, 3, 8, 8))], np.ones((1, 3, 16, 16))),
]
# The same, with shapes that come with the call.
VALUES_OF_OPEN_SHAPES = [
    ("relay.argwhere(relay.var('x', shape=(relay.Any(), 3)))", [[[1, 0, 2]]], [[0, 0], [0, 2]]),
    ("relay.reshape(X(2, 3), X(2, d='int64', n='s'))", [[[1, 2, 3], [4, 5, 6]], [3, 2]], [[1, 2], [3, 4], [5, 6]]),
    ("relay.broadcast_to(X(3), X(2, d='int64', n='s'))", [[1, 2, 3], [2, 3]], [[1, 2, 3]] * 2),
    ("relay.full(relay.const(1.0), X(2, d='int64', n='s'), 'float32')", [[2, 2]], np.ones((2, 2))),
    ("relay.zeros(X(2, d='int64', n='s'), 'float32')", [[1, 4]], np.zeros((1, 4))),
    ("relay.ones(X(2, d='int64', n='s'), 'int32')", [[1, 4]], np.ones((1, 4))),
    ("relay.tile(X(2, 3), X(2, d='int64', n='s'))", [[[1, 2, 3], [4, 5, 6]], [2, 2]], np.tile([[1, 2, 3], [4, 5, 6]], (2, 2))),
    (
        "relay.nn.upsampling(X(1, 1, 1, 2), relay.var('h', shape=(), dtype='float32'), relay.var('w', shape=(), dtype='float32'))",
        [[[[[1, 2]]]], 2, 2],
        [[[[1, 1, 2, 2]] * 2]],
    ),
    ("relay.nn.pad(X(2, 3), X(2, 2, d='int64', n='p'))", [np.ones((2, 3)), [[1, 1], [0, 2]]], np.pad(np.ones((2, 3)), ((1, 1), (0, 2)))),
    ("relay.topk(X(4), relay.var('k', shape=(), dtype='int32'), ret_type='values')", [[1, 4, 2, 3], 2], [4, 3]),
    (
        "relay.one_hot(X(3, d='int32', n='i'), relay.const(1.0), relay.const(0.0), relay.var('dp', shape=(), dtype='int32'), -1, 'float32')",
        [[0, 1, 2], 4],
        np.eye(4)[:3],
    ),
    (
        "relay.strided_slice(X(4, 4), *(X(2, d='int64', n=n) for n in ('b', 'e', 's')))",
        [np.arange(16).reshape(4, 4), [0, 1], [4, 3], [2, 1]],
        [[1, 2], [9, 10]],
    ),
    (
        "relay.dyn.strided_slice(X(4, 4), *(X(2, d='int64', n=n) for n in ('b', 'e', 's')))",
        [np.arange(16).reshape(4, 4), [0, 1], [4, 3], [2, 1]],
        [[1, 2], [9, 10]],
    ),
]


ROWS = [(*row, "graph") for row in VALUES] + [(*row, "vm") for row in VALUES_OF_OPEN_SHAPES]


@pytest.mark.parametrize(("call", "inputs", "expected", "executor"), ROWS, ids=[row[0].removeprefix("relay.") for row in ROWS])
def test_values(call, inputs, expected, executor):
    e = called(call)
    given = [np.array(a, v.type_annotation.dtype) for a, v in zip(inputs, relay.analysis.free_vars(e), strict=True)]
    r = value(of_free_vars(e), *given, k=executor)
    assert r.shape == np.shape(expected)
    np.testing.assert_allclose(r, expected, rtol=1e-5)


def test_results_of_several_tensors():
    assert [a.shape for a in value(called("relay.vision.get_valid_counts(X(1, 5, 6), 0.5, 0, 1)"), F(1, 5, 6))] == [(1,), (1, 5, 6), (1, 5)]
    i, v = X(2, 2, d="int64", n="i"), X(2, n="v")
    given = np.array([[0, 0], [1, 3]]), np.array([1, 2], "float32")
    reshaped = relay.sparse_reshape(i, relay.const(np.array([2, 4])), relay.const(np.array([4, 2])))
    assert [a.tolist() for a in value(of_free_vars(reshaped.astuple()), given[0])] == [[[0, 0], [3, 1]], [4, 2]]
    filled = relay.sparse_fill_empty_rows(i, v, relay.const(np.array([3, 4])), relay.const(9.0))
    assert [a.tolist() for a in value(of_free_vars(filled.astuple()), *given, k="vm")] == [[[0, 0], [1, 3], [2, 0]], [1, 2, 9], [False, False, True]]
    u = relay.unique(X(5, d="int32", n="u"), is_sorted=True, return_counts=True)
    r = value(of_free_vars(u.astuple()), np.array([1, 2, 2, 3, 1], "int32"), k="vm")
    assert r[0].tolist() == [1, 2, 3]
    r = value(
        of_free_vars(called("relay.vision.multibox_transform_loc(X(1, 3, 5, n='c'), X(1, 20, n='l'), X(1, 5, 4, n='a'))")), F(1, 3, 5), F(1, 20), F(1, 5, 4)
    )
    assert r[0].shape == (1, 5, 6)
    roi = called("relay.vision.roi_align(X(1, 4, 16, 16), X(2, 5, n='r'), pooled_size=(7, 7), spatial_scale=0.5, sample_ratio=2, mode='avg', layout='NCHW')")
    assert value(of_free_vars(roi), F(1, 4, 16, 16), np.array([[0, 0, 0, 10, 10], [0, 2, 2, 14, 14]], "float32")).shape == (2, 4, 7, 7)
    z = relay.vision.all_class_non_max_suppression(X(1, 10, 4, n="b"), X(1, 2, 10, n="s"), 2, 0.5, 0.0)
    boxes, counts = run_infer_type(z.astuple()).checked_type.fields
    assert isinstance(boxes.shape[0], tvm.tir.Any) and boxes.shape[1] == 3 and shape_of(counts) == (1,)


def test_nms():
    d = np.array(
        [[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40], [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], 'float32'
    )
    x = X(1, 5, 6)
    v = X(1, d='int32', n='v')
    ind = X(1, 5, d='int32', n='i')
    z = relay.vision.non_max_suppression(
        x, v, ind, max_output_size=-1, iou_threshold=0.7, force_suppress=True, top_k=2, coord_start=2, score_index=1, id_index=0, return_indices=False
    )
    r = value(relay.Function([x, v, ind], z), d, np.array([4], 'int32'), np.arange(5, dtype='int32')[None])
    np.testing.assert_allclose(r[0, 0], [2, 0.9, 35, 61, 52, 79])
    assert r.shape == (1, 5, 6)


def test_qnn():
    q = relay.qnn.op
    x = X(2, 4, d='int8')
    w = X(3, 4, d='int8', n='w')
    s, z = (relay.const(0.5), relay.const(1, 'int32'))
    d = q.dense(x, w, z, z, s, s, units=3)
    assert run_infer_type(d).checked_type.dtype == 'int32'
    r = q.requantize(d, s, z, relay.const(1.0), z, out_dtype='int8')
    a = q.add(x, x, s, z, s, z, s, z)
    m = q.mul(x, x, s, z, s, z, s, z)
    sub = q.subtract(x, x, s, z, s, z, s, z)
    qz = q.quantize(X(2, 3), s, z, out_dtype='uint8')
    dq = q.dequantize(x, s, z)
    c = q.concatenate(relay.Tuple([x, x]), relay.Tuple([s, s]), relay.Tuple([z, z]), s, z, 0)
    cv = q.conv2d(X(1, 4, 8, 8, d='uint8'), X(8, 4, 3, 3, d='int8', n='w'), z, z, s, s, kernel_size=(3, 3), channels=8)
    bm = q.batch_matmul(X(1, 2, 3, d='int8'), X(1, 4, 3, d='int8', n='y'), z, z, s, s)
    ct = q.conv2d_transpose(X(1, 4, 8, 8, d='int8'), X(4, 8, 3, 3, d='int8', n='w'), z, z, s, s, kernel_size=(3, 3), channels=8)
    for e in (d, r, a, m, sub, qz, dq, c, cv, bm, ct):
        run_infer_type(e)
        mod = tvm.IRModule.from_expr(of_free_vars(e))
        mod = relay.transform.InferType()(mod)
        cn = relay.qnn.transform.CanonicalizeOps()(mod)
        assert 'qnn.' not in cn.astext()
    for n in ('tanh', 'sigmoid', 'exp', 'sqrt', 'rsqrt', 'erf'):
        assert run_infer_type(getattr(q, n)(x, s, z, s, z)).checked_type == relay.TensorType((2, 4), "int8")
    assert run_infer_type(q.simulated_quantize(X(2, 3), s, z)).checked_type.dtype == 'float32'
    assert relay.qnn.transform.Legalize()


def test_qnn_value():
    x = X(2, 2, d='uint8')
    y = X(2, 2, d='uint8', n='y')
    z = relay.qnn.op.add(x, y, relay.const(0.00784314), relay.const(127), relay.const(0.00784314), relay.const(127), relay.const(0.00784314), relay.const(127))
    m = relay.qnn.transform.CanonicalizeOps()(relay.transform.InferType()(tvm.IRModule.from_expr(of_free_vars(z))))
    r = value(m, np.array([[140, 153], [0, 255]], 'uint8'), np.array([[119, 102], [10, 20]], 'uint8'))
    assert r.dtype == 'uint8'
    assert r[0, 0] == 132


def test_grad_ops():
    for f in (
        relay.exp,
        relay.tanh,
        relay.sigmoid,
        relay.nn.relu,
        relay.nn.softmax,
        lambda x: relay.sum(x, 1),
        lambda x: relay.reshape(x, (6,)),
        relay.transpose,
        lambda x: relay.mean(x, 0),
        lambda x: x * x,
        lambda x: x / (x + relay.const(1.0, 'float64')),
        lambda x: x,
        lambda x: relay.clip(x, 0.2, 0.8),
        lambda x: relay.concatenate([x, x], 0),
        lambda x: relay.strided_slice(x, [0, 0], [1, 2]),
        lambda x: relay.power(x, relay.const(2.0, 'float64')),
        lambda x: relay.nn.log_softmax(x),
    ):
        x = X(2, 3, d='float64')
        check_grad(relay.Function([x], f(x)), inputs=[np.linspace(0.05, 0.95, 6).reshape(2, 3)])  # not where clip and relu have a corner
    a, b = (X(3, 4, d='float64'), X(5, 4, n='b', d='float64'))
    check_grad(relay.Function([a, b], relay.nn.dense(a, b)))
    d, w = (X(1, 2, 5, 5, d='float64'), X(3, 2, 3, 3, n='w', d='float64'))
    check_grad(relay.Function([d, w], relay.nn.conv2d(d, w)), mode='first_order')
    check_grad(relay.Function([d], relay.nn.max_pool2d(d, (2, 2))), scale=10)
    check_grad(relay.Function([d], relay.nn.avg_pool2d(d, (2, 2))))


def test_conv_bwd():
    d, w = (X(1, 2, 5, 5), X(3, 2, 3, 3, n='w'))
    f = run_infer_type(relay.Function([d, w], relay.nn.conv2d(d, w, kernel_size=(3, 3), channels=3)))
    g = run_infer_type(transform.gradient(f, mode='first_order'))
    r = relay.create_executor('graph', mod=tvm.IRModule.from_expr(g)).evaluate()(F(1, 2, 5, 5), F(3, 2, 3, 3))
    assert r[1][0].shape == (1, 2, 5, 5)
    assert r[1][1].shape == (3, 2, 3, 3)


def test_open_dimensions_stay_open():
    x = relay.var("x", shape=(relay.Any(), 3))
    kind = run_infer_type(relay.nn.dense(x, X(4, 3, n="w"))).checked_type
    assert isinstance(kind.shape[0], tvm.tir.Any) and kind.shape[1] == 4
    assert isinstance(run_infer_type(relay.concatenate([x, x], 0)).checked_type.shape[0], tvm.tir.Any)
