# SPDX-License-Identifier: Apache-2.0
"""A reader of the safetensors format that believes nothing it has not checked.

The format: 8 bytes with the length of the header (little endian), the header as JSON, then the tensors' bytes.
Source: https://github.com/huggingface/safetensors, section "Format".
"""

from __future__ import annotations

import json
import mmap
import os

import numpy as np

MAX_HEADER = 100_000_000  # bytes; the limit that the format's own reader has
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?",
}  # fmt: skip


class SafetensorsError(ValueError):
    """The file is not a whole and well-formed safetensors file."""


def _unique(pairs):
    out = {}
    for key, value in pairs:
        if key in out:
            raise SafetensorsError(f"the header names `{key}` twice")
        out[key] = value
    return out


def _natural(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _entry(name: str, entry, data_size: int):
    """(dtype, shape, begin, end) of one header entry, or an error that names it."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise SafetensorsError(f"tensor `{name}` lacks dtype, shape or data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise SafetensorsError(f"tensor `{name}` has dtype {dtype!r}; known are {', '.join(_DTYPES)}")
    if not isinstance(shape, list) or not all(map(_natural, shape)):
        raise SafetensorsError(f"tensor `{name}` has shape {shape!r}; a list of whole numbers is needed")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_natural, offsets)):
        raise SafetensorsError(f"tensor `{name}` has data_offsets {offsets!r}; [begin, end] is needed")
    begin, end = offsets
    if begin > end or end > data_size:
        raise SafetensorsError(f"tensor `{name}` is at [{begin}, {end}), outside the {data_size} bytes of data")
    size = np.dtype(_DTYPES[dtype]).itemsize
    for dim in shape:  # Python integers do not overflow
        size *= dim
    if size != end - begin:
        raise SafetensorsError(f"tensor `{name}` needs {size} bytes for {dtype} {shape}, its range holds {end - begin}")
    return np.dtype(_DTYPES[dtype]), tuple(shape), begin, end


def read_safetensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The tensors of the file by name, as read-only arrays over the mapped file (nothing is copied).

    Raises SafetensorsError where the file is cut, overlapping, or not of this format; OSError where it cannot be read.
    """
    with open(path, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        if total < 8:
            raise SafetensorsError(f"`{path}` has {total} bytes; a safetensors file starts with 8 bytes of length")
        length = int.from_bytes(file.read(8), "little")
        if length > min(MAX_HEADER, total - 8):
            raise SafetensorsError(f"`{path}` announces a header of {length} bytes, the file has {total - 8} more")
        try:
            header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_unique)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise SafetensorsError(f"the header of `{path}` is not JSON: {error}") from None
        if not isinstance(header, dict):
            raise SafetensorsError(f"the header of `{path}` is not a JSON object")
        header.pop("__metadata__", None)
        data_size = total - 8 - length
        entries = {name: _entry(name, entry, data_size) for name, entry in header.items()}
        at, last = 0, "the start"
        for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
            if begin != at:
                what = "overlaps" if begin < at else "leaves a hole after"
                raise SafetensorsError(f"tensor `{name}` {what} {last}")
            at, last = end, f"`{name}`"
        if at != data_size:
            raise SafetensorsError(f"{data_size - at} bytes at the end of `{path}` belong to no tensor")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tensors = {}
    for name, (dtype, shape, begin, end) in entries.items():
        array = np.frombuffer(mapped, np.uint8, end - begin, 8 + length + begin) if end > begin else np.empty(0, np.uint8)
        tensors[name] = array.view(dtype).reshape(shape)
    return tensors
