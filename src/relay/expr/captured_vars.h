// SPDX-License-Identifier: Apache-2.0
// The free variables of functions within functions, each function looked through once.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay {

/// FreeVars of functions, kept: asked of a function, it finds those of all functions within it too, in time linear in
/// the program and in what they capture. FreeVars of each would take the square of the depth of functions within
/// functions.
class CapturedVars {
 public:
  /// In the order of FreeVars. Until the next question.
  const std::vector<Var>& Of(const FunctionNode* f);

 private:
  void Find(const FunctionNode* f);
  PointerMap<uint32_t> numbers_;
  std::vector<std::vector<Var>> vars_;
};

}  // namespace baton::relay
