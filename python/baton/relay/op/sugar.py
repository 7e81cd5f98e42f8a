# SPDX-License-Identifier: Apache-2.0
"""Operators whose Python form differs from their inputs and attributes: several results, shape-like operands that may be
expressions, forms of older programs. By operator name."""

import inspect
import math
import re

from ... import error as errors
from ..._core import Device
from ...ir import RelayExpr
from ..expr import Constant, Tuple, TupleWrapper, _dtype_of, const
from .make import input_expr, operator, plain_value, whole_numbers

SUGAR = {}


def _sugar(name):
    def register(f):
        SUGAR[name] = f
        return f

    return register


def _several(name, count):
    """The operator gives a tuple of `count` results."""

    def call(*args, **kwargs):
        return TupleWrapper(operator(name)(*args, **kwargs), count)

    plain = operator(name)
    if plain is not None:
        call.__name__, call.__doc__, call.__module__ = plain.__name__, plain.__doc__, plain.__module__
        call.__signature__ = plain.__signature__
        SUGAR[name] = call


for _name, _count in {"nn.batch_norm": 3, "nn.max_pool_with_indices": 2, "qnn.dynamic_quantize": 3, "vision.multibox_transform_loc": 2}.items():
    _several(_name, _count)


# In Relay's time a transposed convolution's I and O stood for each other: its weight (in, out, H, W) was called OIHW.
_SWAPPED = {"OIW": "IOW", "OIHW": "IOHW", "OIDHW": "IODHW", "WIO": "WOI", "HWIO": "HWOI", "DHWIO": "DHWOI"}


def _transposed(name):
    plain = operator(name)

    def call(*args, **kwargs):
        given = plain._bind(args, kwargs)
        layout = given.get("kernel_layout")
        return plain(**{**given, "kernel_layout": _SWAPPED.get(layout, layout)} if layout is not None else given)

    call.__name__, call.__module__, call.__signature__ = plain.__name__, plain.__module__, plain.__signature__
    call.__doc__ = (
        plain.__doc__
        + """

    As in older programs, a `kernel_layout` of OIW, OIHW, OIDHW, WIO, HWIO or DHWIO is taken for IOW, IOHW, ...: those name the two kinds
    of channels as the convolution that is transposed has them."""
    )
    SUGAR[name] = call


for _n in (1, 2, 3):
    _transposed(f"nn.conv{_n}d_transpose")


def _ints(value):
    """A constant's elements where a shape-like operand is one; an expression itself; else numbers as Python's."""
    if isinstance(value, Constant):
        return [int(x) for x in value.data.numpy().reshape(-1)]
    if isinstance(value, (list, tuple)) and any(isinstance(v, RelayExpr) for v in value):
        return value if not all(isinstance(v, Constant) for v in value) else [int(v.data.numpy()) for v in value]
    return value if isinstance(value, RelayExpr) else whole_numbers(plain_value(value))


def _dynamic(value):
    return isinstance(value, RelayExpr)


@_sugar("reshape")
def reshape(data, newshape, allowzero=False):
    """`data` under another shape of as many elements. In `newshape` 0 keeps a dimension, -1 is inferred, -2 takes the rest,
    -3 merges two, -4 splits one. An expression as `newshape` is a shape known at run time."""
    newshape = _ints(newshape)
    if _dynamic(newshape):
        return operator("dyn.reshape")(data, newshape, allowzero=allowzero)
    return operator("reshape")(data, newshape=[newshape] if isinstance(newshape, int) else newshape, allowzero=allowzero)


@_sugar("broadcast_to")
def broadcast_to(data, shape):
    """`data` broadcast to a shape, which may be an expression."""
    shape = _ints(shape)
    return operator("dyn.broadcast_to")(data, shape) if _dynamic(shape) else operator("broadcast_to")(data, shape=shape)


@_sugar("tile")
def tile(data, reps):
    """`data` repeated as a whole `reps` times along each axis; `reps` may be an expression."""
    reps = _ints(reps)
    return operator("dyn.tile")(data, reps) if _dynamic(reps) else operator("tile")(data, reps=reps)


@_sugar("squeeze")
def squeeze(data, axis=None):
    """`data` without dimensions of extent 1: those of `axis`, which may be an expression, or all."""
    axis = _ints(axis)
    if _dynamic(axis):
        return operator("dyn.squeeze")(data, axis)
    return operator("squeeze")(data, axis=[axis] if isinstance(axis, int) else axis)


@_sugar("expand_dims")
def expand_dims(data, axis=0, num_newaxis=1, axes=None):
    """`data` with `num_newaxis` dimensions of extent 1 from `axis` on, which may be an expression; or with `axes` of the result new."""
    if isinstance(axis, Constant):
        axis = int(axis.data.numpy())
    if _dynamic(axis):
        return operator("dyn.expand_dims")(data, axis, num_newaxis=num_newaxis)
    return operator("expand_dims")(data, axis=axis, num_newaxis=num_newaxis, axes=axes)


@_sugar("sparse_to_dense")
def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """A tensor of `output_shape`, which may be an expression: `default_value`, but `sparse_values` at `sparse_indices`."""
    output_shape = _ints(output_shape)
    if not isinstance(sparse_values, RelayExpr):
        sparse_values = const(sparse_values)
    if not isinstance(default_value, RelayExpr):
        default_value = const(default_value, _dtype_of(sparse_values) or None)
    if _dynamic(output_shape):
        return operator("dyn.sparse_to_dense")(sparse_indices, sparse_values, default_value, output_shape)
    return operator("sparse_to_dense")(sparse_indices, sparse_values, default_value, output_shape=output_shape)


@_sugar("nn.upsampling")
def upsampling(data, scale_h=1, scale_w=1, layout="NCHW", method="nearest_neighbor", align_corners=False):
    """`data` with height and width multiplied; the factors may be expressions."""
    given = {"layout": layout, "method": method, "align_corners": align_corners}
    if _dynamic(scale_h) or _dynamic(scale_w):
        scales = [x if _dynamic(x) else const(float(x), "float32") for x in (scale_h, scale_w)]
        return operator("dyn.nn.upsampling")(data, *scales, **given)
    return operator("nn.upsampling")(data, scale_h=scale_h, scale_w=scale_w, **given)


@_sugar("nn.upsampling3d")
def upsampling3d(data, scale_d=1, scale_h=1, scale_w=1, layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="half_pixel"):
    """`data` with depth, height and width multiplied; the factors may be constants of Relay."""
    scales = [float(x.data.numpy()) if isinstance(x, Constant) else x for x in (scale_d, scale_h, scale_w)]
    if any(isinstance(x, RelayExpr) for x in scales):
        raise errors.UnsupportedError("nn.upsampling3d takes factors that are known; resize by image.resize3d to a known size")
    given = {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode}
    return operator("nn.upsampling3d")(data, scale_d=scales[0], scale_h=scales[1], scale_w=scales[2], **given)


def _counted(name, what):
    def count(data, dtype="int32"):
        if str(dtype).startswith(("float", "bfloat")):
            return operator("cast")(operator(name)(data, dtype="int64"), dtype=str(dtype))
        return operator(name)(data, dtype=dtype)

    count.__name__, count.__doc__ = name, f"{what} of a tensor; as floats where `dtype` is one of them."
    SUGAR[name] = count


_counted("shape_of", "The extents")
_counted("ndarray_size", "The number of elements")


def _rounding(method, mode, rounding_method):
    """The default rounding method for nearest-neighbour sampling."""
    if rounding_method == "" and method == "nearest_neighbor":
        return "round" if mode == "align_corners" else "floor"
    return rounding_method


def _in_new_order(args):
    """Arguments behind `size`. Relay 0.8 knew no `roi` there, so a layout is in its place, and no `extrapolation_value`, so a dtype does."""
    if args and isinstance(args[0], str):
        args = (None, *args)
    if len(args) == 8 and (args[7] is None or not isinstance(args[7], (int, float))):
        args = (*args[:7], 0.0, args[7])
    return args


def _resize_of(letters):
    spatial, name = len(letters), f"image.resize{len(letters)}d"

    def resize(
        data,
        size,
        roi=None,
        layout="NC" + letters,
        method="linear",
        coordinate_transformation_mode="half_pixel",
        rounding_method="",
        cubic_alpha=-0.5,
        cubic_exclude=0,
        extrapolation_value=0.0,
        out_dtype=None,
    ):
        given = {
            "layout": layout,
            "method": method,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "rounding_method": _rounding(method, coordinate_transformation_mode, rounding_method),
            "cubic_alpha": cubic_alpha,
            "cubic_exclude": cubic_exclude,
            "extrapolation_value": extrapolation_value,
            "out_dtype": out_dtype or "",
        }
        size = _ints(size)
        if isinstance(roi, Constant):
            roi = [float(x) for x in roi.data.numpy().reshape(-1)]
        if spatial == 2 and (_dynamic(size) or _dynamic(roi)):
            operands = [size if _dynamic(size) else const([size] * 2 if isinstance(size, int) else list(size), "int64")]
            if roi is not None:
                operands.append(roi if _dynamic(roi) else const(list(roi), "float32"))
            return operator("dyn.image.resize2d")(data, *operands, **given)
        return operator(name)(data, size=[size] if isinstance(size, int) else size, roi=[] if roi is None else roi, **given)

    def call(data, size, *args, **kwargs):
        return resize(data, size, *_in_new_order(args), **kwargs)

    call.__name__, call.__signature__ = name.rsplit(".", 1)[-1], inspect.signature(resize)
    extents = [{"D": "depth", "H": "height", "W": "width"}[x] for x in letters]
    call.__doc__ = f"""{" and ".join(filter(None, [", ".join(extents[:-1]), extents[-1]])).capitalize()} of `data` resized to `size`{
        ", which may be an expression" if spatial == 2 else ""
    }.
    `rounding_method` finds the nearest element: "round" where it is not given and corners are aligned, else "floor". By position `roi` may be
    left out, as in Relay 0.8: `resize{spatial}d(data, size, "NC{letters}", "linear")`."""
    SUGAR[name] = call


for _letters in ("W", "HW", "DHW"):
    _resize_of(_letters)


def _filled(name):
    def call(shape, dtype="float32"):
        shape = _ints(shape)
        if _dynamic(shape):
            return operator("dyn." + name)(shape, dtype=dtype)
        return operator(name)(shape=[shape] if isinstance(shape, int) else shape, dtype=dtype)

    call.__name__ = name
    call.__doc__ = f"A tensor of {name} of a shape, which may be an expression."
    SUGAR[name] = call


_filled("zeros")
_filled("ones")


@_sugar("full")
def full(fill_value, shape=(), dtype=""):
    """A tensor of one value. Its dtype is the value's unless said."""
    shape = _ints(shape)
    value = fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, dtype or None)
    if _dynamic(shape):
        return operator("dyn.full")(value, shape, dtype=dtype)
    return operator("full")(value, shape=[shape] if isinstance(shape, int) else shape, dtype=dtype or "")


@_sugar("arange")
def arange(start, stop=None, step=None, dtype="float32"):
    """Values from `start` (0 if only one is given) up to `stop`, exclusive, by `step`."""
    if stop is None:
        start, stop = 0, start
    values = [v if isinstance(v, RelayExpr) else const(v, dtype) for v in (start, stop, 1 if step is None else step)]
    return operator("arange")(*values, dtype=dtype)


@_sugar("split")
def split(data, indices_or_sections, axis=0):
    """Parts of `data` along an axis: so many equal ones, or those between the given places."""
    indices_or_sections = _ints(indices_or_sections)
    call = operator("split")(data, indices_or_sections=indices_or_sections, axis=axis)
    count = indices_or_sections if isinstance(indices_or_sections, int) else len(indices_or_sections) + 1
    return TupleWrapper(call, count)


@_sugar("concatenate")
def concatenate(data, axis=0):
    """The tensors of a tuple one after the other along an axis."""
    return operator("concatenate")(_tuple(data), axis=axis)


@_sugar("stack")
def stack(data, axis=0):
    """The tensors of a tuple along a new axis."""
    return operator("stack")(_tuple(data), axis=axis)


@_sugar("einsum")
def einsum(data, equation):
    """A sum of products of the tensors of a tuple, as the equation says."""
    return operator("einsum")(_tuple(data), equation=equation)


@_sugar("meshgrid")
def meshgrid(data, indexing="ij"):
    """Coordinate grids of the vectors of a tuple."""
    data = _tuple(data)
    call = operator("meshgrid")(data, indexing=indexing)
    return TupleWrapper(call, len(data.fields)) if hasattr(data, "fields") else call


def _tuple(data):
    if isinstance(data, TupleWrapper):
        return data.astuple()
    if isinstance(data, RelayExpr):
        return data
    return Tuple([input_expr(d) for d in data])


@_sugar("strided_slice")
def strided_slice(data, begin, end, strides=None, axes=None, slice_mode="end"):
    """`data[begin:end:strides]` on each of `axes` (all). With slice_mode="size", `end` holds extents. Expressions as bounds are
    known at run time."""
    begin, end, strides = _ints(begin), _ints(end), _ints(strides)
    if any(_dynamic(x) for x in (begin, end, strides)):
        operands = [x if _dynamic(x) else const(list(x), "int64") for x in (begin, end)]
        if strides is not None or axes is not None:
            if strides is None:
                shape = getattr(begin if _dynamic(begin) else end, "checked_type_", None)
                count = len(axes) if axes is not None else int(shape.shape[0]) if shape is not None else None
                if count is None:
                    raise errors.TypeError("strided_slice of expressions needs its strides")
                strides = [1] * count
            operands.append(strides if _dynamic(strides) else const(list(strides), "int64"))
        if axes is not None:
            operands.append(const(list(axes), "int64"))
        return operator("dyn.strided_slice")(data, *operands, slice_mode=slice_mode)
    given = {"axes": list(axes)} if axes is not None else {}
    begin, end, strides = _as_long(begin, end, strides, slice_mode)
    return operator("strided_slice")(data, begin=begin, end=end, strides=[1] if strides is None else strides, slice_mode=slice_mode, **given)


def _as_long(begin, end, strides, slice_mode):
    """Bounds of as many axes as the longer list has; a missing bound stands for the end of its axis."""
    begin, end = ([x] if isinstance(x, int) else list(x) for x in (begin, end))
    if len(begin) == len(end):
        return begin, end, strides
    count = max(len(begin), len(end))
    steps = [strides] if isinstance(strides, int) else list(strides or [1])
    steps = steps * count if len(steps) == 1 else steps + [1] * (count - len(steps))
    whole = 2**31 - 1
    backwards = [s < 0 and slice_mode == "end" for s in steps]
    begin += [whole if backwards[i] else 0 for i in range(len(begin), count)]
    end += [-1 if slice_mode == "size" else -whole if backwards[i] else whole for i in range(len(end), count)]
    return begin, end, strides


@_sugar("strided_set")
def strided_set(data, v, begin, end, strides=None):
    """`data` with `data[begin:end:strides]` replaced by `v`."""
    as_expr = [x if isinstance(x, RelayExpr) else const(list(x), "int64") for x in (begin, end)]
    strides = (
        const([1] * len(as_expr[0].data.numpy()), "int64") if strides is None else strides if isinstance(strides, RelayExpr) else const(list(strides), "int64")
    )
    return operator("strided_set")(data, v, *as_expr, strides)


@_sugar("take")
def take(data, indices, axis=None, batch_dims=0, mode="clip"):
    """Elements of `data`, or slices along an axis, by index. Indices out of range are clipped, or wrap around with mode="wrap"."""
    return operator("take")(data, indices, axis=axis, batch_dims=batch_dims, mode=mode)


@_sugar("gather")
def gather(data, axis, indices):
    """`data[..., indices[..., i, ...], ...]` along an axis."""
    return operator("gather")(data, indices, axis=axis)


@_sugar("matrix_set_diag")
def matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with the diagonals `k`, a number or the lowest and highest, replaced. `align`: to which end the shorter ones above, and
    below, the main one are padded."""
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    above, below = align.split("_")
    if above not in ("LEFT", "RIGHT") or below not in ("LEFT", "RIGHT"):
        raise errors.TypeError(f'matrix_set_diag: align is "{align}"; it is "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT"')
    return operator("matrix_set_diag")(data, diagonal, k1=low, k2=high, super_diag_right_align=above == "RIGHT", sub_diag_right_align=below == "RIGHT")


@_sugar("argsort")
def argsort(data, axis=-1, is_ascend=1, dtype="int32"):
    """Indices that sort the elements along an axis."""
    return operator("argsort")(data, axis=axis, is_ascend=bool(is_ascend), dtype=dtype)


@_sugar("sort")
def sort(data, axis=-1, is_ascend=1):
    """Elements in order along an axis."""
    return operator("sort")(data, axis=axis, is_ascend=bool(is_ascend))


@_sugar("searchsorted")
def searchsorted(sorted_sequence, values, right=False, dtype="int32"):
    """Where values would go in a sorted sequence."""
    return operator("searchsorted")(sorted_sequence, values, right=right, dtype=dtype)


@_sugar("unique")
def unique(data, is_sorted=True, return_counts=False, axis=None):
    """(values without repetition, first place of each, which of them each element is, how many there are[, how often each occurs]); all
    but the first int32."""
    values, first, inverse, counts = TupleWrapper(operator("unique")(data, is_sorted=is_sorted, axis=axis), 4)
    number = operator("shape_of")(first, dtype="int32")
    narrow = [operator("cast")(x, dtype="int32") for x in (first, inverse, counts)]
    parts = [values, *narrow[:2], number, *narrow[2:]][: 5 if return_counts else 4]
    return TupleWrapper(Tuple(parts), len(parts))


@_sugar("vision.all_class_non_max_suppression")
def all_class_non_max_suppression(
    boxes, scores, max_output_boxes_per_class=-1, iou_threshold=-1.0, score_threshold=-1.0, output_format="onnx", center_point_box=False
):
    """(the selected boxes as (batch, class, box), how many there are)."""
    most = max_output_boxes_per_class
    if not isinstance(most, RelayExpr):
        most = const(most if most >= 0 else 2**62, "int64")
    limits = [x if isinstance(x, RelayExpr) else const(float(x), "float32") for x in (iou_threshold, score_threshold)]
    call = operator("vision.all_class_non_max_suppression")(boxes, scores, most, *limits, center_point_box=center_point_box, output_format=output_format)
    number = operator("strided_slice")(operator("shape_of")(call, dtype="int64"), begin=[0], end=[1])
    return TupleWrapper(Tuple([call, number]), 2)


@_sugar("topk")
def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int32"):
    """The k largest (or smallest) values along an axis, in order, and their places."""
    k = _ints(k)
    if _dynamic(k):
        call = operator("dyn.topk")(data, k, axis=axis, ret_type=ret_type, is_ascend=is_ascend, dtype=dtype)
    else:
        call = operator("topk")(data, k=k[0] if isinstance(k, list) else k, axis=axis, ret_type=ret_type, is_ascend=is_ascend, dtype=dtype)
    return TupleWrapper(call, 2) if ret_type == "both" else call


@_sugar("one_hot")
def one_hot(indices, on_value, off_value, depth, axis=-1, dtype=""):
    """Along a new axis `on_value` at each index, `off_value` elsewhere. Its dtype is that of `on_value` unless given."""
    on, off = (v if isinstance(v, RelayExpr) else const(v, dtype or None) for v in (on_value, off_value))
    if isinstance(depth, Constant):
        depth = int(depth.data.numpy())
    if _dynamic(depth):
        return operator("dyn.one_hot")(indices, on, off, depth, axis=axis, dtype=dtype)
    return operator("one_hot")(indices, on, off, depth=depth, axis=axis, dtype=dtype)


@_sugar("nn.pad")
def pad(data, pad_width, pad_value=0, pad_mode="constant"):
    """`data` with (before, after) elements around each dimension."""
    if not isinstance(pad_value, RelayExpr):
        dtype = _dtype_of(data)
        pad_value = const(pad_value, dtype or ("float32" if isinstance(pad_value, float) else None) or "float32")
    if isinstance(pad_width, Constant):
        pad_width = [[int(n) for n in pair] for pair in pad_width.data.numpy()]
    if _dynamic(pad_width):
        return operator("dyn.nn.pad")(data, pad_width, pad_value, pad_mode=pad_mode)
    return operator("nn.pad")(data, pad_value, pad_width=pad_width, pad_mode=pad_mode)


@_sugar("vision.get_valid_counts")
def get_valid_counts(data, score_threshold, id_index=0, score_index=1):
    """How many boxes of each image score higher than the threshold, those boxes, and their places."""
    threshold = score_threshold if isinstance(score_threshold, RelayExpr) else const(float(score_threshold), "float32")
    return TupleWrapper(operator("vision.get_valid_counts")(data, threshold, id_index=id_index, score_index=score_index), 3)


@_sugar("vision.non_max_suppression")
def non_max_suppression(
    data,
    valid_count,
    indices,
    max_output_size=-1,
    iou_threshold=0.5,
    force_suppress=False,
    top_k=-1,
    coord_start=2,
    score_index=1,
    id_index=0,
    return_indices=True,
    invalid_to_bottom=False,
):
    """The best boxes of each image: their indices and how many there are, or with return_indices=False the boxes."""
    most = max_output_size if isinstance(max_output_size, RelayExpr) else const(max_output_size, "int32")
    threshold = iou_threshold if isinstance(iou_threshold, RelayExpr) else const(float(iou_threshold), "float32")
    call = operator("vision.non_max_suppression")(
        data,
        valid_count,
        indices,
        most,
        threshold,
        force_suppress=force_suppress,
        top_k=top_k,
        coord_start=coord_start,
        score_index=score_index,
        id_index=id_index,
        return_indices=return_indices,
        invalid_to_bottom=invalid_to_bottom,
    )
    return TupleWrapper(call, 2) if return_indices else call


@_sugar("nn.dropout")
def dropout(data, rate=0.5):
    """`data` with elements dropped at random in training; in inference `data` itself."""
    return TupleWrapper(operator("nn.dropout")(data, rate=rate), 2)[0]


SUGAR["nn.dropout_raw"] = lambda data, rate=0.5: TupleWrapper(operator("nn.dropout")(data, rate=rate), 2)


@_sugar("nn.dense")
def dense(data, weight, units=None, out_dtype=""):
    """`data` times the transpose of `weight`, over the last axis."""
    return operator("nn.dense")(data, weight, units=units, out_dtype=out_dtype)


@_sugar("device_copy")
def device_copy(data, src_device, dst_device):
    """`data` copied from one device to another."""
    return operator("device_copy")(data, src_dev_type=_device_type(src_device), dst_dev_type=_device_type(dst_device))


@_sugar("on_device")
def on_device(data=None, device=None, is_fixed=False, body=None, constrain_result=None, constrain_body=True):
    """`data` (or `body`), to be computed on a device. is_fixed: what uses it is on that device, too. Newer programs say that by
    `constrain_result`, and by constrain_body=False that only what uses it is."""
    data = body if data is None else data
    if data is None or device is None:
        raise errors.TypeError("on_device needs an expression and a device")
    if not constrain_body:
        if constrain_result:
            raise errors.UnsupportedError("on_device: a device for the result alone is said by device_copy")
        return input_expr(data)
    is_fixed = bool(is_fixed if constrain_result is None else constrain_result)
    return operator("on_device")(data, device_type=_device_type(device), is_fixed=is_fixed)


def _device_type(device):
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = Device(device.split("(")[0].split(":")[0])
    return device.device_type


@_sugar("sequence_mask")
def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """`data` with elements behind each sequence's valid length replaced."""
    return operator("sequence_mask")(data, valid_length, mask_value=float(mask_value), axis=axis)


def _place_of(name, what):
    def call(data, axis=None, keepdims=False, exclude=False, select_last_index=False, dtype="int32"):
        return operator(name)(data, axis=axis, keepdims=keepdims, exclude=exclude, select_last_index=select_last_index, dtype=dtype)

    call.__name__ = name
    call.__doc__ = f"Index of the {what} element along axes; the first of equal ones, or the last."
    SUGAR[name] = call


_place_of("argmax", "largest")
_place_of("argmin", "smallest")


@_sugar("random.threefry_generate")
def threefry_generate(key, shape):
    """(key for the next numbers, random uint64 numbers of a shape); a key is used once."""
    return TupleWrapper(operator("random.threefry_generate")(key, out_shape=[shape] if isinstance(shape, int) else list(shape)), 2)


@_sugar("random.threefry_split")
def threefry_split(key):
    """Two keys of one, for two parts of a program that draw separate numbers; the one is not used again."""
    return TupleWrapper(operator("random.threefry_split")(key), 2)


# Bits of a uint64 number that a dtype's fraction holds.
_FRACTION = {"float16": 11, "float32": 24, "float64": 53}


@_sugar("random.uniform")
def uniform(key=None, shape=None, dtype="float32", low=None, high=None, seed=None):
    """With a key of `threefry_key`: (key for the next numbers, numbers spread evenly over [low, high)). Without one the numbers alone,
    other ones in each evaluation, unless `seed` makes all give the same. `low` and `high` are numbers, or expressions with a key."""
    if not isinstance(key, RelayExpr):
        shape = key if shape is None else shape
        if shape is None:
            raise errors.TypeError("random.uniform needs a shape")
        given = {name: value for name, value in (("low", low), ("high", high)) if value is not None}
        return operator("random.uniform")(shape=[shape] if isinstance(shape, int) else shape, dtype=dtype, seed=seed, **given)
    if dtype not in _FRACTION:
        raise errors.TypeError(f"random.uniform gives {', '.join(_FRACTION)}, not {dtype}")
    low, high = (x if isinstance(x, RelayExpr) else const(float(x), dtype) for x in (0 if low is None else low, 1 if high is None else high))
    next_key, bits = threefry_generate(key, shape)
    count = _FRACTION[dtype]
    wide = "float32" if dtype == "float16" else dtype
    unit = operator("cast")(operator("right_shift")(bits, const(64 - count, "uint64")), dtype=wide)
    unit = operator("cast")(operator("multiply")(unit, const(2.0**-count, wide)), dtype=dtype)
    numbers = operator("add")(operator("multiply")(unit, operator("subtract")(high, low)), low)
    return TupleWrapper(Tuple([next_key, numbers]), 2)


@_sugar("random.normal")
def normal(key=None, shape=None, dtype="float32", mean=0.0, scale=1.0, seed=None, low=0.0, high=1.0):
    """With a key of `threefry_key`: (key for the next numbers, numbers of a normal distribution). Without one the numbers alone, other ones in
    each evaluation, unless `seed` makes all give the same. `mean` and `scale` (its deviation) are numbers, or expressions with a key."""
    if not isinstance(key, RelayExpr):
        shape = key if shape is None else shape
        if shape is None:
            raise errors.TypeError("random.normal needs a shape")
        return operator("random.normal")(shape=[shape] if isinstance(shape, int) else shape, dtype=dtype, seed=seed, mean=mean, scale=scale, low=low, high=high)
    # Box and Muller: of two evenly spread numbers, the first of (0, 1].
    size = math.prod(int(d) for d in ([shape] if isinstance(shape, int) else shape))
    wide = "float32" if dtype == "float16" else dtype
    numbers = uniform(key, (2, size), wide)
    first, second = (operator("take")(numbers[1], const(i, "int64"), axis=0) for i in (0, 1))
    radius = operator("sqrt")(operator("multiply")(operator("log")(operator("subtract")(const(1.0, wide), first)), const(-2.0, wide)))
    unit = operator("multiply")(radius, operator("cos")(operator("multiply")(second, const(2 * math.pi, wide))))
    unit = operator("cast")(operator("reshape")(unit, newshape=[shape] if isinstance(shape, int) else list(shape)), dtype=dtype)
    mean, scale = (x if isinstance(x, RelayExpr) else const(float(x), dtype) for x in (mean, scale))
    return TupleWrapper(Tuple([numbers[0], operator("add")(operator("multiply")(unit, scale), mean)]), 2)


@_sugar("argwhere")
def argwhere(condition):
    """Indices of the elements that are not 0, row-major; int32, as (how many there are, rank)."""
    return operator("cast")(operator("argwhere")(condition), dtype="int32")


@_sugar("vision.roi_align")
def roi_align(data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout="NCHW", mode="avg", aligned=False):
    """Averages (or largest values) of the parts of boxes, sampled between elements. `rois`: (batch, x1, y1, x2, y2) a row."""
    plain = operator("vision.roi_align")
    pooled_size = [pooled_size] * 2 if isinstance(pooled_size, int) else pooled_size
    given = {"pooled_size": pooled_size, "spatial_scale": spatial_scale, "sample_ratio": sample_ratio, "mode": mode, "aligned": aligned}
    return plain(data, rois, layout=layout, **given)


@_sugar("nn.contrib_dense_pack")
def contrib_dense_pack(data, weight, weight_layout="NC", units=None, out_dtype=""):
    """`nn.dense` of a weight whose units are in blocks: "NC8n" is (units / 8, input units, 8). "NC" is `nn.dense` itself."""
    block = re.fullmatch(r"NC(\d*)(n?)", weight_layout)
    if block is None or bool(block[1]) != bool(block[2]):
        raise errors.ValueError(f'contrib_dense_pack: weight_layout is "{weight_layout}"; it is "NC", or as "NC8n"')
    return operator("nn.contrib_dense_pack" if block[1] else "nn.dense")(data, weight, units=units, out_dtype=out_dtype)
