# SPDX-License-Identifier: Apache-2.0
"""Abilities of NVIDIA's GPUs, by compute capability. No code is made for them."""

from ..error import UnsupportedError


def parse_compute_version(compute_version):
    """(major, minor) of a compute capability, as "7.5". Raises ValueError for another text."""
    try:
        major, minor = str(compute_version).split(".")
        return int(major), int(minor)
    except ValueError:
        raise ValueError(f"{compute_version!r} is not a compute capability; one is written as 7.5") from None


def get_target_compute_version(target=None):
    """The compute capability of a target's `-arch=sm_70`, as "7.0". Raises ValueError where it has none."""
    from ..target import Target

    target = target if target is not None else Target.current()
    arch = "" if target is None else target.attrs.get("arch", "")
    if not arch.startswith("sm_"):
        raise ValueError("the target says no compute capability; it is written as -arch=sm_70")
    return f"{arch[3:-1]}.{arch[-1]}"


def find_cuda_path():
    """Not there: no code is made for NVIDIA's GPUs."""
    raise UnsupportedError("no code is made for NVIDIA's GPUs; there is code for c, llvm and opencl")


def have_fp16(compute_version):
    """Whether there is arithmetic of float16: from 5.3 on."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version):
    """Whether there are products of four int8: from 6.1 on."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_bf16(compute_version):
    """Whether there is arithmetic of bfloat16: from 8.0 on."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_tensorcore(compute_version=None, target=None):
    """Whether there are units for products of matrices: from 7.0 on. Without a version, that of a target's `-arch=sm_70`."""
    if compute_version is None:
        arch = target.attrs.get("arch", "") if target is not None else ""
        if not arch.startswith("sm_"):
            return False
        compute_version = f"{arch[3:-1]}.{arch[-1]}"
    return parse_compute_version(compute_version) >= (7, 0)


def compile_cuda(code, target_format="ptx", arch=None, options=None, path_target=None):
    """Not there: no code is made for NVIDIA's GPUs."""
    raise UnsupportedError("no code is made for NVIDIA's GPUs; there is code for c, llvm and opencl")


__all__ = ["compile_cuda", "find_cuda_path", "get_target_compute_version", "have_bf16", "have_fp16", "have_int8", "have_tensorcore", "parse_compute_version"]
