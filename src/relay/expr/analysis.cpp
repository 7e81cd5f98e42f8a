// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/structural.h>
#include <baton/ir/type_relation.h>
#include <baton/relay/analysis.h>
#include <baton/relay/functor.h>
#include <baton/runtime/interrupt.h>
#include <baton/runtime/named.h>
#include <baton/runtime/registry.h>
#include <baton/support/pointer_map.h>
#include <relay/expr/expr_index.h>
#include <relay/types/type_children.h>

#include <algorithm>

namespace baton::relay {
namespace {

/// Type variables in order of first sight.
class TypeVars {
 public:
  explicit TypeVars(const ObjectRef& root) {
    if (const auto* m = root.as<IRModuleNode>()) {
      for (const auto& [var, func] : m->functions) {
        if (func.as<FunctionNode>()) InExpr(func);
      }
    } else if (root.as<TypeNode>()) {
      InType(Downcast<Type>(root));
    } else {
      InExpr(Downcast<Expr>(root));
    }
  }
  enum Which { kAll, kFree, kBound };
  Array<TypeVar> List(Which which) const {
    Array<TypeVar> out;
    for (const TypeVar& v : all_) {
      if (which == kAll || bound_.Has(v.get()) == (which == kBound)) out.push_back(v);
    }
    return out;
  }

 private:
  void Add(const TypeVar& v) {
    if (seen_.Add(v.get())) all_.push_back(v);
  }
  void Bind(const Array<TypeVar>& vars) {
    for (const TypeVar& v : vars) {
      bound_.Add(v.get());
      Add(v);
    }
  }
  void InType(const Type& root) {
    std::vector<Type> stack{root};
    while (!stack.empty()) {
      baton::runtime::PollInterrupt();
      Type t = stack.back();
      stack.pop_back();
      if (!t.defined()) continue;
      if (t.as<TypeVarNode>()) {
        Add(Downcast<TypeVar>(t));
        continue;
      }
      if (!types_.Add(t.get())) continue;
      keep_.push_back(t);
      const auto base = static_cast<std::ptrdiff_t>(stack.size());
      if (const auto* n = t.as<FuncTypeNode>()) Bind(n->type_params);
      ForEachTypeChild(t.get(), [&](const Type& child) { stack.push_back(child); });
      if (const auto* n = t.as<TypeDataNode>()) {
        Bind(n->type_vars);
        for (const Constructor& c : n->constructors) stack.insert(stack.end(), c->inputs.begin(), c->inputs.end());
      }
      std::reverse(stack.begin() + base, stack.end());
    }
  }
  void InExpr(const Expr& e) {
    for (const ExprNode* n : PostOrderNodes(e)) {
      if (n->IsInstance<VarNode>())
        InType(static_cast<const VarNode*>(n)->type_annotation);
      else if (n->IsInstance<CallNode>())
        for (const Type& t : static_cast<const CallNode*>(n)->type_args) InType(t);
      else if (n->IsInstance<FunctionNode>()) {
        Bind(static_cast<const FunctionNode*>(n)->type_params);
        InType(static_cast<const FunctionNode*>(n)->ret_type);
      }
    }
  }
  std::vector<TypeVar> all_;
  std::vector<Type> keep_;
  PointerSet seen_, bound_, types_;
};

}  // namespace

Array<TypeVar> FreeTypeVars(const ObjectRef& x) { return TypeVars(x).List(TypeVars::kFree); }
Array<TypeVar> BoundTypeVars(const ObjectRef& x) { return TypeVars(x).List(TypeVars::kBound); }
Array<TypeVar> AllTypeVars(const ObjectRef& x) { return TypeVars(x).List(TypeVars::kAll); }

int64_t CountNodes(const Expr& expr) { return static_cast<int64_t>(PostOrderNodes(expr).size()); }

Map<String, int64_t> CountOps(const IRModule& mod) {
  PointerMap<int64_t> index;
  std::vector<std::pair<const OpNode*, int64_t>> counts;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionNode>()) continue;
    for (const ExprNode* n : PostOrderNodes(func)) {
      const auto* op = n->IsInstance<CallNode>() ? static_cast<const CallNode*>(n)->op.as<OpNode>() : nullptr;
      if (!op) continue;
      bool fresh = false;
      int64_t& i = index.Insert(op, &fresh);
      if (fresh) {
        i = static_cast<int64_t>(counts.size());
        counts.push_back({op, 0});
      }
      ++counts[i].second;
    }
  }
  Map<String, int64_t> out;
  for (const auto& [op, n] : counts) out.Set(op->name, n);
  return out;
}

namespace {
const char* KindName(TypeKind k) {
  switch (k) {
    case TypeKind::kType:
      return "a type";
    case TypeKind::kShapeVar:
      return "a shape";
    case TypeKind::kBaseType:
      return "a base type";
    case TypeKind::kConstraint:
      return "a constraint";
    case TypeKind::kAdtHandle:
      return "the name of a data type without its arguments";
    default:
      return "the definition of a data type";
  }
}
}  // namespace

namespace {
TypeKind KindOf(const Type& t) {
  if (const auto* v = t.as<TypeVarNode>()) return v->kind;
  if (const auto* v = t.as<IncompleteTypeNode>()) return v->kind;
  if (const auto* v = t.as<GlobalTypeVarNode>()) return v->kind;
  if (t.as<TypeDataNode>()) return TypeKind::kTypeData;
  return t.as<TypeConstraintNode>() ? TypeKind::kConstraint : TypeKind::kType;
}

/// Types that wait to be looked at, and the first fault.
struct KindWork {
  std::vector<Type> work;
  std::string problem;

  void Need(const Type& t, const char* where, TypeKind want = TypeKind::kType) {
    if (!problem.empty()) return;
    if (!t.defined()) {
      problem = std::string(where) + " is missing (null)";
    } else if (KindOf(t) != want) {
      problem = std::string(where) + " is " + KindName(KindOf(t)) + ", must be " + KindName(want);
    } else {
      work.push_back(t);
    }
  }
  void Look(const Type& t, const IRModule& mod) {
    if (const auto* n = t.as<TupleTypeNode>()) {
      for (const Type& f : n->fields) Need(f, "a field of a tuple");
    } else if (const auto* n = t.as<FuncTypeNode>()) {
      for (const Type& f : n->arg_types) Need(f, "an argument of a function");
      Need(n->ret_type, "the result of a function");
      for (const Type& c : n->type_constraints) Need(c, "a constraint of a function", TypeKind::kConstraint);
    } else if (const auto* n = t.as<TypeRelationNode>()) {
      for (const Type& a : n->args) Need(a, "an argument of a relation");
    } else if (const auto* n = t.as<RelayRefTypeNode>()) {
      Need(n->value, "what a reference refers to");
    } else if (const auto* n = t.as<TypeDataNode>()) {
      Need(n->header, "the name of a data type", TypeKind::kAdtHandle);
      for (const TypeVar& v : n->type_vars) Need(v, "a parameter of a data type");
      for (const Constructor& c : n->constructors) {
        for (const Type& f : c->inputs) Need(f, "a field of a constructor");
      }
    } else if (const auto* n = t.as<TypeCallNode>()) {
      if (!n->func.defined() || KindOf(n->func) != TypeKind::kAdtHandle) {
        problem = "a type that is no data type is given arguments";
        return;
      }
      for (const Type& a : n->args) Need(a, "an argument of a data type");
      const auto* g = n->func.as<GlobalTypeVarNode>();
      const auto* named =
          g && mod.defined() ? runtime::FindNamed(mod->type_definitions.get(), g->name_hint.view()) : nullptr;
      const auto* data = named ? static_cast<const TypeDataNode*>(named->value.object()) : nullptr;
      if (problem.empty() && data && data->type_vars.size() != n->args.size()) {
        problem = "the data type `" + g->name_hint.str() + "` takes " + std::to_string(data->type_vars.size()) +
                  " arguments, got " + std::to_string(n->args.size());
      }
    }
  }
};
}  // namespace

std::string KindProblem(const Type& type, const IRModule& mod, PointerSet* seen, int64_t most) {
  KindWork kinds;
  kinds.work.push_back(type);
  for (int64_t parts = 0; !kinds.work.empty() && kinds.problem.empty() && parts < most; ++parts) {
    baton::runtime::PollInterrupt();
    const Type t = kinds.work.back();
    kinds.work.pop_back();
    if (seen->Add(t.get())) kinds.Look(t, mod);
  }
  return kinds.problem;
}

TypeKind CheckKind(const Type& type, const IRModule& mod) {
  if (!type.defined()) throw CompileError("a null type has no kind");
  PointerSet seen;
  const std::string problem = KindProblem(type, mod, &seen);
  if (!problem.empty()) throw CompileError(problem);
  return KindOf(type);
}

bool IsBasicBlockNormalForm(const Expr& expr) {
  const ExprIndex index(expr);
  for (uint32_t i : index.ids()) {
    const ExprIndex::Placement& info = index.placement(i);
    bool ok = true;
    index.ForEachEdge(i, [&](uint32_t operand, int own, bool) {
      if (operand == ExprIndex::kNone || index.atom(operand)) return;
      ok = ok && index.placement(operand).scope == (own < 0 ? info.scope : info.own_scope + own);
    });
    if (!ok) return false;
  }
  return true;
}

}  // namespace baton::relay

namespace {
using namespace baton;         // NOLINT
using namespace baton::relay;  // NOLINT

BATON_REGISTER_GLOBAL("relay.analysis.post_order_visit").set_body_typed([](Expr e, PackedFunc f) {
  PostOrder(e, [&](const Expr& n) { f(n); });
});
BATON_REGISTER_GLOBAL("relay.analysis.free_vars").set_body_typed([](Expr e) { return FreeVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.bound_vars").set_body_typed([](Expr e) { return BoundVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.all_vars").set_body_typed([](Expr e) { return AllVars(e); });
BATON_REGISTER_GLOBAL("relay.analysis.free_type_vars").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = FreeTypeVars(args[0].As<ObjectRef>());
});
BATON_REGISTER_GLOBAL("relay.analysis.bound_type_vars").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = BoundTypeVars(args[0].As<ObjectRef>());
});
BATON_REGISTER_GLOBAL("relay.analysis.all_type_vars").set_body([](runtime::Args args, runtime::RetValue* rv) {
  *rv = AllTypeVars(args[0].As<ObjectRef>());
});
BATON_REGISTER_GLOBAL("relay.analysis.alpha_equal").set_body_typed([](ObjectRef a, ObjectRef b) {
  return StructuralEqual(a, b);
});
BATON_REGISTER_GLOBAL("relay.analysis.count_nodes").set_body_typed([](Expr e) { return CountNodes(e); });
BATON_REGISTER_GLOBAL("relay.analysis.count_ops").set_body_typed([](IRModule m) { return CountOps(m); });
BATON_REGISTER_GLOBAL("relay.analysis.check_kind").set_body_typed([](Type t, IRModule mod) {
  return static_cast<int64_t>(CheckKind(t, mod));
});
BATON_REGISTER_GLOBAL("relay.analysis.check_basic_block_normal_form").set_body_typed([](Expr e) {
  if (IsBasicBlockNormalForm(e)) return true;
  throw CompileError(
      "the expression is not in basic block normal form: a value is used in several blocks (bodies, branches, "
      "clauses), and no `let` in the block around them binds it; relay.transform.ToBasicBlockNormalForm() makes one");
});
BATON_REGISTER_GLOBAL("relay.analysis.check_constant").set_body_typed([](Expr e) {
  // A constant, or a tuple of such.
  std::vector<const ExprNode*> work{e.get()};
  PointerSet seen;
  while (!work.empty()) {
    baton::runtime::PollInterrupt();
    const ExprNode* n = work.back();
    work.pop_back();
    if (n->IsInstance<ConstantNode>() || !seen.Add(n)) continue;
    if (!n->IsInstance<TupleNode>()) return false;
    for (const Expr& f : static_cast<const TupleNode*>(n)->fields) work.push_back(f.get());
  }
  return true;
});
/// Element types of all typed parts, sorted by name.
BATON_REGISTER_GLOBAL("relay.analysis.all_dtypes").set_body_typed([](Expr e) {
  std::vector<std::string> names;
  for (const ExprNode* n : PostOrderNodes(e)) {
    if (const auto* t = n->checked_type_.as<TensorTypeNode>()) names.push_back(DataType2String(t->dtype));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Array<String> out;
  for (const std::string& s : names) out.push_back(String(s));
  return out;
});
BATON_REGISTER_GLOBAL("relay.analysis.bind").set_body_typed([](Expr e, Map<Var, Expr> binds) {
  return relay::Bind(e, binds);
});
BATON_REGISTER_GLOBAL("relay.ir.Bind").set_body_typed([](Expr e, Map<Var, Expr> binds) {
  return relay::Bind(e, binds);
});
}  // namespace
