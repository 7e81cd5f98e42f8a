// SPDX-License-Identifier: Apache-2.0
// The verifier: invariants that every pass may rely on and must preserve.
#include <baton/ir/structural.h>
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/relay/op.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/expr/expr_index.h>
#include <relay/types/builtin_types.h>
#include <relay/types/type_children.h>

namespace baton::relay {
namespace {

constexpr size_t kMax = 50;

class Verifier {
 public:
  Verifier(const IRModule& mod, std::string* out) : mod_(mod), out_(out) {}
  bool ok() const { return count_ == 0; }
  void SetFunction(std::string_view name) { name_ = name; }
  void Check(const Expr& root, bool closed);
  void Problem(const Object* at, const std::string& text) {
    ++count_;
    if (!out_ || count_ > kMax) return;
    if (!out_->empty()) *out_ += '\n';
    if (!name_.empty()) *out_ += fmt::format("@{}: ", name_);
    const auto* e = at && at->IsInstance<BaseExprNode>() ? static_cast<const BaseExprNode*>(at) : nullptr;
    if (e && e->span.defined() && e->span->source_name.defined()) {
      *out_ += fmt::format("{}:{}:{}: ", e->span->source_name->name.view(), e->span->line, e->span->column);
    }
    *out_ += text;
  }

 private:
  struct Binding {
    int32_t block = 0;  ///< where it may be used
    int32_t also = -1;  ///< and here: the body of a function that a let gives its name
    bool seen = false;
  };
  void Bind(const Var& var, int32_t block, int32_t also, const ExprNode* by);
  void CheckChildren(const ExprNode* n);
  void CheckType(const Type& type, const ExprNode* at);
  static std::string Name(const Var& v) { return fmt::format("%{}", v->vid.defined() ? v->name_hint().view() : ""); }

  const IRModule& mod_;
  std::string* out_;
  std::string_view name_;
  size_t count_ = 0;
  PointerMap<Binding> bound_;
  PointerSet types_, sensible_;
};

void Verifier::Bind(const Var& var, int32_t block, int32_t also, const ExprNode* by) {
  if (!var.defined()) {
    Problem(by, "a variable is missing (null)");
    return;
  }
  Binding& b = bound_[var.get()];
  if (b.seen) Problem(by, fmt::format("{} is bound twice; each variable object is bound once", Name(var)));
  b = {block, also, true};
}

void Verifier::CheckType(const Type& type, const ExprNode* at) {
  std::vector<Type> stack{type};
  while (!stack.empty()) {
    baton::runtime::PollInterrupt();
    Type t = stack.back();
    stack.pop_back();
    if (!t.defined()) {
      Problem(at, "a type has a part that is missing (null)");
      continue;
    }
    if (!types_.Add(t.get())) continue;
    if (const auto* n = t.as<TensorTypeNode>()) {
      for (const PrimExpr& d : n->shape) {
        if (!d.defined())
          Problem(at, "a dimension is missing (null)");
        else if (!(d.dtype() == DataType::Int(64)))
          Problem(at, fmt::format("a dimension has dtype {}, must be int64", DataType2String(d.dtype())));
        else if (const auto* i = d.as<IntImmNode>(); i && i->value < 0)
          Problem(at, fmt::format("a dimension is {}", i->value));
      }
    } else if (const auto* n = t.as<TypeCallNode>()) {
      const auto* g = n->func.as<GlobalTypeVarNode>();
      if (g && mod_.defined()) {
        if (!IsBuiltinType(g->name_hint.view()) &&
            !runtime::FindNamed(mod_->type_definitions.get(), g->name_hint.view()))
          Problem(at, fmt::format("the module has no data type `{}`", g->name_hint.view()));
      }
      if (std::string problem = KindProblem(t, mod_, &sensible_); !problem.empty()) Problem(at, problem);
    }
    ForEachTypeChild(t.get(), [&](const Type& child) { stack.push_back(child); });
  }
}

/// Checks of a single node.
void Verifier::CheckChildren(const ExprNode* n) {
  if (n->IsInstance<CallNode>()) {
    const auto* c = static_cast<const CallNode*>(n);
    for (const Type& t : c->type_args) CheckType(t, n);
    if (const auto* op = c->op.as<OpNode>()) {
      if (op->num_inputs >= 0 && static_cast<size_t>(op->num_inputs) != c->args.size()) {
        Problem(n, fmt::format("`{}` takes {} arguments, has {}", op->name.view(), op->num_inputs, c->args.size()));
      }
      if (!op->attrs_type_key.empty()) {
        const std::string got = c->attrs.defined() ? c->attrs->GetTypeKey() : "none";
        const bool left_out = !c->attrs.defined() && IsProgramsOwn(DefOf(op));
        if (got != op->attrs_type_key && !left_out) {
          Problem(n, fmt::format("`{}` has attributes of type {}, must be {}", op->name.view(), got,
                                 op->attrs_type_key.view()));
        }
      }
    }
  } else if (n->IsInstance<VarNode>()) {
    const auto* v = static_cast<const VarNode*>(n);
    if (!v->vid.defined()) Problem(n, "a variable has no identity");
    if (v->type_annotation.defined()) CheckType(v->type_annotation, n);
  } else if (n->IsInstance<FunctionNode>()) {
    const auto* f = static_cast<const FunctionNode*>(n);
    if (f->ret_type.defined()) CheckType(f->ret_type, n);
  } else if (n->IsInstance<ConstantNode>()) {
    if (!static_cast<const ConstantNode*>(n)->data.defined()) Problem(n, "a constant has no data");
  } else if (n->IsInstance<TupleGetItemNode>()) {
    if (static_cast<const TupleGetItemNode*>(n)->index < 0) Problem(n, "a part of a tuple has a negative number");
  } else if (n->IsInstance<GlobalVarNode>()) {
    const auto* g = static_cast<const GlobalVarNode*>(n);
    if (mod_.defined() && !mod_->ContainGlobalVar(g->name_hint.view())) {
      Problem(n, fmt::format("there is no function @{}", g->name_hint.view()));
    }
  } else if (n->IsInstance<MatchNode>()) {
    for (const Clause& c : static_cast<const MatchNode*>(n)->clauses) {
      if (!c.defined() || !c->lhs.defined()) Problem(n, "a clause or pattern is missing (null)");
    }
  }
  ForEachChild(n, [&](const ExprNode* p) {
    if (!p) Problem(n, fmt::format("`{}` has a part that is missing (null)", n->GetTypeKey()));
  });
}

void Verifier::Check(const Expr& root, bool closed) {
  if (!root.defined()) {
    Problem(nullptr, "the expression is missing (null)");
    return;
  }
  const ExprIndex index(root);
  bound_.Clear();
  size_t at = 0;
  for (const ExprNode* n : index.nodes()) {
    CheckChildren(n);
    const ExprIndex::Kind kind = index.kind(at);
    const int32_t first = index.placement(at++).own_scope;
    if (kind == ExprIndex::kLet) {
      const auto* l = static_cast<const LetNode*>(n);
      const auto* fn = l->value.as<FunctionNode>();
      Bind(l->var, first, fn ? index.placement(fn).own_scope : -1, n);
    } else if (kind == ExprIndex::kFunction) {
      for (const Var& p : static_cast<const FunctionNode*>(n)->params) Bind(p, first, -1, n);
    } else if (kind == ExprIndex::kMatch) {
      int32_t b = first;
      for (const Clause& c : static_cast<const MatchNode*>(n)->clauses) {
        if (c.defined() && c->lhs.defined()) {
          ForEachPatternChild(c->lhs.get(), [&](const Var& v) { Bind(v, b, -1, n); }, [](const Constructor&) {});
        }
        ++b;
      }
    }
  }
  auto use = [&](uint32_t operand, int32_t in, size_t by) {
    if (operand == ExprIndex::kNone || !index.atom(operand) || !index[operand]->IsInstance<VarNode>()) return;
    const Binding* b = bound_.Find(index[operand]);
    auto name = [&] { return Name(GetRef<Var>(static_cast<const VarNode*>(index[operand]))); };
    if (!b) {
      if (closed) Problem(index[by], fmt::format("{} is used but bound nowhere", name()));
    } else if (!index.Within(in, b->block) && (b->also < 0 || !index.Within(in, b->also))) {
      Problem(index[by], fmt::format("{} is used outside of its scope", name()));
    }
  };
  use(static_cast<uint32_t>(index.size() - 1), 0, index.size() - 1);
  for (uint32_t i : index.ids()) {
    const ExprIndex::Placement& info = index.placement(i);
    index.ForEachEdge(
        i, [&](uint32_t operand, int own, bool) { use(operand, own >= 0 ? info.own_scope + own : info.scope, i); });
  }
}

}  // namespace

bool WellFormed(const Expr& expr, std::string* problems) {
  Verifier v(IRModule(), problems);
  v.Check(expr, false);
  return v.ok();
}

bool WellFormed(const IRModule& mod, std::string* problems) {
  Verifier v(mod, problems);
  if (!mod.defined()) {
    v.Problem(nullptr, "the module is missing (null)");
    return false;
  }
  for (const auto& [var, func] : mod->functions) {
    v.SetFunction(var->name_hint.view());
    const auto* first = runtime::FindNamed(mod->functions.get(), var->name_hint.view());
    if (first && first->key.object() != var.get()) v.Problem(var.get(), "two functions have this name");
    if (!func.defined())
      v.Problem(var.get(), "the function is missing (null)");
    else if (func.as<FunctionNode>())
      v.Check(func, true);
  }
  v.SetFunction("");
  for (const auto& [var, data] : mod->type_definitions) {
    if (!data.defined() || !(data->header->name_hint == var->name_hint)) {
      v.Problem(nullptr, fmt::format("the data type `{}` is missing or has another name", var->name_hint.view()));
    }
  }
  return v.ok();
}

}  // namespace baton::relay

namespace {
using namespace baton;  // NOLINT
BATON_REGISTER_GLOBAL("relay.analysis.well_formed").set_body([](runtime::Args args, runtime::RetValue* rv) {
  ObjectRef obj = args[0].As<ObjectRef>();
  *rv = Any(obj.as<IRModuleNode>() ? relay::WellFormed(Downcast<IRModule>(obj))
                                   : relay::WellFormed(Downcast<RelayExpr>(obj)));
});
/// The violations, one per line; "" if there are none.
BATON_REGISTER_GLOBAL("relay.analysis.well_formed_problems").set_body_typed([](ObjectRef obj) {
  std::string out;
  if (obj.as<IRModuleNode>())
    relay::WellFormed(Downcast<IRModule>(obj), &out);
  else
    relay::WellFormed(Downcast<RelayExpr>(obj), &out);
  return out;
});
}  // namespace
