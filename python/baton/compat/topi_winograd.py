# SPDX-License-Identifier: Apache-2.0
"""Matrices of Winograd's convolution as tensors, under the name of older programs."""

from ..relay.op.winograd import matrices
from ..topi.utils import const_matrix


def winograd_transform_matrices(tile_size, kernel_size, out_dtype):
    """(A, B, G) for tiles of `tile_size` results and `kernel_size` weights: result = A'((G w) * (B' data)), in each dimension."""
    if not 1 < tile_size < 9 or not 1 < kernel_size < 8:
        raise ValueError(f"tiles have 2 to 8 results and kernels 2 to 7 weights, not {tile_size} and {kernel_size}")
    a, b, g = (m.astype(out_dtype) for m in matrices(tile_size, kernel_size))
    return const_matrix(a, "A"), const_matrix(b, "B"), const_matrix(g, "G")


__all__ = ["winograd_transform_matrices"]
