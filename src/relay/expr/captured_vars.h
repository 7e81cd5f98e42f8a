// SPDX-License-Identifier: Apache-2.0
// The free variables of nested functions; each function is visited once.
#pragma once

#include <baton/relay/expr.h>
#include <baton/support/pointer_map.h>

#include <vector>

namespace baton::relay {

/// Memoized FreeVars of functions. A query also computes those of all nested functions, in time linear in the program
/// and in the captured variables. Separate calls of FreeVars would be quadratic in the nesting depth.
class CapturedVars {
 public:
  /// In the order of FreeVars. Valid until the next query.
  const std::vector<Var>& Of(const FunctionNode* f);

 private:
  void Find(const FunctionNode* f);
  PointerMap<uint32_t> numbers_;
  std::vector<std::vector<Var>> vars_;
};

}  // namespace baton::relay
