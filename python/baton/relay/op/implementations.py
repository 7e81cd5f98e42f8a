# SPDX-License-Identifier: Apache-2.0
"""Strategies: which of several computations an operator of a program has on a target."""

from ... import error as errors
from ..._ffi import get_global_func
from ...arith import Analyzer
from ...ir import TensorType, register_op_attr
from ...target import Target
from ...te import specialized
from ..expr import Call, Tuple, Var
from ..function import Function
from .op import of_program, register_compute


class OpImplementation:
    """A computation of an operator: `compute(attrs, inputs, out_type)` gives its tensors. `schedule(attrs, outs, target)` is kept for who asks;
    the compiler schedules kernels itself."""

    def __init__(self, compute, schedule=None, name="default", plevel=10):
        self._compute, self._schedule, self.name, self.plevel = compute, schedule, name, plevel

    def compute(self, attrs, inputs, out_type):
        """The tensors of the result."""
        return self._compute(attrs, inputs, out_type)

    def schedule(self, attrs, outs, target):
        """The schedule that the program gave for the tensors."""
        with target:
            return self._schedule(attrs, outs, target)

    def __repr__(self):
        return f"OpImplementation({self.name!r}, plevel={self.plevel})"


class OpSpecialization:
    """Implementations under one condition (`te.SpecializedCondition`, or None)."""

    def __init__(self, condition):
        self.condition, self.implementations = condition, []

    def add_implementation(self, compute, schedule, name="default", plevel=10):
        """Adds an implementation."""
        self.implementations.append(OpImplementation(compute, schedule, name, plevel))

    def holds(self):
        """Whether the condition is known to hold."""
        return self.condition is None or all(Analyzer().can_prove(c) if not isinstance(c, bool) else c for c in self.condition.clauses)


class OpStrategy:
    """Implementations to choose from: of those whose condition holds the one of the highest `plevel` is taken."""

    def __init__(self):
        self.specializations = []

    def add_implementation(self, compute, schedule, name="default", plevel=10):
        """Adds an implementation, under the `te.SpecializedCondition` of the `with` around it."""
        condition = specialized.SpecializedCondition.current()
        found = next((s for s in self.specializations if s.condition is condition), None)
        if found is None:
            found = OpSpecialization(condition)
            self.specializations.append(found)
        found.add_implementation(compute, schedule, name, plevel)


def _asked(strategy, attrs, inputs, out_type, target):
    with target:
        return strategy(attrs, inputs, out_type, target)


def _built_in(op):
    """The one computation that a built-in operator has."""

    def compute(attrs, inputs, out_type):
        params = [Var(t.op.name, TensorType(t.shape, t.dtype)) for t in inputs]
        operands = [Tuple(params)] if op.num_inputs == 1 < len(params) else params
        return list(get_global_func("relay.OnTensors")(Function(params, Call(op, operands, attrs)), inputs))

    return compute


_strategies = {}  # name of an operator -> (level, strategy)


def valid_implementations(op, attrs, inputs, out_type, target):
    """Implementations of a call that an operator's strategy gives for a target."""
    _, strategy = _strategies.get(op.name, (0, None))
    if strategy is None:
        return [OpImplementation(_built_in(op), naive_schedule, f"{op.name}.generic")]
    made = _asked(strategy, attrs, inputs, out_type, target)
    return [i for s in made.specializations if s.holds() for i in s.implementations]


def register_strategy(op_name, fstrategy=None, level=10):
    """Says by a strategy what an operator computes, that `relay.op.op.register` made: `fstrategy(attrs, inputs, out_type, target)` gives an
    `OpStrategy`; it may be a `target.generic_func`. Schedules in it are not used: the compiler schedules kernels itself. Built-in operators
    keep their computation.

        def strategy(attrs, inputs, out_type, target):
            made = relay.op.OpStrategy()
            made.add_implementation(compute, relay.op.strategy.wrap_topi_schedule(topi.generic.schedule_injective))
            return made

        relay.op.register_strategy("my.twice", strategy)
    """

    op = of_program("register_strategy", op_name)

    def attach(strategy):
        known = _strategies.get(op_name)
        if known is not None:
            if level <= known[0]:
                raise errors.ValueError(f"`{op_name}` has a strategy of level {known[0]}; another one needs a higher level, got {level}")
            _strategies[op_name] = (level, strategy)
            return strategy

        def compute(attrs, inputs, out_type):
            target = Target.current(allow_none=True) or Target("llvm")
            found = valid_implementations(op, attrs, inputs, out_type, target)
            if not found:
                raise errors.UnsupportedError(f"the strategy of `{op_name}` has no implementation for this call on `{target}`")
            return max(found, key=lambda i: i.plevel).compute(attrs, inputs, out_type)

        register_compute(op_name, compute)
        register_op_attr(op_name, "FTVMStrategy", strategy, level)
        _strategies[op_name] = (level, strategy)
        return strategy

    return attach if fstrategy is None else attach(fstrategy)


def wrap_topi_compute(topi_compute):
    """A function of tensors as a `compute` of a strategy, for operators whose attributes it does not need."""

    def compute(attrs, inputs, out_type):
        made = topi_compute(*inputs)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    return compute


def wrap_topi_schedule(topi_schedule):
    """A schedule of tensors as a `schedule` of a strategy."""

    def schedule(attrs, outs, target):
        with target:
            return topi_schedule(outs)

    return schedule


def naive_schedule(attrs, outs, target):
    """The plain schedule."""
    from ...te import create_schedule

    return create_schedule([t.op for t in outs])
