# SPDX-License-Identifier: Apache-2.0
"""Identity of variables, and names that older programs know."""

from .._core import Object
from .._ffi import register_object
from ..ir.base import Node, SourceName, Span, astext

# Early names, from before objects.
RelayNode = NodeBase = Object
register_relay_node = register_object


class Id(Object, key="relay.Id"):
    """Identity of a variable, with the name it is printed by."""

    __slots__ = ()

    def __init__(self, name_hint):
        super().__init__(name_hint=name_hint)


__all__ = ["Id", "Node", "NodeBase", "RelayNode", "SourceName", "Span", "astext", "register_relay_node"]
