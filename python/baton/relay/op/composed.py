# SPDX-License-Identifier: Apache-2.0
"""Functions that are composed of several operators."""

from ... import error as errors
from ...ir import RelayExpr, TensorType
from ...tir import IntImm
from ..expr import Constant, Tuple, TupleWrapper, Var, _dtype_of, const, infer_type
from .bits import BITS
from .detection import DETECTION
from .make import input_expr, operator
from .pads import PADS
from .sugar import SUGAR, _device_type
from .winograd import WINOGRAD

CONVOLUTION = "nn.conv2d"
COMPOSED = {**BITS, **DETECTION, **PADS, **WINOGRAD}


def _mean_and(name, spread):
    def call(data, axis=None, keepdims=False, exclude=False, unbiased=False):
        given = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
        mean = operator("mean")(data, **given)
        return TupleWrapper(Tuple([mean, operator(spread)(data, **given, unbiased=unbiased)]), 2)

    call.__name__ = name
    call.__doc__ = f"The mean and the {'variance' if spread == 'variance' else 'standard deviation'} over axes."
    COMPOSED[name] = call


_mean_and("mean_variance", "variance")
_mean_and("mean_std", "std")


def _composed(name):
    def register(f):
        COMPOSED[name] = f
        return f

    return register


@_composed("trunc_divide")
def trunc_divide(lhs, rhs):
    """The quotient rounded towards zero."""
    return operator("trunc")(operator("divide")(lhs, rhs))


@_composed("trunc_mod")
def trunc_mod(lhs, rhs):
    """The remainder that has the dividend's sign."""
    return operator("mod")(lhs, rhs)


@_composed("annotation.function_on_device")
def function_on_device(function, param_devices, result_device):
    """A function whose parameters and result are on these devices."""
    return function.with_attr("param_device_types", [_device_type(d) for d in param_devices]).with_attr("result_device_type", _device_type(result_device))


@_composed("collapse_sum_to")
def collapse_sum_to(data, shape):
    """Sums `data` over the axes along which `shape`, which may be an expression, broadcasts to its shape."""
    return operator("collapse_sum_like")(data, SUGAR["zeros"](shape, "bool"))


@_composed("invert_permutation")
def invert_permutation(data):
    """The inverse of a permutation."""
    return operator("cast_like")(operator("argsort")(data), data)


@_composed("adv_index")
def adv_index(inputs):
    """`data[index, index, ...]` of a tuple (data, index, index, ...): the indices broadcast, and stand for the first dimensions."""
    inputs = [input_expr(x) for x in (inputs.fields if isinstance(inputs, Tuple) else inputs)]
    data, indices = inputs[0], [operator("cast")(x, dtype="int64") for x in inputs[1:]]
    if not indices:
        raise errors.TypeError("adv_index needs data and one index or more")
    shape = indices[0]
    for x in indices[1:]:
        shape = operator("add")(shape, x)
    if len(indices) > 1:
        indices = [operator("broadcast_to_like")(x, shape) for x in indices]
    return operator("gather_nd")(data, operator("stack")(Tuple(indices), axis=0), index_rank=len(indices))


def _lengths(x):
    """The extents of an expression that are known from its arguments; None for those that are not, nothing where the rank is not."""
    found = x.checked_type_ if x.checked_type_ is not None else x.type_annotation if isinstance(x, Var) else None
    if isinstance(x, Constant):
        return list(x.data.shape)
    if not isinstance(found, TensorType):
        try:
            found = infer_type(x).checked_type
        except errors.BatonError:  # it has variables without a type
            return []
    return [d.value if isinstance(d, IntImm) else None for d in found.shape] if isinstance(found, TensorType) else []


def _first_rows(data, ids):
    """The rows of `data` that have an id, which are the first ones; all where their number is not known."""
    rows, given = (next(iter(_lengths(x)), None) for x in (data, ids))
    if rows is None or given is None or given >= rows:
        return data
    return operator("strided_slice")(data, begin=[0], end=[given], axes=[0])


@_composed("segment_sum")
def segment_sum(data, segment_ids, num_segments=None):
    """Sums of the slices of `data` along its first axis that have one segment id; as many as `num_segments`, which may be an expression,
    or as the largest id needs."""
    dtype = _dtype_of(data)
    if dtype is None:
        raise errors.TypeError("segment_sum needs to know the dtype of its data: infer its type first")
    if num_segments is None:
        num_segments = operator("add")(operator("max")(operator("cast")(segment_ids, dtype="int64")), const(1, "int64"))
    elif not isinstance(num_segments, RelayExpr):
        num_segments = const(num_segments, "int64")
    count = operator("reshape")(operator("cast")(num_segments, dtype="int64"), newshape=[1])
    data = _first_rows(data, segment_ids)
    rest = operator("strided_slice")(operator("shape_of")(data, dtype="int64"), begin=[1], end=[2**31 - 1])
    sums = operator("dyn.zeros")(operator("concatenate")(Tuple([count, rest]), axis=0), dtype=dtype)
    return operator("scatter_nd")(sums, operator("expand_dims")(segment_ids, axis=0), data, mode="add")


@_composed("random.threefry_key")
def threefry_key(seed):
    """A key of random numbers, of a seed from 0 to 2**256 - 1: equal seeds give equal numbers. See `threefry_generate`."""
    import numpy as np

    if not 0 <= seed < 2**256:
        raise errors.ValueError(f"a seed is from 0 to 2**256 - 1, got {seed}")
    words = [(seed >> (64 * i)) & (2**64 - 1) for i in range(4)]
    return const(np.array(words + [0] * 6, "uint64"))


@_composed("sparse_reshape")
def sparse_reshape(sparse_indices, prev_shape, new_shape):
    """(the indices of the same elements under another shape, that shape); -1 in `new_shape` is inferred."""
    op = operator
    given = [input_expr(x) for x in (sparse_indices, prev_shape, new_shape)]
    sparse_indices, prev_shape, new_shape = (op("cast")(x, dtype="int64") for x in given)
    zero, one = const(0, "int64"), const(1, "int64")

    def steps(shape):  # elements from one index to the next, of each dimension
        return op("reverse")(op("cumprod")(op("reverse")(shape, axis=0), axis=0, exclusive=True), axis=0)

    total = op("prod")(prev_shape)
    unknown = op("less")(new_shape, zero)
    known = op("prod")(op("where")(unknown, one, new_shape))
    full = op("where")(unknown, op("floor_divide")(total, op("maximum")(known, one)), new_shape)
    flat = op("sum")(op("multiply")(sparse_indices, steps(prev_shape)), axis=[1], keepdims=True)
    indices = op("floor_mod")(op("floor_divide")(flat, op("maximum")(steps(full), one)), op("maximum")(full, one))
    lengths = [next(iter(_lengths(x)), None) for x in given[1:]]
    if lengths[0] is not None and lengths[0] == lengths[1]:
        # Under the same shape indices stay as they are, those outside of it too.
        indices = op("where")(op("all")(op("equal")(prev_shape, full)), sparse_indices, indices)
    return TupleWrapper(Tuple([op("cast_like")(indices, given[0]), op("cast_like")(full, given[2])]), 2)


@_composed("sparse_fill_empty_rows")
def sparse_fill_empty_rows(sparse_indices, sparse_values, dense_shape, default_value):
    """(indices, values, which rows were empty) of a sparse tensor, with `default_value` at the begin of each row that had no element.
    Elements are in the order of their rows; those of a row keep theirs."""
    op = operator
    sparse_indices = input_expr(sparse_indices)
    sparse_values, dense_shape, default_value = (input_expr(x) for x in (sparse_values, dense_shape, default_value))
    wide = op("cast")(sparse_indices, dtype="int64")
    count = op("strided_slice")(op("cast")(dense_shape, dtype="int64"), begin=[0], end=[1])
    rows = op("squeeze")(op("strided_slice")(wide, begin=[0], end=[1], axes=[1]), axis=[1])
    hits = op("scatter_nd")(op("dyn.zeros")(count, dtype="int64"), op("expand_dims")(rows, axis=0), op("ones_like")(rows), mode="add")
    empty = op("equal")(hits, const(0, "int64"))
    fresh = op("argwhere")(empty)
    rest = op("shape_of")(wide, dtype="int64")
    width = op("subtract")(op("strided_slice")(rest, begin=[1], end=[2]), const(1, "int64"))
    number = op("strided_slice")(op("shape_of")(fresh, dtype="int64"), begin=[0], end=[1])
    zeros = op("dyn.zeros")(op("concatenate")(Tuple([number, width]), axis=0), dtype="int64")
    added = op("concatenate")(Tuple([fresh, zeros]), axis=1)
    indices = op("concatenate")(Tuple([wide, added]), axis=0)
    values = op("concatenate")(Tuple([sparse_values, op("dyn.broadcast_to")(op("cast_like")(default_value, sparse_values), number)]), axis=0)
    all_rows = op("squeeze")(op("strided_slice")(indices, begin=[0], end=[1], axes=[1]), axis=[1])
    order = op("argsort")(all_rows, axis=0, is_ascend=True, dtype="int64")
    indices = op("cast_like")(op("take")(indices, order, axis=0), sparse_indices)
    return TupleWrapper(Tuple([indices, op("take")(values, order, axis=0), empty]), 3)


def _blocked(name, plain, what):
    def call(
        data,
        kernel,
        strides=(1, 1),
        padding=(0, 0),
        dilation=(1, 1),
        groups=1,
        channels=None,
        kernel_size=None,
        data_layout="NCHW8c",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
    ):
        return operator(plain)(
            data,
            kernel,
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            channels=channels,
            kernel_size=kernel_size,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            out_layout=out_layout,
            out_dtype=out_dtype,
        )

    call.__name__ = name.rsplit(".", 1)[-1]
    call.__doc__ = f"{what} of channels in blocks: `nn.conv2d` in these layouts."
    COMPOSED[name] = call


@_composed("nn.fifo_buffer")
def fifo_buffer(data, buffer, axis):
    """`buffer` with `data` behind it along an axis, and as much dropped from the front: it keeps its shape."""
    data, buffer = input_expr(data), input_expr(buffer)
    extent = infer_type(buffer).shape[axis]
    whole = operator("concatenate")(Tuple([buffer, data]), axis=axis)
    return operator("strided_slice")(whole, begin=[-int(extent)], end=[2**31 - 1], strides=[1], axes=[axis])


_blocked("nn.contrib_conv2d_nchwc", CONVOLUTION, "A convolution")
_blocked("nn.contrib_depthwise_conv2d_nchwc", CONVOLUTION, "A convolution of each channel by itself")
