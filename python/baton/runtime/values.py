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


def fitted(value, dtype, name="", index=None):
    """A value for a tensor of a dtype. Floats become floats of any width; whole numbers and bools become any dtype that holds each of
    them, so int64 may come for uint8, and float64 for int64. An element that `dtype` does not hold is a ValueError with its place, which
    names the input `name`, number `index`. A value of a dtype that NumPy has not is given back as it is.

        fitted(np.array([1, 2]), "uint8")  # uint8
        fitted(np.array([1.0, 2.5]), "int64")  # ValueError: 2.5 at [1] is not an int64
    """
    import numpy as np

    have = getattr(value, "dtype", None)
    if not dtype or have is None or str(have) == str(dtype):
        return value
    try:
        want, have = numpy_dtype(str(dtype)), numpy_dtype(str(have))
    except (TypeError, ValueError, AttributeError, ImportError):  # a dtype that NumPy lacks
        return value
    given = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
    if want.kind in "biu" and have.kind in "biuf":
        with np.errstate(invalid="ignore"):
            made = given.astype(want)
        kept = (made.astype(have) == given) & ((made < 0) == (given < 0))
        if not kept.all():
            at = tuple(int(i) for i in np.argwhere(~np.asarray(kept))[0])
            what = f"input {f'{index} ' if index is not None else ''}`{name}`: " if name else ""
            place = f" at {list(at)}" if at else ""
            raise ValueError(f"{what}expected {dtype}, got {have} with {given[at]}{place}, which {dtype} does not hold")
    elif np.can_cast(have, want, "same_kind"):
        made = given.astype(want)
    else:
        return value
    return array(made, value.device) if isinstance(value, NDArray) else array(made)


__all__ = ["constant_array", "fitted", "to_value"]
