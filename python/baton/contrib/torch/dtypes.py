# SPDX-License-Identifier: Apache-2.0
"""PyTorch's dtypes and Relay's."""

from __future__ import annotations

import torch

from ...error import UnsupportedError

RELAY_OF = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.uint16: "uint16",
    torch.uint32: "uint32",
    torch.uint64: "uint64",
    torch.bool: "bool",
}
TORCH_OF = {name: dtype for dtype, name in RELAY_OF.items()}


def relay_dtype(dtype) -> str:
    """Relay's name of a dtype. Raises UnsupportedError for one that Relay lacks, as complex numbers."""
    name = RELAY_OF.get(dtype)
    if name is None:
        raise UnsupportedError(f"tensors of {dtype}: Relay has no such dtype")
    return name


def is_float(dtype: str) -> bool:
    """Whether a dtype of Relay holds floating numbers."""
    return dtype.startswith(("float", "bfloat"))
