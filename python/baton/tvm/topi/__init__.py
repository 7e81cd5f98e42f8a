# SPDX-License-Identifier: Apache-2.0
"""Operators on tensors of tensor expressions, with Relay's meaning (`topi.add`, `topi.nn.softmax`), NumPy references
(`topi.testing`), and small helpers.

    A, B = te.placeholder((2, 3), name="A"), te.placeholder((2, 3), name="B")
    C = topi.nn.relu(topi.add(A, B))
    f = baton.build([A, B, C], target="llvm")
"""

from . import image, nn, random, sparse, tag, testing, utils, vision
from .functions import apply, find_operator, operators


def full(shape, dtype, fill_value):
    """A tensor of one value."""
    return apply(lambda: find_operator("full")(fill_value, shape, str(dtype)))


def matmul(a, b, transp_a=False, transp_b=False):
    """The product of two matrices."""
    return nn.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


def tensordot(a, b, axes):
    """The sums of products over the last `axes` dimensions of `a` and the first of `b`, or over a list for each."""
    rank = len(a.shape)
    left, right = (list(range(rank - axes, rank)), list(range(axes))) if isinstance(axes, int) else ([x] if isinstance(x, int) else list(x) for x in axes)
    letters = [chr(97 + i) for i in range(rank + len(b.shape))]
    first, second = letters[:rank], letters[rank:]
    for i, j in zip(left, right, strict=True):
        second[j] = first[i]
    kept = [x for i, x in enumerate(first) if i not in [k % rank for k in left]] + [x for x in second if x not in first]
    return einsum(f"{''.join(first)},{''.join(second)}->{''.join(kept)}", a, b)


def einsum(subscripts, *operand):
    """A sum of products of tensors, as the subscripts say."""
    return apply(find_operator("einsum"), list(operand), subscripts)


def elemwise_sum(xs):
    """The sum of tensors of one shape."""
    total, *others = xs
    for x in others:
        total = apply(find_operator("add"), total, x)
    return total


def div(a, b):
    """The quotient; of ints it is rounded towards zero."""
    return apply(find_operator("divide"), a, b)


def collapse_sum(data, target_shape):
    """The sum over what broadcasting from a shape to that of `data` repeats."""
    return apply(lambda x: find_operator("collapse_sum_to")(x, tuple(target_shape)), data)


def expand_like(a, shape_like, axis):
    """`a` with new dimensions at `axis` and repeated along them, in the shape of another tensor."""
    axes = sorted((x + len(shape_like.shape)) % len(shape_like.shape) for x in ([axis] if isinstance(axis, int) else axis))

    def expanded(x, like):
        for one in axes if len(a.shape) < len(shape_like.shape) else ():
            x = find_operator("expand_dims")(x, one)
        return find_operator("broadcast_to_like")(x, like)

    return apply(expanded, a, shape_like)


def flip(a, axis=0):
    """The elements in the opposite order along an axis."""
    return apply(find_operator("reverse"), a, axis)


def adv_index(data, indices):
    """`data[index, index, ...]` of a list of indices, which broadcast and stand for the first dimensions."""
    return apply(lambda *tensors: find_operator("adv_index")(list(tensors)), data, *indices)


def ceil_log2(x):
    """The least whole power of two that is not less than a number: its exponent, in the dtype of `x`."""
    of = find_operator
    return apply(lambda v: of("cast")(of("ceil")(of("log2")(of("cast")(v, "float64"))), str(x.dtype)), x)


def shape(array, dtype="int32"):
    """The extents of a tensor."""
    return apply(find_operator("shape_of"), array, dtype)


__all__ = [
    "adv_index",
    "apply",
    "ceil_log2",
    "collapse_sum",
    "div",
    "einsum",
    "elemwise_sum",
    "expand_like",
    "flip",
    "full",
    "image",
    "matmul",
    "nn",
    "operators",
    "random",
    "shape",
    "sparse",
    "tag",
    "tensordot",
    "testing",
    "utils",
    "vision",
]

_find, __dir__ = operators("", __name__, globals())
# Names of older programs.
_OLD = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "mod", "maximum": "maximum", "minimum": "minimum", "pow": "power"}


def __getattr__(name):
    name = {"floordiv": "floor_divide", "floormod": "floor_mod"}.get(name, name)
    return _find(_OLD[name[10:]] if name.startswith("broadcast_") and name[10:] in _OLD else name)
