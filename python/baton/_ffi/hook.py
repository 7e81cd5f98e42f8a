# SPDX-License-Identifier: Apache-2.0
"""Calls from a lower layer into a higher one, without importing it.

A lower layer declares a hook and calls it; `baton/__init__.py` says which function answers. The module of that function is imported by the
first call, so that a hook costs nothing until it is used.

    make_call = Hook("ir.make_call")            # in ir: a global function is called as an expression
    answer({"ir.make_call": "baton.relay.expr:Call"})   # in baton/__init__.py
"""

import importlib

_answers = {}


def answer(table):
    """Says what hooks call: name of the hook -> "module:function"."""
    _answers.update(table)


class Hook:
    """A function that a higher layer has."""

    __slots__ = ("function", "name")

    def __init__(self, name):
        self.name, self.function = name, None

    def __call__(self, *args, **kwargs):
        if self.function is None:
            if self.name not in _answers:
                raise RuntimeError(f"no function answers the hook `{self.name}`")
            module, _, attribute = _answers[self.name].partition(":")
            self.function = getattr(importlib.import_module(module), attribute)
        return self.function(*args, **kwargs)

    def __repr__(self):
        return f"<hook {self.name}>"


__all__ = ["Hook", "answer"]
