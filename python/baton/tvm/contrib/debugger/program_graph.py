# SPDX-License-Identifier: Apache-2.0
"""The values between the operators of a program, computed one by one."""

from ....driver.relay_build import create_executor
from ....ir import IRModule, Op
from ....relay import Call, Constant, Function, Tuple, TupleGetItem, Var, analysis, transform
from ....relay.expr import var


class ProgramGraph:
    """The operators of `main` as nodes in the order in which they run: `names`, `inputs` (numbers of nodes), and `value(i)`, which computes
    what is needed for it. Programs of operators, tuples and fused functions."""

    def __init__(self, mod, argument):
        self._mod, self._argument = transform.InferType()(mod), argument
        self._exprs, self._at, self._values = [], {}, {}
        analysis.post_order_visit(self._mod["main"].body, self._add)
        self.names, counts = [], {}
        for expr in self._exprs:
            name = expr.name_hint if isinstance(expr, Var) else expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else type(expr).__name__
            counts[name] = counts.get(name, -1) + 1
            self.names.append(f"{name}_{counts[name]}" if counts[name] else name)
        self.inputs = [[self._at[x] for x in _children(expr)] for expr in self._exprs]

    def _add(self, expr):
        if isinstance(expr, (Call, Constant, Tuple, TupleGetItem, Var)):
            self._at[expr] = len(self._exprs)
            self._exprs.append(expr)

    def __len__(self):
        return len(self._exprs)

    def forget(self):
        """Values are computed anew from here on."""
        self._values = {}

    def is_argument(self, index):
        """Whether a node is an argument or a constant, which nothing computes."""
        return isinstance(self._exprs[index], (Var, Constant))

    def shape(self, index):
        """Shape of a node's value; an empty one of a tuple."""
        return [int(d) for d in getattr(self._exprs[index].checked_type, "shape", [])]

    def value(self, index):
        """The value of a node."""
        for i in range(index + 1):
            if i not in self._values and (i == index or self._needs(index, i)):
                self._values[i] = self._compute(i)
        return self._values[index]

    def _needs(self, index, other):
        work, seen = [index], set()
        while work:
            i = work.pop()
            if i == other:
                return True
            if i not in seen and i not in self._values:
                seen.add(i)
                work.extend(self.inputs[i])
        return False

    def _compute(self, index):
        expr = self._exprs[index]
        if isinstance(expr, Var):
            return self._argument(expr.name_hint)
        if isinstance(expr, Constant):
            return expr.data
        values = [self._values[i] for i in self.inputs[index]]
        if isinstance(expr, Tuple):
            return values
        if isinstance(expr, TupleGetItem):
            return values[0][expr.index]
        params = [var(f"a{i}", x.checked_type) for i, x in enumerate(expr.args)]
        func = Function(params, Call(expr.op, params, expr.attrs, expr.type_args))
        mod = self._mod.shallow_copy() if isinstance(expr.op, type(self._mod.get_global_var("main"))) else IRModule()
        return create_executor("debug", mod).evaluate(func)(*values)


def _children(expr):
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return [expr.tuple_value] if isinstance(expr, TupleGetItem) else []


__all__ = ["ProgramGraph"]
