# SPDX-License-Identifier: Apache-2.0
"""Facts about code generators."""

from .._ffi import get_global_func


def llvm_version_major(allow_none=False):
    """The major version of LLVM that makes code. `allow_none` gives None where there is no LLVM, instead of ValueError."""
    version = get_global_func("target.llvm_version_major", allow_missing=True)
    if version is None and not allow_none:
        raise ValueError("this build makes no code with LLVM")
    return None if version is None else int(version())


__all__ = ["llvm_version_major"]
