# SPDX-License-Identifier: Apache-2.0
"""Tensors that are computed row by row, each from the rows before it."""

from ..error import UnsupportedError, ValueError
from ..ir import Range, make_node
from ..tir import Evaluate, IterVar, op
from ..tir.buffer import Buffer
from . import _ffi_api
from .tensor import ComputeOp, Tensor


def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """Tensors whose first rows `init` gives, and every further one `update`, which reads the rows before it from `state_placeholder`.

        X = te.placeholder((m, n), name="X")
        state = te.placeholder((m, n))
        first = te.compute((1, n), lambda _, i: X[0, i])
        further = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
        sums = te.scan(first, further, state, inputs=[X])    # of the rows so far

    init, update, state_placeholder: a tensor, or a list of one for each result. inputs: what else the rows are computed from; it is
    found where it is not given. A schedule of the scan has stages of the first and of the further rows too, whose loops over an element's place
    may be split, parallel and so on.
    """
    first, further, states = ([x] if isinstance(x, Tensor) else list(x) for x in (init, update, state_placeholder))
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs or [])
    if not len(first) == len(further) == len(states) > 0:
        raise ValueError(f"scan takes as many tensors for init, update and state: {len(first)}, {len(further)}, {len(states)}")
    for i, (a, b, c) in enumerate(zip(first, further, states, strict=True)):
        if not a.dtype == b.dtype == c.dtype or not a.ndim == b.ndim == c.ndim:
            raise ValueError(f"scan: result {i} has init, update and state of different dtype or rank")
        if not (isinstance(a.op, ComputeOp) and isinstance(b.op, ComputeOp)):
            raise UnsupportedError("scan: init and update are computed by te.compute")
    inputs += [t for t in _read_from_outside([*first, *further], states) if t not in inputs]
    ins = [Buffer(list(t.shape), str(t.dtype), t.op.name) for t in inputs]
    outs = [Buffer(list(t.shape), str(t.dtype), name) for t in states]
    attrs = {**dict(attrs or {}), "scan_init": first, "scan_update": further, "scan_state": states}
    attrs["scan_axis"] = IterVar(Range.from_min_extent(first[0].shape[0], states[0].shape[0] - first[0].shape[0]), f"{name}.idx", IterVar.Ordered)

    def operation(body):
        return make_node("te.ExternOp", name=name, tag=tag, attrs=attrs, inputs=inputs, input_buffers=ins, output_buffers=outs, body=body)

    made = operation(_ffi_api.ScanRows(operation(Evaluate(op.const(0))), ins, outs))
    results = [made.output(i) for i in range(len(outs))]
    return results if len(results) > 1 else results[0]


def _follows(operation, states):
    """Whether an operation computes of the states of a scan."""
    return any(t in states or isinstance(t.op, ComputeOp) and _follows(t.op, states) for t in operation.input_tensors)


def _read_from_outside(tensors, states):
    """The tensors that are the same for each row, which rows are computed from, in the order in which they are met."""
    found, seen = [], set()
    rest = [t for tensor in reversed(tensors) for t in reversed(list(tensor.op.input_tensors))]
    while rest:
        tensor = rest.pop()
        if tensor in seen or tensor in states:
            continue
        seen.add(tensor)
        if isinstance(tensor.op, ComputeOp) and _follows(tensor.op, states):
            rest += reversed(list(tensor.op.input_tensors))
        else:
            found.append(tensor)
    return found


__all__ = ["scan"]
