# SPDX-License-Identifier: Apache-2.0
"""One PrimFunc of a schedule: which elements of each tensor are needed where, and the loops that compute them."""

from ..._core import convert
from ...arith import Analyzer
from ...error import TypeError, ValueError
from ...ir import Range, make_node
from ...tir import Allocate, BufferLoad, BufferStore, For, ForKind, IfThenElse, IterVar, LetStmt, PrimFunc, SeqStmt, Var, op
from ...tir.buffer import Buffer
from ...tir.stmt_functor import ir_transform, post_order_visit, substitute
from .. import _ffi_api
from ..reads import loads, parts
from ..tensor import PlaceholderOp, Tensor
from .loops import Loops, literal
from .schedule import INLINE, ROOT, SCOPE, Schedule, Stage
from .scripts import scheduled

_STACK = 16 << 10  # bytes of a buffer within loops that may lie on a task's stack
_KINDS = {IterVar.Parallelized: ForKind.PARALLEL, IterVar.Vectorized: ForKind.VECTORIZED, IterVar.Unrolled: ForKind.UNROLLED}
_WORDS = {IterVar.Vectorized: "vectorized", IterVar.Unrolled: "unrolled"}


class _Interval:
    """The values of an expression while some variables vary: from `low` to `high`; `runs`: whether one of them occurs in it."""

    __slots__ = ("high", "low", "runs")

    def __init__(self, low, high, runs):
        self.low, self.high, self.runs = low, high, runs


def interval(expr, ranges, simplify):
    """The _Interval of an expression, `ranges` having those of the variables that vary; None where it is not known."""
    made = {}

    def visit(e):
        made[e.handle] = combine(e)

    def combine(e):
        kind = e.type_key
        if kind in ("tir.Var", "tir.SizeVar"):
            return ranges.get(e.handle) or _Interval(e, e, False)
        below = [made[x.handle] for x in _operands(e)]
        if all(b is not None and not b.runs for b in below) and kind not in ("tir.ProducerLoad", "tir.BufferLoad"):
            return _Interval(e, e, False)
        if any(b is None for b in below):
            return None
        if kind == "tir.Cast":
            return below[0] if str(e.dtype).startswith(("int", "uint")) and str(e.value.dtype).startswith(("int", "uint")) else None
        if kind in ("tir.Select", "tir.Call") and len(below) == 3:
            a, b = below[1], below[2]
            return _Interval(op.min(a.low, b.low), op.max(a.high, b.high), True) if kind == "tir.Select" or e.op.name == "tir.if_then_else" else None
        if len(below) != 2:
            return None
        a, b = below
        if kind == "tir.Add":
            return _Interval(a.low + b.low, a.high + b.high, True)
        if kind == "tir.Sub":
            return _Interval(a.low - b.high, a.high - b.low, True)
        if kind in ("tir.Min", "tir.Max"):
            f = op.min if kind == "tir.Min" else op.max
            return _Interval(f(a.low, b.low), f(a.high, b.high), True)
        if kind == "tir.Mul" and not b.runs or kind == "tir.Mul" and not a.runs:
            x, factor = (a, b.low) if not b.runs else (b, a.low)
            n = literal(simplify(factor))
            if n is None:
                return None
            return _Interval(x.low * n, x.high * n, True) if n >= 0 else _Interval(x.high * n, x.low * n, True)
        n = literal(simplify(b.low)) if not b.runs else None
        if n is None or n <= 0:
            return None
        if kind in ("tir.FloorDiv", "tir.Div"):
            f = op.floordiv if kind == "tir.FloorDiv" else op.truncdiv
            return _Interval(f(a.low, b.low), f(a.high, b.low), True)
        if kind in ("tir.FloorMod", "tir.Mod"):
            low, high = literal(simplify(a.low)), literal(simplify(a.high))
            if low is not None and high is not None and low >= 0 and low // n == high // n:
                return _Interval(op.const(low % n, e.dtype), op.const(high % n, e.dtype), True)
            return _Interval(op.const(0 if kind == "tir.FloorMod" else 1 - n, e.dtype), op.const(n - 1, e.dtype), True)
        return None

    post_order_visit(expr, visit)
    found = made[expr.handle]
    return found if found is None or not found.runs else _Interval(simplify(found.low), simplify(found.high), True)


def _operands(e):
    kind = e.type_key
    if kind == "tir.Cast":
        return [e.value]
    if kind == "tir.Select":
        return [e.condition, e.true_value, e.false_value]
    if kind == "tir.Call":
        return list(e.args)
    if kind in ("tir.ProducerLoad", "tir.BufferLoad"):
        return list(e.indices)
    return [getattr(e, name) for name in ("a", "b") if hasattr(e, name)]


class _Placed:
    """A placed stage: its loops, and for each dimension the first computed element and their number."""

    def __init__(self):
        self.body, self.first, self.extents, self.loops, self.buffers = [], [], [], None, []


class _Lowering:
    def __init__(self, schedule, args, buffers=None):
        self.schedule, self.simplify = schedule, Analyzer().canonical_simplify
        self.placed = {}  # handle of a stage's operation -> _Placed
        self.live = []  # stages that are stored, in order
        self.children = {}  # handle of a loop's variable -> stages within it
        self.params, self.buffer_map, self.given = [], {}, {}
        self._parameters(args, buffers or [None] * len(args))
        self._inline()
        self._regions()

    # ---- Parameters
    def _parameters(self, args, buffers):
        for a, own in zip(args, buffers, strict=True):
            if isinstance(a, Tensor):
                buffer = own or Buffer(list(a.shape), str(a.dtype), a.op.name)
                if a not in self.schedule and (isinstance(a.op, PlaceholderOp) or any(o.same_as(a.op) for o in self.schedule.given)):  # nothing reads it
                    var = Var(a.op.name, "handle")
                    self.params.append(var)
                    self.buffer_map[var] = buffer
                    continue
                stage = self.schedule[a]
                key = (stage.origin_op.handle, a.value_index)
                if key in self.given:
                    raise ValueError(f"`{a.op.name}` is given twice")
                if not stage.is_input and stage.attach_type != ROOT:
                    raise ValueError(f"`{a.op.name}` is an argument, which is computed as a whole, and has no place in other loops")
                self.given[key] = buffer
                var = Var(a.op.name, "handle")
                self.params.append(var)
                self.buffer_map[var] = buffer
            elif isinstance(a, Var):
                self.params.append(a)
            elif isinstance(a, Buffer):
                var = Var(a.name, "handle")
                self.params.append(var)
                self.buffer_map[var] = a
            else:
                raise TypeError(f"an argument is a tensor, a variable or a buffer, not {type(a).__name__}")

    # ---- Bodies
    def _inline(self):
        for stage in self.schedule.stages:
            p = self.placed[stage.op.handle] = self.placed[stage.origin_op.handle] = _Placed()
            p.body = [_replaced(e, self._elements) for e in stage.body]
            if stage.is_input:
                if not any(handle == stage.origin_op.handle for handle, _ in self.given):
                    if any(t.op.handle == stage.op.handle for s in self.schedule.stages for t in [*(x.producer for x in loads(parts(s.body))), *s.inputs]):
                        raise ValueError(f"`{stage.op.name}` is read and is no argument")
            elif stage.attach_type != INLINE:
                self.live.append(stage)

    def _elements(self, tensor, indices):
        stage = self.schedule[tensor]
        if stage.attach_type != INLINE:
            return _ffi_api.Load(tensor, list(indices))
        own = stage.op.axis
        return substitute(self.placed[stage.op.handle].body[tensor.value_index], {a.var: i for a, i in zip(own, indices, strict=True)})

    def _of(self, stage):
        return self.placed[stage.op.handle]

    # ---- Regions
    def _scope(self, stage):
        """Handles of the variables of loops around a stage that is within one, outermost stage last; and the chain of (stage, loop)."""
        around, chain, seen = set(), [], {stage.op.handle}
        while stage.attach_type == SCOPE:
            parent, iv = stage.attach_stage, stage.attach_ivar
            if parent.op.handle in seen:
                raise ValueError(f"`{stage.op.name}` and `{parent.op.name}` are computed within each other")
            if parent.attach_type == INLINE or parent.is_input:
                raise ValueError(
                    f"`{stage.op.name}` is computed at a loop of `{parent.op.name}`, which has none: it is {'inline' if parent.attach_type == INLINE else 'an input'}"
                )
            seen.add(parent.op.handle)
            at = parent._place(iv)
            around |= {v.var.handle for v in parent.leaf_iter_vars[: at + 1]}
            chain.append((parent, at))
            stage = parent
        return around, chain

    def _regions(self):
        leaves = {}  # every loop's variable -> extent, as stages are placed
        readers = {}
        for stage in self.live:
            for load in loads(parts(self._of(stage).body)):
                readers.setdefault(self.schedule[load.producer].op.handle, []).append((stage, load))
            for t in stage.inputs:
                source = self.schedule[t]
                if source.attach_type != ROOT:
                    raise ValueError(f"`{stage.op.name}` is a statement, which reads the whole of `{t.op.name}`: that is computed at its root")
        for stage in reversed(self.live):
            p = self._of(stage)
            shape = [a.dom.extent for a in stage.op.axis]
            p.first, p.extents = [op.const(0, "int64")] * len(shape), list(shape)
            p.scope, p.chain = self._scope(stage)
            if p.chain:
                self._region(stage, p, shape, readers.get(stage.op.handle, []), leaves)
                self.children.setdefault(stage.attach_ivar.var.handle, []).insert(0, stage)
            extents = {a.var: e for a, e in zip(stage.op.axis, p.extents, strict=True)} | {k.var: k.dom.extent for k in stage.op.reduce_axis}
            p.loops = Loops(stage, extents)
            leaves.update({iv.var.handle: p.loops.extent(iv) for iv in stage.leaf_iter_vars})
            for iv in stage.leaf_iter_vars:
                kind = _WORDS.get(_kind(stage, iv))
                if kind and literal(p.loops.extent(iv)) is None:
                    raise ValueError(
                        f"`{iv.var.name}` of `{stage.op.name}` has {p.loops.extent(iv)} rounds, which is not known: it cannot be {kind}; split it by a number"
                    )

    def _region(self, stage, p, shape, reads, leaves):
        if not reads:
            raise ValueError(f"`{stage.op.name}` is computed within a loop of `{stage.attach_stage.op.name}`, where nothing reads it")
        parent, at = p.chain[0]
        running = {h: _Interval(op.const(0, "int64"), self.simplify(e - 1), True) for h, e in leaves.items() if h not in p.scope}
        whole = [None] * len(shape)
        for reader, load in reads:
            r = self._of(reader)
            if not reader.same_as(parent) and not any(s.same_as(parent) and place >= at for s, place in r.chain):
                raise ValueError(
                    f"`{stage.op.name}` is computed within loop `{stage.attach_ivar.var.name}` of `{parent.op.name}`, and read outside of it, by `{reader.op.name}`"
                )
            ranges = dict(running)
            firsts = [*r.first, *(k.dom.min for k in reader.op.reduce_axis)]
            sizes = [*r.extents, *(k.dom.extent for k in reader.op.reduce_axis)]
            for axis, first, size in zip(reader.axes, firsts, sizes, strict=True):
                ranges[axis.var.handle] = self._axis(r.loops.value(axis), first, size, running)
            for d, index in enumerate(load.indices):
                found = interval(index, ranges, self.simplify)
                if found is not None and not found.runs:
                    # The variables in it are the reader's axes: what these are in the loops.
                    found = self._point(index, reader, r)
                whole[d] = self._union(whole[d], found)
        for d, found in enumerate(whole):
            if found is False or found is None:
                continue
            size, full = literal(self.simplify(found.high - found.low + 1)), literal(shape[d])
            if size is not None and size > 0 and (full is None or size < full):
                p.first[d], p.extents[d] = self.simplify(found.low), op.const(size, "int64")

    def _axis(self, value, first, size, running):
        v, f = interval(value, running, self.simplify), interval(first, running, self.simplify)
        if v is None or f is None:
            return _Interval(first, self.simplify(first + size - 1), True) if f is not None and not f.runs else None
        if not v.runs and not f.runs:
            point = self.simplify(first + value)
            return _Interval(point, point, False)
        high, most = v.high, literal(size)
        if literal(high) is not None and most is not None:
            high = op.const(min(literal(high), most - 1), "int64")
        return _Interval(self.simplify(f.low + v.low), self.simplify(f.high + high), True)

    def _point(self, index, reader, r):
        firsts = [*r.first, *(k.dom.min for k in reader.op.reduce_axis)]
        e = self.simplify(substitute(index, {a.var: f + r.loops.value(a) for a, f in zip(reader.axes, firsts, strict=True)}))
        return _Interval(e, e, False)

    def _union(self, a, b):
        """Of None (nothing yet), False (not known) and intervals."""
        if a is False or b is None:
            return False
        if a is None:
            return b
        low, high = literal(self.simplify(a.low - b.low)), literal(self.simplify(a.high - b.high))
        if low is None or high is None:
            return False
        return _Interval(a.low if low <= 0 else b.low, a.high if high >= 0 else b.high, a.runs or b.runs)

    # ---- Statements
    def run(self, name):
        roots = [s for s in self.live if s.attach_type == ROOT]
        for stage in self.live:
            self._buffers(stage)
        body = _sequence([self._stage(stage) for stage in roots])
        for stage in reversed(roots):
            body = self._allocated(stage, body)
        return PrimFunc(self.params, body, buffer_map=self.buffer_map, attrs={"global_symbol": name, "tir.noalias": True})

    def _buffers(self, stage):
        p = self._of(stage)
        for k, buffer in enumerate(stage.op.output_buffers if stage.is_statement else ()):
            p.buffers.append(self.given.get((stage.origin_op.handle, k)) or Buffer(list(buffer.shape), str(buffer.dtype), stage.op.name))
        for k, e in enumerate(stage.body):
            given = self.given.get((stage.origin_op.handle, k))
            scope = ""
            extents = [literal(x) for x in p.extents]
            if stage.attach_type == SCOPE and None not in extents:
                size = max(1, _bits(e.dtype) // 8)
                for x in extents:
                    size *= x
                scope = "local" if size <= _STACK else ""
            p.buffers.append(given or Buffer(list(p.extents), str(e.dtype), stage.op.name, scope))

    def _statement(self, stage):
        """The statement of an operation that is one, over the buffers of its inputs and results."""
        operation = stage.op
        ins = [self._buffer(t) for t in operation.inputs]
        outs = self._of(stage).buffers
        if stage.cells:
            return Stage.statement_of_rows(stage, ins, outs)
        pairs = [*zip(operation.input_buffers, ins, strict=True), *zip(operation.output_buffers, outs, strict=True)]
        actual = {formal.handle: to for formal, to in pairs}
        variables = {}
        for formal, to in pairs:
            variables[formal.data] = to.data
            variables.update({a: b for a, b in zip(formal.shape, to.shape, strict=True) if isinstance(a, Var) and not a.same_as(b)})

        def replaced(node):
            if node.buffer.handle not in actual:
                return None
            to = actual[node.buffer.handle]
            return BufferLoad(to, node.indices) if isinstance(node, BufferLoad) else BufferStore(to, node.value, node.indices)

        made = substitute(ir_transform(operation.body, None, replaced, ["tir.BufferLoad", "tir.BufferStore"]), variables)
        return scheduled(made, stage, self._of(stage).loops, _KINDS)

    def _buffer(self, tensor):
        stage = self.schedule[tensor]
        return self.given[(stage.origin_op.handle, tensor.value_index)] if stage.is_input else self._of(stage).buffers[tensor.value_index]

    def _allocated(self, stage, body):
        for k, buffer in enumerate(self._of(stage).buffers):
            if (stage.origin_op.handle, k) not in self.given:
                body = Allocate(buffer, body)
        return body

    def _within(self, iv, body):
        """The stages that are computed in this loop, then its own body."""
        children = self.children.get(iv.var.handle, [])
        body = _sequence([*map(self._stage, children), body])
        for child in reversed(children):
            body = self._allocated(child, body)
        return body

    def _loop(self, stage, iv, body, variable=None):
        return For(
            iv.var if variable is None else variable,
            op.const(0, "int64"),
            self._of(stage).loops.extent(iv),
            _KINDS.get(_kind(stage, iv), ForKind.SERIAL),
            body,
            annotations=stage.annotations(iv),
        )

    def _read(self, tensor, indices):
        stage = self.schedule[tensor]
        if stage.is_input or stage.is_statement:
            return BufferLoad(self._buffer(tensor), list(indices))
        p = self._of(stage)
        return BufferLoad(p.buffers[tensor.value_index], [self.simplify(i - f) for i, f in zip(indices, p.first, strict=True)])

    def _stage(self, stage):
        p = self._of(stage)
        if stage.is_statement:
            return self._statement(stage)
        values = {a.var: self.simplify(f + p.loops.value(a)) for a, f in zip(stage.op.axis, p.first, strict=True)}
        values |= {k.var: self.simplify(k.dom.min + p.loops.value(k)) for k in stage.op.reduce_axis}
        at = [p.loops.value(a) for a in stage.op.axis]
        own = p.loops.conditions(reduce=False) + self._inside(stage, p)

        def expr(e):
            return _ffi_api.ReplaceLoads(substitute(e, values), self._read)

        leaves = stage.leaf_iter_vars
        if not stage.op.reduce_axis:
            body = _if(own, _sequence([BufferStore(b, expr(e), at) for b, e in zip(p.buffers, p.body, strict=True)]))
            for iv in reversed(leaves):
                body = self._loop(stage, iv, self._within(iv, body))
            return body
        first = next(i for i, iv in enumerate(leaves) if stage.is_reduce(iv))
        reduce = p.body[0]
        conditions = own + p.loops.conditions(reduce=True) + ([expr(reduce.condition)] if reduce.condition is not None else [])
        update = _if(conditions, self._update(p, reduce, [expr(s) for s in reduce.source], at))
        for iv in reversed(leaves[first:]):
            update = self._loop(stage, iv, self._within(iv, update))
        begin = _if(own, _sequence([BufferStore(b, e, at) for b, e in zip(p.buffers, reduce.combiner.identity_element, strict=True)]))
        for iv in reversed([iv for iv in leaves[first:] if not stage.is_reduce(iv)]):
            fresh = Var(iv.var.name + ".init", str(iv.var.dtype))
            begin = self._loop(stage, iv, substitute(begin, {iv.var: fresh}), fresh)
        body = _sequence([begin, update])
        for iv in reversed(leaves[:first]):
            body = self._loop(stage, iv, self._within(iv, body))
        return body

    def _inside(self, stage, p):
        """Conditions that keep a loop's stores within the tensor, where they are not implied."""
        out = []
        if stage.attach_type != SCOPE:
            return out
        for axis, first, size in zip(stage.op.axis, p.first, p.extents, strict=True):
            if literal(first) == 0:
                continue
            analyzer, some = Analyzer(), Var("some", "int64")
            analyzer.bind(some, Range.from_min_extent(op.const(0, "int64"), size))
            for reader in self.live:
                loops = self._of(reader).loops
                for iv in reader.leaf_iter_vars:
                    if iv.var.handle in p.scope:
                        analyzer.bind(iv.var, Range.from_min_extent(op.const(0, "int64"), loops.extent(iv)))
            index = first + p.loops.value(axis)
            if not analyzer.can_prove(first + some < axis.dom.extent):
                out.append(index < axis.dom.extent)
            if not analyzer.can_prove(first + some >= 0):
                out.append(index >= 0)
        return out

    @staticmethod
    def _update(p, reduce, sources, at):
        combiner = reduce.combiner
        mapping = dict(zip(combiner.lhs, [BufferLoad(b, at) for b in p.buffers], strict=True)) | dict(zip(combiner.rhs, sources, strict=True))
        results = [substitute(e, mapping) for e in combiner.result]
        if len(results) == 1:
            return BufferStore(p.buffers[0], results[0], at)
        # All are read before any is written.
        variables = [Var(f"v{k}", str(e.dtype)) for k, e in enumerate(results)]
        body = SeqStmt([BufferStore(b, v, at) for b, v in zip(p.buffers, variables, strict=True)])
        for v, e in reversed(list(zip(variables, results, strict=True))):
            body = LetStmt(v, e, body)
        return body


def _kind(stage, iv):
    """How the rounds of a loop are run, an iteration type; None where nothing is asked."""
    asked = stage.asked(iv)
    return None if asked is None else asked.iter_type


def _replaced(e, f):
    if e.type_key != "tir.Reduce":
        return _ffi_api.ReplaceLoads(e, f)
    return make_node(
        "tir.Reduce",
        dtype=str(e.dtype),
        combiner=e.combiner,
        axis=e.axis,
        source=[_ffi_api.ReplaceLoads(s, f) for s in e.source],
        condition=None if e.condition is None else _ffi_api.ReplaceLoads(e.condition, f),
        value_index=e.value_index,
    )


def _bits(dtype):
    digits = "".join(c for c in str(dtype).split("x")[0] if c.isdigit())
    return int(digits) if digits else 8


def _sequence(statements):
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def _if(conditions, body):
    return IfThenElse(op.all(*conditions), body) if conditions else body


def schedule_to_prim_func(schedule, args, name="main", buffers=None):
    """One PrimFunc that computes as the schedule says; its parameters are `args`: tensors, variables of sizes, buffers. `buffers`: of each
    argument, or None for one of its own."""
    if not isinstance(schedule, Schedule):
        raise TypeError(f"a schedule is made by te.create_schedule, this is a {type(schedule).__name__}")
    return _Lowering(schedule, list(args), buffers).run(name)


def InferBound(schedule):
    """The range of every loop of a schedule, also of those that were split or fused: a Map by IterVar."""
    inputs = [s.op for s in schedule.stages if s.is_input]
    lowering = _Lowering(schedule, [_ffi_api.OutputOf(o) for o in inputs])
    out = {}
    for stage in lowering.live:
        p = lowering._of(stage)
        first = {a.var.handle: f for a, f in zip(stage.op.axis, p.first, strict=True)}
        first |= {k.var.handle: k.dom.min for k in stage.op.reduce_axis}
        for iv in stage.all_iter_vars:
            out[iv] = Range.from_min_extent(first.get(iv.var.handle, op.const(0, "int64")), p.loops.extent(iv))
    return convert(out)


def ScheduleOps(schedule, bounds=None, debug_keep_trivial_loop=False):
    """The loops of a schedule as one statement, over buffers of its inputs and outputs. `bounds` is accepted for older programs."""
    inputs = [_ffi_api.OutputOf(s.op) for s in schedule.stages if s.is_input]
    outputs = [o.output(k) for o in schedule.outputs for k in range(o.num_outputs)]
    return schedule_to_prim_func(schedule, inputs + outputs).body


def SchedulePostProcToPrimFunc(arg_list, stmt, extern_buffer_map=None):
    """A function of the statement that `ScheduleOps` gave; its parameters are `arg_list`: tensors, variables, buffers."""
    buffers = {}

    def find(node):
        buffer = getattr(node, "buffer", None)
        if buffer is not None and node.type_key != "tir.Allocate":
            buffers.setdefault(buffer.name, buffer)

    post_order_visit(stmt, find)
    given = dict(extern_buffer_map or {})
    params = [given.get(a) or buffers.get(a.op.name) or Buffer(list(a.shape), str(a.dtype), a.op.name) if isinstance(a, Tensor) else a for a in arg_list]
    return PrimFunc(params, stmt)


def CreateReadGraph(ops):
    """The tensors that each operation, of these and of all before them, reads: a dictionary by operation."""
    return {operation: list(operation.input_tensors) for operation in PostDFSOrder(ops)}


def PostDFSOrder(ops, graph=None):
    """These operations and all before them, inputs first."""
    return list(_ffi_api.PostOrder(list(ops), []))


def VerifyCompactBuffer(stmt):
    """Whether the buffers of a statement are dense: they always are."""
    return True


def _reads_by(index_maps):
    def inline(schedule):
        for stage in schedule.stages:
            if stage.body and not stage.is_output and not stage.op.reduce_axis and stage.attach_type == ROOT and index_maps(stage):
                stage.compute_inline()

    return inline


def _own_indices(stage):
    """Whether every element is read at the indices that are computed."""
    own = [a.var for a in stage.op.axis]
    return all(len(load.indices) == len(own) and all(i.same_as(v) for i, v in zip(load.indices, own, strict=True)) for load in loads(parts(stage.body)))


def _own_in_order(stage):
    """Whether every element is read at some of the indices that are computed, in their order."""
    own = [a.var.handle for a in stage.op.axis]
    for load in loads(parts(stage.body)):
        places = [own.index(i.handle) if i.handle in own else None for i in load.indices if literal(i) is None]
        if None in places or places != sorted(places):
            return False
    return True


def AutoInlineInjective(schedule):
    """Inlines all operations that read elements and are no reductions."""
    _reads_by(lambda stage: True)(schedule)


def AutoInlineElemWise(schedule):
    """Inlines operations that read elements only at their own indices."""
    _reads_by(_own_indices)(schedule)


def AutoInlineBroadcast(schedule):
    """Inlines operations that read elements at some of their own indices, in order."""
    _reads_by(_own_in_order)(schedule)


__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateReadGraph",
    "InferBound",
    "Loops",
    "PostDFSOrder",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "VerifyCompactBuffer",
    "interval",
    "schedule_to_prim_func",
]
