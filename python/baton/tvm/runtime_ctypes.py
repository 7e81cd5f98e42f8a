# SPDX-License-Identifier: Apache-2.0
"""Kinds of values on the border, under the names of older programs; the numbers are those of `baton/runtime/c_runtime_api.h`."""

from ..runtime import DataType, DataTypeCode, Device


class ArgTypeCode:
    """Numbers of kinds of values."""

    NULL = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    HANDLE = 4
    TVM_TYPE = 5
    DLDEVICE = 6
    STR = 7
    BYTES = 8
    DLTENSOR_HANDLE = 9
    OBJECT_HANDLE = 64


__all__ = ["ArgTypeCode", "DataType", "DataTypeCode", "Device"]
