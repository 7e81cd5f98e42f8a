# SPDX-License-Identifier: Apache-2.0
"""Gradients of tensor expressions: each tensor's gradient is again a tensor expression."""

from .. import tir
from ..error import UnsupportedError
from ..ir import PrimExpr, structural_equal
from ..tir import const
from .operation import comm_reducer, compute, reduce_axis
from .operation import sum as sum_over
from .tensor import Tensor


def _kind(expr):
    return type(expr).__name__


def _zero(expr):
    return expr is None


def _plus(a, b):
    return b if _zero(a) else a if _zero(b) else a + b


def _times(a, b):
    return None if _zero(a) or _zero(b) else a * b


def _one(expr):
    return const(1, str(expr.dtype))


_CONSTANT = ("Var", "SizeVar", "IntImm", "FloatImm", "StringImm", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or", "Not", "FloorDiv", "FloorMod", "Mod")


class _Derivative:
    """The derivative of expressions by one read of a tensor; None for 0."""

    def __init__(self, read):
        self.read = read

    def __call__(self, e):
        kind = _kind(e)
        if kind == "ProducerLoad":
            return _one(e) if structural_equal(e, self.read) else None
        if kind in _CONSTANT:
            return None
        if kind in ("Add", "Sub"):
            a, b = self(e.a), self(e.b)
            return _plus(a, b) if kind == "Add" else a if _zero(b) else const(-1, str(e.dtype)) * b if _zero(a) else a - b
        if kind == "Mul":
            return _plus(_times(self(e.a), e.b), _times(e.a, self(e.b)))
        if kind == "Div":
            a, b = self(e.a), self(e.b)
            of_a = None if _zero(a) else a / e.b
            return of_a if _zero(b) else _plus(of_a, const(-1, str(e.dtype)) * e.a * b / (e.b * e.b))
        if kind in ("Max", "Min"):
            return self.chosen(e.a >= e.b if kind == "Max" else e.a <= e.b, e.a, e.b, tir.Select)
        if kind == "Select":
            return self.chosen(e.condition, e.true_value, e.false_value, tir.Select)
        if kind == "Cast":
            inner = self(e.value)
            return None if _zero(inner) or not str(e.dtype).startswith(("float", "bfloat")) else inner.astype(str(e.dtype))
        if kind == "Call":
            return self.call(e)
        raise UnsupportedError(f"te.gradient: no derivative of {kind}: {e}")

    def chosen(self, condition, first, second, select):
        """The derivative of whichever is taken."""
        a, b = self(first), self(second)
        if _zero(a) and _zero(b):
            return None
        zero = const(0, str(first.dtype))
        return select(condition, zero if _zero(a) else a, zero if _zero(b) else b)

    def call(self, e):
        """The derivative of a function's value, as the intrinsic's row says."""
        if tir._ffi_api.HasZeroDerivative(e):
            return None
        inner = [self(a) for a in e.args]
        if all(_zero(d) for d in inner):
            return None
        try:
            return tir._ffi_api.DerivativeOf(e, inner)
        except UnsupportedError as error:
            raise UnsupportedError(f"te.gradient: {error}") from None


def _reads(expr):
    """Different reads of tensors in an expression."""
    found = []

    def visit(node):
        if _kind(node) == "ProducerLoad" and not any(structural_equal(node, r) for r in found):
            found.append(node)

    tir.stmt_functor.post_order_visit(expr, visit)
    return found


def _free(expr, var):
    """Whether a variable does not occur in an expression."""
    seen = []
    tir.stmt_functor.post_order_visit(expr, lambda node: seen.append(1) if _kind(node) in ("Var", "SizeVar") and node.same_as(var) else None)
    return not seen


def _solved(expr, place, axes):
    """A variable of `axes` that occurs in `expr` as its own term, and what it is where `expr` equals `place`; None if there is none."""
    for axis in axes:
        var = axis.var
        if expr.same_as(var):
            return axis, place
        rest, at = [], expr
        while _kind(at) == "Add":  # v + rest
            left, right = at.a, at.b
            if right.same_as(var) and _free(left, var):
                return axis, place - sum(rest, left)
            if left.same_as(var) and _free(right, var):
                return axis, place - sum(rest, right)
            if not _free(right, var):
                break
            rest.append(right)
            at = left
    return None


def _substitute(expr, values):
    return tir.stmt_functor.substitute(expr, values)


def _extents(tensor):
    return list(tensor.shape)


def _through(output, source, reduced, condition, read, head, lead):
    """The gradient by one read: over all elements of `output` whose computation reads the element, what `head` says of them times the
    derivative. `lead`: how many dimensions `head` has before those of `output`."""
    slope = _Derivative(read)(source)
    if slope is None:
        return None
    dtype, tensor = str(output.dtype), read.producer

    def element(*place):
        before, place = list(place[:lead]), list(place[lead:])
        axes = [*output.op.axis, *reduced]
        fresh = [tir.Var(f"{a.var.name}_", str(a.var.dtype)) for a in axes]
        renamed = {a.var: v for a, v in zip(axes, fresh, strict=True)}
        open_axes = [_Axis(v, a.dom) for v, a in zip(fresh, axes, strict=True)]
        found, guards = {}, []
        left = list(zip([_substitute(i, renamed) for i in read.indices], place, strict=True))
        left.sort(key=lambda pair: _kind(pair[0]) not in ("Var", "SizeVar"))
        for index, at in left:
            index = _substitute(index, found)
            solved = _solved(index, at, open_axes)
            if solved is None:
                guards.append(index.equal(at))
                continue
            axis, value = solved
            found = {k: _substitute(v, {axis.var: value}) if isinstance(v, PrimExpr) else v for k, v in found.items()}
            guards = [_substitute(g, {axis.var: value}) for g in guards]
            found[axis.var] = value
            open_axes = [a for a in open_axes if not a.var.same_as(axis.var)]
            guards += [value >= axis.dom.min, value < axis.dom.min + axis.dom.extent]
        summed = [reduce_axis((a.dom.min, a.dom.min + a.dom.extent), a.var.name) for a in open_axes]
        last = {a.var: s.var for a, s in zip(open_axes, summed, strict=True)}

        def moved(e):
            return _substitute(_substitute(_substitute(e, renamed), found), last)

        value = head(*before, *[moved(a.var) for a in output.op.axis]) * moved(slope)
        if condition is not None:
            guards.append(moved(condition))
        for g in guards:
            g = _substitute(g, last)
            value = tir.if_then_else(g, value, const(0, dtype))
        return sum_over(value, axis=summed) if summed else value

    return compute([*_extents(head)[:lead], *_extents(tensor)], element, name=f"d_{tensor.op.name}")


class _Axis:
    """A variable and its range."""

    def __init__(self, var, dom):
        self.var, self.dom = var, dom


_product = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype), name="product")


def _others(output, body, condition):
    """A tensor with the product of the other factors for each factor of a product: 0 if two of all are 0."""
    source, dtype = body.source[0], str(output.dtype)
    axes = [*output.op.axis, *body.axis]
    zero, one = const(0, dtype), const(1, dtype)

    def over(reduce, of, name):
        def element(*place):
            fresh = [reduce_axis((a.dom.min, a.dom.min + a.dom.extent), a.var.name) for a in body.axis]
            values = {a.var: v for a, v in zip(axes, [*place, *(f.var for f in fresh)], strict=True)}
            where = None if condition is None else _substitute(condition, values)
            return reduce(of(_substitute(source, values)), axis=fresh, where=where)

        return compute(_extents(output), element, name=name)

    zeros = over(sum_over, lambda x: tir.Select(tir.EQ(x, zero), one, zero), "zeros")
    rest = over(_product, lambda x: tir.Select(tir.EQ(x, zero), one, x), "rest")
    rank = len(output.shape)

    def element(*place):
        at = [*place[:rank], *(v + a.dom.min for v, a in zip(place[rank:], body.axis, strict=True))]
        x = _substitute(source, {a.var: v for a, v in zip(axes, at, strict=True)})
        count, product = zeros(*place[:rank]), rest(*place[:rank])
        alone = tir.Select(tir.EQ(count, one), product, zero)
        beside = tir.Select(tir.EQ(count, zero), product / tir.Select(tir.EQ(x, zero), one, x), zero)
        return tir.Select(tir.EQ(x, zero), alone, beside)

    return compute([*_extents(output), *(a.dom.extent for a in body.axis)], element, name="others")


def _reduction(output):
    """(the expression that is summed, its axes, its condition, a tensor in it that counts as a constant) of a tensor's computation."""
    body = output.op.body[output.value_index]
    if _kind(body) != "Reduce":
        return body, [], None, output
    result, x, y = body.combiner.result[0], body.combiner.lhs[0], body.combiner.rhs[0]
    condition = None if body.condition is None or body.condition is True or _kind(body.condition) == "IntImm" else body.condition
    kind, source = _kind(result), body.source[0]
    if len(body.source) != 1 or kind not in ("Add", "Mul", "Max", "Min") or not {x, y} == {result.a, result.b}:
        raise UnsupportedError(f"te.gradient: no derivative of the reduction of `{output.op.name}`; there are those of sum, prod, max and min")
    if kind == "Add":
        return source, list(body.axis), condition, output
    own = output(*[a.var for a in output.op.axis])
    if kind == "Mul":
        others = _others(output, body, condition)
        place = [*(a.var for a in output.op.axis), *(a.var - a.dom.min for a in body.axis)]
        return others(*place) * source, list(body.axis), condition, others
    return tir.Select(tir.EQ(source, own), source, const(0, str(source.dtype))), list(body.axis), condition, output


def _order(output):
    """Tensors that an output is computed of, each before those that it is read by; the output itself is the last."""
    order, seen = [], []

    def visit(tensor):
        if any(tensor == t for t in seen):
            return
        seen.append(tensor)
        for t in tensor.op.input_tensors:
            visit(t)
        order.append(tensor)

    visit(output)
    return order


def gradient(output, inputs, head=None):
    """The gradients of `output` by `inputs`: one tensor each. `head` is the gradient of what is asked for by `output`, of shape (..., shape of
    output); the results are (..., shape of input). Without one the results are all derivatives: (shape of output, shape of input).

        x = te.placeholder((32, 3, 28, 28), name="x")
        y = topi.sum(topi.nn.relu(x))
        (dx,) = te.gradient(y, [x])

    Tensors between are computations of te.compute, with sums, products, maxima and minima; of equal ones each counts as the largest.
    """
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    shape = _extents(output)
    rank = len(shape)
    if head is None:

        def identity(*place):
            value = const(1, str(output.dtype))
            for i in range(rank):
                value = tir.if_then_else(tir.EQ(place[i], place[rank + i]), value, const(0, str(output.dtype)))
            return value

        head = compute([*shape, *shape], identity, name="identity")
    lead = len(head.shape) - rank
    gradients = [(output, [head])]

    def of(tensor):
        return next((parts for t, parts in gradients if t == tensor), None)

    for tensor in reversed(_order(output)):
        parts = of(tensor)
        if parts is None or any(tensor == t for t in inputs) or _kind(tensor.op) == "PlaceholderOp":
            continue
        if _kind(tensor.op) != "ComputeOp":
            raise UnsupportedError(f"te.gradient: `{tensor.op.name}` is computed by statements; te.compute is differentiated")
        total = _total(parts)
        source, reduced, condition, constant = _reduction(tensor)
        for read in _reads(source):
            if read.producer == constant:
                continue
            made = _through(tensor, source, reduced, condition, read, total, lead)
            if made is not None:
                known = of(read.producer)
                known.append(made) if known is not None else gradients.append((read.producer, [made]))
    results = []
    for tensor in inputs:
        parts = of(tensor)
        nothing = const(0, str(tensor.dtype))
        results.append(_total(parts) if parts else compute([*_extents(head)[:lead], *_extents(tensor)], lambda *_, zero=nothing: zero, name="zero"))
    return results


def _total(parts):
    first, *others = parts
    for other in others:
        first = compute(_extents(first), lambda *i, a=first, b=other: a(*i) + b(*i), name="total")
    return first


__all__ = ["gradient"]
