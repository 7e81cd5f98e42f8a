# SPDX-License-Identifier: Apache-2.0
"""Containers of C++: Array reads as a list, Map as a dict, String is `str`."""

import collections.abc

from .._core import Array, Map

# A string of C++ arrives as `str`, so that is the class.
String = str
collections.abc.Sequence.register(Array)
collections.abc.Mapping.register(Map)

# A tuple value of Relay is an Array of its fields.
ADT = Array


def tuple_object(fields=()):
    """A tuple value of Relay."""
    return Array(fields)


def ShapeTuple(shape=()):
    """A shape, as an Array of ints."""
    return Array([int(x) for x in shape])


def getitem_helper(obj, elem_getter, length, idx):
    """Indexing by int or slice over a getter of one item."""
    if isinstance(idx, slice):
        return [elem_getter(obj, i) for i in range(*idx.indices(length))]
    if not -length <= idx < length:
        raise IndexError(f"index {idx} is outside a sequence of {length}")
    return elem_getter(obj, idx % length)
