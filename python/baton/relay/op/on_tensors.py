# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions, for `topi` and the arithmetic of `te.Tensor`."""

import inspect
import itertools
import numbers

from ... import tir
from ..._core import Array
from ..._ffi import get_global_func, register_func
from ..._ffi.hook import Hook
from ...error import UnsupportedError
from ...ir import Op, PrimExpr, TensorType, TupleType, make_node
from ...te import ComputeOp, Tensor, TensorSlice, compute, extern
from ...tir import FloatImm, IntImm, call_packed
from ..expr import TupleWrapper, Var, const, infer_type
from ..function import Function
from . import find

_evaluator = Hook("relay.evaluator")  # of a function: what computes it from arrays
_numbers = itertools.count()


def on_tensors(function, args, kwargs):
    """The result of a function of expressions for tensors anywhere among its arguments: a tensor, or a list of several."""
    found, params = [], []

    def lift(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(lift, value))
        if isinstance(value, TensorSlice):
            value = value.asobject()
        if isinstance(value, (IntImm, FloatImm)):
            return value.value
        if isinstance(value, PrimExpr):
            value = compute((), lambda scalar=value: scalar, "scalar")
        if not isinstance(value, Tensor):
            return value
        for tensor, var in zip(found, params, strict=True):
            if tensor.same_as(value):
                return var
        found.append(value)
        params.append(Var(value.op.name, TensorType(value.shape, value.dtype)))
        return params[-1]

    args, kwargs = _of_one_dtype(function, args, kwargs)
    args, kwargs = lift(args), {k: lift(v) for k, v in kwargs.items()}
    expr = function(*args, **kwargs)
    if isinstance(expr, TupleWrapper):
        expr = expr.astuple()
    if expr in params:
        return found[params.index(expr)]
    kind = infer_type(expr)
    several = isinstance(kind, TupleType)
    func = Function(params, expr)
    try:
        results = [_tagged(t, expr) for t in get_global_func("relay.OnTensors")(func, found)]
    except UnsupportedError as e:
        if "has no loops" not in str(e):
            raise
        kinds = list(kind.fields) if several else [kind]
        if not all(isinstance(d, (int, IntImm)) for t in (*found, *kinds) for d in t.shape):
            raise
        results = _evaluated(func, found, kinds)
    return results if several else results[0]


_TAGS = {0: "elemwise", 1: "broadcast", 2: "injective", 3: "comm_reduce"}  # by the pattern of operators


def _tagged(tensor, expr):
    """The tensor of a call of an operator, with the tag that says how its elements depend on those of its inputs."""
    operator = getattr(expr, "op", None)
    pattern = operator.get_attr("TOpPattern") if isinstance(operator, Op) else None
    made = tensor.op
    if pattern not in _TAGS or not isinstance(made, ComputeOp) or made.tag or len(made.body) != 1:
        return tensor
    return _with_tag(tensor, _TAGS[pattern])


def _with_tag(tensor, tag):
    made = tensor.op
    return make_node("te.ComputeOp", name=made.name, tag=tag, attrs=made.attrs, axis=made.axis, body=made.body).output(0)


def _of_one_dtype(function, args, kwargs):
    """Arguments of an operator of two sides; a number has the dtype of the tensor beside it."""
    values = dict(zip(inspect.signature(function).parameters, args, strict=False)) | kwargs
    dtypes = [str(a.dtype) for a in values.values() if isinstance(a, Tensor)]
    if list(values) != ["lhs", "rhs"] or not dtypes:
        return args, kwargs
    numbers_of = (int, float, IntImm, FloatImm)
    is_number = {k: isinstance(v, numbers_of) and not isinstance(v, bool) for k, v in values.items()}
    return [const(getattr(v, "value", v), dtypes[0]) if is_number[k] else v for k, v in values.items()], {}


def _evaluated(func, tensors, kinds):
    """The results of a function whose operators no expression of elements says, as sorting: it is compiled as a whole, and called when the
    program comes to it. Such a program runs in this process alone."""
    name = f"baton.topi.{next(_numbers)}"
    made = []

    def run(*arrays):
        if not made:
            made.append(_evaluator(func))
        results = made[0](*arrays[: len(tensors)])
        for result, out in zip(results if isinstance(results, (list, tuple, Array)) else [results], arrays[len(tensors) :], strict=True):
            result.copyto(out)

    register_func(name, run)
    results = extern(
        [list(t.shape) for t in kinds],
        tensors,
        lambda ins, outs: call_packed(name, *ins, *outs),
        name="evaluated",
        dtype=[str(t.dtype) for t in kinds],
    )
    return results if isinstance(results, list) else [results]


def arithmetic(name, *operands):
    """An operator of tensors, numbers and expressions; a number has the dtype of the tensors. Beside a scalar a tensor is computed element by
    element, so the tag is "elemwise"."""
    dtype = next(str(x.dtype) for x in operands if isinstance(x, Tensor))
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if any(isinstance(x, PrimExpr) for x in operands):
        return _by_elements(name, tensors[0], operands)
    made = on_tensors(find(name), [const(x, dtype) if isinstance(x, numbers.Number) else x for x in operands], {})
    return _with_tag(made, "elemwise") if len(tensors) < len(operands) else made


def _by_elements(name, tensor, operands):
    """A tensor and an expression, whose dtype becomes that of the tensor unless it alone is floating."""
    function = getattr(tir, {"divide": "div"}.get(name, name))
    dtypes = [str(x.dtype) for x in operands]
    floating = [t for t in dtypes if "float" in t]
    dtype = floating[0] if len(floating) == 1 else str(tensor.dtype)

    def element(*indices):
        values = [x(*indices) if isinstance(x, Tensor) else x for x in operands]
        return function(*(v if str(v.dtype) == dtype else v.astype(dtype) for v in values))

    return compute(tensor.shape, element, f"T_{name}", "elemwise")


__all__ = ["arithmetic", "on_tensors"]
