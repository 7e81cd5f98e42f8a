# SPDX-License-Identifier: Apache-2.0
"""Quantized operators: `relay.qnn.op.quantize(...)`."""


def __getattr__(name):
    from ..op import find
    group = find("qnn")
    if name == "op" and group is not None:
        return group
    if name == "transform":
        from .. import transform
        return transform
    if group is not None and not name.startswith("__"):
        return getattr(group, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
