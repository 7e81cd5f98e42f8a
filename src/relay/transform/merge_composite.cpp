// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/dataflow_pattern.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {

Pass MergeComposite(Array<String> names, Array<DFPattern> patterns, Array<PackedFunc> checks) {
  if (names.size() != patterns.size() || (!checks.empty() && checks.size() != names.size())) {
    throw CompileError("MergeComposite got " + std::to_string(names.size()) + " names, " +
                       std::to_string(patterns.size()) + " patterns and " + std::to_string(checks.size()) + " checks");
  }
  return MakePass<MergeComposite>({
      .doc =
          "Puts what the patterns of a table match into functions that carry the pattern's name as `Composite`, for a "
          "code generator that takes them as one. Earlier patterns of the table win.",
      .opt_level = 0,
      .required = {"InferType"},
      .run =
          [names, patterns, checks](Function f, IRModule, PassContext) {
            Expr e = f;
            for (size_t i = 0; i < names.size(); ++i) {
              e = PartitionPattern(patterns[i], e, {{"Composite", Any(names[i])}},
                                   checks.empty() ? PackedFunc() : checks[i]);
            }
            return Downcast<Function>(e);
          },
  });
}

namespace {
const struct RegisterMergeComposite {
  RegisterMergeComposite() {
    baton::transform::RegisterPassGlobal(
        "relay._transform.MergeComposite", PackedFunc([](runtime::Args a, runtime::RetValue* rv) {
          if (a.size() == 0) {
            *rv = MergeComposite({}, {}, {});
          } else {
            *rv = MergeComposite(a[0].As<Array<String>>(), a[1].As<Array<DFPattern>>(), a[2].As<Array<PackedFunc>>());
          }
        }));
  }
} registered_merge_composite;
}  // namespace

}  // namespace baton::relay::transform
