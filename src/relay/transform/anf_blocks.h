// SPDX-License-Identifier: Apache-2.0
// A function in A-normal form as a list of blocks, for passes that write all of it anew without recursion.
#pragma once

#include <baton/relay/expr.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::relay {

/// A chain of bindings and the atom behind it.
struct NormalBlock {
  struct Step {
    Var var;
    Expr value;
    /// Number of the first block that the value owns (branches, clauses, the body of a function); others follow it.
    /// -1: none.
    int32_t first = -1;
  };
  std::vector<Step> steps;
  Expr tail;
  /// Whether the last step's value is what the block gives.
  bool EndsInLast() const { return !steps.empty() && tail.same_as(steps.back().var); }
};

/// The blocks of an expression in A-normal form; those that a value owns come behind the one around it. Bodies
/// of functions are among them if `functions` says so, those of primitive functions never.
std::vector<NormalBlock> NormalBlocks(const Expr& body, bool functions);

/// `func` in A-normal form, typed. `mod` has the types of what it names.
Function TypedNormalForm(const Function& func, const IRModule& mod);

/// The type of the function that a global variable or a constructor refers to: these nodes are shared and untyped.
FuncType TypeOfName(const Expr& name, const IRModule& mod);

/// A global function that can be rewritten; null if an external compiler takes it, or if it does not exist.
const FunctionNode* OpenFunction(const IRModule& mod, std::string_view name);

/// One step of evaluation, whatever is in it.
bool IsPrimitiveFunction(const Expr& e);

/// The module with its @main rewritten: `rewrite` gets the function, and the new module to add others to. The module
/// itself where it has no such function, or one that stays.
IRModule RewriteMain(const IRModule& mod, const std::function<Function(const Function&, IRModule*)>& rewrite);

/// A name that begins with `wanted` and that no function of `mod` has.
std::string FreshGlobalName(const IRModule& mod, const std::string& wanted);

/// The fault of a program, at a place of it.
[[noreturn]] void FailAt(const BaseExprNode* at, std::string message, std::string help = "");

}  // namespace baton::relay
