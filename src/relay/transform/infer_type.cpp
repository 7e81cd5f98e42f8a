// SPDX-License-Identifier: Apache-2.0
// Type inference of modules: functions by groups that call each other, callees first. Of expressions:
// relay/types/inferencer.h.
#include <baton/ir/diagnostic.h>
#include <baton/ir/pipeline.h>
#include <baton/relay/analysis.h>
#include <baton/relay/transform.h>
#include <baton/runtime/registry.h>
#include <fmt/format.h>
#include <relay/expr/call_graph.h>
#include <relay/expr/children.h>
#include <relay/types/inferencer.h>

namespace baton::relay {

using inference::Again;
using inference::Declared;
using inference::DeclaredType;
using inference::GlobalTypes;
using inference::Inferencer;
using inference::LacksReturnType;
using inference::Mode;
using inference::WithReturnType;

namespace {

struct Func {
  size_t entry;  ///< its place in the module
  GlobalVar var;
  Function func;
};

/// One attempt over all functions; fills `result` with the typed ones. Null: nothing is written, and what contradicts
/// the types that are there is in `contradiction`.
void InferAll(const IRModule& mod, const std::vector<Func>& funcs, Mode mode, DiagnosticList* errors, TypePool* pool,
              std::vector<Function>* result, std::string* contradiction = nullptr) {
  GlobalTypes globals(mod);
  std::vector<size_t> todo;
  bool order_matters = false;
  for (size_t i = 0; i < funcs.size(); ++i) {
    const Func& f = funcs[i];
    if (mode == Mode::kNew && f.func->checked_type_.defined()) {
      // Its callers were typed by the variable's type.
      if (f.var->checked_type_.defined() && !pool->Equal(f.var->checked_type(), f.func->checked_type())) throw Again();
      globals[f.entry] = runtime::RefCast<Type>(f.func->checked_type_);
      (*result)[i] = f.func;
    } else {
      todo.push_back(i);
      if (Declared(f.func.get()))
        globals[f.entry] = DeclaredType(f.func.get(), nullptr);
      else
        order_matters = true;
    }
  }
  std::vector<std::vector<size_t>> groups;
  if (order_matters && todo.size() > 1) {
    std::vector<std::vector<size_t>> calls(todo.size());
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> local(mod->functions.size(), kNone);
    for (size_t k = 0; k < todo.size(); ++k) local[funcs[todo[k]].entry] = k;
    for (size_t k = 0; k < todo.size(); ++k) {
      for (const ExprNode* n : PostOrderNodes(funcs[todo[k]].func)) {
        if (!n->IsInstance<GlobalVarNode>()) continue;
        const Type* type = globals.Find(static_cast<const GlobalVarNode*>(n)->name_hint.view());
        if (!type || type->defined()) continue;
        if (const size_t callee = local[globals.EntryOf(type)]; callee != kNone) calls[k].push_back(callee);
      }
    }
    groups = CallGroups(calls);
    for (auto& g : groups) {
      for (size_t& k : g) k = todo[k];
    }
  } else {
    for (size_t i : todo) groups.push_back({i});
  }
  for (const auto& group : groups) {
    Inferencer infer(mod, mode, errors, pool);
    infer.globals = &globals;
    infer.variables_stand = !result;
    const size_t before = errors->size();
    for (size_t i : group) {
      Type& type = globals[funcs[i].entry];
      if (!type.defined()) type = DeclaredType(funcs[i].func.get(), &infer);
    }
    for (size_t i : group) {
      infer.where = funcs[i].var->name_hint.view();
      infer.Walk(funcs[i].func);
      Type type = infer.TypeOf(funcs[i].func.get());
      const Type used = globals[funcs[i].entry];
      if (!infer.Unify(used, type)) {
        errors->Error(funcs[i].func->span,
                      fmt::format("@{} is used as {}, its type is {}", infer.where, TypeText(used), TypeText(type)));
      }
    }
    infer.Solve();
    if (errors->size() == before) infer.CheckComplete();
    if (errors->size() != before) {
      // Callers continue with the known types.
      for (size_t i : group) globals[funcs[i].entry] = infer.FinalType(funcs[i].func);
      continue;
    }
    for (size_t i : group) {
      const Func& f = funcs[i];
      Type type = infer.FinalType(f.func);
      globals[f.entry] = type;
      if (mode == Mode::kNew && f.var->checked_type_.defined() && !pool->Equal(f.var->checked_type(), type))
        throw Again();
    }
    if (!errors->empty()) continue;
    if (!result) {
      if (std::string wrong = infer.Contradiction(); contradiction->empty() && !wrong.empty()) {
        *contradiction = fmt::format("{}@{}: {}", group.size() > 1 ? "at " : "", infer.where, wrong);
      }
      continue;
    }
    for (size_t i : group) (*result)[i] = infer.WithGuards(Downcast<Function>(infer.Write(funcs[i].func)));
  }
  if (!errors->empty() || !result) return;
  for (const Func& f : funcs) {
    const Type& type = globals[f.entry];
    // The variable's type is a note of what its module says, not a part of its value: it follows the module.
    if (!f.var->checked_type_.defined() || !pool->Equal(f.var->checked_type(), type)) f.var->checked_type_ = type;
  }
}

}  // namespace

namespace {
std::vector<Func> FunctionsOf(const IRModule& mod) {
  std::vector<Func> funcs;
  size_t entry = 0;
  for (const auto& [var, func] : mod->functions) {
    if (func.as<FunctionNode>()) funcs.push_back({entry, var, Downcast<Function>(func)});
    ++entry;
  }
  return funcs;
}

/// Type errors of a module, from a fresh inference; "" if there are none. Does not change the module.
std::string CheckTypes(const IRModule& mod) {
  const int64_t before = InferenceWork::OfThread().expressions;
  DiagnosticList errors;
  TypePool pool;
  std::string text;
  InferAll(mod, FunctionsOf(mod), Mode::kAll, &errors, &pool, nullptr, &text);
  InferenceWork::OfThread().expressions = before;
  return errors.empty() ? text : RenderDiagnostic(errors.list().front());
}

const struct RegisteredProperty {
  RegisteredProperty() {
    baton::transform::RegisterProperty(
        "WellTyped", {"Types follow from the program, and are those that expressions have.", nullptr, CheckTypes});
  }
} registered_property;
}  // namespace

IRModule InferModuleTypes(const IRModule& mod) {
  const std::vector<Func> funcs = FunctionsOf(mod);
  DiagnosticList errors;
  TypePool pool;
  std::vector<Function> result;
  for (Mode mode : {Mode::kNew, Mode::kChildren, Mode::kAll}) {
    errors.Clear();
    result.assign(funcs.size(), Function());
    try {
      InferAll(mod, funcs, mode, &errors, &pool, &result);
    } catch (const Again&) {
      ICHECK(mode != Mode::kAll) << "inference starts over without an end";
      continue;
    }
    if (errors.empty()) break;
  }
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  IRModule out = mod;
  PointerSet checked;
  for (size_t i = 0; i < funcs.size(); ++i) {
    if (LacksReturnType(result[i].get()) && result[i]->checked_type_.defined()) {
      result[i] = Downcast<Function>(WithReturnType(result[i], result[i]->checked_type(), &checked));
    }
    if (result[i].same_as(funcs[i].func)) continue;
    if (out.same_as(mod)) out = mod.Copy();
    out.CopyOnWrite()->Update(funcs[i].var, result[i]);
  }
  return out;
}

namespace transform {

Type InferTypeOf(const Expr& expr) { return InferTypeOf(expr, IRModule()); }

namespace {

/// Infers types; null where there are `errors`.
Type Inferred(const Expr& expr, const IRModule& mod, DiagnosticList* errors) {
  TypePool pool;
  for (Mode mode : {Mode::kNew, Mode::kAll}) {
    errors->Clear();
    Inferencer infer(mod, mode, errors, &pool);
    try {
      infer.Walk(expr);
    } catch (const Again&) {
      continue;
    }
    infer.Solve();
    infer.CheckComplete();
    if (!errors->empty()) continue;
    infer.Write(expr, false);
    return infer.FinalType(expr);
  }
  return Type();
}

}  // namespace

Type InferTypeOf(const Expr& expr, const IRModule& mod) {
  if (!expr.defined()) throw CompileError("a null expression has no type");
  DiagnosticList errors;
  const Type type = Inferred(expr, mod, &errors);
  errors.ThrowIfAny(baton::transform::PassContext::Current()->diag_ctx);
  if (!type.defined()) throw InternalError("inference ended without a type");
  return type;
}

Type TypeIfAny(const Expr& expr) {
  DiagnosticList errors;
  return Inferred(expr, IRModule(), &errors);
}

Pass InferType() {
  return MakePass<InferType>({
      .doc = "Gives every expression its type. Errors name the operator, what it requires and what it got.",
      .opt_level = 0,
      .establishes = {"Typed"},
      .keeps = {"*"},
      .run = [](IRModule mod, PassContext) { return InferModuleTypes(mod); },
  });
}

namespace {
const RegisterPass<InferType> registered_infer_type;
}  // namespace

[[maybe_unused]] const bool inference_set = (baton::transform::SetTypeInference(InferModuleTypes), true);
/// The body of the pass as a plain function: instruments do not observe it.
BATON_REGISTER_GLOBAL("relay.analysis.InferModuleTypes").set_body_typed([](IRModule mod) {
  return InferModuleTypes(mod);
});
BATON_REGISTER_GLOBAL("relay._transform.InferTypeLocal").set_body_typed([](Expr expr) { return InferTypeOf(expr); });
/// Expressions that inference visited on this thread so far, those included whose types it took as they are.
BATON_REGISTER_GLOBAL("relay.analysis.infer_type_work").set_body_typed([] {
  return InferenceWork::OfThread().expressions;
});
BATON_REGISTER_GLOBAL("relay.analysis.InferTypeOf").set_body_typed([](Expr expr, IRModule mod) {
  return InferTypeOf(expr, mod);
});

}  // namespace transform
}  // namespace baton::relay
