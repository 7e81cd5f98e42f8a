# SPDX-License-Identifier: Apache-2.0
"""Arguments of Python as values of the types of parameters."""

from .._core import Array
from ..ir import GlobalTypeVar, TensorType, TupleType, TypeCall, TypeVar
from ..relay.backend.interpreter import ConstructorValue
from ..relay.expr import Constant
from ..runtime import ADT
from ..runtime.values import constant_array, fitted, to_value


def as_kind(mod, kind, arg, name, index):
    """An argument for the parameter `name`, number `index`, of type `kind`: numbers of Python get its dtype, arrays are converted where
    each element is kept (`values.fitted`), within tuples and values of data types too. Long lists are as good as short ones."""
    done, work = [], [(kind, arg, None)]
    while work:
        kind, arg, made_of = work.pop()
        if made_of is not None:  # its fields are the last values that were made
            fields = done[len(done) - made_of :]
            del done[len(done) - made_of :]
            done.append(_rebuilt(arg, fields))
            continue
        kinds = _kinds_of_fields(mod, kind, arg)
        if kinds is None:
            done.append(_one(kind, arg, name, index))
            continue
        fields = arg.fields if isinstance(arg, ConstructorValue) else arg
        work.append((kind, arg, len(kinds)))
        work.extend((k, a, None) for k, a in reversed(list(zip(kinds, fields, strict=True))))
    return done[0]


def _one(kind, arg, name, index):
    if isinstance(arg, Constant):
        arg = arg.data
    if not isinstance(kind, TensorType):
        return to_value(arg)
    if type(arg) in (bool, int, float) and not kind.shape:
        return fitted(constant_array(arg, None if type(arg) is float else str(kind.dtype)), kind.dtype, name, index)
    return fitted(constant_array(arg) if isinstance(arg, (list, tuple)) else to_value(arg), kind.dtype, name, index)


def _kinds_of_fields(mod, kind, arg):
    """The types of the fields of a tuple or of a value of a data type; None for another argument, or one of another number of fields."""
    if isinstance(kind, TupleType):
        fits = isinstance(arg, (Array, list, tuple)) and len(arg) == len(kind.fields)
        return list(kind.fields) if fits else None
    if not isinstance(arg, (ADT, ConstructorValue)) or isinstance(arg, (list, tuple)):
        return None
    func, type_args = (kind.func, kind.args) if isinstance(kind, TypeCall) else (kind, ())
    if not isinstance(func, GlobalTypeVar) or func not in mod.type_definitions:
        return None
    data = mod.type_definitions[func]
    made = next((c for c in data.constructors if c.tag == arg.tag), None)
    if made is None or len(type_args) != len(data.type_vars):
        return None
    kinds = dict(zip(data.type_vars, type_args, strict=True))
    kinds = [_with(kinds, k) for k in made.inputs]
    return kinds if len(kinds) == len(arg.fields if isinstance(arg, ConstructorValue) else arg) else None


def _with(kinds, kind):
    """A type of a field with the type variables of its data type replaced."""
    if isinstance(kind, TypeVar):
        return kinds.get(kind, kind)
    if isinstance(kind, TupleType):
        return TupleType([_with(kinds, k) for k in kind.fields])
    if isinstance(kind, TypeCall):
        return TypeCall(kind.func, [_with(kinds, k) for k in kind.args])
    return kind


def _rebuilt(arg, fields):
    """The value with other fields; itself where none is another."""
    if isinstance(arg, (list, tuple)):
        return fields
    old = arg.fields if isinstance(arg, ConstructorValue) else arg
    if all(a is b or getattr(a, "same_as", lambda _: False)(b) for a, b in zip(old, fields, strict=True)):
        return arg
    if isinstance(arg, ConstructorValue):
        return ConstructorValue(tag=arg.tag, fields=fields, constructor=arg.constructor)
    return ADT(arg.tag, fields)


__all__ = ["as_kind"]
