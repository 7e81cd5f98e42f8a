# SPDX-License-Identifier: Apache-2.0
"""Passes that are written in Python: parallel branches together, weights in the form that operators want."""

from ...ir import Op, TensorType
from ..expr import Call, Var
from ..expr_functor import ExprMutator, ExprVisitor
from ..function import Function
from .transform import Sequential, function_pass
from .transform import __getattr__ as _pass


def BatchingOps():
    """CombineParallelConv2D, CombineParallelDense and CombineParallelBatchMatmul, one after the other."""
    return Sequential([_pass(name)() for name in ("CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul")])


def _is_call(expr, name):
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _variables(expr):
    found = {}

    class Collect(ExprVisitor):
        def visit_var(self, var):
            found[var.handle] = var

    Collect().visit(expr)
    return found


@function_pass(opt_level=1)
class SimplifyFCTranspose:
    """`nn.dense(x, transpose(w))` becomes `nn.dense(x, w.T)`, where `w` is named in `target_weight_name` and `w.T` is a separate parameter
    by that name."""

    def __init__(self, target_weight_name):
        self.names = [str(name) for name in target_weight_name]

    def transform_function(self, func, mod, ctx):
        names, made = self.names, {}

        class Changer(ExprMutator):
            def visit_call(self, call):
                if _is_call(call, "nn.dense") and _is_call(call.args[1], "transpose") and isinstance(call.args[1].args[0], Var):
                    weight = call.args[1].args[0]
                    if weight.name_hint in names:
                        shape = list(weight.checked_type.shape)[::-1]
                        var = made.setdefault(weight.name_hint, Var(weight.name_hint + ".T", TensorType(shape, weight.checked_type.dtype)))
                        return Call(call.op, [self.visit(call.args[0]), var], call.attrs)
                return super().visit_call(call)

        body = Changer().visit(func.body)
        if not made:
            return func
        left = _variables(body)
        params = [made.get(p.name_hint, p) if p.handle not in left else p for p in func.params]
        return Function(params, body, None, func.type_params, func.attrs)


def _with_sparse_weights(func, shapes, name, replaced):
    """Calls of an operator whose weights are named in `shapes` as `replaced(call, data, parts)` makes them; the parts become parameters."""
    made = {}

    def parts(weight):
        hint, (data, indices, indptr) = weight.name_hint, shapes[weight.name_hint]
        kinds = (("data", data, weight.checked_type.dtype), ("indices", indices, "int32"), ("indptr", indptr, "int32"))
        return [Var(f"{hint}.{part}", TensorType([int(d) for d in shape], dtype)) for part, shape, dtype in kinds]

    class Changer(ExprMutator):
        def visit_call(self, call):
            weight = call.args[1] if _is_call(call, name) else None
            if not isinstance(weight, Var) or weight.name_hint not in shapes:
                return super().visit_call(call)
            if weight.name_hint not in made:
                made[weight.name_hint] = parts(weight)
            return replaced(call, self.visit(call.args[0]), tuple(made[weight.name_hint]))

    body = Changer().visit(func.body)
    params = [v for p in func.params for v in made.get(p.name_hint, [p])]
    return Function(params, body, None, func.type_params, func.attrs) if made else func


@function_pass(opt_level=1)
class DenseToSparse:
    """`nn.dense` with one of these weights becomes a product with a sparse matrix, whose parts are parameters `NAME.data`, `NAME.indices` and
    `NAME.indptr` of the shapes in `weight_shape`."""

    def __init__(self, weight_name, weight_shape):
        self.shapes = {str(name): shapes for name, shapes in zip(weight_name, weight_shape, strict=True)}

    def transform_function(self, func, mod, ctx):
        from ..op.sparse import sparse_dense

        return _with_sparse_weights(func, self.shapes, "nn.dense", lambda call, data, parts: sparse_dense(data, parts))


@function_pass(opt_level=1)
class Conv2dToSparse:
    """The same for convolutions with a window of one element: the sparse matrix has a row for each output channel. layout: "NHWC" or "NCHW"."""

    def __init__(self, weight_name, weight_shape, layout="NHWC", kernel_size=1):
        from ..op.sparse import check_window

        check_window(kernel_size)
        self.shapes = {str(name): shapes for name, shapes in zip(weight_name, weight_shape, strict=True)}
        self.layout = layout

    def transform_function(self, func, mod, ctx):
        from ..op.sparse import CONVOLUTION, sparse_conv2d

        return _with_sparse_weights(func, self.shapes, CONVOLUTION, lambda call, data, parts: sparse_conv2d(data, parts, self.layout))


__all__ = ["BatchingOps", "Conv2dToSparse", "DenseToSparse", "SimplifyFCTranspose"]
