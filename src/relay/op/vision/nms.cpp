// SPDX-License-Identifier: Apache-2.0
// Boxes as rows of numbers (class, score, four corners in any order): those that count, and the best of those that
// overlap. On the host.
#include <baton/relay/op/image.h>

#include <algorithm>

#include "../gradient.h"
#include "../host.h"

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
double One(const NDArray& a, const char* op) {
  if (a.numel() != 1) throw RuntimeError(std::string(op) + ": an operand is no single number");
  return a.GetDouble(0);
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
NDArrays HostValidCounts(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<GetValidCountsAttrs>(attrs);
  const NDArray& x = in[0];
  int64_t batch = x.shape()[0], n = x.shape()[1], k = x.shape()[2];
  double least = One(in[1], "vision.get_valid_counts");
  NDArray counts = NDArray::Empty({batch}, DataType::Int(32)), out = NDArray::Empty(x.shape(), x.dtype());
  NDArray places = NDArray::Empty({batch, n}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t i = 0; i < batch * n; ++i) places.SetInt(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = (b * n + i) * k;
      if (!(x.GetDouble(row + a.score_index) > least) || (a.id_index >= 0 && !(x.GetDouble(row + a.id_index) >= 0)))
        continue;
      for (int64_t c = 0; c < k; ++c) CopyElement(x, row + c, out, (b * n + found) * k + c);
      places.SetInt(b * n + found, i);
      ++found;
    }
    counts.SetInt(b, found);
  }
  return {counts, out, places};
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
double Overlap(const NDArray& x, int64_t p, int64_t q) {
  double low[2][2], high[2][2];
  for (int box = 0; box < 2; ++box) {
    for (int d = 0; d < 2; ++d) {
      double u = x.GetDouble((box ? q : p) + d), v = x.GetDouble((box ? q : p) + d + 2);
      low[box][d] = std::min(u, v), high[box][d] = std::max(u, v);
    }
  }
  double common = 1, first = 1, second = 1;
  for (int d = 0; d < 2; ++d) {
    common *= std::max(0.0, std::min(high[0][d], high[1][d]) - std::max(low[0][d], low[1][d]));
    first *= high[0][d] - low[0][d];
    second *= high[1][d] - low[1][d];
  }
  double all = first + second - common;
  return all > 0 ? common / all : 0;
}
NDArrays HostNMS(const Attrs& attrs, const NDArrays& in) {
  const auto& a = AttrsAs<NonMaximumSuppressionAttrs>(attrs);
  const NDArray &x = in[0], &indices = in[2];
  int64_t batch = x.shape()[0], n = x.shape()[1], k = x.shape()[2];
  double limit = One(in[3], "vision.non_max_suppression"), threshold = One(in[4], "vision.non_max_suppression");
  int64_t most = limit > 0 ? static_cast<int64_t>(std::min(limit, 1e15)) : n;
  NDArray out = NDArray::Empty(x.shape(), x.dtype()), places = NDArray::Empty({batch, n}, DataType::Int(32));
  NDArray counts = NDArray::Empty({batch, 1}, DataType::Int(32));
  for (int64_t i = 0, all = out.numel(); i < all; ++i) out.SetDouble(i, -1);
  for (int64_t i = 0; i < batch * n; ++i) places.SetInt(i, -1);
  for (int64_t b = 0; b < batch; ++b) {
    int64_t valid = std::clamp<int64_t>(in[1].GetInt(b), 0, n);
    auto row = [&](int64_t i) { return (b * n + i) * k; };
    std::vector<int64_t> order, kept;
    for (int64_t i = 0; i < valid; ++i) {
      if (a.id_index < 0 || x.GetDouble(row(i) + a.id_index) >= 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) {
      return x.GetDouble(row(p) + a.score_index) > x.GetDouble(row(q) + a.score_index);
    });
    if (a.top_k > 0 && a.top_k < static_cast<int64_t>(order.size())) order.resize(a.top_k);
    for (size_t at = 0; at < order.size() && static_cast<int64_t>(kept.size()) < most; ++at) {
      int64_t i = order[at];
      bool free = true;
      for (int64_t m : kept) {
        bool rivals =
            a.force_suppress || a.id_index < 0 || x.GetDouble(row(i) + a.id_index) == x.GetDouble(row(m) + a.id_index);
        free = free && !(rivals && Overlap(x, row(i) + a.coord_start, row(m) + a.coord_start) >= threshold);
      }
      if (!free) continue;
      int64_t to = a.invalid_to_bottom ? static_cast<int64_t>(kept.size()) : static_cast<int64_t>(at);
      for (int64_t c = 0; c < k; ++c) CopyElement(x, row(i) + c, out, row(to) + c);
      places.SetInt(b * n + static_cast<int64_t>(kept.size()), indices.GetInt(b * n + i));
      kept.push_back(i);
    }
    counts.SetInt(b, static_cast<int64_t>(kept.size()));
  }
  return a.return_indices ? NDArrays{places, counts} : NDArrays{out};
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
    .host = HostValidCounts,
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
    .host = HostNMS,
    .gradient = NoGradient(gradient::kComparesBoxes),
    .source = "Relay",
});

}  // namespace baton::relay
