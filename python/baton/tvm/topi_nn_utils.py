# SPDX-License-Identifier: Apache-2.0
"""Padding of windows."""

from ..tir import IntImm


def get_pad_tuple(padding, kernel):
    """(top, left, bottom, right) of padding: a number, (height, width), all four, "VALID" for none or "SAME" for half the window."""
    if isinstance(padding, (int, IntImm)):
        height, width = 2 * int(padding), 2 * int(padding)
    elif isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ValueError(f"padding is {padding!r}; it is numbers, \"VALID\" or \"SAME\"")
        height, width = (0, 0) if padding == "VALID" else (int(kernel[0]) - 1, int(kernel[1]) - 1)
    elif len(padding) == 4:
        return tuple(padding)
    elif len(padding) == 2:
        height, width = 2 * padding[0], 2 * padding[1]
    else:
        raise ValueError(f"padding has {len(padding)} numbers; it has 1, 2 or 4")
    top, left = (height + 1) // 2, (width + 1) // 2
    return top, left, height - top, width - left


def get_pad_tuple1d(padding, kernel):
    """(left, right) of padding: a number, both, "VALID" or "SAME"."""
    if isinstance(padding, (tuple, list)) and len(padding) == 2:
        return tuple(padding)
    size = (kernel[0] if isinstance(kernel, (tuple, list)) else kernel) - 1 if padding == "SAME" else 0
    width = size if isinstance(padding, str) else 2 * (padding[0] if isinstance(padding, (tuple, list)) else padding)
    left = (width + 1) // 2
    return left, width - left


def get_pad_tuple3d(padding, kernel):
    """(front, top, left, back, bottom, right) of padding: a number, three, all six, "VALID" or "SAME"."""
    if isinstance(padding, (tuple, list)) and len(padding) == 6:
        return tuple(padding)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ValueError(f"padding is {padding!r}; it is numbers, \"VALID\" or \"SAME\"")
        whole = [0 if padding == "VALID" else int(k) - 1 for k in kernel]
    else:
        whole = [2 * p for p in (padding if isinstance(padding, (tuple, list)) else [padding] * 3)]
    if len(whole) != 3:
        raise ValueError(f"padding has {len(whole)} numbers; it has 1, 3 or 6")
    before = [(w + 1) // 2 for w in whole]
    return (*before, *(w - b for w, b in zip(whole, before, strict=True)))


def infer_pad(data, data_pad):
    """(height, width) of the padding that made one tensor of another; (0, 0) for none."""
    if data_pad is None:
        return 0, 0
    return (int(data_pad.shape[2]) - int(data.shape[2])) // 2, (int(data_pad.shape[3]) - int(data.shape[3])) // 2


def infer_stride(data, kernel, out):
    """(height, width) of the steps of a convolution in NCHW, from its shapes."""
    return tuple((int(data.shape[i]) - int(kernel.shape[i])) // max(int(out.shape[i]) - 1, 1) for i in (2, 3))


__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d", "infer_pad", "infer_stride"]
