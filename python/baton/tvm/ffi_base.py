# SPDX-License-Identifier: Apache-2.0
"""Names of `baton._ffi.base` for programs that use ctypes, or that ran on Python 2, too."""

string_types = (str,)
integer_types = (int,)
numeric_types = (int, float)


def py_str(x):
    """Text of bytes; text stays."""
    return x.decode("utf-8") if isinstance(x, (bytes, bytearray)) else x


def c_str(string):
    """Text as bytes that C reads; for programs that use ctypes."""
    import ctypes

    return ctypes.c_char_p(string.encode("utf-8"))
