# SPDX-License-Identifier: Apache-2.0
"""Sorting of whole arrays, which programs call by name from tensor expressions, as `tir.call_packed("tvm.contrib.sort.argsort", ...)`. They run in
this process, on NumPy's arrays. Those of `contrib.random` are there once that is imported."""

from .._ffi import register_func


def _order(data, axis, ascending):
    """Indices along an axis in the order of the elements; of equal ones the first one first."""
    import numpy as np

    data = data.numpy()
    if ascending:
        return np.argsort(data, axis=axis, kind="stable")
    # From the last element on, so that equal ones stay in order.
    return np.flip(data.shape[axis] - 1 - np.argsort(np.flip(data, axis), axis=axis, kind="stable"), axis)


def _put(out, values):
    out.copyfrom(values.astype(str(out.dtype)))


@register_func("tvm.contrib.sort.argsort", override=True)
def _argsort(data, out, axis, ascending):
    _put(out, _order(data, int(axis), bool(ascending)))


@register_func("tvm.contrib.sort.sort", override=True)
def _sort(data, out, axis, ascending):
    import numpy as np

    _put(out, np.take_along_axis(data.numpy(), _order(data, int(axis), bool(ascending)), int(axis)))


@register_func("tvm.contrib.sort.argsort_nms", override=True)
def _argsort_nms(data, count, out, axis, ascending):
    """The order of the first `count` elements along an axis; what is behind them stays in its place."""
    import numpy as np

    axis, values = int(axis), np.moveaxis(data.numpy(), int(axis), -1)
    made = np.broadcast_to(np.arange(values.shape[-1]), values.shape).copy()
    for place in np.ndindex(values.shape[:-1]):
        n = int(count.numpy()[place])
        row = values[place][:n]
        made[place][:n] = np.argsort(row, kind="stable") if ascending else n - 1 - np.argsort(row[::-1], kind="stable")[::-1]
    _put(out, np.moveaxis(made, -1, axis))


@register_func("tvm.contrib.sort.topk", override=True)
def _topk(data, *rest):
    """(data, values, indices, k, axis, "both", ascending); with "values" or "indices" of those alone."""
    import numpy as np

    *outs, k, axis, kind, ascending = rest
    order = _order(data, int(axis), bool(ascending))
    if int(k) > 0:
        order = np.take(order, np.arange(int(k)), int(axis))
    values = np.take_along_axis(data.numpy(), order, int(axis))
    for out, found in zip(outs, {"both": (values, order), "values": (values,), "indices": (order,)}[str(kind)], strict=True):
        _put(out, found)
