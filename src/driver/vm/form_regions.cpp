// SPDX-License-Identifier: Apache-2.0
#include "driver/vm/form_regions.h"

#include <baton/relay/functor.h>
#include <baton/relay/lower.h>

#include "driver/lower_graph.h"
#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::Call;
using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::ExprNode;
using relay::Function;
using relay::Tuple;
using relay::TupleGetItem;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;

bool IsStatic(const Expr& e) {
  std::vector<TensorType> flat;
  return e->checked_type_.defined() && FlattenType(Downcast<Type>(e->checked_type_), &flat);
}

RegionFormer::RegionFormer(const FunctionValues* values) : values_(values) { NameParameters(); }

/// A call that one compiled kernel, or a change of shape, computes: everything about it is known.
bool RegionFormer::IsStaticKernel(Node* n) const {
  const auto* call = As<CallNode>(n);
  if (!call || !(IsPrimitive(call->op) || relay::IsView(call->op))) return false;
  if (!IsStatic(GetRef<Expr>(n))) return false;
  for (const Expr& a : call->args) {
    if (!IsStatic(a)) return false;
  }
  return true;
}

/// Tuples and their fields among tensor work are moved before or behind it.
Region RegionFormer::Form(const std::vector<Node*>& list, size_t at) {
  Region region;
  PointerSet in_region, waits;
  std::unique_ptr<OpenRegion> open;  // from the first extent on that is not a literal
  std::string& why = region.why;
  auto take = [&](Node* n) {
    if (!open && values_->program()->several()) open = std::make_unique<OpenRegion>();
    if (!open && !IsStatic(GetRef<Expr>(n))) open = std::make_unique<OpenRegion>();
    if (!open && As<CallNode>(n) && !IsStaticKernel(n)) open = std::make_unique<OpenRegion>();
    if (open && !AddAllOpen(open.get(), region.nodes, n)) {
      why = open->why();
      region.refused = true;
      if (region.nodes.empty()) {
        closed_.Add(n);
        refused_[n] = why;
      }
      if (!HasOpen(region.nodes) && !values_->program()->several()) open = nullptr;
      return false;
    }
    region.nodes.push_back(n);
    in_region.Add(n);
    return true;
  };
  size_t i = at;
  for (; i < list.size(); ++i) {
    Node* n = list[i];
    bool uses_region = false, uses_waiting = false;
    auto look = [&](const Expr& operand) {
      const ExprNode* p = Resolve(operand).get();
      uses_region = uses_region || in_region.Has(p);
      uses_waiting = uses_waiting || waits.Has(p);
    };
    const auto* tuple = As<TupleNode>(n);
    const auto* field = As<TupleGetItemNode>(n);
    if (region.nodes.empty()) region.device = values_->program()->DeviceOf(n);
    const bool here = values_->program()->DeviceOf(n) == region.device;
    auto fits = [&](Node* u) { return IsStaticKernel(u) || IsOpenKernel(u); };
    const bool tensors = IsStatic(GetRef<Expr>(n)) || IsOpenTensors(n);
    if (fits(n)) {
      const auto* call = As<CallNode>(n);
      for (const Expr& a : call->args) look(a);
      if (!here) why = "it runs on another device";
      if (uses_waiting) why = "it reads a tuple that is made behind the region";
      if (uses_waiting || !here || !take(n)) break;
      region.is_work = region.is_work || IsPrimitive(call->op) || !IsStaticKernel(n);
    } else if (tuple || field) {
      bool inside = tensors;
      if (tuple) {
        for (const Expr& f : tuple->fields) look(f);
        // A tuple that only kernels read needs no code.
        inside = inside && here && !uses_waiting && values_->UsersOf(n) && values_->result() != n;
        if (inside) {
          for (Node* u : *values_->UsersOf(n)) inside = inside && fits(u);
        }
      } else {
        look(field->tuple);
        inside = inside && uses_region;
      }
      if (inside) {
        if (!take(n)) break;
      } else if (uses_region || uses_waiting) {
        region.behind.push_back(n);
        waits.Add(n);
      } else if (region.nodes.empty()) {
        break;
      } else {
        region.before.push_back(n);
      }
    } else {
      break;
    }
  }
  region.end = i;
  region.open = open != nullptr;
  if (!region.is_work) return region;
  if (open) {
    FinishOpen(open.get(), &region);
  } else {
    FinishStatic(&region);
  }
  return region;
}

/// Whether a value is read outside of the region.
bool RegionFormer::IsRead(Node* n, const PointerSet& inside) const {
  bool out = n == values_->result();
  if (const std::vector<Node*>* users = values_->UsersOf(n)) {
    for (Node* u : *users) out = out || !inside.Has(u);
  }
  return out;
}

namespace {

/// Returns a value of the type whose tensors are new parameters.
Expr ParametersOf(const Type& type, Array<Var>* params) {
  struct Item {
    Type type;
    Array<Expr> fields;
  };
  // Tuples nest; each level is built when its fields are.
  std::vector<Item> stack{{type, {}}};
  for (;;) {
    Item& top = stack.back();
    Expr done;
    const auto* tuple = top.type.as<TupleTypeNode>();
    if (!tuple) {
      Var v("p" + std::to_string(params->size()), top.type);
      v->checked_type_ = top.type;
      params->push_back(v);
      done = v;
    } else if (top.fields.size() == tuple->fields.size()) {
      done = Tuple(top.fields);
      done->checked_type_ = top.type;
    } else {
      stack.push_back({tuple->fields[static_cast<int64_t>(top.fields.size())], {}});
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return done;
    stack.back().fields.push_back(done);
  }
}

}  // namespace

void RegionFormer::FinishStatic(Region* region) const {
  PointerMap<Expr> made;
  PointerSet inside;
  for (Node* n : region->nodes) inside.Add(n);
  Array<Var> params;
  auto value = [&](const Expr& e) -> Expr {
    const Expr operand = Resolve(e);
    if (Expr* known = made.Find(operand.get())) return *known;
    const Type type = Downcast<Type>(e->checked_type_.defined() ? e->checked_type_ : operand->checked_type_);
    const ConstantNode* placed = values_->PlacedConstant(operand.get());
    Expr input = operand;
    if (placed) {
      input = operand.as<CallNode>()->args[0];
    } else if (!operand.as<ConstantNode>()) {
      input = ParametersOf(type, &params);
      region->inputs.push_back({operand.get(), type});
    }
    made[operand.get()] = input;
    return input;
  };
  auto values = [&](const Array<Expr>& exprs) {
    Array<Expr> out;
    for (const Expr& e : exprs) out.push_back(value(e));
    return out;
  };
  for (Node* n : region->nodes) {
    Expr e;
    if (const auto* call = As<CallNode>(n)) {
      e = Call(call->op, values(call->args), call->attrs, call->type_args);
    } else if (const auto* t = As<TupleNode>(n)) {
      e = Tuple(values(t->fields));
    } else {
      const auto* g = As<TupleGetItemNode>(n);
      e = TupleGetItem(value(g->tuple), g->index);
    }
    e->checked_type_ = n->checked_type_;
    e->span = n->span;
    made[n] = e;
  }
  // Values that are read outside of the region, tuples leaf by leaf.
  Array<Expr> outputs;
  Array<Type> types;
  for (Node* n : region->nodes) {
    if (!IsRead(n, inside)) continue;
    region->results.push_back({n, static_cast<int32_t>(outputs.size())});
    std::vector<std::pair<Expr, Type>> work{{made[n], n->checked_type()}};
    while (!work.empty()) {
      const auto [e, type] = work.back();
      work.pop_back();
      if (const auto* tuple = type.as<TupleTypeNode>()) {
        for (size_t i = tuple->fields.size(); i-- > 0;) {
          TupleGetItem g(e, static_cast<int64_t>(i));
          g->checked_type_ = tuple->fields[static_cast<int64_t>(i)];
          work.push_back({g, tuple->fields[static_cast<int64_t>(i)]});
        }
      } else {
        outputs.push_back(e);
        types.push_back(type);
      }
    }
  }
  if (outputs.empty()) return;  // the results are unused
  Tuple body(outputs);
  body->checked_type_ = TupleType(types);
  region->body = Function(params, body, TupleType(types));
}

}  // namespace baton::driver
