// SPDX-License-Identifier: Apache-2.0
// What the importer knows of short tensors, by the rules of operators; values of other small constants come from the
// evaluator of constant folding.
#include "elements.h"

#include <baton/ir/transform.h>
#include <baton/relay/evaluator.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/support/with.h>
#include <baton/tir/op.h>
#include <relay/op/elements.h>

#include <algorithm>

#include "frontend/onnx/ops/common.h"

namespace baton::onnx {
namespace {

constexpr int64_t kMostElementsKnown = 64;

using MaybeElements = std::optional<relay::Elements>;

bool IsShort(const Value& v) {
  return v.kind == Value::kTensor && v.rank() >= 0 && v.rank() <= 1 && (v.dtype.is_int() || v.dtype.is_bool());
}

/// The elements as a rule takes them; all unknown where their number is all that is known.
MaybeElements ForRule(const Value& v) {
  if (const auto known = ElementsOf(v)) return *known;
  if (v.kind != Value::kTensor || !v.fixed() || Product(v.dims) > kMostElementsKnown) return std::nullopt;
  return relay::Elements(static_cast<size_t>(Product(v.dims)));
}

/// Whether a constant is one that calls are evaluated on.
bool IsSmall(const Value& v) {
  return v.kind == Value::kTensor && v.host != nullptr && !v.weight && !v.host->is_string && v.dtype.bits() >= 8 &&
         v.host->size() <= kMaxFoldedElements;
}

/// Whether calls of small constants are evaluated: not of layers, of which there are better forms to fold than a call
/// by itself, nor of what the host runs.
bool IsEvaluated(const Op& op) {
  const relay::OpDef* def = relay::DefOf(op);
  return def->pattern <= relay::OpPattern::kCommReduce && def->fold == relay::Fold::kAlways && !def->stateful &&
         def->host == nullptr && (def->lower || relay::IsView(op));
}

/// An operand that is a constant, or a tuple of them, as the evaluator takes it.
ObjectRef Operand(const relay::Expr& e) {
  if (const auto* c = e.as<relay::ConstantNode>()) return c->data;
  Array<ObjectRef> fields;
  for (const relay::Expr& f : e.as<relay::TupleNode>()->fields) fields.push_back(Operand(f));
  return fields;
}

}  // namespace

std::shared_ptr<const relay::Elements> ElementsOf(const Value& v) {
  if (!IsShort(v)) return nullptr;
  if (v.partial != nullptr) return v.partial;
  if (v.host == nullptr || v.host->is_string || v.host->size() > kMostElementsKnown) return nullptr;
  auto out = std::make_shared<relay::Elements>();
  for (int64_t i = 0; i < v.host->size(); ++i) out->push_back(PrimExpr(v.host->IntAt(i)));
  return out;
}

std::shared_ptr<const relay::Elements> ElementsOfCall(const relay::Call& call, const Values& args, bool tuple,
                                                      const Value& result) {
  const auto op = Downcast<Op>(call->op);
  if (!IsShort(result) || relay::ElementsRuleOf(op) == nullptr ||
      (result.fixed() && Product(result.dims) > kMostElementsKnown))
    return nullptr;
  std::vector<MaybeElements> in;
  for (const Value& a : args) in.push_back(ForRule(a));
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
  MaybeElements found = relay::ElementsOfCall(op, {call->attrs, types, in, result.dtype}, call->checked_type());
  return found ? std::make_shared<relay::Elements>(std::move(*found)) : nullptr;
}

/// All elements as numbers; nothing where one is not a literal.
static std::optional<Dims> Literals(const relay::Elements& elements) {
  Dims out;
  for (const PrimExpr& e : elements) {
    const int64_t* v = e.defined() ? tir::as_const_int(e) : nullptr;
    if (v == nullptr) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

HostPtr ValueOfCall(const relay::Call& call, const Values& args, const Value& result) {
  if (const std::optional<Dims> all = result.partial != nullptr ? Literals(*result.partial) : std::nullopt) {
    const auto count = static_cast<int64_t>(all->size());
    return HostFromInts(result.dtype, result.rank() == 0 ? Dims() : Dims{count}, *all);
  }
  const auto op = Downcast<Op>(call->op);
  if (result.kind != Value::kTensor || !result.fixed() || Product(result.dims) > kMaxFoldedElements ||
      result.dtype.bits() < 8 || args.empty() || !std::all_of(args.begin(), args.end(), IsSmall) || !IsEvaluated(op))
    return nullptr;
  Array<ObjectRef> operands;
  for (const relay::Expr& a : call->args) operands.push_back(Operand(a));
  // Under a fresh context: the user's instruments neither see nor block it.
  With<baton::transform::PassContext> scope(baton::transform::PassContext::Create());
  return HostOf(Downcast<NDArray>(relay::Evaluator::Get().EvalOp(op, call->attrs, operands)));
}

}  // namespace baton::onnx
