// SPDX-License-Identifier: Apache-2.0
#include "driver/kernel_table.h"

#include <baton/ir/structural.h>
#include <baton/relay/functor.h>
#include <baton/relay/lower.h>
#include <baton/relay/op.h>
#include <baton/tir/lower.h>
#include <baton/tir/op.h>

#include "driver/compiled_graph.h"
#include "driver/debug_source.h"
#include "driver/roofline.h"

namespace baton::driver {

using relay::CallNode;
using relay::Expr;
using relay::Function;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

uint64_t BytesOf(const TensorType& t) {
  uint64_t n = t->dtype.bytes();
  for (const PrimExpr& d : t->shape) n *= static_cast<uint64_t>(relay::DimOf(d));
  return n;
}

namespace {

/// "fused_nn_conv2d_add_nn_relu": the operators in order, shortened.
std::string KernelName(const Function& func) {
  std::string name = "fused";
  relay::PostOrder(func->body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    const auto* op = call ? call->op.as<OpNode>() : nullptr;
    if (op && name.size() < 80) name += "_" + op->name.str();
  });
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace

std::vector<Expr> DataflowOrder(const Expr& body) {
  std::vector<Expr> order;
  std::unordered_map<const Object*, bool> done;
  std::unordered_map<const Object*, Expr> bound;  // variables of lets
  std::vector<std::pair<Expr, bool>> stack{{body, false}};
  while (!stack.empty()) {
    auto [e, expanded] = stack.back();
    stack.pop_back();
    bool& d = done[e.get()];
    if (d) continue;
    if (expanded) {
      d = true;
      order.push_back(e);
      continue;
    }
    stack.push_back({e, true});
    auto push = [&](const Expr& c) {
      auto it = done.find(c.get());
      if (it == done.end() || !it->second) stack.push_back({c, false});
    };
    if (const auto* call = e.as<CallNode>()) {
      for (size_t i = call->args.size(); i-- > 0;) push(call->args[static_cast<int64_t>(i)]);
    } else if (const auto* t = e.as<TupleNode>()) {
      for (size_t i = t->fields.size(); i-- > 0;) push(t->fields[static_cast<int64_t>(i)]);
    } else if (const auto* g = e.as<TupleGetItemNode>()) {
      push(g->tuple);
    } else if (const auto* let = e.as<LetNode>()) {
      bound[let->var.get()] = let->value;
      push(let->body);
    } else if (auto it = bound.find(e.get()); it != bound.end()) {
      push(it->second);
    }
  }
  return order;
}

GlobalVar KernelTable::Of(const Function& func) {
  uint64_t h = StructuralHash(func);
  for (auto& [f, var] : kernels_[h]) {
    if (StructuralEqual(f, func)) return var;
  }
  std::string base = KernelName(func), name = base;
  for (int i = 1; !names_.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  GlobalVar var{String(name)};
  kernels_[h].push_back({func, var});
  functions_.push_back({var, func});
  return var;
}

Map<GlobalVar, BaseFunc> KernelTable::Loops(const Target& target, DebugSource* debug) {
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : functions_) {
    Function f = debug ? debug->Kernel(var->name_hint.str(), func, origins_[var.get()]) : func;
    tir::PrimFunc lowered = relay::LowerPrimitive(f, var->name_hint, target);
    std::vector<tir::Var>& sizes = size_vars_[var.get()];
    for (const tir::Var& p : lowered->params) {
      if (!p.dtype().is_handle()) sizes.push_back(p);
    }
    if (lowered->GetAttr<String>(attr::kGlobalSymbol, String()).size() == 0) {
      lowered = WithAttr(lowered, attr::kGlobalSymbol, Any(var->name_hint));
    }
    lowered = WithAttr(lowered, tir::attr::kDisplayName, Any(String(OperatorsOf(func))));
    // Code without a span belongs to the main operator of the kernel.
    if (relay::Call anchor = relay::AnchorOf(f); anchor.defined()) lowered.CopyOnWrite()->span = anchor->span;
    functions.Set(var, lowered);
  }
  return functions;
}

Map<GlobalVar, BaseFunc> KernelTable::Lower(const Target& target, DebugSource* debug) {
  constexpr int64_t kOnStack = 64 << 10;
  Map<GlobalVar, BaseFunc> functions = LowerTir(IRModule(Loops(target, debug)), target)->functions;
  for (const auto& [var, func] : functions_) {
    const tir::PrimFunc moved = tir::WorkspaceToParameter(Downcast<tir::PrimFunc>(functions.at(var)), kOnStack);
    const PrimExpr bytes = tir::WorkspaceBytes(moved);
    if (tir::is_zero(bytes)) continue;
    functions.Set(var, moved);
    workspace_[var.get()] = bytes;
  }
  return functions;
}
const Function& KernelTable::FunctionOf(const GlobalVar& kernel) const {
  for (const auto& [var, func] : functions_) {
    if (var.same_as(kernel)) return func;
  }
  throw InternalError("no kernel " + kernel->name_hint.str());
}

}  // namespace baton::driver
