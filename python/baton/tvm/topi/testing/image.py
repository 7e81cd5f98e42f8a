# SPDX-License-Identifier: Apache-2.0
"""Images: resizing, sampling, boxes."""

import itertools
import math

import numpy as np


def _place(i, scale, size, out_size, mode):
    if mode == "align_corners":
        return i * ((size - 1) / (out_size - 1)) if out_size > 1 else 0.0
    if mode == "asymmetric":
        return i / scale
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if out_size > 1 else 0.0
    raise ValueError(f"coordinate_transformation_mode is {mode!r}; it is align_corners, asymmetric, half_pixel or pytorch_half_pixel")


def _cubic(t, a=-0.5):
    """Weights of the four elements around a place `t` behind the second."""
    return [
        ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
        ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a,
    ]


def _resize_axis(x, axis, scale, method, mode):
    """One dimension resized; the nearest element is used outside."""
    size = x.shape[axis]
    out_size = round(size * scale)
    rows = np.moveaxis(x, axis, 0)
    out = np.zeros((out_size, *rows.shape[1:]))
    for i in range(out_size):
        at = _place(i, scale, size, out_size, mode)
        if method == "nearest_neighbor":
            near = math.floor(at + (0.5 if mode == "align_corners" else 1e-5))
            out[i] = rows[min(max(near, 0), size - 1)]
            continue
        low = math.floor(at)
        weights = [1 - (at - low), at - low] if method in ("linear", "bilinear", "trilinear") else _cubic(at - low)
        first = low if len(weights) == 2 else low - 1
        out[i] = sum(w * rows[min(max(first + k, 0), size - 1)] for k, w in enumerate(weights))
    return np.moveaxis(out, 0, axis)


def _resize(data, scale, layout, method, mode, letters):
    known = ("nearest_neighbor", "linear", "bilinear", "trilinear", "cubic", "bicubic", "tricubic")
    if method not in known:
        raise ValueError(f"method is {method!r}; it is one of {', '.join(known)}")
    x = data.astype("float64")
    split = len(layout) > len(letters) + 2  # NCHW16c: the channels' inner part is behind
    for letter, factor in zip(letters, scale, strict=True):
        x = _resize_axis(x, layout.upper().index(letter) if not split else layout.index(letter), factor, method, mode)
    return x.astype(data.dtype)


def resize1d_python(data, scale, layout="NCW", method="nearest_neighbor", coordinate_transformation_mode="align_corners"):
    """Widths multiplied by `scale`, of one number."""
    return _resize(data, scale if isinstance(scale, (list, tuple)) else (scale,), layout, method, coordinate_transformation_mode, "W")


def resize2d_python(data, scale, layout="NCHW", method="bilinear", coordinate_transformation_mode="align_corners"):
    """Heights and widths multiplied by `scale`."""
    return _resize(data, scale, layout, method, coordinate_transformation_mode, "HW")


def resize3d_python(data, scale, layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="align_corners"):
    """Depths, heights and widths multiplied by `scale`."""
    return _resize(data, scale, layout, method, coordinate_transformation_mode, "DHW")


def affine_grid_python(data, target_shape):
    """Where each place of (height, width), from -1 to 1, comes from by the matrices `data` (N, 2, 3): (N, 2, height, width)."""
    height, width = target_shape
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    places = np.stack([x.ravel(), y.ravel(), np.ones(height * width)])
    return (data.astype("float64") @ places).reshape(len(data), 2, height, width).astype(data.dtype)


def grid_sample_nchw_python(data, grid, method="bilinear"):
    """Elements of (N, C, H, W) at the places of (N, 2, height, width), which are (x, y) from -1 to 1; 0 outside."""
    n, c, h, w = data.shape
    out = np.zeros((n, c, *grid.shape[2:]))
    for b, i, j in itertools.product(range(n), *map(range, grid.shape[2:])):
        x = (float(grid[b, 0, i, j]) + 1) / 2 * (w - 1)
        y = (float(grid[b, 1, i, j]) + 1) / 2 * (h - 1)
        if method == "nearest":
            x, y = float(np.rint(x)), float(np.rint(y))
        x0, y0 = math.floor(x), math.floor(y)
        for yy, xx in itertools.product((y0, y0 + 1), (x0, x0 + 1)):
            weight = (1 - abs(y - yy)) * (1 - abs(x - xx))
            if weight > 0 and 0 <= yy < h and 0 <= xx < w:
                out[b, :, i, j] += weight * data[b, :, yy, xx]
    return out.astype(data.dtype)


def crop_and_resize_python(image, boxes, box_indices, crop_size, layout, method="bilinear", extrapolation_value=0):
    """Parts of images, (y1, x1, y2, x2) from 0 to 1 a row of `boxes`, resized to `crop_size`."""
    x = image if layout == "NHWC" else np.moveaxis(image, 1, -1)
    h, w = x.shape[1:3]
    height, width = crop_size
    out = np.full((len(boxes), height, width, x.shape[-1]), float(extrapolation_value))
    # Places are computed in the boxes' dtype, since it decides which element is the nearest.
    number = boxes.dtype.type if isinstance(boxes, np.ndarray) and boxes.dtype.kind == "f" else np.float32

    def places(first, last, extent, count):
        first, last, end = number(first), number(last), number(extent - 1)
        if count == 1:
            return [(first + last) * number(0.5) * end]
        return [first * end + number(k) * ((last - first) * end / number(count - 1)) for k in range(count)]

    for b, (y1, x1, y2, x2) in enumerate(boxes):
        source = x[int(box_indices[b])].astype("float64")
        rows, columns = places(y1, y2, h, height), places(x1, x2, w, width)
        for i, j in itertools.product(range(height), range(width)):
            y, z = rows[i], columns[j]
            if not (0 <= y <= h - 1 and 0 <= z <= w - 1):
                continue
            if method == "nearest_neighbor":
                half = number(0.5)
                out[b, i, j] = source[math.floor(y + half), math.floor(z + half)]
                continue
            top, left = math.floor(y), math.floor(z)
            low, right = math.ceil(y), math.ceil(z)
            upper = source[top, left] * (1 - (z - left)) + source[top, right] * (z - left)
            lower = source[low, left] * (1 - (z - left)) + source[low, right] * (z - left)
            out[b, i, j] = upper * (1 - (y - top)) + lower * (y - top)
    out = out.astype(image.dtype)
    return out if layout == "NHWC" else np.moveaxis(out, -1, 1)


def _between(plane, y, x):
    """(C, H, W) at a place between elements, as roi_align samples: 0 far outside, the border's element near it."""
    h, w = plane.shape[1:]
    if y < -1 or y > h or x < -1 or x > w:
        return None
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    fy, fx = y - y0, x - x0
    weights = ((1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx)
    corners = (plane[:, y0, x0], plane[:, y0, x1], plane[:, y1, x0], plane[:, y1, x1])
    return weights, corners


def roi_align_nchw_python(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode=b"avg"):
    """Averages (or largest weighted corners) of samples within boxes, (batch, x1, y1, x2, y2) a row."""
    average = mode in (b"avg", "avg")
    high, wide = (pooled_size, pooled_size) if isinstance(pooled_size, int) else pooled_size
    out = np.zeros((len(rois_np), a_np.shape[1], high, wide))
    for r, roi in enumerate(rois_np.astype("float64")):
        plane = a_np[int(roi[0])].astype("float64")
        x1, y1, x2, y2 = roi[1:] * spatial_scale
        bin_h, bin_w = max(y2 - y1, 1.0) / high, max(x2 - x1, 1.0) / wide
        count_h = sample_ratio if sample_ratio > 0 else math.ceil(bin_h)
        count_w = sample_ratio if sample_ratio > 0 else math.ceil(bin_w)
        for i, j in itertools.product(range(high), range(wide)):
            total = np.zeros(len(plane)) if average else np.full(len(plane), -np.inf)
            for k, m in itertools.product(range(count_h), range(count_w)):
                found = _between(plane, y1 + i * bin_h + (k + 0.5) * bin_h / count_h, x1 + j * bin_w + (m + 0.5) * bin_w / count_w)
                if average:
                    total += sum(w * c for w, c in zip(*found, strict=True)) if found else 0
                else:
                    for w, c in zip(*found, strict=True) if found else [(0, np.zeros(len(plane)))]:
                        total = np.maximum(total, w * c)
            out[r, :, i, j] = total / (count_h * count_w) if average else total
    return out.astype(a_np.dtype)


def roi_align_nhwc_python(a_np, rois_np, pooled_size, spatial_scale, sample_ratio, mode=b"avg"):
    """The same for (N, H, W, C)."""
    return np.moveaxis(roi_align_nchw_python(np.moveaxis(a_np, -1, 1), rois_np, pooled_size, spatial_scale, sample_ratio, mode), 1, -1)


def roi_pool_nchw_python(a_np, rois_np, pooled_size, spatial_scale):
    """The largest elements of the parts of boxes, (batch, x1, y1, x2, y2) a row; 0 for a part without elements."""
    h, w = a_np.shape[2:]
    high, wide = (pooled_size, pooled_size) if isinstance(pooled_size, int) else pooled_size
    out = np.zeros((len(rois_np), a_np.shape[1], high, wide), a_np.dtype)
    for r, roi in enumerate(rois_np):
        x1, y1, x2, y2 = (math.floor(float(v) * spatial_scale + 0.5) for v in roi[1:])
        bin_h, bin_w = max(y2 - y1 + 1, 1) / high, max(x2 - x1 + 1, 1) / wide
        for i, j in itertools.product(range(high), range(wide)):
            rows = slice(*(min(max(v + y1, 0), h) for v in (math.floor(i * bin_h), math.ceil((i + 1) * bin_h))))
            columns = slice(*(min(max(v + x1, 0), w) for v in (math.floor(j * bin_w), math.ceil((j + 1) * bin_w))))
            part = a_np[int(roi[0]), :, rows, columns]
            if part.size:
                out[r, :, i, j] = part.max(axis=(1, 2))
    return out


def reorg_python(a_np, stride):
    """YOLO's reorg of (N, C, H, W) to (N, C * stride^2, H / stride, W / stride): elements are moved as memory, not by blocks."""
    n, c, h, w = a_np.shape
    few = c // stride**2
    flat_in, out = a_np.reshape(n, -1), np.zeros((n, c * h * w), a_np.dtype)
    for k, j, i in itertools.product(range(c), range(h), range(w)):
        offset = k // few
        at = ((k % few) * h * stride + j * stride + offset // stride) * w * stride + i * stride + offset % stride
        out[:, (k * h + j) * w + i] = flat_in[:, at]
    return out.reshape(n, c * stride**2, h // stride, w // stride)


def correlation_nchw_python(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply):
    """The mean product (or absolute difference) of patches of two images, for each displacement of the second."""
    pad = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    a, b = (np.pad(x.astype("float64"), pad) for x in (data1, data2))
    reach = max_displacement // stride2 * stride2
    b = np.pad(b, [(0, 0), (0, 0), (reach, reach), (reach, reach)])
    steps = range(-reach, reach + 1, stride2)
    border = max_displacement + (kernel_size - 1) // 2
    places = [[max_displacement + i * stride1 for i in range(-(-(n - 2 * border) // stride1))] for n in a.shape[2:]]
    out = np.zeros((len(a), len(steps) ** 2, len(places[0]), len(places[1])))
    for q, (dy, dx) in enumerate(itertools.product(steps, steps)):
        for (i, y), (j, x) in itertools.product(enumerate(places[0]), enumerate(places[1])):
            p = a[:, :, y : y + kernel_size, x : x + kernel_size]
            w = b[:, :, y + dy + reach : y + dy + reach + p.shape[2], x + dx + reach : x + dx + reach + p.shape[3]]
            out[:, q, i, j] = np.sum(p * w if is_multiply else abs(p - w), axis=(1, 2, 3))
    return (out / (kernel_size**2 * a.shape[1])).astype(data1.dtype)
