# SPDX-License-Identifier: Apache-2.0
"""Values of Python as arrays: what constants of programs hold, and what executors take."""

import numbers

from .data_type import numpy_dtype
from .ndarray import NDArray, array


def constant_array(value, dtype=None):
    """An array of a number, nested lists or an array. Python's numbers are int32, float32 and bool unless `dtype` says otherwise; arrays
    keep their own."""
    import numpy as np

    if isinstance(value, NDArray) and dtype is None:
        return value
    plain = isinstance(value, (bool, int, float, list, tuple)) and not isinstance(value, np.generic)
    made = np.asarray(value)
    if made.dtype.kind in "OUSV" and made.dtype.name not in ("bfloat16",):
        raise ValueError(f"a constant is a number, nested lists of them or an array, not {value!r}")
    if dtype is None and plain:
        dtype = {"int64": "int32", "float64": "float32"}.get(made.dtype.name)
    if dtype is not None:
        want = numpy_dtype(dtype)
        if plain and want.kind in "iu" and made.dtype.kind in "iu" and made.size:
            info = np.iinfo(want)
            if made.min() < info.min or made.max() > info.max:
                raise OverflowError(f"{value} does not fit {dtype}")
        made = made.astype(want)
    return array(made)


def to_value(arg):
    """An argument as a value of Relay: an array, or for a list or tuple an array of values."""
    if isinstance(arg, (list, tuple)) and any(isinstance(a, (NDArray, list, tuple)) or hasattr(a, "__dlpack__") for a in arg):
        return [to_value(a) for a in arg]
    if isinstance(arg, NDArray):
        return arg
    if isinstance(arg, (numbers.Number, list, tuple)) or hasattr(arg, "__dlpack__") or hasattr(arg, "__array__"):
        return constant_array(arg)
    return arg


def fitted(value, dtype):
    """A value for a tensor of a dtype: converted where NumPy converts so ("same_kind": floats to floats and integers to either, of any
    width), else as it is."""
    import numpy as np

    have = getattr(value, "dtype", None)
    if not dtype or have is None or str(have) == str(dtype):
        return value
    try:
        want = numpy_dtype(str(dtype))
        if not np.can_cast(numpy_dtype(str(have)), want, "same_kind"):
            return value
    except (TypeError, ValueError):  # a dtype that NumPy has not
        return value
    made = (value.numpy() if isinstance(value, NDArray) else np.asarray(value)).astype(want)
    return array(made, value.device) if isinstance(value, NDArray) else array(made)


__all__ = ["constant_array", "fitted", "to_value"]
