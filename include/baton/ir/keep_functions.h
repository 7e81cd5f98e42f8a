// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <baton/ir/module.h>

namespace baton {

/// The module with those functions only for which keep(var, func) is true; the very same where that is all. Linear,
/// where removing them one by one is not.
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
