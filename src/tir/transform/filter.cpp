// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/runtime/registry.h>
#include <baton/tir/transform.h>

namespace baton::tir::transform {

struct FilterOptions : PassOptions<FilterOptions> {
  static constexpr auto _type_key = "tir.transform.FilterOptions";
  PackedFunc fcond;
  static constexpr void Describe(auto& d) {
    d(F<&FilterOptions::fcond>, "`fcond(func)`: false drops a PrimFunc; null keeps all.", kNullable);
  }
};

Pass Filter(const FilterOptions& options) {
  return MakePass<Filter>(options,
                          {
                              .doc = "Keeps the PrimFuncs of which fcond(func) is true; without a condition all.",
                              .run =
                                  [keep = options.fcond](IRModule mod, PassContext) {
                                    if (!keep.defined()) return mod;
                                    return KeepFunctions(mod, [&](const GlobalVar&, const BaseFunc& func) {
                                      return !func.as<PrimFuncNode>() || keep(func).As<bool>();
                                    });
                                  },
                          });
}

namespace {
const RegisterPass<Filter> registered_filter("tir.transform.");
}  // namespace
}  // namespace baton::tir::transform
