// SPDX-License-Identifier: Apache-2.0
// Indices that are refused when they lie outside: a pass over them before what reads or writes by them, which is left
// as it is. One over elements, in vectors; the one that names an index runs when there is something wrong.
#include <baton/ir/target.h>
#include <relay/kernel/build.h>
#include <relay/kernel/machine.h>
#include <tir/index_error.h>

#include "../common.h"
#include "../gradient.h"

namespace baton::relay {
namespace op {
extern const Op check_index;
}
namespace {

struct CheckIndexAttrs : AttrsNode<CheckIndexAttrs> {
  static constexpr auto _type_key = "relay.attrs.CheckIndexAttrs";
  Array<int64_t> extents;
  int64_t axis = 0;
  String place;
  bool from_end = true;
  static constexpr void Describe(auto& d) {
    d(F<&CheckIndexAttrs::extents>,
      "Extent that all indices are of; several: of the elements of index tuples. -1: as `lengths` says.", kRequired);
    d(F<&CheckIndexAttrs::axis>, "Axis of the first extent, for messages.");
    d(F<&CheckIndexAttrs::place>, "What reads or writes there, for messages.");
    d(F<&CheckIndexAttrs::from_end>, "Whether negative indices count from the end; else they lie outside.");
  }
};

Type CheckIndexType(const CheckIndexAttrs& a, const TypeArgs& in) {
  in.Integral(0, "R1");
  const auto n = static_cast<int64_t>(a.extents.size());
  if (n < 1) in.Fail("R2", "there is no extent");
  const int64_t tuple = in.ndim(0) ? in.dim(0, in.ndim(0) - 1) : 0;
  if (in.size() > 1) {
    in.Integral(1, "R3");
    in.Rank(1, 1, "R3");
    if (!in.Same(in.shape(1)[0], PrimExpr(n))) in.Fail("R3", in.Show(1) + " does not hold " + Str(n) + " lengths");
  }
  for (const int64_t extent : a.extents) {
    if (extent < 0 && in.size() == 1) in.Fail("R3", "an extent is " + Str(extent) + " and there are no lengths");
  }
  if (n > 1 && tuple >= 0 && tuple != n) in.Fail("R2", in.Show(0) + " does not hold tuples of " + Str(n) + " indices");
  return TensorType(Shape(), in.dtype(0));
}

using namespace kernel;  // NOLINT: words for statements

/// The number of places from the nearer end on: below the extent for an index inside.
PrimExpr Folded(const CheckIndexAttrs& a, const PrimExpr& index) {
  if (index.dtype().is_uint()) return index;
  if (!a.from_end) {
    const int bits = index.dtype().bits();
    const int64_t large = bits == 64 ? int64_t{1} << 62 : (int64_t{1} << (bits - 1)) - 1;
    return tir::Select(index < tir::make_const(index.dtype(), 0), tir::make_const(index.dtype(), large), index);
  }
  const PrimExpr last = tir::make_const(index.dtype(), -1);
  return max(index, last - index);
}

/// The message of one element of tuples, or of all indices.
std::string Format(const CheckIndexAttrs& a, int64_t part) {
  std::string text = a.place.empty() ? "contrib_check_index" : a.place.str();
  for (size_t at = 0; (at = text.find('%', at)) != std::string::npos; at += 2) text.insert(at, "%");
  if (text.size() > 300) text.resize(300);
  return text + ": index %ld lies outside axis " + Str(a.axis + part) + " of %ld elements";
}

/// The extent of a part: a literal, or what `lengths` has for it.
PrimExpr ExtentOf(const CheckIndexAttrs& a, const tir::Buffer& lengths, int64_t part) {
  if (a.extents[part] >= 0) return I(a.extents[part]);
  return cast(DataType::Int(64), Read(lengths, I(part)));
}

/// Fails at the first index of a part outside.
Stmt Refuse(const CheckIndexAttrs& a, const tir::Buffer& indices, const PrimExpr& count, const PrimExpr& extent,
            int64_t part) {
  const auto stride = static_cast<int64_t>(a.extents.size());
  return Loop("i", count, [&](const PrimExpr& i) {
    const PrimExpr index = Read(indices, i * I(stride) + I(part));
    tir::Var at("at", index.dtype());
    tir::AssertStmtNode n;
    n.condition = cast(DataType::Int(64), Folded(a, at)) < extent;
    n.message = tir::IndexError(Format(a, part), cast(DataType::Int(64), at), extent);
    n.body = tir::Evaluate(PrimExpr(0));
    return Bind(at, index, tir::AssertStmt(std::move(n)));
  });
}

/// The largest Folded of all indices of a part goes to `worst`, element 0.
Stmt Worst(const CheckIndexAttrs& a, const tir::Buffer& indices, const PrimExpr& count, int64_t part,
           const tir::Buffer& worst, int64_t lanes) {
  const auto stride = static_cast<int64_t>(a.extents.size());
  auto take = [&](const PrimExpr& at, const PrimExpr& from, int64_t n) {
    return Store(worst, Span(at, n), max(Read(worst, at, n), Folded(a, Read(indices, from, n))));
  };
  Array<Stmt> steps;
  auto add = [&](Stmt s) {
    if (s.defined()) steps.push_back(std::move(s));
  };
  add(Store(worst, Span(I(0), lanes), tir::make_const(worst->dtype.with_lanes(static_cast<int>(lanes)), 0)));
  const PrimExpr whole = floordiv(count, I(lanes)), done = whole * I(lanes);
  if (lanes > 1) {
    add(Loop("v", whole, [&](const PrimExpr& v) { return take(I(0), v * I(lanes), lanes); }));
    add(Loop("i", count - done, [&](const PrimExpr& i) { return take(I(0), done + i, 1); }));
    add(Loop("l", I(lanes - 1),
             [&](const PrimExpr& l) { return Store(worst, I(0), max(Read(worst, I(0)), Read(worst, l + I(1)))); }));
  } else {
    add(Loop("i", count, [&](const PrimExpr& i) { return take(I(0), i * I(stride) + I(part), 1); }));
  }
  return tir::SeqStmt::Flatten(steps);
}

Tensor LowerCheckIndex(const CheckIndexAttrs& a, const Tensors& in) {
  const DataType t = in[0].dtype();
  PrimExpr count = I(1);
  for (const PrimExpr& d : in[0].shape()) count = count * d;
  const auto parts = static_cast<int64_t>(a.extents.size());
  const tir::Buffer indices = tir::Buffer::Make({count}, t, "indices"), out = tir::Buffer::Make({I(1)}, t, "out");
  tir::Buffer lengths;
  if (in.size() > 1) lengths = tir::Buffer::Make({I(parts)}, in[1].dtype(), "lengths");
  const PrimExpr tuples = Known(count) >= 0 ? I(Known(count) / parts) : floordiv(count, I(parts));
  const Target target = Target::Current();
  Array<Stmt> steps;
  if (target->traits().on_host &&
      !tir::is_zero(tuples)) {  // a device cannot report: there indices outside are handled as by the operator
    const int64_t lanes = target->traits().vector_kernels && parts == 1 ? 4 * target->Lanes(t) : 1;
    for (int64_t part = 0; part < parts; ++part) {
      const tir::Buffer worst = tir::Buffer::Make({I(lanes)}, t, "worst");
      const Array<Stmt> one{Worst(a, indices, tuples, part, worst, lanes),
                            kernel::If(cast(DataType::Int(64), Read(worst, I(0))) >= ExtentOf(a, lengths, part),
                                       Refuse(a, indices, tuples, ExtentOf(a, lengths, part), part))};
      steps.push_back(With(worst, tir::SeqStmt::Flatten(one)));
    }
  }
  steps.push_back(Store(out, I(0), tir::make_const(t, 0)));
  te::ExternOpNode op;
  op.name = String("check_index"), op.tag = String("extern");
  op.inputs = in, op.input_buffers = {indices};
  if (lengths.defined()) op.input_buffers.push_back(lengths);
  op.output_buffers = {out};
  op.body = tir::SeqStmt::Flatten(steps);
  te::TensorNode made;
  made.shape = Shape(), made.dtype = t, made.op = te::ExternOp(std::move(op)), made.value_index = 0;
  return Tensor(std::move(made));
}

}  // namespace

const Op op::check_index = DefineOp({
    .name = "contrib_check_index",
    .doc = "0 where all indices lie in [-extent, extent), or from 0 on, else an IndexError that names one. What reads "
           "or writes by "
           "indices adds it to them. Devices with code of their own do not check.",
    .inputs = {{"indices", "R1: integers. R2: tuples in the last dimension where there are several extents."},
               {"lengths", "Optional. The extents that are -1. R3: integers, one for each."}},
    .output = "0 of rank 0, dtype of `indices`.",
    .attrs = TypeOf<CheckIndexAttrs>,
    .num_inputs = -1,
    .type_rel = Rel<"contrib_check_index", CheckIndexType>,
    .lower = LowerCheckIndex,
    .gradient = gradient::Flat,
    .pattern = OpPattern::kOpaque,
    .source = "ONNX Gather-13",
});

}  // namespace baton::relay
