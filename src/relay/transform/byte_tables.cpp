// SPDX-License-Identifier: Apache-2.0
#include "byte_tables.h"

#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/qnn.h>
#include <baton/runtime/scalar.h>
#include <baton/tir/functor.h>
#include <relay/op/gradient.h>
#include <relay/op/qnn/integers.h>

#include <cmath>
#include <optional>

namespace baton::relay::transform {

using runtime::NDArray;

namespace {

constexpr DataType kSumType = DataType::Int(32), kRealType = DataType::Float(32);
constexpr size_t kMostInRegion = 64;
/// Operations of a vector of elements: what qnn.dequantize and qnn.quantize are taken apart into, and a function that
/// takes several instructions.
constexpr int kRestores = 3, kQuantizes = 5, kSeveral = 12;

const TensorTypeNode* TypedTensor(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }
const CallNode* CallTo(const Expr& e, const Op& op) {
  const auto* call = e.as<CallNode>();
  return call && call->op == op ? call : nullptr;
}
std::optional<double> OnlyNumber(const Expr& e) {
  const auto* c = e.as<ConstantNode>();
  if (!c || c->data.numel() != 1 || !runtime::IsLoadable(c->data.dtype())) return std::nullopt;
  const NDArray data = c->data.Contiguous();
  return runtime::LoadDouble(data.data(), data.dtype(), 0);
}
bool OfOneShape(const TensorTypeNode* a, const TensorTypeNode* b) {
  if (!a || !b || a->shape.size() != b->shape.size()) return false;
  for (size_t i = 0; i < a->shape.size(); ++i) {
    const auto k = static_cast<int64_t>(i);
    if (!tir::ExprDeepEqual(a->shape[k], b->shape[k])) return false;
  }
  return true;
}

/// Whether each element of a typed call's result depends on that element of its operands alone, whatever their shape.
bool IsByElement(const CallNode* call) {
  const OpDef* def = DefOf(call->op);
  if (!def || def->stateful || call->args.empty()) return false;
  if (call->args.size() == 1) {
    return def->pattern == OpPattern::kElemWise &&
           (!call->attrs.defined() || !runtime::TypeInfo::Get(call->attrs.type_index())->Find("axis"));
  }
  return call->args.size() == 2 && def->pattern <= OpPattern::kBroadcast &&
         def->traits.layout == LayoutRule::kBroadcasts && !def->attrs;
}

int VectorOperations(const CallNode* call) {
  const OpDef* def = DefOf(call->op);
  if (!def->lower) return kSeveral;
  Array<te::Tensor> in;
  for (const Expr& a : call->args) in.push_back(te::Placeholder({PrimExpr(256)}, TypedTensor(a)->dtype, "x"));
  const TensorType out(Array<PrimExpr>{PrimExpr(256)}, TypedTensor(GetRef<Expr>(call))->dtype);
  int count = 0;
  for (const te::Tensor& t : def->lower(call->attrs, in, out)) {
    const auto* c = t->op.as<te::ComputeOpNode>();
    if (!c) return kSeveral;
    tir::PostOrderVisitExpr(c->body[t->value_index], [&](const PrimExpr& e) {
      if (e.as<tir::CallNode>())
        count += kSeveral;
      else if (!e.as<FloatImmNode>() && !e.as<IntImmNode>() && !e.as<tir::VarNode>() && !e.as<tir::ProducerLoadNode>())
        ++count;
    });
  }
  return count;
}

}  // namespace

int ByteTables::OperationsOfTable() const {
  // Two permutations and a choice, or a load for each lane and its way there and back.
  return target_->Has("avx512vbmi") ? 6 : static_cast<int>(3 * target_->Lanes(kRealType)) + 4;
}

void ByteTables::Note(const CallNode* quantize) {
  Region region = RegionOf(quantize, true);
  if (!region.bytes.defined()) region = RegionOf(quantize, false);
  if (region.bytes.defined()) regions_[quantize] = std::move(region);
}

ByteTables::Region ByteTables::RegionOf(const CallNode* quantize, bool through) const {
  const auto* type = quantize->checked_type_.as<TensorTypeNode>();
  if (!type || type->dtype.bits() != 8) return {};
  Region out;
  struct Step {
    Expr e;
    bool ready;
  };
  std::vector<Step> work{{GetRef<Expr>(quantize), false}};
  PointerSet seen;
  while (!work.empty()) {
    const auto [e, ready] = work.back();
    work.pop_back();
    if (ready) {
      out.order.push_back(e);
      continue;
    }
    if (!seen.Add(e.get())) continue;
    if (OnlyNumber(e)) continue;
    const auto* call = e.as<CallNode>();
    if (!call || !OfOneShape(TypedTensor(e), type) || seen.size() > kMostInRegion) return {};
    work.push_back({e, true});
    const bool restores = call->op == op::qnn::dequantize;
    if (restores || call->op == op::qnn::quantize) {
      if (!OnlyNumber(call->args[1]) || !OnlyNumber(call->args[2])) return {};
      out.operations += restores ? kRestores : kQuantizes;
      const Expr& x = call->args[0];
      if (!restores || (through && regions_.Has(x.get()))) {
        work.push_back({x, false});
        continue;
      }
      const auto* bytes = TypedTensor(x);
      if (!bytes || bytes->dtype.bits() != 8 || x.as<ConstantNode>()) return {};
      if (out.bytes.defined() && !out.bytes.same_as(x)) return {};
      out.bytes = x;
      continue;
    }
    if (!IsByElement(call)) return {};
    out.operations += VectorOperations(call);
    for (const Expr& a : call->args) work.push_back({a, false});
  }
  return out.bytes.defined() ? out : Region();
}

Expr ByteTables::BytesOf(const CallNode* quantize) const {
  const Region* r = regions_.Find(quantize);
  // Without an operator between the two it is another scale of the same numbers.
  return r && r->order.size() > 2 && r->operations > OperationsOfTable() ? r->bytes : Expr();
}

Expr ByteTables::Results(const CallNode* quantize, bool moved) const {
  const Region* r = regions_.Find(quantize);
  const DataType dtype = TypedTensor(r->bytes)->dtype;
  NDArray bytes = NDArray::Empty({256}, dtype);
  for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(bytes.data())[i] = static_cast<uint8_t>(moved ? i - 128 : i);
  ExprMemo made;
  made[r->bytes] = Constant(bytes);
  auto value = [&](const Expr& e) -> Expr {
    if (const std::optional<double> n = OnlyNumber(e)) return MakeScalar(*n, e.as<ConstantNode>()->data.dtype());
    return made[e];
  };
  for (const Expr& e : r->order) {
    const auto* call = e.as<CallNode>();
    Array<Expr> args;
    for (const Expr& a : call->args) args.push_back(value(a));
    Expr now = MakeCall(Downcast<Op>(call->op), args, call->attrs);
    now->span = e->span;
    made[e] = now;
  }
  return made[r->order.back()];
}

Expr MeanOfBytes(const CallNode* call, const Expr& bytes, double zero) {
  const OpDef* def = DefOf(call->op);
  const CallNode* restored = call->args.size() == 1 ? CallTo(call->args[0], op::qnn::dequantize) : nullptr;
  if (!def || def->traits.integers != integers::Averages || !restored) return Expr();
  const bool plain = (call->attrs.as<GlobalPoolAttrs<1>>() && call->attrs.as<GlobalPoolAttrs<1>>()->layout == "NCW") ||
                     (call->attrs.as<GlobalPoolAttrs<2>>() && call->attrs.as<GlobalPoolAttrs<2>>()->layout == "NCHW");
  const auto* type = TypedTensor(call->args[0]);
  const std::optional<double> scale = OnlyNumber(restored->args[1]);
  if (!plain || !type || !scale) return Expr();
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (size_t d = 2; d < type->shape.size(); ++d) {
    const int64_t extent = DimOf(type->shape[static_cast<int64_t>(d)]);
    if (extent <= 0 || extent > (1 << 22) / count) return Expr();  // sums stay below 2^31
    axes.push_back(static_cast<int64_t>(d)), count *= extent;
  }
  const float factor = static_cast<float>(*scale / static_cast<double>(count));
  if (!std::isnormal(factor)) return Expr();
  Expr sum = gradient::Sum(Cast(bytes, kSumType), axes, true);
  if (zero != 0) sum = Subtract(sum, MakeScalar(zero * static_cast<double>(count), kSumType));
  return Multiply(Cast(sum, kRealType), MakeScalar(factor, kRealType));
}

}  // namespace baton::relay::transform
