# SPDX-License-Identifier: Apache-2.0
"""Padding of windows, as attributes of operators have it. By name as of operators."""


def _both_ends(padding, rank):
    given = [int(p) for p in padding] if hasattr(padding, "__len__") else [int(padding)]
    if len(given) == 1:
        given = given * rank
    if len(given) == rank:
        return (*given, *given)
    if len(given) == 2 * rank:
        return tuple(given)
    raise ValueError(f"padding has {len(given)} numbers; it has 1, {rank} or {2 * rank}")


def get_pad_tuple1d(padding):
    """(left, right) of a number, or both."""
    return _both_ends(padding, 1)


def get_pad_tuple2d(padding):
    """(top, left, bottom, right) of a number, (height, width), or all four."""
    return _both_ends(padding, 2)


def get_pad_tuple3d(padding):
    """(front, top, left, back, bottom, right) of a number, three, or all six."""
    return _both_ends(padding, 3)


PADS = {"nn." + f.__name__: f for f in (get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d)}

__all__ = ["PADS"]
