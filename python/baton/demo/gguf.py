# SPDX-License-Identifier: Apache-2.0
"""Reads GGUF files, in which llama.cpp and others keep models: facts by name, tensors as NumPy arrays. Source: the format's public specification.

Weights in blocks of 32 (Q4_0, Q4_1, Q8_0) are given as they are, numbers with a scale (and a zero point) each block, or as float32.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _LIST = 8, 9
_BLOCK = 32
#        elements in a block, bytes of it
_TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", _BLOCK, 18), 3: ("Q4_1", _BLOCK, 20), 8: ("Q8_0", _BLOCK, 34), 30: ("BF16", 1, 2)}
_MOST = 1 << 28  # elements of a list; a length beyond it is wrong


class GgufError(ValueError):
    """The file is not what the format says; the message says where."""


class Blocks(NamedTuple):
    """A matrix (rows, columns) of `bits` bits: w = (q - zero) * scale. `q`: uint8 (rows, columns), a number a byte; `scale` float32 and `zero`
    float32 (rows, columns / 32)."""

    bits: int
    q: np.ndarray
    scale: np.ndarray
    zero: np.ndarray

    def floats(self) -> np.ndarray:
        rows, columns = self.q.shape
        parts = self.q.reshape(rows, -1, _BLOCK).astype(np.float32)
        return ((parts - self.zero[..., None]) * self.scale[..., None]).reshape(rows, columns)


class Gguf:
    """A file: `facts` by name; `names`, `shape(name)`, `blocks(name)`, `floats(name)` of tensors. Shapes are NumPy's, the last extent runs
    fastest.
    """

    def __init__(self, path):
        self.path = Path(path)
        with open(self.path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.path.stat().st_size else b""
        self._at = 0
        if self._take(4) != b"GGUF":
            self._fail("it does not begin with GGUF")
        version = self._number("I")
        if version not in (2, 3):
            self._fail(f"version {version}, where 2 and 3 are read")
        tensors, facts = self._length(), self._length()
        self.facts = {self._string(): self._value(self._number("I")) for _ in range(facts)}
        self._infos = {}
        for _ in range(tensors):
            name, rank = self._string(), self._number("I")
            if rank > 8:
                self._fail(f"tensor `{name}` has rank {rank}")
            shape = tuple(self._length() for _ in range(rank))[::-1]
            self._infos[name] = (shape, self._number("I"), self._number("Q"))
        alignment = int(self.facts.get("general.alignment", 32)) or 1
        self._begin = -(-self._at // alignment) * alignment

    @property
    def names(self) -> list[str]:
        return list(self._infos)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._info(name)[0]

    def blocks(self, name: str) -> Blocks | None:
        """A matrix as it is stored; None where it is one of floats."""
        shape, kind, raw = self._raw(name)
        if len(shape) != 2 or kind not in ("Q4_0", "Q4_1", "Q8_0"):
            return None
        rows, each = shape[0], shape[1] // _BLOCK
        raw = raw.reshape(rows, each, -1)
        scale = raw[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
        if kind == "Q8_0":
            q = (raw[..., 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint8)
            return Blocks(8, q.reshape(shape), scale, np.full_like(scale, 128))
        codes = raw[..., 4:] if kind == "Q4_1" else raw[..., 2:]
        q = np.concatenate([codes & 15, codes >> 4], axis=-1).reshape(shape)
        if kind == "Q4_0":
            return Blocks(4, q, scale, np.full_like(scale, 8))
        least = raw[..., 2:4].copy().view(np.float16)[..., 0].astype(np.float32)
        # w = q * scale + least; a block of one value has the scale 0, and its value as zero point of the scale 1.
        flat = scale == 0
        q = np.where(np.repeat(flat, _BLOCK, axis=-1), 0, q).astype(np.uint8)
        return Blocks(4, q, np.where(flat, 1, scale), -np.where(flat, least, least / np.where(flat, 1, scale)))

    def floats(self, name: str) -> np.ndarray:
        """A tensor as float32."""
        shape, kind, raw = self._raw(name)
        if kind == "F32":
            return raw.view(np.float32).reshape(shape)
        if kind == "F16":
            return raw.view(np.float16).reshape(shape).astype(np.float32)
        if kind == "BF16":
            return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
        found = self.blocks(name)
        if found is None:
            raise GgufError(f"`{self.path}`: tensor `{name}` is {kind} of rank {len(shape)}, where matrices are read")
        return found.floats()

    def _info(self, name: str):
        if name not in self._infos:
            raise GgufError(f"`{self.path}` has no tensor `{name}`; it has {', '.join(self.names[:8])}, ...")
        return self._infos[name]

    def _raw(self, name: str):
        """(shape, kind, bytes)."""
        shape, number, offset = self._info(name)
        if number not in _TYPES:
            known = ", ".join(kind for kind, _, _ in _TYPES.values())
            raise GgufError(f"`{self.path}`: tensor `{name}` is of type {number}; {known} are read: convert the model to one of these")
        kind, elements, size = _TYPES[number]
        count = int(np.prod(shape, dtype=object)) if shape else 1
        begin, length = self._begin + offset, count // elements * size
        if count % elements or (elements > 1 and shape[-1] % elements) or begin + length > len(self._data):
            raise GgufError(f"`{self.path}`: tensor `{name}` {shape} does not lie within the file")
        return shape, kind, np.frombuffer(self._data, np.uint8, length, begin)

    def _fail(self, what: str):
        raise GgufError(f"`{self.path}` is not a GGUF file that is read here: {what}")

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            self._fail(f"it ends at byte {len(self._data)}, within a value")
        out = self._data[self._at : self._at + size]
        self._at += size
        return out

    def _number(self, form: str):
        return struct.unpack("<" + form, self._take(struct.calcsize("<" + form)))[0]

    def _length(self) -> int:
        length = self._number("Q")
        if length > _MOST:
            self._fail(f"a length of {length} at byte {self._at - 8}")
        return length

    def _string(self) -> str:
        return self._take(self._length()).decode("utf-8", "replace")

    def _value(self, kind: int, inner: bool = False):
        if kind == _STRING:
            return self._string()
        if kind == _LIST and not inner:
            of, count = self._number("I"), self._length()
            if of in _SCALARS:
                form = f"<{count}{_SCALARS[of]}"
                return list(struct.unpack(form, self._take(struct.calcsize(form))))
            return [self._value(of, True) for _ in range(count)]
        if kind not in _SCALARS:
            self._fail(f"a value of type {kind} at byte {self._at}")
        return self._number(_SCALARS[kind])
