// SPDX-License-Identifier: Apache-2.0
#include <baton/ir/keep_functions.h>
#include <baton/runtime/registry.h>
#include <baton/tir/transform.h>

namespace baton::tir::transform {

Pass Filter(PackedFunc keep) {
  return MakePass<Filter>({
      .doc = "Keeps the PrimFuncs of which fcond(func) is true; without a condition all.",
      .run =
          [keep](IRModule mod, PassContext) {
            if (!keep.defined()) return mod;
            return KeepFunctions(mod, [&](const GlobalVar&, const BaseFunc& func) {
              return !func.as<PrimFuncNode>() || keep(func).As<bool>();
            });
          },
  });
}

namespace {
const bool registered_filter = [] {
  baton::transform::RegisterPassGlobal(
      "tir.transform.Filter", PackedFunc([](runtime::Args a, runtime::RetValue* rv) {
        *rv = Filter(a.size() > 0 && !a[0].is_null() ? a[0].As<PackedFunc>() : PackedFunc());
      }));
  return true;
}();
}  // namespace
}  // namespace baton::tir::transform
