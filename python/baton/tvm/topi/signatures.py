# SPDX-License-Identifier: Apache-2.0
"""Parameters of functions of `topi` whose names, order or defaults are not those of Relay's operators. Each row: the names, the parameters of
topi, and which parameter of Relay's operator each is ("-" for one that has no meaning here)."""

_ROWS = (
    (
        "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp fast_erf fast_exp fast_tanh floor isfinite isinf isnan log log10 log2 logical_not negative "
        "round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc nn.relu",
        "x",
        "data",
    ),
    (
        "add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal left_shift less less_equal logical_and logical_or "
        "logical_xor maximum minimum mod multiply not_equal power right_shift subtract trunc_divide trunc_mod",
        "lhs, rhs",
        "lhs rhs",
    ),
    ("all any max min prod sum", "data, axis=None, keepdims=False", "data axis keepdims"),
    ("argmax argmin", "data, axis=None, keepdims=False, select_last_index=False", "data axis keepdims select_last_index"),
    ("arange", "start, stop=None, step=1, dtype='float32'", "start stop step dtype"),
    ("argsort", "data, valid_count=None, axis=-1, is_ascend=1, dtype='float32'", "data - axis is_ascend dtype"),
    ("cast", "x, dtype, span=None", "data dtype -"),
    ("clip", "x, a_min, a_max", "a a_min a_max"),
    ("concatenate", "a_tuple, axis=0", "data axis"),
    ("cumprod cumsum", "data, axis=None, dtype=None, exclusive=None", "data axis dtype exclusive"),
    ("expand_dims", "a, axis, num_newaxis=1", "data axis num_newaxis"),
    ("fixed_point_multiply", "x, multiplier, shift", "data multiplier shift"),
    ("full_like", "x, fill_value", "data fill_value"),
    ("gather", "data, axis, indices", "data axis indices"),
    ("gather_nd", "a, indices", "data indices"),
    ("layout_transform", "array, src_layout, dst_layout", "data src_layout dst_layout"),
    ("meshgrid", "a_tuple, indexing", "data indexing"),
    ("ndarray_size", "array, dtype='int32'", "data dtype"),
    ("ones_like zeros_like", "x", "data"),
    ("one_hot", "indices, on_value, off_value, depth, axis, dtype", "indices on_value off_value depth axis dtype"),
    ("reinterpret", "x, dtype", "data dtype"),
    ("repeat", "a, repeats, axis", "data repeats axis"),
    ("reshape", "a, newshape", "data newshape"),
    ("reverse_sequence", "a, seq_lengths, seq_axis=1, batch_axis=0", "data seq_lengths seq_axis batch_axis"),
    ("scatter scatter_add", "data, indices, updates, axis=0", "data indices updates axis"),
    ("scatter_nd", "data, indices, updates, mode", "data indices updates mode"),
    ("searchsorted", "sorted_sequence, values, right=False, out_dtype='int64'", "sorted_sequence values right dtype"),
    ("split", "ary, indices_or_sections, axis=0", "data indices_or_sections axis"),
    ("squeeze", "a, axis=None", "data axis"),
    ("stack", "a, axis", "data axis"),
    ("strided_set", "a, v, begin, end, strides=None", "data v begin end strides"),
    ("strided_slice", "a, begin, end, strides=None, axes=None, slice_mode='end'", "data begin end strides axes slice_mode"),
    ("take", "a, indices, axis=None, batch_dims=0, mode='clip'", "data indices axis batch_dims mode"),
    ("tile", "a, reps", "data reps"),
    ("topk", "data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int64'", "data k axis ret_type is_ascend dtype"),
    ("transpose", "a, axes=None", "data axes"),
    ("nn.leaky_relu", "x, alpha", "data alpha"),
    ("nn.log_softmax nn.softmax nn.fast_softmax", "x, axis=-1", "data axis"),
    ("nn.prelu", "x, slope, axis=1", "data alpha axis"),
    ("nn.dilate", "data, strides, dilation_value=0.0, name='DilatedInput'", "data strides dilation_value -"),
    ("nn.layer_norm", "data, gamma, beta, axis, epsilon=1e-05", "data gamma beta axis epsilon"),
    (
        "image.resize1d image.resize2d image.resize3d",
        "data, roi, size, layout=None, method='linear', coordinate_transformation_mode='half_pixel', rounding_method='', bicubic_alpha=-0.5, "
        "bicubic_exclude=0, extrapolation_value=0.0, out_dtype=None, output_shape=None",
        "data roi size layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude extrapolation_value out_dtype -",
    ),
    ("vision.get_valid_counts", "data, score_threshold=0, id_index=0, score_index=1", "data score_threshold id_index score_index"),
)

# Name -> (parameters of topi, parameters of Relay).
SIGNATURES = {name: (given, relay.split()) for names, given, relay in _ROWS for name in names.split()}

__all__ = ["SIGNATURES"]
