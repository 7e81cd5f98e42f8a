# SPDX-License-Identifier: Apache-2.0
"""Modules of archives (`.tar`), object files and C sources: the compiler links them to what the runtime loads."""

import io
import tarfile

from .._ffi import get_global_func, load_compiler
from ..error import RuntimeError
from ..runtime.archive import packed

MEMBERS = ("SHA256SUMS", "code.o", "code.c", "constants.bin", "data.s", "imports.bin", "manifest.json")


def read(path, fmt=""):
    """The module of an archive, an object file or a C source. RuntimeError for a file that is damaged."""
    load_compiler()
    kind = fmt or path.rpartition(".")[2]
    with open(path, "rb") as file:
        data = file.read()
    if kind == "tar":
        return get_global_func("driver.LoadArchive")(_members(path, data))
    return get_global_func("driver.LoadArchive")({f"code.{kind}": data})


def _members(path, data):
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                if member.name not in MEMBERS or not member.isfile():
                    raise RuntimeError(f"`{path}` is no archive of a module: it holds `{member.name}`")
                files[member.name] = tar.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise RuntimeError(f"`{path}` is damaged: {error}; write it again") from error
    if not any(name in files for name in ("code.o", "code.c")) or "manifest.json" not in files:
        raise RuntimeError(f"`{path}` is cut, or no archive of a module: it lacks its code or its manifest")
    if packed(files) != data:  # digests are of files; this is of all between them
        raise RuntimeError(f"`{path}` is damaged, or was packed by another program than `export_library`; copy or write it again")
    return files


__all__ = ["MEMBERS", "read"]
