# SPDX-License-Identifier: Apache-2.0
"""Classes of operators' attributes: `baton.relay.op.op_attrs.Conv2DAttrs` is "relay.attrs.Conv2DAttrs"."""

from ..._ffi import get_global_func
from ..._ffi.object import attach_classes
from ...ir import Attrs

attach_classes(__name__, "relay.attrs.")


def __dir__():
    found = (str(row[0]) for row in get_global_func("node.ListTypes")())
    return sorted({*globals(), *(k[len("relay.attrs.") :] for k in found if k.startswith("relay.attrs."))})


__all__ = ["Attrs"]
