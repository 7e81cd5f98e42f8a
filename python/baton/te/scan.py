# SPDX-License-Identifier: Apache-2.0
"""Tensors that are computed row by row, each from the rows before it."""

from ..error import UnsupportedError, ValueError
from ..ir import make_node
from ..tir import Evaluate, For, SeqStmt, Var, op
from ..tir.buffer import Buffer
from ..tir.stmt_functor import substitute
from . import _ffi_api
from .schedule.schedule import Stage
from .schedule.to_loops import schedule_to_prim_func
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

    def operation(body):
        return make_node("te.ExternOp", name=name, tag=tag, attrs=attrs, inputs=inputs, input_buffers=ins, output_buffers=outs, body=body)

    rows = operation(Evaluate(op.const(0)))
    made = operation(Cell(rows, *_ffi_api.ScanCells(rows)).statement(ins, outs))
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


class Cell:
    """How the rows of a scan are computed: by schedules of the first and of the further ones."""

    def __init__(self, operation, init, update):
        self.first, self.further, self.states = (list(operation.attrs["scan_" + which]) for which in ("init", "update", "state"))
        self.inputs, self.init, self.update = list(operation.inputs), init, update

    def statement(self, ins, outs):
        """The statement that computes all rows, from buffers of the inputs to buffers of the results."""
        buffers = {t.op.handle: b for t, b in zip(self.inputs, ins, strict=True)}
        begin = self._rows(self.init, self.first, buffers, outs, None)
        buffers.update({t.op.handle: b for t, b in zip(self.states, outs, strict=True)})
        return SeqStmt([*begin, *self._rows(self.update, self.further, buffers, outs, [t.shape[0] for t in self.first])])

    def _rows(self, schedule, results, buffers, outs, begin):
        arguments = [*(t for t in [*self.inputs, *self.states] if t.op.handle in buffers), *results]
        given = [*(buffers[t.op.handle] for t in arguments[: len(arguments) - len(results)]), *outs]
        body = schedule_to_prim_func(schedule, arguments, buffers=given).body
        if begin is None:
            return [body]
        statements = list(body.seq) if isinstance(body, SeqStmt) else [body]
        loops = [s for s in statements if isinstance(s, For) and any(s.loop_var.same_as(t.op.axis[0].var) for t in results)]
        if len(loops) != len(statements) or len(loops) != len(results):
            raise UnsupportedError("scan: the loop over rows stays the outermost, and what is computed of the state stands within it")
        # Row by row, all results.
        row = Var("t", "int64")
        rows = SeqStmt([substitute(s.body, {s.loop_var: row}) for s in loops]) if len(loops) > 1 else substitute(loops[0].body, {loops[0].loop_var: row})
        first = begin[0]
        return [For(row, op.cast("int64", first), loops[0].extent - first, body=rows)]


Stage.statement_of_rows = staticmethod(lambda stage, ins, outs: Cell(stage.op, *stage.cells).statement(ins, outs))

__all__ = ["Cell", "scan"]
