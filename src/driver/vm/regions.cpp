// SPDX-License-Identifier: Apache-2.0
// Stretches of tensor work become kernels.
#include <baton/relay/functor.h>

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
using vm::Opcode;

bool IsStatic(const Expr& e) {
  std::vector<TensorType> flat;
  return e->checked_type_.defined() && FlattenType(Downcast<Type>(e->checked_type_), &flat);
}

/// Makes one kernel of what follows from `at`, as far as it is tensor work, and returns what comes then; `at` itself if
/// no kernel begins here. Tuples and their fields that stand in the way are moved before or behind it.
size_t FunctionBuilder::EmitRegion(const std::vector<Node*>& list, size_t at) {
  std::vector<Node*> region, behind;
  PointerSet in_region, waits;
  bool work = false;
  int32_t device = 0;                // of the region
  std::unique_ptr<OpenRegion> open;  // once an extent is no literal
  std::string ends;                  // why it ends at `i`; "" where its expression says it
  auto take = [&](Node* n) {
    if (!open && program_->several()) open = std::make_unique<OpenRegion>();
    if (!open && !IsStatic(GetRef<Expr>(n))) open = std::make_unique<OpenRegion>();
    if (!open && As<CallNode>(n) && !IsStaticKernel(n)) open = std::make_unique<OpenRegion>();
    if (open && !AddAllOpen(open.get(), region, n)) {
      ends = open->why();
      if (region.empty()) {
        closed_.Add(n);
        refused_[n] = ends;
        program_->NoteWhy(ends);
      }
      if (!HasOpen(region) && !program_->several()) open = nullptr;
      return false;
    }
    region.push_back(n);
    in_region.Add(n);
    return true;
  };
  size_t i = at;
  for (; i < list.size(); ++i) {
    Node* n = list[i];
    if (registers_.Has(n)) continue;
    bool uses_region = false, uses_waiting = false;
    auto look = [&](const Expr& operand) {
      const ExprNode* p = Resolve(operand).get();
      uses_region = uses_region || in_region.Has(p);
      uses_waiting = uses_waiting || waits.Has(p);
    };
    const auto* tuple = As<TupleNode>(n);
    const auto* field = As<TupleGetItemNode>(n);
    if (region.empty()) device = program_->DeviceOf(n);
    const bool here = program_->DeviceOf(n) == device;
    auto fits = [&](Node* u) { return IsStaticKernel(u) || IsOpenKernel(u); };
    const bool tensors = IsStatic(GetRef<Expr>(n)) || IsOpenTensors(n);
    if (fits(n)) {
      const auto* call = As<CallNode>(n);
      for (const Expr& a : call->args) look(a);
      if (!here) ends = "it runs on another device";
      if (uses_waiting) ends = "it reads a tuple that is made behind the region";
      if (uses_waiting || !here || !take(n)) break;
      work = work || IsPrimitive(call->op) || !IsStaticKernel(n);
    } else if (tuple) {
      for (const Expr& f : tuple->fields) look(f);
      // A tuple that only kernels read is no value of its own.
      bool inside = here && !uses_waiting && tensors && users_.Has(n);
      if (inside) {
        for (Node* u : *users_.Find(n)) inside = inside && fits(u);
      }
      inside = inside && Resolve(lambda_.func->body).get() != n;
      if (inside) {
        if (!take(n)) break;
      } else if (uses_region || uses_waiting) {
        behind.push_back(n);
        waits.Add(n);
      } else if (region.empty()) {
        break;
      } else {
        EmitNode(n, false);
      }
    } else if (field) {
      look(field->tuple);
      if (uses_region && tensors) {
        if (!take(n)) break;
      } else if (uses_waiting || uses_region) {
        behind.push_back(n);
        waits.Add(n);
      } else if (region.empty()) {
        break;
      } else {
        EmitNode(n, false);
      }
    } else {
      break;
    }
  }
  if (!work) {
    NoteOutside(list[at]);
    return at;
  }
  const int32_t kernel = open ? EmitOpenKernel(region, open.get(), device) : EmitKernel(region, device);
  NoteEnd(kernel, region, list, i, ends);
  for (Node* n : behind) EmitNode(n, false);
  return i;
}

/// A value from outside as an expression of the graph: parameters for its tensors.
Expr FunctionBuilder::RegionInput(Node* n, const Type& type, Array<Var>* params, std::vector<int32_t>* in) {
  if (n->IsInstance<ConstantNode>()) return GetRef<Expr>(n);
  if (IsPlacedConstant(n)) return As<CallNode>(n)->args[0];
  struct Item {
    Type type;
    int32_t reg;
    Array<Expr> fields;
    Array<Type> types;
  };
  // Tuples nest; each level is built when its fields are.
  std::vector<Item> stack{{type, Use(GetRef<Expr>(n)), {}, {}}};
  for (;;) {
    Item& top = stack.back();
    Expr done;
    const auto* tuple = top.type.as<TupleTypeNode>();
    if (!tuple) {
      Var v("p" + std::to_string(params->size()), top.type);
      v->checked_type_ = top.type;
      params->push_back(v);
      in->push_back(top.reg);
      done = v;
    } else if (top.fields.size() == tuple->fields.size()) {
      done = Tuple(top.fields);
      done->checked_type_ = top.type;
    } else {
      const auto i = static_cast<int32_t>(top.fields.size());
      const int32_t r = NewRegister();
      Emit(Opcode::kField, {r, top.reg, i});
      stack.push_back({tuple->fields[i], r, {}, {}});
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return done;
    stack.back().fields.push_back(done);
  }
}

/// The kernel of a region and its call. Returns its number; -1 if nothing reads its results.
int32_t FunctionBuilder::EmitKernel(const std::vector<Node*>& nodes, int32_t device) {
  PointerMap<Expr> made;
  PointerSet inside;
  for (Node* n : nodes) inside.Add(n);
  Array<Var> params;
  std::vector<int32_t> in;
  auto value = [&](const Expr& e) -> Expr {
    const Expr operand = Resolve(e);
    if (Expr* known = made.Find(operand.get())) return *known;
    const Type type = Downcast<Type>(e->checked_type_.defined() ? e->checked_type_ : operand->checked_type_);
    Expr input = RegionInput(operand.get(), type, &params, &in);
    made[operand.get()] = input;
    return input;
  };
  auto values = [&](const Array<Expr>& exprs) {
    Array<Expr> out;
    for (const Expr& e : exprs) out.push_back(value(e));
    return out;
  };
  for (Node* n : nodes) {
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
  const ExprNode* root = Resolve(lambda_.func->body).get();
  Array<Expr> outputs;
  Array<Type> types;
  std::vector<std::pair<Node*, int32_t>> results;  // node, its first output
  for (Node* n : nodes) {
    bool out = n == root;
    if (const std::vector<Node*>* users = users_.Find(n)) {
      for (Node* u : *users) out = out || !inside.Has(u);
    }
    if (!out) continue;
    results.push_back({n, static_cast<int32_t>(outputs.size())});
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
  if (outputs.empty()) return -1;  // the results are unused
  Tuple body(outputs);
  body->checked_type_ = TupleType(types);
  std::vector<int32_t> operands = in;
  const int32_t base = next_register_;
  for (size_t i = 0; i < outputs.size(); ++i) operands.push_back(NewRegister());
  const int32_t kernel = program_->Kernel(Function(params, body, TupleType(types)), device);
  Emit(Opcode::kKernel, {kernel, static_cast<int32_t>(in.size()), static_cast<int32_t>(outputs.size())}, operands);
  for (auto [n, first] : results) registers_[n] = PackResult(n, base + first);
  return kernel;
}

int32_t FunctionBuilder::PackResult(Node* n, int32_t next) {
  struct Item {
    Type type;
    std::vector<int32_t> fields;
  };
  std::vector<Item> stack{{n->checked_type(), {}}};
  for (;;) {
    Item& top = stack.back();
    int32_t r;
    const auto* tuple = top.type.as<TupleTypeNode>();
    if (!tuple) {
      r = next++;
    } else if (top.fields.size() == tuple->fields.size()) {
      r = NewRegister();
      Emit(Opcode::kTuple, {r, static_cast<int32_t>(top.fields.size())}, top.fields);
    } else {
      stack.push_back({tuple->fields[static_cast<int64_t>(top.fields.size())], {}});
      continue;
    }
    stack.pop_back();
    if (stack.empty()) return r;
    stack.back().fields.push_back(r);
  }
}

}  // namespace baton::driver
