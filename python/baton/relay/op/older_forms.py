# SPDX-License-Identifier: Apache-2.0
"""Operators as older programs call them, where their inputs or attributes are others here; helpers beside them."""

import numpy as np

from ... import error as errors
from ...ir import RelayExpr, TupleType
from ..expr import Constant, Tuple, TupleGetItem, TupleWrapper, _dtype_of, const, infer_type
from .composed import COMPOSED
from .make import input_expr, operator
from .sugar import SUGAR, _device_type, uniform

# ---- Memory and the virtual machine


def alloc_storage(size, alignment, device=None, dtype_hint="float32", dtype=None, device_type=None, device_id=0):
    """A block of memory of so many bytes on a device, the host unless said, at a multiple of `alignment`."""
    if isinstance(device, str) and dtype is None and device_type is None and device not in ("cpu", "cuda", "opencl", "llvm"):
        device, dtype = None, device  # (size, alignment, dtype)
    kind = device_type if device_type is not None else 1 if device is None else _device_type(device)
    number = device_id if device is None or isinstance(device, (int, str)) else device.device_id
    return operator("memory.alloc_storage")(size, alignment, dtype=dtype or dtype_hint, device_type=kind, device_id=number)


def flatten_tuple_type(ty):
    """The tensor types of a type, those of nested tuples one after the other."""
    return [leaf for field in ty.fields for leaf in flatten_tuple_type(field)] if isinstance(ty, TupleType) else [ty]


def from_tuple_type(ty, expr):
    """The tensors of an expression of a type, as `flatten_tuple_type` numbers them."""
    if not isinstance(ty, TupleType):
        return [expr]
    return [leaf for i, field in enumerate(ty.fields) for leaf in from_tuple_type(field, TupleGetItem(expr, i))]


def to_tuple_type(ty, exprs):
    """The expression of a type whose tensors are `exprs`: the reverse of `from_tuple_type`."""
    rest = iter(exprs)

    def build(part):
        return Tuple([build(field) for field in part.fields]) if isinstance(part, TupleType) else next(rest)

    return build(ty)


def shape_of(expr, dtype="int64"):
    """The shape of a tensor, as the virtual machine takes it."""
    return operator("vm.shape_of")(expr, dtype=dtype)


def shape_func(func, inputs, outputs, is_inputs=()):
    """Calls a shape function; `is_inputs` says of each input whether it is the value itself, not its shape."""
    return operator("vm.shape_func")(func, inputs, outputs, list(is_inputs))


# ---- Other orders and names of arguments


def _known(expr, what):
    """The extents of an expression as numbers."""
    shape = infer_type(input_expr(expr)).shape
    if not all(hasattr(d, "value") or isinstance(d, int) for d in shape):
        raise errors.UnsupportedError(f"{what} needs extents that are known, got {list(shape)}")
    return [int(d) for d in shape]


def trilu(data, k=0, upper=True):
    """The upper or lower triangle of each matrix from the diagonal `k` on, which may be an expression; the rest is 0."""
    if isinstance(k, bool):
        k, upper = (0 if isinstance(upper, bool) else upper), k  # (data, upper, k)
    if isinstance(k, Constant):
        k = int(k.data.numpy())
    if not isinstance(k, RelayExpr):
        return operator("trilu")(data, upper=upper, k=k)
    extents = _known(data, "trilu of a diagonal that is an expression")[-2:]
    distance = np.arange(extents[1])[None, :] - np.arange(extents[0])[:, None]
    kept = operator("greater_equal" if upper else "less_equal")(const(distance, "int32"), operator("cast")(k, dtype="int32"))
    return operator("where")(kept, data, operator("zeros_like")(data))


def variance(data, axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None):
    """The variance over axes. `with_mean` is accepted for older programs, which had the mean at hand; it is taken again, stably."""
    return operator("variance")(data, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased)


def _backward_weight(dims):
    plain = operator(f"nn.conv{dims}d_backward_weight")

    def call(*args, grad_layout=None, **kwargs):
        """The gradient of a convolution with respect to its weight. `grad_layout` is that of `data`."""
        layout = kwargs.get("data_layout", plain.by_name["data_layout"].default)
        if len(args) > 10:  # grad_layout comes before data_layout
            grad_layout, args = args[8], (*args[:8], *args[9:])
            layout = args[8]
        if grad_layout not in (None, layout):
            raise errors.UnsupportedError(f'conv{dims}d_backward_weight: grad_layout is "{grad_layout}", and data_layout "{layout}"; they are to be the same')
        return plain(*args, **kwargs)

    call.__name__, call.__signature__ = plain.__name__, plain.__signature__
    return call


def multinomial(key, probs=None, num_samples=1, **given):
    """(key for the next numbers, indices drawn with the probabilities `probs`, which need not add up to 1; int32 of the shape of `probs`, its
    last extent `num_samples`). Without a key: the operator of ONNX, of logarithms (`data`)."""
    if "data" in given or not isinstance(probs, RelayExpr):
        sample_size = given.pop("sample_size", probs if probs is not None else num_samples)
        return operator("random.multinomial")(given.pop("data", key), sample_size=sample_size, **given)
    probs = input_expr(probs)
    if _dtype_of(probs) is None:
        raise errors.TypeError("random.multinomial needs to know the dtype of its probabilities: infer its type first")
    *rows, count = _known(probs, "random.multinomial")
    # Running sums, as a product with ones on and below the diagonal.
    ones = const(np.tril(np.ones((count, count))), _dtype_of(probs))
    sums = operator("sum")(operator("multiply")(operator("reshape")(probs, newshape=[*rows, 1, count]), ones), axis=[-1])
    unit = operator("divide")(sums, operator("max")(sums, axis=-1, keepdims=True))
    next_key, numbers = uniform(key, (*rows, num_samples), _dtype_of(probs))
    return TupleWrapper(Tuple([next_key, operator("searchsorted")(unit, numbers, right=True, dtype="int32")]), 2)


SUGAR.update(
    {
        "memory.alloc_storage": alloc_storage,
        "random.multinomial": multinomial,
        "trilu": trilu,
        "variance": variance,
        "vm.shape_func": shape_func,
        "vm.shape_of": shape_of,
        **{f"nn.conv{n}d_backward_weight": _backward_weight(n) for n in (1, 2, 3)},
    }
)
COMPOSED.update({f"memory.{f.__name__}": f for f in (flatten_tuple_type, from_tuple_type, to_tuple_type)})
