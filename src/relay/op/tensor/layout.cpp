// SPDX-License-Identifier: Apache-2.0
// Operators that move elements by blocks: layouts, space and depth, space and batch.
#include <baton/relay/op/make.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/layout.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../gradient.h"
#include "../qnn/integers.h"

namespace baton::relay {
namespace {

struct SubPixelAttrs : AttrsNode<SubPixelAttrs> {
  static constexpr auto _type_key = "relay.attrs.SubPixelAttrs";
  int64_t block_size = 1;
  String layout = "NCHW";
  String mode = "DCR";
  static constexpr void Describe(auto& d) {
    d(F<&SubPixelAttrs::block_size>, "Edge of a block, in elements.", kRequired, AtLeast(1));
    d(F<&SubPixelAttrs::layout>, "\"NCHW\" or \"NHWC\".");
    d(F<&SubPixelAttrs::mode>, "Order of the channels: \"DCR\" block then channel, \"CRD\" channel then block.");
  }
};

using runtime::Checked;

// ---- layout_transform
Type LayoutTransformType(const LayoutTransformAttrs& a, const TypeArgs& in) {
  auto from = topi::ParseLayout(a.src_layout.view(), in.op()), to = topi::ParseLayout(a.dst_layout.view(), in.op());
  if (static_cast<int64_t>(from.size()) != in.ndim(0)) {
    in.Fail("R1", "src_layout \"" + a.src_layout.str() + "\" has " + Str(from.size()) + " dimensions, " + in.Show(0) +
                      " has " + Str(in.ndim(0)));
  }
  size_t axes = 0, back = 0;
  for (const auto& d : from) axes += d.factor == 0;
  for (const auto& d : to) {
    back += d.factor == 0;
    if (topi::FindAxis(from, d.axis) < 0)
      in.Fail("R2",
              "layouts \"" + a.src_layout.str() + "\" and \"" + a.dst_layout.str() + "\" differ in their letters");
  }
  if (axes != back)
    in.Fail("R2", "layouts \"" + a.src_layout.str() + "\" and \"" + a.dst_layout.str() + "\" differ in their letters");
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d].factor && !in.Same(in.shape(0)[static_cast<int64_t>(d)], PrimExpr(from[d].factor))) {
      in.Fail("R3", "dimension " + Str(d) + " of " + in.Show(0) + " is not " + Str(from[d].factor) +
                        ", as src_layout \"" + a.src_layout.str() + "\" has it");
    }
  }
  // Unknown extents stay unknown.
  Shape out;
  for (const PrimExpr& e : topi::LayoutShape(in.shape(0), from, to)) out.push_back(TypeDim(e));
  return TensorType(out, in.dtype(0));
}
Tensor LowerLayoutTransform(const LayoutTransformAttrs& a, const Tensors& in) {
  return topi::ChangeLayout(in[0], topi::ParseLayout(a.src_layout.view(), "layout_transform"),
                            topi::ParseLayout(a.dst_layout.view(), "layout_transform"));
}

// ---- space_to_depth, depth_to_space
struct Places {
  int64_t c, h, w;
};
Places PlacesOf(const SubPixelAttrs& a, const TypeArgs& in) {
  in.Rank(0, 4, "R1");
  if (a.layout != "NCHW" && a.layout != "NHWC")
    in.Fail("R2", "layout is \"" + a.layout.str() + "\"; it is \"NCHW\" or \"NHWC\"");
  if (a.mode != "DCR" && a.mode != "CRD") in.Fail("R2", "mode is \"" + a.mode.str() + "\"; it is \"DCR\" or \"CRD\"");
  return a.layout == "NCHW" ? Places{1, 2, 3} : Places{3, 1, 2};
}
PrimExpr Divided(const TypeArgs& in, int64_t d, int64_t by) {
  int64_t n = in.dim(0, d);
  if (n >= 0 && n % by != 0)
    in.Fail("R3", "dimension " + Str(d) + " of " + in.Show(0) + " is not divisible by " + Str(by));
  return TypeDim(floordiv(in.shape(0)[d], PrimExpr(by)));
}
PrimExpr Multiplied(const TypeArgs& in, int64_t d, int64_t by) {
  int64_t n = in.dim(0, d);
  return n >= 0 ? PrimExpr(int64_t{Checked(n) * by}) : TypeDim(in.shape(0)[d] * PrimExpr(by));
}
Type DepthToSpaceType(const SubPixelAttrs& a, const TypeArgs& in) {
  Places p = PlacesOf(a, in);
  Shape out = in.shape(0);
  out.Set(p.c, Divided(in, p.c, Checked(a.block_size) * a.block_size));
  for (int64_t d : {p.h, p.w}) out.Set(d, Multiplied(in, d, a.block_size));
  return TensorType(out, in.dtype(0));
}
Tensor LowerDepthToSpace(const SubPixelAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Places p = a.layout == "NCHW" ? Places{1, 2, 3} : Places{3, 1, 2};
  PrimExpr b = a.block_size, bb = a.block_size * a.block_size;
  Shape out = x.shape();
  out.Set(p.c, floordiv(x.shape()[p.c], bb));
  for (int64_t d : {p.h, p.w}) out.Set(d, x.shape()[d] * b);
  return topi::Pick(
      out, x,
      [&](Indices i) {
        PrimExpr block = floormod(i[p.h], b) * b + floormod(i[p.w], b);
        Shape at = i;
        at.Set(p.c, a.mode == "DCR" ? block * out[p.c] + i[p.c] : i[p.c] * bb + block);
        at.Set(p.h, floordiv(i[p.h], b));
        at.Set(p.w, floordiv(i[p.w], b));
        return at;
      },
      "depth_to_space");
}
Type SpaceToDepthType(const SubPixelAttrs& a, const TypeArgs& in) {
  Places p = PlacesOf(a, in);
  Shape out = in.shape(0);
  out.Set(p.c, Multiplied(in, p.c, Checked(a.block_size) * a.block_size));
  for (int64_t d : {p.h, p.w}) out.Set(d, Divided(in, d, a.block_size));
  return TensorType(out, in.dtype(0));
}
Tensor LowerSpaceToDepth(const SubPixelAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Places p = a.layout == "NCHW" ? Places{1, 2, 3} : Places{3, 1, 2};
  PrimExpr b = a.block_size, bb = a.block_size * a.block_size, c = x.shape()[p.c];
  Shape out = x.shape();
  out.Set(p.c, c * bb);
  for (int64_t d : {p.h, p.w}) out.Set(d, floordiv(x.shape()[d], b));
  return topi::Pick(
      out, x,
      [&](Indices i) {
        PrimExpr block = a.mode == "DCR" ? floordiv(i[p.c], c) : floormod(i[p.c], bb);
        Shape at = i;
        at.Set(p.c, a.mode == "DCR" ? floormod(i[p.c], c) : floordiv(i[p.c], bb));
        at.Set(p.h, i[p.h] * b + floordiv(block, b));
        at.Set(p.w, i[p.w] * b + floormod(block, b));
        return at;
      },
      "space_to_depth");
}

// ---- space_to_batch_nd, batch_to_space_nd
void CheckPairs(const TypeArgs& in, const Array<int64_t>& block, const Array<Array<int64_t>>& pairs, const char* what) {
  bool fits = block.size() == pairs.size() && static_cast<int64_t>(block.size()) + 1 <= in.ndim(0);
  for (const Array<int64_t>& p : pairs) fits = fits && p.size() == 2 && p[0] >= 0 && p[1] >= 0;
  if (!fits)
    in.Fail("R1", std::string("block_shape has ") + Str(block.size()) + " entries and " + what + " " +
                      Str(pairs.size()) + ": they are for dimensions from 1 on, pairs of numbers >= 0");
}
Type SpaceToBatchType(const SpaceToBatchNDAttrs& a, const TypeArgs& in) {
  CheckPairs(in, a.block_shape, a.paddings, "paddings");
  Shape out = in.shape(0);
  int64_t n = in.dim(0, 0), blocks = 1;
  for (size_t k = 0; k < a.block_shape.size(); ++k) {
    int64_t e = in.dim(0, k + 1), b = a.block_shape[k], padded = -1;
    if (e >= 0) padded = Checked(e) + a.paddings[k][0] + a.paddings[k][1];
    if (padded >= 0 && padded % b != 0)
      in.Fail("R2", "dimension " + Str(k + 1) + " of " + in.Show(0) + ", padded to " + Str(padded) +
                        ", is not divisible by " + Str(b));
    const PrimExpr& extent = in.shape(0)[static_cast<int64_t>(k) + 1];
    if (padded < 0 && !extent.as<tir::AnyNode>()) {
      const PrimExpr all = TypeDim(extent + PrimExpr(a.paddings[k][0] + a.paddings[k][1]));
      out.Set(k + 1, TypeDim(floordiv(all, PrimExpr(b))));
      in.Assume(TypeDim(out[static_cast<int64_t>(k) + 1] * PrimExpr(b)), all);
    } else {
      out.Set(k + 1, MakeDim(padded < 0 ? -1 : padded / b));
    }
    if (n >= 0) n = Checked(n) * b;
    blocks = Checked(blocks) * b;
  }
  const PrimExpr& batch = in.shape(0)[0];
  out.Set(0, n >= 0 || batch.as<tir::AnyNode>() ? MakeDim(n) : TypeDim(batch * PrimExpr(blocks)));
  return TensorType(out, in.dtype(0));
}
Tensor LowerSpaceToBatch(const SpaceToBatchNDAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Shape out = x.shape(), blocks;
  PrimExpr n = x.shape()[0];
  for (size_t k = 0; k < a.block_shape.size(); ++k) {
    PrimExpr b = a.block_shape[k];
    blocks.push_back(b);
    out.Set(k + 1, floordiv(x.shape()[k + 1] + PrimExpr(a.paddings[k][0] + a.paddings[k][1]), b));
  }
  out.Set(0, n * topi::Product(blocks));
  return te::Compute(
      out,
      [&](Indices i) {
        Shape in_block = topi::Unravel(floordiv(i[0], n), blocks), at = i;
        PrimExpr inside = tir::make_int(DataType::Bool(), 1);
        at.Set(0, floormod(i[0], n));
        for (size_t k = 0; k < a.block_shape.size(); ++k) {
          PrimExpr j = i[k + 1] * blocks[k] + in_block[k] - PrimExpr(a.paddings[k][0]);
          inside = inside && j >= PrimExpr(0) && j < x.shape()[k + 1];
          at.Set(k + 1, j);
        }
        return if_then_else(inside, x(at), tir::make_const(x.dtype(), a.pad_value));
      },
      "space_to_batch_nd");
}
Type BatchToSpaceType(const BatchToSpaceNDAttrs& a, const TypeArgs& in) {
  CheckPairs(in, a.block_shape, a.crops, "crops");
  Shape out = in.shape(0);
  int64_t n = in.dim(0, 0);
  for (size_t k = 0; k < a.block_shape.size(); ++k) {
    int64_t e = in.dim(0, k + 1), b = a.block_shape[k], cut = -1;
    if (e >= 0) cut = Checked(e) * b - a.crops[k][0] - a.crops[k][1];
    if (e >= 0 && cut < 0)
      in.Fail("R2", "crops " + ShowInts(ToInts(a.crops[k])) + " are more than dimension " + Str(k + 1) + " has");
    if (n >= 0 && n % b != 0)
      in.Fail("R2",
              "the batch of " + in.Show(0) + " is not divisible by block_shape " + ShowInts(ToInts(a.block_shape)));
    out.Set(k + 1, MakeDim(cut));
    n = n < 0 ? -1 : n / b;
  }
  out.Set(0, MakeDim(n));
  return TensorType(out, in.dtype(0));
}
Tensor LowerBatchToSpace(const BatchToSpaceNDAttrs& a, const Tensors& in) {
  const Tensor& x = in[0];
  Shape out = x.shape(), blocks;
  for (size_t k = 0; k < a.block_shape.size(); ++k) {
    PrimExpr b = a.block_shape[k];
    blocks.push_back(b);
    out.Set(k + 1, x.shape()[k + 1] * b - PrimExpr(a.crops[k][0] + a.crops[k][1]));
  }
  PrimExpr n = floordiv(x.shape()[0], topi::Product(blocks));
  out.Set(0, n);
  return topi::Pick(
      out, x,
      [&](Indices i) {
        Shape at = i, in_block;
        for (size_t k = 0; k < a.block_shape.size(); ++k) {
          PrimExpr j = i[k + 1] + PrimExpr(a.crops[k][0]);
          in_block.push_back(floormod(j, blocks[k]));
          at.Set(k + 1, floordiv(j, blocks[k]));
        }
        at.Set(0, topi::Ravel(in_block, blocks) * n + i[0]);
        return at;
      },
      "batch_to_space_nd");
}

Op DefineBlocks(const char* name, const char* doc, const char* input, const char* output, const char* (*attrs)(),
                TypeRelationFn rel, LowerFn lower, OpGradient gradient, const char* source,
                const OpTraits& traits = {}) {
  return DefineOp({.name = name,
                   .doc = doc,
                   .inputs = {{"data", input}},
                   .output = output,
                   .attrs = attrs,
                   .type_rel = rel,
                   .lower = lower,
                   .gradient = gradient,
                   .pattern = OpPattern::kInjective,
                   .source = source,
                   .traits = traits});
}

}  // namespace

namespace gradient {
namespace {

Grads SpaceToBatchBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<SpaceToBatchNDAttrs>();
  return {MakeCall<BatchToSpaceNDAttrs>(op::batch_to_space_nd, {grad}, [&](BatchToSpaceNDAttrs* b) {
    b->block_shape = a.block_shape, b->crops = a.paddings;
  })};
}
Grads BatchToSpaceBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<BatchToSpaceNDAttrs>();
  return {MakeCall<SpaceToBatchNDAttrs>(op::space_to_batch_nd, {grad}, [&](SpaceToBatchNDAttrs* b) {
    b->block_shape = a.block_shape, b->paddings = a.crops;
  })};
}
Grads SubPixelBack(const Call& call, const Expr& grad, const Op& op) {
  // space_to_depth has no other order than "DCR".
  if (AttrsAs<SubPixelAttrs>(call->attrs).mode != "DCR") return SelectBack(call, grad);
  return {MakeCall(op, {grad}, call->attrs)};
}
Grads DepthToSpaceBack(const Call& call, const Expr& grad) { return SubPixelBack(call, grad, op::space_to_depth); }
Grads SpaceToDepthBack(const Call& call, const Expr& grad) { return SubPixelBack(call, grad, op::depth_to_space); }
Grads LayoutTransformBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<LayoutTransformAttrs>();
  Ints from = Dims(at.type(0)->shape), to = Dims(at.out()->shape);
  // A tail that was filled up cannot be told from the layouts alone.
  if (ProductOf(from) < 0 || ProductOf(from) != ProductOf(to)) return SelectBack(call, grad);
  return {MakeCall<LayoutTransformAttrs>(op::layout_transform, {grad}, [&](LayoutTransformAttrs* b) {
    b->src_layout = a.dst_layout, b->dst_layout = a.src_layout;
  })};
}

}  // namespace
}  // namespace gradient

const Op op::layout_transform = DefineBlocks(
    "layout_transform", "The tensor in another layout; where a split dimension is not filled, zeros are added.",
    "R1: as many dimensions as src_layout. R3: the extents of its parts.",
    "R2: both layouts have the same capital letters.", TypeOf<LayoutTransformAttrs>,
    Rel<"layout_transform", LayoutTransformType>, LowerLayoutTransform, gradient::LayoutTransformBack, "Relay",
    {.values = Values::kExact, .integers = integers::Selection});
const Op op::depth_to_space =
    DefineBlocks("nn.depth_to_space", "Channels spread over blocks of pixels.",
                 "R1: rank 4. R3: block_size ** 2 divides the channels.", "R2: a known layout and mode.",
                 TypeOf<SubPixelAttrs>, Rel<"nn.depth_to_space", DepthToSpaceType>, LowerDepthToSpace,
                 gradient::DepthToSpaceBack, "ONNX DepthToSpace-13", {.values = Values::kSelects});
const Op op::space_to_depth =
    DefineBlocks("nn.space_to_depth", "Blocks of pixels gathered into channels.",
                 "R1: rank 4. R3: block_size divides height and width.", "R2: a known layout and mode.",
                 TypeOf<SubPixelAttrs>, Rel<"nn.space_to_depth", SpaceToDepthType>, LowerSpaceToDepth,
                 gradient::SpaceToDepthBack, "ONNX SpaceToDepth-13", {.values = Values::kSelects});
const Op op::space_to_batch_nd = DefineBlocks(
    "nn.space_to_batch_nd", "Blocks of a padded space moved into the batch.",
    "R2: block_shape divides the padded extents.", "R1: a pair for each block dimension.", TypeOf<SpaceToBatchNDAttrs>,
    Rel<"nn.space_to_batch_nd", SpaceToBatchType>, LowerSpaceToBatch, gradient::SpaceToBatchBack, "Relay");
const Op op::batch_to_space_nd = DefineBlocks(
    "nn.batch_to_space_nd", "The batch spread over blocks of space, then cropped.",
    "R2: block_shape divides the batch.", "R1: a pair for each block dimension.", TypeOf<BatchToSpaceNDAttrs>,
    Rel<"nn.batch_to_space_nd", BatchToSpaceType>, LowerBatchToSpace, gradient::BatchToSpaceBack, "Relay");

}  // namespace baton::relay
