# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose weights were carried to Winograd's domain. The transform has an inverse on the left, which folds into constant weights:
what is left is the convolution, for which the compiler chooses the kernel."""

from ... import error as errors
from ..expr import _dtype_of, const, infer_type
from .make import convolution, operator

WINOGRAD = {}


def _named(name):
    def register(f):
        WINOGRAD["nn." + name] = f
        return f

    return register


def matrices(tile, taps):
    """(A, B, G) of Winograd's convolution with `taps` weights and `tile` results: result = A'((G w) * (B' d)), by Toom's and Cook's
    interpolation at 0, 1, -1, 1/2, -1/2, 2, -2, ... and infinity."""
    import numpy as np

    size = tile + taps - 1
    points = [0.0, 1.0, -1.0]
    while len(points) < size - 1:
        step = 2.0 ** ((len(points) - 3) // 4 + 1)
        points += [1 / step, -1 / step, step, -step]
    points = points[: size - 1]
    a, g, b = np.zeros((size, tile)), np.zeros((size, taps)), np.zeros((size, size))
    for j, point in enumerate(points):
        others = points[:j] + points[j + 1 :]
        a[j] = [point**i for i in range(tile)]
        g[j] = [point**i for i in range(taps)] / np.prod([point - p for p in others])
        b[: size - 1, j] = np.poly(others)[::-1]
    a[-1, -1] = g[-1, -1] = 1
    b[:, -1] = np.poly(points)[::-1]
    return a, b, g


def _along_last(data, matrix, dtype):
    """The product of the last dimension with the rows of a matrix, which comes first then."""
    rank = len(infer_type(data).shape)
    product = operator("nn.dense")(data, const(matrix.astype(dtype)))
    return operator("transpose")(product, axes=[rank - 1, *range(rank - 1)])


def _transformed(weight, tile_size, dims):
    """Weights (O, I, window) with the last `dims` dimensions of the window in Winograd's domain, before O and I."""
    kind = infer_type(weight)
    rank = len(kind.shape)
    for _ in range(dims):
        _, _, g = matrices(tile_size, int(kind.shape[-1]))
        weight = _along_last(weight, g, str(kind.dtype))
    return weight if rank == dims + 2 else operator("transpose")(weight, axes=[dims + 2, *range(dims), dims, dims + 1])


def _restored(weight, tile_size, taps, dtype):
    """Weights (O, I, window) of weights in Winograd's domain, whose window comes first."""
    import numpy as np

    rank = len(taps) + 2
    made = operator("transpose")(weight, axes=[rank - 2, rank - 1, *range(rank - 2)])
    for d, count in reversed(list(enumerate(taps))):
        size = int(infer_type(made).shape[-1])
        back = np.eye(size) if size == count else np.linalg.pinv(matrices(tile_size, count)[2])
        product = operator("nn.dense")(made, const(back.astype(dtype)))
        made = operator("transpose")(product, axes=[0, 1, rank - 1, *range(2, rank - 1)]) if d or len(taps) > 1 else product
    return made


@_named("contrib_conv2d_winograd_weight_transform")
def contrib_conv2d_winograd_weight_transform(weight, tile_size):
    """Weights (O, I, h, w) in Winograd's domain, as (tile_size + h - 1, tile_size + w - 1, O, I)."""
    return _transformed(weight, tile_size, 2)


def _in_depth(taps):
    return 2 < taps[0] < 8 and taps[0] == taps[1]


@_named("contrib_conv3d_winograd_weight_transform")
def contrib_conv3d_winograd_weight_transform(weight, tile_size):
    """Weights (O, I, d, h, w) in Winograd's domain, windows first; the depth stays as it is where it is none of 3 to 7 or not the height."""
    taps = [int(d) for d in infer_type(weight).shape[2:]]
    return _transformed(weight, tile_size, 3 if _in_depth(taps) else 2)


def _without_transform(name, dims):
    letters = "DHW"[-dims:]

    def call(
        data,
        weight,
        tile_size,
        strides=(1,) * dims,
        padding=(0,) * dims,
        dilation=(1,) * dims,
        groups=1,
        channels=None,
        kernel_size=None,
        data_layout="NC" + letters,
        kernel_layout="OI" + letters,
        out_layout="",
        out_dtype="",
    ):
        if kernel_size is None:
            raise errors.TypeError(f"nn.{name} needs kernel_size, which transformed weights do not tell")
        taps = [kernel_size] * dims if isinstance(kernel_size, int) else [int(k) for k in kernel_size]
        dtype = _dtype_of(weight) or "float32"
        return convolution(dims)(
            data,
            _restored(weight, tile_size, taps, dtype),
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            channels=channels,
            kernel_size=taps,
            data_layout=data_layout,
            kernel_layout="OI" + letters,
            out_layout=out_layout,
            out_dtype=out_dtype,
        )

    call.__name__ = name
    call.__doc__ = f"`nn.conv{dims}d` with weights that the weight transform of the same name gave, for tiles of that size."
    WINOGRAD["nn." + name] = call


_without_transform("contrib_conv2d_winograd_without_weight_transform", 2)
_without_transform("contrib_conv3d_winograd_without_weight_transform", 3)

__all__ = ["WINOGRAD", "matrices"]
