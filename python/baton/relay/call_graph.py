# SPDX-License-Identifier: Apache-2.0
"""References between the functions of a module: `baton.relay.analysis.CallGraph`."""

from .._ffi import get_global_func
from ..ir import GlobalVar, RelayExpr
from .adt import Match
from .expr import Call, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from .function import Function


def _parts(node):
    """The children of an expression."""
    if isinstance(node, Call):
        return [node.op, *node.args]
    if isinstance(node, Tuple):
        return node.fields
    if isinstance(node, Let):
        return [node.value, node.body]
    if isinstance(node, If):
        return [node.cond, node.true_branch, node.false_branch]
    if isinstance(node, Function):
        return [node.body]
    if isinstance(node, TupleGetItem):
        return [node.tuple_value]
    if isinstance(node, (RefCreate, RefRead, RefWrite)):
        return [getattr(node, name) for name in ("ref", "value") if name in dir(node)]
    if isinstance(node, Match):
        return [node.data, *(c.rhs for c in node.clauses)]
    return []


class CallGraph:
    """The functions of a module, and how often each refers to each.

    `graph[name]` is the global variable of a function; every method takes a variable or a name.
    """

    def __init__(self, module):
        self.module = module
        self._refers = {}
        for var, func in module.functions.items():
            found = self._refers[var.name_hint] = {}
            nodes = []
            if isinstance(func, RelayExpr):
                get_global_func("relay.analysis.post_order_visit")(func, nodes.append)
            for node in nodes:
                for part in _parts(node):
                    if isinstance(part, GlobalVar):
                        found[part.name_hint] = found.get(part.name_hint, 0) + 1

    def _name(self, var):
        name = var if isinstance(var, str) else var.name_hint
        if name not in self._refers:
            raise ValueError(f"the module has no function `{name}`; it has {', '.join(self._refers) or 'none'}")
        return name

    @property
    def functions(self):
        """Global variable -> function, as the module has them."""
        return self.module.functions

    def __contains__(self, var):
        return (var if isinstance(var, str) else var.name_hint) in self._refers

    def __iter__(self):
        return iter(self.module.get_global_vars())

    def __getitem__(self, var):
        return self.module.get_global_var(self._name(var))

    def calls(self, var):
        """Names of the functions that one refers to, with how often."""
        return dict(self._refers[self._name(var)])

    def ref_count(self, var):
        """How often functions of the module refer to it."""
        name = self._name(var)
        return sum(found.get(name, 0) for found in self._refers.values())

    def global_call_count(self, var):
        """How often it refers to functions of the module."""
        return sum(self._refers[self._name(var)].values())

    def is_recursive(self, var):
        """Whether it reaches itself."""
        name = self._name(var)
        seen, left = set(), list(self._refers[name])
        while left:
            at = left.pop()
            if at == name:
                return True
            if at not in seen:
                seen.add(at)
                left += self._refers.get(at, ())
        return False

    def print_var(self, var):
        """The function's line in the graph's text."""
        name = self._name(var)
        found = ", ".join(f"@{n} x{k}" if k > 1 else f"@{n}" for n, k in self._refers[name].items())
        return f"@{name} (referred to {self.ref_count(name)} times): {found or 'no function'}"

    def __str__(self):
        return "\n".join(self.print_var(name) for name in self._refers)


__all__ = ["CallGraph"]
