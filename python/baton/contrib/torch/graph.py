# SPDX-License-Identifier: Apache-2.0
"""A graph of ATen calls as Relay expressions, node by node."""

from __future__ import annotations

import functools
import operator as python

import torch

from ...error import UnsupportedError
from ...ir import RelayExpr
from ...relay import Tuple, Var, const
from ...relay.op.make import operator
from ...relay.ty import TensorType
from . import ops  # noqa: F401 - fills the table of rules
from .complexes import REAL_OF, Complex, Pair, convert_complex, is_complex, real_fake
from .context import Context, Value
from .dtypes import is_float, relay_dtype
from .places import span_of
from .registry import REFUSED, RULES, name_of
from .sizes import Sizes, expression
from .unsupported import Missing, error_of

# Functions of SymPy and PyTorch that numbers of sizes have, and Relay's.
_ARITHMETIC = {
    **{"Add": "add", "Mul": "multiply", "FloorDiv": "floor_divide", "CleanDiv": "floor_divide", "Mod": "floor_mod", "PythonMod": "floor_mod"},
    **{"Max": "maximum", "Min": "minimum", "IntTrueDiv": "divide", "FloatTrueDiv": "divide", "ToFloat": "copy"},
}
# Nodes that make a number of a tensor's only element.
_ITEMS = ("aten.item.default", "aten._local_scalar_dense.default")
# Nodes that say something of sizes and have no value.
_CHECKS = ("_assert", "sym_constrain", "_guards_fn")


# PyTorch orders calls that have effects by tokens, which hold nothing.
_TOKENS = ("prims._make_token.default", "prims._sink_tokens.default")
_EFFECT = "torch.ops.higher_order.with_effects"
_CHECK = "aten._linalg_check_errors.default"


def is_check(node) -> bool:
    """Whether a node raises where a factorisation failed, and does nothing else."""
    name = name_of(node.target) if node.op == "call_function" else ""
    return name == _CHECK or name == _EFFECT and name_of(node.args[1]) == _CHECK


def is_token(node) -> bool:
    """Whether a node is the token of an effect, which is None when the graph runs."""
    if node.op == "placeholder":
        return bool(node.users) and all(_is_effect(u) and u.args[0] is node for u in node.users)
    return node.target is python.getitem and node.args[1] == 0 and _is_effect(node.args[0])


def _is_effect(node):
    return node.op == "call_function" and name_of(node.target) == _EFFECT


def is_tensor(value) -> bool:
    """Whether what PyTorch knows of a node is a tensor."""
    return isinstance(value, torch.Tensor)


def is_symbolic(value) -> bool:
    """Whether it is a number of PyTorch's symbols."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


class GraphConverter:
    """Converts the nodes of a graph. `values` holds what they are in Relay: an expression, or a list of them."""

    def __init__(self, graph, sizes: Sizes | None = None, checks=None):
        """checks: a list that takes what has to be looked at behind the results, (info, arguments of `_linalg_check_errors`) each; without
        one such checks have no rule."""
        self.graph, self.sizes, self.checks = graph, sizes or Sizes(), checks
        self.values: dict = {}
        self.missing: list[Missing] = []
        self._symbols: dict = {}  # symbol -> (expression of a tensor, axis) that it can be read from
        self._computed: dict = {}  # the same of extents that a node's values give
        self._numbers: dict = {}  # symbol -> the placeholder that is this number
        self._scalars: dict = {}  # symbol -> the parameter that has it as a value
        self._items: dict = {}  # symbol -> the tensor whose only element it is
        self._bound: set = set()  # the symbols in shapes of inputs

    def parameter(self, node, name: str):
        """Makes a placeholder a parameter of the function; two, in a list, where it is complex."""
        fake = node.meta["val"]
        if is_complex(fake):
            kind = relay_dtype(REAL_OF[fake.dtype])
            parts = [Var(f"{name}_{p}", TensorType(self.sizes.extents(fake.shape), kind)) for p in ("re", "im")]
            self.values[node] = Pair(*parts)
            self._read_sizes(node, parts[0])
            return parts
        var = Var(name, TensorType(self.sizes.extents(fake.shape), relay_dtype(fake.dtype)))
        self.bind(node, var)
        return var

    def bind(self, node, expr) -> None:
        """Gives a placeholder, or an attribute, its expression."""
        self.values[node] = expr
        self._read_sizes(node, expr)

    def number(self, node) -> None:
        """Notes a placeholder that is a number of sizes: it becomes a parameter where it is used and no tensor has it."""
        self._numbers.setdefault(expression(node.meta["val"]), node)

    def number_parameters(self):
        """Parameters for numbers, when all is converted: (placeholder, variable, whether it is an extent) each. A value is a scalar; an extent is that of
        a tensor without elements."""
        found = [(self._numbers[expr], var, False) for expr, var in self._scalars.items()]
        for symbol, size in list(self.sizes.variables.items()):
            if symbol in self._numbers and symbol not in self._symbols:
                node = self._numbers[symbol]
                found.append((node, Var(f"{node.name}_extent", TensorType([size, 0], "bool")), True))
        return found

    def scalar_of(self, value):
        """The value of a number that nodes give; None for one that inputs say."""
        return None if self._is_given(expression(value)) else self._size_value(expression(value))[0]

    def _read_sizes(self, node, expr) -> None:
        for axis, size in enumerate(node.meta["val"].shape):
            if is_symbolic(size):
                self._symbols.setdefault(expression(size), (expr, axis))
                self._bound |= expression(size).free_symbols

    def _is_given(self, expr) -> bool:
        """Whether inputs say a size: a formula of their extents and numbers."""
        given = self.sizes.readable
        return expr in given or all(s in self._bound or s in self._numbers or s in given for s in expr.free_symbols)

    def span_of(self, node):
        """The place that the calls of a node have in the module."""
        return span_of(node)

    def value_of(self, node):
        """The tensor of a node, a Value or a Complex."""
        if isinstance(self.values[node], Pair):
            return Complex.of(self.values[node], node.meta["val"], node)
        return Value(self.values[node], node.meta["val"], node)

    def convert(self) -> None:
        """Converts all nodes. Raises one UnsupportedError that names everything that has no rule."""
        for node in self.graph.nodes:
            if node.op == "call_function" and node not in self.values:
                self._convert(node)
            elif node.op in ("call_module", "call_method"):
                self.missing.append(Missing(node, f"{node.op} {node.target}", "the graph is none of ATen calls"))
        if self.missing:
            raise error_of(self.missing)

    def _leave(self, node, name, reason) -> None:
        """Notes a node without a rule. Others that use it are tried all the same, with a variable in its place."""
        self.missing.append(Missing(node, name, reason))
        fake = node.meta.get("val")
        try:
            if is_tensor(fake):
                self.parameter(node, node.name)
            elif isinstance(fake, (list, tuple)):
                self.values[node] = [self._stand_in(f) for f in fake]
        except UnsupportedError:
            pass  # of a dtype that Relay lacks: what uses it says so itself

    def _stand_in(self, fake):
        try:
            return Var("missing", TensorType(self.sizes.extents(fake.shape), relay_dtype(fake.dtype))) if is_tensor(fake) else None
        except UnsupportedError:
            return None

    def _convert(self, node) -> None:
        fake = node.meta.get("val")
        if node.target is python.getitem:
            whole = self.values.get(node.args[0])
            if whole is not None and whole[node.args[1]] is not None:
                self.values[node] = whole[node.args[1]]
            return
        name = name_of(node.target)
        if is_symbolic(fake) or isinstance(fake, (int, float, bool)):
            if name in _ITEMS and is_symbolic(fake) and isinstance(self.values.get(node.args[0]), RelayExpr):
                self._items.setdefault(expression(fake), self.value_of(node.args[0]))
            return  # a number: what uses it reads its formula
        if fake is None and any(check in name for check in _CHECKS):
            return
        if self.checks is not None and (name in _TOKENS or is_check(node)):
            if name not in _TOKENS:
                info, *args = node.args[2:] if name == _EFFECT else node.args
                self.checks.append((self.values[info], (*args, *node.kwargs.values())))
            return
        rule = RULES.get(name)
        of_complex = is_complex(fake[0] if isinstance(fake, (list, tuple)) and fake else fake) or any(
            isinstance(self.values.get(n), Pair) for n in node.all_input_nodes
        )
        if rule is None and not of_complex:
            self._leave(node, name, REFUSED.get(name, "there is no rule for it"))
            return
        lacking = [n for n in self._tensors_of(node) if n not in self.values]
        if lacking:
            fakes = {str(n.meta["val"].dtype) for n in lacking}
            self._leave(node, name, f"it takes tensors of {', '.join(sorted(fakes))}, which Relay lacks")
            return
        try:
            context = Context(node, real_fake(fake) if of_complex else fake, self.sizes, self.span_of(node), self._size_value, self._is_given)
            context.value_of = self.value_of
            args, kwargs = self._argument(node.args), self._argument(node.kwargs)
            if of_complex:
                context.is_complex = is_complex(fake)
                out = convert_complex(name, RULES, context, args, kwargs)
                context.need(out is not None, "there is no rule of it for complex tensors")
            else:
                out = rule(context, *args, **kwargs)
        except UnsupportedError as error:
            self._leave(node, name, str(error))
            return
        self.values[node] = out
        if is_tensor(fake) and not of_complex:
            for axis, size in enumerate(fake.shape):
                if is_symbolic(size):
                    self._computed.setdefault(expression(size), (out, axis))

    def _tensors_of(self, node):
        return [n for n in node.all_input_nodes if is_tensor(n.meta.get("val"))]

    def _argument(self, arg):
        if isinstance(arg, torch.fx.Node):
            fake = arg.meta.get("val")
            if is_tensor(fake):
                return self.value_of(arg)
            if is_symbolic(fake):
                return self._number(fake)
            return fake
        if is_symbolic(arg):
            return self._number(arg)
        if isinstance(arg, (list, tuple)):
            return [self._argument(a) for a in arg]
        if isinstance(arg, dict):
            return {k: self._argument(v) for k, v in arg.items()}
        return arg

    @staticmethod
    def _number(value):
        expr = expression(value)
        return int(expr) if isinstance(value, torch.SymInt) and expr.is_Integer else float(expr) if expr.is_number else value

    @staticmethod
    def _extent_of(tensor, axis):
        return operator("take")(operator("shape_of")(tensor, dtype="int64"), const(axis, "int64"), axis=0)

    def _size_value(self, expr):
        """(a number of sizes as a scalar that is read from shapes of inputs, its dtype: int64 or float64)"""
        if expr.is_Integer:
            return const(int(expr), "int64"), "int64"
        if expr.is_number:
            return const(float(expr), "float64"), "float64"
        if expr in self._symbols:
            return self._extent_of(*self._symbols[expr]), "int64"
        if expr in self._numbers:
            node = self._numbers[expr]
            kind = "int64" if isinstance(node.meta["val"], torch.SymInt) else "float64"
            return self._scalars.setdefault(expr, Var(node.name, TensorType([], kind))), kind
        if expr in self._computed:
            return self._extent_of(*self._computed[expr]), "int64"
        if expr in self._items:
            held = self._items[expr]
            kind = "float64" if is_float(held.dtype) else "int64"
            return operator("cast")(operator("reshape")(held.expr, newshape=[]), dtype=kind), kind
        if expr.is_Symbol:
            raise UnsupportedError(f"the number `{expr}` is no extent of an input")
        if expr.is_Pow and expr.args[1].is_Integer and int(expr.args[1]) > 0:
            base, kind = self._size_value(expr.args[0])
            return functools.reduce(operator("multiply"), [base] * int(expr.args[1])), kind
        name = _ARITHMETIC.get(type(expr).__name__)
        if name is None:
            raise UnsupportedError(f"the number `{expr}` as a value")
        args = [self._size_value(a) for a in expr.args]
        kind = "float64" if name == "divide" or any(dtype == "float64" for _, dtype in args) else "int64"
        out, *rest = (a if dtype == kind else operator("cast")(a, dtype=kind) for a, dtype in args)
        for arg in rest:
            out = operator(name)(out, arg)
        return out, kind


def body_of(results):
    """The body of a function: one result as it is, several as a tuple."""
    return results[0] if len(results) == 1 else Tuple(results)
