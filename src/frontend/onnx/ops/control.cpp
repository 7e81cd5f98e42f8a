// SPDX-License-Identifier: Apache-2.0
// If, and values that control flow is made of.
#include <algorithm>
#include <optional>

#include "common.h"
#include "frontend/onnx/import/host_values.h"
#include "frontend/onnx/import/importer_impl.h"
#include "frontend/onnx/reader/check.h"
#include "loops.h"

namespace baton::onnx {
namespace {

Values If(Ctx& c) {
  Importer* importer = c.importer();
  const Graph *then_graph = c.GraphAttr("then_branch"), *else_graph = c.GraphAttr("else_branch");
  if (then_graph == nullptr || else_graph == nullptr) c.Fail("a branch is missing");
  Value cond = c.T(0);
  const Env* env = importer->env();
  Surroundings around = importer->around();
  if (c.Known(cond)) {
    return importer->Inline(c.KnownScalar(cond) != 0 ? *then_graph : *else_graph, env, {}, around);
  }
  const size_t which = importer->EnterIf();
  if (const std::optional<bool> taken = importer->Decided(which)) {
    return importer->Inline(*taken ? *then_graph : *else_graph, env, {}, around);
  }
  auto [a, b] = importer->Branches(cond, *then_graph, *else_graph, env, around);
  if (AnyPoison(a) || AnyPoison(b)) return Poison(c.num_outputs());
  if (a.size() != b.size()) c.Fail("its branches have different numbers of outputs");
  Values both(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (SameType(a[i], b[i]) && a[i].kind != Value::kNothing) {
      both[i] = a[i];
      continue;
    }
    if (!Join(a[i], b[i], &both[i])) importer->LeaveOpen(which, cond);
    if (both[i].kind == Value::kNothing) both[i] = HostValueOf(Value::kOptional, Value());
  }
  return importer->Choice(cond, a, b, both);
}

}  // namespace

bool AnyPoison(const Values& v) {
  return std::any_of(v.begin(), v.end(), [](const Value& x) { return x.kind == Value::kPoison; });
}

Values Poison(size_t n) {
  Value v;
  v.kind = Value::kPoison;
  return Values(n, v);
}

Value FromExpr(const relay::Expr& expr, const baton::Type& type) {
  Value v;
  v.expr = expr;
  if (const auto* t = type.as<TensorTypeNode>()) {
    v.kind = Value::kTensor;
    v.dtype = t->dtype;
    v.ranked = true;
    for (const PrimExpr& d : t->shape) {
      const auto* i = d.as<IntImmNode>();
      v.dims.push_back(i ? i->value : -1);
    }
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    v.kind = Value::kTuple;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const baton::Type& field = tuple->fields[static_cast<int64_t>(i)];
      relay::TupleGetItem item(expr, static_cast<int64_t>(i));
      item->checked_type_ = field;
      v.items.push_back(FromExpr(item, field));
    }
  } else {
    v.kind = Value::kOpaque;
  }
  return v;
}

Value TupleOf(const Values& items) {
  Value v;
  v.kind = Value::kTuple;
  v.items = items;
  return v;
}

Value Scalar0(Ctx& c, const Value& v) { return c.Rank(v) == 0 ? v : c.Reshape(v, {}); }

relay::Expr CallOfLoop(const relay::Var& loop, const Array<relay::Var>& vars, const relay::Expr& body,
                       const Array<relay::Expr>& first) {
  const baton::Type result = body->checked_type();
  relay::Function func(vars, body, result);
  func->checked_type_ = loop->checked_type_;
  relay::Call call(loop, first, Attrs(), Array<baton::Type>());
  call->checked_type_ = result;
  relay::Let let(loop, func, call);
  let->checked_type_ = result;
  return let;
}

void AddControl(OpTable* table) { table->push_back(OpRow{"", "If", If}); }

}  // namespace baton::onnx
