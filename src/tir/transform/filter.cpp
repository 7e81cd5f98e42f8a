// SPDX-License-Identifier: Apache-2.0
#include <baton/runtime/registry.h>
#include <baton/tir/transform.h>

namespace baton::tir::transform {

Pass Filter(PackedFunc keep) {
  return MakePass<Filter>({
      .doc = "Keeps the PrimFuncs of which fcond(func) is true; without a condition all.",
      .run =
          [keep](IRModule mod, PassContext) {
            IRModule out = mod;
            if (!keep.defined()) return out;
            for (const auto& [var, func] : mod->functions) {
              if (func.as<PrimFuncNode>() && !keep(func).As<bool>()) out.CopyOnWrite()->Remove(var);
            }
            return out;
          },
  });
}

namespace {
const bool registered = [] {
  baton::transform::RegisterPassGlobal(
      "tir.transform.Filter", PackedFunc([](runtime::Args a, runtime::RetValue* rv) {
        *rv = Filter(a.size() > 0 && !a[0].is_null() ? a[0].As<PackedFunc>() : PackedFunc());
      }));
  return true;
}();
}  // namespace
}  // namespace baton::tir::transform
