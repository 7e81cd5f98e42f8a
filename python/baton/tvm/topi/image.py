# SPDX-License-Identifier: Apache-2.0
"""Operators of `baton.relay.image` on tensors of tensor expressions."""

from .convolutions import margins
from .functions import apply, find_operator, operators


def dilation2d_nchw(input, filter, stride, padding, dilations, out_dtype=None):  # noqa: A002
    """The largest sums of a window of (N, C, H, W) and a weight (C, H, W)."""
    return apply(
        find_operator("image.dilation2d"), input, filter, stride, margins(padding, filter, "IHW", dilations), dilations, "NCHW", "IHW", out_dtype or ""
    )


def dilation2d_nhwc(input, filter, stride, padding, dilations, out_dtype=None):  # noqa: A002
    """The largest sums of a window of (N, H, W, C) and a weight (H, W, C)."""
    return apply(
        find_operator("image.dilation2d"), input, filter, stride, margins(padding, filter, "HWI", dilations), dilations, "NHWC", "HWI", out_dtype or ""
    )


__getattr__, __dir__ = operators("image.", __name__, globals())
