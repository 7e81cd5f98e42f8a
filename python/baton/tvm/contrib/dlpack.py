# SPDX-License-Identifier: Apache-2.0
"""Functions that take arrays of other projects."""

from ...runtime.ndarray import from_dlpack


def convert_func(tvm_func, tensor_type, to_dlpack_func=None):
    """A function that takes tensors of `tensor_type` and hands them to `tvm_func` without copies. Without `to_dlpack_func`, by the protocol of
    DLPack."""

    def converted(*args):
        return tvm_func(*(from_dlpack(arg if to_dlpack_func is None else to_dlpack_func(arg)) if isinstance(arg, tensor_type) else arg for arg in args))

    return converted


def to_pytorch_func(tvm_func):
    """A function that takes tensors of PyTorch."""
    import torch

    return convert_func(tvm_func, torch.Tensor)


__all__ = ["convert_func", "to_pytorch_func"]
