# SPDX-License-Identifier: Apache-2.0
"""Operators by name."""

import functools

from . import _ffi_api
from .expr import RelayExpr, make_call


class Op(RelayExpr, key="Op"):
    """An operator. One object a name."""

    __slots__ = ()

    def __init__(self):
        raise TypeError("operators are registered, not made; use baton.ir.Op.get(name)")

    @staticmethod
    def get(op_name):
        """The operator of this name; an unknown one is an error that lists the nearest."""
        return _ffi_api.GetOp(op_name)

    @staticmethod
    def list_op_names():
        """Names of all operators."""
        return list(_ffi_api.ListOpNames())

    def get_attr(self, attr_name):
        """An attribute of the operator, as "TOpPattern"; None if there is none."""
        return _ffi_api.OpGetAttr(self, attr_name)

    def has_attr(self, attr_name):
        """Whether the operator has the attribute."""
        return self.get_attr(attr_name) is not None

    def set_attr(self, attr_name, value, plevel=10):
        """Sets an attribute of the operator."""
        _ffi_api.OpSetAttr(self, attr_name, value)

    def reset_attr(self, attr_name):
        """Takes an attribute off the operator."""
        _ffi_api.OpSetAttr(self, attr_name, None)

    def set_num_inputs(self, n):
        """Sets how many arguments an operator takes that `relay.op.op.register` made; without it any number."""
        _ffi_api.OpSetNumInputs(self, n)

    def add_argument(self, name, type, description):  # noqa: A002
        """Describes the next argument of an operator that `relay.op.op.register` made."""
        _ffi_api.OpAddArgument(self, name, type, description)

    def set_support_level(self, level):
        """Sets the documentation level of an operator that `relay.op.op.register` made."""
        _ffi_api.OpSetSupportLevel(self, level)

    def set_attrs_type_key(self, key):
        """Sets the type of the attributes of an operator that `relay.op.op.register` made."""
        _ffi_api.OpSetAttrsTypeKey(self, key)

    def add_type_rel(self, rel_name, type_rel_func=None):
        """Sets how types of an operator that `relay.op.op.register` made follow: `type_rel_func(arg_types, attrs)` gives the type of the
        result, or None where it cannot be said yet; without a function the relation is "Identity", "Broadcast" or "BroadcastComp"."""
        _ffi_api.OpAddTypeRel(self, rel_name, type_rel_func)

    def __call__(self, *args):
        """A call of the operator, without attributes."""
        return make_call(self, args)


@functools.cache
def _operators_by_attrs():
    """Type key of attributes -> names of the operators that have them."""
    found = {}
    for name in Op.list_op_names():
        found.setdefault(Op.get(name).attrs_type_key, []).append(name)
    return found


def attrs_doc(key):
    """Returns the description of a class of attributes without one: the operators that it belongs to."""
    found = _operators_by_attrs().get(key, ())
    return f"Attributes of {', '.join(f'`{n}`' for n in found)}." if found else ""


_RULES = {}  # (intrinsic, kind of target) -> [(level, how it is lowered)], highest level first


def intrinsic_op(name):
    """The operator of this name; an intrinsic of TIR, as "tir.mylog", is made if there is none."""
    if name.startswith("tir.") and name not in Op.list_op_names():
        return _ffi_api.RegisterOp(name, "")
    return Op.get(name)


def intrinsic_rules(target):
    """How intrinsics are lowered for a kind of target: functions by name, highest level first."""
    found = {}
    for kind in (target, "default"):
        for (name, of), rules in _RULES.items():
            if of == kind:
                found.setdefault(name, []).extend(f for _, f in rules)
    return found


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Sets an attribute of an operator; without a value it is a decorator. An intrinsic of TIR that there is not, as "tir.mylog", is made."""

    def register(v):
        intrinsic_op(op_name).set_attr(attr_key, v, level)
        return v

    return register(value) if value is not None else register


def register_intrin_lowering(op_name, target, *, f=None, level=10):
    """Sets how an intrinsic is lowered for a kind of target, or "default": `f(call)` gives another expression, or None to leave it. Without `f`
    it is a decorator. The rule of the highest level holds."""

    def register(fn):
        intrinsic_op(op_name)
        rules = _RULES.setdefault((op_name, target), [])
        rules.append((level, fn))
        rules.sort(key=lambda rule: -rule[0])
        return fn

    return register(f) if f is not None else register
