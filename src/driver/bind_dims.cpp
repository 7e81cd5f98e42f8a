// SPDX-License-Identifier: Apache-2.0
// Symbols of a module become lengths.
#include <baton/arith/extent.h>
#include <baton/driver/driver.h>
#include <baton/relay/functor.h>
#include <baton/relay/transform.h>
#include <baton/relay/type_functor.h>
#include <baton/runtime/registry.h>
#include <baton/support/nearest.h>
#include <baton/tir/functor.h>
#include <relay/types/extent_guards.h>

#include <set>

namespace baton::driver {
namespace {

using relay::Expr;
using relay::Function;

/// Literals for symbols, by name.
class Extents : private relay::TypeMutator {
 public:
  explicit Extents(const Map<String, int64_t>& dims) : dims_(dims) {}
  const std::set<std::string>& bound() const { return bound_; }
  const std::set<std::string>& seen() const { return seen_; }

  PrimExpr Bound(const PrimExpr& e) {
    tir::VarMap with;
    tir::PostOrderVisitExpr(e, [&](const PrimExpr& part) {
      const auto* v = part.as<tir::VarNode>();
      if (!v) return;
      const String name = v->name_hint;
      seen_.insert(name.str());
      if (!dims_.count(name)) return;
      bound_.insert(name.str());
      with[v] = PrimExpr(dims_.at(name));
    });
    return with.empty() ? e : arith::CanonicalExtent(tir::Substitute(e, with));
  }
  Type Bound(const Type& t) { return VisitType(t); }
  Any Bound(const Any& value) {
    const Object* o = value.object();
    if (!o) return value;
    if (const auto* list = o->IsInstance<runtime::ArrayObj>() ? static_cast<const runtime::ArrayObj*>(o) : nullptr) {
      bool changed = false;
      Array<Any> out;
      for (const Any& x : list->items) {
        out.push_back(Bound(x));
        changed = changed || !out.back().Same(x);
      }
      return changed ? Any(out) : value;
    }
    if (!o->IsInstance<PrimExprNode>() || o->IsInstance<IntImmNode>()) return value;
    const PrimExpr e = value.As<PrimExpr>(), d = Bound(e);
    if (d.same_as(e)) return value;
    const auto* n = d.as<IntImmNode>();
    return n ? Any(n->value) : Any(d);
  }
  Attrs Bound(const Attrs& attrs) {
    const runtime::TypeInfo* info = runtime::TypeInfo::Get(attrs.type_index());
    Attrs out = attrs;
    for (const runtime::FieldInfo& f : info->fields) {
      const Any before = f.Get(attrs.get()), after = Bound(before);
      if (after.Same(before)) continue;
      if (out.same_as(attrs)) out = Attrs(ObjectPtr<Object>(info->copy(attrs.get())));
      f.Set(runtime::ObjectAccess::Get(out), after.raw());
    }
    return out;
  }

 private:
  Type VisitType_(const TensorTypeNode* t) override {
    Array<PrimExpr> shape = t->shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (t->shape[i].as<IntImmNode>()) continue;
      PrimExpr d = Bound(t->shape[i]);
      if (const auto* n = d.as<IntImmNode>(); n && n->value < 0) {
        throw runtime::ValueError("extent " + arith::ExtentText(t->shape[i]) + " would be " + std::to_string(n->value));
      }
      if (!d.same_as(t->shape[i])) shape.Set(i, d);
    }
    return shape.same_as(t->shape) ? GetRef<Type>(t) : TensorType(shape, t->dtype);
  }

  const Map<String, int64_t>& dims_;
  std::set<std::string> bound_, seen_;
};

/// The same in types, attributes and guards of a program.
class Binder : public relay::MixedModeMutator {
 public:
  explicit Binder(const Map<String, int64_t>& dims) : extents_(dims) {}
  const Extents& extents() const { return extents_; }

  using MixedModeMutator::VisitExpr_;
  Expr VisitExpr_(const relay::VarNode* v) override {
    if (!v->type_annotation.defined()) return GetRef<Expr>(v);
    Type type = extents_.Bound(v->type_annotation);
    if (type.same_as(v->type_annotation)) return GetRef<Expr>(v);
    relay::Var out(v->name_hint(), type);
    out->span = v->span;
    return out;
  }
  Expr VisitExpr_(const relay::FunctionNode* f) override {
    Function made = Downcast<Function>(ExprMutator::VisitExpr_(f));
    Type ret = f->ret_type.defined() ? extents_.Bound(f->ret_type) : f->ret_type;
    DictAttrs attrs = Guards(f->attrs);
    if (ret.same_as(made->ret_type) && attrs.same_as(made->attrs)) return made;
    Function out(made->params, made->body, ret, made->type_params, attrs);
    out->span = f->span;
    return out;
  }
  Expr Rewrite_(const relay::CallNode* pre, const Expr& post) override {
    const auto* call = post.as<relay::CallNode>();
    if (!pre->attrs.defined()) return post;
    Attrs attrs = extents_.Bound(pre->attrs);
    if (attrs.same_as(pre->attrs)) return post;
    relay::Call out(call->op, call->args, attrs, call->type_args);
    out->span = pre->span;
    return out;
  }

 private:
  /// Guards that hold go, one that does not is an error.
  DictAttrs Guards(const DictAttrs& attrs) {
    if (!attrs.defined() || !attrs->dict.count(String(relay::kExtentGuards))) return attrs;
    const auto guards = attrs->dict.at(String(relay::kExtentGuards)).As<Array<Any>>();
    Array<Any> left;
    for (const Any& g : guards) {
      const auto parts = g.As<Array<Any>>();
      const PrimExpr a = extents_.Bound(parts[0].As<PrimExpr>()), b = extents_.Bound(parts[1].As<PrimExpr>());
      switch (arith::ExtentsEqual(a, b)) {
        case arith::Fact::kYes:
          break;
        case arith::Fact::kNo:
          throw runtime::ValueError(parts[2].As<String>().str() + "; they are " + arith::ExtentText(a) + " and " +
                                    arith::ExtentText(b));
        default:
          left.push_back(Any(Array<Any>{Any(a), Any(b), parts[2]}));
      }
    }
    Map<String, Any> dict = attrs->dict;
    if (left.empty()) {
      dict.erase(String(relay::kExtentGuards));
    } else {
      dict.Set(String(relay::kExtentGuards), Any(left));
    }
    return DictAttrs(dict);
  }

  Extents extents_;
};

}  // namespace

IRModule BindDims(const IRModule& mod, const Map<String, int64_t>& dims) {
  for (const auto& [name, value] : dims) {
    if (value < 0) throw runtime::ValueError("`" + name.str() + "` is " + std::to_string(value));
  }
  if (dims.empty()) return mod;
  Binder binder(dims);
  IRModule out = mod.Copy();
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<relay::FunctionNode>()) continue;
    out.CopyOnWrite()->Update(var, Downcast<Function>(binder.Mutate(Downcast<Function>(func))));
  }
  for (const auto& [name, value] : dims) {
    if (binder.extents().bound().count(name.str())) continue;
    throw runtime::ValueError(
        "the module has no dimension `" + name.str() + "`" +
        support::DidYouMean(name.view(),
                            std::vector<std::string>(binder.extents().seen().begin(), binder.extents().seen().end())));
  }
  return relay::transform::InferType()(out);
}

namespace {

/// Symbols that stand alone in a type, by the shapes of a value of that type.
void SymbolsOf(const Type& type, const ObjectRef& value, const std::string& name, Map<String, int64_t>* out) {
  if (const auto* t = type.as<TensorTypeNode>()) {
    if (!value.as<runtime::NDArrayObj>()) return;
    const std::vector<int64_t> shape = Downcast<NDArray>(value).shape();
    for (size_t i = 0; i < t->shape.size() && i < shape.size(); ++i) {
      const auto* v = t->shape[static_cast<int64_t>(i)].as<tir::VarNode>();
      if (!v) continue;
      if (out->count(v->name_hint) && out->at(v->name_hint) != shape[i]) {
        throw runtime::ValueError("`" + name + "` has " + v->name_hint.str() + " = " + std::to_string(shape[i]) +
                                  ", an argument before it has " + std::to_string(out->at(v->name_hint)));
      }
      out->Set(v->name_hint, shape[i]);
    }
  } else if (const auto* t = type.as<TupleTypeNode>()) {
    if (!value.as<runtime::ArrayObj>()) return;
    const auto fields = Downcast<Array<ObjectRef>>(value);
    for (size_t i = 0; i < t->fields.size() && i < fields.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      SymbolsOf(t->fields[at], fields[at], name, out);
    }
  }
}

}  // namespace

IRModule BindArguments(const IRModule& mod, const Array<ObjectRef>& args) {
  const Function main = Downcast<Function>(mod->Lookup("main"));
  Map<String, int64_t> dims;
  for (size_t i = 0; i < main->params.size() && i < args.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const relay::Var& p = main->params[at];
    if (p->type_annotation.defined()) SymbolsOf(p->type_annotation, args[at], p->name_hint().str(), &dims);
  }
  return BindDims(mod, dims);
}

BATON_REGISTER_GLOBAL("driver.BindArguments").set_body_typed(BindArguments);
BATON_REGISTER_GLOBAL("driver.BindDims").set_body_typed(BindDims);

}  // namespace baton::driver
