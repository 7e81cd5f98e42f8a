# SPDX-License-Identifier: Apache-2.0
"""PY: functions of operators take what Relay's do, in its order, with its defaults. What Baton adds comes behind."""

import inspect

import pytest

from baton import relay

NO = inspect.Parameter.empty
SIGNATURES = {
    # relay.op.transform
    "cast": "data, dtype",
    "cast_like": "data, dtype_like",
    "reinterpret": "data, dtype",
    "expand_dims": "data, axis, num_newaxis=1",
    "transpose": "data, axes=None",
    "squeeze": "data, axis=None",
    "reshape": "data, newshape, allowzero=False",
    "argwhere": "condition",
    "scatter": "data, indices, updates, axis",
    "scatter_add": "data, indices, updates, axis",
    "scatter_nd": "data, indices, updates, mode='update'",
    "take": "data, indices, axis=None, batch_dims=0, mode='clip'",
    "full": "fill_value, shape=(), dtype=''",
    "full_like": "data, fill_value",
    "arange": "start, stop=None, step=None, dtype='float32'",
    "meshgrid": "data, indexing='ij'",
    "repeat": "data, repeats, axis",
    "tile": "data, reps",
    "reverse": "data, axis",
    "reverse_sequence": "data, seq_lengths, seq_axis=1, batch_axis=0",
    "where": "condition, x, y",
    "broadcast_to": "data, shape",
    "collapse_sum_to": "data, shape",
    "split": "data, indices_or_sections, axis=0",
    "strided_slice": "data, begin, end, strides=None, axes=None, slice_mode='end'",
    "strided_set": "data, v, begin, end, strides=None",
    "slice_like": "data, shape_like, axes=None",
    "layout_transform": "data, src_layout, dst_layout",
    "reverse_reshape": "data, newshape",
    "gather": "data, axis, indices",
    "gather_nd": "data, indices, batch_dims=0, index_rank=None",
    "sequence_mask": "data, valid_length, mask_value=0, axis=0",
    "one_hot": "indices, on_value, off_value, depth, axis, dtype",
    "unravel_index": "indices, shape",
    "sparse_to_dense": "sparse_indices, output_shape, sparse_values, default_value=0",
    "matrix_set_diag": "data, diagonal, k=0, align='RIGHT_LEFT'",
    "adv_index": "inputs",
    "segment_sum": "data, segment_ids, num_segments=None",
    "unique": "data, is_sorted=True, return_counts=False",
    "shape_of": "data, dtype='int32'",
    "ndarray_size": "data, dtype='int32'",
    "fixed_point_multiply": "data, multiplier, shift",
    "concatenate": "data, axis",
    "stack": "data, axis",
    "zeros": "shape, dtype",
    "ones": "shape, dtype",
    "invert_permutation": "data",
    # relay.op.reduce
    **dict.fromkeys(("sum", "prod", "max", "min", "mean", "all", "any", "logsumexp"), "data, axis=None, keepdims=False, exclude=False"),
    **dict.fromkeys(("argmax", "argmin"), "data, axis=None, keepdims=False, exclude=False, select_last_index=False"),
    **dict.fromkeys(("variance", "std", "mean_variance", "mean_std"), "data, axis=None, keepdims=False, exclude=False, unbiased=False"),
    **dict.fromkeys(("cumsum", "cumprod"), "data, axis=None, dtype=None, exclusive=None"),
    # relay.op.algorithm
    "sort": "data, axis=-1, is_ascend=1",
    "argsort": "data, axis=-1, is_ascend=1, dtype='int32'",
    "topk": "data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int32'",
    "searchsorted": "sorted_sequence, values, right=False, dtype='int32'",
    # relay.image
    **{
        f"image.resize{n}d": f"data, size, roi=None, layout='{'NC' + 'DHW'[3 - n :]}', method='linear', coordinate_transformation_mode='half_pixel', rounding_method='', cubic_alpha=-0.5, "
        "cubic_exclude=0, extrapolation_value=0.0, out_dtype=None"
        for n in (1, 2, 3)
    },
    "image.crop_and_resize": "data, boxes, box_indices, crop_size, layout, method='bilinear', extrapolation_value=0.0, out_dtype=None",
    "image.dilation2d": "data, weight, strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout='NCHW', kernel_layout='IHW', out_dtype=''",
    "image.affine_grid": "data, target_shape",
    "image.grid_sample": "data, grid, method='bilinear', layout='NCHW', padding_mode='zeros', align_corners=True",
    # relay.vision
    "vision.multibox_prior": "data, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False",
    "vision.multibox_transform_loc": "cls_prob, loc_pred, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2)",
    "vision.yolo_reorg": "data, stride",
    "vision.get_valid_counts": "data, score_threshold, id_index=0, score_index=1",
    "vision.non_max_suppression": "data, valid_count, indices, max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, "
    "return_indices=True, invalid_to_bottom=False",
    "vision.all_class_non_max_suppression": "boxes, scores, max_output_boxes_per_class=-1, iou_threshold=-1.0, score_threshold=-1.0",
    "vision.roi_align": "data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout='NCHW', mode='avg'",
    "vision.roi_pool": "data, rois, pooled_size, spatial_scale, layout='NCHW'",
    # of relay.nn, what is about shapes
    "nn.pad": "data, pad_width, pad_value=0, pad_mode='constant'",
    "nn.mirror_pad": "data, pad_width, mode='SYMMETRIC'",
    "nn.space_to_batch_nd": "data, block_shape, paddings, pad_value=0",
    "nn.batch_to_space_nd": "data, block_shape, crops",
    "nn.depth_to_space": "data, block_size, layout='NCHW', mode='DCR'",
    "nn.space_to_depth": "data, block_size, layout='NCHW'",
    "nn.upsampling": "data, scale_h=1, scale_w=1, layout='NCHW', method='nearest_neighbor', align_corners=False",
    "nn.upsampling3d": "data, scale_d=1, scale_h=1, scale_w=1, layout='NCDHW', method='nearest_neighbor', coordinate_transformation_mode='half_pixel'",
    **{
        f"nn.{kind}_pool{n}d": f"data, pool_size={one}, strides={one}, dilation={one}, padding={(0,) * n}, layout='NC{'DHW'[3 - n :]}', out_layout='', ceil_mode=False"
        + (", count_include_pad=False" if kind == "avg" else "")
        for kind in ("max", "avg")
        for n in (1, 2, 3)
        for one in [(1,) * n]
    },
    **{
        f"nn.{kind}_pool2d_grad": "out_grad, data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='', ceil_mode=False"
        + (", count_include_pad=False" if kind == "avg" else "")
        for kind in ("max", "avg")
    },
    **{
        f"nn.conv{n}d": f"data, weight, strides={(1,) * n}, padding={(0,) * n}, dilation={(1,) * n}, groups=1, channels=None, kernel_size=None, data_layout='NC{'DHW'[3 - n :]}', "
        f"kernel_layout='OI{'DHW'[3 - n :]}', out_layout='', out_dtype=''"
        for n in (1, 2, 3)
    },
    **{f"nn.adaptive_{kind}_pool{n}d": f"data, output_size=None, layout='NC{'DHW'[3 - n :]}', out_layout=''" for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.global_{kind}_pool{n}d": f"data, layout='NC{'DHW'[3 - n :]}', out_layout=''" for kind in ("max", "avg") for n in (1, 2, 3)},
    "nn.deformable_conv2d": "data, offset, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), deformable_groups=1, groups=1, channels=None, kernel_size=None, "
    "data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype=''",
    **dict.fromkeys(
        ("nn.contrib_conv2d_nchwc", "nn.contrib_depthwise_conv2d_nchwc"),
        "data, kernel, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, "
        "kernel_size=None, data_layout='NCHW8c', kernel_layout='OIHW', out_layout='', out_dtype=''",
    ),
    # of relay.nn, the others
    "nn.batch_flatten": "data",
    "nn.batch_matmul": "tensor_a, tensor_b, out_dtype='', transpose_a=False, transpose_b=True",
    "nn.batch_norm": "data, gamma, beta, moving_mean, moving_var, axis=1, epsilon=1e-5, center=True, scale=True",
    "nn.bias_add": "data, bias, axis=1",
    "nn.contrib_dense_pack": "data, weight, weight_layout='NC', units=None, out_dtype=''",
    "nn.cross_entropy": "predictions, targets",
    "nn.correlation": "data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply, layout",
    "nn.cross_entropy_with_logits": "predictions, targets",
    "nn.dense": "data, weight, units=None, out_dtype=''",
    "nn.dilate": "data, strides, dilation_value=0.0",
    "nn.dropout": "data, rate=0.5",
    "nn.dropout_raw": "data, rate=0.5",
    "nn.fast_softmax": "data, axis=-1",
    "nn.fifo_buffer": "data, buffer, axis",
    "nn.group_norm": "data, gamma, beta, num_groups, axis=1, epsilon=1e-5, center=True, scale=True",
    "nn.instance_norm": "data, gamma, beta, axis=1, epsilon=1e-5, center=True, scale=True",
    "nn.layer_norm": "data, gamma, beta, axis=-1, epsilon=1e-5, center=True, scale=True",
    "nn.l2_normalize": "data, eps, axis=None",
    "nn.leaky_relu": "data, alpha",
    "nn.log_softmax": "data, axis=-1",
    "nn.softmax": "data, axis=-1",
    "nn.lrn": "data, size=5, axis=1, bias=2, alpha=1e-5, beta=0.75",
    "nn.matmul": "tensor_a, tensor_b, units=None, out_dtype='', transpose_a=False, transpose_b=False",
    "nn.nll_loss": "predictions, targets, weights, reduction='mean', ignore_index=-100",
    "nn.prelu": "data, alpha, axis=1",
    "nn.relu": "data",
    # relay.op.tensor
    **dict.fromkeys(
        (
            "add",
            "subtract",
            "multiply",
            "divide",
            "floor_divide",
            "floor_mod",
            "mod",
            "power",
            "maximum",
            "minimum",
            "left_shift",
            "right_shift",
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
        ),
        "lhs, rhs",
    ),
    **dict.fromkeys(
        """abs acos acosh asin asinh atan atanh bitwise_not ceil copy cos cosh erf exp floor isfinite isinf isnan log log10 log2 logical_not negative ones_like
                    round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zeros_like""".split(),
        "data",
    ),
    "clip": "a, a_min, a_max",
    "reshape_like": "data, shape_like, lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None",
    "broadcast_to_like": "data, broadcast_type",
    "collapse_sum_like": "data, collapse_type",
    "device_copy": "data, src_device, dst_device",
    "einsum": "data, equation",
    "random.threefry_key": "seed",
    "random.threefry_generate": "key, shape",
    "random.threefry_split": "key",
    "annotation.compiler_begin": "data, compiler",
    "annotation.compiler_end": "data, compiler",
}
# "Not given" is told apart from a dtype by "void"; both are what None asks for.
SAME = [{None, "", "void", NO}, {None, ()}, {None, False}]


@pytest.mark.parametrize("name", list(SIGNATURES))
def test_signature(name):
    function = relay
    for part in name.split("."):
        function = getattr(function, part)
    want = list(inspect.signature(eval(f"lambda {SIGNATURES[name]}: None")).parameters.values())
    got = list(inspect.signature(function).parameters.values())[: len(want)]
    assert [p.name for p in got] == [p.name for p in want]
    for g, w in zip(got, want, strict=True):
        same = (
            w.default is NO
            or g.default == w.default
            or any(isinstance(v, (str, tuple, type(None), type)) and v in s for s in SAME for v in [w.default] if g.default in s)
        )
        assert same, f"`{g.name}` defaults to {g.default!r}, {w.default!r} wanted"
