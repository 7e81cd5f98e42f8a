# SPDX-License-Identifier: Apache-2.0
"""Annotators for tests of partitioning: they mark by hand what another compiler takes."""

from ..relay import ExprMutator, annotation
from ..relay.expr import Call


def _marked(call, op_call, compiler):
    """A call between `compiler_begin` and `compiler_end`."""
    made = op_call(*[annotation.compiler_begin(arg, compiler) for arg in call.args])
    return annotation.compiler_end(made, compiler)


class WhiteListAnnotator(ExprMutator):
    """Marks each call of some operators, by name, as one that a compiler takes."""

    def __init__(self, op_list, compiler):
        self.op_list, self.compiler = list(op_list), compiler
        super().__init__()

    def visit_call(self, call):
        if getattr(call.op, "name", None) not in self.op_list:
            return super().visit_call(call)
        return _marked(super().visit_call(call), lambda *args: Call(call.op, list(args), call.attrs, call.type_args), self.compiler)


class CcompilerAnnotator(ExprMutator):
    """Marks chains from an `add`, over subtractions, to a `multiply` as what the compiler "ccompiler" takes."""

    chain = ("add", "subtract", "multiply")

    def visit_call(self, call):
        if getattr(call.op, "name", None) != "multiply":
            return super().visit_call(call)
        return annotation.compiler_end(self._inside(call), "ccompiler")

    def _inside(self, expr):
        """An expression that a marked one uses: part of the chain, or an input of it."""
        name = getattr(getattr(expr, "op", None), "name", None)
        if name not in self.chain:
            return annotation.compiler_begin(self.visit(expr), "ccompiler")
        inputs = [annotation.compiler_begin(self.visit(a), "ccompiler") if name == "add" else self._inside(a) for a in expr.args]
        return Call(expr.op, inputs, expr.attrs)


__all__ = ["CcompilerAnnotator", "WhiteListAnnotator"]
