# SPDX-License-Identifier: Apache-2.0
"""Containers of C++: Array reads as a list, Map as a dict, String is `str`."""

import collections.abc

from .._core import Array, Map, Object
from .._ffi import base, get_global_func

# A string of C++ arrives as `str`, so that is the class.
String = str
collections.abc.Sequence.register(Array)
collections.abc.Mapping.register(Map)



class ADT(Object, key="runtime.ADT"):
    """A value of an algebraic data type, as compiled programs take and give it: `ADT(constructor.tag, [fields...])`.

    `tag` is the constructor's number, `value[i]` a field, `len(value)` their number. (A tuple is an Array.)
    """

    __slots__ = ()

    def __new__(cls, tag, fields=()):
        _call("runtime.GetADTTag")  # loads the library
        return _call("runtime.ADT")(tag, *fields)

    def __init__(self, tag, fields=()):
        pass

    @property
    def tag(self):
        """The constructor's number."""
        return _call("runtime.GetADTTag")(self)

    def __len__(self):
        return _call("runtime.GetADTSize")(self)

    def __getitem__(self, index):
        return getitem_helper(self, _call("runtime.GetADTField"), len(self), index)

    def __repr__(self):
        # Lists nest deeply: what lies within a field of data is not shown.
        shown = ("ADT(...)" if isinstance(self[i], ADT) else repr(self[i]) for i in range(len(self)))
        return f"ADT({self.tag}, [{', '.join(shown)}])"


def _call(name):
    if name not in _functions:
        base.load_vm()
        _functions[name] = get_global_func(name)
    return _functions[name]


_functions = {}


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
