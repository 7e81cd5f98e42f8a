# SPDX-License-Identifier: Apache-2.0
"""Functions of operators, made from the registry: `relay.nn.conv2d(data, weight, strides=(1, 1), ...)`.

The parameters are the operator's inputs, then its attributes. Inputs are expressions; a list or tuple of them is a tuple of
Relay, a number or an array a constant.
"""

import inspect
import keyword
import re

from ... import _core
from ... import error as errors
from ...ir import Op, PrimExpr, RelayExpr
from ...runtime import NDArray
from ...tir import IntImm
from ..expr import Call, Tuple, TupleWrapper, const

_REQUIRED = 1
# Names of inputs in Relay's programs, where they are others here; both are accepted.
_RELAY_NAMES = {
    "clip": {"data": "a"},
    "reshape_like": {"lhs": "data", "rhs": "shape_like"},
    "broadcast_to_like": {"like": "broadcast_type"},
    "collapse_sum_like": {"like": "collapse_type"},
}
# Parameters that Relay's programs do not know, or give by name, are last.
_LAST = {"nn.deformable_conv2d": ("mask",), **{f"nn.{kind}_pool{n}d_grad": ("dilation",) for kind in ("avg", "max") for n in (1, 2, 3)}}
_WINDOWS = frozenset(["kernel_size", "output_size", "pool_size"])


class _Parameter:
    __slots__ = ("name", "field", "kind", "doc", "required", "default")

    def __init__(self, name, kind, doc, required, default):
        self.name = name + "_" if keyword.iskeyword(name) else name
        self.field, self.kind, self.doc, self.required, self.default = name, kind, doc, required, default


def input_expr(value):
    """The input as an expression: a list as a tuple; a number or array as a constant."""
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if isinstance(value, (list, tuple)) and any(isinstance(v, (RelayExpr, TupleWrapper)) for v in value):
        return Tuple([input_expr(v) for v in value])
    if isinstance(value, PrimExpr) and hasattr(value, "value"):
        return const(value.value, str(value.dtype))
    return const(value)


def plain_value(value):
    """TIR literals and NumPy's numbers as Python's, tuples and arrays as lists."""
    if isinstance(value, (list, tuple, _core.Array)):
        return [plain_value(v) for v in value]
    if isinstance(value, NDArray) or type(value).__module__ == "numpy":
        return value.tolist()
    if isinstance(value, PrimExpr) and hasattr(value, "value"):
        return value.value
    return value


def whole_numbers(value):
    """Numbers of Python with those that are whole in floats as ints, in lists too."""
    if isinstance(value, list):
        return [whole_numbers(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def margins(value, spatial):
    """Padding as so much before each spatial dimension, then behind each: from one number, or one for each dimension."""
    value = whole_numbers(plain_value(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return [value] * (2 * spatial)
    if isinstance(value, list) and all(isinstance(v, int) for v in value):
        return value * (2 * spatial) if len(value) == 1 else value * 2 if len(value) == spatial else value
    return value


def attr_value(parameter, value, spatial=1):
    """The value as the field takes it: a number where an array is wanted stands for as many as the default has, or as there
    are spatial dimensions; a whole number in a float is an int where the field has ints."""
    value = plain_value(value)
    if "int" in parameter.kind or parameter.kind == "PrimExpr":
        value = whole_numbers(value)
    if parameter.kind == "runtime.Object":
        # One of several kinds: the operator checks it.
        return IntImm("int64", value) if isinstance(value, int) else value
    if parameter.kind == "dtype" and value == "":
        return "void"  # not given
    if isinstance(value, bool) or not isinstance(value, int) or not parameter.kind.startswith("Array"):
        return value
    default = parameter.default
    if isinstance(default, _core.Array) and len(default) > 1:
        return [value] * len(default)
    return [value] * (spatial if parameter.name in _WINDOWS else 1)


class Operator:
    """An operator as a function of Python."""

    def __init__(self, name):
        op = self.op = Op.get(name)
        self.__name__ = name.rsplit(".", 1)[-1]
        self.__qualname__, self.__module__ = self.__name__, "baton.relay" + ("." + name.rsplit(".", 1)[0] if "." in name else "")
        self.name = name
        self.inputs = [_Parameter(a.name, a.type_info, a.description, True, None) for a in op.arguments]
        self.attrs_key = op.attrs_type_key or None
        dims = re.search(r"(\d)d", name)
        self.spatial = int(dims[1]) if dims else 1
        # Convolutions and pools hold the padding of both ends of each dimension, as passes want to read it.
        self.has_margins = bool(dims) and name.startswith(("nn.conv", "nn.max_pool", "nn.avg_pool", "nn.contrib_conv"))
        described = _core.describe_type(self.attrs_key) if self.attrs_key else None
        self.attrs = [_Parameter(n, kind, doc, bool(flags & _REQUIRED), default) for n, kind, doc, flags, default in (described[2] if described else ())]
        # The last inputs may be left out where the operator says it takes any number of them.
        self.any_number = op.num_inputs < 0
        if self.any_number:
            for p in self.inputs[1:]:
                p.required = False
        taken = {p.name for p in self.inputs}
        for p in self.attrs:
            if p.name in taken:
                p.name += "_"
        last = _LAST.get(name, ())
        self.parameters = sorted((*self.inputs, *self.attrs), key=lambda p: p.name in last)
        self.by_name = {p.name: p for p in self.parameters}
        for own, relays in _RELAY_NAMES.get(name, {}).items():
            self.by_name[relays] = self.by_name[own]
            self.by_name[own].name = relays

    @property
    def __signature__(self):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        out, optional = [], False
        for p in self.parameters:
            optional = optional or not p.required
            default = inspect.Parameter.empty if not optional else p.default
            if isinstance(default, _core.Array):
                default = tuple(default)
            out.append(inspect.Parameter(p.name, kind, default=default))
        return inspect.Signature(out)

    @property
    def __doc__(self):
        lines = [self.op.description, ""]
        for title, group in (("Inputs", self.inputs), ("Attributes", self.attrs)):
            if group:
                lines.append(title + ":")
                lines += [f"    {p.name} ({p.kind}): {p.doc}" for p in group]
        output = self.op.get_attr("output")
        if output:
            lines += ["Result:", f"    {output}"]
        return "\n".join(lines)

    def _bind(self, args, kwargs):
        if len(args) > len(self.parameters):
            raise errors.TypeError(f"{self.name} takes at most {len(self.parameters)} arguments, got {len(args)}")
        parameters = self.parameters
        at = len(self.inputs) - 1
        if 0 <= at < len(args) and parameters[at] not in self.inputs and isinstance(args[at], RelayExpr):
            parameters = [*self.inputs, *self.attrs]  # an expression in the place of an attribute: all inputs are given
        given = {p.name: v for p, v in zip(parameters, args, strict=False)}
        for key, value in kwargs.items():
            if key in self.by_name:
                key = self.by_name[key].name
            else:
                import difflib

                near = difflib.get_close_matches(key, self.by_name, 1)
                raise errors.TypeError(
                    f"{self.name} has no parameter `{key}`" + (f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(self.by_name)}")
                )
            if key in given:
                raise errors.TypeError(f"{self.name} got `{key}` twice")
            given[key] = value
        return given

    def make(self, inputs, attrs):
        """A call of expressions, with attributes by field name."""
        node = _core.make_node(self.attrs_key, **attrs) if self.attrs_key else None
        return Call(self.op, inputs, node)

    def __call__(self, *args, **kwargs):
        given = self._bind(args, kwargs)
        inputs, left_out = [], None
        for p in self.inputs:
            value = given.get(p.name)
            if value is None:
                if p.required:
                    raise errors.TypeError(f"{self.name} needs its input `{p.name}`: {p.doc}")
                left_out = left_out or p.name
                continue
            if left_out:
                raise errors.TypeError(f"{self.name} got `{p.name}` but not `{left_out}`, which comes before it")
            inputs.append(input_expr(value))
        attrs = {}
        for p in self.attrs:
            if p.name in given:
                value = given[p.name]
                if value is None and p.default is not None:
                    if p.required:
                        raise errors.TypeError(f"{self.name} needs `{p.name}`: {p.doc}")
                    continue  # None asks for the default
                attrs[p.field] = margins(value, self.spatial) if p.name == "padding" and self.has_margins else attr_value(p, value, self.spatial)
            elif p.required:
                raise errors.TypeError(f"{self.name} needs `{p.name}`: {p.doc}")
            elif p.name == "padding" and self.has_margins:
                attrs[p.field] = margins(p.default, self.spatial)
        return self.make(inputs, attrs)

    def __repr__(self):
        return f"<operator {self.name}{self.__signature__}>"


_made = {}


def operator(name):
    """The plain function of a registered operator; None for a name that is not one."""
    found = _made.get(name)
    if found is None and name not in all_names():
        forget_names()  # a library that was loaded since may have brought it
    if found is None and name in all_names():
        found = _made[name] = Operator(name)
    return found


_names = frozenset()


def forget_names():
    """Clears the cached list of operator names; it is read again on the next use."""
    global _names
    _names = frozenset()


def all_names():
    """Names of all registered operators."""
    global _names
    if not _names:
        _names = frozenset(Op.list_op_names())
    return _names


def convolution(dims):
    """The convolution over so many dimensions of space."""
    return operator(f"nn.conv{dims}d")
