# SPDX-License-Identifier: Apache-2.0
"""The common part of functions of every IR."""

import enum

from .. import _core
from . import _ffi_api
from .attrs import plain_value
from .expr import RelayExpr


class CallingConv(enum.IntEnum):
    """How a compiled function is called."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class BaseFunc(RelayExpr, key="BaseFunc"):
    """Base of Relay functions and of PrimFuncs."""

    __slots__ = ()

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with an attribute more, or with those of a dict. A TIR literal is kept as its value: IntImm(1) as 1."""
        values = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        func = self
        for key, value in values.items():
            func = _ffi_api.BaseFuncWithAttr(func, key, plain_value(value))
        return func

    def without_attr(self, attr_key):
        """The function without an attribute."""
        if not self.has_attr(attr_key):
            return self
        from .attrs import DictAttrs, make_node

        kept = {k: v for k, v in self.attrs.items() if k != attr_key}
        fields = {name: getattr(self, name) for name, *_ in _core.describe_type(self.type_key)[2] if name != "checked_type_"}
        return make_node(self.type_key, **{**fields, "attrs": DictAttrs(kept)})

    def get_attr(self, key, default=None):
        """Value of an attribute, or the default."""
        return default if self.attrs is None else self.attrs.get(key, default)

    def has_attr(self, key):
        """Whether the attribute is there."""
        return self.attrs is not None and key in self.attrs
