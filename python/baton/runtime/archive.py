# SPDX-License-Identifier: Apache-2.0
"""Archives (`.tar`) of what a module's library is linked of."""

import io
import os
import tarfile
import tempfile

from ..error import UnsupportedError


def write(module, path):
    """Writes the archive of a compiled module, whole or not at all, the same bytes for the same module."""
    if not module.implements_function("archive"):
        raise UnsupportedError(f"a module of kind `{module.type_key}` is not written as a .tar: only what was compiled in this process is")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted((str(k), bytes(v)) for k, v in module["archive"]().items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(out.getvalue())
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def library_of(path):
    """The bytes of the library that an archive is linked to, by the compiler; None for any other file."""
    if not tarfile.is_tarfile(path):
        return None
    with tarfile.open(path) as tar:
        if "manifest.json" not in tar.getnames():
            return None
    from .module import load_module

    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "library.so")
        load_module(path, fmt="tar").export_library(library)
        with open(library, "rb") as made:
            return made.read()


__all__ = ["library_of", "write"]
