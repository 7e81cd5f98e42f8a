# SPDX-License-Identifier: Apache-2.0
"""Archives (`.tar`) of what a module's library is linked of."""

import io
import os
import tarfile

from ..error import UnsupportedError


def write(module, path):
    """Writes the archive of a compiled module, whole or not at all, the same bytes for the same module."""
    if not module.implements_function("archive"):
        raise UnsupportedError(f"a module of kind `{module.type_key}` is not written as a .tar: only what was compiled in this process is")
    data = packed({str(k): bytes(v) for k, v in module["archive"]().items()})
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def packed(files):
    """The bytes of the archive of files by their names: the same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def is_archive(path):
    """Whether a file is what `write` wrote."""
    if not tarfile.is_tarfile(path):
        return False
    with tarfile.open(path) as tar:
        return "manifest.json" in tar.getnames()


__all__ = ["is_archive", "packed", "write"]
