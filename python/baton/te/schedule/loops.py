# SPDX-License-Identifier: Apache-2.0
"""How the loops of a stage became of its axes."""

from ..._core import Object


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
