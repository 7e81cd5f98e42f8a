# SPDX-License-Identifier: Apache-2.0
"""PY: functions of operators take what Relay's do, in its order, with its defaults. What Baton adds comes behind."""

import inspect

import pytest

from baton import relay

NO = inspect.Parameter.empty
SIGNATURES = {
    # relay.op.transform
    "cast": "data, dtype", "cast_like": "data, dtype_like", "reinterpret": "data, dtype", "expand_dims": "data, axis, num_newaxis=1", "transpose": "data, axes=None",
    "squeeze": "data, axis=None", "reshape": "data, newshape, allowzero=False", "argwhere": "condition", "scatter": "data, indices, updates, axis", "scatter_add": "data, indices, updates, axis",
    "scatter_nd": "data, indices, updates, mode='update'", "take": "data, indices, axis=None, batch_dims=0, mode='clip'", "full": "fill_value, shape=(), dtype=''",
    "full_like": "data, fill_value", "arange": "start, stop=None, step=None, dtype='float32'", "meshgrid": "data, indexing='ij'", "repeat": "data, repeats, axis", "tile": "data, reps",
    "reverse": "data, axis", "reverse_sequence": "data, seq_lengths, seq_axis=1, batch_axis=0", "where": "condition, x, y", "broadcast_to": "data, shape",
    "collapse_sum_to": "data, shape", "split": "data, indices_or_sections, axis=0", "strided_slice": "data, begin, end, strides=None, axes=None, slice_mode='end'",
    "strided_set": "data, v, begin, end, strides=None", "slice_like": "data, shape_like, axes=None", "layout_transform": "data, src_layout, dst_layout",
    "reverse_reshape": "data, newshape", "gather": "data, axis, indices", "gather_nd": "data, indices, batch_dims=0, index_rank=None",
    "sequence_mask": "data, valid_length, mask_value=0, axis=0", "one_hot": "indices, on_value, off_value, depth, axis, dtype", "unravel_index": "indices, shape",
    "sparse_to_dense": "sparse_indices, output_shape, sparse_values, default_value=0", "matrix_set_diag": "data, diagonal, k=0, align='RIGHT_LEFT'", "adv_index": "inputs",
    "segment_sum": "data, segment_ids, num_segments=None", "unique": "data, is_sorted=True, return_counts=False", "shape_of": "data, dtype='int32'", "ndarray_size": "data, dtype='int32'",
    "fixed_point_multiply": "data, multiplier, shift", "concatenate": "data, axis", "stack": "data, axis", "zeros": "shape, dtype", "ones": "shape, dtype", "invert_permutation": "data",
    # relay.op.reduce
    **dict.fromkeys(("sum", "prod", "max", "min", "mean", "all", "any", "logsumexp"), "data, axis=None, keepdims=False, exclude=False"),
    **dict.fromkeys(("argmax", "argmin"), "data, axis=None, keepdims=False, exclude=False, select_last_index=False"),
    **dict.fromkeys(("variance", "std", "mean_variance", "mean_std"), "data, axis=None, keepdims=False, exclude=False, unbiased=False"),
    **dict.fromkeys(("cumsum", "cumprod"), "data, axis=None, dtype=None, exclusive=None"),
    # relay.op.algorithm
    "sort": "data, axis=-1, is_ascend=1", "argsort": "data, axis=-1, is_ascend=1, dtype='int32'", "topk": "data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int32'",
    "searchsorted": "sorted_sequence, values, right=False, dtype='int32'",
    # relay.image
    **{f"image.resize{n}d": f"data, size, roi=None, layout='{'NC' + 'DHW'[3 - n:]}', method='linear', coordinate_transformation_mode='half_pixel', rounding_method='', cubic_alpha=-0.5, "
       "cubic_exclude=0, extrapolation_value=0.0, out_dtype=None" for n in (1, 2, 3)},
    "image.crop_and_resize": "data, boxes, box_indices, crop_size, layout, method='bilinear', extrapolation_value=0.0, out_dtype=None",
    "image.dilation2d": "data, weight, strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout='NCHW', kernel_layout='IHW', out_dtype=''", "image.affine_grid": "data, target_shape",
    "image.grid_sample": "data, grid, method='bilinear', layout='NCHW', padding_mode='zeros', align_corners=True",
    # relay.vision
    "vision.multibox_prior": "data, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False",
    "vision.multibox_transform_loc": "cls_prob, loc_pred, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2)",
    "vision.yolo_reorg": "data, stride",
    "vision.get_valid_counts": "data, score_threshold, id_index=0, score_index=1",
    "vision.non_max_suppression": "data, valid_count, indices, max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, "
    "return_indices=True, invalid_to_bottom=False",
    "vision.all_class_non_max_suppression": "boxes, scores, max_output_boxes_per_class=-1, iou_threshold=-1.0, score_threshold=-1.0",
    "vision.roi_align": "data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout='NCHW', mode='avg'", "vision.roi_pool": "data, rois, pooled_size, spatial_scale, layout='NCHW'",
    # of relay.nn, what is about shapes
    "nn.pad": "data, pad_width, pad_value=0, pad_mode='constant'", "nn.mirror_pad": "data, pad_width, mode='SYMMETRIC'", "nn.space_to_batch_nd": "data, block_shape, paddings, pad_value=0",
    "nn.batch_to_space_nd": "data, block_shape, crops", "nn.depth_to_space": "data, block_size, layout='NCHW', mode='DCR'", "nn.space_to_depth": "data, block_size, layout='NCHW'",
    "nn.upsampling": "data, scale_h=1, scale_w=1, layout='NCHW', method='nearest_neighbor', align_corners=False",
    "nn.upsampling3d": "data, scale_d=1, scale_h=1, scale_w=1, layout='NCDHW', method='nearest_neighbor', coordinate_transformation_mode='half_pixel'",
    "annotation.compiler_begin": "data, compiler", "annotation.compiler_end": "data, compiler",
}
# "Not given" is told apart from a dtype by "void"; both are what None asks for.
SAME = [{None, "", "void", NO}, {None, ()}, {None, False}]


@pytest.mark.parametrize("name", list(SIGNATURES))
def test_signature(name):
    function = relay
    for part in name.split("."):
        function = getattr(function, part)
    want = list(inspect.signature(eval(f"lambda {SIGNATURES[name]}: None")).parameters.values())
    got = list(inspect.signature(function).parameters.values())[:len(want)]
    assert [p.name for p in got] == [p.name for p in want]
    for g, w in zip(got, want, strict=True):
        same = w.default is NO or g.default == w.default or any(isinstance(v, (str, tuple, type(None), type)) and v in s for s in SAME for v in [w.default] if g.default in s)
        assert same, f"`{g.name}` defaults to {g.default!r}, {w.default!r} wanted"
