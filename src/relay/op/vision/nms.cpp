// SPDX-License-Identifier: Apache-2.0
// Boxes as rows of numbers (class, score, four corners in any order): those that count, and the best of those that
// overlap. On the host.
#include <baton/relay/op/image.h>
#include <host/functions.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct GetValidCountsAttrs : AttrsNode<GetValidCountsAttrs> {
  static constexpr auto _type_key = "relay.attrs.GetValidCountsAttrs";
  int64_t id_index = 0;
  int64_t score_index = 1;
  static constexpr void Describe(auto& d) {
    d(F<&GetValidCountsAttrs::id_index>, "Place of the class among a box's numbers; negative: there is none.");
    d(F<&GetValidCountsAttrs::score_index>, "Place of the score.", AtLeast(0));
  }
};

struct NonMaximumSuppressionAttrs : AttrsNode<NonMaximumSuppressionAttrs> {
  static constexpr auto _type_key = "relay.attrs.NonMaximumSuppressionAttrs";
  bool force_suppress = false;
  int64_t top_k = -1;
  int64_t coord_start = 2;
  int64_t score_index = 1;
  int64_t id_index = 0;
  bool return_indices = true;
  bool invalid_to_bottom = false;
  static constexpr void Describe(auto& d) {
    d(F<&NonMaximumSuppressionAttrs::force_suppress>, "Whether boxes of other classes suppress each other, too.");
    d(F<&NonMaximumSuppressionAttrs::top_k>, "How many of the best are looked at; 0 or less: all.");
    d(F<&NonMaximumSuppressionAttrs::coord_start>, "Place of the first of four coordinates among a box's numbers.",
      AtLeast(0));
    d(F<&NonMaximumSuppressionAttrs::score_index>, "Place of the score.", AtLeast(0));
    d(F<&NonMaximumSuppressionAttrs::id_index>, "Place of the class; negative: there is none.");
    d(F<&NonMaximumSuppressionAttrs::return_indices>, "Whether places of boxes are wanted, not the boxes.");
    d(F<&NonMaximumSuppressionAttrs::invalid_to_bottom>, "Whether the boxes that stay come first.");
  }
};

void Boxes(const TypeArgs& in, const char* rule) {
  in.Floating(0, "R1");
  in.Rank(0, 3, rule);
}
void OneNumber(const TypeArgs& in, int i, const char* rule) {
  in.Number(i, rule);
  if (int64_t n = ProductOf(Dims(in.shape(i))); n >= 0 && n != 1)
    in.Fail(rule, in.Show(i) + ", where one number is wanted");
}
/// Checks that a row has an element at `place`.
void Within(const TypeArgs& in, int64_t place, const char* what, const char* rule) {
  if (int64_t n = in.dim(0, 2); place >= (n < 0 ? 1 << 20 : n))
    in.Fail(rule, std::string(what) + " is " + Str(place) + " for " + in.Show(0));
}

// ---- get_valid_counts
Type ValidCountsType(const GetValidCountsAttrs& a, const TypeArgs& in) {
  Boxes(in, "R2");
  OneNumber(in, 1, "R3");
  Within(in, a.score_index, "score_index", "R4");
  Within(in, a.id_index, "id_index", "R4");
  DataType i32 = DataType::Int(32);
  const Shape& s = in.shape(0);
  return TupleType(Array<Type>{TensorType(Shape{s[0]}, i32), in.type(0), TensorType(Shape{s[0], s[1]}, i32)});
}

// ---- non_max_suppression
Type NMSType(const NonMaximumSuppressionAttrs& a, const TypeArgs& in) {
  Boxes(in, "R2");
  in.Integral(1, "R1");
  in.Integral(2, "R1");
  in.Rank(1, 1, "R2");
  in.Rank(2, 2, "R2");
  if (!in.Same(in.shape(0)[0], in.shape(1)[0]) || !in.Same(in.shape(0)[0], in.shape(2)[0]) ||
      !in.Same(in.shape(0)[1], in.shape(2)[1]))
    in.Fail("R2", in.Show(1) + " and " + in.Show(2) + " do not fit " + in.Show(0));
  OneNumber(in, 3, "R3");
  OneNumber(in, 4, "R3");
  Within(in, a.score_index, "score_index", "R4");
  Within(in, a.id_index, "id_index", "R4");
  if (a.coord_start > (int64_t{1} << 20)) in.Fail("R4", "coord_start is " + Str(a.coord_start));
  Within(in, a.coord_start + 3, "coord_start + 3", "R4");
  if (!a.return_indices) return in.type(0);
  DataType i32 = DataType::Int(32);
  const Shape& s = in.shape(0);
  return TupleType(Array<Type>{TensorType(Shape{s[0], s[1]}, i32), TensorType(Shape{s[0], PrimExpr(1)}, i32)});
}

}  // namespace

const Op op::get_valid_counts = DefineOp({
    .name = "vision.get_valid_counts",
    .doc = "Boxes above a score, moved to the front.",
    .inputs = {{"data", "(batch, boxes, numbers of a box). R1: floating dtype. R2: rank 3."},
               {"score_threshold", "R3: one number; boxes with no higher score go."}},
    .output = "A tuple: how many, int32; `data` with -1 behind them; their places, int32, -1 behind. R4: id_index and "
              "score_index are places in a box.",
    .attrs = TypeOf<GetValidCountsAttrs>,
    .type_rel = Rel<"vision.get_valid_counts", ValidCountsType>,
    .host = host::ValidCounts,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});
const Op op::non_max_suppression = DefineOp({
    .name = "vision.non_max_suppression",
    .doc = "Boxes by falling score, without those that overlap a better one of their class by a share or more.",
    .inputs = {{"data", "(batch, boxes, numbers of a box). R1: floating dtype. R2: rank 3."},
               {"valid_count", "How many boxes count. R1: integers. R2: (batch,)."},
               {"indices", "What a box is called in the result. R1: integers. R2: (batch, boxes)."},
               {"max_output_size", "R3: one number; 0 or less: all."},
               {"iou_threshold", "R3: one number; intersection / union from which a box goes."}},
    .output =
        "(indices, how many), both int32, -1 behind the last; or with return_indices=False the boxes, -1 where one "
        "went. R4: id_index, score_index and coord_start are places in a box.",
    .attrs = TypeOf<NonMaximumSuppressionAttrs>,
    .type_rel = Rel<"vision.non_max_suppression", NMSType>,
    .host = host::NonMaxSuppression,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});

}  // namespace baton::relay
