// SPDX-License-Identifier: Apache-2.0
// Operators that move, select and make elements.
#pragma once

#include <baton/relay/op/extent.h>
#include <baton/relay/op/tensor.h>

namespace baton::relay {

/// A number (an IntImm) or an Array of numbers.
class IntOrInts : public runtime::ObjectRef {
 public:
  using ContainerType = runtime::Object;
  IntOrInts() = default;
  explicit IntOrInts(runtime::ObjectPtr<runtime::Object> n) : ObjectRef(std::move(n)) {}
  explicit IntOrInts(const runtime::ObjectRef& value) : ObjectRef(value) {}
};

}  // namespace baton::relay

namespace baton::runtime {
template <>
struct HasOwnTraits<relay::IntOrInts> : std::true_type {};
template <>
struct ValueTraits<relay::IntOrInts> {
  static std::string Name() { return "int or Array[int]"; }
  static bool Is(const BatonValue& v) { return v.type_code == kBatonInt || v.type_code == kBatonObject; }
  static relay::IntOrInts From(const BatonValue& v) {
    if (v.type_code == kBatonInt) return relay::IntOrInts(PrimExpr(v.v_int64));
    auto ref = ValueTraits<ObjectRef>::From(v);
    if (!ref.as<IntImmNode>() && !ref.as<ArrayObj>()) ThrowValueMismatch("int or Array", v);
    return relay::IntOrInts(ref);
  }
  static void To(const relay::IntOrInts& x, BatonValue* v) { ValueTraits<ObjectRef>::To(x, v); }
};
}  // namespace baton::runtime

namespace baton::relay {

struct ReshapeAttrs : AttrsNode<ReshapeAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReshapeAttrs";
  ExtentArray newshape;
  bool allowzero = false;
  static constexpr void Describe(auto& d) {
    d(F<&ReshapeAttrs::newshape>,
      "Extents; 0 copies data's, -1 is inferred, -2 copies all that remain, -3 merges two, -4 splits one into the next "
      "two.",
      kRequired);
    d(F<&ReshapeAttrs::allowzero>, "Whether 0 means an extent of 0.");
  }
};
struct ReshapeLikeAttrs : AttrsNode<ReshapeLikeAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReshapeLikeAttrs";
  int64_t lhs_begin = 0;
  PrimExpr lhs_end;
  int64_t rhs_begin = 0;
  PrimExpr rhs_end;
  static constexpr void Describe(auto& d) {
    d(F<&ReshapeLikeAttrs::lhs_begin>, "First dimension of lhs that is replaced.");
    d(F<&ReshapeLikeAttrs::lhs_end>, "The one after the last; None: all.");
    d(F<&ReshapeLikeAttrs::rhs_begin>, "First dimension of rhs that is taken.");
    d(F<&ReshapeLikeAttrs::rhs_end>, "The one after the last; None: all.");
  }
};
struct TransposeAttrs : AttrsNode<TransposeAttrs> {
  static constexpr auto _type_key = "relay.attrs.TransposeAttrs";
  Array<int64_t> axes = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&TransposeAttrs::axes>, "Dimension of data for each of the result; None: reversed.");
  }
};
struct SwapAxesAttrs : AttrsNode<SwapAxesAttrs> {
  static constexpr auto _type_key = "relay.attrs.SwapAxesAttrs";
  int64_t axis1 = 0;
  int64_t axis2 = 1;
  static constexpr void Describe(auto& d) {
    d(F<&SwapAxesAttrs::axis1>, "One dimension.", kRequired);
    d(F<&SwapAxesAttrs::axis2>, "The other.", kRequired);
  }
};
struct ExpandDimsAttrs : AttrsNode<ExpandDimsAttrs> {
  static constexpr auto _type_key = "relay.attrs.ExpandDimsAttrs";
  int64_t axis = 0;
  int64_t num_newaxis = 1;
  Array<int64_t> axes = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&ExpandDimsAttrs::axis>, "Where the first new dimension goes, in [-rank - 1, rank + 1).");
    d(F<&ExpandDimsAttrs::num_newaxis>, "How many, of extent 1.", AtLeast(0));
    d(F<&ExpandDimsAttrs::axes>, "Dimensions of the result that are new; if given, the other two do not count.");
  }
};
struct SqueezeAttrs : AttrsNode<SqueezeAttrs> {
  static constexpr auto _type_key = "relay.attrs.SqueezeAttrs";
  Array<int64_t> axis = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&SqueezeAttrs::axis>, "Dimensions of extent 1 to drop; None: all of them.");
  }
};
struct ConcatenateAttrs : AttrsNode<ConcatenateAttrs> {
  static constexpr auto _type_key = "relay.attrs.ConcatenateAttrs";
  int64_t axis = 0;
  static constexpr void Describe(auto& d) { d(F<&ConcatenateAttrs::axis>, "Dimension to join along."); }
};
struct StackAttrs : AttrsNode<StackAttrs> {
  static constexpr auto _type_key = "relay.attrs.StackAttrs";
  int64_t axis = 0;
  static constexpr void Describe(auto& d) { d(F<&StackAttrs::axis>, "Place of the new dimension in the result."); }
};
struct SplitAttrs : AttrsNode<SplitAttrs> {
  static constexpr auto _type_key = "relay.attrs.SplitAttrs";
  IntOrInts indices_or_sections = IntOrInts(PrimExpr(1));
  int64_t axis = 0;
  static constexpr void Describe(auto& d) {
    d(F<&SplitAttrs::indices_or_sections>, "Number of equal parts, or the positions where parts begin (without 0).",
      kRequired);
    d(F<&SplitAttrs::axis>, "Dimension to cut.");
  }
};
struct StridedSliceAttrs : AttrsNode<StridedSliceAttrs> {
  static constexpr auto _type_key = "relay.attrs.StridedSliceAttrs";
  ExtentArray begin;
  ExtentArray end;
  Array<int64_t> strides = {1};
  String slice_mode = "end";
  Array<int64_t> axes = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&StridedSliceAttrs::begin>, "First index of each dimension; counts from the end if negative, is clipped.",
      kRequired);
    d(F<&StridedSliceAttrs::end>,
      "Index after the last, likewise; slice_mode=\"size\": number of elements, -1 for all.", kRequired);
    d(F<&StridedSliceAttrs::strides>, "Steps, not 0; negative ones run backwards; one serves all.");
    d(F<&StridedSliceAttrs::slice_mode>, "\"end\" or \"size\" (strides then count as 1).");
    d(F<&StridedSliceAttrs::axes>, "Dimensions that the numbers are for; None: the first ones.");
  }
};
struct TakeAttrs : AttrsNode<TakeAttrs> {
  static constexpr auto _type_key = "relay.attrs.TakeAttrs";
  int64_t batch_dims = 0;
  PrimExpr axis;
  String mode = "clip";
  static constexpr void Describe(auto& d) {
    d(F<&TakeAttrs::batch_dims>, "Leading dimensions that data and indices share.");
    d(F<&TakeAttrs::axis>, "Dimension to select from; None: of the flattened data.");
    d(F<&TakeAttrs::mode>,
      "Indices out of range: \"clip\", \"wrap\", \"fast\" (as clip), \"negative\" (count from the end, then clip).");
  }
};
struct GatherAttrs : AttrsNode<GatherAttrs> {
  static constexpr auto _type_key = "relay.attrs.GatherAttrs";
  int64_t axis = 0;
  static constexpr void Describe(auto& d) { d(F<&GatherAttrs::axis>, "Dimension that indices replace.", kRequired); }
};
struct GatherNDAttrs : AttrsNode<GatherNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.GatherNDAttrs";
  int64_t batch_dims = 0;
  PrimExpr index_rank;
  bool index_last = false;
  static constexpr void Describe(auto& d) {
    d(F<&GatherNDAttrs::batch_dims>, "Leading dimensions that data and indices share.", AtLeast(0));
    d(F<&GatherNDAttrs::index_rank>, "Length of an index tuple, where the shape does not say it.");
    d(F<&GatherNDAttrs::index_last>, "Whether the last dimension of indices holds the index tuple, not the first.");
  }
};
struct ScatterElementsAttrs : AttrsNode<ScatterElementsAttrs> {
  static constexpr auto _type_key = "relay.attrs.ScatterElementsAttrs";
  int64_t axis = 0;
  String reduction = "update";
  static constexpr void Describe(auto& d) {
    d(F<&ScatterElementsAttrs::axis>, "Dimension that indices replace.");
    d(F<&ScatterElementsAttrs::reduction>, "\"update\", \"add\", \"mul\", \"min\", \"max\" or \"mean\".");
  }
};
struct TileAttrs : AttrsNode<TileAttrs> {
  static constexpr auto _type_key = "relay.attrs.TileAttrs";
  Array<int64_t> reps;
  static constexpr void Describe(auto& d) {
    d(F<&TileAttrs::reps>, "Repetitions of each dimension, aligned to the last.", kRequired, AtLeast(0));
  }
};
struct RepeatAttrs : AttrsNode<RepeatAttrs> {
  static constexpr auto _type_key = "relay.attrs.RepeatAttrs";
  int64_t repeats = 1;
  PrimExpr axis;
  static constexpr void Describe(auto& d) {
    d(F<&RepeatAttrs::repeats>, "How often each element comes in a row.", kRequired, AtLeast(0));
    d(F<&RepeatAttrs::axis>, "Dimension; None: of the flattened data.");
  }
};
struct ReverseAttrs : AttrsNode<ReverseAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReverseAttrs";
  int64_t axis = 0;
  static constexpr void Describe(auto& d) { d(F<&ReverseAttrs::axis>, "Dimension to turn round.", kRequired); }
};
struct ReverseSequenceAttrs : AttrsNode<ReverseSequenceAttrs> {
  static constexpr auto _type_key = "relay.attrs.ReverseSequenceAttrs";
  int64_t seq_axis = 1;
  int64_t batch_axis = 0;
  static constexpr void Describe(auto& d) {
    d(F<&ReverseSequenceAttrs::seq_axis>, "Dimension to turn round.");
    d(F<&ReverseSequenceAttrs::batch_axis>, "Dimension that seq_lengths is for.");
  }
};
struct InitOpAttrs : AttrsNode<InitOpAttrs> {
  static constexpr auto _type_key = "relay.attrs.InitOpAttrs";
  ExtentArray shape = NoInts();
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&InitOpAttrs::shape>, "Extents of the result; not given: a scalar, of full alone.", AtLeast(0));
    d(F<&InitOpAttrs::dtype>, "Dtype of the result; not given: that of the operand, or float32.");
  }
};
struct ArangeAttrs : AttrsNode<ArangeAttrs> {
  static constexpr auto _type_key = "relay.attrs.ArangeAttrs";
  DataType dtype = DataType::Float(32);
  PrimExpr length;
  static constexpr void Describe(auto& d) {
    d(F<&ArangeAttrs::dtype>, "Dtype of the result; void: that of start.");
    d(F<&ArangeAttrs::length>, "Number of elements, where it is an extent; None: as start, stop and step say.");
  }
};
struct EyeAttrs : AttrsNode<EyeAttrs> {
  static constexpr auto _type_key = "relay.attrs.EyeAttrs";
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t k = 0;
  DataType dtype = DataType::Float(32);
  static constexpr void Describe(auto& d) {
    d(F<&EyeAttrs::rows>, "Number of rows.", kRequired, AtLeast(0));
    d(F<&EyeAttrs::cols>, "Number of columns.", kRequired, AtLeast(0));
    d(F<&EyeAttrs::k>, "Which diagonal: 0 the main one, above it if positive.");
    d(F<&EyeAttrs::dtype>, "Dtype of the result.");
  }
};
struct OneHotAttrs : AttrsNode<OneHotAttrs> {
  static constexpr auto _type_key = "relay.attrs.OneHotAttrs";
  int64_t depth = 0;
  int64_t axis = -1;
  DataType dtype;
  static constexpr void Describe(auto& d) {
    d(F<&OneHotAttrs::depth>, "Extent of the new dimension.", kRequired, AtLeast(0));
    d(F<&OneHotAttrs::axis>, "Its place in the result.");
    d(F<&OneHotAttrs::dtype>, "Dtype of the result; not given: that of on_value.");
  }
};
struct LayoutTransformAttrs : AttrsNode<LayoutTransformAttrs> {
  static constexpr auto _type_key = "relay.attrs.LayoutTransformAttrs";
  String src_layout;
  String dst_layout;
  static constexpr void Describe(auto& d) {
    d(F<&LayoutTransformAttrs::src_layout>, "Layout of data: a letter a dimension, `16c` for a part of C.", kRequired);
    d(F<&LayoutTransformAttrs::dst_layout>, "Layout of the result, with the same capital letters.", kRequired);
  }
};
struct ShapeOfAttrs : AttrsNode<ShapeOfAttrs> {
  static constexpr auto _type_key = "relay.attrs.ShapeOfAttrs";
  DataType dtype = DataType::Int(32);
  static constexpr void Describe(auto& d) { d(F<&ShapeOfAttrs::dtype>, "Dtype of the result, an integer one."); }
};
struct SpaceToBatchNDAttrs : AttrsNode<SpaceToBatchNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.SpaceToBatchNDAttrs";
  Array<int64_t> block_shape;
  Array<Array<int64_t>> paddings;
  double pad_value = 0;
  static constexpr void Describe(auto& d) {
    d(F<&SpaceToBatchNDAttrs::block_shape>, "Edges of a block, for the dimensions from 1 on.", kRequired, AtLeast(1));
    d(F<&SpaceToBatchNDAttrs::paddings>, "(before, after) of each of them.", kRequired);
    d(F<&SpaceToBatchNDAttrs::pad_value>, "What the padding holds.");
  }
};
struct BatchToSpaceNDAttrs : AttrsNode<BatchToSpaceNDAttrs> {
  static constexpr auto _type_key = "relay.attrs.BatchToSpaceNDAttrs";
  Array<int64_t> block_shape;
  Array<Array<int64_t>> crops;
  static constexpr void Describe(auto& d) {
    d(F<&BatchToSpaceNDAttrs::block_shape>, "Edges of a block, for the dimensions from 1 on.", kRequired, AtLeast(1));
    d(F<&BatchToSpaceNDAttrs::crops>, "(before, after) to cut of each of them.", kRequired);
  }
};
struct PadAttrs : AttrsNode<PadAttrs> {
  static constexpr auto _type_key = "relay.attrs.PadAttrs";
  Array<Array<int64_t>> pad_width;
  String pad_mode = "constant";
  static constexpr void Describe(auto& d) {
    d(F<&PadAttrs::pad_width>, "(before, after) of each dimension, in elements; negative ones cut.", kRequired);
    d(F<&PadAttrs::pad_mode>, "\"constant\", \"edge\", \"reflect\" (without the edge itself), \"wrap\".");
  }
};
struct SparseToDenseAttrs : AttrsNode<SparseToDenseAttrs> {
  static constexpr auto _type_key = "relay.attrs.SparseToDenseAttrs";
  Array<int64_t> output_shape;
  static constexpr void Describe(auto& d) {
    d(F<&SparseToDenseAttrs::output_shape>, "Extents of the result.", kRequired, AtLeast(0));
  }
};

namespace op {
extern BATON_DLL const Op reverse_reshape, unravel_index, fixed_point_multiply;
extern BATON_DLL const Op reshape, reshape_like, transpose, swapaxes, expand_dims, squeeze, concatenate, stack, split,
    strided_slice, strided_set, slice_like, take, gather, gather_nd, scatter, scatter_add, scatter_elements, scatter_nd,
    tile, repeat, reverse, reverse_sequence, broadcast_to, broadcast_to_like, collapse_sum_like, full, full_like, zeros,
    ones, zeros_like, ones_like, arange, eye, one_hot, layout_transform, shape_of, ndarray_size, meshgrid, trilu,
    matrix_set_diag, space_to_depth, depth_to_space, space_to_batch_nd, batch_to_space_nd, pad, mirror_pad,
    batch_flatten, sequence_mask, sparse_to_dense, col2im, center_crop_pad;
}  // namespace op

}  // namespace baton::relay
