# SPDX-License-Identifier: Apache-2.0
"""Shapes as numbers of Python."""


class InvalidShapeError(ValueError):
    """A shape that an operator or a schedule does not take."""


def is_target(names):
    """Whether the current target is of a kind, or of one of several."""
    from ...target import Target

    return str(Target.current(allow_none=False).kind) in ([names] if isinstance(names, str) else list(names))


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


def equal_const_int(expr, value):
    """Whether an expression is a literal of this value."""
    found = expr if isinstance(expr, int) else getattr(expr, "value", None)
    return isinstance(found, int) and int(found) == value


def is_empty_shape(shape):
    """Whether a tensor of this shape has no elements, as far as that is known."""
    return any(equal_const_int(x, 0) for x in shape)


def get_shape(src_shape, src_layout, dst_layout):
    """A shape in another order of the same dimensions: NCHW to NHWC."""
    src, dst = str(getattr(src_layout, "name", src_layout)), str(getattr(dst_layout, "name", dst_layout))
    if sorted(src) != sorted(dst):
        raise ValueError(f"{src} and {dst} have different dimensions")
    return get_const_tuple([src_shape[src.index(x)] for x in dst])


def get_max_power2_factor(n, max_value=None):
    """The largest power of two that divides a number, and is below `max_value` if that is given."""
    factor = 1
    while n % 2 == 0 and (max_value is None or factor * 2 < max_value):
        factor, n = factor * 2, n // 2
    return factor


def simplify(expr):
    """An equal expression that is simpler; numbers stay."""
    from ...arith import Analyzer

    return Analyzer().simplify(expr) if hasattr(expr, "dtype") else expr


def ravel_index(indices, shape):
    """The place in memory of an element by its indices."""
    place = 0
    for index, extent in zip(indices, shape, strict=True):
        place = place * extent + index
    return place


def unravel_index(idx, shape):
    """The indices of an element by its place in memory."""
    indices = []
    for i in range(len(shape) - 1, -1, -1):
        indices.append(idx % shape[i] if i else idx)
        idx = idx // shape[i]
    return indices[::-1]


def const_matrix(matrix, name="const_matrix"):
    """A tensor of expressions that has the elements of an array of two dimensions."""
    from ... import te
    from ...tir import Select, const

    rows, columns = matrix.shape
    dtype = str(matrix.dtype)

    def chosen(index, values, value):  # each of `values` is once in the result
        for at, found in enumerate(values):
            here = index == at
            value = Select(here.asobject() if hasattr(here, "asobject") else here, found, value)
        return value

    zero = const(0.0 if dtype.startswith("float") else 0, dtype)

    def element(i, j):
        return chosen(i, [chosen(j, [const(x.item(), dtype) for x in row], zero) for row in matrix], zero)

    return te.compute((rows, columns), element, name=name)


def const_vector(vector, name="const_vector"):
    """A tensor of expressions that has the elements of an array of one dimension."""
    from ... import te
    from ...tir import Select, const

    dtype = str(vector.dtype)

    def element(i):
        value = const(0.0 if dtype.startswith("float") else 0, dtype)
        for at in range(len(vector)):
            here = i == at
            value = Select(here.asobject() if hasattr(here, "asobject") else here, const(vector[at].item(), dtype), value)
        return value

    return te.compute((len(vector),), element, name=name)


def traverse_inline(s, final_op, callback):
    """Inlines computations that map indices only, from the last one to the inputs, and calls `callback(op)` of each."""
    from . import tag

    visited, work = set(), [final_op]
    while work:
        op = work.pop()
        if op.handle in visited:
            continue
        visited.add(op.handle)
        if tag.is_injective(op.tag):
            if not op.same_as(final_op) and all(not op.same_as(o) for o in s.outputs):
                s[op].compute_inline()
            work.extend(t.op for t in op.input_tensors if len(t.op.input_tensors) > 0)
        callback(op)


def get_float_tuple(in_tuple):
    """Numbers and literals as a tuple of floats."""
    return tuple(get_const_float(x) for x in in_tuple)


def is_dynamic_shape(shape):
    """Whether an extent is not known: a variable, or `tir.Any`."""
    return any(not isinstance(x, int) and not isinstance(getattr(x, "value", None), int) for x in shape)


def ceil_div(a, b):
    """The quotient rounded up."""
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + b - 1) // b


def swap(arr, axis):
    """The places of dimensions with `axis` and the last one exchanged."""
    order = list(range(len(arr)))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def nchw_pack_layout(layout_info):
    """Whether a layout is NCHW with blocks of images and channels, as NCHW1n16c."""
    return str(layout_info)[:4] == "NCHW" and "c" in str(layout_info) and "n" in str(layout_info)


def nchw_xc_layout(layout_info):
    """Whether a layout is NCHW with blocks of channels, as NCHW16c."""
    text = str(layout_info)
    return text[:4] == "NCHW" and "c" in text and text[4:-1].isnumeric()


def within_index(b, e, s, i):
    """Whether `i` is one of the indices from `b` up to `e` (not included) in steps of `s`."""
    from ... import tir

    forward = tir.all(i >= b, i < e)
    backward = tir.all(i <= b, i > e)
    return tir.all(tir.Select(tir.op.convert(s) > 0, forward, backward), tir.floormod(i - b, tir.op.convert(s)) == 0)


def make_idx(b, e, s, z, i):
    """Which index of a slice `b:e:s` of `z` elements `i` is; that of the nearest element for one outside of it."""
    from ... import tir

    lower, upper = tir.min(tir.op.convert(b), tir.op.convert(e)), tir.max(tir.op.convert(b), tir.op.convert(e))
    return tir.if_then_else(tir.any(i < lower, i >= upper), z, tir.if_then_else(tir.op.convert(s) > 0, tir.floordiv(i - b, s), tir.floordiv(b - i, -s)))
