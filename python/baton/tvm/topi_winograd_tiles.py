# SPDX-License-Identifier: Apache-2.0
"""How large the tiles of a Winograd convolution are, under the names of programs that choose convolutions themselves."""

from .topi.utils import get_const_int
from .topi_targets import __getattr__  # noqa: F401 - the operators of the package


def _infer_tile_size(data, kernel, layout=None):
    """Results along a side of a tile: 4 where the height is a multiple of 8, else 2. layout: of `data`, (N, C, ..., H, W) if it is not given."""
    height = data.shape[layout.index("H") if layout else -2]
    return 4 if get_const_int(height) % 8 == 0 else 2
