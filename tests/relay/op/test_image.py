# SPDX-License-Identifier: Apache-2.0
"""Resizing, sampling and boxes, beside ONNX's reference implementation."""

import numpy as np
import pytest
from cases import Case, Reject, Value, each, f16, f32, f64, i8, i32, rejects, table, u8

onnx = pytest.importorskip("onnx")


def reference(op, inputs, opset=21, **attrs):
    """What ONNX's reference implementation says; an input may be None."""
    from onnx.reference import ReferenceEvaluator

    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    node = onnx.helper.make_node(op, names, ["y"], **attrs)
    given = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, given)[0]


METHOD = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}


def resize_nd(
    x,
    axes,
    size,
    scales=(),
    roi=(),
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="",
    cubic_alpha=-0.75,
    cubic_exclude=0,
    extrapolation_value=0.0,
    antialias=False,
    dtype=None,
):
    mode = coordinate_transformation_mode
    if mode == "tf_half_pixel_for_nn":  # ONNX dropped it: half_pixel without its shift
        at = [np.clip(np.floor((np.arange(m) + 0.5) * x.shape[a] / m), 0, x.shape[a] - 1).astype(int) for a, m in zip(axes, size, strict=True)]
        for a, k in zip(axes, at, strict=True):
            x = np.take(x, k, a)
        return x
    attrs = {
        "axes": [a % x.ndim for a in axes],
        "mode": METHOD[method],
        "coordinate_transformation_mode": mode,
        "cubic_coeff_a": cubic_alpha,
        "exclude_outside": cubic_exclude,
        "extrapolation_value": extrapolation_value,
        "antialias": int(antialias),
    }
    if rounding_method:
        attrs["nearest_mode"] = {"round": "round_prefer_ceil"}.get(rounding_method, rounding_method)
    sizes = None if len(scales) else np.array(size, "int64")
    out = reference(
        "Resize", [x.astype("float64"), np.array(roi, "float64") if len(roi) else None, np.array(scales, "float32") if len(scales) else None, sizes], **attrs
    )
    t = np.dtype(dtype) if dtype else x.dtype
    if t.kind in "iu" and method != "nearest_neighbor":
        out = np.clip(np.trunc(out), np.iinfo(t).min, np.iinfo(t).max)
    return out.astype(t)


def resize(letters):
    def value(x, size, layout=None, cubic_alpha=-0.5, out_dtype=None, **attrs):
        layout = layout or "NC" + letters
        return resize_nd(
            x, [layout.index(c) for c in letters], list(size) * (len(letters) if len(size) == 1 else 1), cubic_alpha=cubic_alpha, dtype=out_dtype, **attrs
        )

    return value


MODES = each("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
T = {"rtol": 1e-5, "atol": 2e-6}
test_resize = table(
    Case(
        "image.resize1d",
        resize("W"),
        f32(2, 3, 5),
        size=each([3], [8], [1]),
        method=each("nearest_neighbor", "linear", "cubic"),
        coordinate_transformation_mode=MODES,
        **T,
    ),
    Case("image.resize2d", resize("HW"), f32(1, 2, 4, 5), size=each([7, 3], [4, 5], [6]), method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize2d", resize("HW"), f64(1, 4, 5, 2), size=[7, 3], layout="NHWC", method=each("nearest_neighbor", "linear", "cubic"), rtol=1e-6, atol=1e-6),
    Case(
        "image.resize2d",
        resize("HW"),
        f32(1, 1, 5, 7),
        size=[3, 11],
        method="nearest_neighbor",
        coordinate_transformation_mode=each("half_pixel", "asymmetric"),
        rounding_method=each("", "round_prefer_floor", "round_prefer_ceil", "round", "floor", "ceil"),
    ),
    Case("image.resize2d", resize("HW"), f32(1, 1, 5, 7), size=[3, 9], method="cubic", cubic_alpha=each(-0.5, -0.75), cubic_exclude=each(0, 1), **T),
    Case(
        "image.resize2d",
        resize("HW"),
        f32(1, 1, 5, 7),
        size=[3, 9],
        method="nearest_neighbor",
        coordinate_transformation_mode="tf_half_pixel_for_nn",
        rounding_method="floor",
    ),
    Case(
        "image.resize2d",
        resize("HW"),
        f32(1, 1, 5, 7),
        size=[3, 9],
        roi=[0.2, 0.3, 0.9, 1.4],
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.5,
        method=each("linear", "nearest_neighbor"),
        **T,
    ),
    Case("image.resize2d", resize("HW"), u8(1, 1, 5, 7), size=[10, 14], method=each("nearest_neighbor", "linear", "cubic")),  # weights that are exact
    Case("image.resize2d", resize("HW"), i32(1, 1, 5, 7), size=[3, 9], out_dtype=each("float32", "float64"), **T),
    Case("image.resize2d", resize("HW"), f16(1, 1, 5, 7), size=[3, 9], rtol=3e-3, atol=2e-3),
    Case("image.resize2d", lambda x, size: np.zeros((0, 1, *size), "float32"), f32(0, 1, 5, 7), size=[3, 9]),
    Case("image.resize2d", lambda x, size: np.zeros((1, 1, *size), "float32"), f32(1, 1, 5, 7), size=[0, 9]),
    Case("image.resize3d", resize("DHW"), f32(1, 2, 3, 4, 5), size=each([5, 3, 4], [2]), method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize3d", resize("DHW"), f32(1, 3, 4, 5, 2), size=[5, 3, 4], layout="NDHWC", **T),
    Case("image.resize", resize_nd, f32(4, 5, 3), axes=each([0, 1], [-2, 0]), size=[6, 3], method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize", resize_nd, f32(4, 5), axes=[1], size=[8], scales=[1.7], **T),
    Case(
        "image.resize",
        resize_nd,
        f32(6, 9),
        axes=[0, 1],
        size=[3, 4],
        method=each("linear", "cubic"),
        antialias=each(False, True),
        cubic_exclude=each(0, 1),
        **T,
    ),
    Case("image.resize", resize_nd, i8(4, 5), axes=[0], size=[3]),
    dynamic=True,
)


def upsampled(x, scale_h=1.0, scale_w=1.0, layout="NCHW", method="nearest_neighbor", align_corners=False):
    at = [2, 3] if layout == "NCHW" else [1, 2]
    size = [int(np.floor(x.shape[a] * s + 0.5)) for a, s in zip(at, (scale_h, scale_w), strict=True)]
    if method == "nearest_neighbor":
        return resize_nd(
            x,
            at,
            size,
            method=method,
            coordinate_transformation_mode="align_corners" if align_corners else "asymmetric",
            rounding_method="" if align_corners else "floor",
        )
    return resize_nd(
        x,
        at,
        size,
        method={"bilinear": "linear", "bicubic": "cubic"}[method],
        coordinate_transformation_mode="align_corners" if align_corners else "asymmetric",
        cubic_alpha=-0.5,
    )


test_upsampling = table(
    Case("nn.upsampling", lambda x, scale_h, scale_w: x.repeat(2, 2).repeat(3, 3), f32(1, 2, 3, 4), scale_h=2.0, scale_w=3.0, name="whole"),
    Case(
        "nn.upsampling",
        upsampled,
        f32(1, 2, 3, 4),
        scale_h=2.0,
        scale_w=each(1.0, 1.5),
        method=each("nearest_neighbor", "bilinear", "bicubic"),
        align_corners=each(False, True),
        **T,
    ),
    Case(
        "nn.upsampling", upsampled, f64(1, 3, 4, 2), scale_h=2.0, scale_w=2.0, layout="NHWC", method=each("nearest_neighbor", "bilinear"), rtol=1e-9, atol=1e-9
    ),
    Case("nn.upsampling", upsampled, u8(1, 1, 3, 4), scale_h=2.0, scale_w=2.0),
    dynamic=True,
)


def grid_sample(x, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True, grid_last=False):
    grid = grid if grid_last else np.moveaxis(grid, 1, -1)
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[method]
    return reference(
        "GridSample", [x.astype("float64"), grid.astype("float64")], mode=mode, padding_mode=padding_mode, align_corners=int(align_corners)
    ).astype(x.dtype)


PADDED = {"padding_mode": each("zeros", "border", "reflection"), "align_corners": each(True, False)}
test_grid = table(
    Case(
        "image.grid_sample",
        grid_sample,
        f32(2, 3, 4, 5),
        f32(2, 2, 3, 2).within(-1.6, 1.6),
        method=each("nearest", "bilinear", "bicubic"),
        rtol=2e-4,
        atol=2e-5,
        **PADDED,
    ),
    Case("image.grid_sample", grid_sample, f64(1, 2, 4, 5), f64(1, 3, 2, 2).within(-1.2, 1.2), grid_last=True, rtol=1e-6, atol=1e-6),
    Case(
        "image.grid_sample",
        grid_sample,
        f32(1, 2, 3, 4, 2),
        f32(1, 3, 2, 3, 2).within(-1.2, 1.2),
        layout="NCDHW",
        method=each("nearest", "bilinear"),
        rtol=2e-4,
        atol=2e-5,
        **PADDED,
    ),
    Case("image.grid_sample", lambda x, g, **kw: np.zeros((2, 3, 0, 4), "float32"), f32(2, 3, 4, 5), f32(2, 2, 0, 4)),
    Case(
        "image.grid_sample",
        lambda x, g: np.full((1, 1, 1, 2), np.nan, "float32"),
        f32(1, 1, 2, 2),
        Value([[[[np.nan, np.inf]], [[0, 0]]]], "float32"),
        name="nowhere",
    ),
    Case("image.grid_sample", grid_sample, f16(1, 1, 3, 3), f32(1, 2, 2, 2).within(-1, 1), rtol=5e-3, atol=5e-3),
    dynamic=True,
)


def affine_grid(theta, target_shape, align_corners=True):
    size = np.array([theta.shape[0], 1, *target_shape], "int64")
    return np.moveaxis(reference("AffineGrid", [theta.astype("float64"), size], align_corners=int(align_corners)), -1, 1).astype(theta.dtype)


test_affine = table(
    Case("image.affine_grid", affine_grid, f32(2, 2, 3), target_shape=each([3, 4], [2, 2], [5, 2]), align_corners=each(True, False), rtol=1e-5, atol=2e-6),
    Case("image.affine_grid", affine_grid, f64(1, 3, 4), target_shape=[2, 3, 4], align_corners=each(True, False), rtol=1e-6, atol=1e-6),
    Case("image.affine_grid", lambda t, target_shape: t[:, :, 2:].reshape(2, 2, 1, 1) + 0 * t[:, :, :1, None], f32(2, 2, 3), target_shape=[1, 1], name="one"),
    Case("image.affine_grid", lambda t, target_shape: np.zeros((0, 2, 3, 4), "float16"), f16(0, 2, 3), target_shape=[3, 4]),
    dynamic=True,
)


def roi_align(x, rois, pooled_size, spatial_scale, sample_ratio=-1, mode="avg", aligned=False):
    out = reference(
        "RoiAlign",
        [x.astype("float64"), rois[:, 1:].astype("float64"), rois[:, 0].astype("int64")],
        mode=mode,
        output_height=pooled_size[0],
        output_width=pooled_size[1],
        sampling_ratio=max(sample_ratio, 0),
        spatial_scale=spatial_scale,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )
    return out.astype(x.dtype)


def roi_pool(x, rois, pooled_size, spatial_scale):
    out = np.zeros((len(rois), x.shape[1], *pooled_size), x.dtype)
    for r, (b, *box) in enumerate(rois):
        x1, y1, x2, y2 = (int(np.floor(v * spatial_scale + 0.5)) for v in box)
        h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for p in range(pooled_size[0]):
            for q in range(pooled_size[1]):
                rows = np.clip([y1 + p * h // pooled_size[0], y1 - (-(p + 1) * h // pooled_size[0])], 0, x.shape[2])
                cols = np.clip([x1 + q * w // pooled_size[1], x1 - (-(q + 1) * w // pooled_size[1])], 0, x.shape[3])
                part = x[int(b), :, rows[0] : rows[1], cols[0] : cols[1]]
                if part.size:
                    out[r, :, p, q] = part.max((1, 2))
    return out


ROIS = Value([[0, 0.3, 1.2, 5.5, 6.1], [1, 2, 2, 3, 3], [0, 4.4, 0.1, 9.3, 12.2], [1, 3, 3, 3, 3]], "float32")
_boxes = np.random.default_rng(3)
MANY_ROIS64 = Value(np.concatenate([_boxes.integers(0, 2, (40, 1)), np.sort(_boxes.uniform(-3, 20, (40, 4)), 1)], 1), "float64")
MANY_ROIS = Value(MANY_ROIS64.array, "float32")
test_rois = table(
    Case(
        "vision.roi_align",
        roi_align,
        f32(2, 3, 8, 9),
        ROIS,
        pooled_size=each([2, 3], [1, 1]),
        spatial_scale=each(1.0, 0.5),
        sample_ratio=each(-1, 2),
        mode=each("avg", "max"),
        aligned=each(False, True),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "vision.roi_align",
        roi_align,
        f64(1, 1, 8, 9),
        Value([[0, 0.3, 1.2, 5.5, 6.1]], "float64"),
        pooled_size=[2, 2],
        spatial_scale=1.0,
        sample_ratio=2,
        rtol=1e-9,
        atol=1e-9,
    ),
    # Many boxes: images are rearranged, channels in tiles of which the last is not full.
    Case(
        "vision.roi_align",
        roi_align,
        f32(2, 19, 8, 9),
        MANY_ROIS,
        pooled_size=[2, 3],
        spatial_scale=0.5,
        sample_ratio=each(-1, 2),
        mode=each("avg", "max"),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case("vision.roi_align", roi_align, f64(2, 3, 8, 9), MANY_ROIS64, pooled_size=[2, 3], spatial_scale=1.0, sample_ratio=2, rtol=1e-9, atol=1e-9),
    Case(
        "vision.roi_align",
        lambda x, r, layout, **kw: roi_align(x.transpose(0, 3, 1, 2), r, **kw).transpose(0, 2, 3, 1),
        f32(2, 8, 9, 3),
        ROIS,
        pooled_size=each([2, 3], [1, 1]),
        spatial_scale=each(1.0, 0.5),
        sample_ratio=2,
        mode=each("avg", "max"),
        layout="NHWC",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "vision.roi_align",
        lambda x, r, layout, **kw: roi_align(x.transpose(0, 3, 1, 2), r, **kw).transpose(0, 2, 3, 1),
        f32(2, 8, 9, 19),
        MANY_ROIS,
        pooled_size=[2, 3],
        spatial_scale=0.5,
        sample_ratio=2,
        mode=each("avg", "max"),
        layout="NHWC",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case("vision.roi_align", lambda x, r, **kw: np.zeros((0, 3, 2, 2), "float32"), f32(2, 3, 8, 9), f32(0, 5), pooled_size=[2, 2], spatial_scale=1.0),
    Case("vision.roi_pool", roi_pool, f32(2, 3, 8, 9), ROIS, pooled_size=each([2, 3], [1, 1], [4, 4]), spatial_scale=each(1.0, 0.5)),
    Case("vision.roi_pool", roi_pool, f16(2, 1, 4, 4), Value([[1, 0, 0, 3, 3]], "float16"), pooled_size=[2, 2], spatial_scale=1.0),
    Case("vision.roi_pool", lambda x, r, **kw: np.zeros((0, 3, 2, 2), "float32"), f32(2, 3, 8, 9), f32(0, 5), pooled_size=[2, 2], spatial_scale=1.0),
    dynamic=True,
)


def boxes(rng):
    corners = rng.uniform(0, 10, (2, 12, 2)).astype("float32")
    return np.concatenate([corners, corners + rng.uniform(1, 6, corners.shape).astype("float32")], -1)


def nms(b, s, most, iou, least, center_point_box=False):
    return reference(
        "NonMaxSuppression", [b, s, np.atleast_1d(most), np.atleast_1d(iou), np.atleast_1d(least)], center_point_box=int(center_point_box)
    ).reshape(-1, 3)


LIMITS = (Value([5], "int64"), Value(0.4, "float32"), Value([0.1], "float32"))
test_nms = table(
    Case("vision.all_class_non_max_suppression", nms, boxes, f32(2, 3, 12).within(0, 1), *LIMITS, center_point_box=each(False, True)),
    Case("vision.all_class_non_max_suppression", nms, boxes, f32(2, 1, 12).within(0, 1), Value(2, "int64"), Value(0.0, "float32"), Value(0.5, "float32")),
    Case("vision.all_class_non_max_suppression", lambda *a: np.zeros((0, 3), "int64"), boxes, f32(2, 1, 12), Value(0, "int64"), *LIMITS[1:]),
    Case("vision.all_class_non_max_suppression", lambda *a: np.zeros((0, 3), "int64"), f32(1, 0, 4), f32(1, 2, 0), *LIMITS),
    dynamic=True,
)


def upsampled3d(x, scale_d=1.0, scale_h=1.0, scale_w=1.0, layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="half_pixel"):
    at = [layout.index(c) for c in "DHW"]
    size = [int(np.floor(x.shape[a] * s + 0.5)) for a, s in zip(at, (scale_d, scale_h, scale_w), strict=True)]
    return resize_nd(x, at, size, method={"trilinear": "linear"}.get(method, method), coordinate_transformation_mode=coordinate_transformation_mode)


def crop_and_resize(x, boxes, which, crop_size, layout="NCHW", method="bilinear", extrapolation_value=0.0, out_dtype=None):
    if layout == "NHWC":
        return crop_and_resize(x.transpose(0, 3, 1, 2), boxes, which, crop_size, "NCHW", method, extrapolation_value, out_dtype).transpose(0, 2, 3, 1)
    out = np.full((len(boxes), x.shape[1], *crop_size), extrapolation_value, "float64")
    for b, (y1, x1, y2, x2) in enumerate(boxes.astype("float64")):
        for p, q in np.ndindex(*crop_size):
            v, u = (
                (lo + hi) / 2 * (n - 1) if m <= 1 else lo * (n - 1) + k * (hi - lo) * (n - 1) / (m - 1)
                for lo, hi, n, m, k in ((y1, y2, x.shape[2], crop_size[0], p), (x1, x2, x.shape[3], crop_size[1], q))
            )
            if not (0 <= v <= x.shape[2] - 1 and 0 <= u <= x.shape[3] - 1):
                continue
            if method == "nearest_neighbor":
                out[b, :, p, q] = x[which[b], :, int(v + 0.5), int(u + 0.5)]
                continue
            t, s, f, g = int(v), int(u), v - int(v), u - int(u)
            t1, s1 = int(np.ceil(v)), int(np.ceil(u))
            image = x[which[b]].astype("float64")
            out[b, :, p, q] = (image[:, t, s] * (1 - g) + image[:, t, s1] * g) * (1 - f) + (image[:, t1, s] * (1 - g) + image[:, t1, s1] * g) * f
    return out.astype(out_dtype or x.dtype)


def dilation2d(x, w, strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout="NCHW", kernel_layout="IHW", out_dtype=None):
    if data_layout == "NHWC":
        x = x.transpose(0, 3, 1, 2)
    if kernel_layout == "HWI":
        w = w.transpose(2, 0, 1)
    t, left, b, r = padding * 4 if len(padding) == 1 else (*padding, *padding) if len(padding) == 2 else padding
    wide = np.pad(x.astype("float64"), ((0, 0), (0, 0), (t, b), (left, r)), constant_values=-np.inf)
    span = [(w.shape[k + 1] - 1) * dilations[k] + 1 for k in range(2)]
    out = np.zeros((*x.shape[:2], *((wide.shape[k + 2] - span[k]) // strides[k] + 1 for k in range(2))))
    for p, q in np.ndindex(*out.shape[2:]):
        y, u = p * strides[0], q * strides[1]
        out[:, :, p, q] = (wide[:, :, y : y + span[0] : dilations[0], u : u + span[1] : dilations[1]] + w).max((2, 3))
    return (out.transpose(0, 2, 3, 1) if data_layout == "NHWC" else out).astype(out_dtype or x.dtype)


CROPS = Value([[0, 0, 1, 1], [0.2, 0.3, 0.8, 0.6], [0.9, 0.8, 0.1, 0.2], [-0.5, 0, 1.5, 1]], "float32")
INNER = Value([[0.21, 0.33, 0.83, 0.62], [0.91, 0.83, 0.12, 0.23], [-0.53, 0.12, 1.61, 0.93]], "float32")
test_crop = table(
    Case(
        "nn.upsampling3d",
        upsampled3d,
        f32(1, 2, 3, 2, 4),
        scale_d=2.0,
        scale_h=each(1.0, 1.5),
        scale_w=3.0,
        method=each("nearest_neighbor", "trilinear"),
        dynamic=True,
        **T,
    ),
    Case(
        "nn.upsampling3d",
        lambda x, **kw: x.repeat(2, 1).repeat(2, 2).repeat(2, 3),
        u8(1, 2, 3, 2, 2),
        scale_d=2.0,
        scale_h=2.0,
        scale_w=2.0,
        layout="NDHWC",
        dynamic=True,
    ),
    Case(
        "nn.upsampling3d",
        upsampled3d,
        f32(1, 1, 3, 2, 4),
        scale_d=2.0,
        method="trilinear",
        coordinate_transformation_mode=each("align_corners", "asymmetric"),
        dynamic=True,
        **T,
    ),
    Case(
        "image.crop_and_resize",
        crop_and_resize,
        f32(2, 3, 5, 7),
        CROPS,
        Value([0, 1, 1, 0], "int32"),
        crop_size=each([3, 4], [1, 1]),
        method=each("bilinear", "nearest_neighbor"),
        extrapolation_value=each(0.0, -3.0),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "image.crop_and_resize",
        crop_and_resize,
        f32(2, 3, 5, 7),
        INNER,
        Value([0, 1, 1], "int32"),
        crop_size=each([3, 4], [1, 1]),
        method=each("bilinear", "nearest_neighbor"),
        name="between elements",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "image.crop_and_resize",
        crop_and_resize,
        f32(1, 5, 6, 2),
        INNER,
        Value([0, 0, 0], "int64"),
        crop_size=[4, 3],
        layout="NHWC",
        extrapolation_value=2.0,
        out_dtype=each("float32", "float64"),
        name="between elements",
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "image.crop_and_resize",
        crop_and_resize,
        u8(1, 5, 5, 2),
        Value([[0, 0, 1, 1]], "float64"),
        Value([0], "int64"),
        crop_size=[9, 3],
        layout="NHWC",
        out_dtype=each("float32", "uint8"),
    ),
    Case("image.crop_and_resize", lambda x, b, i, **kw: np.zeros((0, 2, 3, 3), "float32"), f32(1, 2, 5, 5), f32(0, 4), i32(0), crop_size=[3, 3]),
    Case(
        "image.crop_and_resize",
        lambda x, b, i, crop_size: crop_and_resize(x, b, np.array([1, 0]), crop_size),
        f32(2, 1, 5, 5),
        Value([[0, 0, 1, 1]] * 2, "float32"),
        Value([9, -9], "int64"),
        crop_size=[5, 5],
        name="images that are not there",
        rtol=1e-5,
        atol=1e-6,
    ),
    Case(
        "image.dilation2d",
        dilation2d,
        f32(2, 3, 6, 7),
        f32(3, 2, 3),
        strides=each([1, 1], [2, 3]),
        padding=each([0, 0], [1], [1, 0, 0, 2]),
        dilations=each([1, 1], [2, 2]),
        rtol=1e-6,
        atol=1e-6,
    ),
    Case("image.dilation2d", dilation2d, i32(1, 5, 5, 2), i32(3, 3, 2), data_layout="NHWC", kernel_layout="HWI"),
    Case(
        "image.dilation2d",
        lambda x, w, strides, dilations, **kw: dilation2d(x, w, strides[1:3], dilations=dilations[1:3], **kw),
        f32(1, 7, 6, 2),
        f32(2, 3, 2),
        strides=[1, 2, 1, 1],
        dilations=[1, 1, 2, 1],
        data_layout="NHWC",
        kernel_layout="HWI",
    ),
    Case("image.dilation2d", lambda x, w, strides: dilation2d(x, w, strides[2:]), f32(1, 2, 7, 6), f32(2, 2, 3), strides=[1, 1, 2, 1]),
    Case("image.dilation2d", dilation2d, f16(1, 1, 3, 3), f16(1, 3, 3), padding=[1], rtol=2e-3),
    Case("image.dilation2d", lambda x, w: np.zeros((0, 1, 2, 2), "float32"), f32(0, 1, 3, 3), f32(1, 2, 2)),
    dynamic=True,
)


def valid_counts(x, least, id_index=0, score_index=1):
    counts, out, places = np.zeros(len(x), "int32"), np.full_like(x, -1), np.full(x.shape[:2], -1, "int32")
    for b, rows in enumerate(x):
        keep = [i for i, r in enumerate(rows) if r[score_index] > least and (id_index < 0 or r[id_index] >= 0)]
        counts[b], places[b, : len(keep)] = len(keep), keep
        out[b, : len(keep)] = rows[keep]
    return counts, out, places


def iou(a, b):
    a, b = (np.concatenate([np.minimum(v[:2], v[2:]), np.maximum(v[:2], v[2:])]).astype("float64") for v in (a, b))
    common = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    whole = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common
    return common / whole if whole > 0 else 0


def suppress(
    x, valid, indices, most, threshold, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, return_indices=True, invalid_to_bottom=False
):
    out, places, counts = np.full_like(x, -1), np.full(x.shape[:2], -1, "int32"), np.zeros((len(x), 1), "int32")
    for b, rows in enumerate(x):
        order = [i for i in range(int(valid[b])) if id_index < 0 or rows[i, id_index] >= 0]
        order = sorted(order, key=lambda i, rows=rows: -rows[i, score_index])[: top_k if top_k > 0 else None]
        kept = []
        for at, i in enumerate(order):
            if most > 0 and len(kept) == most:
                break
            rival = [k for k in kept if force_suppress or id_index < 0 or rows[i, id_index] == rows[k, id_index]]
            if all(iou(rows[i, coord_start : coord_start + 4], rows[k, coord_start : coord_start + 4]) < threshold for k in rival):
                out[b, len(kept) if invalid_to_bottom else at] = rows[i]
                places[b, len(kept)] = indices[b, i]
                kept.append(i)
        counts[b] = len(kept)
    return (places, counts) if return_indices else out


def detections(rng):
    low = rng.uniform(0, 5, (2, 10, 2))
    return np.concatenate([rng.integers(-1, 3, (2, 10, 1)), rng.uniform(0, 1, (2, 10, 1)), low, low + rng.uniform(1, 5, (2, 10, 2))], -1).astype("float32")


def prior(x, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False):
    h, w = x.shape[2:]
    kinds = [(s * h / w, s) for s in sizes] + [(sizes[0] * h / w * r**0.5, sizes[0] / r**0.5) for r in ratios[1:]]
    sy, sx = (steps[0] if steps[0] > 0 else 1 / h), (steps[1] if steps[1] > 0 else 1 / w)
    out = [
        [(j + offsets[1]) * sx - u / 2, (i + offsets[0]) * sy - v / 2, (j + offsets[1]) * sx + u / 2, (i + offsets[0]) * sy + v / 2]
        for i in range(h)
        for j in range(w)
        for u, v in kinds
    ]
    out = np.array(out).reshape(1, -1, 4)
    return (np.clip(out, 0, 1) if clip else out).astype(x.dtype)


def transform_loc(prob, loc, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2)):
    out, counts = np.full((len(prob), prob.shape[2], 6), -1, prob.dtype), np.zeros(len(prob), "int32")
    for b in range(len(prob)):
        for i in range(prob.shape[2]):
            best = 1 + int(np.argmax(prob[b, 1:, i]))
            if prob[b, best, i] < threshold:
                continue
            x1, y1, x2, y2 = anchor[0, i].astype("float64")
            dx, dy, dw, dh = loc[b, 4 * i : 4 * i + 4].astype("float64") * variances
            cx, cy, w, h = (x1 + x2) / 2 + dx * (x2 - x1), (y1 + y2) / 2 + dy * (y2 - y1), np.exp(dw) * (x2 - x1) / 2, np.exp(dh) * (y2 - y1) / 2
            box = np.array([cx - w, cy - h, cx + w, cy + h])
            out[b, counts[b]] = [best - 1, prob[b, best, i], *(np.clip(box, 0, 1) if clip else box)]
            counts[b] += 1
    return out, counts


def yolo_reorg(x, stride):
    """Darknet's loop, word for word."""
    n, c, h, w = x.shape
    few, flat, out = c // stride**2, x.reshape(n, -1), np.zeros((n, c * h * w), x.dtype)
    for k, j, i in np.ndindex(c, h, w):
        offset = k // few
        from_w, from_h = i * stride + offset % stride, j * stride + offset // stride
        out[:, i + w * (j + h * k)] = flat[:, from_w + w * stride * (from_h + h * stride * (k % few))]
    return out.reshape(n, c * stride**2, h // stride, w // stride)


test_yolo = table(
    Case("vision.yolo_reorg", yolo_reorg, f32(2, 8, 4, 6), stride=each(1, 2)),
    Case("vision.yolo_reorg", yolo_reorg, u8(1, 9, 3, 6), stride=3),
    Case("vision.yolo_reorg", lambda x, stride: np.zeros((0, 16, 1, 1), "float16"), f16(0, 4, 2, 2), stride=2),
    dynamic=True,
)

VALID, PLACES = Value([10, 7], "int32"), Value(np.arange(20).reshape(2, 10), "int32")
test_boxes = table(
    Case("vision.get_valid_counts", valid_counts, detections, Value(0.4, "float32"), id_index=each(0, -1)),
    Case("vision.get_valid_counts", valid_counts, f32(1, 4, 5), Value([0.0], "float32"), id_index=-1, score_index=0),
    Case("vision.get_valid_counts", valid_counts, f32(2, 0, 6), Value(0.0, "float32")),
    Case(
        "vision.non_max_suppression",
        suppress,
        detections,
        VALID,
        PLACES,
        Value(-1, "int32"),
        Value(0.3, "float32"),
        force_suppress=each(False, True),
        id_index=each(0, -1),
        return_indices=each(True, False),
        invalid_to_bottom=each(False, True),
    ),
    Case(
        "vision.non_max_suppression",
        suppress,
        detections,
        VALID,
        PLACES,
        Value(2, "int32"),
        Value(0.3, "float32"),
        top_k=each(-1, 4),
        return_indices=each(True, False),
    ),
    Case(
        "vision.non_max_suppression",
        suppress,
        f32(1, 0, 6),
        Value([0], "int32"),
        i32(1, 0),
        Value(2, "int32"),
        Value(0.3, "float32"),
        return_indices=each(True, False),
    ),
    Case(
        "vision.multibox_prior",
        prior,
        f32(1, 2, 3, 4),
        sizes=each([1.0], [0.3, 0.6]),
        ratios=each([1.0], [1.0, 2.0, 0.5]),
        clip=each(False, True),
        rtol=1e-5,
        atol=1e-6,
    ),
    Case("vision.multibox_prior", prior, f64(1, 2, 3, 4), steps=[0.2, 0.1], offsets=[0.0, 0.25], rtol=1e-9, atol=1e-9),
    Case("vision.multibox_prior", lambda x: np.zeros((1, 0, 4), "float32"), f32(1, 2, 0, 4)),
    Case(
        "vision.multibox_transform_loc",
        transform_loc,
        f32(2, 4, 6).within(0, 1),
        f32(2, 24),
        f32(1, 6, 4).within(0, 1),
        clip=each(False, True),
        threshold=each(0.01, 0.7),
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        "vision.multibox_transform_loc",
        lambda *a: (np.full((1, 2, 6), -1, "float32"), np.zeros(1, "int32")),
        f32(1, 1, 2),
        f32(1, 8),
        f32(1, 2, 4),
        name="background alone",
    ),
    dynamic=True,
)

X, R, G = ((2, 3, 8, 9), "float32"), ((4, 5), "float32"), ((2, 2, 3, 4), "float32")
B, S, ONE = ((2, 12, 4), "float32"), ((2, 3, 12), "float32"), ((), "float32")
CROP, C4, N4 = "image.crop_and_resize", ((4, 4), "float32"), ((4,), "int32")
V3, W3, D3 = ((1, 1, 2, 2, 2), "float32"), ((3, 2, 2), "float32"), ((2, 10, 6), "float32")
V2, I2 = ((2,), "int32"), ((2, 10), "int32")
P3, L2, A3 = ((2, 4, 6), "float32"), ((2, 24), "float32"), ((1, 6, 4), "float32")
NMS = "vision.all_class_non_max_suppression"
test_rejects = rejects(
    *[
        r
        for op, x, kw in (
            ("image.resize1d", ((2, 3, 4), "float32"), {"size": [3]}),
            ("image.resize2d", X, {"size": [3, 4]}),
            ("image.resize3d", ((1, 1, 2, 2, 2), "float32"), {"size": [3, 4, 5]}),
            ("image.resize", X, {"axes": [2], "size": [3]}),
        )
        for r in (
            Reject(op, "R1", (x[0], "bool"), **kw),
            Reject(op, "R2", x, **kw, method="lanczos"),
            Reject(op, "R2", x, **kw, coordinate_transformation_mode="corners"),
            Reject(op, "R2", x, **kw, rounding_method="up"),
            Reject(op, "R4", ((0,) * len(x[0]), "float32"), **kw),
            Reject(op, "R5", x, **kw, coordinate_transformation_mode="tf_crop_and_resize", roi=[0.0]),
            Reject(op, "R5", x, **{**kw, "size": [1, 2, 3, 4]}),
        )
    ],
    Reject("image.resize", "R5", X, axes=[2], size=[3], scales=[-1.0]),
    Reject("image.resize", "R5", X, axes=[2, -2], size=[3, 4]),
    Reject("image.resize2d", "R5", X, size=[3, 4], layout="NCW"),
    Reject("image.resize2d", "R5", X, size=[3, 4], layout="NCDE"),
    Reject("nn.upsampling", "R1", (X[0], "bool")),
    Reject("nn.upsampling", "R2", X, method="lanczos"),
    Reject("nn.upsampling", "R4", ((1, 1, 2), "float32")),
    Reject("nn.upsampling", "R5", X, layout="CNHW"),
    Reject("nn.upsampling", "R5", X, scale_h=float("inf")),
    Reject("image.grid_sample", "R1", (X[0], "bool"), G),
    Reject("image.grid_sample", "R1", X, (G[0], "int32")),
    Reject("image.grid_sample", "R2", X, ((2, 2, 3), "float32")),
    Reject("image.grid_sample", "R2", ((2, 3), "float32"), ((2, 2), "float32")),
    Reject("image.grid_sample", "R3", X, G, method="cubic"),
    Reject("image.grid_sample", "R3", X, G, padding_mode="wrap"),
    Reject("image.grid_sample", "R3", X, G, layout="NHWC"),
    Reject("image.grid_sample", "R4", X, ((2, 3, 3, 4), "float32")),
    Reject("image.grid_sample", "R4", X, ((3, 2, 3, 4), "float32")),
    Reject("image.grid_sample", "R4", ((2, 3, 0, 9), "float32"), G),
    Reject("image.affine_grid", "R1", ((2, 2, 3), "int32"), target_shape=[2, 2]),
    Reject("image.affine_grid", "R2", ((2, 2, 3), "float32"), target_shape=[2]),
    Reject("image.affine_grid", "R2", ((2, 3, 4), "float32"), target_shape=[2, 2]),
    Reject("image.affine_grid", "R2", ((2, 3), "float32"), target_shape=[2, 2]),
    *[
        r
        for op in ("vision.roi_align", "vision.roi_pool")
        for r in (
            Reject(op, "R1", (X[0], "int32"), (R[0], "int32"), pooled_size=[2, 2], spatial_scale=1.0),
            Reject(op, "R1", X, (R[0], "float64"), pooled_size=[2, 2], spatial_scale=1.0),
            Reject(op, "R2", ((3, 8, 9), "float32"), R, pooled_size=[2, 2], spatial_scale=1.0),
            Reject(op, "R2", X, ((4, 4), "float32"), pooled_size=[2, 2], spatial_scale=1.0),
            Reject(op, "R3", X, R, pooled_size=[2], spatial_scale=1.0),
            Reject(op, "R3", X, R, pooled_size=[2, 2], spatial_scale=1.0, layout="CHWN"),
        )
    ],
    Reject("vision.roi_pool", "R3", X, R, pooled_size=[2, 2], spatial_scale=1.0, layout="NHWC"),
    Reject("vision.roi_align", "R3", X, R, pooled_size=[2, 2], spatial_scale=1.0, mode="min"),
    Reject(NMS, "R1", (B[0], "int32"), S, ONE, ONE, ONE),
    Reject(NMS, "R1", B, (S[0], "int32"), ONE, ONE, ONE),
    Reject(NMS, "R2", ((2, 12), "float32"), S, ONE, ONE, ONE),
    Reject(NMS, "R2", ((2, 12, 5), "float32"), S, ONE, ONE, ONE),
    Reject(NMS, "R2", B, ((2, 3, 11), "float32"), ONE, ONE, ONE),
    Reject(NMS, "R3", B, S, ((2,), "int64"), ONE, ONE),
    Reject(NMS, "R3", B, S, ((), "bool"), ONE, ONE),
    Reject(NMS, "R4", B, S, ONE, ONE, ONE, output_format="tensorflow"),
    Reject("nn.upsampling3d", "R1", ((1, 1, 2, 2, 2), "bool")),
    Reject("nn.upsampling3d", "R2", V3, method="bilinear"),
    Reject("nn.upsampling3d", "R2", V3, coordinate_transformation_mode="tf_crop_and_resize"),
    Reject("nn.upsampling3d", "R5", X),
    Reject("nn.upsampling3d", "R5", V3, layout="NCHWD"),
    Reject("nn.upsampling3d", "R5", V3, scale_d=float("inf")),
    *[
        Reject(CROP, rule, *inputs, **{"crop_size": [2, 2], **attrs})
        for rule, inputs, attrs in (
            ("R1", ((X[0], "bool"), C4, N4), {}),
            ("R1", (X, (C4[0], "int32"), N4), {}),
            ("R1", (X, C4, (N4[0], "float32")), {}),
            ("R2", (((2, 3, 8), "float32"), C4, N4), {}),
            ("R2", (X, ((4,), "float32"), N4), {}),
            ("R2", (X, C4, ((4, 1), "int32")), {}),
            ("R3", (X, C4, N4), {"layout": "NCWH"}),
            ("R3", (X, C4, N4), {"method": "cubic"}),
            ("R3", (X, C4, N4), {"crop_size": [2]}),
            ("R4", (X, ((4, 5), "float32"), N4), {}),
            ("R4", (X, C4, ((3,), "int32")), {}),
            ("R5", (((2, 3, 0, 9), "float32"), C4, N4), {}),
        )
    ],
    *[
        Reject("image.dilation2d", rule, *inputs, **attrs)
        for rule, inputs, attrs in (
            ("R1", ((X[0], "bool"), (W3[0], "bool")), {}),
            ("R1", (X, (W3[0], "float64")), {}),
            ("R2", (((3, 8, 9), "float32"), W3), {}),
            ("R2", (X, X), {}),
            ("R3", (X, W3), {"data_layout": "NCWH"}),
            ("R3", (X, W3), {"kernel_layout": "OIHW"}),
            ("R3", (X, W3), {"strides": [1]}),
            ("R3", (X, W3), {"padding": [1, 1, 1]}),
            ("R4", (X, ((2, 2, 2), "float32")), {}),
            ("R5", (X, ((3, 9, 2), "float32")), {}),
            ("R5", (X, ((3, 0, 2), "float32")), {}),
        )
    ],
    *[
        Reject("vision.get_valid_counts", rule, *inputs, **attrs)
        for rule, inputs, attrs in (
            ("R1", ((D3[0], "int32"), ONE), {}),
            ("R2", (((10, 6), "float32"), ONE), {}),
            ("R3", (D3, ((2,), "float32")), {}),
            ("R3", (D3, ((), "bool")), {}),
            ("R4", (D3, ONE), {"score_index": 6}),
            ("R4", (D3, ONE), {"id_index": 6}),
        )
    ],
    *[
        Reject("vision.non_max_suppression", rule, *inputs, **attrs)
        for rule, inputs, attrs in (
            ("R1", ((D3[0], "int32"), V2, I2, ONE, ONE), {}),
            ("R1", (D3, (V2[0], "float32"), I2, ONE, ONE), {}),
            ("R1", (D3, V2, (I2[0], "float32"), ONE, ONE), {}),
            ("R2", (((10, 6), "float32"), V2, I2, ONE, ONE), {}),
            ("R2", (D3, ((3,), "int32"), I2, ONE, ONE), {}),
            ("R2", (D3, V2, ((2, 9), "int32"), ONE, ONE), {}),
            ("R2", (D3, V2, V2, ONE, ONE), {}),
            ("R3", (D3, V2, I2, ((2,), "int32"), ONE), {}),
            ("R3", (D3, V2, I2, ONE, ((2,), "float32")), {}),
            ("R4", (D3, V2, I2, ONE, ONE), {"coord_start": 3}),
            ("R4", (D3, V2, I2, ONE, ONE), {"score_index": 9}),
            ("R4", (D3, V2, I2, ONE, ONE), {"id_index": 6}),
            ("R4", (D3, V2, I2, ONE, ONE), {"coord_start": 2**63 - 1}),
        )
    ],
    Reject("vision.yolo_reorg", "R1", ((4, 2, 2), "float32"), stride=2),
    Reject("vision.yolo_reorg", "R2", ((1, 2, 2, 2), "float32"), stride=2),
    Reject("vision.yolo_reorg", "R2", ((1, 4, 3, 2), "float32"), stride=2),
    Reject("vision.yolo_reorg", "R2", ((1, 4, 2, 2), "float32"), stride=2**62),
    Reject("vision.multibox_prior", "R1", (X[0], "int32")),
    Reject("vision.multibox_prior", "R2", ((2, 3, 8), "float32")),
    Reject("vision.multibox_prior", "R3", X, sizes=[]),
    Reject("vision.multibox_prior", "R3", X, steps=[1.0]),
    *[
        Reject("vision.multibox_transform_loc", rule, *inputs, **attrs)
        for rule, inputs, attrs in (
            ("R1", ((P3[0], "int32"), L2, A3), {}),
            ("R1", (P3, (L2[0], "float64"), A3), {}),
            ("R1", (P3, L2, (A3[0], "float64")), {}),
            ("R2", (P3, ((2, 23), "float32"), A3), {}),
            ("R2", (P3, L2, ((1, 5, 4), "float32")), {}),
            ("R2", (P3, L2, ((1, 6, 5), "float32")), {}),
            ("R2", (((2, 4), "float32"), L2, A3), {}),
            ("R3", (P3, L2, A3), {"variances": [0.1]}),
        )
    ],
)
