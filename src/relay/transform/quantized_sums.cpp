// SPDX-License-Identifier: Apache-2.0
#include "quantized_sums.h"

#include <baton/relay/op.h>
#include <baton/relay/op/make.h>
#include <baton/relay/op/nn.h>
#include <baton/relay/op/qnn.h>
#include <baton/relay/op/tensor.h>
#include <baton/relay/op/transform.h>
#include <baton/runtime/scalar.h>
#include <relay/op/qnn/integers.h>

#include <cmath>
#include <optional>
#include <vector>

#include "relay/transform/convert_layout.h"

namespace baton::relay::transform {

using runtime::NDArray;

namespace {

constexpr DataType kInt32 = DataType::Int(32), kFloat32 = DataType::Float(32);
/// Sums and what is added to them stay below, so that int32 holds both together.
constexpr double kMost = 1 << 30;
constexpr int64_t kMostNumbers = 1 << 20;
using Numbers = std::optional<std::vector<double>>;

const TensorTypeNode* TensorTypeAt(const Expr& e) { return e->checked_type_.as<TensorTypeNode>(); }

/// What constants and a little arithmetic of them give, products rounded as float32 does it; nothing for other values.
Numbers NumbersOf(const Expr& e, int depth = 0) {
  if (const auto* c = e.as<ConstantNode>()) {
    if (c->data.numel() > kMostNumbers || !runtime::IsLoadable(c->data.dtype())) return std::nullopt;
    const NDArray data = c->data.Contiguous();
    std::vector<double> out;
    for (int64_t i = 0; i < data.numel(); ++i) out.push_back(runtime::LoadDouble(data.data(), data.dtype(), i));
    return out;
  }
  const auto* call = e.as<CallNode>();
  const OpDef* def = call && depth < 8 ? DefOf(call->op) : nullptr;
  if (!def || call->args.empty()) return std::nullopt;
  if (call->attrs.as<CastAttrs>() || def->traits.values == Values::kView) return NumbersOf(call->args[0], depth + 1);
  const bool product = def->traits.integers == integers::Product;
  if ((!product && def->traits.integers != integers::Difference) || call->args.size() != 2) return std::nullopt;
  const Numbers a = NumbersOf(call->args[0], depth + 1), b = a ? NumbersOf(call->args[1], depth + 1) : Numbers();
  if (!b || a->empty() || b->empty() || (a->size() != b->size() && a->size() != 1 && b->size() != 1))
    return std::nullopt;
  std::vector<double> out;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const double x = (*a)[a->size() > 1 ? i : 0], y = (*b)[b->size() > 1 ? i : 0];
    out.push_back(product ? static_cast<float>(x * y) : x - y);
  }
  return out;
}

/// What an addition adds to its first operand, a number for each of `outputs`; nothing for other calls.
Numbers BiasOf(const CallNode* call, const CallNode* product, size_t outputs) {
  const OpDef* def = DefOf(call->op);
  if (!def || call->args.size() != 2) return std::nullopt;
  const bool conv = ConvDims(product->op) > 0, along_axis = def->traits.integers == integers::BiasAdd;
  if (!along_axis && (conv || def->traits.integers != integers::Sum)) return std::nullopt;
  if (along_axis) {
    const int64_t axis = call->attrs.defined() ? AttrsAs<BiasAddAttrs>(call->attrs).axis : 1;
    const auto rank = static_cast<int64_t>(TensorTypeAt(product->args[0])->shape.size());
    if ((axis < 0 ? axis + rank : axis) != (conv ? 1 : rank - 1)) return std::nullopt;
  }
  const Numbers bias = NumbersOf(call->args[1]);
  return bias && bias->size() == outputs ? bias : std::nullopt;
}

}  // namespace

Expr AlongOutputs(const NDArray& values, const CallNode* product) {
  if (values.numel() == 1) return Reshape(Constant(values), Array<int64_t>{});
  if (ConvDims(product->op) == 0) return Constant(values);
  const int64_t rank = static_cast<int64_t>(TensorTypeAt(product->args[0])->shape.size());
  Array<int64_t> shape(static_cast<size_t>(rank), 1);
  shape.Set(1, values.numel());
  return Reshape(Constant(values), shape);
}

void QuantizedSums::Add(const Expr& made, const Expr& sum, const NDArray& factors, const CallNode* product) {
  sums_[made.get()] = {made, sum, factors, product};
}

Expr QuantizedSums::Scaled(const Expr& made, float scale) const {
  const Sum* of = sums_.Find(made.get());
  const auto* call = made.as<CallNode>();
  const CallNode* bias = nullptr;
  if (!of && call && !call->args.empty()) of = sums_.Find(call->args[0].get()), bias = call;
  if (!of) return Expr();
  const auto* type = of->product->checked_type_.as<TensorTypeNode>();
  const auto* weight = TensorTypeAt(of->product->args[1]);
  const int64_t outputs =
      DimOf(type->shape[ConvDims(of->product->op) > 0 ? 1 : -1 + static_cast<int64_t>(type->shape.size())]);
  double terms = 1;
  for (const PrimExpr& d : weight->shape) terms *= static_cast<double>(DimOf(d));
  if (outputs <= 0 || terms < 0 || terms / static_cast<double>(outputs) * 255 * 255 > kMost) return Expr();
  const auto* factors = of->factors.ptr<float>();
  const int64_t count = of->factors.numel();
  NDArray scaled = NDArray::Empty({count}, kFloat32);
  for (int64_t i = 0; i < count; ++i) {
    scaled.ptr<float>()[i] = factors[i] / scale;
    if (!std::isnormal(scaled.ptr<float>()[i])) return Expr();
  }
  Expr sum = of->sum;
  if (bias) {
    const Numbers values = BiasOf(bias, of->product, static_cast<size_t>(outputs));
    if (!values) return Expr();
    // The sum may have a constant taken from it already.
    const auto* less = sum.as<CallNode>();
    Numbers taken;
    if (less && DefOf(less->op) && DefOf(less->op)->traits.integers == integers::Difference)
      taken = NumbersOf(less->args[1]);
    if (taken && taken->size() != 1 && taken->size() != values->size()) return Expr();
    NDArray offsets = NDArray::Empty({outputs}, kInt32);
    for (int64_t i = 0; i < outputs; ++i) {
      const auto k = static_cast<size_t>(i);
      const float factor = factors[count > 1 ? i : 0], b = static_cast<float>((*values)[k]);
      const double steps = std::nearbyint(static_cast<double>(b) / factor);
      if (!(std::abs(steps) < kMost / 2) || static_cast<float>(steps) * factor != b) return Expr();
      const double offset = (taken ? (*taken)[taken->size() > 1 ? k : 0] : 0) - steps;
      if (!(std::abs(offset) < kMost)) return Expr();
      offsets.ptr<int32_t>()[i] = static_cast<int32_t>(offset);
    }
    sum = Subtract(taken ? less->args[0] : sum, AlongOutputs(offsets, of->product));
  }
  return Multiply(Cast(sum, kFloat32), AlongOutputs(scaled, of->product));
}

}  // namespace baton::relay::transform
