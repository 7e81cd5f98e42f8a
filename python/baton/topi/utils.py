# SPDX-License-Identifier: Apache-2.0
"""Shapes as numbers of Python."""


def get_const_int(expr):
    """The value of a TIR literal, or of a number. Raises ValueError for other expressions."""
    if isinstance(expr, int):
        return expr
    value = getattr(expr, "value", None)
    if not isinstance(value, int):
        raise ValueError(f"`{expr}` is not a number that is known here")
    return int(value)


def get_const_float(expr):
    """The value of a TIR literal, or of a number, as a float."""
    value = expr if isinstance(expr, (int, float)) else getattr(expr, "value", None)
    if not isinstance(value, (int, float)):
        raise ValueError(f"`{expr}` is not a number that is known here")
    return float(value)


def get_const_tuple(in_tuple):
    """A shape as a tuple: literals as ints, variables and unknown sizes as they are."""
    return tuple(int(x.value) if isinstance(getattr(x, "value", None), int) else x for x in in_tuple)


def prod(x):
    """The product of numbers or expressions; 1 of none."""
    product = 1
    for factor in x:
        product = product * factor
    return product
