# SPDX-License-Identifier: Apache-2.0
"""Expressions that a function computes more than once."""

from . import _ffi_api
from .expr import Add, Cast, Div, FloorDiv, FloorMod, Max, Min, Mod, Mul, Select, Sub, Var
from .stmt import AttrStmt, For, LetStmt, SeqStmt
from .stmt_functor import _parts

_COMPUTED = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, Select, Cast)


class _Seen:
    """A computation of variables and literals: an expression of its kind, how often it occurs, and what is computed of it."""

    __slots__ = ("count", "expr", "size", "variables")

    def __init__(self, expr, size, variables):
        self.expr, self.size, self.variables, self.count = expr, size, variables, 0


class CommonSubexpressions:
    """Binds what a statement computes more than once to a variable in front of it. Computations of variables and literals alone are bound: what
    memory holds, and what calls give, may change in between."""

    def __init__(self):
        self._made = 0

    def __call__(self, stmt, bound):
        """The statement with bindings; `bound`: handles of the variables that are bound in front of it."""
        values = []
        while True:
            repeated = [s for s in self._computations(stmt, values).values() if s.count > 1 and s.variables <= bound]
            if not repeated:
                break
            largest = max(repeated, key=lambda s: s.size)
            self._made += 1
            var = Var(f"cse_var_{self._made}", largest.expr.dtype)
            stmt, values = self._replaced(stmt, largest.expr, var), [(v, self._replaced(e, largest.expr, var)) for v, e in values]
            values.append((var, largest.expr))
        stmt = self._within(stmt, bound | {v.handle for v, _ in values})
        for var, value in values:
            stmt = LetStmt(var, value, stmt)
        return stmt

    def _within(self, stmt, bound):
        if isinstance(stmt, SeqStmt):
            return SeqStmt([self(s, bound) for s in stmt.seq])
        if isinstance(stmt, For):
            body = self(stmt.body, bound | {stmt.loop_var.handle})
            return For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, body, None, stmt.annotations)
        if isinstance(stmt, LetStmt):
            return LetStmt(stmt.var, stmt.value, self(stmt.body, bound | {stmt.var.handle}))
        if isinstance(stmt, AttrStmt):
            var = getattr(stmt.node, "var", stmt.node)
            inner = bound | {var.handle} if isinstance(var, Var) else bound
            return AttrStmt(stmt.node, stmt.attr_key, stmt.value, self(stmt.body, inner))
        return stmt

    @staticmethod
    def _replaced(node, expr, var):
        from .analysis import expr_deep_equal

        kind, same = expr.type_key, {}

        def by(e):
            if e.handle not in same:
                same[e.handle] = expr_deep_equal(e, expr)
            return var if same[e.handle] else None

        if isinstance(node, Var):
            return node
        if node.type_key.startswith("tir.") and hasattr(node, "dtype"):
            from .stmt import Evaluate

            return _ffi_api.IRTransform(Evaluate(node), by, None, [kind]).value
        return _ffi_api.IRTransform(node, by, None, [kind])

    @staticmethod
    def _computations(stmt, values):
        """By what they compute."""
        found = {}

        def visit(node):
            """(key, size, variables) of a computation; None of another node."""
            parts = [visit(p) for p in _parts(node)]
            if isinstance(node, Var):
                return ("var", node.handle), 1, frozenset([node.handle])
            if node.type_key in ("IntImm", "FloatImm"):
                return (node.type_key, str(node.dtype), node.value), 1, frozenset()
            if not isinstance(node, _COMPUTED) or any(p is None for p in parts):
                return None
            key = (node.type_key, str(node.dtype), *(p[0] for p in parts))
            size, variables = 1 + sum(p[1] for p in parts), frozenset().union(*(p[2] for p in parts))
            if variables:
                found.setdefault(key, _Seen(node, size, variables)).count += 1
            return key, size, variables

        for root in (stmt, *(value for _, value in values)):
            visit(root)
        return found


__all__ = ["CommonSubexpressions"]
