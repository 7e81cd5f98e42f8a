# SPDX-License-Identifier: Apache-2.0
"""What operators of neural networks mean, in NumPy: plain sums in float64, rounded once. One reference a family."""

import re

import numpy as np

SPACE = {1: "W", 2: "HW", 3: "DHW"}


def numbers(v, n):
    v = [v] if isinstance(v, int) else list(v)
    return v * n if len(v) == 1 else v


def margins(padding, n):
    p = numbers(padding, n)
    return (p, p) if len(p) == n else (p[:n], p[n:])


def wide(x):
    """The dtype that sums are taken in here."""
    return x.astype("float64" if x.dtype.kind == "f" else "int64")


# ---- layouts
def _parts(layout):
    return [(axis, int(size or 0)) for size, axis in re.findall(r"(\d*)([A-Za-z])", layout)]


def to_plain(x, layout, plain):
    """x of a layout as NHWC or NCHW4c with whole dimensions in the order of `plain`."""
    dims = [axis.upper() for axis, _ in _parts(layout)]
    order = [d for axis in plain for d in range(len(dims)) if dims[d] == axis]
    shape = [int(np.prod([x.shape[d] for d in range(len(dims)) if dims[d] == axis])) for axis in plain]
    return x.transpose(order).reshape(shape)


def from_plain(x, layout, plain):
    """The inverse; a split dimension that does not divide is filled with zeros."""
    parts = _parts(layout)
    for d, axis in enumerate(plain):
        f = int(np.prod([size for a, size in parts if size and a.upper() == axis]))
        x = np.pad(x, [(0, -x.shape[e] % f if e == d else 0) for e in range(x.ndim)])
    split, at = [], []
    for d, axis in enumerate(plain):
        mine = [k for k, (a, _) in enumerate(parts) if a.upper() == axis]
        inner = [parts[k][1] for k in mine[1:]]
        split += [x.shape[d] // int(np.prod(inner)), *inner]
        at += mine
    return x.reshape(split).transpose(np.argsort(at))


# ---- windows
def window_count(extent, size, stride, dilation, begin, end, ceil_mode=False):
    room = extent + begin + end - dilation * (size - 1) - 1
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= extent + begin else max(count, 0)


def taps(x, size, strides, dilation, begin, end, fill, ceil_mode=False):
    """For each place in the window the elements (N, C, ...) that all windows have there."""
    n = len(size)
    out = [window_count(x.shape[d + 2], size[d], strides[d], dilation[d], begin[d], end[d], ceil_mode) for d in range(n)]
    more = [max(0, (out[d] - 1) * strides[d] + dilation[d] * (size[d] - 1) + 1 - x.shape[d + 2] - begin[d]) for d in range(n)]
    x = np.pad(x, [(0, 0), (0, 0), *zip(begin, more, strict=True)], constant_values=fill)
    for at in np.ndindex(*size):
        yield at, x[(..., *[slice(a * d, a * d + s * o, s) for a, d, s, o in zip(at, dilation, strides, out, strict=True)])]


def conv(x, w, strides=1, padding=0, dilation=1, groups=1, channels=None, kernel_size=None, data_layout="", kernel_layout="", out_layout="", out_dtype=""):
    n = len(re.sub("[^A-Z]", "", data_layout)) - 2 if data_layout else x.ndim - 2
    plain, plain_w = "NC" + SPACE[n], "OI" + SPACE[n]
    x, w = to_plain(x, data_layout or plain, plain), to_plain(w, kernel_layout or plain_w, plain_w)
    begin, end = margins(padding, n)
    out = sum(_grouped(wide(t), wide(w[(..., *at)]), groups) for at, t in taps(x, w.shape[2:], numbers(strides, n), numbers(dilation, n), begin, end, 0))
    return from_plain(out.astype(out_dtype or x.dtype), out_layout or data_layout or plain, plain)


def _grouped(x, w, groups):
    """(N, C, ...) by (O, C / groups) to (N, O, ...)."""
    parts = [np.einsum("nc...,oc->no...", a, b) for a, b in zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)]
    return np.concatenate(parts, 1)


def conv_transpose(
    x,
    w,
    strides=1,
    padding=0,
    output_padding=0,
    dilation=1,
    groups=1,
    channels=None,
    kernel_size=None,
    data_layout="",
    kernel_layout="",
    out_layout="",
    out_dtype="",
):
    n = x.ndim - 2
    plain, plain_w = "NC" + SPACE[n], "IO" + SPACE[n]
    x, w = to_plain(x, data_layout or plain, plain), to_plain(w, kernel_layout or plain_w, plain_w)
    begin, end = margins(padding, n)
    s, d, extra = numbers(strides, n), numbers(dilation, n), numbers(output_padding, n)
    spans = [(e - 1) * s[k] + d[k] * (w.shape[k + 2] - 1) + 1 + extra[k] for k, e in enumerate(x.shape[2:])]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *spans), wide(x).dtype)
    for at in np.ndindex(*w.shape[2:]):
        to = tuple(slice(a * d[k], a * d[k] + s[k] * x.shape[k + 2], s[k]) for k, a in enumerate(at))
        kernel = np.concatenate([g.T for g in np.split(wide(w[(..., *at)]), groups, 0)])
        out[(..., *to)] += _grouped(wide(x), kernel, groups)
    grow = [(max(-b, 0), max(-e, 0)) for b, e in zip(begin, end, strict=True)]
    out = np.pad(out, [(0, 0), (0, 0), *grow])
    out = out[(..., *[slice(max(b, 0), out.shape[k + 2] - max(e, 0)) for k, (b, e) in enumerate(zip(begin, end, strict=True))])]
    return from_plain(out.astype(out_dtype or x.dtype), out_layout or data_layout or plain, plain)


def deformable_conv2d(x, offset, w, mask=None, data_layout="NCHW", kernel_layout="OIHW", out_layout="", **kw):
    plain = [None if v is None else to_plain(v, data_layout, "NCHW") for v in (x, offset, mask)]
    made = plain_deformable_conv2d(plain[0], plain[1], to_plain(w, kernel_layout, "OIHW"), plain[2], **kw)
    return from_plain(made, out_layout or data_layout, "NCHW")


def plain_deformable_conv2d(x, offset, w, mask=None, strides=1, padding=0, dilation=1, deformable_groups=1, groups=1, **_):
    s, d = numbers(strides, 2), numbers(dilation, 2)
    begin, _ = margins(padding, 2)
    n, c, height, width = x.shape
    kh, kw = w.shape[2:]
    oh, ow = offset.shape[2:]

    def sample(plane, y, z):
        y0, z0 = int(np.floor(y)), int(np.floor(z))
        return sum(plane[a, b] * (1 - abs(y - a)) * (1 - abs(z - b)) for a in (y0, y0 + 1) for b in (z0, z0 + 1) if 0 <= a < height and 0 <= b < width)

    sampled = np.zeros((n, c, kh, kw, oh, ow))
    for b, k, i, j, p, q in np.ndindex(sampled.shape):
        g, tap = k // (c // deformable_groups), i * kw + j
        at = g * kh * kw + tap
        y = p * s[0] - begin[0] + i * d[0] + float(offset[b, 2 * at, p, q])
        z = q * s[1] - begin[1] + j * d[1] + float(offset[b, 2 * at + 1, p, q])
        sampled[b, k, i, j, p, q] = sample(wide(x[b, k]), y, z) * (1 if mask is None else float(mask[b, at, p, q]))
    parts = [np.einsum("ncijpq,ocij->nopq", u, wide(v)) for u, v in zip(np.split(sampled, groups, 1), np.split(w, groups, 0), strict=True)]
    return np.concatenate(parts, 1).astype(x.dtype)


# ---- pools
def pool(reduce):
    """reduce(list of taps, list of whether they are in data, in data or padding) on plain layouts."""

    def f(x, pool_size=1, strides=1, dilation=1, padding=0, layout="", out_layout="", ceil_mode=False, **kw):
        n = len(re.sub("[^A-Z]", "", layout)) - 2 if layout else x.ndim - 2
        plain = "NC" + SPACE[n]
        v = to_plain(x, layout or plain, plain)
        begin, end = margins(padding, n)
        where = [numbers(pool_size, n), numbers(strides, n), numbers(dilation, n)]
        values = np.stack([t for _, t in taps(v, *where, begin, end, 0, ceil_mode)])
        inside = np.stack([t for _, t in taps(np.ones(v.shape, bool), *where, begin, end, False, ceil_mode)])
        padded = np.pad(np.ones(v.shape, bool), [(0, 0), (0, 0), *zip(begin, end, strict=True)], constant_values=True)
        zero = [0] * n
        # Windows over the padded data: what lies beyond is the excess of ceil_mode.
        around = np.stack([t for _, t in taps(np.pad(padded, [(0, 0), (0, 0)] + [(0, 64)] * n), *where, zero, zero, False)])
        around = around[(slice(None), slice(None), slice(None), *[slice(e) for e in values.shape[3:]])]
        return from_plain(reduce(values, inside, around, **kw).astype(x.dtype), layout or plain, plain)

    return f


def _lowest(t):
    return -np.inf if t.kind == "f" else np.iinfo(t).min


def _average(v, inside, around, count_include_pad=False):
    total, count = np.sum(wide(v), 0), np.sum(around if count_include_pad else inside, 0)
    return total / count if v.dtype.kind == "f" else np.trunc(total / np.maximum(count, 1))


max_pool = pool(lambda v, inside, around: np.max(np.where(inside, v, _lowest(v.dtype)), 0))
avg_pool = pool(_average)
lp_pool = pool(lambda v, inside, around, p=2: np.sum(np.abs(wide(v)) ** p, 0) ** (1 / p))


def global_pool(f):
    def g(x, layout="", out_layout=""):
        plain = "NC" + SPACE[len(re.sub("[^A-Z]", "", layout)) - 2 if layout else x.ndim - 2]
        v = to_plain(x, layout or plain, plain)
        return from_plain(f(v, tuple(range(2, v.ndim))).astype(x.dtype), layout or plain, plain)

    return g


def mean(x, axes):
    m = np.mean(wide(x), axis=axes, keepdims=True)
    return m if x.dtype.kind == "f" else np.trunc(m)


def adaptive_pool(f):
    def g(x, output_size=None, layout="", out_layout=""):
        n = len(re.sub("[^A-Z]", "", layout)) - 2 if layout else x.ndim - 2
        plain = "NC" + SPACE[n]
        v = to_plain(x, layout or plain, plain)
        size = list(v.shape[2:]) if output_size is None or output_size == [] else numbers(output_size, n)
        out = np.zeros((*v.shape[:2], *size), x.dtype)
        for at in np.ndindex(*size):
            part = tuple(slice(o * e // m, -(-(o + 1) * e // m)) for o, e, m in zip(at, v.shape[2:], size, strict=True))
            piece = v[(..., *part)]
            out[(..., *at)] = f(piece, tuple(range(2, v.ndim)))[(..., *[0] * n)].astype(x.dtype)
        return from_plain(out, layout or plain, plain)

    return g


def max_pool_with_indices(x, pool_size, strides=1, dilation=1, padding=0, ceil_mode=False, storage_order=0):
    n = x.ndim - 2
    begin, end = margins(padding, n)
    where = [numbers(pool_size, n), numbers(strides, n), numbers(dilation, n), begin, end]
    place = np.arange(x.size).reshape(x.shape)
    if storage_order:
        place = place.reshape(*x.shape[:2], *x.shape[2:])
        plane = int(np.prod(x.shape[2:]))
        column = np.arange(plane).reshape(x.shape[:1:-1]).T
        place = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * n) * plane + column
    v = np.stack([t for _, t in taps(x, *where, _lowest(x.dtype), ceil_mode)])
    i = np.stack([t for _, t in taps(place, *where, -1, ceil_mode)])
    v = np.where(i < 0, _lowest(x.dtype), v).astype(x.dtype)
    top = np.argmax(v, 0)[None]
    return np.take_along_axis(v, top, 0)[0], np.take_along_axis(i, top, 0)[0]


def max_unpool(x, indices, output_shape):
    out = np.zeros(int(np.prod(output_shape)), x.dtype)
    for v, i in zip(x.reshape(-1), indices.reshape(-1), strict=True):
        if 0 <= i < out.size:
            out[i] = v
    return out.reshape(output_shape)


# ---- normalisations
def moments(x, axes, epsilon):
    m = np.mean(x, axis=axes, keepdims=True)
    return (x - m) / np.sqrt(np.mean((x - m) ** 2, axis=axes, keepdims=True) + epsilon)


def along(p, ndim, axis):
    return wide(p).reshape([-1 if d == axis % ndim else 1 for d in range(ndim)])


def scaled(v, gamma, beta, center, scale):
    return (v * gamma if scale else v) + (beta if center else 0)


def batch_norm(x, gamma, beta, mu, var, axis=1, epsilon=1e-5, center=True, scale=True):
    g, b, m, v = (along(p, x.ndim, axis) for p in (gamma, beta, mu, var))
    return scaled((wide(x) - m) / np.sqrt(v + epsilon), g, b, center, scale).astype(x.dtype), mu, var


def instance_norm(x, gamma, beta, axis=1, epsilon=1e-5, center=True, scale=True):
    axes = tuple(d for d in range(1, x.ndim) if d != axis % x.ndim)
    v = moments(wide(x), axes, epsilon)
    return scaled(v, along(gamma, x.ndim, axis), along(beta, x.ndim, axis), center, scale).astype(x.dtype)


def group_norm(x, gamma, beta, num_groups, axis=1, epsilon=1e-5, center=True, scale=True):
    v = np.moveaxis(wide(x), axis, 1)
    grouped = moments(v.reshape(v.shape[0], num_groups, -1), (2,), epsilon).reshape(v.shape)
    v = np.moveaxis(grouped, 1, axis)
    return scaled(v, along(gamma, x.ndim, axis), along(beta, x.ndim, axis), center, scale).astype(x.dtype)


def _over(x, p, axis, num_axes):
    axis %= x.ndim
    return wide(p).reshape([*p.shape, *[1] * (x.ndim - axis - num_axes)])


def layer_norm(x, gamma, beta, axis=-1, epsilon=1e-5, center=True, scale=True, num_axes=1):
    axes = tuple(range(axis % x.ndim, axis % x.ndim + num_axes))
    v = moments(wide(x), axes, epsilon)
    return scaled(v, _over(x, gamma, axis, num_axes), _over(x, beta, axis, num_axes), center, scale).astype(x.dtype)


def rms_norm(x, gamma, axis=-1, num_axes=1, epsilon=1e-5):
    axes = tuple(range(axis % x.ndim, axis % x.ndim + num_axes))
    v = wide(x)
    return (v / np.sqrt(np.mean(v * v, axis=axes, keepdims=True) + epsilon) * _over(x, gamma, axis, num_axes)).astype(x.dtype)


def l2_normalize(x, eps, axis=None):
    v = wide(x)
    total = np.sum(v * v, axis=None if axis is None else tuple(axis), keepdims=True)
    return (v / np.sqrt(np.maximum(total, eps))).astype(x.dtype)


def lp_normalize(x, p=2, axis=-1):
    v = wide(x)
    norm = np.sum(np.abs(v) ** p, axis=axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, v / np.where(norm == 0, 1, norm)).astype(x.dtype)


def lrn(x, size=5, axis=1, bias=2, alpha=1e-5, beta=0.75):
    v = np.moveaxis(wide(x), axis, 0)
    total = np.stack([np.sum(v[max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2, axis=0) for c in range(len(v))])
    return np.moveaxis(v / (bias + alpha / size * total) ** beta, 0, axis).astype(x.dtype)


def softmax(x, axis=-1):
    v = wide(x)
    e = np.exp(v - np.max(v, axis=axis, keepdims=True, initial=-np.inf))
    return (e / np.sum(e, axis=axis, keepdims=True)).astype(x.dtype)


def log_softmax(x, axis=-1):
    v = wide(x)
    v = v - np.max(v, axis=axis, keepdims=True, initial=-np.inf)
    return (v - np.log(np.sum(np.exp(v), axis=axis, keepdims=True))).astype(x.dtype)


def hardmax(x, axis=-1):
    first = np.expand_dims(np.argmax(x, axis=axis), axis)
    at = np.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    return (at == first).astype(x.dtype)


# ---- losses
def nll_loss(p, y, w, reduction="mean", ignore_index=-100):
    v = wide(p) if y.ndim else wide(p)[None]
    t = y if y.ndim else y[None]
    index = np.clip(t, 0, v.shape[1] - 1)
    weight = np.where(t == ignore_index, 0, wide(w)[index])
    loss = -np.take_along_axis(v, np.expand_dims(index, 1), 1).squeeze(1) * weight
    if reduction == "none":
        return loss.reshape(y.shape).astype(p.dtype)
    return np.asarray(np.sum(loss) / (np.sum(weight) if reduction == "mean" else 1)).astype(p.dtype)


# ---- rearrangements of space
def space_to_batch_nd(x, block_shape, paddings, pad_value=0):
    k = len(block_shape)
    x = np.pad(x, [(0, 0), *paddings, *[(0, 0)] * (x.ndim - 1 - k)], constant_values=pad_value)
    split = [x.shape[0]] + [e for d in range(k) for e in (x.shape[d + 1] // block_shape[d], block_shape[d])]
    y = x.reshape(split + list(x.shape[k + 1 :]))
    order = [2 * d + 2 for d in range(k)] + [0] + [2 * d + 1 for d in range(k)] + list(range(2 * k + 1, y.ndim))
    out = y.transpose(order)
    return out.reshape(-1 if x.shape[0] else 0, *out.shape[k + 1 :])


def batch_to_space_nd(x, block_shape, crops):
    k = len(block_shape)
    n = x.shape[0] // int(np.prod(block_shape))
    y = x.reshape([*block_shape, n, *x.shape[1:]])
    order = [k] + [e for d in range(k) for e in (k + 1 + d, d)] + list(range(2 * k + 1, y.ndim))
    out = y.transpose(order).reshape([n, *[x.shape[d + 1] * block_shape[d] for d in range(k)], *x.shape[k + 1 :]])
    return out[(slice(None), *[slice(b, out.shape[d + 1] - e) for d, (b, e) in enumerate(crops)])]


def space_to_depth(x, block_size, layout="NCHW", mode="DCR"):
    x = to_plain(x, layout, "NCHW")
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // block_size, block_size, w // block_size, block_size)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.transpose(0, 1, 3, 5, 2, 4)
    return from_plain(y.reshape(n, c * block_size**2, h // block_size, w // block_size), layout, "NCHW")


def depth_to_space(x, block_size, layout="NCHW", mode="DCR"):
    x = to_plain(x, layout, "NCHW")
    n, c, h, w = x.shape
    b, o = block_size, c // block_size**2
    y = x.reshape(n, b, b, o, h, w).transpose(0, 3, 4, 1, 5, 2) if mode == "DCR" else x.reshape(n, o, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return from_plain(y.reshape(n, o, h * b, w * b), layout, "NCHW")


def dilate(x, strides, dilation_value=0):
    out = np.full([(e - 1) * s + 1 if e else 0 for e, s in zip(x.shape, strides, strict=True)], dilation_value, x.dtype)
    out[tuple(slice(None, None, s) for s in strides)] = x
    return out


def dft(x, axis=1, inverse=False, onesided=False, length=None):
    v = wide(x)
    z = v[..., 0] + (1j * v[..., 1] if x.shape[-1] == 2 else 0)
    axis %= x.ndim
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None].astype(x.dtype)
    y = (np.fft.ifft if inverse else np.fft.fft)(z, length, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return np.stack([y.real, y.imag], -1).astype(x.dtype)
