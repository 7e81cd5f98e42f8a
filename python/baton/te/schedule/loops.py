# SPDX-License-Identifier: Apache-2.0
"""The loops of a stage's axes, and their extents."""

from ...arith import Analyzer
from ...tir import op


class Split:
    """A split loop: parent == outer * extent of inner + inner."""

    def __init__(self, parent, outer, inner, factor=None, nparts=None):
        self.parent, self.outer, self.inner, self.factor, self.nparts = parent, outer, inner, factor, nparts


class Fuse:
    """Two fused loops: fused == outer * extent of inner + inner."""

    def __init__(self, outer, inner, fused):
        self.outer, self.inner, self.fused = outer, inner, fused


class Singleton:
    """A loop of one round, of a stage without axes."""

    def __init__(self, iter):  # noqa: A002
        self.iter = iter


def literal(e):
    """The value of an integer literal; None for another expression."""
    return getattr(e, "value", None) if e.type_key == "IntImm" else None


class Loops:
    """The loops of a stage whose axes have these extents: the extent of each loop, and each axis as an expression of loops."""

    def __init__(self, stage, extents):
        self.stage, self.simplify = stage, Analyzer().simplify
        self._extents = dict(extents)
        self.inexact = []
        for r in stage.relations:
            if isinstance(r, Singleton):
                self._extents[r.iter.var.handle] = op.const(1, "int64")
            elif isinstance(r, Split):
                whole = self._extents[r.parent.var.handle]
                if r.factor is not None:
                    inner = self._at_most(op.convert(r.factor), whole)
                else:
                    inner = self._ceildiv(whole, self._at_most(op.convert(r.nparts), whole))
                outer = self._ceildiv(whole, inner)
                self._extents[r.outer.var.handle], self._extents[r.inner.var.handle] = outer, inner
                if literal(self.simplify(outer * inner - whole)) != 0:
                    self.inexact.append(r.parent)
            else:
                self._extents[r.fused.var.handle] = self.simplify(self._extents[r.outer.var.handle] * self._extents[r.inner.var.handle])
        # From the loops back to the axes.
        self._values = {iv.var.handle: iv.var for iv in stage.leaf_iter_vars}
        for r in reversed(stage.relations):
            if isinstance(r, Singleton):
                continue
            if isinstance(r, Split):
                outer, inner = self._values[r.outer.var.handle], self._values[r.inner.var.handle]
                self._values[r.parent.var.handle] = self.simplify(outer * self._extents[r.inner.var.handle] + inner)
            else:
                fused, inner = self._values[r.fused.var.handle], self._extents[r.inner.var.handle]
                self._values[r.outer.var.handle] = self.simplify(op.floordiv(fused, inner))
                self._values[r.inner.var.handle] = self.simplify(op.floormod(fused, inner))

    def _at_most(self, n, whole):
        small, large = literal(op.convert(n)), literal(whole)
        n = op.const(small, "int64") if small is not None else n
        return op.const(max(large, 1), "int64") if small is not None and large is not None and small > large else n

    def _ceildiv(self, a, b):
        return self.simplify(op.floordiv(a + b - 1, b))

    def extent(self, iv):
        """The extent of a loop."""
        return self._extents[iv.var.handle]

    def value(self, iv):
        """An axis, or a loop that was split or fused, as an expression of the loops; counted from 0."""
        return self._values[iv.var.handle]

    def conditions(self, reduce):
        """The conditions on the loops of the reduction, or on the others, where factors do not divide."""
        return [self.value(iv) < self.extent(iv) for iv in self.inexact if self.stage.is_reduce(iv) == reduce]


def loops_of(stage):
    """The loops of a stage that is computed as a whole."""
    return Loops(stage, {iv.var.handle: iv.dom.extent for iv in axes_of(stage)})


def axes_of(stage):
    """The axes of a stage, those of its reduction last."""
    return [*stage.op.axis, *stage.op.reduce_axis]
