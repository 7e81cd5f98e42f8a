# SPDX-License-Identifier: Apache-2.0
"""Passes that are written in Python: other dtypes for some operators, another size of the batch."""

from ...ir import Op, TensorType, make_node
from .. import expr as _expr
from ..expr_functor import ExprMutator, ExprVisitor
from ..function import Function
from ..op import find
from .transform import InferTypeLocal, function_pass


def recast(expr, dtype, out_dtype, ops=None, skip_layers=None):
    """Computes calls of some operators in another dtype: arguments are cast to `dtype`, the operator gives `out_dtype`, and
    its result is cast back to the dtype that it had. Values change as the dtypes round: for measuring, not for deploying.

    ops: names of operators, `["nn.conv2d"]` unless given. skip_layers: numbers of calls of these operators, counted from 0
    in the order of the program, that stay as they are; -1 is the last.
    """

    def with_out_dtype(attrs, value):
        return make_node(attrs.type_key, **{**{k: attrs[k] for k in attrs.keys()}, "out_dtype": value})  # noqa: SIM118

    ops = {Op.get(name) for name in (ops or ["nn.conv2d"])}
    InferTypeLocal(expr)  # the nodes have their types from here on

    class Count(ExprVisitor):
        total = 0

        def visit_call(self, call):
            super().visit_call(call)
            Count.total += call.op in ops

    Count().visit(expr)
    skipped = {i % Count.total if Count.total else i for i in (skip_layers or [])}

    class Recast(ExprMutator):
        seen = 0

        def visit_call(self, call):
            new = super().visit_call(call)
            if call.op not in ops:
                return new
            number, Recast.seen = Recast.seen, Recast.seen + 1
            if number in skipped:
                return new

            def cast(old, arg):
                if isinstance(arg, _expr.Tuple):
                    return _expr.Tuple([cast(o, a) for o, a in zip(old.fields, arg.fields, strict=False)])
                return find("cast")(arg, dtype)

            args = [cast(o, a) for o, a in zip(call.args, new.args, strict=False)]
            attrs = new.attrs
            if attrs is not None and "out_dtype" in attrs.keys():
                attrs = with_out_dtype(attrs, out_dtype)
            return find("cast")(_expr.Call(call.op, args, attrs), str(call.checked_type.dtype))

    return Recast().visit(expr)


@function_pass(opt_level=1)
class ChangeBatch:
    """Another size of the batch: `ChangeBatch({param: axis}, batch_size=16)` gives parameters that extent along an axis."""

    def __init__(self, data, batch_size=16):
        self.data, self.batch_size = dict(data), batch_size

    def transform_function(self, func, mod, ctx):
        change = self

        class Changer(ExprMutator):
            def visit_var(self, var):
                axis = next((a for v, a in change.data.items() if v.same_as(var)), None)
                if axis is None:
                    return var
                shape = list(var.type_annotation.shape)
                shape[axis] = change.batch_size
                return _expr.Var(var.name_hint, TensorType(shape, var.type_annotation.dtype))

        return Changer().visit(Function(func.params, func.body, None, func.type_params, func.attrs))
