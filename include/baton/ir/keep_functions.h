// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>

namespace baton {

/// The module with only the functions for which keep(var, func) is true; the same object if that is all of them. Linear
/// time, unlike removing functions one by one.
template <class F>
IRModule KeepFunctions(const IRModule& mod, const F& keep) {
  Map<GlobalVar, BaseFunc> kept;
  for (const auto& [var, func] : mod->functions) {
    if (keep(var, func)) kept.Set(var, func);
  }
  if (kept.size() == mod->functions.size()) return mod;
  IRModule out = mod;
  out.CopyOnWrite()->functions = kept;
  return out;
}

}  // namespace baton
