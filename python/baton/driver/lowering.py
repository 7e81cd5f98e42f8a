# SPDX-License-Identifier: Apache-2.0
"""The output of the pass LowerToTIR in a module beside PrimFuncs."""

from .._core import Object
from .._ffi import register_object


@register_object("driver.Lowering")
class Lowering(Object):
    """How lowered functions are called, and on what data: the attribute `lowering` of a module that LowerToTIR made."""


__all__ = ["Lowering"]
