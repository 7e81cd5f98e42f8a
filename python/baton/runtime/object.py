# SPDX-License-Identifier: Apache-2.0
"""The base class of all objects, and of classes of Python that stand for one."""

from .._core import Object


class ObjectGeneric:
    """Base of classes of Python whose instances stand for an object where one is wanted: `asobject()` gives it. (Any class with such a
    method does.)"""

    def asobject(self):
        """The object that this one stands for."""
        raise NotImplementedError(f"{type(self).__name__} has no asobject()")


__all__ = ["Object", "ObjectGeneric"]
