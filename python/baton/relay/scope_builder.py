# SPDX-License-Identifier: Apache-2.0
"""Builds chains of lets and branches in program order."""

import contextlib

from .expr import If, Let, Var


class ScopeBuilder:
    """Collects bindings and a result.

    sb = relay.ScopeBuilder()
    with sb.if_scope(cond):
        one = sb.let("one", relay.const(1))
        sb.ret(one)
    with sb.else_scope():
        sb.ret(relay.const(2))
    body = sb.get()
    """

    def __init__(self):
        self._bindings, self._results = [[]], [None]

    def _enter(self):
        self._bindings.append([])
        self._results.append(None)

    def _exit(self):
        bindings, result = self._bindings.pop(), self._results.pop()
        if result is None:
            raise RuntimeError("the scope has no result; end it with ret(value)")
        return _chain(bindings, result)

    def let(self, var, value):
        """Binds a value to a variable, or to a new one of that name (or of (name, type)); gives the variable."""
        if isinstance(var, (tuple, list)):
            if len(var) > 2:
                raise ValueError("a variable is said by name, or by (name, type)")
            var = Var(*var)
        elif isinstance(var, str):
            var = Var(var)
        self._bindings[-1].append((var, value))
        return var

    @contextlib.contextmanager
    def if_scope(self, cond):
        """The branch taken if `cond`."""
        self._enter()
        yield
        then = self._exit()
        self._results[-1] = (cond, then)

    @contextlib.contextmanager
    def else_scope(self):
        """The other branch; right after `if_scope`."""
        pending = self._results[-1]
        if not isinstance(pending, tuple):
            raise RuntimeError("else_scope comes right after if_scope")
        self._enter()
        yield
        self._results[-1] = If(*pending, self._exit())

    @contextlib.contextmanager
    def type_of(self, *_):
        """Kept for old programs."""
        yield

    def ret(self, value):
        """The scope's result."""
        if self._results[-1] is not None:
            raise RuntimeError("the scope has a result already")
        self._results[-1] = value

    def get(self):
        """The expression of the outermost scope."""
        if len(self._bindings) != 1:
            raise RuntimeError("a scope is still open")
        if self._results[-1] is None or isinstance(self._results[-1], tuple):
            raise RuntimeError("the scope has no result; end it with ret(value)")
        return _chain(self._bindings[-1], self._results[-1])


def _chain(bindings, body):
    for var, value in reversed(bindings):
        body = Let(var, value, body)
    return body
