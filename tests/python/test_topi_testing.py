# SPDX-License-Identifier: Apache-2.0
"""`topi.testing` beside what Relay's operators compute, each written by itself."""

import numpy as np
import pytest

import baton as tvm
import baton.topi.testing as ref
from baton import relay, te
from baton.topi.utils import get_const_tuple

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def row(name, op, want, *arrays, tol=1e-4):
    return pytest.param(op, want, arrays, tol, id=name)


IMAGE, WEIGHT = f32(2, 4, 8, 7), f32(6, 4, 3, 3)
ROIS = np.array([[0, 0.5, 1, 6, 5], [1, 2, 0, 3.5, 6], [0, 1, 1, 1.2, 1.1]], "float32")
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, -0.2, 0.4, 1.2]], "float32")
nn, image, vision = relay.nn, relay.image, relay.vision
ROWS = [
    row(
        "conv1d", lambda x, w: nn.conv1d(x, w, strides=2, padding=1, dilation=2), lambda x, w: ref.conv1d_ncw_python(x, w, 2, 1, 2), f32(2, 3, 9), f32(4, 3, 3)
    ),
    row("conv2d", lambda x, w: nn.conv2d(x, w, strides=(2, 1), padding=(1, 0)), lambda x, w: ref.conv2d_nchw_python(x, w, (2, 1), (1, 0)), IMAGE, WEIGHT),
    row(
        "conv2d in groups", lambda x, w: nn.conv2d(x, w, groups=2, padding=1), lambda x, w: ref.conv2d_nchw_python(x, w, 1, 1, groups=2), IMAGE, f32(6, 2, 3, 3)
    ),
    row("conv2d, uneven", lambda x, w: nn.conv2d(x, w, padding=(1, 0, 2, 1)), lambda x, w: ref.conv2d_nchw_python(x, w, 1, (1, 0, 2, 1)), IMAGE, WEIGHT),
    row(
        "conv2d, NHWC",
        lambda x, w: nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"),
        lambda x, w: ref.conv2d_nhwc_python(x, w, 1, 0),
        f32(1, 5, 6, 3),
        f32(3, 2, 3, 4),
    ),
    row(
        "depthwise",
        lambda x, w: nn.conv2d(x, w, groups=4, channels=8, kernel_size=(3, 3)),
        lambda x, w: ref.depthwise_conv2d_python_nchw(x, w.reshape(4, 2, 3, 3), 1, 0),
        IMAGE,
        f32(8, 1, 3, 3),
    ),
    row("conv3d", lambda x, w: nn.conv3d(x, w, padding=1), lambda x, w: ref.conv3d_ncdhw_python(x, w, 1, 1), f32(1, 2, 4, 4, 5), f32(3, 2, 3, 3, 3)),
    row(
        "conv3d, NDHWC",
        lambda x, w: nn.conv3d(x, w, data_layout="NDHWC", kernel_layout="DHWIO"),
        lambda x, w: ref.conv3d_ndhwc_python(x, w, 1, "VALID"),
        f32(1, 4, 4, 5, 2),
        f32(3, 3, 3, 2, 3),
    ),
    row(
        "conv1d_transpose",
        lambda x, w: nn.conv1d_transpose(x, w, strides=2, padding=1, output_padding=1),
        lambda x, w: ref.conv1d_transpose_ncw_python(x, w, 2, 1, 1),
        f32(1, 3, 5),
        f32(3, 4, 3),
    ),
    row(
        "conv2d_transpose",
        lambda x, w: nn.conv2d_transpose(x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 1)),
        lambda x, w: ref.conv2d_transpose_nchw_python(x, w, (2, 2), (1, 1), (1, 1)),
        f32(1, 3, 4, 5),
        f32(3, 4, 3, 3),
    ),
    row(
        "conv2d_transpose in groups",
        lambda x, w: nn.conv2d_transpose(x, w, groups=2, channels=6),
        lambda x, w: ref.conv2d_transpose_nchw_python(x, w, 1, 0, 0, 2),
        f32(1, 4, 3, 3),
        f32(4, 3, 2, 2),
    ),
    row(
        "conv3d_transpose",
        lambda x, w: nn.conv3d_transpose(x, w, strides=2),
        lambda x, w: ref.conv3d_transpose_ncdhw_python(x, w, 2, 0, 0),
        f32(1, 2, 3, 3, 3),
        f32(2, 3, 2, 2, 2),
    ),
    row(
        "deformable_conv2d",
        lambda x, o, w: nn.deformable_conv2d(x, o, w, kernel_size=(3, 3), padding=(1, 1), deformable_groups=2, groups=2, channels=6),
        lambda x, o, w: ref.deformable_conv2d_nchw_python(x, o, w, 1, 1, 1, 2, 2),
        f32(1, 4, 5, 5),
        f32(1, 36, 5, 5),
        f32(6, 2, 3, 3),
    ),
    row(
        "max_pool2d",
        lambda x: nn.max_pool2d(x, (3, 2), (2, 1), padding=(1, 0, 1, 1), ceil_mode=True),
        lambda x: ref.poolnd_python(x, (3, 2), (2, 1), (1, 1), (1, 0), (1, 1), "max", True, True),
        IMAGE,
    ),
    *[
        row(
            f"avg_pool2d, {whole}",
            lambda x, whole=whole: nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1), count_include_pad=whole),
            lambda x, whole=whole: ref.poolnd_python(x, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "avg", whole),
            IMAGE,
        )
        for whole in (True, False)
    ],
    row("max_pool1d", lambda x: nn.max_pool1d(x, 3, 2), lambda x: ref.poolnd_python(x, [3], [2], [1], [0], [0], "max"), f32(2, 3, 9)),
    row(
        "max_pool2d's gradient",
        lambda g, x: nn.max_pool2d_grad(g, x, pool_size=(2, 2), strides=(2, 2)),
        lambda g, x: ref.pool_grad_nchw(x, g, (2, 2), (2, 2), [0] * 4, "max", False),
        f32(1, 2, 3, 3),
        f32(1, 2, 6, 6),
    ),
    row("adaptive_avg_pool2d", lambda x: nn.adaptive_avg_pool2d(x, (3, 2)), lambda x: ref.adaptive_pool(x, (3, 2), "avg", "NCHW"), IMAGE),
    row("adaptive_max_pool2d", lambda x: nn.adaptive_max_pool2d(x, (3, 2), layout="NHWC"), lambda x: ref.adaptive_pool(x, (3, 2), "max", "NHWC"), IMAGE),
    row("batch_matmul", lambda a, b: nn.batch_matmul(a, b), lambda a, b: ref.batch_matmul(a, b), f32(2, 3, 4), f32(2, 5, 4)),
    row(
        "batch_matmul, transposed",
        lambda a, b: nn.batch_matmul(a, b, transpose_a=True, transpose_b=False),
        lambda a, b: ref.batch_matmul(a, b, trans_x=True, trans_y=False),
        f32(2, 4, 3),
        f32(2, 4, 5),
    ),
    row("softmax", lambda x: nn.softmax(x, axis=1), lambda x: ref.softmax_python(x, 1), IMAGE),
    row("log_softmax", lambda x: nn.log_softmax(x, axis=1), ref.log_softmax_python, f32(3, 5)),
    row("l2_normalize", lambda x: nn.l2_normalize(x, eps=0.1, axis=[1, 3]), lambda x: ref.l2_normalize_python(x, 0.1, [1, 3]), IMAGE),
    row("lrn", lambda x: nn.lrn(x, size=3, axis=1, bias=0.5, alpha=0.2, beta=0.75), lambda x: ref.lrn_python(x, 3, 1, 0.5, 0.2, 0.75), IMAGE),
    *[
        row(
            f"nll_loss, {r}",
            lambda p, t, w, r=r: nn.nll_loss(p, t, w, r, 1),
            lambda p, t, w, r=r: ref.nll_loss(p, t, w, r, 1),
            f32(4, 3, 2),
            RNG.integers(0, 3, (4, 2)).astype("int32"),
            np.abs(f32(3)),
        )
        for r in ("mean", "sum", "none")
    ],
    row(
        "one_hot",
        lambda x: relay.one_hot(x, relay.const(2.0), relay.const(-1.0), 5, 1, "float32"),
        lambda x: ref.one_hot(x, 2.0, -1.0, 5, 1, "float32"),
        RNG.integers(0, 5, (2, 3)).astype("int32"),
    ),
    *[
        row(
            f"sequence_mask, {axis}",
            lambda x, n, axis=axis: relay.sequence_mask(x, n, mask_value=-1.0, axis=axis),
            lambda x, n, axis=axis: ref.sequence_mask(x, n, -1.0, axis),
            f32(4, 4, 2),
            np.array([1, 4, 0, 2], "int32"),
        )
        for axis in (0, 1)
    ],
    *[
        row(
            f"searchsorted, {right}",
            lambda s, v, right=right: relay.searchsorted(s, v, right=right, dtype="int64"),
            lambda s, v, right=right: ref.searchsorted_ref(s, v, right, "int64"),
            np.sort(RNG.integers(0, 5, (2, 6)), axis=1).astype("float32"),
            RNG.integers(0, 5, (2, 3)).astype("float32"),
        )
        for right in (True, False)
    ],
    row("gather", lambda x, i: relay.gather(x, 1, i), lambda x, i: ref.gather_python(x, 1, i), f32(3, 4), RNG.integers(0, 4, (3, 2)).astype("int32")),
    row("gather_nd", lambda x, i: relay.gather_nd(x, i), ref.gather_nd_python, f32(3, 4, 2), np.array([[0, 2, 1], [3, 0, 1]], "int32")),
    row(
        "strided_slice",
        lambda x: relay.strided_slice(x, [1, 3], [3, 0], [1, -2], axes=[0, 2]),
        lambda x: ref.strided_slice_python(x, [1, 3], [3, 0], [1, -2], axes=[0, 2]),
        f32(4, 2, 5),
    ),
    row(
        "strided_slice by sizes",
        lambda x: relay.strided_slice(x, [1, 0], [2, -1], slice_mode="size"),
        lambda x: ref.strided_slice_python(x, [1, 0], [2, -1], None, "size"),
        f32(4, 3),
    ),
    row(
        "strided_set",
        lambda x, v: relay.strided_set(x, v, [1, 0], [3, 4], [1, 2]),
        lambda x, v: ref.strided_set_python(x, v, [1, 0], [3, 4], [1, 2]),
        f32(4, 4),
        f32(2, 2),
    ),
    row("matrix_set_diag", lambda x, d: relay.matrix_set_diag(x, d, k=1), lambda x, d: ref.matrix_set_diag(x, d, 1), f32(2, 3, 4), f32(2, 3)),
    *[
        row(
            f"matrix_set_diag, {align}",
            lambda x, d, align=align: relay.matrix_set_diag(x, d, k=(-1, 2), align=align),
            lambda x, d, align=align: ref.matrix_set_diag(x, d, (-1, 2), align),
            f32(2, 3, 4),
            f32(2, 4, 3),
        )
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
    ],
    row("dilate", lambda x: nn.dilate(x, (2, 3), dilation_value=0.5), lambda x: ref.dilate_python(x, (2, 3), 0.5), f32(3, 2)),
    *[
        row(
            f"depth_to_space, {mode}",
            lambda x, mode=mode: nn.depth_to_space(x, 2, mode=mode),
            lambda x, mode=mode: ref.depth_to_space_python(x, 2, mode),
            f32(1, 8, 2, 3),
        )
        for mode in ("DCR", "CRD")
    ],
    row("space_to_depth", lambda x: nn.space_to_depth(x, 2), lambda x: ref.space_to_depth_python(x, 2), f32(1, 2, 4, 6)),
    row(
        "space_to_batch_nd",
        lambda x: nn.space_to_batch_nd(x, [2, 3], [[0, 2], [1, 1]], 0.5),
        lambda x: ref.space_to_batch_nd_python(x, [2, 3], [0, 1], [2, 1], 0.5),
        f32(2, 4, 4, 3),
    ),
    row(
        "batch_to_space_nd",
        lambda x: nn.batch_to_space_nd(x, [2, 3], [[0, 1], [1, 2]]),
        lambda x: ref.batch_to_space_nd_python(x, [2, 3], [0, 1], [1, 2]),
        f32(12, 2, 3, 2),
    ),
    *[
        row(
            f"resize2d, {method}, {mode}",
            lambda x, method=method, mode=mode: image.resize2d(x, (16, 21), None, "NCHW", method, mode, cubic_alpha=-0.5),
            lambda x, method=method, mode=mode: ref.resize2d_python(x, (2.0, 3.0), "NCHW", method, mode),
            IMAGE,
        )
        for method in ("nearest_neighbor", "linear", "cubic")
        for mode in ("align_corners", "asymmetric", "half_pixel")
    ],
    row(
        "resize1d",
        lambda x: image.resize1d(x, (6,), None, "NCW", "linear", "half_pixel"),
        lambda x: ref.resize1d_python(x, 2.0, "NCW", "linear", "half_pixel"),
        f32(1, 2, 3),
    ),
    row(
        "resize3d",
        lambda x: image.resize3d(x, (4, 6, 4), None, "NCDHW", "linear", "align_corners"),
        lambda x: ref.resize3d_python(x, (2, 2, 2), "NCDHW", "trilinear", "align_corners"),
        f32(1, 2, 2, 3, 2),
    ),
    row("affine_grid", lambda x: image.affine_grid(x, (4, 5)), lambda x: ref.affine_grid_python(x, (4, 5)), f32(2, 2, 3)),
    row("grid_sample", lambda x, g: image.grid_sample(x, g), ref.grid_sample_nchw_python, IMAGE, f32(2, 2, 3, 4)),
    *[
        row(
            f"crop_and_resize, {method}",
            lambda x, b, i, method=method: image.crop_and_resize(x, b, i, (3, 4), "NHWC", method, 0.5),
            lambda x, b, i, method=method: ref.crop_and_resize_python(x, b, i, (3, 4), "NHWC", method, 0.5),
            f32(2, 6, 7, 3),
            BOXES,
            np.array([0, 1, 1], "int32"),
        )
        for method in ("bilinear", "nearest_neighbor")
    ],
    *[
        row(
            f"roi_align, {mode}, {ratio}",
            lambda x, r, mode=mode, ratio=ratio: vision.roi_align(x, r, (3, 2), 0.9, ratio, mode=mode),
            lambda x, r, mode=mode, ratio=ratio: ref.roi_align_nchw_python(x, r, (3, 2), 0.9, ratio, mode.encode()),
            IMAGE,
            ROIS,
        )
        for mode in ("avg", "max")
        for ratio in (2, -1)
    ],
    row(
        "roi_align, NHWC",
        lambda x, r: vision.roi_align(x, r, (2, 2), 1.0, 2, layout="NHWC"),
        lambda x, r: ref.roi_align_nhwc_python(x, r, (2, 2), 1.0, 2),
        IMAGE,
        ROIS,
    ),
    row("roi_pool", lambda x, r: vision.roi_pool(x, r, (3, 2), 0.9), lambda x, r: ref.roi_pool_nchw_python(x, r, (3, 2), 0.9), IMAGE, ROIS),
    row("yolo_reorg", lambda x: vision.yolo_reorg(x, 2), lambda x: ref.reorg_python(x, 2), f32(2, 8, 4, 6)),
    row(
        "correlation",
        lambda x, y: nn.correlation(x, y, 3, 2, 1, 2, 3, False),
        lambda x, y: ref.correlation_nchw_python(x, y, 3, 2, 1, 2, 3, False),
        f32(1, 2, 7, 7),
        f32(1, 2, 7, 7),
    ),
]


@pytest.mark.parametrize(("op", "want", "arrays", "tol"), ROWS)
def test_reference(op, want, arrays, tol):
    variables = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    found = relay.create_executor("debug", device=tvm.cpu(), target="llvm").evaluate(relay.Function(variables, op(*variables)))(*arrays).numpy()
    wanted = want(*arrays)
    assert found.dtype == wanted.dtype
    tvm.testing.assert_allclose(found, wanted, rtol=tol, atol=tol)


def test_shapes_as_numbers():
    n = te.size_var("n")
    shape = get_const_tuple(relay.TensorType((2, n, 3)).shape)
    assert shape[0] == 2 and shape[2] == 3 and all(isinstance(x, int) for x in (shape[0], shape[2])) and shape[1].same_as(n)
    assert tvm.topi.tag.is_injective(tvm.topi.tag.ELEMWISE) and not tvm.topi.tag.is_broadcast("comm_reduce")
    with pytest.raises(ValueError, match="not a number"):
        tvm.topi.utils.get_const_int(n)


@pytest.mark.parametrize(
    "args, kwargs",
    [(([2], [0], [-1]), {}), (([0, 0], [3, 4], [2]), {}), (([0, 0], [3, 4], [2]), {"axes": [1, 2]}), (([0, 1, 0], [2, -1, 3], [2]), {"slice_mode": "size"})],
)
def test_a_stride_is_of_the_dimensions_that_are_sliced(args, kwargs):
    data = np.arange(60, dtype="float32").reshape(3, 4, 5)
    x = relay.var("x", shape=data.shape)
    func = relay.Function([x], relay.strided_slice(x, *args, **kwargs))
    got = relay.create_executor("graph", tvm.IRModule.from_expr(func), tvm.cpu(), "llvm").evaluate()(data).numpy()
    np.testing.assert_array_equal(ref.strided_slice_python(data, *args, **kwargs), got)


def test_crops_between_two_elements_go_where_the_operator_goes():
    # The middle of 0.1 and 0.9 lies between two rows in float32 and above it in float64.
    boxes = np.array([[0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1]], "float32")
    x, b, i = relay.var("x", shape=(1, 6, 7, 1)), relay.var("b", shape=(2, 4)), relay.var("i", shape=(2,), dtype="int32")
    data = np.arange(42, dtype="float32").reshape(1, 6, 7, 1)
    for size in [(1, 1), (4, 5)]:
        func = relay.Function([x, b, i], image.crop_and_resize(x, b, i, size, "NHWC", "nearest_neighbor"))
        got = relay.create_executor("graph", tvm.IRModule.from_expr(func), tvm.cpu(), "llvm").evaluate()(data, boxes, np.zeros(2, "int32"))
        np.testing.assert_array_equal(ref.crop_and_resize_python(data, boxes, np.zeros(2, "int32"), size, "NHWC", "nearest_neighbor"), got.numpy())
        as_lists = ref.crop_and_resize_python(data, boxes.tolist(), [0, 0], size, "NHWC", "nearest_neighbor")
        np.testing.assert_array_equal(as_lists, got.numpy())
