# SPDX-License-Identifier: Apache-2.0
"""Operators as functions: `relay.add(a, b)`, `relay.nn.conv2d(...)`; their registry and attributes."""

import builtins
import importlib.util
import sys
import types

from ...error import did_you_mean
from ...ir import Op, register_op_attr
from ..expr import const
from . import older_forms, op_attrs, sparse  # noqa: F401 - registers functions
from .composed import COMPOSED
from .implementations import register_strategy
from .make import Operator, all_names, operator
from .op import (
    OpPattern,
    debug,
    get,
    get_op_attr,
    has_attr,
    list_op_names,
    register,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_convert_op_layout,
    register_fake_quantization_to_integer,
    register_gradient,
    register_infer_correct_layout,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_pattern,
    register_reduce_schedule,
    register_schedule,
    register_shape_func,
    register_stateful,
    reset_attr,
)
from .sugar import SUGAR

_found = {}
# Other names of an operator that programs use.
_ALIASES = {
    "annotation.on_device": "on_device",
    "annotation.simulated_quantize": "relay.op.annotation.simulated_quantize",
    "image.resize": "image.resize2d",
}


class _Group(types.ModuleType):
    """The operators of a group, as `relay.nn`."""

    def __init__(self, prefix, module=None):
        super().__init__(__name__ + "." + (module or prefix), f"The operators `{prefix}.X`." if prefix else "Operators.")
        self._prefix = prefix + "." if prefix else ""
        self.__path__ = []
        sys.modules[self.__name__] = self

    def __getattr__(self, name):
        if name + "." == self._prefix:  # `relay.op.nn.nn` is the module that has them
            value = _Group(name, f"{name}.{name}")
        else:
            value = None if name.startswith("__") else find(self._prefix + name)
        if value is None:
            near = "" if name.startswith("_") else did_you_mean(self._prefix + name, (self._prefix + n for n in names_in(self._prefix)))
            raise AttributeError(f"there is no operator `{self._prefix}{name}`{near}")
        setattr(self, name, value)
        return value

    def __dir__(self):
        return sorted({*vars(self), *names_in(self._prefix)})


def find(name):
    """The function of an operator, or the group of that name; None if there is neither."""
    value = _found.get(name)
    if value is not None:
        return value
    full = _ALIASES.get(name) or name
    if full in SUGAR and (full in all_names() or full.endswith("_raw")):
        value = SUGAR[full]
    else:
        value = COMPOSED.get(full) or operator(full)
        if value is not None and full.startswith("qnn."):  # the functions take numbers for scales and zero points, too
            from ..qnn import op as quantized

            value = getattr(quantized, full[len("qnn.") :], value)
    # Operators called any, all, max... are in this module's names: Python's own are asked for by their module.
    if value is None and builtins.any(n.startswith(name + ".") for n in all_names()):
        value = _Group(name)
        # `from baton.relay.op.nn import ...` and `import baton.relay.nn` find it, too.
        # `baton.relay.vm` is a separate module, whatever operators are called vm.X. A folder that holds stubs alone is none.
        spec = importlib.util.find_spec("baton.relay." + name)
        if spec is None or type(spec.loader).__name__.endswith("NamespaceLoader"):
            sys.modules["baton.relay." + name] = value
    if value is not None:
        _found[name] = value
    return value


def names_in(prefix):
    """First words behind `prefix` of the operators' names."""
    # An operator whose name repeats the path of this module is at the end of the path.
    names = (n.removeprefix("relay.op.") for n in (*all_names(), *COMPOSED))
    return sorted({n[len(prefix) :].split(".")[0] for n in names if n.startswith(prefix)})


def __getattr__(name):
    value = None if name.startswith("__") else find(name)
    if value is None:
        raise AttributeError(f"there is no operator `{name}`" + ("" if name.startswith("_") else did_you_mean(name, __dir__())))
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *names_in("")})


for _group in names_in(""):
    if _group not in all_names() and _group not in ("op",):
        find(_group)
del _group

__all__ = [
    "Op",
    "OpPattern",
    "Operator",
    "const",
    "debug",
    "find",
    "get",
    "get_op_attr",
    "has_attr",
    "list_op_names",
    "names_in",
    "op_attrs",
    "register",
    "register_alter_op_layout",
    "register_broadcast_schedule",
    "register_compute",
    "register_convert_op_layout",
    "register_fake_quantization_to_integer",
    "register_gradient",
    "register_infer_correct_layout",
    "register_injective_schedule",
    "register_legalize",
    "register_mixed_precision_conversion",
    "register_op_attr",
    "register_reduce_schedule",
    "register_schedule",
    "register_strategy",
    "register_pattern",
    "register_shape_func",
    "register_stateful",
    "reset_attr",
]
