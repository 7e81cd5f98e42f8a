// SPDX-License-Identifier: Apache-2.0
// Darknet's reorganisation of pixels.
#include <baton/relay/op/image.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct YoloReorgAttrs : AttrsNode<YoloReorgAttrs> {
  static constexpr auto _type_key = "relay.attrs.YoloReorgAttrs";
  int64_t stride = 1;
  static constexpr void Describe(auto& d) {
    d(F<&YoloReorgAttrs::stride>, "Side of a block, in pixels.", kRequired, AtLeast(1));
  }
};

Type ReorgType(const YoloReorgAttrs& a, const TypeArgs& in) {
  in.Rank(0, 4, "R1");
  if (a.stride > (1 << 20)) in.Fail("R2", "stride is " + Str(a.stride));
  int64_t s = a.stride;
  Shape out = in.shape(0);
  for (int64_t d : {1, 2, 3}) {
    int64_t n = in.dim(0, d), by = d == 1 ? s * s : s;
    if (n >= 0 && n % by != 0)
      in.Fail("R2", "dimension " + Str(d) + " of " + in.Show(0) + " is not divisible by " + Str(by));
    int64_t most = INT64_MAX / (s * s);
    if (d == 1 && n > most) in.Fail("R2", in.Show(0) + " has too many channels");
    const PrimExpr& e = in.shape(0)[d];
    out.Set(d, TypeDim(d == 1 ? e * PrimExpr(s) * PrimExpr(s) : floordiv(e, PrimExpr(s))));
  }
  return TensorType(out, in.dtype(0));
}
/// Element (k, j, i) of an image with data's extents, in row-major order, is that of the enlarged image with C / s^2
/// channels at channel k % (C / s^2), row j * s + offset / s, column i * s + offset % s, where offset = k / (C / s^2).
/// Both are read as data's memory.
Tensor LowerReorg(const YoloReorgAttrs& a, const Tensors& in, const Type& out_type) {
  const Tensor& x = in[0];
  const Shape& shape = x.shape();
  PrimExpr s = a.stride, few = floordiv(shape[1], PrimExpr(a.stride * a.stride));
  Shape image{shape[1], shape[2], shape[3]}, wide{few, shape[2] * s, shape[3] * s};
  const Shape& out = AsTensor(out_type)->shape;
  return topi::Pick(
      out, x,
      [&](Indices i) {
        Shape at = topi::Unravel(topi::Ravel(Shape{i[1], i[2], i[3]}, Shape{out[1], out[2], out[3]}), image);
        PrimExpr offset = floordiv(at[0], few);
        Shape from{floormod(at[0], few), at[1] * s + floordiv(offset, s), at[2] * s + floormod(offset, s)};
        Shape place = topi::Unravel(topi::Ravel(from, wide), image);
        return Shape{i[0], place[0], place[1], place[2]};
      },
      "yolo_reorg");
}

}  // namespace

const Op op::yolo_reorg = DefineOp({
    .name = "vision.yolo_reorg",
    .doc = "Darknet's reorganisation: blocks of pixels become channels, in Darknet's order.",
    .inputs = {{"data", "(N, C, H, W). R1: rank 4. R2: stride divides height and width, its square the channels."}},
    .output = "(N, C * stride ** 2, H / stride, W / stride).",
    .attrs = TypeOf<YoloReorgAttrs>,
    .type_rel = Rel<"vision.yolo_reorg", ReorgType>,
    .lower = LowerReorg,
    .gradient = gradient::SelectBack,
    .pattern = OpPattern::kInjective,
    .source = "Darknet",
});

}  // namespace baton::relay
