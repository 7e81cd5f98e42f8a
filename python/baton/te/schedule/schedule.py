# SPDX-License-Identifier: Apache-2.0
"""Stages of a computation and the loops of each: faces of the objects of C++ (src/te/schedule)."""

from ..._core import Object
from ...error import TypeError, UnsupportedError, ValueError
from ...tir import IterVar, StringImm, Var, op
from .. import _ffi_api
from ..tensor import Operation, Tensor


def thread_axis(dom=None, tag="", name="", span=None):
    """An axis of threads of a device, as "blockIdx.x", which `Stage.bind` gives a loop to. "vthread": the loop is unrolled instead."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError('thread_axis needs a tag, as "threadIdx.x"')
    return IterVar(dom, Var(name or tag, "int32"), IterVar.ThreadIndex, tag)


def _op(x):
    if not isinstance(x, (Tensor, Operation)):
        raise TypeError(f"a stage is found by a tensor or its operation, not by {type(x).__name__}")
    return x.op if isinstance(x, Tensor) else x


def _list(x):
    return [x] if isinstance(x, (Tensor, Operation)) else list(x)


def create_schedule(ops):
    """A schedule of operations and their producers, each in its own loops, in the order of its axes."""
    return _ffi_api.CreateSchedule([_op(o) for o in _list(ops)], [])


class Schedule(Object, key="te.Schedule"):
    """How operations are computed; `schedule[tensor]` is the stage of a tensor. Made by `create_schedule`."""

    __slots__ = ()

    def __getitem__(self, tensor):
        return _ffi_api.ScheduleGet(self, _op(tensor))

    def __contains__(self, tensor):
        return _ffi_api.ScheduleFind(self, _op(tensor)) is not None

    def __repr__(self):
        return "\n".join(str(_ffi_api.StageText(stage)) for stage in self.stages)

    __str__ = __repr__

    def as_text(self):
        """Its steps as text, a line each: `replay` does the same to another schedule of the same operations."""
        return "".join(f"{step}\n" for step in self.trace.steps)

    def replay(self, text, intrins=()):
        """Does the steps of a text, as `as_text` gives it and people edit it; `//` begins a comment. `intrins`: those that its `tensorize` names.

        te.create_schedule(C.op).replay("split C i factor 32\\nparallel C i.outer")
        """
        _ffi_api.ScheduleReplay(self, text, {i.name: i for i in intrins})
        return self

    def normalize(self):
        """The schedule itself: loops begin at 0 in any case."""
        return self

    def cache_write(self, tensor, scope="global"):
        """Computes a tensor in a separate buffer first, and copies it; gives the tensor of that buffer. Several outputs of one operation
        are given together, as a list."""
        several = not isinstance(tensor, Tensor)
        made = _ffi_api.ScheduleCacheWrite(self, _list(tensor), scope or "")
        return list(made) if several else made[0]

    def cache_read(self, tensor, scope, readers):
        """Copies a tensor to a separate buffer, from which `readers` (operations or tensors) read; gives the tensor of that buffer."""
        return _ffi_api.ScheduleCacheRead(self, tensor, scope or "", [_op(r) for r in _list(readers)])

    def rfactor(self, tensor, axis, factor_axis=0):
        """Splits a reduction: one tensor has a part of it for each index of `axis`, one of the loops that the reduction became, and `tensor`
        reduces these. Gives the first tensor, a list of them for a reduction of tuples; its dimension `factor_axis` is that of the parts."""
        made = _ffi_api.ScheduleRfactor(self, _list(tensor)[0], axis, factor_axis)
        return made[0] if len(made) == 1 else list(made)

    def create_group(self, outputs, inputs, include_inputs=False):
        """The stages between tensors, those of the inputs too if asked for, as a Group, which can be put into a loop."""
        return _ffi_api.ScheduleGroup(self, [_op(x) for x in _list(outputs)], [_op(x) for x in _list(inputs)], bool(include_inputs))


class Group(Object, key="te.Group"):
    """Stages that are put into a loop together; made by `Schedule.create_group`."""

    __slots__ = ()

    def compute_at(self, parent, scope):
        """Computes the stages within the loop `scope` of the stage `parent`."""
        for stage in self.stages:
            stage.compute_at(parent, scope)

    def compute_root(self):
        """Computes all of each stage, before its readers."""
        for stage in self.stages:
            stage.compute_root()


class Stage(Object, key="te.Stage"):
    """One operation of a schedule: its loops, from the outside in, and where it is computed."""

    __slots__ = ()

    def __repr__(self):
        return f"stage({self.op.name})"

    __str__ = __repr__

    def _loop(self, iv):
        if not isinstance(iv, IterVar):
            raise TypeError(f"a loop of `{self.op.name}` is an IterVar, not {type(iv).__name__}")
        return iv

    def _place(self, iv):
        """Where a loop is among its loops."""
        return _ffi_api.StagePlace(self, self._loop(iv))

    def split(self, parent, factor=None, nparts=None):
        """Splits a loop, the inner one of `factor` iterations, or the outer one of `nparts`: (outer, inner)."""
        outer, inner = _ffi_api.StageSplit(self, self._loop(parent), *(None if n is None else op.convert(n) for n in (factor, nparts)))
        return outer, inner

    def fuse(self, *args):
        """Fuses adjacent loops into one."""
        args = list(args[0]) if len(args) == 1 and not isinstance(args[0], IterVar) else args
        return _ffi_api.StageFuse(self, [self._loop(iv) for iv in args])

    def reorder(self, *args):
        """Reorders these loops among the places that they have."""
        _ffi_api.StageReorder(self, [self._loop(iv) for iv in args])

    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Splits two loops and puts the inner ones inside: (x outer, y outer, x inner, y inner)."""
        xo, xi = self.split(x_parent, x_factor)
        yo, yi = self.split(y_parent, y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def vectorize(self, var):
        """Vectorizes a loop of known extent."""
        _ffi_api.StageMark(self, self._loop(var), IterVar.Vectorized)

    def unroll(self, var):
        """Unrolls a loop of known extent."""
        _ffi_api.StageMark(self, self._loop(var), IterVar.Unrolled)

    def parallel(self, var):
        """Runs the iterations of a loop on several threads."""
        _ffi_api.StageMark(self, self._loop(var), IterVar.Parallelized)

    def bind(self, ivar, thread_ivar):
        """Runs the iterations of a loop on threads of a device, by an axis that `te.thread_axis` made."""
        if not isinstance(thread_ivar, IterVar):
            raise TypeError(f"bind of `{self.op.name}` takes an axis of threads, as te.thread_axis makes it, not {type(thread_ivar).__name__}")
        _ffi_api.StageBind(self, self._loop(ivar), thread_ivar, thread_ivar.thread_tag)

    def compute_at(self, parent, scope):
        """Computes within the loop `scope` of the stage `parent` what each iteration needs."""
        if not isinstance(parent, Stage):
            raise TypeError("compute_at takes a stage, as s[C], and one of its loops")
        _ffi_api.StageComputeAt(self, parent, parent._loop(scope))

    def compute_inline(self):
        """Computes elements where they are read, instead of storing them."""
        _ffi_api.StageComputeInline(self)

    def compute_root(self):
        """Computes all of it, before its readers."""
        _ffi_api.StageComputeRoot(self)

    def set_scope(self, scope):
        """The memory that the tensor is kept in: "global", "local" for the stack or a thread's registers, "shared" for memory of a block of threads."""
        _ffi_api.StageSetScope(self, scope or "")

    def pragma(self, var, pragma_type, pragma_value=None):
        """A hint to passes, kept as an annotation of the loop: `pragma_` and its name."""
        value = StringImm(pragma_value) if isinstance(pragma_value, str) else op.convert(1 if pragma_value is None else pragma_value)
        _ffi_api.StagePragma(self, self._loop(var), StringImm(pragma_type), value)

    def prefetch(self, tensor, var, offset):
        """Noted without effect: processors prefetch by themselves."""
        _ffi_api.StagePrefetch(self, tensor, self._loop(var), op.convert(offset))

    def storage_align(self, axis, factor, offset):
        """Noted without effect: buffers are dense and aligned for vectors."""
        _ffi_api.StageStorageAlign(self, self._loop(axis), factor, offset)

    def double_buffer(self):
        """Noted without effect: on a CPU one buffer is as fast."""
        _ffi_api.StageDoubleBuffer(self)

    def _no(self, what, instead):
        raise UnsupportedError(f"{what} of `{self.op.name}`: {instead}")

    def tensorize(self, var, tensor_intrin):
        """Puts the statement of an intrinsic, which `te.decl_tensor_intrin` made, in the place of a loop and those within it; they compute the
        same, which is checked when loops are made."""
        if not isinstance(tensor_intrin, Object) or tensor_intrin.type_key != "te.TensorIntrin":
            raise TypeError(f"tensorize of `{self.op.name}` takes what te.decl_tensor_intrin gave, not {type(tensor_intrin).__name__}")
        _ffi_api.StageTensorize(self, self._loop(var), tensor_intrin)

    def set_store_predicate(self, predicate):
        """Stores results where a condition, on axes of threads for instance, holds."""
        _ffi_api.StageStorePredicate(self, op.convert(predicate))

    def env_threads(self, threads):
        """Runs all of it in a kernel with these axes of threads, as `te.thread_axis((0, 4), "blockIdx.x")`."""
        _ffi_api.StageEnvThreads(self, [threads] if isinstance(threads, IterVar) else list(threads))

    def rolling_buffer(self):
        """Not supported: buffers hold what an iteration needs."""
        self._no("rolling_buffer", "use compute_at, which keeps what a round needs")
