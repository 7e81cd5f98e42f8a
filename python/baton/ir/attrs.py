# SPDX-License-Identifier: Apache-2.0
"""Attributes of operators, functions and modules."""

import typing

from .. import _core
from .._core import Object

# Type keys that programs and files write without the name of their IR.
_WITHOUT_IR = {"Tensor": "te.Tensor", "PlaceholderOp": "te.PlaceholderOp", "ComputeOp": "te.ComputeOp", "TensorType": "relay.TensorType"}


def current_key(type_key):
    """Returns the key that a type has here, by the key that a program or a file has for it."""
    return _WITHOUT_IR.get(type_key, type_key)


class AttrFieldInfo(typing.NamedTuple):
    """The description of a field of attributes."""

    name: str
    type_info: str
    description: str


class Attrs(Object, key="Attrs"):
    """Attributes: fields with defaults. `attrs.strides` and `attrs["strides"]` read one."""

    __slots__ = ()

    def keys(self):
        """Names of the fields, in order."""
        described = _core.describe_type(self.type_key)
        return [f[0] for f in described[2]] if described else []

    def values(self):
        """Values of the fields."""
        return [getattr(self, k) for k in self.keys()]

    def items(self):
        """(name, value) of the fields."""
        return [(k, getattr(self, k)) for k in self.keys()]

    def get_float(self, name):
        """Value of a field as a float."""
        return float(self[name])

    def list_field_info(self):
        """(name, type_info, description) of each field."""
        described = _core.describe_type(self.type_key)
        return [AttrFieldInfo(name, kind, text) for name, kind, text, _, _ in described[2]] if described else []

    def __getitem__(self, name):
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name):
        return name in self.keys()

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def get(self, name, default=None):
        """Value of a field, or the default."""
        return self[name] if name in self else default

    def get_int(self, name):
        """Value of a field as an int."""
        return int(self[name])

    def get_int_tuple(self, name):
        """Value of a field as a tuple of ints."""
        return tuple(int(x) for x in self[name])

    def get_str(self, name):
        """Value of a field as text."""
        return str(self[name])


def plain_value(value):
    """A TIR literal as a value of Python; other values as they are."""
    if isinstance(value, Object) and value.type_key in ("IntImm", "FloatImm", "tir.StringImm"):
        return bool(value.value) if getattr(value, "dtype", "") == "bool" else value.value
    return value


class DictAttrs(Attrs, key="DictAttrs"):
    """Attributes by name, as a mapping."""

    __slots__ = ()

    def __init__(self, dict=None, **values):  # noqa: A002
        super().__init__(dict={k: plain_value(v) for k, v in {**(dict or {}), **values}.items()})

    def keys(self):
        return list(self.dict)

    def values(self):
        return self.dict.values()

    def items(self):
        return self.dict.items()

    def __getitem__(self, name):
        return self.dict[name]

    def __contains__(self, name):
        return name in self.dict

    def __len__(self):
        return len(self.dict)

    def __getattr__(self, name):
        if not name.startswith("__") and name in self.dict:
            return self.dict[name]
        raise AttributeError(f"`DictAttrs` has no attribute `{name}`; it has {', '.join(self.keys())}")

    def get(self, name, default=None):
        return self.dict.get(name, default)


def make_node(type_key, **kwargs):
    """Makes an object of a type key from its fields.

    baton.ir.make_node("relay.attrs.OnDeviceAttrs", device_type=2)
    """
    if type_key == "DictAttrs" and "dict" not in kwargs:
        return DictAttrs(kwargs)
    for name, value in kwargs.items():
        if isinstance(value, str) and not value and name.endswith("dtype"):
            kwargs[name] = "void"  # of attributes: it is not given
    return _core.make_node(type_key if _core.type_known(type_key) else current_key(type_key), **kwargs)
