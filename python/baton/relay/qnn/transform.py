# SPDX-License-Identifier: Apache-2.0
"""Passes over operators on quantized tensors."""

from ..transform import Legalize as _Legalize
from ..transform import _ffi_api


def CanonicalizeOps():
    """Operators on quantized tensors (qnn.*) become the plain operators that they are defined by."""
    return _ffi_api.QnnCanonicalize()


def Legalize():
    """Replaces calls by what their operator's function of `relay.qnn.op.register_qnn_legalize` makes of them."""
    return _Legalize("FTVMQnnLegalize")


__all__ = ["CanonicalizeOps", "Legalize"]
