# SPDX-License-Identifier: Apache-2.0
"""C and C++ sources to LLVM's text, by the system's clang."""

import os
import shutil
import subprocess

from ...error import RuntimeError


def find_clang(required=True):
    """Paths of clang, the first found first. Without one a RuntimeError, or an empty list unless it is required."""
    found = [path for path in map(shutil.which, ("clang", *(f"clang-{v}" for v in range(30, 6, -1)))) if path]
    if required and not found:
        raise RuntimeError("clang was not found; install it, or give its path as cc=")
    return found


def create_llvm(inputs, output=None, options=None, cc=None):
    """LLVM's text of sources: paths, or texts of C or C++. `output`: path that it is written to as well."""
    from .utils import tempdir

    cc = cc or find_clang()[0]
    with tempdir() as folder:
        paths = []
        for i, source in enumerate([inputs] if isinstance(inputs, str) else inputs):
            if not os.path.isfile(source):
                path = folder.relpath(f"input{i}.cc")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
                source = path
            paths.append(source)
        made = output or folder.relpath("output.ll")
        done = subprocess.run([cc, "-S", "-emit-llvm", *(options or []), "-o", made, *paths], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"`{cc}` failed:\n{done.stderr}")
        with open(made, encoding="utf-8") as file:
            return file.read()


__all__ = ["create_llvm", "find_clang"]
