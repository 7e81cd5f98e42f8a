# SPDX-License-Identifier: Apache-2.0
"""What functions of every IR share."""

import enum

from . import _ffi_api
from .expr import RelayExpr


class CallingConv(enum.IntEnum):
    """How a compiled function is called."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class BaseFunc(RelayExpr, key="BaseFunc"):
    """Base of functions of Relay and of loop programs."""

    __slots__ = ()

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with an attribute more, or with those of a dict."""
        values = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        func = self
        for key, value in values.items():
            func = _ffi_api.BaseFuncWithAttr(func, key, value)
        return func

    def get_attr(self, key, default=None):
        """Value of an attribute, or the default."""
        return default if self.attrs is None else self.attrs.get(key, default)

    def has_attr(self, key):
        """Whether the attribute is there."""
        return self.attrs is not None and key in self.attrs
