// SPDX-License-Identifier: Apache-2.0
// Between what the importer knows of short tensors, which has numbers for expressions, and the rules of operators.
#include "elements.h"

#include <baton/tir/op.h>
#include <relay/op/elements.h>

#include <algorithm>

#include "frontend/onnx/ops/common.h"

namespace baton::onnx {
namespace {

constexpr int64_t kUnknown = Value::kUnknown;
constexpr int64_t kMostElementsKnown = 64;

using MaybeElements = std::optional<relay::Elements>;

bool IsShort(const Value& v) {
  return v.kind == Value::kTensor && v.rank() >= 0 && v.rank() <= 1 && (v.dtype.is_int() || v.dtype.is_bool());
}

/// The elements as a rule takes them; all unknown where their number is all that is known.
MaybeElements ForRule(const Symbols& symbols, const Value& v) {
  const auto known = ElementsOf(v);
  if (known == nullptr) {
    if (v.kind != Value::kTensor || !v.fixed() || Product(v.dims) > kMostElementsKnown) return std::nullopt;
    return relay::Elements(static_cast<size_t>(Product(v.dims)));
  }
  relay::Elements out;
  for (int64_t e : *known) out.push_back(e == kUnknown ? PrimExpr() : symbols.ValueOf(e));
  return out;
}

/// The number of an element that a rule gave.
int64_t NumberOf(Symbols* symbols, const PrimExpr& e) {
  const int64_t v = e.defined() ? symbols->NumberOf(e) : kUnknown;
  // -1 is a value here as well as the number of an unknown length.
  return v == -1 && !tir::as_const_int(e) ? kUnknown : v;
}

}  // namespace

std::shared_ptr<const Dims> ElementsOf(const Value& v) {
  if (!IsShort(v)) return nullptr;
  if (v.partial != nullptr) return v.partial;
  if (v.host == nullptr || v.host->is_string || v.host->size() > kMostElementsKnown) return nullptr;
  auto out = std::make_shared<Dims>();
  for (int64_t i = 0; i < v.host->size(); ++i) {
    const int64_t e = v.host->IntAt(i);
    out->push_back(Symbols::IsSymbol(e) ? kUnknown : e);
  }
  return out;
}

std::shared_ptr<const Dims> ElementsOfCall(Symbols* symbols, const relay::Call& call, const Values& args, bool tuple,
                                           const Value& result) {
  const auto op = Downcast<Op>(call->op);
  if (!IsShort(result) || relay::ElementsRuleOf(op) == nullptr) return nullptr;
  std::vector<MaybeElements> in;
  for (const Value& a : args) in.push_back(ForRule(*symbols, a));
  if (tuple) {
    // The rule sees one operand, the fields of the tuple in order.
    relay::Elements all;
    for (const MaybeElements& part : in) {
      if (!part) return nullptr;
      all.insert(all.end(), part->begin(), part->end());
    }
    in = {all};
  }
  Array<baton::Type> types;
  for (const relay::Expr& a : call->args) types.push_back(a->checked_type());
  const MaybeElements found = relay::ElementsOfCall(op, {call->attrs, types, in, result.dtype}, call->checked_type());
  if (!found) return nullptr;
  auto out = std::make_shared<Dims>();
  for (const PrimExpr& e : *found) out->push_back(NumberOf(symbols, e));
  if (std::all_of(out->begin(), out->end(), [](int64_t v) { return v == kUnknown; })) return nullptr;
  return out;
}

}  // namespace baton::onnx
