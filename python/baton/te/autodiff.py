# SPDX-License-Identifier: Apache-2.0
"""Derivatives of tensor expressions."""

from .. import arith
from ..error import UnsupportedError
from ..ir import Range, structural_equal
from ..tir import Call, expr, op
from ..tir.stmt_functor import substitute
from . import operation
from .reads import tensors_read
from .tensor import ComputeOp


def gradient(output, inputs, head=None):
    """The adjoints of input tensors: `head` times the derivative of `output` by each of them, as a list.

        [dA, dB] = te.gradient(C, [A, B], head=H)

    head: a tensor of shape `prefix + output.shape`; the results have the shapes `prefix + input.shape`. Without it the whole derivatives are
    given, of shape `output.shape + input.shape`. Sums are the one reduction that has a derivative. Cost: each element of a result sums over
    the loops of the computation that its own indices do not determine.
    """
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    rank = output.ndim
    if head is None:
        head = operation.compute([*output.shape, *output.shape], lambda *i: _equal(i[:rank], i[rank:], output.dtype), name="identity")
    prefix = list(head.shape)[: head.ndim - rank]
    adjoints = {output: head}
    for tensor in reversed(_in_order(output)):
        if tensor not in adjoints or not isinstance(tensor.op, ComputeOp):
            continue
        for source, index, partial, loops in _parts(tensor):
            made = _part(source, index, partial, loops, tensor, adjoints[tensor], prefix)
            adjoints[source] = _sum(adjoints[source], made) if source in adjoints else made
    return [adjoints[t] if t in adjoints else _zeros([*prefix, *t.shape], t.dtype) for t in inputs]


def _in_order(output):
    """The tensors that an output is computed from, and itself last."""
    done, order, stack = set(), [], [(output, False)]
    while stack:
        tensor, left = stack.pop()
        if left:
            order.append(tensor)
        elif tensor not in done:
            done.add(tensor)
            stack.append((tensor, True))
            stack += [(t, False) for t in tensor.op.input_tensors]
    return order


def _zeros(shape, dtype):
    return operation.compute(shape, lambda *i: op.const(0, dtype), name="zeros")


def _sum(a, b):
    return operation.compute(a.shape, lambda *i: a(*i) + b(*i), name="adjoint")


def _equal(a, b, dtype):
    same = [x.equal(y) for x, y in zip(a, b, strict=True)]
    return op.if_then_else(op.all(*same), op.const(1, dtype), op.const(0, dtype)) if same else op.const(1, dtype)


def _parts(tensor):
    """(tensor read, its indices, the derivative by that element, the loops of the reduction) of each element that is read."""
    body, loops = tensor.op.body[tensor.value_index], []
    if isinstance(body, expr.Reduce):
        combined = body.combiner.result[body.value_index]
        if len(body.source) != 1 or not isinstance(combined, expr.Add):
            raise UnsupportedError(f"te.gradient: `{tensor.name}` reduces by other than a sum, which has no derivative here")
        loops = list(body.axis)
        body = op.if_then_else(body.condition, body.source[0], op.const(0, tensor.dtype))
    for source in tensors_read([body]):
        for load in _loads(body, source):
            yield source, list(load.indices), _derivative(body, load), loops


def _loads(body, source):
    found, stack = [], [body]
    while stack:
        e = stack.pop()
        if isinstance(e, expr.ProducerLoad) and e.producer == source and not any(structural_equal(e, f) for f in found):
            found.append(e)
        stack += _operands(e)
    return found


def _operands(e):
    if isinstance(e, (expr.BinaryOpExpr, expr.Not)):
        return [e.a] + ([e.b] if hasattr(e, "b") else [])
    if isinstance(e, expr.Select):
        return [e.true_value, e.false_value]
    if isinstance(e, expr.Cast):
        return [e.value]
    return list(e.args) if isinstance(e, Call) else []


# Derivatives of functions of one argument, by the argument and by the value.
_FUNCTIONS = {
    "exp": lambda x, y: y,
    "log": lambda x, y: 1.0 / x,
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: -0.5 * y / x,
    "tanh": lambda x, y: 1.0 - y * y,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "sin": lambda x, y: op.cos(x),
    "cos": lambda x, y: -op.sin(x),
    "fabs": lambda x, y: expr.Select(x < op.const(0, x.dtype), op.const(-1, x.dtype), op.const(1, x.dtype)),
    "floor": None,
    "ceil": None,
    "round": None,
    "trunc": None,
}


def _derivative(e, load):
    """The derivative of an expression by an element; None for 0."""
    if isinstance(e, expr.ProducerLoad):
        return op.const(1, e.dtype) if structural_equal(e, load) else None
    if isinstance(e, (expr.Add, expr.Sub)):
        a, b = _derivative(e.a, load), _derivative(e.b, load)
        if isinstance(e, expr.Sub):
            b = None if b is None else op.const(0, e.dtype) - b
        return b if a is None else a if b is None else a + b
    if isinstance(e, expr.Mul):
        return _add(_times(_derivative(e.a, load), e.b), _times(_derivative(e.b, load), e.a))
    if isinstance(e, expr.Div):
        by_b = _derivative(e.b, load)
        return _add(_times(_derivative(e.a, load), 1.0 / e.b), None if by_b is None else op.const(0, e.dtype) - by_b * e.a / (e.b * e.b))
    if isinstance(e, (expr.Max, expr.Min)):
        first = e.a >= e.b if isinstance(e, expr.Max) else e.a <= e.b
        return _choice(expr.Select, first, _derivative(e.a, load), _derivative(e.b, load), e.dtype)
    if isinstance(e, expr.Select):
        return _choice(expr.Select, e.condition, _derivative(e.true_value, load), _derivative(e.false_value, load), e.dtype)
    if isinstance(e, expr.Cast):
        return _of_cast(e, load)
    if isinstance(e, Call):
        return _of_call(e, load)
    return None


def _add(a, b):
    return b if a is None else a if b is None else a + b


def _times(a, b):
    return None if a is None else a * b


def _choice(make, condition, a, b, dtype):
    if a is None and b is None:
        return None
    zero = op.const(0, dtype)
    return make(condition, zero if a is None else a, zero if b is None else b)


def _of_cast(e, load):
    inner = _derivative(e.value, load)
    if inner is None or not e.dtype.startswith(("float", "bfloat")):
        return None
    return op.cast(e.dtype, inner)


def _of_call(e, load):
    name = getattr(e.op, "name", "").removeprefix("tir.")
    if name == "if_then_else":
        return _choice(op.if_then_else, e.args[0], _derivative(e.args[1], load), _derivative(e.args[2], load), e.dtype)
    inner = [_derivative(a, load) for a in e.args]
    if all(d is None for d in inner):
        return None
    if name == "pow" and inner[1] is None:
        return inner[0] * e.args[1] * op.power(e.args[0], e.args[1] - 1)
    if name not in _FUNCTIONS or len(e.args) != 1:
        raise UnsupportedError(f"te.gradient: `{name}` has no derivative here")
    rule = _FUNCTIONS[name]
    return None if rule is None else inner[0] * rule(e.args[0], e)


def _part(source, index, partial, loops, tensor, adjoint, prefix):
    """What one element that is read adds to the adjoint of its tensor: for each place, the sum over the loops that read it."""
    if partial is None:
        return _zeros([*prefix, *source.shape], source.dtype)
    axes = [*tensor.op.axis, *loops]
    at = [expr.Var(f"a{k}") for k in range(len(source.shape))]
    known, conditions = {}, []
    for place, i in zip(at, index, strict=True):
        i = substitute(i, known) if known else i
        loop = next((x for x in axes if x.var not in known and _is_shifted(i, x.var)), None)
        if loop is None:
            conditions.append(place.equal(i))
            continue
        # place = var + rest
        value = arith.Analyzer().simplify(place - (i - loop.var))
        known = {v: substitute(e, {loop.var: value}) for v, e in known.items()}
        conditions = [substitute(c, {loop.var: value}) for c in conditions]
        known[loop.var] = value
        conditions += [value >= loop.dom.min, value < loop.dom.min + loop.dom.extent]
    rest = [x for x in axes if x.var not in known]
    fresh = {x.var: operation.reduce_axis(Range.from_min_extent(x.dom.min, x.dom.extent), x.var.name) for x in rest}
    names = {**{v: x.var for v, x in fresh.items()}}

    def element(*i):
        # `known` may name loops that are left, and those have new variables.
        to_place = dict(zip(at, i[len(prefix) :], strict=True))
        values = {v: substitute(substitute(e, names), to_place) for v, e in known.items()} | names
        weight = adjoint(*i[: len(prefix)], *(values.get(x.var, x.var) for x in tensor.op.axis))
        term = weight * substitute(partial, values)
        guards = [substitute(substitute(c, names), to_place) for c in conditions]
        if guards:
            term = op.if_then_else(op.all(*guards), term, op.const(0, term.dtype))
        return operation.sum(term, axis=list(fresh.values())) if fresh else term

    return operation.compute([*prefix, *source.shape], element, name=f"{source.name}_adjoint")


def _is_shifted(index, var):
    """Whether an index is a variable plus what does not depend on it."""
    linear = arith.detect_linear_equation(index, [var])
    return len(linear) == 2 and isinstance(linear[0], expr.IntImm) and int(linear[0]) == 1


__all__ = ["gradient"]
