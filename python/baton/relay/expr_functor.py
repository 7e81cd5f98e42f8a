# SPDX-License-Identifier: Apache-2.0
"""Traversal of expressions in Python; the same rules as in C++.

A visitor handles a shared node once, a mutator transforms it once, and a node whose children did not change stays the
same object. Programs are deep: while one visits, Python's limit on nested calls is high enough for some hundred thousand
levels.
"""

import sys
import threading

from .._ffi import get_global_func
from ..ir import GlobalVar, Op, RelayExpr
from ..ir.instrument import when_watched
from .adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from .expr import Call, Constant, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from .function import Function

_METHODS = {
    Constant: "visit_constant",
    Tuple: "visit_tuple",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    If: "visit_if",
    Op: "visit_op",
    TupleGetItem: "visit_tuple_getitem",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
}


class _Deep:
    """Raises the recursion limit during a visit."""

    limit = 4_000_000

    def __init__(self):
        self.lock, self.users, self.before = threading.Lock(), 0, 0

    def __enter__(self):
        with self.lock:
            if self.users == 0:
                self.before = sys.getrecursionlimit()
                if self.before < self.limit:
                    sys.setrecursionlimit(self.limit)
            self.users += 1

    def __exit__(self, *_):
        with self.lock:
            self.users -= 1
            if self.users == 0:
                try:
                    sys.setrecursionlimit(self.before)
                except RecursionError:  # the stack is deeper than the old limit already
                    pass


_deep = _Deep()
_at_expr = None


def answer_watchdogs():
    """From now on visitors report the expression that they visit; called when the first watchdog is made."""
    global _at_expr
    _at_expr = get_global_func("transform.AtExpr")


when_watched(answer_watchdogs)


class ExprFunctor:
    """Dispatch on the kind of expression: `visit(expr)` calls `visit_call`, `visit_let`, ... and remembers results."""

    _gives = object  # the type of each visit's result

    def __init__(self):
        self.memo_map = {}
        self._visiting = False

    def visit(self, expr):
        """The result for an expression; one that was visited is not visited again."""
        memo = self.memo_map
        if expr in memo:
            return memo[expr]
        method = self._dispatch(expr)
        if _at_expr is not None:
            _at_expr(expr)
        if self._visiting:
            result = method(expr)
        else:
            self._visiting = True
            try:
                with _deep:
                    result = method(expr)
            finally:
                self._visiting = False
        if not isinstance(result, self._gives):
            name = self._dispatch(expr).__name__
            raise TypeError(
                f"{type(self).__name__}.{name} gave {'None' if result is None else type(result).__name__} for an expression of "
                f"type `{expr.type_key}`; a mutator gives the expression that takes its place"
            )
        memo[expr] = result
        return result

    __call__ = visit

    def _dispatch(self, expr):
        for cls in type(expr).__mro__:
            name = _METHODS.get(cls)
            if name is not None:
                return getattr(self, name)
        if isinstance(expr, RelayExpr):
            return self.visit_default
        raise TypeError(f"{type(self).__name__} visits expressions of Relay, not {type(expr).__name__}")

    def visit_default(self, expr):
        """For kinds of expressions without a method."""
        raise NotImplementedError(f"{type(self).__name__} has no method for expressions of type `{expr.type_key}`")

    visit_constant = visit_tuple = visit_var = visit_global_var = visit_function = visit_call = visit_let = visit_if = visit_default
    visit_op = visit_tuple_getitem = visit_ref_create = visit_ref_read = visit_ref_write = visit_constructor = visit_default
    visit_match = visit_default


class ExprVisitor(ExprFunctor):
    """For analysis: visits every child of an expression. If: cond, true, false; Let: value, var, body.

    `visit_type` is called for the types that are written down: annotations, results of functions, type arguments.
    """

    def visit_type(self, ty):
        """A type that is written down."""

    def _types(self, *types):
        if type(self).visit_type is not ExprVisitor.visit_type:
            for ty in types:
                if ty is not None:
                    self.visit_type(ty)

    def visit_constant(self, const):
        pass

    def visit_var(self, var):
        self._types(var._field("type_annotation"))

    def visit_global_var(self, gvar):
        pass

    def visit_op(self, op):
        pass

    def visit_constructor(self, con):
        pass

    def visit_tuple(self, tup):
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call):
        self.visit(call.op)
        self._types(*call._field("type_args"))
        for arg in call.args:
            self.visit(arg)

    def visit_let(self, let):
        # Chains are long; each let but the first is visited here and not through visit_let, unless a class has its own.
        own = type(self).visit_let is not ExprVisitor.visit_let
        while True:
            self.visit(let.value)
            self.visit(let.var)
            body = let.body
            if own or not isinstance(body, Let) or body in self.memo_map:
                self.visit(body)
                return
            self.memo_map[body] = None
            let = body

    def visit_if(self, if_):
        self.visit(if_.cond)
        self.visit(if_.true_branch)
        self.visit(if_.false_branch)

    def visit_tuple_getitem(self, op):
        self.visit(op.tuple_value)

    def visit_function(self, func):
        self._types(*func.type_params)
        for param in func.params:
            self.visit(param)
        self._types(func._field("ret_type"))
        self.visit(func.body)

    def visit_ref_create(self, ref_create):
        self.visit(ref_create.value)

    def visit_ref_read(self, ref_read):
        self.visit(ref_read.ref)

    def visit_ref_write(self, ref_write):
        self.visit(ref_write.ref)
        self.visit(ref_write.value)

    def visit_match(self, match):
        self.visit(match.data)
        for clause in match.clauses:
            self.visit_pattern(clause.lhs)
            self.visit(clause.rhs)

    def visit_pattern(self, pattern):
        """Visits the variables and constructors of a pattern."""
        if isinstance(pattern, PatternVar):
            self.visit(pattern.var)
        elif isinstance(pattern, PatternConstructor):
            self.visit(pattern.constructor)
        for inner in getattr(pattern, "patterns", ()):
            self.visit_pattern(inner)


def _same(new, old):
    return len(new) == len(old) and all(a.same_as(b) for a, b in zip(new, old, strict=True))


class ExprMutator(ExprFunctor):
    """For transformation: visits give expressions; the defaults rebuild a node of which a child changed."""

    _gives = RelayExpr

    def visit_constant(self, const):
        return const

    def visit_global_var(self, gvar):
        return gvar

    def visit_op(self, op):
        return op

    def visit_constructor(self, con):
        return con

    def visit_type(self, ty):
        """The type that takes the place of one that is written down: annotations, results of functions, type arguments."""
        return ty

    def _types(self, types):
        """The types after `visit_type`; the same object where none changed."""
        if type(self).visit_type is ExprMutator.visit_type:
            return types
        new = [self.visit_type(ty) for ty in types]
        return types if _same(new, types) else new

    def visit_var(self, var):
        written = var._field("type_annotation")
        if written is None:
            return var
        ty = self.visit_type(written)
        return var if ty.same_as(written) else Var(var.vid, ty, var.span)

    def visit_tuple(self, tup):
        fields = [self.visit(f) for f in tup.fields]
        return tup if _same(fields, tup.fields) else Tuple(fields, tup.span)

    def visit_call(self, call):
        op = self.visit(call.op)
        old = call._field("type_args")
        types = self._types(old)
        args = [self.visit(a) for a in call.args]
        if op.same_as(call.op) and types is old and _same(args, call.args):
            return call
        return Call(op, args, call.attrs, types, call.span)

    def visit_let(self, let):
        # Chains are long: down one let after the other, then up again, unless a class overrides visit_let.
        if type(self).visit_let is not ExprMutator.visit_let:
            return self._let(let, self.visit(let.value), self.visit(let.var), self.visit(let.body))
        chain = []
        while True:
            chain.append((let, self.visit(let.value), self.visit(let.var)))
            body = let.body
            if not isinstance(body, Let) or body in self.memo_map:
                break
            let = body
        new = self.visit(body)
        for let, value, var in reversed(chain):
            new = self.memo_map[let] = self._let(let, value, var, new)
        return new

    @staticmethod
    def _let(let, value, var, body):
        if value.same_as(let.value) and var.same_as(let.var) and body.same_as(let.body):
            return let
        return Let(var, value, body, let.span)

    def visit_if(self, if_):
        cond, then, other = self.visit(if_.cond), self.visit(if_.true_branch), self.visit(if_.false_branch)
        if cond.same_as(if_.cond) and then.same_as(if_.true_branch) and other.same_as(if_.false_branch):
            return if_
        return If(cond, then, other, if_.span)

    def visit_tuple_getitem(self, op):
        value = self.visit(op.tuple_value)
        return op if value.same_as(op.tuple_value) else TupleGetItem(value, op.index, op.span)

    def visit_function(self, func):
        old_types, old_result = func.type_params, func._field("ret_type")
        types = self._types(old_types)
        params = [self.visit(p) for p in func.params]
        result = old_result if old_result is None else self.visit_type(old_result)
        body = self.visit(func.body)
        same_types = types is old_types and (result is old_result or result.same_as(old_result))
        if body.same_as(func.body) and same_types and _same(params, func.params):
            return func
        return Function(params, body, result, types, func.attrs, func.span)

    def visit_ref_create(self, ref_create):
        value = self.visit(ref_create.value)
        return ref_create if value.same_as(ref_create.value) else RefCreate(value, ref_create.span)

    def visit_ref_read(self, ref_read):
        ref = self.visit(ref_read.ref)
        return ref_read if ref.same_as(ref_read.ref) else RefRead(ref, ref_read.span)

    def visit_ref_write(self, ref_write):
        ref, value = self.visit(ref_write.ref), self.visit(ref_write.value)
        if ref.same_as(ref_write.ref) and value.same_as(ref_write.value):
            return ref_write
        return RefWrite(ref, value, ref_write.span)

    def visit_match(self, match):
        data = self.visit(match.data)
        clauses = []
        for clause in match.clauses:
            lhs, rhs = self.visit_pattern(clause.lhs), self.visit(clause.rhs)
            same = lhs.same_as(clause.lhs) and rhs.same_as(clause.rhs)
            clauses.append(clause if same else Clause(lhs, rhs))
        if data.same_as(match.data) and _same(clauses, match.clauses):
            return match
        return Match(data, clauses, match.complete, match.span)

    def visit_pattern(self, pattern):
        """The pattern that takes the place of a pattern."""
        if isinstance(pattern, PatternVar):
            var = self.visit(pattern.var)
            return pattern if var.same_as(pattern.var) else PatternVar(var)
        if isinstance(pattern, PatternWildcard):
            return pattern
        inner = [self.visit_pattern(p) for p in pattern.patterns]
        if isinstance(pattern, PatternTuple):
            return pattern if _same(inner, pattern.patterns) else PatternTuple(inner)
        con = self.visit(pattern.constructor)
        if con.same_as(pattern.constructor) and _same(inner, pattern.patterns):
            return pattern
        return PatternConstructor(con, inner)
