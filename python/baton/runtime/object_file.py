# SPDX-License-Identifier: Apache-2.0
"""Object files that a linker makes libraries of: the facts of the code for the runtime are behind the object, and behind the library
that is linked from it. `src/runtime/artifact_format.h` has the form."""

import hashlib
import os
import struct
import tempfile

_MARK = b"BATONOBJ"
_TRAILER = struct.Struct("<QQQQII")
_MAGIC = b"BATONART"


def write_object(path, object_of, library_of):
    """Writes an object file. `object_of` and `library_of` write the object and the library of a module to a path."""
    with tempfile.TemporaryDirectory() as folder:
        code, library = os.path.join(folder, "code.o"), os.path.join(folder, "library.so")
        object_of(code)
        library_of(library)
        with open(library, "rb") as f:
            data = f.read()
        _, _, at, size, _, _ = _TRAILER.unpack(data[-8 - 32 - _TRAILER.size : -8 - 32])
        with open(code, "rb") as f:
            whole = f.read() + data[at : at + size] + struct.pack("<Q", size) + _MARK
    with open(path, "wb") as f:
        f.write(whole)


def manifest_of(path):
    """Returns the text behind an object file; None for another file."""
    with open(path, "rb") as f:
        data = f.read()
    if not data.endswith(_MARK):
        return None
    (size,) = struct.unpack("<Q", data[-16:-8])
    return data[-16 - size : -16]


def finish_library(path, objects):
    """Lets the runtime load a library, if it was linked from an object file of ours. Raises ValueError for several."""
    manifests = [m for m in map(manifest_of, objects) if m is not None]
    if not manifests:
        return
    if len(manifests) > 1:
        raise ValueError("a library is linked from one compiled object: build one module of all functions")
    with open(path, "rb") as f:
        data = f.read()
    # No constants: one byte stands for them.
    data += bytes(-len(data) % 64)
    constants = len(data)
    data += bytes(64)
    manifest = len(data)
    data += manifests[0] + _TRAILER.pack(constants, _size_of_constants(manifests[0]), manifest, len(manifests[0]), 1, 0)
    with open(path, "wb") as f:
        f.write(data + hashlib.sha256(data).digest() + _MAGIC)


def _size_of_constants(manifest):
    import json

    return int(json.loads(manifest)["constants_bytes"])


__all__ = ["finish_library", "manifest_of", "write_object"]
