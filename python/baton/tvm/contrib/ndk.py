# SPDX-License-Identifier: Apache-2.0
"""The C++ compiler of Android's development kit: the environment variable TVM_NDK_CC has its path."""

import os
import subprocess

from ...error import RuntimeError


def _compiler():
    if "TVM_NDK_CC" not in os.environ:
        raise RuntimeError("the environment variable TVM_NDK_CC is not set: the path of the development kit's C++ compiler")
    return os.environ["TVM_NDK_CC"]


def create_shared(output, objects, options=None):
    """Links objects or sources to a shared library for Android."""
    objects = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    cc = _compiler()
    done = subprocess.run(
        [cc, "-o", os.fspath(output), *map(os.fspath, objects), *(options if options is not None else ["-shared", "-fPIC", "-lm"])],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"`{cc}` failed:\n{done.stderr}")


create_shared.output_format = "so"


def get_target_triple():
    """The triple that the compiler makes code for."""
    return subprocess.run([_compiler(), "-dumpmachine"], capture_output=True, text=True, check=True).stdout.strip()


create_shared.get_target_triple = lambda: get_target_triple() if "TVM_NDK_CC" in os.environ else None

__all__ = ["create_shared", "get_target_triple"]
