# SPDX-License-Identifier: Apache-2.0
"""Quantized tensors of tensor expressions, simulated in floats."""

from ..relay.qnn import op as qnn
from .topi import apply

SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = 0, 1, 2, 3
SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {v: k for k, v in SQNN_DTYPE_TO_CODE.items()}


def _dtype(dtype):
    """The dtype of a name, or of the number that stands for it. Raises TypeError for a tensor: the dtype is known when code is made."""
    if not isinstance(dtype, (str, int)):
        raise TypeError(f"a dtype is given by name, as \"int8\", or by its number, not as a {type(dtype).__name__}")
    return SQNN_CODE_TO_DTYPE[dtype] if isinstance(dtype, int) else dtype


def simulated_quantize(data, out_dtype, output_scale=None, output_zero_point=None, axis=-1):
    """Rounded and clipped to a dtype, as floats."""
    return apply(qnn.simulated_quantize, data, output_scale, output_zero_point, axis=axis, out_dtype=_dtype(out_dtype))


def simulated_dequantize(data, in_dtype, input_scale=None, input_zero_point=None, axis=-1):
    """The numbers that values of `simulated_quantize` stand for."""
    return apply(qnn.simulated_dequantize, data, input_scale, input_zero_point, axis=axis, in_dtype=_dtype(in_dtype))


__all__ = ["SQNN_CODE_TO_DTYPE", "SQNN_DTYPE_TO_CODE", "simulated_dequantize", "simulated_quantize"]
