// SPDX-License-Identifier: Apache-2.0
// col2im: blocks of columns added into an image.
#include <baton/relay/op/nn.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/checked.h>
#include <baton/topi/elemwise.h>
#include <baton/topi/reduce.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace {

struct Col2ImAttrs : AttrsNode<Col2ImAttrs> {
  static constexpr auto _type_key = "relay.attrs.Col2ImAttrs";
  Array<int64_t> image_shape;
  Array<int64_t> block_shape;
  Array<int64_t> dilations = NoInts();
  Array<int64_t> pads = NoInts();
  Array<int64_t> strides = NoInts();
  static constexpr void Describe(auto& d) {
    d(F<&Col2ImAttrs::image_shape>, "Spatial extents of the result.", kRequired, AtLeast(1));
    d(F<&Col2ImAttrs::block_shape>, "Spatial extents of a block.", kRequired, AtLeast(1));
    d(F<&Col2ImAttrs::dilations>, "Steps within a block; None: 1.");
    d(F<&Col2ImAttrs::pads>, "Begins, then ends; None: 0.");
    d(F<&Col2ImAttrs::strides>, "Steps between blocks; None: 1.");
  }
};

using runtime::Checked;

struct Col2ImSizes {
  Ints image, block, dilation, begin, end, stride, count;  ///< count: blocks along each spatial dimension
};
Col2ImSizes SizesOf(const Col2ImAttrs& a) {
  Col2ImSizes s;
  size_t n = a.image_shape.size();
  s.image = ToInts(a.image_shape), s.block = ToInts(a.block_shape);
  auto or_fill = [&](const Array<int64_t>& v, size_t count, int64_t fill) {
    return v.defined() ? ToInts(v) : Ints(count, fill);
  };
  s.dilation = or_fill(a.dilations, n, 1), s.stride = or_fill(a.strides, n, 1);
  Ints pads = or_fill(a.pads, 2 * n, 0);
  if (s.block.size() != n || s.dilation.size() != n || s.stride.size() != n || pads.size() != 2 * n) {
    throw CompileError("[col2im R1] image_shape has " + Str(n) +
                       " extents: block_shape, dilations, strides want as many numbers and pads twice as many");
  }
  s.begin.assign(pads.begin(), pads.begin() + n), s.end.assign(pads.begin() + n, pads.end());
  for (size_t d = 0; d < n; ++d) {
    if (s.stride[d] < 1 || s.dilation[d] < 1) throw CompileError("[col2im R1] strides and dilations are 1 or more");
    Checked room = Checked(s.image[d]) + s.begin[d] + s.end[d] - Checked(s.dilation[d]) * (Checked(s.block[d]) - 1) - 1;
    s.count.push_back(room < 0 ? 0 : int64_t{room / s.stride[d] + 1});
  }
  return s;
}
Type Col2ImType(const Col2ImAttrs& a, const TypeArgs& in) {
  in.Number(0, "R2");
  in.Rank(0, 3, "R2");
  Col2ImSizes s = SizesOf(a);
  int64_t block = ProductOf(s.block), count = ProductOf(s.count), c = in.dim(0, 1), l = in.dim(0, 2);
  if ((c >= 0 && c % block != 0) || (l >= 0 && l != count)) {
    in.Fail("R3", in.Show(0) + ", where (N, C * " + Str(block) + ", " + Str(count) + ") is wanted");
  }
  Shape out{in.shape(0)[0], MakeDim(c < 0 ? -1 : c / block)};
  for (int64_t d : s.image) out.push_back(PrimExpr(d));
  return TensorType(out, in.dtype(0));
}
Tensor LowerCol2Im(const Col2ImAttrs& a, const Tensors& in) {
  // Each pixel sums over the positions of a block that can hold it: no writes cross, and the order is fixed.
  Col2ImSizes s = SizesOf(a);
  const Tensor& x = in[0];
  size_t n = s.image.size();
  Shape out{x.shape()[0], floordiv(x.shape()[1], PrimExpr(ProductOf(s.block)))}, block, count;
  Array<te::IterVar> k;
  for (size_t d = 0; d < n; ++d) {
    out.push_back(PrimExpr(s.image[d]));
    block.push_back(PrimExpr(s.block[d]));
    count.push_back(PrimExpr(s.count[d]));
    k.push_back(te::ReduceAxis(0, PrimExpr(s.block[d]), "k" + Str(d)));
  }
  DataType acc = Wide(x.dtype());
  Tensor sum = te::Compute(
      out,
      [&](Indices i) {
        PrimExpr inside = tir::make_int(DataType::Bool(), 1);
        Shape at;
        for (size_t d = 0; d < n; ++d) {
          PrimExpr p = i[d + 2] + PrimExpr(s.begin[d]) - k[d]->var * PrimExpr(s.dilation[d]);
          PrimExpr q = floordiv(p, PrimExpr(s.stride[d]));
          inside = inside && equal(floormod(p, PrimExpr(s.stride[d])), PrimExpr(0)) && q >= PrimExpr(0) &&
                   q < PrimExpr(s.count[d]);
          at.push_back(q);
        }
        PrimExpr c = i[1] * PrimExpr(ProductOf(s.block)) + topi::Ravel(topi::VarsOf(k), block);
        PrimExpr v = if_then_else(inside, cast(acc, x(i[0], c, topi::Ravel(at, count))), tir::make_const(acc, 0));
        return te::Sum(v, k);
      },
      "col2im");
  return topi::Cast(sum, x.dtype());
}

}  // namespace

namespace gradient {
namespace {

template <int N>
Expr Blocks(const At& at, const Col2ImAttrs& a, const Expr& grad) {
  int64_t size = ProductOf(ToInts(a.block_shape));
  Ints images{-1, 1}, kernel{size, 1};
  for (int64_t n : a.image_shape) images.push_back(n);
  for (int64_t n : a.block_shape) kernel.push_back(n);
  // Each element of a block is a channel of a convolution with a kernel that is 1 there.
  Expr taps = Reshape(Identity(size, at.dtype(0)), ToArray(kernel));
  return MakeCall<ConvAttrs<N>>(ConvOp(N), {Reshape(grad, ToArray(images)), taps}, [&](ConvAttrs<N>* c) {
    if (a.strides.defined()) c->strides = a.strides;
    if (a.dilations.defined()) c->dilation = a.dilations;
    c->padding = a.pads.defined() ? a.pads : ToArray(Ints(2 * N, 0));
    c->kernel_size = a.block_shape, c->channels = PrimExpr(size);
  });
}
Grads Col2ImBack(const Call& call, const Expr& grad) {
  At at(call, grad);
  const auto& a = at.attrs<Col2ImAttrs>();
  if (ProductOf(at.dims(0)) == 0) return {ZerosLike(at.arg(0))};
  size_t n = a.image_shape.size();
  if (n < 1 || n > 3) at.Fail("it has a rule for 1 to 3 spatial dimensions");
  return {ShapeLike(n == 1   ? Blocks<1>(at, a, grad)
                    : n == 2 ? Blocks<2>(at, a, grad)
                             : Blocks<3>(at, a, grad),
                    at.arg(0))};
}

}  // namespace
}  // namespace gradient

const Op op::col2im = DefineOp({
    .name = "col2im",
    .doc = "An image from its blocks; where they overlap they add up.",
    .inputs = {{"data",
                "(N, C * product of block_shape, number of blocks). R2: numbers, rank 3. R3: its extents fit."}},
    .output = "(N, C, image_shape). R1: the attributes agree in length.",
    .attrs = TypeOf<Col2ImAttrs>,
    .type_rel = Rel<"col2im", Col2ImType>,
    .lower = LowerCol2Im,
    .gradient = gradient::Col2ImBack,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Col2Im-18",
});

}  // namespace baton::relay
