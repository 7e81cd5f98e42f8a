# SPDX-License-Identifier: Apache-2.0
"""Matrices of Winograd's convolution as tensors, under the name of older programs."""

from .. import te
from ..relay.op.winograd import matrices
from .topi.utils import const_matrix


def winograd_transform_matrices(tile_size, kernel_size, out_dtype):
    """(A, B, G) for tiles of `tile_size` results and `kernel_size` weights: result = A'((G w) * (B' data)), in each dimension."""
    if not 1 < tile_size < 9 or not 1 < kernel_size < 8:
        raise ValueError(f"tiles have 2 to 8 results and kernels 2 to 7 weights, not {tile_size} and {kernel_size}")
    a, b, g = (m.astype(out_dtype) for m in matrices(tile_size, kernel_size))
    return const_matrix(a, "A"), const_matrix(b, "B"), const_matrix(g, "G")


def _transformed(kernel, tile_size, dimensions):
    """A weight, whose last dimensions are the window, with so many of those, the last ones, transformed and all of them in front of (O, I)."""
    size = int(kernel.shape[-1])
    if any(int(n) != size for n in kernel.shape[len(kernel.shape) - dimensions :]):
        raise ValueError(f"the window of a Winograd convolution is as high as it is wide, not {[int(d) for d in kernel.shape[2:]]}")
    _, _, g = winograd_transform_matrices(tile_size, size, str(kernel.dtype))
    window = [te.reduce_axis((0, size), name) for name in "abc"[:dimensions]]
    kept = [int(n) for n in kernel.shape[2 : len(kernel.shape) - dimensions]]
    tile = tile_size + size - 1

    def element(*at):
        place, (o, i) = at[:-2], at[-2:]
        depth, within = place[dimensions:], place[:dimensions]
        product = kernel(o, i, *depth, *window)
        for t, w in zip(within, window, strict=True):
            product = product * g(t, w)
        return te.sum(product, axis=window)

    return te.compute([tile] * dimensions + kept + [kernel.shape[0], kernel.shape[1]], element, name="transform_weight")


def conv2d_winograd_weight_transform(kernel, tile_size):
    """A weight (O, I, H, W) as Winograd's convolution multiplies it: (tile, tile, O, I), tile = tile_size + H - 1."""
    return _transformed(kernel, tile_size, 2)


def conv3d_winograd_weight_transform(kernel, tile_size):
    """A weight (O, I, D, H, W) as Winograd's convolution multiplies it: (tile, tile, tile, O, I); (tile, tile, D, O, I) where D is not H."""
    return _transformed(kernel, tile_size, 3 if int(kernel.shape[2]) == int(kernel.shape[4]) else 2)


__all__ = ["conv2d_winograd_weight_transform", "conv3d_winograd_weight_transform", "winograd_transform_matrices"]
