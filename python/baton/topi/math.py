# SPDX-License-Identifier: Apache-2.0
"""The elementwise operators, under the name of the file that older programs take them from: `topi.math.cast` is `topi.cast`."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .. import topi
    return getattr(topi, name)


__all__ = []
