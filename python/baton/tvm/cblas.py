# SPDX-License-Identifier: Apache-2.0
"""Products of matrices under the names of BLAS; they are made of the compiler's own kernels. The functions that programs call by
`tir.call_packed` are NumPy's."""

import numpy as np

from .._ffi import register_func
from . import topi


def matmul(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of two matrices, as a tensor of te."""
    return topi.matmul(lhs, rhs, transa, transb)


def batch_matmul(lhs, rhs, transa=False, transb=False, iterative=False, **kwargs):
    """The products of two batches of matrices, as a tensor of te."""
    return topi.nn.batch_matmul(lhs, rhs, transpose_a=transa, transpose_b=transb)


def matmul_u8s8s32(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of a matrix of uint8 and one of int8, in int32."""
    return topi.matmul(topi.cast(lhs, "int32"), topi.cast(rhs, "int32"), transa, transb)


def _product(a, b, out, transa=0, transb=0, *_):
    a, b = (np.asarray(x.numpy(), "int32" if x.dtype in ("int8", "uint8") else None) for x in (a, b))
    out.copyfrom(np.matmul(np.swapaxes(a, -1, -2) if transa else a, np.swapaxes(b, -1, -2) if transb else b).astype(out.dtype))


for _library in ("cblas", "mkl", "mkldnn", "dnnl"):
    for _name in ("matmul", "batch_matmul", "matmul_u8s8s32"):
        register_func(f"tvm.contrib.{_library}.{_name}", _product, override=True)

__all__ = ["batch_matmul", "matmul", "matmul_u8s8s32"]
