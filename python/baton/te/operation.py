# SPDX-License-Identifier: Apache-2.0
"""Building tensor expressions."""

import functools
import inspect
import numbers

from ..error import ValueError
from ..ir import make_node
from ..target import Target
from ..tir import EQ, And, Evaluate, IntImm, PrimFunc, Select, SizeVar, Var, decl_buffer, op
from ..tir import _ffi_api as _tir_api
from ..tir.expr import IterVar
from ..tir.stmt import Stmt
from ..tir.stmt_functor import substitute
from . import _ffi_api
from .reads import reduce_of
from .tensor import PlaceholderOp, TensorSlice

_tags = []  # of the `tag_scope`s around


class tag_scope:
    """`with te.tag_scope("elemwise"):` gives this tag to computations within it that have none; also a decorator (`@te.tag_scope(...)`)."""

    def __init__(self, tag):
        self.tag = tag

    def __enter__(self):
        _tags.append(self.tag)
        return self

    def __exit__(self, *_):
        _tags.pop()

    def __call__(self, f):
        @functools.wraps(f)
        def tagged(*args, **kwargs):
            with tag_scope(self.tag):
                return f(*args, **kwargs)

        return tagged


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reduction by a function: `fcombine(x, y)` joins two values, in any order, `fidentity(dtype)` gives the identity element.

        product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, t), name="product")
        B = te.compute((n,), lambda i: product(A[i, k], axis=k))

    Reduces tuples of values if `fcombine` takes two tuples, and `fidentity` a dtype for each. `init` is a value to begin with, in place of
    the identity element.
    """

    def reduce(expr, axis, where=None, init=None, *args):
        several = isinstance(expr, (list, tuple)) or type(expr).__name__ == "Array"
        source = [_expr(e) for e in (expr if several else [expr])]
        dtypes = [str(e.dtype) for e in source]
        lhs, rhs = ([Var(f"{side}{i}", t) for i, t in enumerate(dtypes)] for side in "xy")
        result = fcombine(lhs, rhs) if several else [fcombine(lhs[0], rhs[0])]
        identity = fidentity(*dtypes) if several else [fidentity(dtypes[0])]
        combiner = make_node("tir.CommReducer", lhs=lhs, rhs=rhs, result=[op.convert(e) for e in result], identity_element=[op.convert(e) for e in identity])
        made = _reduce(combiner, source, _axes(axis), where, None if init is None else init if several else [init])
        return made if several else made[0]

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"`{name}` over axes of a reduction."
    return reduce


def _shape(shape):
    shape = [shape] if isinstance(shape, (numbers.Integral, Var, IntImm)) else list(shape)
    # A literal of any width is a size, and so is a whole float: `N / block`.
    return [d.value if isinstance(d, IntImm) else int(d) if isinstance(d, float) and d.is_integer() else d for d in shape]


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input tensor."""
    return _ffi_api.placeholder(_shape(shape), str(dtype), name)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """A tensor whose element at (i, j, ...) is `fcompute(i, j, ...)`; several tensors where that gives a tuple.

    C = te.compute((n, m), lambda i, j: A[i, j] + B[j], name="C")
    """
    shape = _shape(shape)
    spec = inspect.getfullargspec(fcompute)
    names = _index_names(fcompute, spec, len(shape), varargs_names)
    variables = [Var(name, "int64" if _is_wide(extent) else "int32") for name, extent in zip(names, shape, strict=True)]
    if spec.varargs is None:
        wanted = len(spec.args) - (1 if inspect.ismethod(fcompute) else 0)
        if not wanted - len(spec.defaults or ()) <= len(shape) <= wanted:
            raise ValueError(f"fcompute takes {wanted} indices, the shape has {len(shape)} dimensions")
    body = fcompute(*variables)
    bodies = list(body) if isinstance(body, (list, tuple)) or type(body).__name__ == "Array" else [body]
    bodies = [op.convert(b.asobject() if isinstance(b, TensorSlice) else b) for b in bodies]
    # Loops run over int64: `fcompute` is given variables of the width that its extents have.
    loops = {v: Var(v.name, "int64") for v in variables if v.dtype == "int32"}
    bodies, variables = [_tir_api.OfWideVars(b, loops) for b in bodies] if loops else bodies, [loops.get(v, v) for v in variables]
    tensors = _ffi_api.compute(shape, variables, bodies, name, tag or (_tags[-1] if _tags else ""))
    if attrs:
        made = tensors[0].op
        made = make_node("te.ComputeOp", name=made.name, tag=made.tag, attrs=dict(attrs), axis=made.axis, body=made.body)
        tensors = [made.output(i) for i in range(len(bodies))]
    return tensors[0] if len(bodies) == 1 else tuple(tensors)


def _is_wide(extent):
    """Whether indices below an extent are int64."""
    return not -(2**31) <= extent < 2**31 if isinstance(extent, int) else str(getattr(extent, "dtype", "int32")) == "int64"


def _index_names(fcompute, spec, count, varargs_names):
    """Names of the loops of a computation: those of the function's parameters, i0, i1, ... where it takes any number."""
    names = spec.args[1:] if inspect.ismethod(fcompute) else spec.args
    names = [*names, *(varargs_names or [])][:count]
    return [*names, *(f"i{i}" for i in range(len(names), count))]


def extern(shape, inputs, fcompute, name="extern", dtype=None, in_buffers=None, out_buffers=None, tag="", attrs=None):
    """Tensors that a statement computes: `fcompute(ins, outs)` gives it, of buffers of the inputs and of the results.

        B = te.extern((n,), [A], lambda ins, outs: tvm.tir.call_packed("my.sort", ins[0], outs[0]), dtype="float32")

    shape: of the result, or a list of shapes of several; dtype: likewise, that of the input if there is one. Such tensors are built without
    a schedule, `tvm.build([A, B])`.
    """
    inputs = [inputs] if type(inputs).__name__ == "Tensor" else list(inputs)
    several = (
        len(shape) > 0 and isinstance(shape[0], (list, tuple)) or type(shape).__name__ != "Array" and len(shape) > 0 and type(shape[0]).__name__ == "Array"
    )
    shapes = [_shape(s) for s in shape] if several else [_shape(shape)]
    if in_buffers is not None and type(in_buffers).__name__ == "Buffer":
        in_buffers = [in_buffers]
    if out_buffers is not None and type(out_buffers).__name__ == "Buffer":
        out_buffers = [out_buffers]
    if dtype is None and out_buffers:
        dtype = [str(b.dtype) for b in out_buffers]
    if dtype is None:
        if len({str(t.dtype) for t in inputs}) != 1:
            raise ValueError("extern needs dtype where its inputs do not have one in common")
        dtype = str(inputs[0].dtype)
    dtypes = [str(d) for d in dtype] if isinstance(dtype, (list, tuple)) else [str(dtype)] * len(shapes)
    ins = list(in_buffers or [decl_buffer(list(t.shape), str(t.dtype), t.op.name) for t in inputs])
    outs = list(out_buffers or [decl_buffer(s, d, name) for s, d in zip(shapes, dtypes, strict=True)])
    body = fcompute(ins, outs)
    made = make_node(
        "te.ExternOp",
        name=name,
        tag=tag or (_tags[-1] if _tags else ""),
        attrs=dict(attrs or {}),
        inputs=inputs,
        input_buffers=ins,
        output_buffers=outs,
        body=body if isinstance(body, Stmt) else Evaluate(op.convert(body)),
    )
    tensors = [make_node("te.Tensor", shape=s, dtype=d, op=made, value_index=i) for i, (s, d) in enumerate(zip(shapes, dtypes, strict=True))]
    return tensors if len(tensors) > 1 else tensors[0]


def reduce_axis(dom, name="k", thread_tag="", span=None):
    """A variable that a reduction runs over; `dom` is (begin, end) or a Range."""
    if isinstance(dom, (list, tuple)):
        begin, end = dom
        return _ffi_api.reduce_axis(begin, end - begin, name)
    return _ffi_api.reduce_axis(dom.min, dom.extent, name)


def var(name="tindex", dtype="int32", span=None):
    """A variable."""
    return Var(name, dtype)


def size_var(name="size", dtype="int32", span=None):
    """A variable that is not negative."""
    return SizeVar(name, dtype)


def _axes(axis):
    return [axis] if isinstance(axis, IterVar) else list(axis)


def _expr(source):
    return op.convert(source.asobject() if isinstance(source, TensorSlice) else source)


def _reduction(make, expr, axis, where, init):
    made = make(_expr(expr), _axes(axis))
    if where is None and init is None:
        return made
    return _reduce(made.combiner, list(made.source), list(made.axis), where, None if init is None else [init])[0]


def _reduce(combiner, source, axes, where, init):
    """The reductions of values, one each, of the elements for which `where` holds. `init` is combined into the first element: what a
    reduction begins with stays the identity element."""
    where = None if where is None else _expr(where)
    if init is not None:
        if where is not None:
            source = [Select(where, e, i) for e, i in zip(source, combiner.identity_element, strict=True)]
        init = [op.const(i, str(e.dtype)) if isinstance(i, (int, float)) else _expr(i) for i, e in zip(init, source, strict=True)]
        values = dict(zip([*combiner.lhs, *combiner.rhs], [*init, *source], strict=True))
        first = functools.reduce(And, (EQ(a.var, a.dom.min) for a in axes))
        source = [Select(first, substitute(joined, values), e) for joined, e in zip(combiner.result, source, strict=True)]
        where = None
    return [reduce_of(combiner, source, axes, where, i) for i in range(len(source))]


def sum(expr, axis, where=None, init=None):  # noqa: A001
    """The sum over axes of a reduction, of the elements for which `where` holds."""
    return _reduction(_ffi_api.sum, expr, axis, where, init)


def prod(expr, axis, where=None, init=None):
    """The product over axes of a reduction, of the elements for which `where` holds."""
    return _reduction(_ffi_api.prod, expr, axis, where, init)


def max(expr, other=None, where=None, init=None, *, axis=None):  # noqa: A001
    """The largest over axes of a reduction, or the larger of two values."""
    if isinstance(other, (IterVar, list, tuple)):
        axis = other
    return op.max(_expr(expr), _expr(other)) if axis is None else _reduction(_ffi_api.max, expr, axis, where, init)


def min(expr, other=None, where=None, init=None, *, axis=None):  # noqa: A001
    """The smallest over axes of a reduction, or the smaller of two values."""
    if isinstance(other, (IterVar, list, tuple)):
        axis = other
    return op.min(_expr(expr), _expr(other)) if axis is None else _reduction(_ffi_api.min, expr, axis, where, init)


def any_of(expr, axis):
    """Whether a condition holds anywhere over axes of a reduction."""
    return _ffi_api.any(_expr(expr), _axes(axis))


def all_of(expr, axis):
    """Whether a condition holds everywhere over axes of a reduction."""
    return _ffi_api.all(_expr(expr), _axes(axis))


def create_prim_func(ops, name="main", target=None):
    """One PrimFunc of tensors, inputs and outputs, its parameters in the order in which they are given."""
    inputs = [t for t in ops if isinstance(t.op, PlaceholderOp)]
    outputs = [t for t in ops if not isinstance(t.op, PlaceholderOp)]
    made = _ffi_api.create_prim_func(inputs, outputs, name, Target(target or "llvm"))
    order = [*inputs, *outputs]
    if all(a is b for a, b in zip(order, ops, strict=True)):
        return made
    params = list(made.params)
    place = {id(t): i for i, t in enumerate(order)}
    ordered = [params[place[id(t)]] for t in ops] + params[len(order) :]
    return PrimFunc(ordered, made.body, made.ret_type, made.buffer_map, made.attrs)
