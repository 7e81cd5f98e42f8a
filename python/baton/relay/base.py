# SPDX-License-Identifier: Apache-2.0
"""Identity of variables."""

from .._core import Object


class Id(Object, key="relay.Id"):
    """Identity of a variable, with the name that it is printed with."""

    __slots__ = ()

    def __init__(self, name_hint):
        super().__init__(name_hint=name_hint)


__all__ = ["Id"]
