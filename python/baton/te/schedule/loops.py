# SPDX-License-Identifier: Apache-2.0
"""The loops of a stage's axes, and their extents."""

from ..._core import Object
from .. import _ffi_api


class IterVarRelation(Object, key="te.IterVarRelation"):
    """A loop, or loops, that became others."""

    __slots__ = ()


class Split(IterVarRelation, key="te.Split"):
    """A split loop: parent == outer * extent of inner + inner."""

    __slots__ = ()


class Fuse(IterVarRelation, key="te.Fuse"):
    """Two fused loops: fused == outer * extent of inner + inner."""

    __slots__ = ()


class Singleton(IterVarRelation, key="te.Singleton"):
    """A loop of one round, of a stage without axes."""

    __slots__ = ()


def literal(e):
    """The value of an integer literal; None for another expression."""
    return getattr(e, "value", None) if e.type_key == "IntImm" else None


class Loops:
    """The loops of a stage whose axes have these extents: the extent of each loop, and each axis as an expression of loops."""

    def __init__(self, stage, extents):
        found = _ffi_api.StageLoops(stage, extents)
        self.stage, self.inexact = stage, list(found.inexact)
        self._extents = {v.handle: e for v, e in found.extents.items()}
        self._values = {v.handle: e for v, e in found.values.items()}

    def extent(self, iv):
        """The extent of a loop."""
        return self._extents[iv.var.handle]

    def value(self, iv):
        """An axis, or a loop that was split or fused, as an expression of the loops; counted from 0."""
        return self._values[iv.var.handle]

    def conditions(self, reduce):
        """The conditions on the loops of the reduction, or on the others, where factors do not divide."""
        return [self.value(iv) < self.extent(iv) for iv in self.inexact if self.stage.is_reduce(iv) == reduce]
