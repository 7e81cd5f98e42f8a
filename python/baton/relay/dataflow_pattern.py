# SPDX-License-Identifier: Apache-2.0
"""The pattern language of dataflow: patterns, matching, and rewriting or partitioning of matches.

    from baton.relay.dataflow_pattern import is_op, wildcard, is_constant, rewrite, DFPatternCallback

    x, w, b = wildcard(), is_constant(), is_constant()
    conv_bias = is_op("nn.bias_add")(is_op("nn.conv2d")(x, w), b).optional(lambda y: is_op("nn.relu")(y))
    conv_bias.match(expr)

A pattern object stands for one expression wherever it occurs in a pattern: a wildcard that is used twice must match the same
value twice. `add` and `multiply` match their arguments in either order.
"""

from .._core import Object
from .._ffi import get_global_func
from ..ir import IRModule, Op, RelayExpr, make_node
from ..ir.base import astext


def _api(name):
    return get_global_func("relay.dataflow_pattern." + name)


def _pattern(value):
    if isinstance(value, DFPattern):
        return value
    if isinstance(value, RelayExpr):
        return ExprPattern(value)
    raise TypeError(f"a pattern is wanted, got {type(value).__name__}")


def _patterns(values):
    return None if values is None else [_pattern(v) for v in values]


def _dict_attrs(attrs):
    return attrs if not isinstance(attrs, dict) else make_node("DictAttrs", dict=attrs)


class DFPattern(Object, key="relay.dataflow_pattern.DFPattern"):
    """Base of patterns. `a + b`, `a - b`, `a * b`, `a / b` are patterns of those operators, `a | b` matches either."""

    __slots__ = ()

    def __call__(self, *args, **attrs):
        """A call of what this pattern matches; `pattern(None)` takes any number of arguments. Keywords are attributes that
        the call has."""
        call = CallPattern(self, None if len(args) == 1 and args[0] is None else args)
        return call.has_attr(attrs) if attrs else call

    def __or__(self, other):
        return AltPattern(self, other)

    def __add__(self, other):
        return is_op("add")(self, other)

    def __sub__(self, other):
        return is_op("subtract")(self, other)

    def __mul__(self, other):
        return is_op("multiply")(self, other)

    def __truediv__(self, other):
        return is_op("divide")(self, other)

    def has_attr(self, attrs):
        """Matches that have these attributes: an operator in the registry (`{"TOpPattern": 0}`), a call or function among
        its own (`{"data_layout": "NHWC"}`)."""
        return has_attr(attrs, self)

    def has_type(self, ttype):
        """This pattern, of expressions of this type."""
        return has_type(ttype, self)

    def has_dtype(self, dtype):
        """This pattern, of tensors of this dtype."""
        return has_dtype(dtype, self)

    def has_shape(self, shape):
        """This pattern, of tensors of this shape."""
        return has_shape(shape, self)

    def match(self, expr):
        """Whether the pattern matches the expression as a whole."""
        return match(self, expr)

    def partition(self, expr, attrs=None, check=lambda x: True):
        """The expression with each match in a separate function; see `partition`."""
        return partition(self, expr, attrs, check)

    def dominates(self, parent, path=None):
        """This pattern as the child that `parent` feeds through expressions that match `path` (anything)."""
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def optional(self, option_constructor):
        """This pattern, or `option_constructor(self)`."""
        return self | option_constructor(self)

    def astext(self, show_meta_data=False):
        """The pattern as it would be written."""
        return astext(self, show_meta_data)

    def __repr__(self):
        return astext(self, False)

    __str__ = __repr__


class ExprPattern(DFPattern, key="relay.dataflow_pattern.ExprPattern"):
    """Exactly an expression."""

    __slots__ = ()

    def __init__(self, expr):
        super().__init__(expr=expr)


class VarPattern(DFPattern, key="relay.dataflow_pattern.VarPattern"):
    """A variable; with a name, of that name."""

    __slots__ = ()

    def __init__(self, name_hint=""):
        super().__init__(name=name_hint)


class ConstantPattern(DFPattern, key="relay.dataflow_pattern.ConstantPattern"):
    """A constant."""

    __slots__ = ()

    def __init__(self):
        super().__init__()


class CallPattern(DFPattern, key="relay.dataflow_pattern.CallPattern"):
    """A call; `args` None takes any."""

    __slots__ = ()

    def __init__(self, op, args):
        super().__init__(op=_pattern(op), args=_patterns(args))


class FunctionPattern(DFPattern, key="relay.dataflow_pattern.FunctionPattern"):
    """A function; `params` None takes any."""

    __slots__ = ()

    def __init__(self, params, body):
        super().__init__(params=_patterns(params), body=_pattern(body))


class IfPattern(DFPattern, key="relay.dataflow_pattern.IfPattern"):
    """An if."""

    __slots__ = ()

    def __init__(self, cond, true_branch, false_branch):
        super().__init__(cond=_pattern(cond), true_branch=_pattern(true_branch), false_branch=_pattern(false_branch))


class LetPattern(DFPattern, key="relay.dataflow_pattern.LetPattern"):
    """A let."""

    __slots__ = ()

    def __init__(self, var, value, body):
        super().__init__(var=_pattern(var), value=_pattern(value), body=_pattern(body))


class TuplePattern(DFPattern, key="relay.dataflow_pattern.TuplePattern"):
    """A tuple; `fields` None takes any."""

    __slots__ = ()

    def __init__(self, fields):
        super().__init__(fields=_patterns(fields))


class TupleGetItemPattern(DFPattern, key="relay.dataflow_pattern.TupleGetItemPattern"):
    """A field of a tuple; `index` None takes any."""

    __slots__ = ()

    def __init__(self, tuple, index=None):  # noqa: A002
        super().__init__(tuple=_pattern(tuple), index=-1 if index is None else index)


class AltPattern(DFPattern, key="relay.dataflow_pattern.AltPattern"):
    """One of two patterns."""

    __slots__ = ()

    def __init__(self, left, right):
        super().__init__(left=_pattern(left), right=_pattern(right))


class WildcardPattern(DFPattern, key="relay.dataflow_pattern.WildcardPattern"):
    """Anything."""

    __slots__ = ()

    def __init__(self):
        super().__init__()


class TypePattern(DFPattern, key="relay.dataflow_pattern.TypePattern"):
    """A pattern with a type."""

    __slots__ = ()

    def __init__(self, pattern, ttype):
        super().__init__(pattern=_pattern(pattern), type=ttype)


class DataTypePattern(DFPattern, key="relay.dataflow_pattern.DataTypePattern"):
    """A pattern with a dtype."""

    __slots__ = ()

    def __init__(self, pattern, dtype):
        super().__init__(pattern=_pattern(pattern), dtype=str(dtype))


class ShapePattern(DFPattern, key="relay.dataflow_pattern.ShapePattern"):
    """A pattern with a shape."""

    __slots__ = ()

    def __init__(self, pattern, shape):
        super().__init__(pattern=_pattern(pattern), shape=list(shape))


class AttrPattern(DFPattern, key="relay.dataflow_pattern.AttrPattern"):
    """A pattern with attributes."""

    __slots__ = ()

    def __init__(self, pattern, attrs):
        super().__init__(pattern=_pattern(pattern), attrs=_dict_attrs(attrs))


class DominatorPattern(DFPattern, key="relay.dataflow_pattern.DominatorPattern"):
    """`child`, all of whose data comes from one `parent` through expressions that match `path`, and which post-dominates the
    parent."""

    __slots__ = ()

    def __init__(self, parent, path, child):
        super().__init__(parent=_pattern(parent), path=_pattern(path), child=_pattern(child))


class _DFPatternCallback(Object, key="relay.dataflow_pattern.DFPatternCallback"):
    """A rewrite in C++."""

    __slots__ = ()

    def __init__(self, pattern, callback, require_type, rewrite_once):
        super().__init__(pattern=pattern, function=callback, require_type=bool(require_type), rewrite_once=bool(rewrite_once))


class DFPatternCallback:
    """A rewrite: subclasses set `self.pattern` and write `callback(pre, post, node_map)`.

        class DropAddZero(DFPatternCallback):
            def __init__(self):
                super().__init__()
                self.x = wildcard()
                self.pattern = self.x + ExprPattern(relay.const(0.0))

            def callback(self, pre, post, node_map):
                return node_map[self.x][0]

        out = rewrite(DropAddZero(), expr)

    require_type: types are inferred before each round, so that `pre` has one. rewrite_once: only in the first round, for results
    that match again.
    """

    def __init__(self, require_type=False, rewrite_once=False):
        self.pattern = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr):
        """The expression with all matches rewritten."""
        return rewrite(self, expr)

    def callback(self, pre, post, node_map):
        """The replacement of a match. `pre` is the matched expression; `post` is the same with its inputs
        rewritten; `node_map[pattern]` lists what a pattern matched, rewritten."""
        raise NotImplementedError("write callback(pre, post, node_map) in your class")


def is_var(name=""):
    """A variable; with a name, of that name."""
    return VarPattern(name)


def is_constant():
    """A constant."""
    return ConstantPattern()


def is_expr(expr):
    """Exactly an expression."""
    return ExprPattern(expr)


def is_op(op_name):
    """An operator, to be called: `is_op("add")(wildcard(), wildcard())`."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields=None):
    """A tuple; `None` takes any fields."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value, index=None):
    """A field of a tuple; `index` None takes any."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond, true_branch, false_branch):
    """An if."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var, value, body):
    """A let."""
    return LetPattern(var, value, body)


def wildcard():
    """Anything."""
    return WildcardPattern()


def has_type(ttype, pattern=None):
    """`pattern` (anything) of this type."""
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype, pattern=None):
    """`pattern` (anything), a tensor of this dtype."""
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape, pattern=None):
    """`pattern` (anything), a tensor of this shape."""
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs, pattern=None):
    """`pattern` (anything) with these attributes."""
    return AttrPattern(wildcard() if pattern is None else pattern, attrs)


def dominates(parent, path, child):
    """`child`, fed by one `parent` through expressions that match `path`."""
    return DominatorPattern(parent, path, child)


def match(pattern, expr):
    """Whether the pattern matches the expression as a whole."""
    return bool(_api("match")(pattern, expr))


def rewrite(callbacks, expr, mod=None):
    """The expression with the matches of each callback rewritten, round by round until nothing changes. A match whose inner
    expressions are used outside of it is left alone. CompileError if this does not end."""
    callbacks = [callbacks] if isinstance(callbacks, DFPatternCallback) else callbacks
    made = [_DFPatternCallback(c.pattern, c.callback, c.require_type, c.rewrite_once) for c in callbacks]
    return _api("rewrite")(made, expr, mod if mod is not None else IRModule())


def partition(pattern, expr, attrs=None, check=lambda x: True):
    """The expression with each match in a function that is called in its place. Parameters come in the order of the pattern;
    constants that the pattern names stay inside. The function has `attrs`, and PartitionedFromPattern, the operators in it.
    `check(expr)` false leaves a match alone."""
    return _api("partition")(pattern, expr, dict(attrs or {}), check)


__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]
