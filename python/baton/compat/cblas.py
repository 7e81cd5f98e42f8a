# SPDX-License-Identifier: Apache-2.0
"""Products of matrices under the names of BLAS; they are made of the compiler's own kernels."""

from .. import topi


def matmul(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of two matrices, as a tensor of te."""
    return topi.matmul(lhs, rhs, transa, transb)


def batch_matmul(lhs, rhs, transa=False, transb=False, iterative=False, **kwargs):
    """The products of two batches of matrices, as a tensor of te."""
    return topi.nn.batch_matmul(lhs, rhs, transpose_a=transa, transpose_b=transb)


def matmul_u8s8s32(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of a matrix of uint8 and one of int8, in int32."""
    return topi.matmul(topi.cast(lhs, "int32"), topi.cast(rhs, "int32"), transa, transb)


__all__ = ["batch_matmul", "matmul", "matmul_u8s8s32"]
