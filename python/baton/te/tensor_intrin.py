# SPDX-License-Identifier: Apache-2.0
"""Computations that a statement does, as an instruction or a library's function: what `Stage.tensorize` puts in the place of loops."""

from .._core import Object
from ..error import TypeError, ValueError
from ..ir import PrimExpr, make_node
from ..tir import Evaluate, Var, decl_buffer
from ..tir.stmt import Stmt
from .tensor import ComputeOp


class TensorIntrin(Object, key="te.TensorIntrin"):
    """A computation of a given form, done by a statement; made by `decl_tensor_intrin`."""

    __slots__ = ()


def decl_tensor_intrin(op, fcompute, name="tensor_intrin", binds=None, scalar_params=None, default_buffer_params=None):
    """An intrinsic that does the computation `op`, for `Stage.tensorize`.

        intrin = te.decl_tensor_intrin(c.op, lambda ins, outs: ...)
        s[C].tensorize(yi, intrin)

    fcompute(ins, outs): statements, of buffers of the inputs and of the results: one that does all of it, or a tuple (all of it, what a
    reduction begins with, what reduces further elements into the results); fcompute(ins, outs, scalar_params) if those are given. binds: of
    tensors, buffers with the strides that the statements can do. default_buffer_params: keywords of `tir.decl_buffer` for the others.
    """
    if not isinstance(op, ComputeOp):
        raise TypeError(f"decl_tensor_intrin takes an operation of te.compute, not {type(op).__name__}")
    inputs, binds = list(op.input_tensors), dict(binds or {})
    results = [op.output(k) for k in range(op.num_outputs)]
    for tensor in binds:
        if not any(tensor == t for t in [*inputs, *results]):
            raise ValueError(f"decl_tensor_intrin {name!r} binds a buffer to `{tensor.op.name}`, which `{op.name}` neither reads nor computes")
    buffers = []
    for tensor in [*inputs, *results]:
        buffer = binds.get(tensor) or decl_buffer(list(tensor.shape), str(tensor.dtype), tensor.op.name, **(default_buffer_params or {}))
        if len(buffer.shape) != len(tensor.shape):
            raise ValueError(f"decl_tensor_intrin {name!r}: the buffer of `{tensor.op.name}` has {len(buffer.shape)} dimensions, it has {len(tensor.shape)}")
        buffers.append(_with_offset(buffer))
    ins, outs = buffers[: len(inputs)], buffers[len(inputs) :]
    scalars = [scalar_params] if isinstance(scalar_params, Var) else list(scalar_params or [])
    made = fcompute(ins, outs, scalars) if scalars else fcompute(ins, outs)
    parts = [_statement(x, name) for x in (made if isinstance(made, (list, tuple)) else (made,))]
    if not 1 <= len(parts) <= 3 or all(x is None for x in parts):
        raise ValueError(f"decl_tensor_intrin {name!r}: its function gives one statement, or (body, reset, update)")
    body, reset, update = [*parts, None, None][:3]
    return make_node(
        "te.TensorIntrin",
        name=name,
        op=op,
        inputs=inputs,
        buffers=buffers,
        scalar_params=scalars,
        body=body,
        reduce_init=reset,
        reduce_update=update,
    )


def _with_offset(buffer):
    """The buffer, with a variable for its offset if it has none: it is a part of another."""
    if buffer._field("elem_offset") is not None:
        return buffer
    fields = {k: buffer._field(k) for k in ("data", "dtype", "shape", "name", "data_alignment", "strides", "offset_factor", "buffer_type")}
    return make_node("tir.Buffer", **fields, elem_offset=Var(f"{buffer.name}_elem_offset", "int32"))


def _statement(x, name):
    if x is None or isinstance(x, Stmt):
        return x
    if not isinstance(x, PrimExpr):
        raise TypeError(f"decl_tensor_intrin {name!r}: its function gives statements, not {type(x).__name__}")
    return Evaluate(x)


__all__ = ["TensorIntrin", "decl_tensor_intrin"]
