# SPDX-License-Identifier: Apache-2.0
"""Where the libraries and headers are."""

import os

from ..config import include_dir, lib_dir, version


def find_lib_path(name=None, search_path=None, optional=False):
    """Paths of the libraries: of the compiler and of the runtime, or of those named. Raises RuntimeError where there is none, unless `optional`."""
    names = ["libbaton.so", "libbaton_runtime.so"] if name is None else [name] if isinstance(name, str) else list(name)
    folders = [lib_dir(), *([search_path] if isinstance(search_path, str) else search_path or [])]
    found = [path for folder in folders for n in names if os.path.exists(path := os.path.join(folder, n))]
    if not found and not optional:
        raise RuntimeError(f"none of {', '.join(names)} is in {', '.join(folders)}")
    return found or None


def find_include_path(name=None, search_path=None, optional=False):
    """Folders of the headers."""
    return [include_dir()]


__all__ = ["find_include_path", "find_lib_path", "version"]
