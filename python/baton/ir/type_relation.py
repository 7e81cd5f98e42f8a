# SPDX-License-Identifier: Apache-2.0
"""Data types applied to arguments, and relations between types."""

from .type import TypeCall, TypeConstraint


class TypeRelation(TypeConstraint, key="TypeRelation"):
    """A relation that types must be in: `func(types, num_inputs, attrs, reporter)`, an EnvFunc, says whether; the first
    `num_inputs` of the types are given, the others follow."""

    __slots__ = ()

    def __init__(self, func, args, num_inputs, attrs=None, span=None):
        super().__init__(func=func, args=list(args), num_inputs=num_inputs, attrs=attrs, span=span)


__all__ = ["TypeCall", "TypeRelation"]
