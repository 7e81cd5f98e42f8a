// SPDX-License-Identifier: Apache-2.0
// Kernels of stretches whose extents are open: what each value's shape is called, and their bodies.
#include <baton/arith/extent.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/support/stack.h>
#include <baton/tir/functor.h>

#include <algorithm>

#include "driver/size_words.h"
#include "driver/vm/form_regions.h"
#include "driver/vm/function_builder.h"

namespace baton::driver {

using relay::Call;
using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::ExprNode;
using relay::Function;
using relay::TupleGetItem;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;
using relay::VarNode;

namespace {

/// A type with f(extent) for each extent.
template <class F>
Type MapExtents(const Type& type, F f) {
  if (const auto* t = type.as<TensorTypeNode>()) {
    Array<PrimExpr> shape;
    bool same = true;
    for (const PrimExpr& d : t->shape) {
      shape.push_back(f(d));
      same = same && shape.back().same_as(d);
    }
    return same ? type : TensorType(shape, t->dtype);
  }
  if (const auto* t = type.as<TupleTypeNode>()) {
    Array<Type> fields;
    bool same = true;
    for (const Type& field : t->fields) {
      fields.push_back(MapExtents(field, f));
      same = same && fields.back().same_as(field);
    }
    return same ? type : TupleType(fields);
  }
  return type;
}

/// Whether it is tensors, or tuples of them, of any extents.
bool IsTensors(const ObjectRef& type) {
  if (!type.defined()) return false;
  bool all = true;
  std::vector<Type> work{Downcast<Type>(type)};
  while (all && !work.empty()) {
    const Type t = work.back();
    work.pop_back();
    if (const auto* tuple = t.as<TupleTypeNode>()) {
      for (const Type& f : tuple->fields) work.push_back(f);
    } else {
      all = t.as<TensorTypeNode>() != nullptr;
    }
  }
  return all;
}

bool IsLiteral(const Type& type) {
  bool all = true;
  MapExtents(type, [&](const PrimExpr& d) {
    all = all && d.as<IntImmNode>();
    return d;
  });
  return all;
}

void ForEachTensor(const Expr& e, const Type& type, const std::function<void(const Expr&, const TensorType&)>& f) {
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const auto* made = e.as<TupleNode>();
      Expr field = made ? made->fields[at] : Expr(TupleGetItem(e, at));
      field->checked_type_ = tuple->fields[at];
      ForEachTensor(field, tuple->fields[at], f);
    }
  } else {
    f(e, Downcast<TensorType>(type));
  }
}

}  // namespace

bool RegionFormer::IsOpenTensors(Node* n) const { return IsTensors(n->checked_type_); }

/// A call that becomes part of a kernel if its extents follow from those of what is read.
bool RegionFormer::IsOpenKernel(Node* n) const {
  const auto* call = As<CallNode>(n);
  if (!call || !IsOpenTensors(n) || closed_.Has(n)) return false;
  for (const Expr& a : call->args) {
    if (!IsTensors(a->checked_type_) && !IsTensors(Resolve(a)->checked_type_)) return false;
  }
  if (IsPrimitive(call->op)) return !IsStaticKernel(n);
  const relay::OpDef* def = relay::DefOf(call->op);
  if (!def || def->host || def->stateful || IsStaticKernel(n)) return false;
  if (relay::AsOnDevice(call->op, call->attrs) || relay::AsDeviceCopy(call->op, call->attrs)) return false;
  return def->lower || def->static_form || def->decompose || relay::IsView(call->op);
}

/// Values bind the symbols that are extents of theirs by themselves.
void RegionFormer::NoteBinders(Node* n, const Type& type) {
  MapExtents(type, [&](const PrimExpr& d) {
    if (d.as<tir::VarNode>() && !binders_.Has(d.get())) binders_[d.get()] = n;
    return d;
  });
}

/// The type with a symbol of its own for each extent that is no literal.
Type RegionFormer::WithNames(const Type& type) {
  return MapExtents(type, [&](const PrimExpr& d) -> PrimExpr {
    if (d.as<IntImmNode>()) return d;
    return tir::SizeVar(String("dim." + std::to_string(next_symbol_++)));
  });
}

/// The types of parameters and captured values. Names in the types of a global function's parameters are promises.
void RegionFormer::NameParameters() {
  const VmLambda& lambda = values_->lambda();
  PointerSet bound;
  auto open = [](const Type& t) { return IsTensors(t) && !IsLiteral(t); };
  const bool global = lambda.captured.empty() && !lambda.self;
  std::vector<std::pair<Node*, Type>> known;
  for (size_t i = 0; i < lambda.captured.size() && i < lambda.captured_types.size(); ++i) {
    if (open(lambda.captured_types[i])) known.push_back({lambda.captured[i], lambda.captured_types[i]});
  }
  const std::vector<Type> types = InputTypesOf(lambda.func);
  for (size_t i = 0; i < types.size(); ++i) {
    if (!types[i].defined() || !open(types[i])) continue;
    known.push_back({lambda.func->params[static_cast<int64_t>(i)].get(), global ? types[i] : WithNames(types[i])});
  }
  for (const auto& [n, type] : known) {
    MapExtents(type, [&](const PrimExpr& d) {
      if (d.as<tir::VarNode>()) bound.Add(d.get());
      return d;
    });
  }
  for (const auto& [n, type] : known) {
    const Type named = MapExtents(type, [&](const PrimExpr& d) -> PrimExpr {
      bool follows = true;
      tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
        follows = follows && !x.as<tir::AnyNode>() && (!x.as<tir::VarNode>() || bound.Has(x.get()));
      });
      return follows ? d : tir::SizeVar(String("dim." + std::to_string(next_symbol_++)));
    });
    open_types_[n] = named;
    NoteBinders(n, named);
  }
}

/// The type of a value with symbols for open extents: the same where extents are known to be equal.
Type RegionFormer::OpenType(const Expr& e) {
  return support::WithStack([&]() -> Type {
    const Expr value = Resolve(e);
    Node* n = value.get();
    if (const Type* known = open_types_.Find(n)) return *known;
    Type type = Downcast<Type>(n->checked_type_.defined() ? n->checked_type_ : e->checked_type_);
    if (!IsTensors(type) || IsLiteral(type)) return type;
    if (const auto* tuple = As<TupleNode>(n)) {
      Array<Type> fields;
      for (const Expr& f : tuple->fields) fields.push_back(OpenType(f));
      type = TupleType(fields);
    } else if (const auto* field = As<TupleGetItemNode>(n)) {
      const Type whole = OpenType(field->tuple);
      if (const auto* fields = whole.as<TupleTypeNode>()) type = fields->fields[field->index];
    } else if (const auto* branch = As<relay::IfNode>(n)) {
      type = Joined(OpenType(branch->true_branch), OpenType(branch->false_branch));
    } else {
      Type inferred;
      if (const auto* call = As<CallNode>(n); call && call->op.as<OpNode>()) inferred = TypeOfCall(call);
      type = inferred.defined() ? inferred : WithNames(type);
    }
    open_types_[n] = type;
    NoteBinders(n, type);
    return type;
  });
}

/// The type of a value that is one of two.
Type RegionFormer::Joined(const Type& a, const Type& b) {
  if (const auto* t = a.as<TensorTypeNode>()) {
    const Array<PrimExpr> other = Downcast<TensorType>(b)->shape;
    size_t i = 0;
    return MapExtents(a, [&](const PrimExpr& d) -> PrimExpr {
      const PrimExpr e =
          i < other.size() && other.size() == t->shape.size() ? other[static_cast<int64_t>(i)] : PrimExpr();
      ++i;
      if (e.defined() && tir::ExprDeepEqual(d, e)) return d;
      return tir::SizeVar(String("dim." + std::to_string(next_symbol_++)));
    });
  }
  const auto *t = a.as<TupleTypeNode>(), *u = b.as<TupleTypeNode>();
  if (!t || !u || t->fields.size() != u->fields.size()) return WithNames(a);
  Array<Type> fields;
  for (size_t i = 0; i < t->fields.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    fields.push_back(Joined(t->fields[at], u->fields[at]));
  }
  return TupleType(fields);
}

/// What an operator that the host runs says of its result, with names for what depends on values.
Type RegionFormer::TypeOfCall(const CallNode* call) {
  Array<Expr> args;
  for (const Expr& a : call->args) {
    const Type t = OpenType(a);
    if (!IsTensors(t)) return Type();
    const Expr value = Resolve(a);
    Var v("x", t);
    v->checked_type_ = t;
    args.push_back(value.as<ConstantNode>() ? value : Expr(v));
  }
  const Type type = relay::transform::TypeIfAny(Call(call->op, args, call->attrs, call->type_args));
  if (!IsTensors(type)) return Type();
  return MapExtents(type, [&](const PrimExpr& d) -> PrimExpr {
    bool known = true;
    tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) { known = known && !x.as<tir::AnyNode>(); });
    return known ? d : tir::SizeVar(String("dim." + std::to_string(next_symbol_++)));
  });
}

/// Whether each symbol of a type is an extent of a value by itself, or an element of an input of the region.
bool RegionFormer::IsBound(const Type& type, const OpenRegion& region) const {
  bool all = true;
  MapExtents(type, [&](const PrimExpr& d) {
    tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
      if (!x.as<tir::VarNode>() || binders_.Has(x.get())) return;
      const auto& values = region.values();
      all = all && std::any_of(values.begin(), values.end(), [&](const auto& v) { return x.same_as(v.var); });
    });
    return d;
  });
  return all;
}

/// Takes a node into a region; false where its extents do not follow from what the region reads.
bool RegionFormer::AddOpen(OpenRegion* region, Node* n) {
  region->Refuse("");
  auto value = [&](const Expr& e) -> Expr {
    Expr operand = Resolve(e);
    if (const Expr* known = region->made.Find(operand.get())) return *known;
    if (const ConstantNode* placed = values_->PlacedConstant(operand.get())) operand = GetRef<Expr>(placed);
    if (const auto* c = operand.as<ConstantNode>()) {
      if (!operand->checked_type_.defined()) operand->checked_type_ = c->tensor_type();
      return operand;
    }
    const Type type = OpenType(operand);
    if (!IsTensors(type) || !IsBound(type, *region)) return Expr();
    return region->made[operand.get()] = region->Input(operand.get(), type);
  };
  auto values = [&](const Array<Expr>& exprs) {
    Array<Expr> out;
    for (const Expr& e : exprs) out.push_back(value(e));
    return out;
  };
  Expr made;
  if (const auto* call = As<CallNode>(n)) {
    made = region->Apply(call, values(call->args));
  } else if (const auto* tuple = As<TupleNode>(n)) {
    const Array<Expr> fields = values(tuple->fields);
    bool all = true;
    for (const Expr& f : fields) all = all && f.defined();
    if (all) made = region->MakeTuple(fields);
  } else {
    const auto* field = As<TupleGetItemNode>(n);
    const Expr whole = value(field->tuple);
    if (whole.defined() && whole->checked_type_.as<TupleTypeNode>()) made = region->Field(whole, field->index);
  }
  if (!made.defined()) return false;
  if (!IsBound(made->checked_type(), *region)) {
    region->Refuse("an extent of its result is an extent of no input by itself");
    return false;
  }
  region->made[n] = made;
  return true;
}

/// The same of a node behind others, which are taken in first if none has been.
bool RegionFormer::AddAllOpen(OpenRegion* region, const std::vector<Node*>& before, Node* n) {
  for (Node* b : before) {
    if (!region->made.Has(b) && !AddOpen(region, b)) return false;
  }
  return AddOpen(region, n);
}

/// Whether one of these calls needs sizes when it runs.
bool RegionFormer::HasOpen(const std::vector<Node*>& nodes) const {
  for (Node* n : nodes) {
    if (!IsStatic(GetRef<Expr>(n)) || (As<CallNode>(n) && !IsStaticKernel(n))) return true;
  }
  return false;
}

namespace {

/// Inputs of a region that are more than looked at: parts of the result, and those whose values shapes use.
PointerSet ReadInputs(const OpenRegion& region, const Expr& body, const std::vector<tir::Var>& used) {
  PointerSet read;
  for (const ExprNode* n : relay::PostOrderNodes(body)) {
    if (n->IsInstance<VarNode>()) read.Add(n);
  }
  for (const OpenRegion::Value& v : region.values()) {
    if (std::any_of(used.begin(), used.end(), [&](const tir::Var& u) { return u.same_as(v.var); })) {
      read.Add(v.input.get());
    }
  }
  return read;
}

/// Takes the types from what is computed: inferred anew, they say what they assume, which the kernel asks when it runs.
void ForgetTypes(const Expr& body) {
  for (const ExprNode* n : relay::PostOrderNodes(body)) {
    if (n->IsInstance<CallNode>() || n->IsInstance<TupleNode>() || n->IsInstance<TupleGetItemNode>()) {
      n->checked_type_ = ObjectRef();
    }
  }
}

}  // namespace

void RegionFormer::FinishOpen(OpenRegion* open, Region* region) {
  PointerSet inside;
  for (Node* n : region->nodes) inside.Add(n);
  Array<Expr> outputs;
  for (Node* n : region->nodes) {
    if (!IsRead(n, inside)) continue;
    region->results.push_back({n, static_cast<int32_t>(outputs.size())});
    const Expr value = *open->made.Find(n);
    ForEachTensor(value, value->checked_type(), [&](const Expr& e, const TensorType&) { outputs.push_back(e); });
  }
  if (outputs.empty()) return;  // the results are unused

  // Parameters: tensors of the inputs, and what binds symbols that they do not.
  Array<Var> params;
  Map<Var, Expr> binds;
  PointerMap<int64_t> slots;  // of inputs that are tensors
  PointerSet bound;
  auto add = [&](Node* n, const Var& var) {
    const Type type = var->checked_type();
    std::function<Expr(const Type&)> flat = [&](const Type& t) -> Expr {
      if (const auto* tuple = t.as<TupleTypeNode>()) {
        Array<Expr> fields;
        for (const Type& f : tuple->fields) fields.push_back(flat(f));
        return open->MakeTuple(fields);
      }
      if (t.same_as(type)) slots[var.get()] = static_cast<int64_t>(params.size());
      Var p(t.same_as(type) ? var->name_hint() : String("region." + std::to_string(params.size()) + "f"), t);
      p->checked_type_ = t;
      params.push_back(p);
      return p;
    };
    binds.Set(var, flat(type));
    region->inputs.push_back({n, type});
    MapExtents(type, [&](const PrimExpr& d) {
      if (d.as<tir::VarNode>()) bound.Add(d.get());
      return d;
    });
  };
  Expr body = open->MakeTuple(outputs);
  const std::vector<tir::Var> used = SizeVarsOf(Function(Array<Var>(), body, body->checked_type()));
  auto is_used = [&](const tir::Var& v) {
    return std::any_of(used.begin(), used.end(), [&](const tir::Var& u) { return u.same_as(v); });
  };
  const PointerSet read = ReadInputs(*open, body, used);
  const std::vector<OpenRegion::Given> inputs = open->inputs();
  for (const OpenRegion::Given& g : inputs) {
    if (read.Has(g.var.get())) add(g.node, g.var);
  }
  for (const OpenRegion::Value& known : open->values()) bound.Add(known.var.get());
  for (const tir::Var& v : SizeVarsOf(Function(params, body, body->checked_type()))) {
    if (bound.Has(v.get())) continue;
    Node* const* binder = binders_.Find(v.get());
    ICHECK(binder) << "no value has the extent `" << v->name_hint.str() << "` of a region by itself";
    add(*binder, open->Input(*binder, OpenType(GetRef<Expr>(*binder))));
  }
  Array<Any> values;
  for (const OpenRegion::Value& v : open->values()) {
    const int64_t* slot = slots.Find(v.input.get());
    if (!is_used(v.var)) continue;
    ICHECK(slot) << "`" << v.var->name_hint.str() << "` is an element of no input of its region";
    values.push_back(Any(Array<Any>{Any(v.var), Any(*slot), Any(v.element), Any(int64_t{v.negative})}));
  }
  Function f(params, relay::Bind(body, binds), Type());
  std::vector<Type> types;
  for (const Region::Result& r : region->results) types.push_back((*open->made.Find(r.node))->checked_type());
  ForgetTypes(f->body);
  region->body = values.empty() ? f : WithAttr(f, kValueDims, Any(values));
  for (size_t i = 0; i < types.size(); ++i) NameResult(region->results[i].node, types[i], *open);
}

/// Notes the type of what a region makes: extents that follow from values of its inputs get a name.
void RegionFormer::NameResult(Node* n, const Type& type, const OpenRegion& region) {
  if (IsLiteral(type)) return;
  const Type named = MapExtents(type, [&](const PrimExpr& d) -> PrimExpr {
    bool by_value = false;
    tir::PostOrderVisitExpr(d, [&](const PrimExpr& x) {
      for (const OpenRegion::Value& v : region.values()) by_value = by_value || x.same_as(v.var);
    });
    if (!by_value) return d;
    for (const auto& [extent, name] : value_extents_) {
      if (tir::ExprDeepEqual(extent, d)) return name;
    }
    value_extents_.push_back({d, tir::SizeVar(String("dim." + std::to_string(next_symbol_++)))});
    return value_extents_.back().second;
  });
  open_types_[n] = named;
  NoteBinders(n, named);
}

}  // namespace baton::driver
