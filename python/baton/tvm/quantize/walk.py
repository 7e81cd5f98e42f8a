# SPDX-License-Identifier: Apache-2.0
"""The walk that partition, annotate and realize share: by the rules of operators, everything else computes on floats."""

from ...ir import Op
from ...relay.expr import Constant, Tuple, TupleGetItem
from ...relay.expr_functor import ExprMutator
from .config import current_qconfig
from .rules import rule_of


class Walk(ExprMutator):
    """A mutator that asks an operator's rule for a call. `plain` gives results in another form as floats to all others.

    `step(rule, call, args)` gives what the call becomes, or None where it computes on floats.
    """

    def __init__(self):
        super().__init__()
        self.config = current_qconfig()
        self._plainly = False
        self._layers = 0  # layers that skip_conv_layers counts, so far

    def step(self, rule, call, args):
        """Returns the result for a call with a rule, or None."""
        raise NotImplementedError

    def plain_tensor(self, expr):
        """A value other than a tuple as floats."""
        raise NotImplementedError

    def plain(self, expr):
        """A value as floats, tuples field by field."""
        if isinstance(expr, Tuple):
            fields = [self.plain(f) for f in expr.fields]
            return expr if all(a.same_as(b) for a, b in zip(fields, expr.fields, strict=True)) else Tuple(fields, expr.span)
        return self.plain_tensor(expr)

    def visit(self, expr):
        plainly, self._plainly = self._plainly, False
        try:
            value = super().visit(expr)
        finally:
            self._plainly = plainly
        return self.plain(value) if plainly else value

    def visit_call(self, call):
        rule = rule_of(call.op) if isinstance(call.op, Op) else None
        if rule is None:
            return self._on_floats(call)
        args = [self.visit(a) for a in call.args]
        made = self.step(rule, call, args) if self._quantized(rule, call) else None
        return self._on_floats(call) if made is None else made

    def visit_tuple_getitem(self, op):
        value = self.visit(op.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[op.index]  # in the form that it has
        return op if value.same_as(op.tuple_value) else TupleGetItem(value, op.index, op.span)

    def _on_floats(self, call):
        self._plainly = True
        try:
            return super().visit_call(call)
        finally:
            self._plainly = False

    def _quantized(self, rule, call):
        """Whether the configuration lets a call be quantized."""
        number = self._layers
        self._layers += rule.counted
        if rule.counted and number in (self.config.skip_conv_layers or ()):
            return False
        return not (rule.dense and self.config.skip_dense_layer) and (rule.marks or self.config.guard(call))


def _outside(name):
    """Nodes other than calls and tuples take their children as floats."""
    own = getattr(ExprMutator, name)

    def visit(self, expr):
        self._plainly = True
        try:
            return own(self, expr)
        finally:
            self._plainly = False

    visit.__name__ = name
    return visit


for _name in ("visit_function", "visit_let", "visit_if", "visit_match", "visit_ref_create", "visit_ref_read", "visit_ref_write"):
    setattr(Walk, _name, _outside(_name))
del _name


def is_constant(expr):
    """Whether an expression is a constant of floats."""
    return isinstance(expr, Constant) and str(expr.data.dtype).startswith("float")


__all__ = ["Walk", "is_constant"]
