# SPDX-License-Identifier: Apache-2.0
"""Programs in another dtype."""

from ..relay import ExprMutator, Function, TensorType, TupleType, Var, const


class ChangeDatatype(ExprMutator):
    """Variables and constants of a dtype in another one.

    src, dst = "float32", "float64"
    expr = ChangeDatatype(src, dst).visit(expr)
    """

    def __init__(self, src, dst):
        super().__init__()
        self.src, self.dst = src, dst

    def transform_module(self, mod, _):
        """The module with all its functions changed."""
        return type(mod)({var: self.visit(func) for var, func in mod.functions.items()})

    def visit_constant(self, const_):
        if str(const_.data.dtype) != self.src:
            return const_
        return const(const_.data.numpy().astype(self.dst), self.dst)

    def visit_function(self, fn):
        params = [self.visit(p) for p in fn.params]
        kind = None if fn.ret_type is None else self._changed(fn.ret_type)
        return Function(params, self.visit(fn.body), kind, fn.type_params, fn.attrs)

    def visit_var(self, var):
        kind = var.type_annotation
        changed = None if kind is None else self._changed(kind)
        return var if changed is kind else Var(var.name_hint, changed)

    def _changed(self, kind):
        if isinstance(kind, TupleType):
            return TupleType([self._changed(f) for f in kind.fields])
        return TensorType(kind.shape, self.dst) if isinstance(kind, TensorType) and str(kind.dtype) == self.src else kind


__all__ = ["ChangeDatatype"]
