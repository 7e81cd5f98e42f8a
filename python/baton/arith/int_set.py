# SPDX-License-Identifier: Apache-2.0
"""Sets of integers with symbolic ends."""

from .._core import Object
from .._ffi import get_global_func
from ..tir import IntImm, op


class IntSet(Object, key="arith.IntSet"):
    """A set of integers."""

    __slots__ = ()

    @staticmethod
    def vector(vec):
        """The set of an expression's values: of each lane of a vector, `Ramp(base, stride, lanes)`."""
        from ..tir import Ramp

        if isinstance(vec, Ramp):
            last = vec.base + vec.stride * (vec.lanes - 1)
            get = get_global_func("arith.EvalSet")
            return (
                get(op.min(vec.base, last), {})
                if vec.lanes == 1
                else IntervalSet(get(op.min(vec.base, last), {}).min_value, get(op.max(vec.base, last), {}).max_value)
            )
        return get_global_func("arith.EvalSet")(op.convert(vec), {})

    @staticmethod
    def single_point(point):
        """The set of one value."""
        return IntervalSet(point, point)

    def __str__(self):
        return f"IntervalSet[{self.min_value}, {self.max_value}]"

    __repr__ = __str__

    def is_nothing(self):
        """Whether it is known to be empty."""
        return self.min_value.same_as(pos_inf()) and self.max_value.same_as(neg_inf())

    def is_everything(self):
        """Whether nothing is known of its values."""
        return self.min_value.same_as(neg_inf()) and self.max_value.same_as(pos_inf())


class IntervalSet(IntSet, key="arith.IntervalSet"):
    """The integers from `min_value` to `max_value`, both included, which are expressions; `neg_inf()` and `pos_inf()` stand for no end.

    x = tvm.te.var("x")
    tvm.arith.Analyzer().int_set(x * 2 + 1, {x: tvm.arith.IntervalSet(0, 9)})    # 1 to 19
    """

    __slots__ = ()

    def __init__(self, min_value, max_value):
        super().__init__(min_value=op.convert(min_value), max_value=op.convert(max_value))


def of_int64(sets):
    """Sets by variables of int64, with numbers as ends in int64."""

    def end(e):
        return IntImm("int64", e.value) if isinstance(e, IntImm) else e

    return {v: IntervalSet(end(s.min_value), end(s.max_value)) for v, s in dict(sets or {}).items()}


def pos_inf():
    """The end of an interval without a largest value."""
    return get_global_func("arith.PosInf")()


def neg_inf():
    """The end of an interval without a least value."""
    return get_global_func("arith.NegInf")()


def union_lower_bound(sets):
    """An interval within the union of intervals: those that neither overlap nor follow the ones before are left out."""
    from .widening import in_int64

    return in_int64(get_global_func("arith.UnionLowerBound"))(list(sets))


__all__ = ["IntSet", "IntervalSet", "neg_inf", "pos_inf", "union_lower_bound"]
