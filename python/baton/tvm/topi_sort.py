# SPDX-License-Identifier: Apache-2.0
"""Sorting by keys and sums of all elements in front, under the names that they had for GPUs."""

from ..error import UnsupportedError
from ..te import add, multiply
from . import topi
from .topi.functions import apply, find_operator


def sort_by_key(keys, values, for_scatter=False):
    """(keys in order, their values): along the only dimension, the smallest first; of equal keys the first one first. for_scatter: keys of any rank
    count as one dimension, and the results have it alone."""
    if for_scatter:
        keys, values = (topi.reshape(x, (-1,)) for x in (keys, values))
    if len(keys.shape) != 1 or len(values.shape) != 1:
        raise ValueError(f"sort_by_key takes tensors of one dimension, not of {len(keys.shape)} and {len(values.shape)}")

    def both(keys, values):
        from .. import relay

        order = relay.argsort(keys, axis=0, dtype="int32")
        return relay.Tuple([relay.take(keys, order, axis=0), relay.take(values, order, axis=0)])

    return apply(both, keys, values)


def _scan(data, axis, binop, output_dtype, exclusive):
    operators = {add: "cumsum", multiply: "cumprod"}
    name = operators.get(binop) or {"add": "cumsum", "mul": "cumprod", "multiply": "cumprod"}.get(getattr(binop, "__name__", ""))
    if name is None:
        raise UnsupportedError("scans add or multiply (binop=tir.generic.add); te.scan takes any function")
    return apply(find_operator(name), data, axis, output_dtype, exclusive)


def exclusive_scan(data, axis=-1, binop=add, identity_value=0, output_dtype=None, return_reduction=False, **_):
    """The sum of the elements in front of each one along an axis; with return_reduction the sum of all of them too."""
    made = _scan(data, axis, binop, output_dtype, True)
    if not return_reduction:
        return made
    whole = _scan(data, axis, binop, output_dtype, False)
    return made, topi.take(whole, topi.full((), "int32", int(data.shape[axis]) - 1), axis % len(data.shape))


def inclusive_scan(data, axis=-1, binop=add, identity_value=0, output_dtype=None, **_):
    """The sum of the elements up to each one along an axis."""
    return _scan(data, axis, binop, output_dtype, False)


def scan_thrust(data, output_dtype, exclusive=True, return_reduction=False, binop=add):
    """The sum of the elements in front of each one along the last axis; without `exclusive` with its own."""
    if exclusive:
        return exclusive_scan(data, binop=binop, output_dtype=output_dtype, return_reduction=return_reduction)
    return inclusive_scan(data, binop=binop, output_dtype=output_dtype)


__all__ = ["exclusive_scan", "inclusive_scan", "scan_thrust", "sort_by_key"]
