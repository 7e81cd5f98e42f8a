# SPDX-License-Identifier: Apache-2.0
"""The rules, by subject; importing this fills the table."""

from . import (
    attention,
    bessel,
    binary,
    complex,
    convolution,
    counting,
    create,
    eigen,
    index,
    linalg,
    linear,
    norm,
    pooling,
    quantized,
    reduce,
    refused,
    shape,
    special,
    unary,
    vision,
)

__all__ = ()  # the table has the rules; nothing else calls them
