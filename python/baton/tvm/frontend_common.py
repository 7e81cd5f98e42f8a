# SPDX-License-Identifier: Apache-2.0
"""Helps for importers."""

from .. import error, relay
from ..ir import IRModule


def infer_type(node, mod=None):
    """An expression with its type; `mod` has the functions that it calls. The type is in `checked_type`."""
    if isinstance(mod, IRModule):
        whole = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
    else:
        whole = IRModule()
    free = relay.analysis.free_vars(node)
    whole["main"] = node if isinstance(node, relay.Function) and not free else relay.Function(free, node)
    main = relay.transform.InferType()(whole)["main"]
    return main if isinstance(node, relay.Function) and not free else main.body


def infer_shape(inputs, mod=None):
    """The extents of an expression's value, those that are not known as in its type."""
    out = infer_type(inputs, mod).checked_type
    return tuple(getattr(d, "value", d) for d in out.shape)


def infer_channels(inputs, transpose=False):
    """The number of channels of a weight: its first dimension, or its second for a transposed convolution."""
    return infer_shape(inputs)[1 if transpose else 0]


def new_var(name_hint, type_annotation=None, shape=None, dtype="float32"):
    """A variable."""
    return relay.var(name_hint, type_annotation, shape, dtype)


def infer_value(input_val, params, mod=None):
    """The value of an expression whose free variables are among `params`, as an array."""
    params = params or {}
    free = relay.analysis.free_vars(input_val)
    missing = [v.name_hint for v in free if v.name_hint not in params]
    if missing:
        raise ValueError(f"the expression has free variables that are not parameters: {', '.join(missing)}")
    from ..driver.relay_build import create_executor

    return create_executor("debug", mod=mod).evaluate(relay.Function(free, input_val))(*[params[v.name_hint] for v in free])


def infer_value_simulated(input_val, params):
    """The value of an expression, with random values for free variables that are not among `params`."""
    import numpy as np

    params = dict(params or {})
    for v in relay.analysis.free_vars(input_val):
        if v.name_hint not in params:
            kind = v.type_annotation
            params[v.name_hint] = np.random.rand(*(int(d) for d in kind.shape)).astype(str(kind.dtype))
    return infer_value(input_val, params)


def try_infer_value(val, on_success=None, on_failure=None, parameters=None):
    """(value, True) where an expression can be evaluated, the value as NumPy's or as `on_success` makes of it; else (`on_failure()` or the
    expression, False)."""
    try:
        value = infer_value(val, parameters or {}).numpy()
    except Exception:  # whatever kept it from being evaluated
        return (on_failure() if on_failure else val), False
    return (on_success(value) if on_success else value), True


def fold_constant(node, mod=None):
    """An expression with its constant parts evaluated."""
    from ..relay.transform import FoldConstantExpr

    return FoldConstantExpr(node, mod)


def shape_of(x, dtype="int64", start=None, end=None):
    """The extents of a tensor from `start` to `end`: a constant where all are known, else an expression."""
    from ..relay import const, op
    from ..tir import Any

    shape = infer_shape(x)[start:end] if start is not None or end is not None else infer_shape(x)
    if not any(isinstance(d, Any) for d in shape):
        import numpy as np

        return const(np.array([int(d) for d in shape], dtype))
    found = op.shape_of(x, dtype)
    return found if start is None and end is None else op.strided_slice(found, [start or 0], [len(infer_shape(x)) if end is None else end])


def to_int_list(np_array):
    """The elements of an array as Python's numbers."""
    return [int(x) for x in np_array]


def unbind(data, axis=0):
    """The slices of a tensor along an axis, without it."""
    from ..relay import TupleWrapper, op
    from ..relay.expr import Tuple

    count = int(infer_shape(data)[axis])
    parts = op.split(data, count, axis)
    return TupleWrapper(Tuple([op.squeeze(parts[i], axis=[axis]) for i in range(count)]), count)


def ensure_scalar_shape(x):
    """A tensor of one element as one without dimensions."""
    from ..relay import op

    shape = infer_shape(x)
    if len(shape) == 0:
        return x
    if any(int(d) != 1 for d in shape):
        raise ValueError(f"a tensor of shape {tuple(shape)} is not a single number")
    return op.squeeze(x)


def get_relay_op(op_name):
    """The function of an operator, by its name with or without a group ("relu", "nn.relu")."""
    for group in ("", "nn.", "image.", "vision.", "contrib."):
        found = relay.op.find(group + op_name)
        if callable(found):
            return found
    raise error.OpNotImplemented(f"there is no operator `{op_name}`")


def get_name(node):
    """The name of a variable or an operator; "" for others."""
    return getattr(node, "name_hint", None) or getattr(node, "name", "")


def set_span(sym, node_name):
    """The expression; where it came from is not recorded."""
    return sym


class ExprTable:
    """Expressions of a model by name."""

    def __init__(self):
        self.exprs, self.params, self.const_ctr, self.in_padding = {}, {}, 1, False

    def new_const(self, value, shape=None, dtype="float32", source_name=None):
        """A new parameter with a value."""
        name = f"_param_{self.const_ctr}"
        if hasattr(value, "shape"):
            shape = value.shape
        self.const_ctr += 1
        self.params[name] = value
        self.exprs[name] = new_var(name_hint=name, shape=shape, dtype=dtype)
        return self.exprs[name]

    def get_expr(self, name):
        """The expression of a name. Raises ValueError where there is none."""
        if name not in self.exprs:
            raise ValueError(f"no expression is called `{name}`")
        return self.exprs[name]

    def set_expr(self, name, expr, force_override=False):
        """Sets the expression of a name, once."""
        if name in self.exprs and not force_override:
            raise ValueError(f"an expression is called `{name}` already")
        self.exprs[name] = expr

    def has_expr(self, name):
        """Whether there is an expression of this name."""
        return name in self.exprs

    def set_padding(self, in_padding):
        """Notes whether names are within padding."""
        self.in_padding = in_padding

    def clear_padding(self):
        """Notes that names are outside of padding."""
        self.in_padding = False


class RequiredAttr:
    """Stands for the default of an attribute that has none."""


class StrAttrsDict:
    """Attributes that are texts, read as what they stand for. Without a default, a missing one is an AttributeError."""

    def __init__(self, attrs):
        self.attrs = attrs

    def _get(self, key, default, read):
        if key in self.attrs:
            return read(self.attrs[key])
        if isinstance(default, RequiredAttr):
            raise AttributeError(f"the attribute `{key}` is not given")
        return default

    def has_attr(self, key):
        """Whether an attribute is given."""
        return key in self.attrs

    def get_float(self, key, default=RequiredAttr()):  # noqa: B008
        """A number."""
        return self._get(key, default, float)

    def get_int(self, key, default=RequiredAttr()):  # noqa: B008
        """An int; None for "None"."""
        return self._get(key, default, lambda text: None if text == "None" else int(text))

    def get_str(self, key, default=RequiredAttr()):  # noqa: B008
        """The text."""
        return self._get(key, default, str)

    def get_int_tuple(self, key, default=RequiredAttr()):  # noqa: B008
        """Ints, as in "(1, 2)"."""
        return self._get(key, default, lambda text: tuple(int(x) for x in text.strip("()[]").split(",") if x.strip() not in ("", "None")))

    def get_float_tuple(self, key, default=RequiredAttr()):  # noqa: B008
        """Numbers, as in "(1.0, 2)"."""
        return self._get(key, default, lambda text: tuple(float(x) for x in text.strip("()[]").split(",") if x.strip()))

    def get_tuple_tuple_int(self, key, default=RequiredAttr()):  # noqa: B008
        """Tuples of ints, as in "((1, 2), (3, 4))"."""
        import ast

        return self._get(key, default, lambda text: tuple(tuple(int(x) for x in row) for row in ast.literal_eval(text)))

    def get_int_list(self, key, default=RequiredAttr()):  # noqa: B008
        """Ints as a list."""
        return self._get(key, default, lambda text: list(self.get_int_tuple(key)))

    def get_bool(self, key, default=RequiredAttr()):  # noqa: B008
        """Whether the text is "True", "true" or "1"."""
        return self._get(key, default, lambda text: str(text).strip().lower() in ("true", "1"))


class Renamer:
    """Makes an operator of an importer a call of one of Relay's, with the same attributes."""

    def __init__(self, new_name):
        self.new_name = new_name

    def __call__(self, inputs, attrs, *_):
        attrs = {k: v for k, v in attrs.items() if k != "tvm_custom"}
        return get_relay_op(self.new_name)(*inputs, **attrs)


class AttrCvt:
    """Makes an operator of an importer a call of one of Relay's.

    op_name: the operator, or a function of the attributes that gives its name. transforms: attribute -> its name in Relay, or (name, default) or
    (name, default, function of the value). excludes: attributes that are an error; disables, ignores: attributes that are left out. extras:
    attributes to add. custom_check: (function of the attributes, message).
    """

    def __init__(self, op_name, transforms=None, excludes=None, disables=None, ignores=None, extras=None, custom_check=None):
        self.op_name, self.transforms, self.excludes = op_name, transforms or {}, set(excludes or ())
        self.left_out, self.extras, self.custom_check = (
            {*(disables or ()), *(ignores or ()), "tvm_custom", "_output_shapes", "_class"},
            extras or {},
            custom_check,
        )

    def __call__(self, inputs, attrs, *_):
        if self.custom_check and not self.custom_check[0](attrs):
            raise RuntimeError(f"the attributes of `{self.op_name}` are not as they should be: {self.custom_check[1]}")
        name = self.op_name if isinstance(self.op_name, str) else self.op_name(attrs)
        given = {}
        for key, value in attrs.items():
            if key in self.excludes:
                raise NotImplementedError(f"the attribute `{key}` of `{name}` is not supported")
            if key not in self.left_out and key not in self.transforms:
                given[key] = value
        for key, rule in self.transforms.items():
            new, default, change = (rule, RequiredAttr(), None) if isinstance(rule, str) else (*rule, None)[:3]
            if key in attrs:
                given[new] = change(attrs[key]) if change else attrs[key]
            elif isinstance(default, RequiredAttr):
                if not isinstance(rule, str):
                    raise AttributeError(f"the attribute `{key}` of `{name}` is not given")
            else:
                given[new] = default
        return get_relay_op(name)(*inputs, **{**given, **self.extras})


__all__ = [
    "AttrCvt",
    "ExprTable",
    "Renamer",
    "RequiredAttr",
    "StrAttrsDict",
    "ensure_scalar_shape",
    "fold_constant",
    "get_name",
    "get_relay_op",
    "infer_channels",
    "infer_shape",
    "infer_type",
    "infer_value",
    "new_var",
    "set_span",
    "shape_of",
    "to_int_list",
    "try_infer_value",
    "unbind",
]
