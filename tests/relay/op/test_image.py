# SPDX-License-Identifier: Apache-2.0
"""Resizing, sampling and boxes, beside ONNX's reference implementation."""

import numpy as np
import pytest
from cases import Case, Reject, Value, each, f16, f32, f64, i8, i32, rejects, table, u8

from baton import relay

onnx = pytest.importorskip("onnx")


def reference(op, inputs, opset=21, **attrs):
    """What ONNX's reference implementation says; an input may be None."""
    from onnx.reference import ReferenceEvaluator

    names = ["" if x is None else f"x{k}" for k, x in enumerate(inputs)]
    node = onnx.helper.make_node(op, names, ["y"], **attrs)
    given = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    graph = onnx.helper.make_graph([node], "g", [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()],
                                   [onnx.helper.make_tensor_value_info("y", 1, None)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, given)[0]


METHOD = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}


def resize_nd(x, axes, size, scales=(), roi=(), method="linear", coordinate_transformation_mode="half_pixel", rounding_method="", cubic_alpha=-0.75,
              cubic_exclude=0, extrapolation_value=0.0, antialias=False, dtype=None):
    mode = coordinate_transformation_mode
    if mode == "tf_half_pixel_for_nn":  # ONNX dropped it: half_pixel without its shift
        at = [np.clip(np.floor((np.arange(m) + 0.5) * x.shape[a] / m), 0, x.shape[a] - 1).astype(int) for a, m in zip(axes, size, strict=True)]
        for a, k in zip(axes, at, strict=True):
            x = np.take(x, k, a)
        return x
    attrs = {"axes": [a % x.ndim for a in axes], "mode": METHOD[method], "coordinate_transformation_mode": mode, "cubic_coeff_a": cubic_alpha,
             "exclude_outside": cubic_exclude, "extrapolation_value": extrapolation_value, "antialias": int(antialias)}
    if rounding_method:
        attrs["nearest_mode"] = {"round": "round_prefer_ceil"}.get(rounding_method, rounding_method)
    sizes = None if len(scales) else np.array(size, "int64")
    out = reference("Resize", [x.astype("float64"), np.array(roi, "float64") if len(roi) else None, np.array(scales, "float32") if len(scales) else None, sizes], **attrs)
    t = np.dtype(dtype) if dtype else x.dtype
    if t.kind in "iu" and method != "nearest_neighbor":
        out = np.clip(np.trunc(out), np.iinfo(t).min, np.iinfo(t).max)
    return out.astype(t)


def resize(letters):
    def value(x, size, layout=None, cubic_alpha=-0.5, out_dtype=None, **attrs):
        layout = layout or "NC" + letters
        return resize_nd(x, [layout.index(c) for c in letters], list(size) * (len(letters) if len(size) == 1 else 1), cubic_alpha=cubic_alpha, dtype=out_dtype, **attrs)

    return value


MODES = each("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
T = {"rtol": 1e-5, "atol": 2e-6}
test_resize = table(
    Case("image.resize1d", resize("W"), f32(2, 3, 5), size=each([3], [8], [1]), method=each("nearest_neighbor", "linear", "cubic"), coordinate_transformation_mode=MODES, **T),
    Case("image.resize2d", resize("HW"), f32(1, 2, 4, 5), size=each([7, 3], [4, 5], [6]), method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize2d", resize("HW"), f64(1, 4, 5, 2), size=[7, 3], layout="NHWC", method=each("nearest_neighbor", "linear", "cubic"), rtol=1e-6, atol=1e-6),
    Case("image.resize2d", resize("HW"), f32(1, 1, 5, 7), size=[3, 11], method="nearest_neighbor", coordinate_transformation_mode=each("half_pixel", "asymmetric"),
         rounding_method=each("", "round_prefer_floor", "round_prefer_ceil", "round", "floor", "ceil")),
    Case("image.resize2d", resize("HW"), f32(1, 1, 5, 7), size=[3, 9], method="cubic", cubic_alpha=each(-0.5, -0.75), cubic_exclude=each(0, 1), **T),
    Case("image.resize2d", resize("HW"), f32(1, 1, 5, 7), size=[3, 9], method="nearest_neighbor", coordinate_transformation_mode="tf_half_pixel_for_nn", rounding_method="floor"),
    Case("image.resize2d", resize("HW"), f32(1, 1, 5, 7), size=[3, 9], roi=[0.2, 0.3, 0.9, 1.4], coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.5,
         method=each("linear", "nearest_neighbor"), **T),
    Case("image.resize2d", resize("HW"), u8(1, 1, 5, 7), size=[10, 14], method=each("nearest_neighbor", "linear", "cubic")),  # weights that are exact
    Case("image.resize2d", resize("HW"), i32(1, 1, 5, 7), size=[3, 9], out_dtype=each("float32", "float64"), **T),
    Case("image.resize2d", resize("HW"), f16(1, 1, 5, 7), size=[3, 9], rtol=3e-3, atol=2e-3),
    Case("image.resize2d", lambda x, size: np.zeros((0, 1, *size), "float32"), f32(0, 1, 5, 7), size=[3, 9]),
    Case("image.resize2d", lambda x, size: np.zeros((1, 1, *size), "float32"), f32(1, 1, 5, 7), size=[0, 9]),
    Case("image.resize3d", resize("DHW"), f32(1, 2, 3, 4, 5), size=each([5, 3, 4], [2]), method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize3d", resize("DHW"), f32(1, 3, 4, 5, 2), size=[5, 3, 4], layout="NDHWC", **T),
    Case("image.resize", resize_nd, f32(4, 5, 3), axes=each([0, 1], [-2, 0]), size=[6, 3], method=each("nearest_neighbor", "linear", "cubic"), **T),
    Case("image.resize", resize_nd, f32(4, 5), axes=[1], size=[8], scales=[1.7], **T),
    Case("image.resize", resize_nd, f32(6, 9), axes=[0, 1], size=[3, 4], method=each("linear", "cubic"), antialias=each(False, True), cubic_exclude=each(0, 1), **T),
    Case("image.resize", resize_nd, i8(4, 5), axes=[0], size=[3]),
    dynamic="R3")


def upsampled(x, scale_h=1.0, scale_w=1.0, layout="NCHW", method="nearest_neighbor", align_corners=False):
    at = [2, 3] if layout == "NCHW" else [1, 2]
    size = [int(np.floor(x.shape[a] * s + 0.5)) for a, s in zip(at, (scale_h, scale_w), strict=True)]
    if method == "nearest_neighbor":
        return resize_nd(x, at, size, method=method, coordinate_transformation_mode="align_corners" if align_corners else "asymmetric", rounding_method="" if align_corners else "floor")
    return resize_nd(x, at, size, method={"bilinear": "linear", "bicubic": "cubic"}[method], coordinate_transformation_mode="align_corners" if align_corners else "half_pixel", cubic_alpha=-0.5)


test_upsampling = table(
    Case("nn.upsampling", lambda x, scale_h, scale_w: x.repeat(2, 2).repeat(3, 3), f32(1, 2, 3, 4), scale_h=2.0, scale_w=3.0, name="whole"),
    Case("nn.upsampling", upsampled, f32(1, 2, 3, 4), scale_h=2.0, scale_w=each(1.0, 1.5), method=each("nearest_neighbor", "bilinear", "bicubic"), align_corners=each(False, True), **T),
    Case("nn.upsampling", upsampled, f64(1, 3, 4, 2), scale_h=2.0, scale_w=2.0, layout="NHWC", method=each("nearest_neighbor", "bilinear"), rtol=1e-9, atol=1e-9),
    Case("nn.upsampling", upsampled, u8(1, 1, 3, 4), scale_h=2.0, scale_w=2.0),
    dynamic="R3")


def grid_sample(x, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True, grid_last=False):
    grid = grid if grid_last else np.moveaxis(grid, 1, -1)
    mode = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}[method]
    return reference("GridSample", [x.astype("float64"), grid.astype("float64")], mode=mode, padding_mode=padding_mode, align_corners=int(align_corners)).astype(x.dtype)


PADDED = {"padding_mode": each("zeros", "border", "reflection"), "align_corners": each(True, False)}
test_grid = table(
    Case("image.grid_sample", grid_sample, f32(2, 3, 4, 5), f32(2, 2, 3, 2).within(-1.6, 1.6), method=each("nearest", "bilinear", "bicubic"), rtol=2e-4, atol=2e-5, **PADDED),
    Case("image.grid_sample", grid_sample, f64(1, 2, 4, 5), f64(1, 3, 2, 2).within(-1.2, 1.2), grid_last=True, rtol=1e-6, atol=1e-6),
    Case("image.grid_sample", grid_sample, f32(1, 2, 3, 4, 2), f32(1, 3, 2, 3, 2).within(-1.2, 1.2), layout="NCDHW", method=each("nearest", "bilinear"), rtol=2e-4, atol=2e-5, **PADDED),
    Case("image.grid_sample", lambda x, g, **kw: np.zeros((2, 3, 0, 4), "float32"), f32(2, 3, 4, 5), f32(2, 2, 0, 4)),
    Case("image.grid_sample", lambda x, g: np.full((1, 1, 1, 2), np.nan, "float32"), f32(1, 1, 2, 2), Value([[[[np.nan, np.inf]], [[0, 0]]]], "float32"), name="nowhere"),
    Case("image.grid_sample", grid_sample, f16(1, 1, 3, 3), f32(1, 2, 2, 2).within(-1, 1), rtol=5e-3, atol=5e-3),
    dynamic=True)


def affine_grid(theta, target_shape, align_corners=True):
    size = np.array([theta.shape[0], 1, *target_shape], "int64")
    return np.moveaxis(reference("AffineGrid", [theta.astype("float64"), size], align_corners=int(align_corners)), -1, 1).astype(theta.dtype)


test_affine = table(
    Case("image.affine_grid", affine_grid, f32(2, 2, 3), target_shape=each([3, 4], [2, 2], [5, 2]), align_corners=each(True, False), rtol=1e-5, atol=2e-6),
    Case("image.affine_grid", affine_grid, f64(1, 3, 4), target_shape=[2, 3, 4], align_corners=each(True, False), rtol=1e-6, atol=1e-6),
    Case("image.affine_grid", lambda t, target_shape: t[:, :, 2:].reshape(2, 2, 1, 1) + 0 * t[:, :, :1, None], f32(2, 2, 3), target_shape=[1, 1], name="one"),
    Case("image.affine_grid", lambda t, target_shape: np.zeros((0, 2, 3, 4), "float16"), f16(0, 2, 3), target_shape=[3, 4]),
    dynamic=True)


def roi_align(x, rois, pooled_size, spatial_scale, sample_ratio=-1, mode="avg", aligned=False):
    out = reference("RoiAlign", [x.astype("float64"), rois[:, 1:].astype("float64"), rois[:, 0].astype("int64")], mode=mode, output_height=pooled_size[0], output_width=pooled_size[1],
                    sampling_ratio=max(sample_ratio, 0), spatial_scale=spatial_scale, coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel")
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
                part = x[int(b), :, rows[0]:rows[1], cols[0]:cols[1]]
                if part.size:
                    out[r, :, p, q] = part.max((1, 2))
    return out


ROIS = Value([[0, 0.3, 1.2, 5.5, 6.1], [1, 2, 2, 3, 3], [0, 4.4, 0.1, 9.3, 12.2], [1, 3, 3, 3, 3]], "float32")
test_rois = table(
    Case("vision.roi_align", roi_align, f32(2, 3, 8, 9), ROIS, pooled_size=each([2, 3], [1, 1]), spatial_scale=each(1.0, 0.5), sample_ratio=each(-1, 2), mode=each("avg", "max"),
         aligned=each(False, True), rtol=1e-5, atol=1e-5),
    Case("vision.roi_align", roi_align, f64(1, 1, 8, 9), Value([[0, 0.3, 1.2, 5.5, 6.1]], "float64"), pooled_size=[2, 2], spatial_scale=1.0, sample_ratio=2, rtol=1e-9, atol=1e-9),
    Case("vision.roi_align", lambda x, r, **kw: np.zeros((0, 3, 2, 2), "float32"), f32(2, 3, 8, 9), f32(0, 5), pooled_size=[2, 2], spatial_scale=1.0),
    Case("vision.roi_pool", roi_pool, f32(2, 3, 8, 9), ROIS, pooled_size=each([2, 3], [1, 1], [4, 4]), spatial_scale=each(1.0, 0.5)),
    Case("vision.roi_pool", roi_pool, f16(2, 1, 4, 4), Value([[1, 0, 0, 3, 3]], "float16"), pooled_size=[2, 2], spatial_scale=1.0),
    Case("vision.roi_pool", lambda x, r, **kw: np.zeros((0, 3, 2, 2), "float32"), f32(2, 3, 8, 9), f32(0, 5), pooled_size=[2, 2], spatial_scale=1.0),
    dynamic=True)


def boxes(rng):
    corners = rng.uniform(0, 10, (2, 12, 2)).astype("float32")
    return np.concatenate([corners, corners + rng.uniform(1, 6, corners.shape).astype("float32")], -1)


def nms(b, s, most, iou, least, center_point_box=False):
    return reference("NonMaxSuppression", [b, s, np.atleast_1d(most), np.atleast_1d(iou), np.atleast_1d(least)], center_point_box=int(center_point_box)).reshape(-1, 3)


LIMITS = (Value([5], "int64"), Value(0.4, "float32"), Value([0.1], "float32"))
test_nms = table(
    Case("vision.all_class_non_max_suppression", nms, boxes, f32(2, 3, 12).within(0, 1), *LIMITS, center_point_box=each(False, True)),
    Case("vision.all_class_non_max_suppression", nms, boxes, f32(2, 1, 12).within(0, 1), Value(2, "int64"), Value(0.0, "float32"), Value(0.5, "float32")),
    Case("vision.all_class_non_max_suppression", lambda *a: np.zeros((0, 3), "int64"), boxes, f32(2, 1, 12), Value(0, "int64"), *LIMITS[1:]),
    Case("vision.all_class_non_max_suppression", lambda *a: np.zeros((0, 3), "int64"), f32(1, 0, 4), f32(1, 2, 0), *LIMITS),
    dynamic=True)

X, R, G = ((2, 3, 8, 9), "float32"), ((4, 5), "float32"), ((2, 2, 3, 4), "float32")
B, S, ONE = ((2, 12, 4), "float32"), ((2, 3, 12), "float32"), ((), "float32")
NMS = "vision.all_class_non_max_suppression"
test_rejects = rejects(
    *[r for op, x, kw in (("image.resize1d", ((2, 3, 4), "float32"), {"size": [3]}), ("image.resize2d", X, {"size": [3, 4]}), ("image.resize3d", ((1, 1, 2, 2, 2), "float32"), {"size": [3, 4, 5]}),
                          ("image.resize", X, {"axes": [2], "size": [3]})) for r in (
        Reject(op, "R1", (x[0], "bool"), **kw), Reject(op, "R2", x, **kw, method="lanczos"), Reject(op, "R2", x, **kw, coordinate_transformation_mode="corners"),
        Reject(op, "R2", x, **kw, rounding_method="up"), Reject(op, "R3", ((relay.Any(),) * len(x[0]), "float32"), **kw), Reject(op, "R4", ((0,) * len(x[0]), "float32"), **kw),
        Reject(op, "R5", x, **kw, coordinate_transformation_mode="tf_crop_and_resize", roi=[0.0]), Reject(op, "R5", x, **{**kw, "size": [1, 2, 3, 4]}))],
    Reject("image.resize", "R5", X, axes=[2], size=[3], scales=[-1.0]), Reject("image.resize", "R5", X, axes=[2, -2], size=[3, 4]),
    Reject("image.resize2d", "R5", X, size=[3, 4], layout="NCW"), Reject("image.resize2d", "R5", X, size=[3, 4], layout="NCDE"),
    Reject("nn.upsampling", "R1", (X[0], "bool")), Reject("nn.upsampling", "R2", X, method="lanczos"), Reject("nn.upsampling", "R3", ((relay.Any(),) * 4, "float32")),
    Reject("nn.upsampling", "R4", ((1, 1, 2), "float32")),
    Reject("nn.upsampling", "R5", X, layout="CNHW"), Reject("nn.upsampling", "R5", X, scale_h=float("inf")),
    Reject("image.grid_sample", "R1", (X[0], "bool"), G), Reject("image.grid_sample", "R1", X, (G[0], "int32")), Reject("image.grid_sample", "R2", X, ((2, 2, 3), "float32")),
    Reject("image.grid_sample", "R2", ((2, 3), "float32"), ((2, 2), "float32")), Reject("image.grid_sample", "R3", X, G, method="cubic"), Reject("image.grid_sample", "R3", X, G, padding_mode="wrap"),
    Reject("image.grid_sample", "R3", X, G, layout="NHWC"), Reject("image.grid_sample", "R4", X, ((2, 3, 3, 4), "float32")), Reject("image.grid_sample", "R4", X, ((3, 2, 3, 4), "float32")),
    Reject("image.grid_sample", "R4", ((2, 3, 0, 9), "float32"), G),
    Reject("image.affine_grid", "R1", ((2, 2, 3), "int32"), target_shape=[2, 2]), Reject("image.affine_grid", "R2", ((2, 2, 3), "float32"), target_shape=[2]),
    Reject("image.affine_grid", "R2", ((2, 3, 4), "float32"), target_shape=[2, 2]), Reject("image.affine_grid", "R2", ((2, 3), "float32"), target_shape=[2, 2]),
    *[r for op in ("vision.roi_align", "vision.roi_pool") for r in (
        Reject(op, "R1", (X[0], "int32"), (R[0], "int32"), pooled_size=[2, 2], spatial_scale=1.0), Reject(op, "R1", X, (R[0], "float64"), pooled_size=[2, 2], spatial_scale=1.0),
        Reject(op, "R2", ((3, 8, 9), "float32"), R, pooled_size=[2, 2], spatial_scale=1.0), Reject(op, "R2", X, ((4, 4), "float32"), pooled_size=[2, 2], spatial_scale=1.0),
        Reject(op, "R3", X, R, pooled_size=[2], spatial_scale=1.0), Reject(op, "R3", X, R, pooled_size=[2, 2], spatial_scale=1.0, layout="NHWC"))],
    Reject("vision.roi_align", "R3", X, R, pooled_size=[2, 2], spatial_scale=1.0, mode="min"),
    Reject(NMS, "R1", (B[0], "int32"), S, ONE, ONE, ONE), Reject(NMS, "R1", B, (S[0], "int32"), ONE, ONE, ONE), Reject(NMS, "R2", ((2, 12), "float32"), S, ONE, ONE, ONE),
    Reject(NMS, "R2", ((2, 12, 5), "float32"), S, ONE, ONE, ONE), Reject(NMS, "R2", B, ((2, 3, 11), "float32"), ONE, ONE, ONE), Reject(NMS, "R3", B, S, ((2,), "int64"), ONE, ONE),
    Reject(NMS, "R3", B, S, ((), "bool"), ONE, ONE), Reject(NMS, "R4", B, S, ONE, ONE, ONE, output_format="tensorflow"),
)
