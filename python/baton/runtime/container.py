# SPDX-License-Identifier: Apache-2.0
"""Containers of C++: Array reads as a list, Map as a dict, String is `str`."""

import collections.abc

from .._core import Array, Map, Object
from .._ffi import base, get_global_func

# A string of C++ arrives as `str`, so that is the class.
String = str
collections.abc.Sequence.register(Array)
collections.abc.Mapping.register(Map)


# Older programs ask whether a result is an ADT before they look into it as a tuple.
Array.tag = property(lambda self: 0, doc="0, as of a tuple's value.")


class _TupleToo(type(Object)):
    """Lets a tuple's value, which is an Array, pass for an ADT of tag 0."""

    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or isinstance(value, Array)


class ADT(Object, metaclass=_TupleToo, key="runtime.ADT"):
    """A value of an algebraic data type, as compiled programs take and give it: `ADT(constructor.tag, [fields...])`.

    `tag` is the constructor's number, `value[i]` a field, `len(value)` their number. A tuple is an Array, which `isinstance` takes
    for an ADT of tag 0.
    """

    __slots__ = ()

    def __new__(cls, tag, fields=()):
        _call("runtime.GetADTTag")  # loads the library
        return _call("runtime.ADT")(tag, *map(_field, fields))

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
        # Lists nest deeply: the parts of a field of data are not shown.
        shown = ("ADT(...)" if type(self[i]) is ADT else repr(self[i]) for i in range(len(self)))
        return f"ADT({self.tag}, [{', '.join(shown)}])"


def _field(value):
    """A field as an object: numbers and nested lists become arrays."""
    if isinstance(value, Object):
        return value
    from .ndarray import array

    return array(value)


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
