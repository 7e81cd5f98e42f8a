# SPDX-License-Identifier: Apache-2.0
"""Element types, as strings that know their bits and lanes."""

import enum
import re

from .. import _core


class DataTypeCode(enum.IntEnum):
    """Kinds of element types, with DLPack's numbers."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6


_CODES = {
    "int": 0,
    "uint": 1,
    "float": 2,
    "handle": 3,
    "bfloat": 4,
    "complex": 5,
    "bool": 6,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
    "float6_e2m3fn": 15,
    "float6_e3m2fn": 16,
    "float4_e2m1fn": 17,
}
_NUMBERED = re.compile(r"(int|uint|float|bfloat|complex|handle)(\d+)?$")


_known = {"void", "", "bool"}  # of those that were asked for


def _without_lanes(name):
    """("int8", "4") of "int8x4"; the x of complex64 is none that says how many lanes."""
    head, x, lanes = name.rpartition("x")
    return (head, lanes) if x and lanes.isdigit() and head != "comple" else (str(name), "1")


def _is_known(name):
    head = _without_lanes(name)[0]
    if _NUMBERED.match(head) or head in _CODES or head == "void" or head.startswith("custom["):
        _known.add(name)
        return True
    return False


class DataType(str):
    """An element type: its name, as "float32", "int8x4", "bool", "bfloat16"; equal to the plain string."""

    __slots__ = ()

    def __new__(cls, name="void"):
        if cls is DataType and name not in _known and not _is_known(str(name)):
            raise ValueError(f"there is no element type {str(name)!r}")
        if name[:5] == "uint1" and name[5:6] in ("", "x"):  # as bools were written once
            name = "bool" + name[5:]
        return str.__new__(_NoType if cls is DataType and name == "void" else cls, name)

    def _parts(self):
        head, lanes = _without_lanes(self)
        match = _NUMBERED.match(head)
        if match:
            return match[1], int(match[2] or 64), int(lanes)
        narrow = re.match(r"float([468])_", head)
        return head, int(narrow[1]) if narrow else 8, int(lanes)

    @property
    def bits(self):
        """Bits of one lane."""
        return self._parts()[1]

    @property
    def lanes(self):
        """Lanes of a vector; 1 for a scalar."""
        return self._parts()[2]

    @property
    def type_code(self):
        """DLPack's number of the kind."""
        return _CODES.get(self._parts()[0], 3)

    @property
    def itemsize(self):
        """Bytes of one value with its lanes."""
        return (self.bits * self.lanes + 7) // 8

    def __reduce__(self):
        return DataType, (str(self),)


class _NoType(DataType):
    """The type of nothing, which attributes have for a dtype that is not given; equal to "", too, and false."""

    __slots__ = ()

    def __eq__(self, other):
        return other in ("void", "") if type(other) is str else isinstance(other, _NoType)

    def __ne__(self, other):
        return not self == other

    def __bool__(self):
        return False

    __hash__ = str.__hash__


def numpy_dtype(name):
    """NumPy's dtype of a type by name; the narrow ones come from ml_dtypes."""
    import numpy as np

    try:
        return np.dtype(str(name))
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, str(name)))


_core.set_dtype_class(DataType)
