# SPDX-License-Identifier: Apache-2.0
"""Loops of a script in a schedule: those that stand right within each other are a nest, which is split, fused and put in order as those of a
computation are."""

from ...error import UnsupportedError
from ...tir import For, ForKind, IfThenElse, op
from ...tir.stmt_functor import ir_transform, substitute
from .loops import Split


def _nest(loop):
    """(loops that stand right within each other, from the outside in; what the innermost repeats)"""
    found = [loop]
    while isinstance(found[-1].body, For):
        found.append(found[-1].body)
    return found, found[-1].body


class _Rewriter:
    def __init__(self, stage, loops, kinds):
        self.stage, self.loops, self.kinds = stage, loops, kinds
        self.roots = {a.var.handle: [a] for a in stage.op.axis}  # loop -> the axes that it is made of
        for r in stage.relations:
            if isinstance(r, Split):
                self.roots[r.outer.var.handle] = self.roots[r.inner.var.handle] = self.roots[r.parent.var.handle]
            else:
                self.roots[r.fused.var.handle] = self.roots[r.outer.var.handle] + self.roots[r.inner.var.handle]

    def __call__(self, stmt):
        return ir_transform(stmt, self._visit, None, ["tir.For"])

    def _visit(self, loop):
        nest, body = _nest(loop)
        own = {f.loop_var.handle: f for f in nest}
        leaves = [iv for iv in self.stage.leaf_iter_vars if any(a.var.handle in own for a in self.roots[iv.var.handle])]
        for iv in leaves:
            if any(a.var.handle not in own for a in self.roots[iv.var.handle]):
                raise UnsupportedError(f"`{iv.var.name}` of `{self.stage.op.name}` joins loops that do not stand right within each other")
        body = self(body)
        if [iv.var.handle for iv in leaves] != list(own):
            self._check_extents(nest)
        values = {f.loop_var: f.min + self.loops.value(a) for f in nest for a in self._axes(f) if not self._as_it_is(f, leaves)}
        conditions = [self.loops.value(iv) < self.loops.extent(iv) for iv in self.loops.inexact if all(a.var.handle in own for a in self.roots[iv.var.handle])]
        body = substitute(body, values) if values else body
        body = IfThenElse(op.all(*conditions), body) if conditions else body
        for iv in reversed(leaves):
            body = self._loop(iv, own.get(iv.var.handle), body)
        return body

    def _axes(self, loop):
        return [a for a in self.stage.op.axis if a.var.same_as(loop.loop_var)]

    @staticmethod
    def _as_it_is(loop, leaves):
        return any(iv.var.same_as(loop.loop_var) for iv in leaves)

    def _check_extents(self, nest):
        for outer in nest:
            for inner in nest:
                if _uses(inner.extent, outer.loop_var) or _uses(inner.min, outer.loop_var):
                    raise UnsupportedError(
                        f"the loop `{inner.loop_var.name}` of `{self.stage.op.name}` runs as far as `{outer.loop_var.name}` says: these stay as they are"
                    )

    def _loop(self, iv, given, body):
        asked, notes = self.stage.asked(iv), self.stage.annotations(iv)
        kind = None if asked is None else self.kinds.get(asked.iter_type)
        if given is not None:
            return For(iv.var, given.min, given.extent, ForKind(int(given.kind)) if kind is None else kind, body, annotations={**given.annotations, **notes})
        return For(iv.var, op.const(0, "int64"), self.loops.extent(iv), ForKind.SERIAL if kind is None else kind, body, annotations=notes)


def _uses(expr, var):
    found = []
    from ...tir.stmt_functor import post_order_visit

    post_order_visit(expr, lambda e: found.append(e) if e.same_as(var) else None)
    return bool(found)


def scheduled(stmt, stage, loops, kinds):
    """The statement of a script with its loops as a stage has them; `kinds`: of what is asked of loops, by name."""
    return _Rewriter(stage, loops, kinds)(stmt) if stage.relations or stage.iter_var_attrs or _is_reordered(stage) else stmt


def _is_reordered(stage):
    return any(not a.var.same_as(b.var) for a, b in zip(stage.op.axis, stage.leaf_iter_vars, strict=False))


__all__ = ["scheduled"]
