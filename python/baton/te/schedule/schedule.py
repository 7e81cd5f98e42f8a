# SPDX-License-Identifier: Apache-2.0
"""Stages of a computation and the loops of each."""

from ...error import TypeError, UnsupportedError, ValueError
from ...ir import Range
from ...tir import IterVar, StringImm, Var, op
from ...tir.stmt_functor import substitute
from .. import _ffi_api
from ..reads import loads, parts, reduce_of, tensors_read
from ..tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, Tensor
from .loops import Fuse, Singleton, Split, loops_of

ROOT, INLINE, SCOPE = "root", "inline", "scope"


def thread_axis(dom=None, tag="", name="", span=None):
    """A loop over threads of a device, as "blockIdx.x". PrimFuncs have no thread axes: `Stage.bind` says what to use."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError('thread_axis needs a tag, as "threadIdx.x"')
    return IterVar(Range(0, 1) if dom is None else dom, Var(name or tag, "int32"), IterVar.ThreadIndex, tag)


def producers(operation):
    """Tensors that an operation reads, in order."""
    return list(operation.input_tensors)


def post_order(outputs, given=()):
    """These operations and all their producers, producers first; those of the operations in `given` are left out."""
    boundary = {operation.handle for operation in given}
    done, order, stack = set(), [], [(o, False) for o in reversed(outputs)]
    while stack:
        operation, ready = stack.pop()
        if ready:
            order.append(operation)
        elif operation.handle not in done:
            done.add(operation.handle)
            stack.append((operation, True))
            if operation.handle not in boundary:
                stack += [(t.op, False) for t in reversed(producers(operation)) if t.op.handle not in done]
    return order


def create_schedule(ops):
    """A schedule of operations and their producers, each in loops of its own, in the order of its axes."""
    ops = [ops] if isinstance(ops, (Operation, Tensor)) else list(ops)
    return Schedule([o.op if isinstance(o, Tensor) else o for o in ops])


class Schedule:
    """How operations are computed; `schedule[tensor]` is the stage of a tensor. Made by `create_schedule`."""

    def __init__(self, outputs, given=()):
        self.outputs = outputs
        self.stages = []
        self._by_op = {}
        self.given = {t.op.handle for t in given}  # operations whose tensors are inputs, whatever computes them
        for operation in post_order(outputs, [t.op for t in given]):
            self._add(Stage(self, operation))
        for operation in outputs:
            self[operation].is_output = True

    def _add(self, stage, before=None):
        at = len(self.stages) if before is None else self.stages.index(before)
        self.stages.insert(at, stage)
        self._by_op[stage.origin_op.handle] = self._by_op[stage.op.handle] = stage

    def __getitem__(self, tensor):
        operation = tensor.op if isinstance(tensor, Tensor) else tensor
        stage = self._by_op.get(operation.handle)
        if stage is None:
            stage = next((found for s in self.stages if s.cell and (found := s.cell.find(operation))), None)
        if stage is None:
            raise ValueError(f"`{operation.name}` is no part of this schedule; it has {', '.join(s.op.name for s in self.stages)}")
        return stage

    def __contains__(self, tensor):
        operation = tensor.op if isinstance(tensor, Tensor) else tensor
        return operation.handle in self._by_op or any(s.cell and s.cell.find(operation) for s in self.stages)

    @property
    def stage_map(self):
        """The stage of each operation, by operation."""
        return {stage.op: stage for stage in self.stages}

    def normalize(self):
        """The schedule itself: loops begin at 0 in any case."""
        return self

    def cache_write(self, tensor, scope="global"):
        """Computes a tensor in a buffer of its own first, and copies it; gives the tensor of that buffer. Several outputs of one operation
        are given together, as a list."""
        several = isinstance(tensor, (list, tuple))
        tensors = list(tensor) if several else [tensor]
        stage = self[tensors[0]]
        operation = stage.op
        if not isinstance(operation, ComputeOp) or stage.relations:
            raise ValueError(f"cache_write of `{operation.name}` comes before its loops are changed, and it is no placeholder")
        if len(tensors) != len(operation.body):
            raise ValueError(f"`{operation.name}` has {len(operation.body)} outputs: cache_write takes them together")
        fresh = list(_ffi_api.MakeIndexVars(len(operation.axis)))
        mapping = {a.var: v for a, v in zip(operation.axis, fresh, strict=True)}
        shape = [a.dom.extent for a in operation.axis]
        made = list(_ffi_api.compute(shape, fresh, [substitute(e, mapping) for e in stage.body], operation.name + "." + (scope or "global"), operation.tag))
        own = [a.var for a in operation.axis]
        copies = _ffi_api.compute(shape, own, [t(*own) for t in made], operation.name, operation.tag)
        cache = Stage(self, made[0].op)
        cache.scope = scope
        stage.become(copies[0].op)
        self._by_op[stage.op.handle] = stage
        self._add(cache, before=stage)
        return made if several else made[0]

    def cache_read(self, tensor, scope, readers):
        """Copies a tensor to a buffer of its own, from which `readers` (operations or tensors) read; gives the tensor of that buffer."""
        source = self[tensor]
        readers = readers if isinstance(readers, (list, tuple)) else [readers]
        made = _ffi_api.compute(
            list(tensor.shape),
            list(variables := _ffi_api.MakeIndexVars(len(tensor.shape))),
            [tensor(*variables)],
            tensor.op.name + "." + (scope or "global"),
            "",
        )[0]
        cache = Stage(self, made.op)
        cache.scope = scope
        found = [self[r] for r in readers]
        for reader in found:
            if not any(load.producer == tensor for load in loads(parts(reader.body))):
                raise ValueError(f"`{reader.op.name}` does not read `{source.op.name}`")
            reader.replace_loads(lambda t, indices: made(*indices) if t == tensor else _ffi_api.Load(t, indices))
        self._add(cache, before=min(found, key=self.stages.index))
        return made

    def rfactor(self, tensor, axis, factor_axis=0):
        """Splits a reduction: one tensor has a part of it for each index of `axis`, one of the loops that the reduction became, and `tensor`
        reduces these. Gives the first tensor; its dimension `factor_axis` is that of the parts."""
        stage = self[tensor]
        if len(stage.body) != 1 or stage.body[0].type_key != "tir.Reduce":
            raise ValueError(f"`{stage.op.name}` has no reduction to split, or several")
        reduce = stage.body[0]
        reducing = [iv for iv in stage.leaf_iter_vars if stage.is_reduce(iv)]
        if not any(iv.var.same_as(axis.var) for iv in reducing):
            raise ValueError(f"`{axis.var.name}` is no loop of the reduction of `{stage.op.name}`")
        loops = loops_of(stage)
        own = list(stage.op.axis)
        position = factor_axis + len(own) + 1 if factor_axis < 0 else factor_axis
        if not 0 <= position <= len(own):
            raise ValueError(f"factor_axis {factor_axis} of a tensor of rank {len(own) + 1}")
        fresh = list(_ffi_api.MakeIndexVars(len(own) + 1))
        part = fresh.pop(position)
        # The loops of the reduction that stay, as axes of their own.
        stay = [(iv, _ffi_api.reduce_axis(op.const(0), loops.extent(iv), iv.var.name)) for iv in reducing if not iv.var.same_as(axis.var)]
        values = {iv.var: new.var for iv, new in stay} | {axis.var: part}
        mapping = {a.var: v for a, v in zip(own, fresh, strict=True)}
        conditions = [reduce.condition] if reduce.condition is not None else []
        for root in reduce.axis:
            value = substitute(loops.value(root), values)
            mapping[root.var] = value + root.dom.min
        source = [substitute(e, mapping) for e in reduce.source]
        conditions = [substitute(c, mapping) for c in conditions] + [substitute(c, values) for c in loops.conditions(reduce=True)]
        shape = [a.dom.extent for a in own]
        shape.insert(position, loops.extent(axis))
        index = list(fresh)
        index.insert(position, part)
        if stay:
            condition = op.all(*conditions) if conditions else None
            body = reduce_of(reduce.combiner, source, [new for _, new in stay], condition)
        else:
            body = source[0]
            for c in conditions:
                body = op.if_then_else(c, body, reduce.combiner.identity_element[0])
        made = _ffi_api.compute(shape, index, [body], stage.op.name + ".rf", stage.op.tag)[0]
        again = _ffi_api.reduce_axis(op.const(0), loops.extent(axis), axis.var.name)
        at = [a.var for a in own]
        at.insert(position, again.var)
        total = reduce_of(reduce.combiner, [made(*at)], [again], None)
        final = _ffi_api.compute([a.dom.extent for a in own], [a.var for a in own], [total], stage.op.name, stage.op.tag)[0]
        stage.become(final.op)
        self._by_op[final.op.handle] = stage
        self._add(Stage(self, made.op), before=stage)
        return made

    def create_group(self, outputs, inputs, include_inputs=False):
        """The stages between tensors, those of the inputs too if asked for, as a Group, which can be put into a loop."""
        outputs, inputs = ([x] if isinstance(x, (Tensor, Operation)) else list(x) for x in (outputs, inputs))
        ends, begins = ([self[x] for x in xs] for xs in (outputs, inputs))
        reads = {}  # stage -> whether it reads, by way of others, one of the inputs
        chosen = set()

        def visit(stage):
            key = stage.op.handle
            if key not in reads:
                if stage in begins:
                    reads[key] = True
                else:
                    tensors = [*tensors_read(stage.body), *stage.inputs]
                    reads[key] = any([visit(self[t]) for t in tensors])
                if reads[key] and not stage.is_input and (include_inputs or stage not in begins):
                    chosen.add(key)
            return reads[key]

        for stage in ends:
            visit(stage)
        return Group([s for s in self.stages if s.op.handle in chosen])


_TYPES = {"vectorized": IterVar.Vectorized, "unrolled": IterVar.Unrolled, "parallel": IterVar.Parallelized}


class _LoopAttrs:
    """What was asked of a loop."""

    def __init__(self, iv, asked):
        pragmas = {k.removeprefix("pragma_"): v for k, v in asked.items() if k != "kind"}
        self.iter_type = _TYPES.get(asked.get("kind"), iv.iter_type)
        self.pragma_keys = [StringImm(k) for k in pragmas]
        self.pragma_values = [op.convert(v) for v in pragmas.values()]


class Group:
    """Stages that are put into a loop together; made by `Schedule.create_group`."""

    def __init__(self, stages):
        self.stages = stages
        for stage in stages:
            stage.group = self

    def compute_at(self, parent, scope):
        """Computes the stages within the loop `scope` of the stage `parent`."""
        for stage in self.stages:
            stage.compute_at(parent, scope)

    def compute_root(self):
        """Computes all of each stage, before its readers."""
        for stage in self.stages:
            stage.compute_root()


class Stage:
    """One operation of a schedule: its loops, from the outside in, and where it is computed."""

    group = None  # the last one that it was put into
    cell_of = None  # how the rows of a scan are computed, by its operation; `te.scan` sets it

    def __init__(self, schedule, operation):
        self.schedule, self.origin_op = schedule, operation
        self.is_output, self.scope = False, ""
        self.attach_type, self.attach_stage, self.attach_ivar = ROOT, None, None
        self.become(operation)

    def become(self, operation):
        """Computes this operation from here on; its loops are those of its axes."""
        self.op = operation
        self.is_input = isinstance(operation, PlaceholderOp) or operation.handle in self.schedule.given
        computed = isinstance(operation, ComputeOp) and not self.is_input
        self.body = list(operation.body) if computed else []
        axes = [] if self.is_input else [*operation.axis, *operation.reduce_axis]
        # A statement reads whole tensors.
        self.is_statement = isinstance(operation, ExternOp) and not self.is_input
        self.inputs = list(operation.inputs) if self.is_statement else []
        self.cell = Stage.cell_of(operation) if self.is_statement and "scan_update" in operation.attrs else None
        self.all_iter_vars, self.leaf_iter_vars = list(axes), list(axes)
        self.relations, self.loop_attrs, self._reduce = [], {}, {a.var.handle for a in axes if a.iter_type == IterVar.CommReduce}

    @property
    def iter_var_attrs(self):
        """What was asked of loops: of each, `iter_type`, `pragma_keys` and `pragma_values`."""
        return {iv: _LoopAttrs(iv, self.loop_attrs[iv.var.handle]) for iv in self.leaf_iter_vars if iv.var.handle in self.loop_attrs}

    def replace_loads(self, f):
        """Replaces each element that the operation reads by `f(tensor, indices)`."""
        if self.is_statement:
            raise UnsupportedError(f"`{self.op.name}` is a statement, which reads whole tensors: it has no cache")
        self.body = [_replaced(e, f) for e in self.body]

    def is_reduce(self, iv):
        """Whether a loop belongs to the reduction."""
        return iv.var.handle in self._reduce

    def __repr__(self):
        return f"stage({self.op.name})"

    def _place(self, iv):
        if not isinstance(iv, IterVar):
            raise TypeError(f"a loop of `{self.op.name}` is an IterVar, not {type(iv).__name__}")
        for i, leaf in enumerate(self.leaf_iter_vars):
            if leaf.var.same_as(iv.var):
                return i
        what = "was split or fused" if any(v.var.same_as(iv.var) for v in self.all_iter_vars) else "is no loop of it"
        raise ValueError(f"`{iv.var.name}` of `{self.op.name}` {what}; its loops are {', '.join(str(v.var.name) for v in self.leaf_iter_vars)}")

    def _new(self, name, like):
        iv = IterVar(Range(0, 1), Var(name, "int64"), like.iter_type)
        self.all_iter_vars.append(iv)
        if self.is_reduce(like):
            self._reduce.add(iv.var.handle)
        return iv

    def split(self, parent, factor=None, nparts=None):
        """Splits a loop, the inner one of `factor` iterations, or the outer one of `nparts`: (outer, inner)."""
        at = self._place(parent)
        if (factor is None) == (nparts is None):
            raise ValueError("split takes factor or nparts, one of them")
        for what, value in (("factor", factor), ("nparts", nparts)):
            if isinstance(value, int) and value < 1:
                raise ValueError(f"split of `{parent.var.name}`: {what} is {value}, it is 1 or more")
        outer, inner = self._new(f"{parent.var.name}.outer", parent), self._new(f"{parent.var.name}.inner", parent)
        self.relations.append(Split(parent, outer, inner, factor, nparts))
        self.leaf_iter_vars[at : at + 1] = [outer, inner]
        return outer, inner

    def fuse(self, *args):
        """Fuses adjacent loops into one."""
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = args[0]
        if not args:
            if self.leaf_iter_vars:
                raise ValueError(f"fuse of `{self.op.name}` needs a loop")
            fused = IterVar(Range(0, 1), Var("singleton", "int64"), IterVar.DataPar)
            self.all_iter_vars.append(fused)
            self.leaf_iter_vars.append(fused)
            self.relations.append(Singleton(fused))
            return fused
        fused = args[0]
        for inner in args[1:]:
            at, behind = self._place(fused), self._place(inner)
            if behind != at + 1:
                raise ValueError(f"`{inner.var.name}` does not stand behind `{fused.var.name}`; reorder them first")
            if self.is_reduce(fused) != self.is_reduce(inner):
                raise ValueError(f"`{fused.var.name}` and `{inner.var.name}`: one belongs to the reduction, the other does not")
            made = self._new(f"{fused.var.name}.{inner.var.name}.fused", fused)
            self.relations.append(Fuse(fused, inner, made))
            self.leaf_iter_vars[at : at + 2] = [made]
            fused = made
        return fused

    def reorder(self, *args):
        """Reorders these loops among the places that they have."""
        places = [self._place(a) for a in args]
        if len(set(places)) != len(places):
            raise ValueError("reorder got a loop twice")
        loops = [self.leaf_iter_vars[p] for p in places]
        for place, iv in zip(sorted(places), loops, strict=True):
            self.leaf_iter_vars[place] = iv

    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Splits two loops and puts the inner ones inside: (x outer, y outer, x inner, y inner)."""
        xo, xi = self.split(x_parent, x_factor)
        yo, yi = self.split(y_parent, y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def _kind(self, iv, kind):
        self._place(iv)
        self.loop_attrs.setdefault(iv.var.handle, {})["kind"] = kind

    def vectorize(self, var):
        """Vectorizes a loop of known extent."""
        if self.is_reduce(var):
            raise ValueError(f"`{var.var.name}` belongs to the reduction of `{self.op.name}`, whose rounds follow each other; vectorize a loop over its result")
        self._kind(var, "vectorized")

    def unroll(self, var):
        """Unrolls a loop of known extent."""
        self._kind(var, "unrolled")

    def parallel(self, var):
        """Runs the iterations of a loop on several threads."""
        if self.is_reduce(var):
            raise ValueError(f"`{var.var.name}` belongs to the reduction of `{self.op.name}`, whose rounds follow each other; see Schedule.rfactor")
        self._kind(var, "parallel")

    def compute_at(self, parent, scope):
        """Computes within the loop `scope` of the stage `parent` what each iteration needs."""
        if not isinstance(parent, Stage):
            raise TypeError("compute_at takes a stage, as s[C], and one of its loops")
        if parent is self:
            raise ValueError(f"`{self.op.name}` cannot be computed within itself")
        if self.is_output:
            raise ValueError(f"`{self.op.name}` is a result, all of which is computed; cache_write makes a tensor that can stand in a loop")
        parent._place(scope)
        self.attach_type, self.attach_stage, self.attach_ivar = SCOPE, parent, scope

    def compute_inline(self):
        """Computes elements where they are read, instead of storing them."""
        if self.is_output:
            raise ValueError(f"`{self.op.name}` is a result, which is stored")
        if any(e.type_key == "tir.Reduce" for e in self.body):
            raise ValueError(f"`{self.op.name}` is a reduction, which cannot stand in another expression; use compute_at")
        if self.is_statement:
            raise ValueError(f"`{self.op.name}` is a statement, which cannot stand in an expression")
        if not self.body:
            raise ValueError(f"`{self.op.name}` is an input, which is not computed")
        self.attach_type, self.attach_stage, self.attach_ivar = INLINE, None, None

    def compute_root(self):
        """Computes all of it, before its readers."""
        self.attach_type, self.attach_stage, self.attach_ivar = ROOT, None, None

    def set_scope(self, scope):
        """The memory that the tensor is kept in: "global", or "local" for the stack."""
        self.scope = scope

    def pragma(self, var, pragma_type, pragma_value=None):
        """A hint to passes, kept as an annotation of the loop: `pragma_` and its name."""
        self._place(var)
        self.loop_attrs.setdefault(var.var.handle, {})["pragma_" + pragma_type] = 1 if pragma_value is None else pragma_value

    def prefetch(self, tensor, var, offset):
        """Accepted without effect: processors prefetch by themselves."""
        self._place(var)
        self.schedule[tensor]

    def storage_align(self, axis, factor, offset):
        """Accepted without effect: buffers are dense and aligned for vectors."""

    def double_buffer(self):
        """Accepted without effect: on a CPU one buffer is as fast."""

    def _no(self, what, instead):
        raise UnsupportedError(f"{what} of `{self.op.name}`: {instead}")

    def bind(self, ivar, thread_ivar):
        """Not there: PrimFuncs have no thread axes."""
        self._place(ivar)
        self._no("bind", "loops run on CPUs; use parallel, and vectorize for the inner loop. Relay programs run on OpenCL devices, see docs/guides/devices.md")

    def tensorize(self, var, tensor_intrin):
        """Not supported: passes replace loops by calls."""
        self._no("tensorize", "replace the loops by a call in a pass of tir.transform.prim_func_pass")

    def env_threads(self, threads):
        """Not there: PrimFuncs have no thread axes."""
        self._no("env_threads", "PrimFuncs have no thread axes")

    def set_store_predicate(self, predicate):
        """Not supported: conditions belong to the expression."""
        self._no("set_store_predicate", "write the condition into the expression, by te.if_then_else")

    def rolling_buffer(self):
        """Not supported: buffers hold what an iteration needs."""
        self._no("rolling_buffer", "use compute_at, which keeps what a round needs")


def _replaced(e, f):
    from ...ir import make_node

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
