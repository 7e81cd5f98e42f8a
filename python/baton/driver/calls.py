# SPDX-License-Identifier: Apache-2.0
"""Arguments of a call beside the inputs of the model that is called: numbers as tensors, and errors that name the input. Needs the runtime
library alone."""

from __future__ import annotations

from .donation import Given


def _kinds(value) -> tuple[str, ...]:
    """Beginnings of the names of dtypes that the number `value` may become; none for anything but a number."""
    if getattr(value, "shape", None) == () and type(value).__module__ == "numpy":
        return () if hasattr(value, "__dlpack__") else (str(value.dtype),)
    for kind, kinds in ((bool, ("bool", "int", "uint", "float")), (int, ("int", "uint", "float")), (float, ("float",))):
        if isinstance(value, kind):
            return kinds
    return ()


def _number(value, dtype: str):
    """A tensor of rank 0; None for a number that the dtype does not hold."""
    import numpy as np

    try:
        return np.array(value, dtype)
    except (OverflowError, TypeError):
        return None


def as_tensors(inputs, given) -> list | None:
    """Arguments with the numbers among them as tensors of their inputs' dtypes; None where there are none, or one does not fit."""
    if not any(_kinds(value) for value in given):
        return None
    made = list(given)
    for i, (info, value) in enumerate(zip(inputs, given, strict=True)):
        if not (kinds := _kinds(value)):
            continue
        number = getattr(value, "dtype", None)
        if info.shape != () or not info.dtype.startswith(kinds) or (number is not None and number != info.dtype):
            return None
        made[i] = _number(value, info.dtype)
    return None if any(value is None for value in made) else made


def shape_of(value) -> tuple[int, ...]:
    """The shape of an array of any library, or of nested lists."""
    shape = getattr(value, "shape", None)
    if shape is None:
        import numpy as np

        return np.shape(value)
    return tuple(shape)


def explain_misfit(inputs, forms, arrays, error) -> None:
    """Raises a better error where an argument does not fit what the model takes."""
    for i, (info, value) in enumerate(zip(inputs, arrays, strict=True)):
        if forms is not None and not forms.tensor(i):
            continue
        if isinstance(value, Given):
            raise TypeError(f"input `{info.name}` gives its memory to no output: compile the model with donate=({info.name!r},)") from error
        dtype, shape = getattr(value, "dtype", None), shape_of(value)
        name = str(dtype).removeprefix("torch.")
        if dtype is not None and name != info.dtype and info.dtype != "string":
            raise TypeError(f"input `{info.name}` is {info.dtype}, {name} was given") from error
        why = _misfit(info.shape, shape)
        if why:
            raise ValueError(f"input `{info.name}` has shape {_shape_text(info.shape)}, {shape} was given: {why}") from error


def _misfit(want, shape) -> str:
    """Returns the fault of a shape; "" where it may fit."""
    if len(want) != len(shape):
        return f"{len(want)} dimensions are wanted, not {len(shape)}"
    wrong = [i for i, (d, n) in enumerate(zip(want, shape, strict=True)) if isinstance(d, int) and d != n]
    return f"dimension {wrong[0]} is {want[wrong[0]]}, not {shape[wrong[0]]}" if wrong else ""


def _shape_text(shape) -> str:
    """(1, seq)"""
    dims = ", ".join("?" if d is None else str(d) for d in shape)
    return f"({dims},)" if len(shape) == 1 else f"({dims})"
