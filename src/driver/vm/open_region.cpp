// SPDX-License-Identifier: Apache-2.0
#include "driver/vm/open_region.h"

#include <baton/arith/extent.h>
#include <baton/codegen/backend.h>
#include <baton/driver/driver.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/relay/op/annotation.h>
#include <baton/relay/transform.h>
#include <baton/tir/functor.h>

#include "driver/kernel_table.h"
#include "driver/lower_graph.h"
#include "driver/size_words.h"
#include "driver/vm/compile.h"

namespace baton::driver {

using relay::Call;
using relay::CallNode;
using relay::ConstantNode;
using relay::Expr;
using relay::ExprNode;
using relay::Function;
using relay::FunctionNode;
using relay::KnownValues;
using relay::Tuple;
using relay::TupleGetItem;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;
using relay::VarNode;

namespace {

/// Static forms are made of others that have them: no chain of them is longer.
constexpr int kMaxForms = 16;

bool IsKnown(const Expr& e) {
  std::vector<TensorType> types;
  return e->checked_type_.defined() && FlattenSymbolic(e->checked_type(), &types);
}

/// Whether an operator that is said by others becomes loops: its definition is there, and names no function of the
/// host.
bool BecomesLoops(const Call& call, const relay::OpDef& def) {
  const Expr form = def.decompose(call, call->args);
  if (!form.defined()) return false;
  for (const ExprNode* n : relay::PostOrderNodes(form)) {
    const auto* part = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n) : nullptr;
    const relay::OpDef* inner = part ? relay::DefOf(part->op) : nullptr;
    if (inner && !inner->lower && !inner->decompose && !inner->static_form && !relay::IsView(part->op)) return false;
  }
  return true;
}

}  // namespace

OpenRegion::OpenRegion()
    : plain_([this](const Expr& e) { return ElementsOf(e, false); }),
      negative_([this](const Expr& e) { return ElementsOf(e, true); }) {}

Var OpenRegion::Input(const ExprNode* n, const Type& type) {
  const auto* param = n->IsInstance<VarNode>() ? static_cast<const VarNode*>(n) : nullptr;
  Var v(param ? param->name_hint() : String("region." + std::to_string(inputs_.size())), type);
  v->checked_type_ = type;
  inputs_.push_back({n, v});
  return v;
}

Expr OpenRegion::MakeTuple(const Array<Expr>& fields) const {
  Array<Type> types;
  for (const Expr& f : fields) types.push_back(f->checked_type());
  Tuple t(fields);
  t->checked_type_ = TupleType(types);
  return t;
}

Expr OpenRegion::Field(const Expr& tuple, int64_t index) const {
  if (const auto* t = tuple.as<TupleNode>()) return t->fields[index];
  TupleGetItem g(tuple, index);
  g->checked_type_ = tuple->checked_type_.as<TupleTypeNode>()->fields[index];
  return g;
}

/// The elements of a short input, each a variable.
std::optional<KnownValues::Elements> OpenRegion::ElementsOf(const Expr& e, bool negative) {
  const auto* v = e.as<VarNode>();
  const auto* t = v ? v->checked_type_.as<TensorTypeNode>() : nullptr;
  if (!t || t->dtype.bits() > 64 || t->dtype.lanes() != 1) return std::nullopt;
  const int64_t n = t->shape.empty() ? 1 : relay::DimOf(t->shape[0]);
  KnownValues::Elements out;
  for (int64_t i = 0; i < n; ++i) {
    const String name(v->name_hint().str() + (negative ? "(" : "[") + std::to_string(i) + (negative ? ")" : "]"));
    const tir::Var one = negative ? tir::Var(name, PrimType(DataType::Int(64))) : tir::Var(tir::SizeVar(name));
    values_.push_back({one, GetRef<Var>(v), i, negative});
    out.push_back(one);
  }
  return out;
}

Expr OpenRegion::StaticForm(const Call& call) {
  const relay::OpDef* def = relay::DefOf(call->op);
  Array<NDArray> constants;
  bool any = false;
  for (const Expr& a : call->args) {
    const auto* c = a.as<ConstantNode>();
    constants.push_back(c ? c->data : NDArray());
    any = any || c;
  }
  Expr out = any ? def->static_form(call, constants) : Expr();
  const relay::SymbolicFormFn form = def->traits.symbolic_form;
  for (KnownValues* known : {def->traits.negative_values ? &negative_ : nullptr, &plain_}) {
    if (out.defined() || !form || !known) continue;
    Array<Array<PrimExpr>> values;
    for (const Expr& a : call->args) {
      const auto elements = known->Of(a);
      values.push_back(elements ? Array<PrimExpr>(*elements) : Array<PrimExpr>(runtime::ObjectPtr<Object>()));
    }
    out = form(call, values);
  }
  return out;
}

Expr OpenRegion::ApplyOp(const CallNode* call, const Array<Expr>& args) {
  const relay::OpDef* def = relay::DefOf(call->op);
  Call made(call->op, args, call->attrs, call->type_args);
  made->span = call->span;
  auto refuse = [this](const char* why) {
    Refuse(why);
    return Expr();
  };
  if (!relay::transform::TypeIfAny(made).defined())
    return refuse("its type does not follow from the types of its operands");
  if (def && def->static_form && depth_ < kMaxForms) {
    struct Deeper {
      int* depth;
      explicit Deeper(int* d) : depth(d) { ++*depth; }
      ~Deeper() { --*depth; }
    } deeper(&depth_);
    const Expr form = StaticForm(made);
    if (form.defined() && !form.same_as(made)) {
      PointerMap<Expr> known;
      for (const Expr& a : args) known[a.get()] = a;
      return Rebuild(form, &known);
    }
  }
  if (const char* why = def && def->traits.needs_extents ? def->traits.needs_extents(made.get()) : nullptr) {
    return refuse(why);
  }
  if (!IsKnown(made)) return refuse("the shape of its result follows from values that are computed before it");
  if (!def || def->lower || relay::IsView(call->op)) return made;
  return def->decompose && BecomesLoops(made, *def) ? Expr(made) : refuse("it has no loops");
}

Expr OpenRegion::Apply(const CallNode* call, const Array<Expr>& args) {
  for (const Expr& a : args) {
    if (a.defined()) continue;
    Refuse("it reads a value whose extents are extents of no input by themselves");
    return Expr();
  }
  try {
    const auto* group = call->op.as<FunctionNode>();
    if (!group) return ApplyOp(call, args);
    PointerMap<Expr> known;
    for (size_t i = 0; i < args.size(); ++i) {
      known[group->params[static_cast<int64_t>(i)].get()] = args[static_cast<int64_t>(i)];
    }
    return Rebuild(group->body, &known);
  } catch (const Error& e) {
    if (e.ends_work()) throw;
    Refuse("running it is an error");
    return Expr();
  }
}

Expr OpenRegion::Rebuild(const Expr& e, PointerMap<Expr>* known) {
  struct Item {
    Expr expr;
    bool parts_done;
  };
  std::vector<Item> stack{{e, false}};
  while (!stack.empty()) {
    const Item top = stack.back();
    stack.pop_back();
    if (known->Has(top.expr.get())) continue;
    const auto* call = top.expr.as<CallNode>();
    const auto* tuple = top.expr.as<TupleNode>();
    const auto* field = top.expr.as<TupleGetItemNode>();
    if (top.expr.as<ConstantNode>()) {
      if (!top.expr->checked_type_.defined()) relay::transform::InferTypeOf(top.expr);
      (*known)[top.expr.get()] = top.expr;
      continue;
    }
    if (!call && !tuple && !field) return Expr();
    if (!top.parts_done) {
      stack.push_back({top.expr, true});
      auto part = [&](const Expr& p) { stack.push_back({p, false}); };
      if (field) part(field->tuple);
      for (const Expr& p : call ? call->args : tuple ? tuple->fields : Array<Expr>()) part(p);
      continue;
    }
    Expr made;
    if (field) {
      made = Field(*known->Find(field->tuple.get()), field->index);
    } else {
      Array<Expr> parts;
      for (const Expr& p : call ? call->args : tuple->fields) parts.push_back(*known->Find(p.get()));
      made = call ? Apply(call, parts) : MakeTuple(parts);
    }
    if (!made.defined()) return Expr();
    (*known)[top.expr.get()] = made;
  }
  return *known->Find(e.get());
}

namespace {

class VarsOf {
 public:
  void Add(const PrimExpr& e) {
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      if (x.as<tir::VarNode>() && seen_.Add(x.get())) vars.push_back(Downcast<tir::Var>(x));
    });
  }
  void Add(const Type& type) {
    std::vector<Type> work{type};
    while (!work.empty()) {
      const Type t = work.back();
      work.pop_back();
      if (const auto* tensor = t.as<TensorTypeNode>()) {
        for (const PrimExpr& d : tensor->shape) {
          if (!d.as<IntImmNode>()) Add(d);
        }
      } else if (const auto* tuple = t.as<TupleTypeNode>()) {
        for (const Type& f : tuple->fields) work.push_back(f);
      }
    }
  }
  void Add(const Any& value) {
    const Object* o = value.object();
    if (!o) return;
    if (o->IsInstance<runtime::ArrayObj>()) {
      for (const Any& x : static_cast<const runtime::ArrayObj*>(o)->items) Add(x);
    } else if (o->IsInstance<PrimExprNode>() && !o->IsInstance<IntImmNode>()) {
      Add(value.As<PrimExpr>());
    }
  }
  void Add(const Attrs& attrs) {
    if (!attrs.defined()) return;
    for (const runtime::FieldInfo& f : runtime::TypeInfo::Get(attrs.type_index())->fields) Add(f.Get(attrs.get()));
  }

  std::vector<tir::Var> vars;

 private:
  PointerSet seen_;
};

}  // namespace

std::vector<tir::Var> SizeVarsOf(const Function& f) {
  VarsOf all;
  for (const Var& p : f->params) all.Add(p->checked_type());
  for (const ExprNode* n : relay::PostOrderNodes(f->body)) {
    if (n->checked_type_.defined()) all.Add(n->checked_type());
    if (n->IsInstance<CallNode>()) all.Add(static_cast<const CallNode*>(n)->attrs);
  }
  return all.vars;
}

namespace {

/// Puts other variables for those of extents.
class VarRenamer : public relay::MixedModeMutator {
 public:
  explicit VarRenamer(const PointerMap<tir::Var>& vars) : vars_(vars) {}

  PrimExpr Renamed(const PrimExpr& e) const {
    tir::VarMap with;
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& x) {
      const tir::Var* v = vars_.Find(x.get());
      if (v) with[static_cast<const tir::VarNode*>(static_cast<const Object*>(x.get()))] = *v;
    });
    return with.empty() ? e : arith::CanonicalExtent(tir::Substitute(e, with));
  }
  Type Renamed(const Type& type) const {
    if (const auto* t = type.as<TensorTypeNode>()) {
      Array<PrimExpr> shape;
      for (const PrimExpr& d : t->shape) shape.push_back(d.as<IntImmNode>() ? d : Renamed(d));
      return TensorType(shape, t->dtype);
    }
    return type;
  }
  Any Renamed(const Any& value) const {
    const Object* o = value.object();
    if (!o) return value;
    if (o->IsInstance<runtime::ArrayObj>()) {
      bool changed = false;
      Array<Any> out;
      for (const Any& x : static_cast<const runtime::ArrayObj*>(o)->items) {
        out.push_back(Renamed(x));
        changed = changed || !out.back().Same(x);
      }
      return changed ? Any(out) : value;
    }
    if (!o->IsInstance<PrimExprNode>() || o->IsInstance<IntImmNode>()) return value;
    const PrimExpr e = value.As<PrimExpr>(), made = Renamed(e);
    return made.same_as(e) ? value : Any(made);
  }

 private:
  using MixedModeMutator::VisitExpr_;
  Expr Rewrite_(const CallNode* pre, const Expr& post) final {
    if (!pre->attrs.defined()) return post;
    const runtime::TypeInfo* info = runtime::TypeInfo::Get(pre->attrs.type_index());
    Attrs attrs = pre->attrs;
    for (const runtime::FieldInfo& field : info->fields) {
      const Any before = field.Get(pre->attrs.get()), after = Renamed(before);
      if (after.Same(before)) continue;
      if (attrs.same_as(pre->attrs)) attrs = Attrs(runtime::ObjectPtr<Object>(info->copy(pre->attrs.get())));
      field.Set(runtime::ObjectAccess::Get(attrs), after.raw());
    }
    if (attrs.same_as(pre->attrs)) return post;
    const auto* call = post.as<CallNode>();
    Call out(call->op, call->args, attrs, call->type_args);
    out->span = pre->span;
    return out;
  }
  const PointerMap<tir::Var>& vars_;
};

}  // namespace

Function WithSizeVars(const Function& f, const PointerMap<tir::Var>& vars) {
  VarRenamer renamer(vars);
  Array<Var> params;
  Map<Var, Expr> binds;
  for (const Var& p : f->params) {
    const Type type = renamer.Renamed(p->checked_type());
    Var v(p->name_hint(), type);
    v->checked_type_ = type;
    params.push_back(v);
    binds.Set(p, v);
  }
  Function out(params, relay::Bind(renamer.Mutate(f->body), binds), Type());
  const auto values = f->GetAttr<Array<Any>>(kValueDims, Array<Any>());
  return values.empty() ? out : WithAttr(out, kValueDims, renamer.Renamed(Any(values)));
}

Function OptimizeRegion(const Function& region) {
  IRModule mod(Map<GlobalVar, BaseFunc>{{GlobalVar("main"), region}});
  mod = DefaultPipeline()(mod);
  relay::transform::FuseOpsOptions alone = relay::transform::FuseOpsOptions::ViewsOutside();
  alone.fuse_opt_level = 0;
  const auto group = relay::transform::FuseOps(alone);
  if (!baton::transform::PassContext::Current().PassEnabled(group->Info())) {
    // Where the user wants nothing fused, each operator is a kernel by itself.
    With<baton::transform::PassContext> scope(baton::transform::PassContext::Create());
    mod = group(mod);
  }
  mod = relay::transform::InferType()(mod);
  const Function main = MainOf(mod);
  std::string why;
  if (main->params.size() != region->params.size() || !CanLowerGraph(main, &why)) {
    throw InternalError("a region of the program cannot be one function: " +
                        (why.empty() ? std::string("its inputs have changed") : why));
  }
  return main;
}

}  // namespace baton::driver
