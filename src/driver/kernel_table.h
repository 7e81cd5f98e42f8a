// SPDX-License-Identifier: Apache-2.0
// The kernels of lowered graphs: one for each distinct group of fused operators.
#pragma once

#include <baton/ir/module.h>
#include <baton/ir/target.h>
#include <baton/relay/expr.h>
#include <baton/tir/expr.h>

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::driver {

class DebugSource;

/// Bytes of a tensor whose shape is known.
uint64_t BytesOf(const TensorType& t);
/// Dataflow of a body in order, inputs first; functions that are called are not entered. A variable that a let binds
/// comes behind its value, a let behind its body.
std::vector<relay::Expr> DataflowOrder(const relay::Expr& body);

class KernelTable {
 public:
  /// The kernel of a primitive function; the same for functions of equal structure.
  GlobalVar Of(const relay::Function& func);
  /// Records the origin of a kernel call, for the text of debug information.
  void NoteOrigin(const GlobalVar& kernel, const std::string& source) { origins_[kernel.get()].push_back(source); }

  /// Lowers them for a processor. `debug` (may be null) writes them down and gives their expressions lines. The
  /// workspace that they need beyond the stack becomes a last parameter.
  Map<GlobalVar, BaseFunc> Lower(const Target& target, DebugSource* debug);
  /// The loops that they are before any lowering.
  Map<GlobalVar, BaseFunc> Loops(const Target& target, DebugSource* debug);
  /// Bytes that a kernel takes as its last parameter, by its SizeVars; null for none. Known after Lower.
  PrimExpr Workspace(const GlobalVar& kernel) const {
    auto it = workspace_.find(kernel.get());
    return it == workspace_.end() ? PrimExpr() : it->second;
  }
  /// Variables of its shapes, which a kernel takes as arguments behind its tensors. Known after Lower.
  const std::vector<tir::Var>& SizeVars(const GlobalVar& kernel) const { return size_vars_.at(kernel.get()); }
  const relay::Function& FunctionOf(const GlobalVar& kernel) const;

 private:
  std::unordered_map<uint64_t, std::vector<std::pair<relay::Function, GlobalVar>>> kernels_;
  std::vector<std::pair<GlobalVar, relay::Function>> functions_;
  std::set<std::string> names_;
  std::unordered_map<const Object*, PrimExpr> workspace_;
  std::unordered_map<const Object*, std::vector<tir::Var>> size_vars_;
  std::unordered_map<const Object*, std::vector<std::string>> origins_;
};

}  // namespace baton::driver
