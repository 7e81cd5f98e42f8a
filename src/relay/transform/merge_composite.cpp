// SPDX-License-Identifier: Apache-2.0
#include <baton/relay/dataflow_pattern.h>
#include <baton/relay/transform.h>

namespace baton::relay::transform {

struct MergeCompositeOptions : PassOptions<MergeCompositeOptions> {
  static constexpr auto _type_key = "relay.transform.MergeCompositeOptions";
  Array<String> names;
  Array<DFPattern> patterns;
  Array<PackedFunc> checks;
  static constexpr void Describe(auto& d) {
    d(F<&MergeCompositeOptions::names>, "Name of each composite function.");
    d(F<&MergeCompositeOptions::patterns>, "What each takes.");
    d(F<&MergeCompositeOptions::checks>, "`f(match)` for each: false leaves a match alone. Empty: all are taken.");
  }
};

Pass MergeComposite(const MergeCompositeOptions& options) {
  const Array<String> names = options.names;
  const Array<DFPattern> patterns = options.patterns;
  const Array<PackedFunc> checks = options.checks;
  if (names.size() != patterns.size() || (!checks.empty() && checks.size() != names.size())) {
    throw CompileError("MergeComposite got " + std::to_string(names.size()) + " names, " +
                       std::to_string(patterns.size()) + " patterns and " + std::to_string(checks.size()) + " checks");
  }
  return MakePass<MergeComposite>(
      options, {
                   .doc = "Puts what the patterns of a table match into functions that carry the pattern's name as "
                          "`Composite`, for a "
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
const RegisterPass<MergeComposite> registered_merge_composite;
}  // namespace

}  // namespace baton::relay::transform
